//! The texts of version 1 stay readable and are written byte for byte.
//!
//! What they mean is a snapshot, not a profile: a default that changes later must not change them.

use delivery::subscription::auth::Basic;
use delivery::subscription::auth::Bearer;
use delivery::subscription::auth::ClientCertificate;
use delivery::subscription::auth::SecretHeader;
use delivery::subscription::topic_settings::TopicSettings;
use delivery::subscription::{Signing, Tls};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use delivery::event::Input;
use delivery::event::mapping::{Field, Mapping};
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::auth::oauth2::{ClientCredentials, Style};
use delivery::subscription::auth::sigv4::{SigningScope, SigningService};
use delivery::subscription::catalogue::Topic;
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format};
use delivery::subscription::profile::Dialect;
use delivery::subscription::schedule::Kind;
use delivery::subscription::sink::Sink;
use delivery::subscription::tls::CaBundle;
use delivery::wire::stored::{read_subscription, read_topic, write_subscription, write_topic};
use serde_json::Value;

use super::repository;
use crate::samples::subscription;

const FOLDER: &str = "crates/delivery/fixtures/stored/v1";

pub(super) fn fixture(name: &str) -> String {
    let path = repository(FOLDER).join(name).with_extension("json");
    let text = fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim_end().to_owned()
}

pub(super) const SUBSCRIPTIONS: [&str; 9] = [
    "subscription-cesql",
    "subscription-eventgrid",
    "subscription-eventgrid-kubernetes",
    "subscription-eventgrid-namespace",
    "subscription-eventgrid-resource",
    "subscription-full",
    "subscription-knative",
    "subscription-native",
    "subscription-other-words",
];
const TOPICS: [&str; 2] = ["topic-bare", "topic-full"];

#[test]
fn a_subscription_of_version_1_is_read_and_written_back_to_the_same_text() {
    for name in SUBSCRIPTIONS {
        let text = fixture(name);
        let of = "shop/orders/billing".parse().expect("a name");
        let read = read_subscription(of, &Arc::default(), &text).expect(name);
        insta::assert_debug_snapshot!(name, read);
        assert_eq!(write_subscription(&read), text, "{name}");
    }
}

#[test]
fn a_topic_of_version_1_is_read_and_written_back_to_the_same_text() {
    let field = |path: Option<&str>, default: Option<&str>| Field {
        path: path.map(|path| path.parse().expect("a path")),
        default: default.map(ToOwned::to_owned),
    };
    let full = Mapping {
        id: field(Some("orderId"), None),
        topic: field(Some("data.shop"), None),
        event_time: field(Some("data['sold at'][0]"), None),
        event_type: field(Some("kind"), Some("order")),
        subject: field(None, Some("größe")),
        data_version: field(None, Some("")),
    };
    let bare = Topic::new("shop/orders".parse().expect("a name"));
    let full = Topic {
        settings: TopicSettings {
            input: Input::Custom,
            mapping: full.into(),
            max_replies: 0,
            ..bare.settings.clone()
        },
        ..bare.clone()
    };
    let bare =
        Topic { settings: TopicSettings { max_replies: 64, ..bare.settings.clone() }, ..bare };
    for (name, topic) in TOPICS.into_iter().zip([bare, full]) {
        let text = fixture(name);
        assert_eq!(write_topic(&topic), text, "{name}");
        assert_eq!(read_topic(topic.name.clone(), &text), Ok(topic), "{name}");
    }
}

#[test]
fn of_a_mapping_only_the_fields_are_written_that_it_maps() {
    let subject = Field { path: None, default: Some("s".to_owned()) };
    let mapping = Mapping { subject, ..Mapping::default() };
    let topic = Topic::new("shop/orders".parse().expect("a name"));
    let text = write_topic(&Topic {
        settings: TopicSettings { mapping: mapping.into(), ..topic.settings.clone() },
        ..topic
    });
    assert!(text.contains(r#""mapping":{"subject":{"default":"s"}}"#), "{text}");
}

#[test]
fn every_fixture_is_used_by_the_tests() {
    let files = fs::read_dir(repository(FOLDER)).expect("the fixtures");
    let mut found: Vec<String> = files
        .map(|file| file.expect("a file").file_name().into_string().expect("a plain name"))
        .collect();
    found.sort();
    let mut known: Vec<String> =
        SUBSCRIPTIONS.iter().chain(&TOPICS).map(|name| format!("{name}.json")).collect();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn every_word_of_a_topic_keeps_its_meaning() {
    const INPUTS: [&str; 9] = [
        "auto",
        "cloudevents",
        "eventgrid",
        "custom",
        "opaque",
        "sns",
        "sns-whole",
        "eventbridge",
        "s3",
    ];
    let topic = Topic::new("shop/orders".parse().expect("a name"));
    for (input, word) in Input::ALL.into_iter().zip(INPUTS) {
        let text = write_topic(&Topic {
            settings: TopicSettings { input, ..topic.settings.clone() },
            ..topic.clone()
        });
        assert!(text.contains(&format!(r#""input":"{word}""#)), "{text}");
    }
}

#[test]
fn every_word_of_a_dead_letter_and_a_schedule_keeps_its_meaning() {
    let mut of = subscription(Dialect::Native);
    for (format, word) in [
        (DeadLetterFormat::Fixed(Format::Namespace), "namespace"),
        (DeadLetterFormat::Fixed(Format::EventGrid), "eventgrid"),
        (DeadLetterFormat::Fixed(Format::CloudEvents), "cloudevents"),
        (DeadLetterFormat::Fixed(Format::Custom), "custom"),
        (DeadLetterFormat::Fixed(Format::Knative), "knative"),
        (DeadLetterFormat::ByDeliverySchema, "byDeliverySchema"),
    ] {
        of.dead_letter.format = format;
        assert!(write_subscription(&of).contains(&format!(r#""format":"{word}""#)), "{word}");
    }
    for (kind, word) in [
        (Kind::Linear { delay_ms: 1 }, "linear"),
        (Kind::Exponential { delay_ms: 1 }, "exponential"),
        (Kind::LinearFromZero { delay_ms: 1 }, "linearFromZero"),
        (Kind::ExponentialFromZero { delay_ms: 1 }, "exponentialFromZero"),
        (Kind::Constant { delay_ms: 1 }, "constant"),
    ] {
        of.retry.schedule.kind = kind;
        let text = write_subscription(&of);
        assert!(text.contains(&format!(r#""kind":"{word}","delayMs":1"#)), "{text}");
    }
    of.dead_letter.sink = Sink::None;
    assert!(write_subscription(&of).contains(r#""sink":"none""#));
    of.dead_letter.sink =
        Sink::Address("https://lost.example.com/?code=0815".parse().expect("a URL"));
    let sink = r#""sink":{"url":"https://lost.example.com/?code=0815"}"#;
    assert!(write_subscription(&of).contains(sink));
}

#[test]
fn every_word_of_a_destination_keeps_its_meaning() {
    let mut of = subscription(Dialect::Native);
    let secret = || "env:A".parse().expect("the name of a secret");
    for (auth, text) in [
        (
            Auth::Basic(Basic { user: "acme".to_owned(), password: secret() }),
            r#"{"basic":{"user":"acme","password":"env:A"}}"#,
        ),
        (Auth::Bearer(Bearer { token: secret() }), r#"{"bearer":{"token":"env:A"}}"#),
        (
            Auth::Header(SecretHeader { name: "X-Key".to_owned(), value: secret() }),
            r#"{"header":{"name":"X-Key","value":"env:A"}}"#,
        ),
        (
            Auth::ClientCertificate(ClientCertificate { certificate: secret(), key: secret() }),
            r#"{"clientCertificate":{"certificate":"env:A","key":"env:A"}}"#,
        ),
        (
            Auth::Sigv4(SigningScope {
                service: SigningService::ExecuteApi,
                region: "eu-west-1".to_owned(),
            }),
            r#"{"sigv4":{"service":"execute-api","region":"eu-west-1"}}"#,
        ),
        (
            Auth::AwsIdentity(WebIdentity { audience: "them".to_owned(), lifetime_ms: 300_000 }),
            r#"{"awsIdentity":{"audience":"them","lifetimeMs":300000}}"#,
        ),
        (
            Auth::OAuth2(Box::new(ClientCredentials {
                token_url: "https://login.example.com/t".parse().expect("a URL"),
                client_id: "acme".to_owned(),
                client_secret: secret(),
                scope: Some("a b".to_owned()),
                audience: Some("them".to_owned()),
                resource: Some("urn:them".to_owned()),
                style: Style::Post,
                parameters: vec![("tenant".to_owned(), "7".to_owned())],
            })),
            r#"{"oauth2":{"tokenUrl":"https://login.example.com/t","clientId":"acme","clientSecret":"env:A","scope":"a b","audience":"them","resource":"urn:them","style":"post","parameters":[["tenant","7"]]}}"#,
        ),
    ] {
        of.destination.auth = Some(auth);
        assert!(write_subscription(&of).contains(&format!(r#""auth":{text}"#)), "{text}");
    }
    let key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let public_keys = Some(vec![key.parse().expect("a public key")]);
    of.destination.signing =
        Some(Signing { secrets: vec!["env:A".parse().expect("a name")], public_keys });
    assert!(write_subscription(&of).contains(&format!(r#""publicKeys":["{key}"]"#)));
    let pem = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    of.destination.tls = CaBundle::new(pem).ok().map(|ca_bundle| Tls { ca_bundle });
    let bundle = r#""caBundle":"-----BEGIN CERTIFICATE-----\nMA==\n"#;
    assert!(write_subscription(&of).contains(bundle));
}

/// The names of all members, at any depth.
fn members(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            members(value, names);
        }),
        Value::Array(values) => values.iter().for_each(|value| members(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_is_in_the_page() {
    let page = fs::read_to_string(repository("docs/catalogue.md")).expect("the page");
    let mut names = BTreeSet::new();
    for name in SUBSCRIPTIONS.iter().chain(&TOPICS) {
        members(&serde_json::from_str(&fixture(name)).expect(name), &mut names);
    }
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name} is not in the page");
    }
}
