//! A change of a destination, and the notice of it while it waits to be sent.
//!
//! Separate from its CloudEvent, because the state of a destination holds its notices, and the event shows the
//! state.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

/// The namespace of all ids of notices (UUIDv5).
const NOTICE_NAMESPACE: Uuid = uuid!("0b6c5a1e-3f0d-5c7b-8d1e-7a52c1d94e10");

/// The change that a notice reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transition {
    /// It is slow to answer.
    Slow,
    /// It keeps failing.
    Failing,
    /// It is neither slow nor failing any more.
    Recovered,
    /// It gets no events until it is enabled.
    Disabled,
    /// It gets events again.
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

/// A notice that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// UUIDv5, so that a repeated notice has the same id.
    pub id: Uuid,
    /// The change of the destination.
    pub kind: Transition,
    /// Time of the change.
    pub at_ms: u64,
}

impl Notice {
    /// The notice of a change. Its id depends on `key` and the kind alone.
    pub(crate) fn new(key: &str, kind: Transition, at_ms: u64) -> Self {
        let id = Uuid::new_v5(&NOTICE_NAMESPACE, format!("{key}\n{kind}").as_bytes());
        Self { id, kind, at_ms }
    }
}
