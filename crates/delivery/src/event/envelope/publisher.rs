//! A publisher that cannot name a topic, and how its records are read.
//!
//! Separate because each service names its publishers in a way of its own, and a topic lists them.

use std::fmt;

use crate::event::Input;

/// A publisher that cannot set the `topic` attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Publisher {
    /// The SNS topic of this ARN.
    SnsTopic(String),
    /// The EventBridge source of this name.
    EventSource(String),
    /// The S3 bucket of this name.
    Bucket(String),
}

impl fmt::Display for Publisher {
    /// The field of a Topic document that names it, and its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnsTopic(arn) => write!(f, "snsTopic {arn}"),
            Self::EventSource(name) => write!(f, "eventSource {name}"),
            Self::Bucket(name) => write!(f, "bucket {name}"),
        }
    }
}

/// The input of records of this publisher.
#[must_use]
pub const fn input_of(publisher: &Publisher) -> Input {
    match publisher {
        Publisher::SnsTopic(_) => Input::Sns,
        Publisher::EventSource(_) => Input::EventBridge,
        Publisher::Bucket(_) => Input::S3,
    }
}
