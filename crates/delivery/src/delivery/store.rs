//! [`Store`]: the storage of a dead letter, a container or a queue.
//!
//! This module is separate because a dead letter contains its storage, and another module derives
//! the storage from the sink of the subscription.

use crate::subscription::sink::{Container, SinkQueue};

/// The storage of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// The container of the deployment.
    DefaultContainer,
    /// A container that the subscription names.
    Container(Container),
    /// An SQS queue outside the deployment.
    Queue(SinkQueue),
}

impl Store {
    /// Returns the container that the subscription names; `None` for other storage.
    #[must_use]
    pub fn container(&self) -> Option<&Container> {
        let Self::Container(container) = self else { return None };
        Some(container)
    }
}
