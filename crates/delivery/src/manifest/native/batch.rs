//! `batch`: several events in one request.
//!
//! Separate because its fields are overridden one by one and only have a meaning together: a Topic
//! may state what a refusal means, and leave it to its Subscriptions whether to batch at all.

use crate::subscription::{Batch, OnRefused};

use super::super::batches;
use super::super::reader::Fields;

/// The batch settings of a document.
#[derive(Clone, Copy, Default)]
pub(super) struct BatchSettings {
    max_events: Option<u32>,
    preferred_kilobytes: Option<u32>,
    on_refused: Option<OnRefused>,
}

impl BatchSettings {
    /// Reads the fields of `batch`.
    pub(super) fn read(fields: &Fields<'_>) -> Self {
        Self {
            max_events: fields.read("maxEvents", batches::events),
            preferred_kilobytes: fields.read("preferredKilobytes", batches::kilobytes),
            on_refused: fields.read("onRefused", batches::on_refused),
        }
    }

    /// These settings, with `base` where they say nothing.
    pub(super) fn with_fallback(self, base: Self) -> Self {
        Self {
            max_events: self.max_events.or(base.max_events),
            preferred_kilobytes: self.preferred_kilobytes.or(base.preferred_kilobytes),
            on_refused: self.on_refused.or(base.on_refused),
        }
    }

    /// The batch, if one is asked for.
    pub(super) fn complete(self) -> Option<Batch> {
        batches::of(self.max_events, self.preferred_kilobytes, self.on_refused)
    }
}
