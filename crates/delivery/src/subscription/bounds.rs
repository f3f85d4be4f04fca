//! The most that any subscription may ask for.

use crate::time::duration::{DAY_MS, MINUTE_MS};

/// The most attempts of a delivery, in any dialect: no limit of the platform would end a retry
/// loop.
pub const ATTEMPTS_MAX: u32 = 1_000;
/// The longest lifetime of a delivery from publication, in any dialect.
pub const LIFETIME_MAX_MS: u64 = 14 * DAY_MS;
/// The longest delay of a subscription. A delivery is left a week to be attempted.
pub(super) const DELIVERY_DELAY_MAX_MS: u64 = 7 * DAY_MS;
/// The longest response timeout: a function lives for at most 15 minutes, and other work has to fit
/// beside it.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>
pub const RESPONSE_TIMEOUT_MAX_MS: u64 = 10 * MINUTE_MS;
