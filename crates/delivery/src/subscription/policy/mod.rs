//! The effective policy of a subscription as named settings, to show and to compare.
//!
//! Separate because `explain` and `diff` have to use the same names for the same fields. A setting
//! is the value in effect, whatever document or default it came from; the names are those of the
//! native dialect.
//!
//! Promises: it never contains values of headers, since they may be secrets; secrets are given by
//! name.
//!
//! Does not know where a value was written; the manifest does.

mod credentials;
mod schedule;

use serde::Serialize;
use serde_json::{Value, json};

use self::credentials::public_keys;
pub(crate) use self::credentials::{auth, headers, signing};
use self::schedule::{schedule_text, schedule_value};
use crate::event::schema::Schema;
use crate::subscription::profile::{LeastWaits, Profile, StatusSet};
use crate::subscription::sink::Sink;
use crate::subscription::{
    BATCH_KILOBYTE, Consent, DeadLetterPolicy, Destination, Disable, ReplyTo, Subscription, shown,
};
use crate::time::duration::format_ms;

/// The text of a missing time to live.
const NO_TIME_TO_LIVE: &str = "none; 14 days are the most in every dialect";
/// The text of the batch fields where each event has a request of its own.
const NO_BATCH: &str = "no batches";

/// One field of a policy and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name.
    pub field: &'static str,
    /// The value for tools.
    pub value: Value,
    /// The value for people.
    pub text: String,
}

impl Setting {
    fn new(field: &'static str, value: Value, text: impl Into<String>) -> Self {
        Self { field, value, text: text.into() }
    }

    /// A value that people read as tools do.
    fn plain(field: &'static str, value: impl Serialize + ToString) -> Self {
        Self::new(field, json!(value), value.to_string())
    }

    /// The same, with the text for people where there is none.
    fn optional(field: &'static str, value: Option<impl Serialize + ToString>, none: &str) -> Self {
        let text = value.as_ref().map_or(none.to_owned(), ToString::to_string);
        Self::new(field, json!(value), text)
    }

    fn statuses(field: &'static str, set: &StatusSet) -> Self {
        let ranges = set.ranges();
        let text = if ranges.is_empty() { "no status".to_owned() } else { ranges.join(" ") };
        Self::new(field, json!(ranges), text)
    }
}

/// All settings of a subscription, in the order in which they are shown.
#[must_use]
pub fn settings(subscription: &Subscription) -> Vec<Setting> {
    let (retry, dead_letter) = (&subscription.retry, &subscription.dead_letter);
    let (destination, batch) = (&subscription.destination, subscription.batch);
    let kilobytes = batch.map(|of| of.preferred_bytes / BATCH_KILOBYTE);
    let retried =
        Profile::of(subscription.dialect).retry.never_retry.difference(&retry.never_retry);
    vec![
        Setting::plain("maxAttempts", retry.max_attempts),
        Setting::optional("timeToLive", retry.time_to_live_ms.map(format_ms), NO_TIME_TO_LIVE),
        Setting::new("schedule", schedule_value(&retry.schedule), schedule_text(&retry.schedule)),
        Setting::plain("responseTimeout", format_ms(destination.response_timeout_ms)),
        Setting::optional("schema", destination.schema.map(Schema::as_str), "as published"),
        Setting::plain("hidePath", destination.hide_path),
        headers(&destination.headers),
        auth(destination.auth.as_ref()),
        Setting::optional(
            "tls.caBundle",
            destination.ca_bundle.as_ref().map(ToString::to_string),
            "none",
        ),
        signing(&destination.signing),
        public_keys(&destination.public_keys),
        max_concurrency(destination),
        Setting::optional("maxPerSecond", destination.max_per_second, "no limit"),
        Setting::optional("sharedLimit", destination.shared_limit.as_deref(), "its own"),
        Setting::plain("slowAfter", format_ms(destination.slow_after_ms)),
        Setting::plain("lateResponseWindow", format_ms(destination.late_window_ms)),
        Setting::plain("probation", destination.probation),
        disable(destination.disable),
        consent(destination.consent.as_ref()),
        Setting::optional("batch.maxEvents", batch.map(|of| of.max_events), NO_BATCH),
        Setting::optional("batch.preferredKilobytes", kilobytes, NO_BATCH),
        Setting::optional("batch.onRefused", batch.map(|of| of.on_refused.as_str()), NO_BATCH),
        reply(subscription),
        Setting::statuses("success", &retry.success),
        Setting::statuses("neverRetry", &retry.never_retry),
        Setting::statuses("retryOn", &retried),
        least_waits(&retry.least_waits),
        Setting::plain("retryAfterMax", format_ms(retry.retry_after_max_ms)),
        Setting::plain("jitterPercent", retry.jitter_percent),
        sink(dead_letter),
        Setting::plain("deadLetter.hidePath", dead_letter.hide_path),
        Setting::plain("deadLetter.format", dead_letter.format.name_for(destination.schema)),
        Setting::plain("deadLetter.layout", dead_letter.layout.as_str()),
        Setting::plain("deadLetter.eventsPerBlob", dead_letter.events_per_blob),
        Setting::plain("deadLetter.errorData", dead_letter.error_data.as_str()),
        Setting::plain("deadLetter.response", dead_letter.response.as_str()),
        Setting::plain("deadLetter.delay", format_ms(dead_letter.delay_ms)),
        Setting::plain("deadLetter.keepTryingFor", format_ms(dead_letter.keep_trying_for_ms)),
    ]
}

/// The address of a sink; `None` for the container of the deployment and where dead letters are
/// dropped.
#[must_use]
pub fn sink_uri(dead_letter: &DeadLetterPolicy) -> Option<String> {
    match dead_letter.sink {
        Sink::Container(_) | Sink::Queue(_) | Sink::Address(_) => Some(sink_text(dead_letter)),
        Sink::DefaultContainer | Sink::Topic(_) | Sink::None => None,
    }
}

/// A sink as text.
#[must_use]
pub fn sink_text(dead_letter: &DeadLetterPolicy) -> String {
    match &dead_letter.sink {
        Sink::DefaultContainer => "the default container of the deployment".to_owned(),
        Sink::Container(container) => format!("s3://{container}"),
        Sink::Queue(queue) => format!("sqs://{queue}"),
        Sink::Address(url) => shown(url, dead_letter.hide_path),
        Sink::Topic(topic) => format!("the subscriptions of topic {topic}"),
        Sink::None => "none: dropped".to_owned(),
    }
}

fn consent(consent: Option<&Consent>) -> Setting {
    let (value, text) = match consent {
        None => (Value::Null, "not asked for".to_owned()),
        Some(Consent::EventGrid) => {
            (json!({ "handshake": "eventgrid" }), "eventgrid handshake".to_owned())
        }
        Some(Consent::CloudEvents { origin, rate }) => {
            let value = json!({ "handshake": "cloudevents", "origin": origin, "rate": rate });
            let asked = rate.map_or(String::new(), |rate| format!(", {rate} requests a minute"));
            (value, format!("cloudevents handshake, from {origin}{asked}"))
        }
    };
    Setting::new("consent", value, text)
}

fn max_concurrency(destination: &Destination) -> Setting {
    let (most, shares) = (destination.max_concurrency, destination.shares_concurrency);
    let of = if shares { "of all functions together" } else { "of each function" };
    Setting::new("maxConcurrency", json!(most), format!("{most}, {of}"))
}

fn disable(disable: Option<Disable>) -> Setting {
    let Some(Disable { after_ms, then }) = disable else {
        return Setting::new("disable", Value::Null, "never");
    };
    let (after, then) = (format_ms(after_ms), then.as_str());
    let value = json!({ "after": after, "then": then });
    Setting::new("disable", value, format!("after {after} of failures, then {then}"))
}

/// Where replies go; an address is shown without query and credentials.
pub(crate) fn reply(subscription: &Subscription) -> Setting {
    let (value, text) = match &subscription.reply {
        None => (Value::Null, "none".to_owned()),
        Some(ReplyTo::Address(url)) => {
            let address = shown(url, subscription.destination.hide_path);
            (json!(address), address)
        }
        Some(ReplyTo::Topic(topic)) => (json!(topic.to_string()), format!("topic {topic}")),
    };
    Setting::new("reply", value, text)
}

/// Texts with commas between, or `none`.
pub(crate) fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// Where dead letters go; an address is shown without query and credentials.
pub(crate) fn sink(dead_letter: &DeadLetterPolicy) -> Setting {
    let value = match &dead_letter.sink {
        Sink::DefaultContainer => "default".to_owned(),
        Sink::Topic(topic) => format!("topic {topic}"),
        Sink::None => "none".to_owned(),
        Sink::Container(_) | Sink::Queue(_) | Sink::Address(_) => sink_text(dead_letter),
    };
    Setting::new("deadLetter.sink", json!(value), sink_text(dead_letter))
}

fn least_waits(waits: &LeastWaits) -> Setting {
    let mut named: Vec<(String, u64)> =
        waits.by_status.iter().map(|(of, ms)| (of.to_string(), *ms)).collect();
    named.sort();
    if waits.otherwise_ms > 0 {
        named.push(("otherwise".to_owned(), waits.otherwise_ms));
    }
    let value: serde_json::Map<String, Value> =
        named.iter().map(|(of, wait_ms)| (of.clone(), json!(format_ms(*wait_ms)))).collect();
    let text = listed(named.iter().map(|(of, wait_ms)| format!("{of} {}", format_ms(*wait_ms))));
    Setting::new("leastWaits", Value::Object(value), text)
}

#[cfg(test)]
mod tests;
