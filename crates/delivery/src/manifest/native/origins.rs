//! Where a native document states each value of a policy.
//!
//! Separate because it only looks for places: what stands there is read, and judged, elsewhere.

use super::super::origins::{Origins, note};
use super::super::reader::Cursor;

/// Policy field → the section and the field of a `spec` or `delivery` that state it.
const PLACES: [(&str, &str, &str); 14] = [
    ("maxAttempts", "retry", "maxAttempts"),
    ("timeToLive", "retry", "timeToLive"),
    ("schedule", "retry", "schedule"),
    ("responseTimeout", "destination", "timeout"),
    ("success", "retry", "success"),
    ("neverRetry", "retry", "neverRetry"),
    ("retryOn", "retry", "retryOn"),
    ("leastWaits", "retry", "leastWaits"),
    ("retryAfterMax", "retry", "retryAfterMax"),
    ("jitterPercent", "retry", "jitterPercent"),
    (SINK, DEAD_LETTER, "sink"),
    ("deadLetter.format", DEAD_LETTER, "format"),
    ("deadLetter.delay", DEAD_LETTER, "delay"),
    ("deadLetter.keepTryingFor", DEAD_LETTER, "keepTryingFor"),
];

const SINK: &str = "deadLetter.sink";
const DEAD_LETTER: &str = "deadLetter";

/// What a document states, and where.
#[derive(Default)]
pub(super) struct Stated {
    origins: Origins,
    /// It says `deadLetter: none`, which takes the place of all that another document says about dead letters.
    drops: bool,
}

impl Stated {
    /// What a Subscription's `spec` or a Topic's `delivery` states.
    pub(super) fn of(spec: &Cursor<'_>) -> Self {
        let mut origins = Origins::new();
        for (field, section, name) in PLACES {
            note(&mut origins, field, spec.peek(section).and_then(|section| section.peek(name)).as_ref());
        }
        let none = spec.peek(DEAD_LETTER).filter(|dead_letter| dead_letter.peek_text().is_some());
        note(&mut origins, SINK, none.as_ref());
        Self { origins, drops: none.is_some() }
    }

    /// These, and the other's where these say nothing.
    pub(super) fn over(self, base: &Self) -> Origins {
        let states_dead_letter = self.origins.keys().any(|field| field.starts_with(DEAD_LETTER));
        let mut origins = base.origins.clone();
        if self.drops || (base.drops && states_dead_letter) {
            origins.retain(|field, _| !field.starts_with(DEAD_LETTER));
        }
        origins.extend(self.origins);
        origins
    }

    /// These alone.
    pub(super) fn into_origins(self) -> Origins {
        self.origins
    }
}
