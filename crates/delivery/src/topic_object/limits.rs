//! The limits of objects, for all that read or write them.

/// The largest object.
pub const OBJECT_MAX_BYTES: usize = 16 * 1_024 * 1_024;
/// The most subscriptions of a topic.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The longest text of one subscription, or of the settings of the topic.
pub const ENTRY_MAX_BYTES: usize = 256 * 1_024;
/// The most conditions that the filters of a topic have together, with the values that they compare with. A condition takes
/// several times the memory of its text.
pub const CONDITIONS_MAX: usize = 100_000;

/// The memory that a subscription takes beside its texts and its filter.
const SUBSCRIPTION_BYTES: usize = 1_700;
/// The memory that a condition of a filter takes.
const CONDITION_BYTES: usize = 200;

/// About the memory that a topic takes, by the length of its object, its subscriptions and their conditions.
#[must_use]
pub const fn memory_bytes(object_bytes: usize, subscriptions: usize, conditions: usize) -> usize {
    object_bytes + subscriptions * SUBSCRIPTION_BYTES + conditions * CONDITION_BYTES
}
