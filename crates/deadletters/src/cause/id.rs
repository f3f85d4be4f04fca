//! The id of a cause, and prefixes of ids as people type them.
//!
//! Separate because a filter contains prefixes but no causes.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use uuid::Uuid;

/// The UUIDv5 namespace of cause ids.
const CAUSES: Uuid = Uuid::from_u128(0x9d2b_6f1c_53f0_4c8e_a7c4_1e0f_6b82_d935);
/// Minimum length of a prefix. Shorter prefixes would match several causes by accident.
const PREFIX_MIN_DIGITS: usize = 4;
/// Number of digits that are shown. More are shown if two causes share these digits.
const SHOWN_DIGITS: usize = 8;

/// The id of a cause: 32 hexadecimal digits that depend only on outcome, status and message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CauseId(Uuid);

impl CauseId {
    pub(super) fn new(outcome: &str, status: Option<u16>, message: &str) -> Self {
        let name = serde_json::json!([outcome, status, message]);
        Self(Uuid::new_v5(&CAUSES, name.to_string().as_bytes()))
    }

    /// Returns a unique prefix of each id. All prefixes have the same length, at least eight
    /// digits.
    #[must_use]
    pub fn shortened(ids: &[Self]) -> Vec<String> {
        let texts: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
        let is_shared = |length: usize| {
            let beginnings: HashSet<Option<&str>> =
                texts.iter().map(|text| text.get(..length)).collect();
            beginnings.len() < texts.len()
        };
        let length = (SHOWN_DIGITS..32).find(|length| !is_shared(*length)).unwrap_or(32);
        ids.iter().map(|id| id.to_string().chars().take(length).collect()).collect()
    }
}

impl fmt::Display for CauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

impl Serialize for CauseId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A prefix of the id of a cause, as people type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CausePrefix(String);

impl CausePrefix {
    /// True if `id` begins with this prefix.
    #[must_use]
    pub fn is_of(&self, id: CauseId) -> bool {
        id.to_string().starts_with(&self.0)
    }
}

impl fmt::Display for CausePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CausePrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
        if !is_hex || !(PREFIX_MIN_DIGITS..=32).contains(&digits.len()) {
            return Err(format!(
                "\"{text}\" is not the id of a cause: expected {PREFIX_MIN_DIGITS} to 32 hexadecimal digits, \
                 as `lastmile deadletters why` prints them"
            ));
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }
}
