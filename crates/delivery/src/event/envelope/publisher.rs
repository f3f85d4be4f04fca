//! Publishers that cannot name a topic, and the input format of their records.
//!
//! This module is separate because each service identifies its publishers differently, and the
//! publishers are fields of Topic documents.

use std::fmt;

use crate::event::Input;

/// A publisher whose service cannot set the `topic` attribute of a message.
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
    /// Prints the publisher as a field of a Topic document: the name of the field and its value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnsTopic(arn) => write!(f, "snsTopic {arn}"),
            Self::EventSource(name) => write!(f, "eventSource {name}"),
            Self::Bucket(name) => write!(f, "bucket {name}"),
        }
    }
}

/// Returns the input format of records from this publisher.
#[must_use]
pub const fn input_of(publisher: &Publisher) -> Input {
    match publisher {
        Publisher::SnsTopic(_) => Input::Sns,
        Publisher::EventSource(_) => Input::EventBridge,
        Publisher::Bucket(_) => Input::S3,
    }
}
