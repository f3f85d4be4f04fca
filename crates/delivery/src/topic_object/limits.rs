//! The limits of objects, for every reader and writer.

/// Maximum size of an object.
pub const OBJECT_MAX_BYTES: usize = 16 * 1_024 * 1_024;
/// Maximum number of subscriptions of a topic.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Maximum size of the text of one subscription, or of the settings of the topic.
pub const ENTRY_MAX_BYTES: usize = 256 * 1_024;
/// Maximum number of conditions in all filters of a topic, including the values that they compare
/// with. A condition needs several times the memory of its text.
pub const CONDITIONS_MAX: usize = 100_000;

/// Memory of a subscription besides its texts and its filter.
const SUBSCRIPTION_BYTES: usize = 1_700;
/// Memory of a condition of a filter.
const CONDITION_BYTES: usize = 200;

/// Estimates the memory of a topic from the size of its object, its subscriptions and their
/// conditions.
#[must_use]
pub const fn memory_bytes(object_bytes: usize, subscriptions: usize, conditions: usize) -> usize {
    object_bytes + subscriptions * SUBSCRIPTION_BYTES + conditions * CONDITION_BYTES
}
