//! The ports of the flow besides storage: the queue of reports, the topic of messages, and the clock.
//!
//! Separate so that tests can refuse messages.

use std::future::Future;

use thiserror::Error;

use crate::report::Report;

/// A request to AWS failed, with the reason in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// The queue of reports, the topic of messages, and the clock.
pub trait Ports {
    /// The time now.
    fn now_ms(&self) -> u64;

    /// At most ten reports; an empty list means that none is left.
    fn receive(&self) -> impl Future<Output = Result<Vec<Report>, Refused>>;

    /// Publishes a message to all subscribers of the topic.
    fn publish(&self, subject: &str, text: &str) -> impl Future<Output = Result<(), Refused>>;

    /// Deletes at most ten reports, by their receipts.
    fn delete(&self, receipts: &[String]) -> impl Future<Output = Result<(), Refused>>;
}
