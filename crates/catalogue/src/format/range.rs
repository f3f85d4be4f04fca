//! The keys of a topic, or one key, as a range.

use super::Reference;

/// The keys from one on, up to another.
#[derive(Debug, Clone)]
pub(crate) struct KeyRange {
    from: String,
    before: String,
}

impl KeyRange {
    /// The entries of a topic: `topic/` and all keys that begin with it.
    pub(crate) fn of_topic(topic: &str) -> Self {
        // The byte after the slash.
        Self { from: format!("{topic}/"), before: format!("{topic}0") }
    }

    pub(crate) fn of_key(key: &str) -> Self {
        Self { from: key.to_owned(), before: format!("{key}\0") }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        *self.from <= *key && *key < *self.before
    }

    /// Whether a node may have keys of this range.
    pub(crate) fn meets(&self, place: &Reference) -> bool {
        *place.first < *self.before && place.before.as_ref().is_none_or(|end| **end > *self.from)
    }
}
