//! The configuration of a local AWS: port, folder, queues and buckets.
//!
//! Separate so that one file lists the queues, which a test compares with the template.
//!
//! Promises: the queues have the template's limits. This module validates nothing;
//! `LocalAws::start` does.

use std::path::PathBuf;

/// `maxReceiveCount` of the queues that dispatch reads. After this many receives, a message moves
/// to `dead-letter`.
const DISPATCH_RECEIVES: u32 = 100;

/// `maxReceiveCount` of the isolation queue. A message that was alone in its batch and crashed the
/// function this number of times moves to `dead-letter`.
const ISOLATION_RECEIVES: u32 = 10;

/// `maxReceiveCount` of the dead-letter queue, after which a message moves to `last-resort`. It is
/// the maximum of SQS (SQS `SetQueueAttributes`, `maxReceiveCount`).
const DEAD_LETTER_RECEIVES: u32 = 1000;

/// The port, the folder, the queues and the buckets of a local AWS.
#[derive(Debug, Clone)]
pub struct LocalAwsConfig {
    /// The port on 127.0.0.1; 0 selects any free port.
    pub port: u16,
    /// The folder in which each bucket is a subfolder.
    pub data: PathBuf,
    /// The queues to create. The target of a redrive policy may be listed before or after the
    /// source.
    pub queues: Vec<QueueConfig>,
    /// The buckets to create. Existing buckets keep their objects.
    pub buckets: Vec<String>,
}

/// The configuration of one queue.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// The name of the queue, which is the last part of its URL.
    pub name: String,
    /// The visibility timeout in seconds, from 0 to 43,200.
    pub visibility_timeout_seconds: u32,
    /// The redrive policy; `None` for no redrive.
    pub redrive: Option<Redrive>,
}

/// A redrive policy: the queue to which a message moves after too many receives.
#[derive(Debug, Clone)]
pub struct Redrive {
    /// The name of the target queue.
    pub to: String,
    /// The maximum number of receives, from 1 to 1000.
    pub after_receives: u32,
}

impl LocalAwsConfig {
    /// Returns the configuration of the six queues and two buckets of lastmile, as in the template.
    #[must_use]
    pub fn of_lastmile(port: u16, data: PathBuf, visibility_timeout_seconds: u32) -> Self {
        let queue = |name: &str, redrive: Option<(&str, u32)>| QueueConfig {
            name: name.to_owned(),
            visibility_timeout_seconds,
            redrive: redrive
                .map(|(to, after_receives)| Redrive { to: to.to_owned(), after_receives }),
        };
        Self {
            port,
            data,
            queues: vec![
                queue("events", Some(("dead-letter", DISPATCH_RECEIVES))),
                queue("retry", Some(("dead-letter", DISPATCH_RECEIVES))),
                queue("slow", Some(("dead-letter", DISPATCH_RECEIVES))),
                queue("isolation", Some(("dead-letter", ISOLATION_RECEIVES))),
                queue("dead-letter", Some(("last-resort", DEAD_LETTER_RECEIVES))),
                queue("last-resort", None),
            ],
            buckets: vec!["dead-letters".to_owned(), "config".to_owned()],
        }
    }
}
