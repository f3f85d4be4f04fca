//! Checks that each field of Knative's objects is honoured here or reported by `check`.
//!
//! Separate from the tests of single fields and from the real files, which have few of the fields.
//! If a field is accepted, changes nothing and is not reported, it must be listed here with the
//! reason. The fields are those of the CRDs of knative/eventing 8cf4c4b and of its extensions for
//! Kafka and RabbitMQ in June 2026.

mod rows;

use std::collections::BTreeSet;

use dialects::{Finding, Reading, Severity, Source, read};
use lastmile_tests::document::assert_table;
use serde_json::{Value, json};

use rows::Here::{self, Error, Honoured, Nothing, Warning};
use rows::{ABSENT, KINDS, ROWS, Row};

const LINEAR: &str = r#"{"retry":9,"backoffPolicy":"linear","backoffDelay":"PT1S"}"#;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn object(api: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn broker(name: &str) -> Value {
    let mut broker = object("eventing.knative.dev/v1", "Broker", name, json!({}));
    broker["metadata"]["annotations"] =
        json!({"eventing.knative.dev/broker.class": "MTChannelBasedBroker"});
    broker
}

fn trigger(spec: &Value) -> Value {
    let mut whole = json!({"broker": "b", "subscriber": {"uri": "https://a.example.com/"}});
    whole.as_object_mut().expect("an object").extend(spec.as_object().expect("an object").clone());
    object("eventing.knative.dev/v1", "Trigger", "t", whole)
}

fn channel(kind: &str, spec: Value) -> Value {
    object("messaging.knative.dev/v1", kind, "c", spec)
}

fn subscription(kind: &str, spec: &Value) -> Value {
    let channel = json!({"apiVersion": "messaging.knative.dev/v1", "kind": kind, "name": "c"});
    let mut whole = json!({"channel": channel, "subscriber": {"uri": "https://a.example.com/"}});
    whole.as_object_mut().expect("an object").extend(spec.as_object().expect("an object").clone());
    object("messaging.knative.dev/v1", "Subscription", "s", whole)
}

fn source(kind: &str) -> Value {
    let spec = json!({"sink": {"uri": "https://a.example.com/"}});
    object("sources.knative.dev/v1", kind, "p", spec)
}

fn config_map(name: &str) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
}

fn template(kind: &str) -> Value {
    json!({"apiVersion": "messaging.knative.dev/v1", "kind": kind})
}

/// The object that a row changes.
fn subject(target: &str) -> Value {
    match target {
        "delivery" => json!({"retry": 1}),
        "subscriber by uri" => json!({"uri": "https://a.example.com/"}),
        "subscriber by ref" => {
            json!({"ref": {"apiVersion": "v1", "kind": "Service", "name": "known"}})
        }
        "subscribers" => json!({"subscriberUri": "https://a.example.com/", "uid": "u"}),
        "Trigger" => trigger(&json!({"delivery": value(LINEAR)})),
        "Trigger by brokerRef" => {
            let mut trigger = trigger(&json!({"brokerRef": {"name": "b"}}));
            trigger["spec"].as_object_mut().expect("an object").remove("broker");
            trigger
        }
        "Broker" => broker("b"),
        "Channel" => channel("Channel", json!({"channelTemplate": template("InMemoryChannel")})),
        "KafkaChannel" => channel("KafkaChannel", json!({})),
        "Subscription" => subscription("Channel", &json!({})),
        "Subscription with reply" => {
            subscription("Channel", &json!({"reply": {"uri": "https://reply.example.com/"}}))
        }
        "KafkaSource" => {
            let mut source = source("KafkaSource");
            source["spec"]["ordering"] = json!("unordered");
            source["spec"]["delivery"] = json!({"retry": 1});
            source
        }
        "PingSource to a broker" => {
            let mut source = source("PingSource");
            let broker = json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "absent"});
            source["spec"]["sink"] = json!({"ref": broker});
            source
        }
        "RabbitmqBrokerConfig" => {
            object("eventing.knative.dev/v1alpha1", "RabbitmqBrokerConfig", "r", json!({}))
        }
        "config-br-defaults" | "config-br-default-channel" | "default-ch-webhook" => {
            config_map(target)
        }
        kind => source(kind),
    }
}

/// The files that the subject is a part of.
fn files(target: &str, subject: Value) -> Vec<Value> {
    let linear = || value(LINEAR);
    match target {
        "delivery" => vec![trigger(&json!({"delivery": subject})), broker("b")],
        "subscriber by uri" | "subscriber by ref" => {
            vec![trigger(&json!({"subscriber": subject})), broker("b")]
        }
        "subscribers" => vec![channel("KafkaChannel", json!({"subscribers": [subject]}))],
        "Trigger" | "Trigger by brokerRef" => vec![subject, broker("b"), broker("other")],
        "Broker" => vec![
            subject,
            trigger(&json!({"delivery": linear()})),
            without_delivery(),
            config_map("kafka-channels"),
        ],
        "Channel" => {
            let channel_subscription = |spec| subscription("Channel", &spec);
            vec![
                subject,
                channel_subscription(json!({"delivery": linear()})),
                named(channel_subscription(json!({})), "bare"),
            ]
        }
        "KafkaChannel" => vec![subject, subscription("KafkaChannel", &json!({}))],
        "Subscription" | "Subscription with reply" => {
            vec![
                subject,
                channel("Channel", json!({"channelTemplate": template("InMemoryChannel")})),
            ]
        }
        "config-br-defaults" | "config-br-default-channel" => {
            vec![subject, broker("b"), trigger(&json!({"delivery": linear()}))]
        }
        "default-ch-webhook" => {
            vec![subject, channel("Channel", json!({})), subscription("Channel", &json!({}))]
        }
        _ => vec![subject],
    }
}

fn without_delivery() -> Value {
    named(trigger(&json!({})), "bare")
}

fn named(mut object: Value, name: &str) -> Value {
    object["metadata"]["name"] = json!(name);
    object
}

fn reading(target: &str, subject: Value) -> Reading {
    let known = json!({"v1/Service/default/known": "https://known.example.com/"});
    let destinations =
        json!({"apiVersion": "lastmile.dev/v1", "kind": "Destinations", "spec": known});
    let documents = files(target, subject).into_iter().chain([destinations]);
    let texts: Vec<String> = documents.map(|document| document.to_string()).collect();
    read(&[Source { name: "f", text: &texts.join("\n---\n") }])
}

/// The subject with a field of this value.
fn changed(mut subject: Value, field: &str, text: &str) -> Value {
    let path: Vec<&str> = match field.strip_prefix('@') {
        Some(annotation) => vec!["metadata", "annotations", annotation],
        None => field.split('/').filter(|name| !name.is_empty()).collect(),
    };
    let Some((last, around)) = path.split_last() else { return value(text) };
    let mut at = &mut subject;
    for name in around {
        at = &mut at[*name];
    }
    if text == ABSENT {
        at.as_object_mut().expect("an object").remove(*last);
    } else {
        at[*last] = value(text);
    }
    subject
}

/// The effect of a field, and the message of `check` about it.
fn outcome((target, field, text, _): &Row) -> (Option<Here>, String) {
    let before = reading(target, subject(target));
    let after = reading(target, changed(subject(target), field, text));
    assert!(
        before.findings.iter().all(|finding| finding.severity != Severity::Error),
        "{target}: {:?}",
        before.findings
    );
    let known: BTreeSet<&str> =
        before.findings.iter().map(|finding| finding.message.as_str()).collect();
    let is_new = |finding: &&Finding| !known.contains(finding.message.as_str());
    let new: Vec<&Finding> = after.findings.iter().filter(is_new).collect();
    let first = |severity| new.iter().find(|finding| finding.severity == severity);
    if let Some(error) = first(Severity::Error) {
        return (Some(Error), error.message.clone());
    }
    if let Some(warning) = first(Severity::Warning) {
        return (Some(Warning), warning.message.clone());
    }
    let is_changed = before.catalogue != after.catalogue;
    (is_changed.then_some(Honoured), String::new())
}

/// A row for the documentation.
fn documented((target, field, text, here): &Row, message: &str) -> String {
    let field = match field.strip_prefix('@') {
        Some(annotation) => format!("annotation {annotation}"),
        None => field.replace('/', "."),
    };
    let stated = if *text == ABSENT { "is not there".to_owned() } else { format!("`{text}`") };
    let here = match here {
        Honoured => "honoured".to_owned(),
        Warning => format!("warning: {message}"),
        Error => format!("error: {message}"),
        Nothing(why) => format!("nothing: {why}"),
    };
    format!("| {target} | `{field}` | {stated} | {here} |").replace("| `` |", "| |")
}

#[test]
fn every_field_is_honoured_or_reported_or_has_a_reason_why_not() {
    let mut wrong = Vec::new();
    let mut table = Vec::new();
    for row in ROWS.into_iter().flatten() {
        let (found, message) = outcome(row);
        let is_expected = match row.3 {
            Nothing(_) => found.is_none(),
            here @ (Honoured | Warning | Error) => found == Some(here),
        };
        if !is_expected {
            wrong.push(format!("{row:?}: {found:?} {message}"));
        }
        table.push(documented(row, &message.replace('|', "\\|")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_table(
        "reference/conformance.md",
        "knative-fields",
        "| object | field | value | here |",
        &table,
    );
}

#[test]
fn every_kind_that_is_not_read_is_counted_or_a_subscription_to_its_sink() {
    for (api, kind) in KINDS {
        for spec in [json!({}), json!({"sink": {"uri": "https://a.example.com/"}})] {
            let is_source = spec.get("sink").is_some()
                && !["eventing.knative.dev", "flows.knative.dev"]
                    .iter()
                    .any(|group| api.starts_with(group));
            let text = object(api, kind, "x", spec).to_string();
            let reading = read(&[Source { name: "f", text: &text }]);
            let severities: Vec<Severity> =
                reading.findings.iter().map(|finding| finding.severity).collect();
            let expected = if is_source { Severity::Warning } else { Severity::Note };
            assert_eq!(severities, [expected], "{kind}: {:?}", reading.findings);
            let found = reading.catalogue.subscriptions().count();
            assert!(found == 0 || is_source, "{kind}: {found}");
        }
    }
}
