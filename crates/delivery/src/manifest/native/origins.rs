//! Where a native document states each value of a policy.
//!
//! Separate because it only looks for positions: the values are read and checked elsewhere.

use super::super::origins::{Origins, note};
use super::super::reader::Cursor;
use super::super::sinks::DeadLettersAt;

/// Field → the path in a `spec` or `delivery` that states it.
const FIELD_PATHS: [(&str, &str); 28] = [
    ("maxAttempts", "retry.maxAttempts"),
    ("timeToLive", "retry.timeToLive"),
    ("schedule", "retry.schedule"),
    ("url", "destination.url"),
    ("responseTimeout", "destination.timeout"),
    ("schema", "destination.schema"),
    ("maxConcurrency", "destination.maxConcurrency"),
    ("headers", "destination.headers"),
    ("signing", "destination.signing"),
    ("lateResponseWindow", "destination.lateResponseWindow"),
    ("probation", "destination.probation"),
    ("consent", "destination.consent"),
    ("batch.maxEvents", "batch.maxEvents"),
    ("batch.preferredKilobytes", "batch.preferredKilobytes"),
    ("batch.onRefused", "batch.onRefused"),
    ("success", "retry.success"),
    ("neverRetry", "retry.neverRetry"),
    ("retryOn", "retry.retryOn"),
    ("leastWaits", "retry.leastWaits"),
    ("retryAfterMax", "retry.retryAfterMax"),
    ("jitterPercent", "retry.jitterPercent"),
    ("deadLetter.sink", "deadLetter.sink"),
    ("deadLetter.format", "deadLetter.format"),
    ("deadLetter.layout", "deadLetter.layout"),
    ("deadLetter.eventsPerBlob", "deadLetter.eventsPerBlob"),
    ("deadLetter.errorData", "deadLetter.errorData"),
    ("deadLetter.delay", "deadLetter.delay"),
    ("deadLetter.keepTryingFor", "deadLetter.keepTryingFor"),
];

const SINK: &str = "deadLetter.sink";
const DEAD_LETTER: &str = "deadLetter";

/// The positions of the values that a document states.
#[derive(Default)]
pub(super) struct Stated<'a> {
    /// Where each value is written.
    pub(super) origins: Origins,
    /// Where the schema is written.
    pub(super) schema_at: Option<Cursor<'a>>,
    /// Where batches are asked for.
    pub(super) batch_at: Option<Cursor<'a>>,
    /// Where this document states `onRefused`.
    pub(super) on_refused_at: Option<Cursor<'a>>,
    /// Where it states options that not every dead letter uses.
    pub(super) dead_letters_at: DeadLettersAt<'a>,
    /// It has `deadLetter: none`, which replaces all dead-letter settings of another document.
    drops: bool,
}

impl<'a> Stated<'a> {
    /// The positions in a Subscription's `spec` or a Topic's `delivery`.
    pub(super) fn of(spec: &Cursor<'a>) -> Self {
        let mut origins = Origins::new();
        for (field, path) in FIELD_PATHS {
            note(&mut origins, field, spec.peek(path).as_ref());
        }
        let none = spec.peek(DEAD_LETTER).filter(|dead_letter| dead_letter.peek_text().is_some());
        note(&mut origins, SINK, none.as_ref());
        let schema_at = spec.peek("destination.schema");
        let batch_at = spec.peek("batch").filter(|batch| !batch.is_null());
        let on_refused_at = spec.peek("batch.onRefused");
        // A sink that is a topic is at the name of the topic.
        let sink = spec.peek("deadLetter.sink.topic").or_else(|| spec.peek("deadLetter.sink"));
        let dead_letters_at = DeadLettersAt {
            sink,
            layout: spec.peek("deadLetter.layout"),
            error_data: spec.peek("deadLetter.errorData"),
            events_per_blob: spec.peek("deadLetter.eventsPerBlob"),
        };
        Self { origins, schema_at, batch_at, on_refused_at, dead_letters_at, drops: none.is_some() }
    }

    /// These settings, with `base` where they say nothing.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        let states_dead_letter = self.origins.keys().any(|field| field.starts_with(DEAD_LETTER));
        let mut origins = base.origins.clone();
        if self.drops || (base.drops && states_dead_letter) {
            origins.retain(|field, _| !field.starts_with(DEAD_LETTER));
        }
        origins.extend(self.origins);
        Self {
            origins,
            schema_at: self.schema_at.or_else(|| base.schema_at.clone()),
            batch_at: self.batch_at.or_else(|| base.batch_at.clone()),
            on_refused_at: self.on_refused_at,
            dead_letters_at: if self.drops {
                DeadLettersAt::default()
            } else {
                self.dead_letters_at.with_fallback(&base.dead_letters_at)
            },
            drops: self.drops,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::Subscription;
    use crate::subscription::policy::settings;
    use crate::subscription::profile::Dialect;

    #[test]
    fn every_field_with_an_origin_is_a_setting_or_the_address() {
        let url = "http://h/".parse().unwrap();
        let subscription = Subscription::new("n/t/s".parse().unwrap(), Dialect::Native, url);
        let settings = settings(&subscription);
        for (field, _) in FIELD_PATHS {
            let is_setting = settings.iter().any(|setting| setting.field == field);
            assert!(is_setting || field == "url", "{field}");
        }
    }
}
