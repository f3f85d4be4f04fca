//! What a local AWS is started with: port, folder, queues and buckets.
//!
//! It is separate so that the one list of our queues stands in one place, readable next to the
//! template that creates the same ones in the cloud. It promises names and limits equal to the
//! template's. It checks nothing: starting does.

use std::path::PathBuf;

/// How often dispatch may receive one message before the queue moves it to `dead-letter`.
const DISPATCH_RECEIVES: u32 = 100;

/// How often deadletter may receive one message before the queue moves it to `last-resort`.
/// SQS allows at most this many (SQS `SetQueueAttributes`, `maxReceiveCount`).
const DEAD_LETTER_RECEIVES: u32 = 1000;

/// What a local AWS is started with.
#[derive(Debug, Clone)]
pub struct LocalAwsConfig {
    /// The port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// The folder whose folders are the buckets.
    pub data: PathBuf,
    /// The queues to create; one that others redrive to may stand anywhere in the list.
    pub queues: Vec<QueueConfig>,
    /// The buckets to create; those already there stay as they are.
    pub buckets: Vec<String>,
}

/// A queue to create.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// Its name.
    pub name: String,
    /// How long a received message stays hidden, 0 to 43,200 s.
    pub visibility_timeout_seconds: u32,
    /// Where messages go that were received too often, if anywhere.
    pub redrive: Option<Redrive>,
}

/// Where messages go that were received too often.
#[derive(Debug, Clone)]
pub struct Redrive {
    /// The name of the queue that takes them.
    pub to: String,
    /// How many receives are allowed, 1 to 1000.
    pub after_receives: u32,
}

impl LocalAwsConfig {
    /// Our four queues and two buckets, as the template makes them in the cloud.
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
                queue("dead-letter", Some(("last-resort", DEAD_LETTER_RECEIVES))),
                queue("last-resort", None),
            ],
            buckets: vec!["dead-letters".to_owned(), "config".to_owned()],
        }
    }
}
