use delivery::subscription::CloudEventsHandshake;
use delivery::subscription::auth::SecretHeader;
use delivery::subscription::topic_settings::TopicSettings;
use delivery::subscription::{Concurrency, Signing};
use std::sync::Arc;

use super::support::{finds_one, read_one, shown};
use crate::{Source, read};
use delivery::event::Input;
use delivery::event::mapping::{Field, Mapping};
use delivery::event::schema::Schema;
use delivery::subscription::auth::Auth;
use delivery::subscription::catalogue::Topic;
use delivery::subscription::dead_letter_format::{
    DeadLetterFormat, ErrorData, Format, Layout, Response,
};
use delivery::subscription::filter::Filter;
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::{Dialect, Profile};
use delivery::subscription::sink::{Container, Sink};
use delivery::subscription::{Batch, Consent, Destination, OnRefused, Subscription};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::{Kind, Schedule};

const TOPIC: &str = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: n, name: t}\n";
const HEAD: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: n, topic: t, name: s}\nspec:\n";
const URL: &str = "  destination: {url: http://h/}\n";

/// The subscription of a text without findings.
fn subscription(text: &str) -> Arc<Subscription> {
    let reading = read_one(text);
    assert_eq!(shown(&reading), Vec::<String>::new(), "{text}");
    let mut subscriptions = reading.catalogue.subscriptions();
    Arc::clone(subscriptions.next().unwrap_or_else(|| panic!("no subscription in {text}")))
}

fn with_spec(spec: &str) -> Arc<Subscription> {
    subscription(&format!("{HEAD}{URL}{spec}"))
}

mod auth;
mod aws;
mod batches;
mod origins;
mod publishers;
mod refused;

#[test]
fn a_url_is_all_that_a_subscription_needs() {
    let subscription = with_spec("");
    let profile = Profile::for_dialect(Dialect::Native);
    assert_eq!(subscription.name.to_string(), "n/t/s");
    assert_eq!(subscription.destination.url.as_str(), "http://h/");
    assert_eq!(subscription.destination.response_timeout_ms, profile.response_timeout_ms);
    assert_eq!(subscription.retry, profile.retry);
    assert_eq!(subscription.filter, Filter::EVERYTHING);
    assert_eq!(subscription.dead_letter.sink, Sink::DefaultContainer);
    assert_eq!(subscription.dead_letter.keep_trying_for_ms, 2 * DAY_MS);
    assert!(!subscription.paused);
    let url = (*subscription.destination.url).clone();
    let new = Destination::new(url, profile.response_timeout_ms);
    let destination = Destination { probation: true, plain_json: true, ..new };
    assert_eq!((&subscription.destination, subscription.destination.schema), (&destination, None));
}

const FULL_YAML: &str = include_str!("../../../fixtures/full.yaml");
const FULL_JSON: &str = include_str!("../../../fixtures/full.json");

#[test]
fn every_field_reaches_its_place() {
    let subscription = subscription(FULL_YAML);
    let destination = &subscription.destination;
    assert_eq!(destination.url.as_str(), "https://billing.example.com/events");
    assert!(destination.hide_path && subscription.dead_letter.hide_path);
    assert_eq!(subscription.dead_letter.response, Response::None);
    assert_eq!(destination.response_timeout_ms, 20 * SECOND_MS);
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    assert_eq!(
        destination.headers,
        [
            header("x-tenant", Value::Static("acme".to_owned())),
            header("X-Version", Value::Static("7".to_owned())),
            header("x-order", Value::Path("data.orderId".parse().unwrap())),
            header("authorization", Value::Secret("env:BILLING_TOKEN".parse().unwrap())),
        ]
    );
    let value = "secretsmanager:billing#partner".parse().unwrap();
    assert_eq!(
        destination.auth,
        Some(Auth::Header(SecretHeader { name: "x-partner".to_owned(), value }))
    );
    assert_eq!(destination.schema, Some(Schema::CloudEventsStructured));
    assert_eq!(destination.max_concurrency, Concurrency::of_all(20));
    assert_eq!(
        destination.signing_secrets(),
        ["env:BILLING_SIGNING_SECRET", "ssm:/billing/old"].map(|text| text.parse().unwrap())
    );
    assert!(!destination.notification_headers);
    let exact = Filter::Exact { name: "type".to_owned(), value: "order.created".to_owned() };
    let prefix = Filter::Prefix { name: "subject".to_owned(), value: "eu/".to_owned() };
    assert_eq!(subscription.filter, Filter::All(vec![exact, prefix]));
    assert_eq!((destination.late_window_ms, destination.probation), (2 * MINUTE_MS, true));
    let consent = Consent::CloudEvents(CloudEventsHandshake {
        origin: "events.example.com".to_owned(),
        rate: Some(120),
    });
    assert_eq!(destination.consent, Some(consent));
    let batch = Batch { max_events: 100, preferred_bytes: 256 * 1_024, on_refused: OnRefused::All };
    assert_eq!(subscription.batch, Some(batch));
    let retry = &subscription.retry;
    assert_eq!(
        (retry.max_attempts, retry.time_to_live_ms, retry.jitter_percent),
        (12, Some(2 * DAY_MS), 20)
    );
    let kind = Kind::Exponential { delay_ms: 2 * SECOND_MS };
    assert_eq!(retry.schedule, Schedule { kind, max_ms: Some(30 * MINUTE_MS) });
    let in_set = |set: &delivery::subscription::profile::StatusSet, statuses: &[u16]| {
        statuses.iter().map(|s| set.contains(*s)).collect::<Vec<_>>()
    };
    assert_eq!(
        in_set(&retry.success, &[199, 200, 299, 300, 304]),
        [false, true, true, false, true]
    );
    assert_eq!(
        in_set(&retry.never_retry, &[400, 404, 409, 420, 421, 423]),
        [true, false, true, false, true, true]
    );
    assert_eq!((retry.least_wait_ms(503), retry.least_wait_ms(500)), (30 * SECOND_MS, 0));
    assert_eq!(retry.retry_after_max_ms, 0);
    let policy = &subscription.dead_letter;
    let container = Container { bucket: "dead-letters".to_owned(), prefix: "shop".to_owned() };
    assert_eq!(
        (&policy.sink, policy.format, policy.layout),
        (&Sink::Container(container), DeadLetterFormat::Fixed(Format::Knative), Layout::Nested)
    );
    assert_eq!(policy.error_data, ErrorData::Base64);
    assert_eq!((policy.delay_ms, policy.keep_trying_for_ms), (5 * MINUTE_MS, 3 * DAY_MS));
    assert!(subscription.paused);
}

#[test]
fn json_says_the_same_as_yaml() {
    let yaml = read_one(FULL_YAML);
    for text in [
        FULL_JSON.to_owned(),
        FULL_JSON.replace(['\n', '\t'], "").replace(": ", ":").replace(", ", ","),
    ] {
        let json = read_one(&text);
        assert_eq!(shown(&json), Vec::<String>::new(), "{text}");
        assert_eq!(json.catalogue, yaml.catalogue, "{text}");
    }
}

#[test]
fn a_topic_says_how_its_records_are_read() {
    for input in Input::ALL {
        let reading = read_one(&format!("{TOPIC}spec: {{input: {}}}\n", input.as_str()));
        let name = "n/t".parse().unwrap();
        assert_eq!(
            reading.catalogue.topic(&name),
            Some(&Topic {
                settings: TopicSettings { input, ..TopicSettings::default() },
                ..Topic::new(name.clone())
            })
        );
    }
    let reading = read_one(&format!("{TOPIC}spec: {{maxReplies: 0}}\n"));
    assert_eq!(
        reading.catalogue.topic(&"n/t".parse().unwrap()).map(|topic| topic.settings.max_replies),
        Some(0)
    );
    assert_eq!(read_one(&format!("{TOPIC}spec:\n")).catalogue, read_one(TOPIC).catalogue);
}

#[test]
fn a_subscription_overrides_its_topic_field_by_field_in_any_order() {
    let topic = format!(
        "{TOPIC}spec:\n  delivery:\n    destination: {{timeout: PT5S, headers: [{{name: a, value: b}}], schema: custom, \
         maxConcurrency: 3, signing: {{secrets: [env:A]}}}}\n    \
         retry: {{maxAttempts: 4, timeToLive: PT1H, neverRetry: [409, 500], retryOn: [404]}}\n    \
         deadLetter: {{sink: s3://of-topic, delay: PT1M}}\n    paused: true\n"
    );
    let spec = "  retry: {maxAttempts: 7, retryOn: [409]}\n  deadLetter: {delay: PT2M}\n";
    let own = format!("{HEAD}{URL}{spec}");
    let separate = read(&[Source { name: "a", text: &own }, Source { name: "b", text: &topic }])
        .into_result()
        .unwrap();
    for text in [format!("{topic}---\n{own}"), format!("{own}---\n{topic}")] {
        let subscription = subscription(&text);
        assert_eq!(separate.subscriptions().next(), Some(&subscription));
        assert_eq!(subscription.destination.response_timeout_ms, 5 * SECOND_MS);
        let Destination { headers, schema, max_concurrency, .. } = &subscription.destination;
        assert_eq!((headers.len(), *schema), (1, Some(Schema::Custom)));
        assert_eq!(*max_concurrency, Concurrency::of_all(3));
        assert_eq!(subscription.destination.signing_secrets(), ["env:A".parse().unwrap()]);
        assert_eq!(
            (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
            (7, Some(HOUR_MS))
        );
        assert_eq!(
            [404, 409, 500].map(|s| subscription.retry.never_retry.contains(s)),
            [true, false, true]
        );
        assert!(
            matches!(&subscription.dead_letter.sink, Sink::Container(container) if container.bucket == "of-topic")
        );
        assert_eq!(subscription.dead_letter.delay_ms, 2 * MINUTE_MS);
        assert!(subscription.paused);
    }
}

#[test]
fn a_subscription_overrides_what_its_topic_sends_field_by_field() {
    let key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let of_topic = format!(
        "{{schema: custom, maxConcurrency: 3, signing: {{secrets: [env:A], publicKeys: ['{key}']}}, \
         headers: [{{name: a, path: id}}]}}"
    );
    let topic = format!("{TOPIC}spec: {{delivery: {{destination: {of_topic}}}}}\n---\n");
    let own = |rest: &str| format!("{topic}{HEAD}  destination: {{url: http://h/, {rest}}}\n");
    let destination = |rest: &str| subscription(&own(rest)).destination.clone();
    let base = destination("timeout: PT30S");
    assert_eq!(base.public_keys(), [key.parse().unwrap()]);
    assert_eq!(
        destination("schema: eventgrid"),
        Destination { schema: Some(Schema::EventGrid), ..base.clone() }
    );
    assert_eq!(
        destination("maxConcurrency: 1000"),
        Destination { max_concurrency: Concurrency::of_all(1_000), ..base.clone() }
    );
    let secrets = vec!["secretsmanager:s#m".parse().unwrap()];
    let signing = Some(Signing { secrets, public_keys: None });
    assert_eq!(
        destination("signing: {secrets: ['secretsmanager:s#m']}"),
        Destination { signing, ..base.clone() }
    );
    assert_eq!(destination("headers: []"), Destination { headers: Vec::new(), ..base });
}

#[test]
fn a_topics_mapping_is_that_of_its_subscriptions() {
    let mapping = "{id: {field: orderId}, topic: {field: $.shop}, eventTime: {field: at}, \
                   eventType: {field: kind, default: order}, subject: {default: none}, dataVersion: {default: 1}}";
    let field = |path: Option<&str>, default: Option<&str>| Field {
        path: path.map(|path| path.parse().unwrap()),
        default: default.map(str::to_owned),
    };
    let expected = Mapping {
        id: field(Some("orderId"), None),
        topic: field(Some("shop"), None),
        event_time: field(Some("at"), None),
        event_type: field(Some("kind"), Some("order")),
        subject: field(None, Some("none")),
        data_version: field(None, Some("1")),
    };
    for input in ["auto", "custom"] {
        let topic = format!("{TOPIC}spec: {{input: {input}, mapping: {mapping}}}\n");
        assert_eq!(*subscription(&format!("{HEAD}{URL}---\n{topic}")).mapping, expected);
    }
    for empty in ["", "{}", "{id: }"] {
        assert_eq!(
            *subscription(&format!("{HEAD}{URL}---\n{TOPIC}spec: {{mapping: {empty}}}\n")).mapping,
            Mapping::default()
        );
    }
}

#[test]
fn a_mapping_that_no_event_is_mapped_by_is_a_warning() {
    for input in ["cloudevents", "eventgrid", "opaque", "sns", "eventbridge", "s3"] {
        let reading =
            read_one(&format!("{TOPIC}spec: {{input: {input}, mapping: {{id: {{field: x}}}}}}\n"));
        let column = 17 + input.len();
        let problem = format!(
            "no effect: the input of this topic is {input}, and only custom events are mapped"
        );
        let expected =
            format!("f:4:{column}: warning: spec.mapping: {problem}; input: custom or auto");
        assert_eq!(shown(&reading), [expected]);
        assert_eq!(reading.catalogue.topics().count(), 1);
    }
}

#[test]
fn statuses_of_a_document_override_topic_and_profile() {
    for (of_topic, own, success, never_retry) in [
        ("{}", "{neverRetry: [204]}", false, true),
        ("{}", "{retryOn: [204]}", false, false),
        ("{success: [200, 204]}", "{retryOn: [204]}", false, false),
        ("{neverRetry: [204]}", "{success: [204]}", true, false),
        ("{retryOn: [204]}", "{neverRetry: [204]}", false, true),
    ] {
        let topic = format!("{TOPIC}spec: {{delivery: {{retry: {of_topic}}}}}\n---\n");
        let retry = subscription(&format!("{topic}{HEAD}{URL}  retry: {own}\n")).retry.clone();
        let found = (retry.success.contains(204), retry.never_retry.contains(204));
        assert_eq!(found, (success, never_retry), "{of_topic} {own}");
    }
}

#[test]
fn schedules_are_read_by_kind() {
    let s = SECOND_MS;
    for (text, kind, max_ms) in [
        ("{}", Kind::Exponential { delay_ms: s }, Some(HOUR_MS)),
        ("{delay: PT0.2S}", Kind::Exponential { delay_ms: 200 }, Some(HOUR_MS)),
        ("{kind: linear, delay: PT3S, max: PT9S}", Kind::Linear { delay_ms: 3 * s }, Some(9 * s)),
        ("{kind: linear}", Kind::Linear { delay_ms: s }, Some(HOUR_MS)),
        ("{kind: constant, delay: PT3H}", Kind::Constant { delay_ms: 3 * HOUR_MS }, None),
        (
            "{kind: waits, waits: [PT5H, PT1S]}",
            Kind::Waits { waits_ms: [5 * HOUR_MS, s].into() },
            None,
        ),
        (
            "{kind: moments, moments: [PT1S, PT3S], max: PT2S}",
            Kind::Moments { moments_ms: [s, 3 * s].into() },
            Some(2 * s),
        ),
    ] {
        let subscription = with_spec(&format!("  retry: {{schedule: {text}}}\n"));
        assert_eq!(subscription.retry.schedule, Schedule { kind, max_ms }, "{text}");
    }
}

#[test]
fn dead_letters_are_dropped_only_where_the_effective_sink_is_none() {
    let topic = |dead_letter: &str| {
        format!("{TOPIC}spec: {{delivery: {{deadLetter: {dead_letter}}}}}\n---\n")
    };
    for (of_topic, own, sink) in [
        ("none", "", Sink::None),
        ("none", "  deadLetter: {delay: PT1M}\n", Sink::DefaultContainer),
        ("{sink: s3://bucket}", "  deadLetter: none\n", Sink::None),
    ] {
        let reading = read_one(&format!("{}{HEAD}{URL}{own}", topic(of_topic)));
        let catalogue = reading.into_result().unwrap();
        assert_eq!(
            catalogue.subscriptions().next().map(|s| s.dead_letter.sink.clone()),
            Some(sink),
            "{of_topic} {own}"
        );
    }
}

#[test]
fn a_sink_is_any_address_or_a_topic() {
    let url = "https://lost.example.com/in?code=x";
    for (sink, expected) in [
        ("s3://letters/shop", Sink::Container("letters/shop".parse().unwrap())),
        (url, Sink::Address(url.parse().unwrap())),
        ("http://127.0.0.1:9180/", Sink::Address("http://127.0.0.1:9180/".parse().unwrap())),
        ("sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost", queue()),
        ("lost", queue()),
        ("pubsub://lost", Sink::Address(url.parse().unwrap())),
        ("{topic: n/lost}", Sink::Topic("n/lost".parse().unwrap())),
    ] {
        let others = format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {{lost:              'sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost', 'pubsub://lost': '{url}'}}\n---\n{}{URL}",
            HEAD.replace("topic: t", "topic: lost")
        );
        let sink = if sink.starts_with('{') { sink.to_owned() } else { format!("'{sink}'") };
        for text in [
            format!("{HEAD}{URL}  deadLetter: {{sink: {sink}}}\n{others}"),
            format!(
                "{TOPIC}spec: {{delivery: {{deadLetter: {{sink: {sink}}}}}}}\n---\n{HEAD}{URL}{others}"
            ),
        ] {
            let reading = read_one(&text);
            assert_eq!(shown(&reading), Vec::<String>::new(), "{text}");
            let found = reading.catalogue.subscription(&"n/t/s".parse().unwrap()).unwrap();
            assert_eq!(found.dead_letter.sink, expected, "{text}");
        }
    }
}

fn queue() -> Sink {
    Sink::Queue("sqs.eu-west-1.amazonaws.com/123456789012/lost".parse().unwrap())
}

#[test]
fn operators_and_members_side_by_side_all_have_to_hold() {
    let exact =
        |name: &str, value: &str| Filter::Exact { name: name.to_owned(), value: value.to_owned() };
    let suffix = |value: &str| Filter::Suffix { name: "s".to_owned(), value: value.to_owned() };
    let cesql = |text: &str| Filter::Cesql(text.parse().unwrap());
    for (text, filter) in [
        ("{exact: {n: 5, b: true}}", Filter::All(vec![exact("n", "5"), exact("b", "true")])),
        ("{suffix: {s: x}, exact: {a: yes}}", Filter::All(vec![exact("a", "yes"), suffix("x")])),
        ("{not: {any: [{suffix: {s: x}}]}}", Filter::Not(Box::new(Filter::Any(vec![suffix("x")])))),
        (
            "{cesql: n in (5), exact: {a: yes}}",
            Filter::All(vec![exact("a", "yes"), cesql("n IN (5)")]),
        ),
    ] {
        assert_eq!(with_spec(&format!("  filter: {text}\n")).filter, filter, "{text}");
    }
}

#[test]
fn a_filter_may_name_attributes_of_both_schemas_and_any_member_of_custom_events() {
    for filter in ["{exact: {type: a, myext2: b}}", "{prefix: {eventType: a, dataVersion: '1'}}"] {
        with_spec(&format!("  filter: {filter}\n"));
    }
    let found = |filter: &str| {
        let text = format!("{TOPIC}spec: {{input: custom}}\n---\n{HEAD}{URL}  filter: {filter}\n");
        shown(&read_one(&text))
    };
    assert_eq!(found("{exact: {orderKind: a, order-kind: b}}"), [""; 0]);
    assert_eq!(
        found("{exact: {order.kind: a}}"),
        ["f:11:20: warning: spec.filter.exact.order.kind: \"order.kind\" is read as one \
          top-level member, not a path; a filter cannot match nested members"]
    );
}

#[test]
fn a_destination_may_be_a_key_of_a_destinations_document() {
    let destinations = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {billing: 'https://b/x', bad: 7}\n";
    let text = format!("{HEAD}  destination: {{url: billing}}\n{destinations}");
    let reading = read_one(&text);
    assert_eq!(
        shown(&reading),
        ["f:9:37: error: spec.bad: expected text, found a whole number; write it in quotes"]
    );
    let urls: Vec<String> =
        reading.catalogue.subscriptions().map(|s| s.destination.display()).collect();
    assert_eq!(urls, ["https://b/x"]);
    let text = format!("{HEAD}  destination: {{url: bad}}\n{destinations}");
    assert_eq!(
        read_one(&text).findings.len(),
        1,
        "what is reported once is not reported at every use"
    );
}

#[test]
fn names_are_checked_and_unique() {
    let subscription = |metadata: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {metadata}\nspec:\n{URL}"
        )
    };
    for (metadata, expected) in [
        ("{topic: t, name: s}", "f:3:11: error: metadata.namespace: namespace is missing"),
        (
            "{namespace: a/b, topic: t, name: s}",
            "f:3:23: error: metadata.namespace: not a valid name: a name has",
        ),
        (
            "{namespace: n, topic: t, name: _s}",
            "f:3:42: error: metadata.name: not a valid name: names that begin with _",
        ),
        (
            "{namespace: n, topic: t, name: 7}",
            "f:3:42: error: metadata.name: expected text, found a whole number; write",
        ),
        (
            "{namespace: n, topic: t, name: s, labels: {}}",
            "f:3:45: error: metadata.labels: unknown field",
        ),
    ] {
        let reading = read_one(&subscription(metadata));
        assert_eq!(reading.findings.len(), 1, "{metadata}: {:?}", shown(&reading));
        assert!(shown(&reading)[0].starts_with(expected), "{metadata}: {:?}", shown(&reading));
    }
    let (subscription, topic) = (subscription("{namespace: n, topic: t, name: s}"), TOPIC);
    let text = format!("{subscription}---\n{topic}");
    let reading = read(&[Source { name: "a", text: &text }, Source { name: "b", text: &text }]);
    assert_eq!(
        shown(&reading),
        [
            "b:3:42: error: metadata.name: the subscription n/t/s is defined twice; the first is \
             at a:3:42; remove or rename one of them",
            "b:9:32: error: metadata.name: the topic n/t is defined twice; the first is at a:9:32; \
             remove or rename one of them",
        ]
    );
    assert_eq!(reading.catalogue.subscriptions().count(), 1);
}

#[test]
fn what_is_odd_is_a_warning_and_loads() {
    let url = "destination: {url: http://h/}\n ";
    for (marked, warning) in [
        (
            "destination: {url: ^'http://u:secret@h/'}".to_owned(),
            "destination.url: the URL contains credentials",
        ),
        (format!("{url} deadLetter: ^none"), "deadLetter: events that cannot"),
        (
            format!("{url} deadLetter: {{sink: ^'https://u:secret@h/'}}"),
            "deadLetter.sink: the URL contains credentials",
        ),
    ] {
        let reading =
            finds_one(&format!("{HEAD}  {marked}\n"), &format!("warning: spec.{warning}"));
        assert_eq!(reading.findings.len(), 1, "{marked}");
        assert!(!shown(&reading)[0].contains("secret"), "{marked}");
        assert_eq!(reading.into_result().map(|catalogue| catalogue.subscriptions().count()), Ok(1));
    }
}

#[test]
fn null_does_not_remove_what_the_topic_states_and_says_so() {
    let topic = format!(
        "{TOPIC}spec: {{delivery: {{destination: {{auth: {{bearer: {{token: 'env:T'}}}}}}, batch: {{maxEvents: 9}}}}}}\n---\n"
    );
    let spec = "  destination: {url: 'http://h/', auth: null, signing: null}\n  batch: null\n";
    let reading = read_one(&format!("{topic}{HEAD}{spec}"));
    let found = shown(&reading);
    assert_eq!(found.len(), 2, "{found:?}");
    for (line, field) in found.iter().zip(["spec.destination.auth", "spec.batch"]) {
        assert!(line.contains(&format!("{field}: null has no effect: the value at f:")), "{line}");
    }
    let subscription = reading.catalogue.subscriptions().next().expect("one");
    assert!(subscription.destination.auth.is_some() && subscription.batch.is_some());
}
