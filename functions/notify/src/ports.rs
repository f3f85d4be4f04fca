//! The ports of the flow, except storage: the queue of reports, the topic of messages, and the
//! clock.
//!
//! Separate so that tests can simulate requests that AWS refuses.

use std::future::Future;

use thiserror::Error;

use crate::report::Report;

/// A request that AWS refused or that failed. The text is the reason, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// The queue of reports, the topic of messages, and the clock.
pub trait Ports {
    /// Returns the current time in milliseconds since 1970.
    fn now_ms(&self) -> u64;

    /// Receives at most ten reports; returns an empty list if none is left.
    fn receive(&self) -> impl Future<Output = Result<Vec<Report>, Refused>>;

    /// Publishes a message to all subscribers of the topic.
    fn publish(&self, subject: &str, text: &str) -> impl Future<Output = Result<(), Refused>>;

    /// Deletes at most ten reports, identified by their receipt handles.
    fn delete(&self, receipts: &[String]) -> impl Future<Output = Result<(), Refused>>;
}
