//! Where each value of a policy was written, for explanations.
//!
//! Separate because every family fills it and none reads it: a policy is complete when it leaves this border, and no
//! longer knows what a document said and what its profile filled in. Only what a document states has an origin.

use std::collections::BTreeMap;

use super::reader::Cursor;

/// Policy field → where a document states it, as `file:line:column`. A field without an entry is the profile's.
///
/// The names of the fields are [`FIELDS`].
pub type Origins = BTreeMap<&'static str, String>;

/// The policy fields that can have an origin, named as in the native format.
pub const FIELDS: [&str; 14] = [
    "maxAttempts",
    "timeToLive",
    "schedule",
    "responseTimeout",
    "success",
    "neverRetry",
    "retryOn",
    "leastWaits",
    "retryAfterMax",
    "jitterPercent",
    "deadLetter.sink",
    "deadLetter.format",
    "deadLetter.delay",
    "deadLetter.keepTryingFor",
];

/// Notes that the value of a policy field stands at the cursor; without a cursor nothing was stated.
pub(super) fn note(origins: &mut Origins, field: &'static str, at: Option<&Cursor<'_>>) {
    debug_assert!(FIELDS.contains(&field), "{field} is a field of a policy");
    origins.extend(at.map(|at| (field, at.location())));
}
