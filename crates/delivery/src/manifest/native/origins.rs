//! Where a native document states each value of a policy.
//!
//! Separate because it only looks for positions: the values are read and checked elsewhere.

use super::super::origins::{Origins, note};
use super::super::reader::Cursor;
use super::super::sinks::DeadLettersAt;
use super::auth;

/// Field → the path in a `spec` or `delivery` that states it.
const FIELD_PATHS: [(&str, &str); 38] = [
    ("maxAttempts", "retry.maxAttempts"),
    ("timeToLive", "retry.timeToLive"),
    ("schedule", "retry.schedule"),
    ("url", "destination.url"),
    ("hidePath", "destination.hidePath"),
    ("responseTimeout", "destination.timeout"),
    ("schema", "destination.schema"),
    ("maxConcurrency", "destination.maxConcurrency"),
    ("headers", "destination.headers"),
    ("auth", "destination.auth"),
    ("tls.caBundle", "destination.tls.caBundle"),
    ("signing", "destination.signing"),
    ("publicKeys", "destination.signing.publicKeys"),
    ("maxPerSecond", "destination.maxPerSecond"),
    ("sharedLimit", "destination.sharedLimit"),
    ("slowAfter", "destination.slowAfter"),
    ("disable", "destination.disable"),
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
    ("deadLetter.hidePath", "deadLetter.hidePath"),
    ("deadLetter.format", "deadLetter.format"),
    ("deadLetter.layout", "deadLetter.layout"),
    ("deadLetter.eventsPerBlob", "deadLetter.eventsPerBlob"),
    ("deadLetter.errorData", "deadLetter.errorData"),
    ("deadLetter.response", "deadLetter.response"),
    ("deadLetter.delay", "deadLetter.delay"),
    ("deadLetter.keepTryingFor", "deadLetter.keepTryingFor"),
];

const SINK: &str = "deadLetter.sink";
const DEAD_LETTER: &str = "deadLetter";

/// The positions of the values that documents state.
#[derive(Default)]
pub(in crate::manifest) struct Stated<'a> {
    /// Where each value is written.
    pub(in crate::manifest) origins: Origins,
    /// Where the schema is written.
    pub(in crate::manifest) schema_at: Option<Cursor<'a>>,
    /// Where batches are asked for.
    pub(in crate::manifest) batch_at: Option<Cursor<'a>>,
    /// Where the Subscription itself states `onRefused`.
    pub(in crate::manifest) on_refused_at: Option<Cursor<'a>>,
    /// Where options are stated that not every dead letter uses.
    pub(in crate::manifest) dead_letters_at: DeadLettersAt<'a>,
    /// Where secrets are named.
    pub(in crate::manifest) secrets_at: Vec<Cursor<'a>>,
}

impl<'a> Stated<'a> {
    /// The positions in a Subscription's `spec`, else in its Topic's `delivery`.
    pub(super) fn of(spec: &Cursor<'a>, delivery: Option<&Cursor<'a>>) -> Self {
        let own_letters = spec.peek(DEAD_LETTER);
        let drops = own_letters.is_some_and(|of| of.peek_text().is_some());
        let peek = |path: &str| {
            // `none` replaces all dead-letter settings of the Topic.
            let inherited = delivery.filter(|_| !(drops && path.starts_with(DEAD_LETTER)));
            spec.peek(path).or_else(|| inherited?.peek(path))
        };
        let mut origins = Origins::new();
        for (field, path) in FIELD_PATHS {
            note(&mut origins, field, peek(path).as_ref());
        }
        let none = peek(DEAD_LETTER).filter(|dead_letter| dead_letter.peek_text().is_some());
        note(&mut origins, SINK, none.as_ref());
        let batch = |of: &Cursor<'a>| of.peek("batch").filter(|batch| !batch.is_null());
        let dead_letters_at = DeadLettersAt {
            // A sink that is a topic is at the name of the topic.
            sink: peek(SINK).map(|sink| sink.peek("topic").unwrap_or(sink)),
            layout: peek("deadLetter.layout"),
            error_data: peek("deadLetter.errorData"),
            events_per_blob: peek("deadLetter.eventsPerBlob"),
        };
        Self {
            origins,
            schema_at: peek("destination.schema"),
            batch_at: batch(spec).or_else(|| batch(delivery?)),
            on_refused_at: spec.peek("batch.onRefused"),
            dead_letters_at,
            secrets_at: secrets_at(
                peek("destination.headers"),
                peek("destination.auth"),
                peek("destination.signing.secrets"),
            ),
        }
    }
}

/// Where these headers, this `auth` and these signatures name secrets.
fn secrets_at<'a>(
    headers: Option<Cursor<'a>>,
    auth: Option<Cursor<'a>>,
    signing: Option<Cursor<'a>>,
) -> Vec<Cursor<'a>> {
    let elements = |of: Option<Cursor<'a>>| {
        of.filter(Cursor::is_list).and_then(|list| list.list()).unwrap_or_default()
    };
    let of_headers = elements(headers).into_iter().filter_map(|header| header.peek("secret"));
    let of_auth =
        auth.iter().flat_map(|of| auth::SECRETS_AT.iter().filter_map(move |path| of.peek(path)));
    of_headers.chain(of_auth).chain(elements(signing)).collect()
}
