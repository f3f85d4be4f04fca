//! The types of fields that only subscriptions have, such as headers, filters and schedules.
//!
//! This module is separate because records in several modules declare fields of these types. The
//! general field types are in `document::kind`.

pub mod address;
pub mod advanced;
pub mod auth;
pub mod batches;
pub mod body_fields;
pub mod ca_bundle;
pub mod conditions;
pub mod filter;
pub mod headers;
pub mod limits;
pub mod names;
pub mod publishers;
pub mod references;
pub mod replies;
pub mod samples;
pub mod schedule;
pub mod secrets;
pub mod sinks;
pub mod statuses;
pub mod templates;
