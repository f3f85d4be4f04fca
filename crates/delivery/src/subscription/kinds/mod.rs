//! Kinds of values that only subscriptions have: statuses, headers, filters, schedules, addresses.
//!
//! Separate from the records that declare fields of them, and from the kinds that know no field (`document::kind`).

pub(crate) mod address;
pub(crate) mod advanced;
pub(crate) mod auth;
pub(crate) mod batches;
pub(crate) mod ca_bundle;
pub(crate) mod conditions;
pub(crate) mod filter;
pub(crate) mod headers;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod replies;
pub(crate) mod schedule;
pub(crate) mod secrets;
pub(crate) mod sinks;
pub(crate) mod statuses;
