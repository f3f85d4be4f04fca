//! Combines log lines and dead letters into the deliveries of an event. Pure.
//!
//! Separate from the command, which reads logs and containers. `wanted` selects log lines by a
//! text, and `log_line` parses a line. `deliveries` builds the view model, and `batches` finds the
//! deliveries of a request with several events. `scan` estimates the cost of a query of CloudWatch
//! Logs. All functions are pure, so tests use log lines that real functions wrote.

mod batches;
mod deliveries;
mod log_line;
mod model;
#[cfg(feature = "aws")]
pub(crate) mod scan;
#[cfg(test)]
mod tests;
mod wanted;

pub(crate) use self::batches::deliveries_of_batch;
pub(crate) use self::deliveries::{Letters, trace};
pub(crate) use self::log_line::log_line;
pub(crate) use self::model::{
    DeliveryEnd, Step, Trace, TracedDelivery, TracedLetter, TracedReplay,
};
pub(crate) use self::wanted::Wanted;
