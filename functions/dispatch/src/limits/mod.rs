//! How many requests are made: so many at once, and so many a second.

mod concurrency;
mod leases;
mod rate;

pub(crate) use concurrency::{ConcurrencyLimits, Permit};
pub(crate) use leases::{LeasedPermit, Leases};
pub(crate) use rate::Rates;

/// Before a shared document is asked, the other deliveries of the invocation may come to the same
/// question: then it is asked once for all.
const GATHER_MS: u64 = 5;
