//! The place of a dead letter: a container or a queue.
//!
//! Separate because a dead letter holds it, and is made from the sink of its subscription elsewhere.

use crate::subscription::sink::{Container, SinkQueue};

/// Where a dead letter is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// In the container of the deployment.
    DefaultContainer,
    /// In a container of its subscription's.
    Container(Container),
    /// In an SQS queue outside the deployment.
    Queue(SinkQueue),
}

impl Store {
    /// The container, if the subscription names one.
    #[must_use]
    pub fn container(&self) -> Option<&Container> {
        let Self::Container(container) = self else { return None };
        Some(container)
    }
}
