//! [`Entry`]: an item of the table that contains one text. The text is always replaced as a whole.
//!
//! The version of an item counts replacements. A process replaces only the version that it has
//! read, so no concurrent change is lost.

use crate::time::duration::SECOND_MS;

/// A text to store in the table, and its expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The text, usually JSON. The table does not parse the text.
    pub text: String,
    /// Time of expiry in milliseconds since 1970; `None` if the item does not expire. DynamoDB
    /// removes an expired item within days, and readers ignore it until then.
    pub expires_ms: Option<u64>,
}

/// The state that an item must have to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The item may have any version, or not exist.
    Anything,
    /// The item does not exist or has expired.
    Nothing,
    /// The item has this version, which the caller has read.
    Version(u64),
}

impl Entry {
    /// Returns the expiry in seconds since 1970 for DynamoDB's TTL, rounded up.
    #[must_use]
    pub fn expires_s(&self) -> Option<u64> {
        self.expires_ms.map(|expires_ms| expires_ms.div_ceil(SECOND_MS))
    }
}

impl Expected {
    /// True if the stored item satisfies the condition. `stored` contains its version and its
    /// expiry in seconds.
    #[must_use]
    pub fn is_met(self, stored: Option<(u64, Option<u64>)>, now_ms: u64) -> bool {
        match (self, stored) {
            (Self::Anything, _) | (Self::Nothing, None) => true,
            (Self::Nothing, Some((_, expires_s))) => {
                expires_s.is_some_and(|expires_s| expires_s <= now_ms / SECOND_MS)
            }
            (Self::Version(expected), stored) => stored.is_some_and(|(found, _)| found == expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_replaced_by_whoever_knows_its_version_and_once_it_has_expired_by_anybody() {
        let now_ms = 10_000;
        for (expected, stored, is_met) in [
            (Expected::Anything, None, true),
            (Expected::Anything, Some((3, None)), true),
            (Expected::Nothing, None, true),
            (Expected::Nothing, Some((3, None)), false),
            (Expected::Nothing, Some((3, Some(11))), false),
            (Expected::Nothing, Some((3, Some(10))), true),
            (Expected::Version(3), Some((3, Some(10))), true),
            (Expected::Version(3), Some((4, None)), false),
            (Expected::Version(3), None, false),
        ] {
            assert_eq!(expected.is_met(stored, now_ms), is_met, "{expected:?} {stored:?}");
        }
    }

    #[test]
    fn an_entry_does_not_expire_before_its_time() {
        let expires_s = |expires_ms| Entry { text: String::new(), expires_ms }.expires_s();
        assert_eq!(expires_s(None), None);
        assert_eq!(expires_s(Some(9_001)), Some(10));
        assert_eq!(expires_s(Some(9_000)), Some(9));
    }
}
