//! Upper limits for the settings of all subscriptions.

use crate::time::duration::{DAY_MS, MINUTE_MS};

/// Maximum number of attempts of a delivery, in any dialect. Without this limit, a schedule with
/// short waits could allow any number of attempts within the lifetime.
pub const ATTEMPTS_MAX: u32 = 1_000;
/// Maximum lifetime of a delivery, counted from publication, in any dialect.
pub const LIFETIME_MAX_MS: u64 = 14 * DAY_MS;
/// Maximum `delay` of a subscription. It leaves a week of the lifetime for attempts.
pub(super) const DELIVERY_DELAY_MAX_MS: u64 = 7 * DAY_MS;
/// Maximum response timeout of a destination. A Lambda function runs for at most 15 minutes, and
/// the invocation has other work in addition to the request.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>
pub const RESPONSE_TIMEOUT_MAX_MS: u64 = 10 * MINUTE_MS;
