//! [`Transition`] and [`Notice`]: a change of a destination, and its notice until it is sent.
//!
//! This module is separate from the CloudEvent of a notice. The state of a destination contains its
//! notices, and the CloudEvent shows that state.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

/// UUIDv5 namespace of all notice ids.
const NOTICE_NAMESPACE: Uuid = uuid!("0b6c5a1e-3f0d-5c7b-8d1e-7a52c1d94e10");

/// The change of a destination that a notice reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transition {
    /// The destination is slow to respond.
    Slow,
    /// The destination keeps failing.
    Failing,
    /// The destination is neither slow nor failing any more.
    Recovered,
    /// The destination receives no events until it is enabled.
    Disabled,
    /// The destination receives events again.
    Enabled,
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slow => "slow",
            Self::Failing => "failing",
            Self::Recovered => "recovered",
            Self::Disabled => "disabled",
            Self::Enabled => "enabled",
        })
    }
}

/// An unsent notice about a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The id of the CloudEvent. It is a UUIDv5, so that a repeated notice has the same id.
    pub id: Uuid,
    /// The change that the notice reports.
    pub kind: Transition,
    /// Time of the change in milliseconds since 1970.
    pub at_ms: u64,
}

impl Notice {
    /// Returns the notice of a change. Its id depends only on `key` and `kind`, so a repeated
    /// notice has the same id.
    pub(crate) fn new(key: &str, kind: Transition, at_ms: u64) -> Self {
        let id = Uuid::new_v5(&NOTICE_NAMESPACE, format!("{key}\n{kind}").as_bytes());
        Self { id, kind, at_ms }
    }
}
