//! Where a native document states each value of a policy.
//!
//! Separate because it only looks for positions: the values are read and checked elsewhere.

use super::super::origins::{Origins, note};
use super::super::reader::Cursor;
use super::super::sinks::DeadLettersAt;

/// Field → the section and the field of a `spec` or `delivery` that state it.
const FIELD_PATHS: [(&str, &str, &str); 28] = [
    ("maxAttempts", "retry", "maxAttempts"),
    ("timeToLive", "retry", "timeToLive"),
    ("schedule", "retry", "schedule"),
    ("url", DESTINATION, "url"),
    ("responseTimeout", DESTINATION, "timeout"),
    (SCHEMA, DESTINATION, SCHEMA),
    ("maxConcurrency", DESTINATION, "maxConcurrency"),
    ("headers", DESTINATION, "headers"),
    ("signing", DESTINATION, "signing"),
    ("lateResponseWindow", DESTINATION, "lateResponseWindow"),
    ("probation", DESTINATION, "probation"),
    ("consent", DESTINATION, "consent"),
    ("batch.maxEvents", BATCH, "maxEvents"),
    ("batch.preferredKilobytes", BATCH, "preferredKilobytes"),
    ("batch.onRefused", BATCH, ON_REFUSED),
    ("success", "retry", "success"),
    ("neverRetry", "retry", "neverRetry"),
    ("retryOn", "retry", "retryOn"),
    ("leastWaits", "retry", "leastWaits"),
    ("retryAfterMax", "retry", "retryAfterMax"),
    ("jitterPercent", "retry", "jitterPercent"),
    (SINK, DEAD_LETTER, "sink"),
    ("deadLetter.format", DEAD_LETTER, "format"),
    ("deadLetter.layout", DEAD_LETTER, "layout"),
    ("deadLetter.eventsPerBlob", DEAD_LETTER, "eventsPerBlob"),
    ("deadLetter.errorData", DEAD_LETTER, "errorData"),
    ("deadLetter.delay", DEAD_LETTER, "delay"),
    ("deadLetter.keepTryingFor", DEAD_LETTER, "keepTryingFor"),
];

const SINK: &str = "deadLetter.sink";
const DEAD_LETTER: &str = "deadLetter";
const DESTINATION: &str = "destination";
const SCHEMA: &str = "schema";
const BATCH: &str = "batch";
const ON_REFUSED: &str = "onRefused";

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
        for (field, section, name) in FIELD_PATHS {
            note(
                &mut origins,
                field,
                spec.peek(section).and_then(|section| section.peek(name)).as_ref(),
            );
        }
        let none = spec.peek(DEAD_LETTER).filter(|dead_letter| dead_letter.peek_text().is_some());
        note(&mut origins, SINK, none.as_ref());
        let schema_at = spec.peek(DESTINATION).and_then(|destination| destination.peek(SCHEMA));
        let batch_at = spec.peek(BATCH).filter(|batch| !batch.is_null());
        let on_refused_at = batch_at.as_ref().and_then(|batch| batch.peek(ON_REFUSED));
        let dead_letters_at = spec
            .peek(DEAD_LETTER)
            .map(|dead_letter| dead_letters_at(&dead_letter))
            .unwrap_or_default();
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

/// The positions in `deadLetter`. A sink that is a topic is at the name of the topic.
fn dead_letters_at<'a>(dead_letter: &Cursor<'a>) -> DeadLettersAt<'a> {
    let sink = dead_letter.peek("sink");
    DeadLettersAt {
        sink: sink.as_ref().and_then(|sink| sink.peek("topic")).or(sink),
        layout: dead_letter.peek("layout"),
        error_data: dead_letter.peek("errorData"),
        events_per_blob: dead_letter.peek("eventsPerBlob"),
    }
}
