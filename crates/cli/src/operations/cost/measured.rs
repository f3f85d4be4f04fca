//! Lists measured constants: bytes of log lines, processor time from `bench/run`, and the work of
//! waiting deliveries from the simulation.
//!
//! The constants are maintained by hand. Tests in `measuring.rs` and in
//! `tests/tests/simulation/outage.rs` measure again, and fail if a constant is outdated.

/// The size in bytes of a log line `delivery.delivered`.
pub(crate) const DELIVERED_LINE_BYTES: f64 = 326.0;
/// The size in bytes of a log line `delivery.attempted` for a failed attempt.
pub(crate) const FAILED_LINE_BYTES: f64 = 376.0;
/// The size in bytes of a log line `delivery.put_off` for a delivery whose destination is on
/// probation.
pub(crate) const PUT_OFF_LINE_BYTES: f64 = 320.0;
/// The size in bytes of a log line `delivery.ended` for a dead letter.
pub(crate) const ENDED_LINE_BYTES: f64 = 329.0;
/// The size in bytes of a log line `deadletter.stored`.
pub(crate) const STORED_LINE_BYTES: f64 = 421.0;
/// The size in bytes of a line of delivery metrics, without measured values.
pub(crate) const METRICS_LINE_BYTES: f64 = 448.0;
/// The number of bytes that the measured values of one delivery add to a line of metrics.
pub(crate) const MEASURED_VALUES_BYTES: f64 = 9.0;
/// The processor time of dispatch per invocation, in microseconds of a whole processor.
pub(crate) const DISPATCH_INVOCATION_US: f64 = 253.4;
/// The processor time of dispatch per record, in microseconds of a whole processor.
pub(crate) const DISPATCH_RECORD_US: f64 = 34.7;
/// The processor time of deadletter per invocation, in microseconds of a whole processor.
pub(crate) const DEAD_LETTER_INVOCATION_US: f64 = 267.1;
/// The processor time of deadletter per record, in microseconds of a whole processor.
pub(crate) const DEAD_LETTER_RECORD_US: f64 = 102.9;
/// The number of messages of a delivery that waits for a day while its destination is on probation.
pub(crate) const WAITING_MESSAGES: f64 = 165.0;
/// The number of deferrals of a delivery that waits for a day while its destination is on
/// probation.
pub(crate) const WAITING_PUT_OFFS: f64 = 142.0;
