//! Explanations for tools: members and their order are a contract.
//!
//! Separate because the shape must not follow our own types. `container` is `null` where the container of the
//! deployment is meant; `format` is `null` too where nothing is stored.

use delivery::explain::Stored;
use delivery::policy::{Setting, sink_uri};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::Explained;

#[derive(Serialize)]
struct Document<'a> {
    subscription: String,
    dialect: &'static str,
    policy: Policy<'a>,
    attempts: Vec<Attempt>,
    end: End,
    status: Status,
}

/// Field → value and origin, in the order in which people read them.
struct Policy<'a>(&'a [(Setting, String)]);

#[derive(Serialize)]
struct Sourced<'a> {
    value: &'a serde_json::Value,
    from: &'a str,
}

#[derive(Serialize)]
struct Attempt {
    attempt: u32,
    wait_ms: u64,
    at_ms: u64,
}

#[derive(Serialize)]
struct End {
    reason: String,
    at_ms: u64,
    deadletter_after_ms: Option<u64>,
    container: Option<String>,
    format: Option<&'static str>,
}

/// What a Knative object's status would say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    dead_letter_sink_uri: Option<String>,
    container: Option<String>,
    format: Option<&'static str>,
}

impl Serialize for Policy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (setting, from) in self.0 {
            map.serialize_entry(setting.field, &Sourced { value: &setting.value, from })?;
        }
        map.end()
    }
}

/// One object where one subscription is explained, else an array.
pub(super) fn write(explained: &[Explained]) -> serde_json::Result<String> {
    match explained {
        [one] => serde_json::to_string(&document(one)),
        several => serde_json::to_string(&several.iter().map(document).collect::<Vec<_>>()),
    }
}

fn document(explained: &Explained) -> Document<'_> {
    let Explained { subscription, policy, life } = explained;
    let attempts = life.attempts.iter();
    let stored = life.stored.as_ref();
    let uri = sink_uri(&subscription.dead_letter.sink);
    let kept = !matches!(subscription.dead_letter.sink, delivery::sink::Sink::None);
    Document {
        subscription: subscription.name.to_string(),
        dialect: subscription.dialect.as_str(),
        policy: Policy(policy),
        attempts: attempts.map(|of| Attempt { attempt: of.attempt, wait_ms: of.wait_ms, at_ms: of.at_ms }).collect(),
        end: End {
            reason: life.reason_name(),
            at_ms: life.ended_ms,
            deadletter_after_ms: stored.map(|stored| stored.after_ms),
            container: stored.and_then(container),
            format: stored.map(|stored| stored.format),
        },
        status: Status {
            container: uri.as_deref().and_then(|uri| uri.strip_prefix("s3://")).map(str::to_owned),
            dead_letter_sink_uri: uri,
            format: kept.then(|| subscription.dead_letter.format.told(subscription.destination.schema)),
        },
    }
}

fn container(stored: &Stored) -> Option<String> {
    stored.container.as_ref().map(ToString::to_string)
}
