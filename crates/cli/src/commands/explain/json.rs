//! Formats explanations as JSON. The members and their order are a public interface.
//!
//! Separate because the JSON must not change when internal types change. These members can be
//! `null` or missing:
//!
//! - `container` is `null` for the default container of the deployment, and for sinks that are not
//!   containers.
//! - `format` is `null` without a dead letter.
//! - `errorChannel` is present if the sink is a topic.
//! - `probation` is `null` if probation is off. Its `first_ms` is `null` if the outcome begins no
//!   probation.
//! - `destination`, the current state of the destination, and `from`, the origin of a value, are
//!   present if requested.

use delivery::subscription::policy::Setting;
use delivery::subscription::sink::Sink;
use delivery::subscription::sink_uri;
use serde::{Serialize, Serializer};

use super::Explained;

#[derive(Serialize)]
struct Document<'a> {
    subscription: String,
    dialect: &'static str,
    policy: Policy<'a>,
    probation: Option<Probation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a serde_json::Value>,
    attempts: Vec<Attempt>,
    end: End,
    status: Status,
}

/// The settings of a policy and, if requested, their origins. Serialized as an object in this
/// order.
struct Policy<'a>(&'a [Setting], Option<&'a [String]>);

#[derive(Serialize)]
struct Sourced<'a> {
    value: &'a serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

#[derive(Serialize)]
struct Probation {
    after_failures: u32,
    first_ms: Option<u64>,
    longest_ms: u64,
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

/// The sink of dead letters. It is serialized with the members of a Knative object's status, and
/// with `container` and `format`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    dead_letter_sink_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_channel: Option<String>,
    container: Option<String>,
    format: Option<&'static str>,
}

impl Serialize for Policy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(settings, origins) = self;
        serializer.collect_map(settings.iter().enumerate().map(|(index, setting)| {
            let from = origins.and_then(|origins| origins.get(index)).map(String::as_str);
            (setting.field.as_str(), Sourced { value: &setting.value, from })
        }))
    }
}

/// Formats one subscription as an object, several as an array.
pub(super) fn write(explained: &[Explained]) -> serde_json::Result<String> {
    match explained {
        [subscription] => serde_json::to_string(&document(subscription)),
        several => serde_json::to_string(&several.iter().map(document).collect::<Vec<_>>()),
    }
}

fn document(explained: &Explained) -> Document<'_> {
    let Explained { subscription, policy, origins, life, probation, now } = explained;
    let attempts = life.attempts.iter();
    let stored = life.stored.as_ref();
    let sink = &subscription.dead_letter.sink;
    let (container, error_channel) = match sink {
        Sink::Container(container) => (Some(container.to_string()), None),
        Sink::Topic(topic) => (None, Some(topic.to_string())),
        Sink::DefaultContainer | Sink::Queue(_) | Sink::Address(_) | Sink::None => (None, None),
    };
    Document {
        subscription: subscription.name.to_string(),
        dialect: subscription.dialect.as_str(),
        policy: Policy(policy, origins.as_deref()),
        probation: probation.map(|probation| Probation {
            after_failures: probation.after_failures,
            first_ms: probation.first_ms,
            longest_ms: probation.longest_ms,
        }),
        destination: now.as_ref().map(|now| &now.json),
        attempts: attempts
            .map(|attempt| Attempt {
                attempt: attempt.attempt,
                wait_ms: attempt.wait_ms,
                at_ms: attempt.at_ms,
            })
            .collect(),
        end: End {
            reason: life.reason_name(),
            at_ms: life.ended_ms,
            deadletter_after_ms: stored.map(|stored| stored.after_ms),
            container: stored.and_then(|_| container.clone()),
            format: stored.map(|stored| stored.format),
        },
        status: Status {
            dead_letter_sink_uri: sink_uri(&subscription.dead_letter),
            error_channel,
            container,
            format: (*sink != Sink::None)
                .then(|| subscription.dead_letter.format.name_for(subscription.destination.schema)),
        },
    }
}
