//! The configuration of a local AWS: port, folder, queues and buckets.
//!
//! It is separate so that the queues are listed in one place, to be compared with the template that
//! creates them in the cloud. It promises the template's limits. It validates nothing; starting the
//! local AWS does.

use std::path::PathBuf;

/// `maxReceiveCount` of dispatch's queues, after which a message moves to `dead-letter`.
const DISPATCH_RECEIVES: u32 = 100;

/// `maxReceiveCount` of the isolation queue: what crashes a function alone, this often, ends.
const ISOLATION_RECEIVES: u32 = 10;

/// `maxReceiveCount` of deadletter's queue, after which a message moves to `last-resort`.
/// It is the maximum of SQS (SQS `SetQueueAttributes`, `maxReceiveCount`).
const DEAD_LETTER_RECEIVES: u32 = 1000;

/// The configuration of a local AWS.
#[derive(Debug, Clone)]
pub struct LocalAwsConfig {
    /// The port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// The folder whose subfolders are the buckets.
    pub data: PathBuf,
    /// The queues to create; the target of a redrive may be anywhere in the list.
    pub queues: Vec<QueueConfig>,
    /// The buckets to create; existing ones keep their objects.
    pub buckets: Vec<String>,
}

/// A queue to create.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// Its name.
    pub name: String,
    /// The visibility timeout, 0 to 43,200 s.
    pub visibility_timeout_seconds: u32,
    /// The redrive policy, if any.
    pub redrive: Option<Redrive>,
}

/// A redrive policy: where messages go after too many receives.
#[derive(Debug, Clone)]
pub struct Redrive {
    /// The name of the target queue.
    pub to: String,
    /// How many receives are allowed, 1 to 1000.
    pub after_receives: u32,
}

impl LocalAwsConfig {
    /// Our six queues and two buckets, as the template creates them.
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
