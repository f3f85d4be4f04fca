//! Settings as they are shown.

use super::*;
use crate::event::schema::Schema;
use crate::subscription::CloudEventsHandshake;
use crate::subscription::NoFields;
use crate::subscription::header::{Header, Value as HeaderValue};
use crate::subscription::profile::Dialect;
use crate::subscription::profile::Profile;
use crate::subscription::sink::Sink;
use crate::subscription::{
    BATCH_KILOBYTE, Batch, Consent, DeadLetterPolicy, OnRefused, Signing, sink_text, sink_uri,
};
use crate::waits::{Kind, Schedule};

fn subscription() -> Subscription {
    let (name, url) = ("n/t/s".parse().unwrap(), "https://h/".parse().unwrap());
    Subscription::new(name, Dialect::Native, url)
}

fn setting(subscription: &Subscription, field: &str) -> Setting {
    settings(subscription).into_iter().find(|setting| setting.field == field).unwrap()
}

#[test]
fn every_kind_of_schedule_has_its_words() {
    let text = |kind, max_ms| {
        let mut subscription = subscription();
        subscription.retry.schedule = Schedule { kind, max_ms };
        setting(&subscription, "schedule").text
    };
    assert_eq!(
        text(Kind::LinearFromZero { delay_ms: 200 }, None),
        "linear PT0.2S, numbered from zero"
    );
    assert_eq!(
        text(Kind::Exponential { delay_ms: 1_000 }, Some(60_000)),
        "exponential PT1S, at most PT1M"
    );
    assert_eq!(text(Kind::Waits { waits_ms: [1_000, 2_000].into() }, None), "waits PT1S PT2S");
    for dialect in Dialect::ALL {
        let subscription =
            Subscription { retry: Profile::for_dialect(dialect).retry, ..subscription() };
        let value = setting(&subscription, "schedule").value;
        assert!(value["kind"].is_string(), "{value}");
    }
}

#[test]
fn headers_and_signatures_are_reported_without_a_value() {
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    let mut subscription = subscription();
    for field in ["headers", "signing"] {
        assert_eq!(setting(&subscription, field).text, "none");
    }
    subscription.destination.headers = vec![
        header("a", HeaderValue::Static("hush".to_owned())),
        header("b", HeaderValue::Concealed("hush".to_owned())),
        header("c", HeaderValue::Path("data.x".parse().unwrap())),
        header("d", HeaderValue::Secret("env:D".parse().unwrap())),
    ];
    let shown = setting(&subscription, "headers");
    assert_eq!(shown.text, "a, b (hidden), c from $['data']['x'], d from env:D");
    assert_eq!(
        shown.value,
        json!([{"name": "a"}, {"name": "b"}, {"name": "c", "path": "$['data']['x']"}, {"name": "d", "secret": "env:D"}])
    );
    let secrets = vec!["env:A".parse().unwrap(), "ssm:b".parse().unwrap()];
    subscription.destination.signing = Some(Signing { secrets, public_keys: None });
    assert_eq!(setting(&subscription, "signing").text, "secrets env:A, ssm:b");
}

#[test]
fn batches_and_consent_are_reported_also_where_there_are_none() {
    let batch = Some(Batch {
        max_events: 100,
        preferred_bytes: 64 * BATCH_KILOBYTE,
        on_refused: OnRefused::All,
    });
    let shown = |batch| {
        let subscription = Subscription { batch, ..subscription() };
        ["batch.maxEvents", "batch.preferredKilobytes", "batch.onRefused"]
            .map(|field| setting(&subscription, field))
    };
    assert_eq!(shown(batch).map(|setting| setting.value), [json!(100), json!(64), json!("all")]);
    assert_eq!(
        shown(None).map(|setting| (setting.value, setting.text)),
        [(); 3].map(|()| (Value::Null, "no batches".to_owned()))
    );
    let asked = |rate| {
        Consent::CloudEvents(CloudEventsHandshake { origin: "a.example.com".to_owned(), rate })
    };
    for (given, text) in [
        (None, "not requested"),
        (Some(Consent::EventGrid(NoFields)), "handshake eventgrid"),
        (Some(asked(None)), "handshake cloudevents, origin a.example.com"),
        (Some(asked(Some(120))), "handshake cloudevents, origin a.example.com, rate 120"),
    ] {
        let mut subscription = subscription();
        subscription.destination.consent = given;
        assert_eq!(setting(&subscription, "consent").text, text);
    }
}

#[test]
fn replies_are_reported_without_a_query() {
    let mut subscription = subscription();
    assert_eq!(
        (reply(&subscription).value, reply(&subscription).text),
        (Value::Null, "none".to_owned())
    );
    let address = "https://u:hush@a.example.com/in?code=hush".parse().unwrap();
    subscription.reply = Some(ReplyTo::Address(address));
    assert_eq!(reply(&subscription).text, "https://a.example.com/in");
    subscription.destination.hide_path = true;
    assert_eq!(reply(&subscription).text, "https://a.example.com/[secret]");
    subscription.reply = Some(ReplyTo::Topic("n/t".parse().unwrap()));
    assert_eq!(reply(&subscription).text, "topic n/t");
}

#[test]
fn a_sink_is_reported_by_its_address_where_it_has_one() {
    for (sink, uri, value, text) in [
        (Sink::DefaultContainer, None, "default", "the default container of the deployment"),
        (Sink::Container("b/x".parse().unwrap()), Some("s3://b/x"), "s3://b/x", "s3://b/x"),
        (
            Sink::Queue("h/123456789012/q".parse().unwrap()),
            Some("sqs://h/123456789012/q"),
            "sqs://h/123456789012/q",
            "sqs://h/123456789012/q",
        ),
        (
            Sink::Address("https://u:hush@h/in?code=hush".parse().unwrap()),
            Some("https://h/in"),
            "https://h/in",
            "https://h/in",
        ),
        (Sink::Topic("n/t".parse().unwrap()), None, "topic n/t", "the subscriptions of topic n/t"),
        (Sink::None, None, "none", "none: dropped"),
    ] {
        let dead_letter = DeadLetterPolicy { sink, ..subscription().dead_letter };
        let setting = setting(
            &Subscription { dead_letter: dead_letter.clone(), ..subscription() },
            "deadLetter.sink",
        );
        assert_eq!(
            (sink_uri(&dead_letter).as_deref(), &setting.value, setting.text.as_str()),
            (uri, &json!(value), text)
        );
    }
    let sink = Sink::Address("https://h/services/t0ken?code=hush".parse().unwrap());
    let dead_letter = DeadLetterPolicy { sink, hide_path: true, ..subscription().dead_letter };
    assert_eq!(sink_text(&dead_letter), "https://h/[secret]");
}

#[test]
fn a_schema_is_reported_by_its_word_and_none_is_the_published_shape() {
    let schema = |schema| {
        let mut subscription = subscription();
        subscription.destination.schema = schema;
        setting(&subscription, "schema")
    };
    let name_for: Vec<String> =
        Schema::ALL.into_iter().map(|variant| schema(Some(variant)).text).collect();
    assert_eq!(name_for, ["cloudevents-structured", "cloudevents-binary", "eventgrid", "custom"]);
    assert_eq!((schema(None).value, schema(None).text), (Value::Null, "as published".to_owned()));
}
