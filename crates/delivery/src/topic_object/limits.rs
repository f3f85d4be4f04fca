//! The limits of stored objects, which every reader and writer checks.

/// Maximum size of an object in bytes.
pub const OBJECT_MAX_BYTES: usize = 16 * 1_024 * 1_024;
/// Maximum number of subscriptions of a topic.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Maximum size in bytes of the text of one subscription, or of a topic's settings.
pub const ENTRY_MAX_BYTES: usize = 256 * 1_024;
/// Maximum number of conditions in all filters of a topic, including the values in them. A
/// condition needs several times the memory of its text.
pub const CONDITIONS_MAX: usize = 100_000;

/// Estimated memory of a subscription in bytes. Excludes its texts and its filter.
const SUBSCRIPTION_BYTES: usize = 1_700;
/// Estimated memory of one condition of a filter, in bytes.
const CONDITION_BYTES: usize = 200;

/// Estimates the memory of a topic in bytes from the size of its object, and the numbers of
/// subscriptions and conditions.
#[must_use]
pub const fn memory_bytes(object_bytes: usize, subscriptions: usize, conditions: usize) -> usize {
    object_bytes + subscriptions * SUBSCRIPTION_BYTES + conditions * CONDITION_BYTES
}
