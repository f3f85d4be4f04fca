//! Measured constants: bytes of log lines, processor time by `bench/run`, and what waiting takes by the simulation.
//!
//! Kept by hand. Tests in `measuring.rs` and in `tests/tests/simulation/outage.rs` measure again; they fail with the
//! constants that are no longer true.

/// `delivery.delivered`.
pub(crate) const DELIVERED_LINE_BYTES: f64 = 326.0;
/// `delivery.attempted` of an attempt that failed.
pub(crate) const FAILED_LINE_BYTES: f64 = 376.0;
/// `delivery.put_off` of a delivery whose destination is on probation.
pub(crate) const PUT_OFF_LINE_BYTES: f64 = 320.0;
/// `delivery.ended` of a dead letter.
pub(crate) const ENDED_LINE_BYTES: f64 = 329.0;
/// `deadletter.stored`.
pub(crate) const STORED_LINE_BYTES: f64 = 421.0;
/// A line of metrics about deliveries, without measured values.
pub(crate) const METRICS_LINE_BYTES: f64 = 448.0;
/// The measured values of a delivery in such a line.
pub(crate) const MEASURED_VALUES_BYTES: f64 = 9.0;
/// An invocation of dispatch, and each record in it: microseconds of a whole processor.
pub(crate) const DISPATCH_INVOCATION_US: f64 = 253.4;
pub(crate) const DISPATCH_RECORD_US: f64 = 34.7;
/// The same of deadletter.
pub(crate) const DEAD_LETTER_INVOCATION_US: f64 = 267.1;
pub(crate) const DEAD_LETTER_RECORD_US: f64 = 102.9;
/// A delivery that waits all day for a destination on probation: its messages, and how often it is put off.
pub(crate) const WAITING_MESSAGES: f64 = 165.0;
pub(crate) const WAITING_PUT_OFFS: f64 = 142.0;
