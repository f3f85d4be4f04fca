//! The limits of objects, for all that read or write them.

/// The largest object.
pub const OBJECT_MAX_BYTES: usize = 16 * 1_024 * 1_024;
/// The most subscriptions of a topic.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The longest text of one subscription, or of the settings of the topic.
pub const ENTRY_MAX_BYTES: usize = 256 * 1_024;
