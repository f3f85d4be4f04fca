//! Publishers that cannot name a topic, and the input of their records.
//!
//! Separate because each service identifies its publishers differently, and a Topic document lists
//! them.

use std::fmt;

use crate::event::Input;

/// A publisher that cannot set the `topic` attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Publisher {
    /// The SNS topic with this ARN.
    SnsTopic(String),
    /// The EventBridge source with this name.
    EventSource(String),
    /// The S3 bucket with this name.
    Bucket(String),
}

impl fmt::Display for Publisher {
    /// Prints the field of a Topic document that names the publisher, and its value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnsTopic(arn) => write!(f, "snsTopic {arn}"),
            Self::EventSource(name) => write!(f, "eventSource {name}"),
            Self::Bucket(name) => write!(f, "bucket {name}"),
        }
    }
}

/// Returns the input that reads the records of this publisher.
#[must_use]
pub const fn input_of(publisher: &Publisher) -> Input {
    match publisher {
        Publisher::SnsTopic(_) => Input::Sns,
        Publisher::EventSource(_) => Input::EventBridge,
        Publisher::Bucket(_) => Input::S3,
    }
}
