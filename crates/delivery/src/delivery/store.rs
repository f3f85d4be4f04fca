//! [`Store`]: the container or queue in which a dead letter is stored.
//!
//! This module is separate because a dead letter contains its [`Store`]. Another module derives the
//! [`Store`] from the sink of the subscription.

use crate::subscription::sink::{Container, SinkQueue};

/// The container or queue in which a dead letter is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// The container of the deployment.
    DefaultContainer,
    /// A container that the subscription names.
    Container(Container),
    /// An SQS queue outside the deployment, which the subscription names.
    Queue(SinkQueue),
}

impl Store {
    /// Returns the container that the subscription names; `None` for the default container or a
    /// queue.
    #[must_use]
    pub fn container(&self) -> Option<&Container> {
        let Self::Container(container) = self else { return None };
        Some(container)
    }
}
