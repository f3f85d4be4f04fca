//! Summaries: the parts of dead letters that lists and counts need, and their format in the cache.
//! Pure.
//!
//! Separate from [`crate::disk_cache`], which stores summaries, and from [`crate::letter_cache`],
//! which keeps them in memory.
//!
//! Promises: filters, causes, counts and replay plans give the same result for a summary as for its
//! dead letter. A summary has only the id, type and source of the event. Reading the cached format
//! gives the same summary.

use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter, StoredSink, id_of_key};
use delivery::delivery::FailingDestination;
use delivery::delivery::replay::Replay;
use delivery::subscription::dead_letter_format::{Format, Layout};
use delivery::subscription::name::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::facts::RESPONSE_MAX_CHARS;

/// Maximum number of characters of a response that a summary keeps. Base64 is longer than the
/// decoded text, so the limit is twice [`RESPONSE_MAX_CHARS`].
const KEPT_MAX_CHARS: usize = "base64:".len() + 2 * RESPONSE_MAX_CHARS;

/// Removes everything from a dead letter that lists and counts do not need.
pub(crate) fn summary(letter: StoredDeadLetter) -> StoredDeadLetter {
    let last = |history: Vec<StoredAttempt>| history.into_iter().next_back().into_iter().collect();
    let sink = letter.sink.map(|sink| StoredSink {
        history: last(sink.history),
        omitted: 0,
        last_response: sink.last_response.map(beginning),
        ..sink
    });
    StoredDeadLetter {
        sink,
        event: String::new(),
        headers: Vec::new(),
        last_headers: Vec::new(),
        history: last(letter.history),
        omitted: 0,
        last_response: letter.last_response.map(beginning),
        traceparent: None,
        sink_error: None,
        mapped: None,
        addresses: None,
        shape: None,
        ..letter
    }
}

fn beginning(text: String) -> String {
    match text.char_indices().nth(KEPT_MAX_CHARS) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}

/// The cached format of a summary. The key of the dead letter is stored separately.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedLetter {
    /// Namespace, topic and name of the subscription. An array, because each may contain a slash.
    subscription: [String; 3],
    reason: String,
    outcome: Option<String>,
    status: Option<u16>,
    attempts: u32,
    published_ms: Option<u64>,
    decided_ms: Option<u64>,
    last_attempt_ms: Option<u64>,
    destination: Option<String>,
    last_response: Option<String>,
    failing: Option<FailingDestination>,
    last_attempt: Option<SavedAttempt>,
    detail: Option<String>,
    sink: Option<SavedSink>,
    replay: Option<(String, Uuid)>,
    is_reply: bool,
    format: String,
    layout: String,
    event_id: Option<String>,
    event_type: Option<String>,
    source: Option<String>,
}

/// The last attempt of a summary, in the cached format.
#[derive(Serialize, Deserialize)]
struct SavedAttempt {
    at_ms: u64,
    outcome: String,
    status: Option<u16>,
    duration_ms: u64,
}

/// The failed delivery to a dead-letter sink, in the cached format.
#[derive(Serialize, Deserialize)]
struct SavedSink {
    destination: Option<String>,
    reason: String,
    detail: Option<String>,
    attempts: u32,
    last_attempt: Option<SavedAttempt>,
    last_response: Option<String>,
}

impl SavedLetter {
    /// Converts a summary to the cached format.
    pub(crate) fn from_stored(letter: &StoredDeadLetter) -> Self {
        let SubscriptionName { topic: TopicName { namespace, topic }, name } =
            letter.subscription.clone();
        Self {
            subscription: [namespace, topic, name],
            reason: letter.reason.clone(),
            outcome: letter.outcome.clone(),
            status: letter.status,
            attempts: letter.attempts,
            published_ms: letter.published_ms,
            decided_ms: letter.decided_ms,
            last_attempt_ms: letter.last_attempt_ms,
            destination: letter.destination.clone(),
            last_response: letter.last_response.clone(),
            failing: letter.failing.clone(),
            last_attempt: letter.history.last().map(SavedAttempt::from_stored),
            detail: letter.detail.clone(),
            sink: letter.sink.as_ref().map(SavedSink::from_stored),
            replay: letter.replay.as_ref().map(|replay| (replay.job().to_owned(), replay.letter)),
            is_reply: letter.is_reply,
            format: letter.format.as_str().to_owned(),
            layout: letter.layout.as_str().to_owned(),
            event_id: letter.event_id.clone(),
            event_type: letter.event_type.clone(),
            source: letter.source.clone(),
        }
    }

    /// Converts a cached summary back. Returns `None` if an enum value is unknown.
    pub(crate) fn restore(self, key: &str) -> Option<StoredDeadLetter> {
        let [namespace, topic, name] = self.subscription;
        let replay = self.replay.map(|(job, letter)| Replay::new(&job, letter));
        Some(StoredDeadLetter {
            id: id_of_key(key),
            key: key.to_owned(),
            subscription: SubscriptionName { topic: TopicName { namespace, topic }, name },
            reason: self.reason,
            outcome: self.outcome,
            status: self.status,
            attempts: self.attempts,
            published_ms: self.published_ms,
            decided_ms: self.decided_ms,
            last_attempt_ms: self.last_attempt_ms,
            destination: self.destination,
            last_response: self.last_response,
            last_headers: Vec::new(),
            failing: self.failing,
            history: self.last_attempt.into_iter().map(SavedAttempt::restore).collect(),
            omitted: 0,
            detail: self.detail,
            sink_error: None,
            sink: self.sink.map(SavedSink::restore),
            traceparent: None,
            replay: match replay {
                Some(replay) => Some(replay?),
                None => None,
            },
            is_reply: self.is_reply,
            format: Format::ALL.into_iter().find(|format| format.as_str() == self.format)?,
            layout: Layout::ALL.into_iter().find(|layout| layout.as_str() == self.layout)?,
            mapped: None,
            addresses: None,
            headers: Vec::new(),
            shape: None,
            event: String::new(),
            event_id: self.event_id,
            event_type: self.event_type,
            source: self.source,
        })
    }
}

impl SavedAttempt {
    fn from_stored(attempt: &StoredAttempt) -> Self {
        let StoredAttempt { at_ms, outcome, status, duration_ms } = attempt.clone();
        Self { at_ms, outcome, status, duration_ms }
    }

    fn restore(self) -> StoredAttempt {
        let Self { at_ms, outcome, status, duration_ms } = self;
        StoredAttempt { at_ms, outcome, status, duration_ms }
    }
}

impl SavedSink {
    fn from_stored(sink: &StoredSink) -> Self {
        let StoredSink { destination, reason, detail, attempts, history, last_response, .. } =
            sink.clone();
        let last_attempt = history.last().map(SavedAttempt::from_stored);
        Self { destination, reason, detail, attempts, last_attempt, last_response }
    }

    fn restore(self) -> StoredSink {
        let Self { destination, reason, detail, attempts, last_attempt, last_response } = self;
        let history = last_attempt.into_iter().map(SavedAttempt::restore).collect();
        StoredSink { destination, reason, detail, attempts, history, omitted: 0, last_response }
    }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::reason::Reason;

    use super::*;
    use crate::cause::{Causes, cause_id};
    use crate::facts::decided_ms;
    use crate::filter::{Filter, Pattern};
    use crate::replay::ReplayPlan;
    use crate::replay::sender::ReplayTarget;
    use crate::samples::letter;
    use crate::stats::Stats;

    /// Dead letters that differ in every part that a filter, a cause, a sum or a plan reads.
    fn letters() -> Vec<StoredDeadLetter> {
        let failed = letter(2);
        let sink = StoredSink {
            destination: Some("https://sink.example.com/".to_owned()),
            reason: "UndeliverableDueToHttpNotFound".to_owned(),
            detail: Some("no such sink".to_owned()),
            attempts: 2,
            history: failed.history.clone(),
            omitted: 3,
            last_response: Some("{\"title\":\"no such sink\"}".to_owned()),
        };
        let failing = FailingDestination {
            since_ms: 5,
            outcome: "Busy".to_owned(),
            status: Some(503),
            detail: None,
        };
        let bytes = vec![b'x'; RESPONSE_MAX_CHARS];
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
        vec![
            letter(1),
            StoredDeadLetter { sink: Some(sink), ..failed },
            StoredDeadLetter {
                history: Vec::new(),
                outcome: None,
                status: None,
                last_response: None,
                failing: Some(failing),
                decided_ms: Some(7),
                detail: Some("it keeps failing".to_owned()),
                ..letter(3)
            },
            StoredDeadLetter { last_response: Some(format!("base64:{encoded}")), ..letter(4) },
            StoredDeadLetter {
                last_response: Some("é".repeat(3 * RESPONSE_MAX_CHARS)),
                ..letter(5)
            },
            StoredDeadLetter {
                reason: Reason::MalformedEvent.to_string(),
                is_reply: true,
                replay: Replay::new("job", Uuid::from_u128(1)),
                format: Format::Knative,
                layout: Layout::Flat,
                event_id: None,
                event_type: None,
                source: None,
                subscription: SubscriptionName {
                    topic: TopicName { namespace: "a/b".to_owned(), topic: "t".to_owned() },
                    name: "_malformed".to_owned(),
                },
                ..letter(6)
            },
        ]
    }

    fn filters() -> Vec<Filter> {
        let none = Filter::default;
        let like = |text: &str| vec![Pattern::from(text)];
        let mut filters = vec![
            Filter { namespace: Some("a/b".to_owned()), ..none() },
            Filter { topic: Some("orders".to_owned()), ..none() },
            Filter { subscription: Some("billing".to_owned()), ..none() },
            Filter { since_ms: decided_ms(&letter(2)), ..none() },
            Filter { until_ms: Some(8), ..none() },
            Filter { reasons: vec![Reason::MalformedEvent], ..none() },
            Filter { outcomes: vec!["Busy".parse().unwrap()], ..none() },
            Filter { statuses: vec!["5xx".parse().unwrap()], ..none() },
            Filter { types: like("order.c*"), ..none() },
            Filter { sources: like("shop"), ..none() },
            Filter { ids: like("order-2"), ..none() },
            Filter { destinations: like("https://sink.*"), ..none() },
            Filter { ids: like("*-000000000001"), ..none() },
        ];
        let found = ["please wait", "ORDER-3", "it keeps", "overloaded\nplease"];
        let late = "é".repeat(RESPONSE_MAX_CHARS + 1);
        let texts = found.into_iter().chain([late.as_str()]);
        filters.extend(texts.map(|text| Filter { search: Some(text.into()), ..none() }));
        let causes = letters().into_iter().map(|letter| cause_id(&letter).to_string());
        let causes = causes.map(|id| Filter { causes: vec![id.parse().unwrap()], ..none() });
        filters.extend(causes);
        filters
    }

    #[test]
    fn a_summary_is_found_listed_summed_up_and_planned_like_its_dead_letter() {
        for (at, whole) in letters().into_iter().enumerate() {
            let summary = summary(whole.clone());
            assert!(summary.event.is_empty() && summary.headers.is_empty());
            assert_eq!(decided_ms(&summary), decided_ms(&whole));
            let sums = |letter: &StoredDeadLetter| {
                let (mut stats, mut causes) = (Stats::default(), Causes::default());
                stats.add(letter);
                causes.add(letter);
                let mut plan = ReplayPlan::default();
                plan.add(letter, &ReplayTarget::Subscription);
                (stats, causes.sorted(0), format!("{plan:?}"))
            };
            assert_eq!(sums(&summary), sums(&whole));
            for filter in filters() {
                assert_eq!(filter.matches(&summary), filter.matches(&whole), "{at} {filter:?}");
            }
        }
        for filter in filters() {
            let matching = letters().iter().filter(|letter| filter.matches(letter)).count();
            let is_of_none = filter
                .search
                .as_ref()
                .is_some_and(|text| *text == "é".repeat(RESPONSE_MAX_CHARS + 1).as_str().into());
            assert_eq!(matching > 0, !is_of_none, "{filter:?}");
            assert!(matching < letters().len(), "{filter:?}");
        }
    }

    #[test]
    fn summaries_in_the_cache_are_read_back() {
        let restored =
            |text: &str, key: &str| serde_json::from_str::<SavedLetter>(text).unwrap().restore(key);
        for summary in letters().into_iter().map(summary) {
            let text = serde_json::to_string(&SavedLetter::from_stored(&summary)).unwrap();
            let key = summary.key.clone();
            assert_eq!(restored(&text, &key), Some(summary));
            let unknown = text.replacen("\"format\":\"", "\"format\":\"round-", 1);
            assert_ne!(unknown, text);
            assert_eq!(restored(&unknown, &key), None);
        }
    }
}
