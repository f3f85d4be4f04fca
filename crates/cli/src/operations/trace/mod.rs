//! Deliveries of an event, put together from log lines and dead letters. Pure.
//!
//! Separate from the command, which reads logs and containers. `wanted` selects log lines by a text. `log_line` reads one.
//! `deliveries` makes the view model, `batches` finds the deliveries of a request with several events, and `scan` estimates the price of a query of CloudWatch Logs. Everything here is a
//! function of values, so tests use log lines that real functions wrote.

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
