//! How many requests are made: so many at once, and so many a second.

mod concurrency;
mod rate;

pub(crate) use concurrency::{ConcurrencyLimits, Permit};
pub(crate) use rate::Rates;
