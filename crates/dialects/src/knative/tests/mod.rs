use std::sync::Arc;

use super::super::Severity;
use crate::tests::support::{named, native_topic, origins, problems as shown, read_one};
use delivery::event::Members;
use delivery::event::schema::Schema;
use delivery::subscription::dead_letter_format::Response;
use delivery::subscription::profile::Dialect;
use delivery::subscription::sink::{Container, Sink};
use delivery::subscription::{ReplyTo, Subscription};
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use delivery::waits::{Kind, Moments, Schedule};

const EXAMPLE: &str = include_str!("../../../../../examples/knative.yaml");
const TRIGGER: &str =
    "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t}\nspec:\n  broker: b\n";
const SUBSCRIBER: &str = "  subscriber: {uri: http://h/}\n";

/// Returns the notes about a text.
fn notes(text: &str) -> Vec<String> {
    let findings = read_one(text).findings;
    let notes = findings.iter().filter(|finding| finding.severity == Severity::Note);
    notes.map(ToString::to_string).collect()
}

/// Returns the first subscription of a text, and the findings.
fn subscription(text: &str) -> (Arc<Subscription>, Vec<String>) {
    let reading = read_one(text);
    let found = shown(&reading);
    let mut subscriptions = reading.catalogue.subscriptions();
    let first =
        subscriptions.next().unwrap_or_else(|| panic!("no subscription in\n{text}\n{found:?}"));
    (Arc::clone(first), found)
}

fn broker(annotations: &str, spec: &str) -> String {
    let metadata = format!("{{name: b, annotations: {{{annotations}}}}}");
    format!(
        "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {metadata}\nspec: {spec}\n---\n"
    )
}

fn class(name: &str) -> String {
    format!("eventing.knative.dev/broker.class: {name}")
}

fn trigger(rest: &str) -> String {
    format!("{TRIGGER}{SUBSCRIBER}{rest}")
}

/// A Subscription of the channel `c` of this kind, with these additional fields.
fn channel_subscription(kind: &str, fields: &str) -> String {
    format!(
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s}}\nspec:\n  \
         channel: {{apiVersion: messaging.knative.dev/v1, kind: {kind}, name: c}}\n{fields}---\n"
    )
}

fn waits_ms(schedule: &Schedule, retries: u32) -> Vec<u64> {
    let moments = Moments { first_attempt_ms: 0, outcome_ms: 0 };
    (1..=retries).map(|k| schedule.wait_ms(k, moments)).collect()
}

mod classes;
mod cluster;
mod described;
mod filters;
mod old;
mod refused;
mod stock;
mod topics;
mod unread;

#[test]
fn a_subscriber_is_all_that_a_trigger_needs() {
    let (subscription, found) = subscription(&format!("{}{}", broker("", "{}"), trigger("")));
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(subscription.name.to_string(), "default/b/t");
    assert_eq!((subscription.dialect, subscription.retry.max_attempts), (Dialect::Knative, 11));
    assert_eq!(subscription.destination.url.as_str(), "http://h/");
    assert_eq!(subscription.destination.response_timeout_ms, 30 * SECOND_MS);
    assert_eq!(subscription.dead_letter.sink, Sink::DefaultContainer);
}

#[test]
fn the_example_is_what_its_objects_say() {
    let reading = read_one(EXAMPLE);
    assert_eq!(shown(&reading), Vec::<String>::new());
    let container =
        Sink::Container(Container { bucket: "dead-letters".to_owned(), prefix: String::new() });
    let billing = named(&reading, "example-namespace/with-dead-letter-sink/billing");
    assert_eq!(billing.destination.url.as_str(), "http://127.0.0.1:9180/events");
    assert_eq!(waits_ms(&billing.retry.schedule, 5), [1, 2, 4, 8, 16].map(|s| s * SECOND_MS));
    assert_eq!((billing.retry.max_attempts, &billing.dead_letter.sink), (6, &container));
    let audit = named(&reading, "example-namespace/with-dead-letter-sink/audit");
    assert_eq!((audit.retry.max_attempts, &audit.dead_letter.sink), (1, &container));
    assert_eq!(
        [404, 408, 429].map(|status| audit.retry.never_retry.contains(status)),
        [true, false, true]
    );
    let orders = named(&reading, "example-namespace/orders/example-subscription");
    assert_eq!(waits_ms(&orders.retry.schedule, 3), [2, 4, 8].map(|s| s * SECOND_MS));
    assert_eq!(
        (orders.retry.max_attempts, orders.destination.response_timeout_ms),
        (4, 10 * SECOND_MS)
    );
    assert_eq!(orders.retry.retry_after_max_ms, 600 * SECOND_MS);
}

#[test]
fn a_trigger_overrides_its_broker_field_by_field_in_any_order() {
    let of_broker = "{delivery: {retry: 5, backoffPolicy: linear, backoffDelay: PT2S, timeout: PT5S, retryAfterMax: PT0S, \
                     deadLetterSink: {uri: s3://of-broker}}}";
    let linear = |delay_ms| Schedule { kind: Kind::Linear { delay_ms }, max_ms: None };
    let exponential = |delay_ms| Schedule { kind: Kind::Exponential { delay_ms }, max_ms: None };
    for (of_trigger, attempts, schedule) in [
        ("{}", 6, linear(2_000)),
        ("{retry: 0}", 1, linear(2_000)),
        ("{retry: 1}", 2, linear(2_000)),
        ("{backoffPolicy: exponential}", 6, exponential(2_000)),
        ("{backoffDelay: PT0.25S}", 6, linear(250)),
        ("{backoffMax: PT3S}", 6, Schedule { max_ms: Some(3_000), ..linear(2_000) }),
    ] {
        let (broker, trigger) =
            (broker(&class("Kafka"), of_broker), trigger(&format!("  delivery: {of_trigger}\n")));
        for text in [format!("{broker}{trigger}"), format!("{trigger}---\n{broker}")] {
            let (subscription, found) = subscription(&text);
            assert_eq!(found, Vec::<String>::new());
            assert_eq!(
                (subscription.retry.max_attempts, &subscription.retry.schedule),
                (attempts, &schedule),
                "{text}"
            );
            assert_eq!(subscription.destination.response_timeout_ms, 5 * SECOND_MS);
            assert_eq!(subscription.retry.retry_after_max_ms, 0);
            assert!(matches!(
                &subscription.dead_letter.sink,
                Sink::Container(container) if container.bucket == "of-broker"
            ));
        }
    }
}

#[test]
fn beside_own_settings_only_the_sink_of_a_channel_based_broker_is_inherited() {
    let goes_to = |subscription: &Subscription, bucket: &str| matches!(&subscription.dead_letter.sink, Sink::Container(container) if container.bucket == bucket);
    let kafka =
        "channelTemplateSpec: {apiVersion: messaging.knative.dev/v1beta1, kind: KafkaChannel}, ";
    for template in ["", kafka] {
        let of_broker = format!(
            "{{{template}delivery: {{retry: 5, timeout: PT5S, deadLetterSink: {{uri: s3://of-broker}}}}}}"
        );
        let broker = broker(&class("MTChannelBasedBroker"), &of_broker);
        let text = |of_trigger: &str| format!("{broker}{}", trigger(of_trigger));
        let attempts_and_timeout = |subscription: &Subscription| {
            (subscription.retry.max_attempts, subscription.destination.response_timeout_ms)
        };
        let (inherited, _) = subscription(&text(""));
        assert_eq!(attempts_and_timeout(&inherited), (6, 5 * SECOND_MS), "{template}");
        assert!(goes_to(&inherited, "of-broker"), "{template}");
        let (own, found) = subscription(&text("  delivery: {backoffDelay: PT1S}\n"));
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(attempts_and_timeout(&own), (1, 30 * SECOND_MS), "{template}");
        assert!(goes_to(&own, "of-broker"), "{template}");
        let (other, _) = subscription(&text("  delivery: {deadLetterSink: {uri: s3://own}}\n"));
        assert!(goes_to(&other, "own"), "{template}");
    }
}

#[test]
fn beside_own_settings_only_the_sink_of_an_in_memory_channel_is_inherited() {
    let text = |kind: &str, own: &str| {
        format!(
            "apiVersion: messaging.knative.dev/v1\nkind: {kind}\nmetadata: {{name: c}}\n\
             spec: {{delivery: {{retry: 5, deadLetterSink: {{uri: s3://of-channel}}}}}}\n---\n{}",
            channel_subscription(kind, &format!("{SUBSCRIBER}{own}"))
        )
    };
    let own = "  delivery: {timeout: PT9S}\n";
    for (kind, own, attempts) in
        [("InMemoryChannel", "", 6), ("InMemoryChannel", own, 1), ("KafkaChannel", own, 6)]
    {
        let (subscription, found) = subscription(&text(kind, own));
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(subscription.retry.max_attempts, attempts, "{kind} {own}");
        let sink = &subscription.dead_letter.sink;
        assert!(
            matches!(sink, Sink::Container(container) if container.bucket == "of-channel"),
            "{kind} {own}"
        );
    }
}

#[test]
fn the_format_is_the_triggers_else_the_brokers_else_that_of_the_publisher() {
    let (json, binary) = (Some(Schema::CloudEventsStructured), Some(Schema::CloudEventsBinary));
    for (of_broker, of_trigger, schema) in [
        ("", "", None),
        ("", "format: json", json),
        ("format: binary", "", binary),
        ("format: binary", "retry: 3", binary),
        ("format: binary", "format: json", json),
        ("format: json", "format: binary", binary),
        ("format: json", "format: null", json),
    ] {
        let broker = broker(&class("Kafka"), &format!("{{delivery: {{{of_broker}}}}}"));
        let (subscription, found) = subscription(&format!(
            "{broker}{}",
            trigger(&format!("  delivery: {{{of_trigger}}}\n"))
        ));
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(subscription.destination.schema, schema, "{of_broker} {of_trigger}");
        assert!(!subscription.destination.notification_headers);
    }
}

#[test]
fn what_is_missing_is_exponential_from_a_second_each_on_its_own() {
    for (delivery, kind) in [
        ("{retry: 2}", Kind::Exponential { delay_ms: 1_000 }),
        ("{retry: 2, backoffDelay: PT3S}", Kind::Exponential { delay_ms: 3_000 }),
        ("{retry: 2, backoffPolicy: linear}", Kind::Linear { delay_ms: 1_000 }),
    ] {
        let of_broker = broker("", &format!("{{delivery: {delivery}}}"));
        let (subscription, _) = subscription(&format!("{of_broker}{}", trigger("")));
        assert_eq!(subscription.retry.schedule, Schedule { kind, max_ms: None }, "{delivery}");
        assert_eq!(
            (subscription.retry.max_attempts, subscription.retry.retry_after_max_ms),
            (3, HOUR_MS)
        );
    }
}

/// Returns a trigger with this `delivery`, its broker, another broker with a trigger, and a
/// Destinations document.
fn with_sink(delivery: &str) -> String {
    let destinations = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  v1/Service/default/s: s3://mapped\n  \
                        v1/Service/default/h: https://h/base/x\n  v1/Service/default/q: sqs://127.0.0.1:4566/000000000000/q\n  \
                        pubsub://p: s3://topic\n";
    let kafka = broker(&class("Kafka"), "{}");
    let other = format!("{kafka}{}---\n", trigger(""));
    let other = other.replace("name: b", "name: lost").replace("broker: b", "broker: lost");
    format!("{other}{kafka}{}{destinations}", trigger(&format!("  delivery: {{{delivery}}}\n")))
}

/// Returns the sink of that trigger, and the findings.
fn sink_of(delivery: &str) -> (Sink, Vec<String>) {
    let reading = read_one(&with_sink(delivery));
    (named(&reading, "default/b/t").dead_letter.sink.clone(), shown(&reading))
}

#[test]
fn a_sink_is_an_address_or_a_broker_or_channel_in_the_files() {
    let service = |name: &str| {
        format!("deadLetterSink: {{ref: {{apiVersion: v1, kind: Service, name: {name}}}}}")
    };
    let container = |text: &str| Sink::Container(text.parse().unwrap());
    let address = |url: &str| Sink::Address(url.parse().unwrap());
    let queue = Sink::Queue("127.0.0.1:4566/000000000000/q".parse().unwrap());
    let lost = "ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: lost}";
    for (delivery, expected) in [
        ("deadLetterSink: {uri: s3://direct/x}".to_owned(), container("direct/x")),
        ("deadLetterSink: {uri: pubsub://p}".to_owned(), container("topic")),
        ("deadLetterSink: {uri: 'https://h/?a=b'}".to_owned(), address("https://h/?a=b")),
        ("deadLetterSink: {uri: 'sqs://127.0.0.1:4566/000000000000/q'}".to_owned(), queue.clone()),
        (service("s"), container("mapped")),
        (service("q"), queue),
        (service("h"), address("https://h/base/x")),
        (service("h").replace("}}", "}, uri: y?z=1}"), address("https://h/base/y?z=1")),
        (format!("deadLetterSink: {{{lost}}}"), Sink::Topic("default/lost".parse().unwrap())),
    ] {
        assert_eq!(sink_of(&delivery), (expected, Vec::new()), "{delivery}");
    }
}

#[test]
fn a_sink_that_nothing_here_names_is_a_warning_and_the_default_container() {
    let broker = |name: &str| {
        format!("ref: {{apiVersion: eventing.knative.dev/v1, kind: Broker, name: {name}}}")
    };
    let add =
        "dead letters go to the default container; add to the spec of a Destinations document";
    for (delivery, sink, warning) in [
        (
            "deadLetterSink: {ref: {apiVersion: v1, kind: Service, name: x, namespace: n}}"
                .to_owned(),
            Sink::DefaultContainer,
            format!(
                "no file or Destinations document defines \"v1/Service/n/x\"; {add}: \
                 v1/Service/n/x: s3://bucket"
            ),
        ),
        (
            format!("deadLetterSink: {{{}}}", broker("nowhere")),
            Sink::DefaultContainer,
            format!(
                "no file or Destinations document defines \
                 \"eventing.knative.dev/v1/Broker/default/nowhere\"; {add}"
            ),
        ),
        (
            "deadLetterSink: {uri: pubsub://q}".to_owned(),
            Sink::DefaultContainer,
            format!("no file or Destinations document defines \"pubsub://q\"; {add}"),
        ),
        (
            "errorSink: {uri: s3://bucket}".to_owned(),
            Sink::Container("bucket".parse().unwrap()),
            "errorSink: read as deadLetterSink".to_owned(),
        ),
        (
            format!("deadLetterSink: {{{}, uri: /in}}", broker("lost")),
            Sink::Topic("default/lost".parse().unwrap()),
            "deadLetterSink.uri: no effect: the ref is a topic, which has no paths".to_owned(),
        ),
        (
            format!("deadLetterSink: {{{}}}", broker("b")),
            Sink::Topic("default/b".parse().unwrap()),
            "default/b is the subscription's own topic: dead letters go to the default container"
                .to_owned(),
        ),
    ] {
        let (found_sink, found) = sink_of(&delivery);
        assert_eq!((found_sink, found.len()), (sink, 1), "{delivery}: {found:?}");
        assert!(found[0].starts_with("f:24:") && found[0].contains(" warning: "), "{found:?}");
        assert!(found[0].contains(&warning), "{delivery}: {found:?}");
    }
}

#[test]
fn a_uri_beside_a_reference_is_relative_to_it() {
    let destinations = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {v1/Service/n/s: 'https://h/base/x'}\n";
    for (uri, url) in [("/in", "https://h/in"), ("y?z=1", "https://h/base/y?z=1")] {
        let reference = "ref: {apiVersion: v1, kind: Service, name: s, namespace: n}";
        let text = format!("{TRIGGER}  subscriber: {{{reference}, uri: {uri}}}\n{destinations}");
        assert_eq!(subscription(&text).0.destination.url.as_str(), url);
    }
}

#[test]
fn replies_go_to_an_address_or_to_a_topic() {
    let text = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {name: s, namespace: n}\nspec:\n  \
                channel: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: c}\n  \
                subscriber: {uri: 'http://h/'}\n  reply: REPLY\n---\n\
                apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {name: c, namespace: n}\n---\n\
                apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {name: other, namespace: n}\n";
    let channel =
        "{ref: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: other}}";
    for (reply, to) in [
        ("{uri: 'http://reply/'}", ReplyTo::Address("http://reply/".parse().unwrap())),
        (channel, ReplyTo::Topic("n/other".parse().unwrap())),
    ] {
        assert_eq!(subscription(&text.replace("REPLY", reply)).0.reply, Some(to));
    }
    for (uri, target) in
        [("s3://bucket", "a container"), ("sqs://127.0.0.1:4566/000000000000/q", "a queue")]
    {
        let found = shown(&read_one(&text.replace("REPLY", &format!("{{uri: '{uri}'}}"))));
        let help = "use https://…, http://…, or the ref of a channel or broker";
        assert_eq!(
            found,
            [format!("f:7:16: error: spec.reply.uri: {target} cannot receive replies; {help}")]
        );
    }
    let trigger = subscription(&format!("{TRIGGER}  subscriber: {{uri: 'http://h/'}}\n")).0;
    assert_eq!(trigger.reply, Some(ReplyTo::Topic(trigger.name.topic.clone())));
}

#[test]
fn an_event_source_is_one_subscription_of_its_own_topic() {
    let text = "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {name: ping}\nspec:\n  \
                schedule: '* * * * *'\n  sink: {uri: 'http://h/'}\n  ceOverrides: {extensions: {a: b}}\n";
    let reading = read_one(text);
    assert_eq!(named(&reading, "default/ping/ping").destination.url.as_str(), "http://h/");
    assert_eq!(
        shown(&reading),
        [
            "f:1:1: warning: event sources are not run; publish their events to default/ping",
            "f:7:3: warning: spec.ceOverrides: ceOverrides are not supported by this version; events are sent as they were published",
        ]
    );
}

#[test]
fn an_event_source_that_publishes_to_a_broker_or_channel_that_no_file_has_is_passed_over() {
    let destinations = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  \
                        eventing.knative.dev/v1/Broker/default/b: 'http://h/'\n";
    for (api_version, kind) in
        [("eventing.knative.dev/v1", "Broker"), ("messaging.knative.dev/v1", "InMemoryChannel")]
    {
        let source = format!(
            "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {{name: ping}}\nspec: {{sink: {{ref: \
             {{apiVersion: {api_version}, kind: {kind}, name: b}}}}}}\n"
        );
        let reading = read_one(&source);
        assert_eq!(
            shown(&reading),
            [
                "f:4:20: warning: spec.sink.ref: event sources are not run; this source publishes to \
              default/b and needs no subscription; publish its events to default/b yourself"
            ]
        );
        assert_eq!(reading.catalogue.subscriptions().count(), 0);
        if kind == "Broker" {
            let (mapped, _) = subscription(&format!("{source}{destinations}"));
            assert_eq!(mapped.name.to_string(), "default/ping/ping");
        }
    }
}

#[test]
fn what_is_null_counts_as_absent() {
    let fields = "retry: null, backoffPolicy: null, backoffDelay: null, backoffMax: null, timeout: null, \
                  retryAfterMax: null, format: null, deadLetterSink: null, errorSink: null";
    let metadata = "metadata: {name: t, namespace: null, annotations: null}";
    let rest =
        format!("  filter: {{attributes: null}}\n  filters: null\n  delivery: {{{fields}}}\n");
    let of_broker = broker(&class("Kafka"), "{config: null, delivery: null}");
    let text = format!("{of_broker}{}", trigger(&rest));
    let text = text
        .replace("metadata: {name: t}", metadata)
        .replace("{uri: http://h/}", "{ref: null, uri: http://h/}");
    let (subscription, found) = subscription(&text);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(
        (subscription.retry.max_attempts, &subscription.filter),
        (11, &delivery::subscription::filter::Filter::EVERYTHING)
    );
    assert_eq!(subscription.name.to_string(), "default/b/t");
}

#[test]
fn a_broker_of_googles_group_is_of_its_class_without_an_annotation() {
    let text = format!("{}{}", broker("", "{}"), trigger(""))
        .replace("eventing.knative.dev/v1", "eventing.cloud.google.com/v1beta1");
    let (subscription, found) = subscription(&text);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(subscription.retry.schedule.kind, Kind::ExponentialFromZero { delay_ms: 200 });
    assert_eq!(subscription.retry.schedule.max_ms, Some(600 * SECOND_MS));
}

/// A trigger and its broker with these annotations.
fn annotated(of_broker: &str, of_trigger: &str) -> String {
    let metadata = format!("metadata: {{name: t, annotations: {{{of_trigger}}}}}");
    let trigger = trigger("").replace("metadata: {name: t}", &metadata);
    format!("{}{trigger}", broker(of_broker, "{}"))
}

#[test]
fn annotations_of_a_trigger_replace_those_of_its_broker() {
    let of_broker = "lastmile.dev/retry-on: '400,409', lastmile.dev/never-retry: '500-509', \
                     lastmile.dev/max-per-second: '20', lastmile.dev/max-replies: '200', \
                     lastmile.dev/hide-path: 'true', lastmile.dev/dead-letter-response: none";
    let read = |of_trigger: &str| {
        let text = annotated(of_broker, of_trigger);
        let (subscription, found) = subscription(&text);
        assert_eq!(found, [""; 0]);
        let Subscription { retry, destination, dead_letter, .. } = &*subscription;
        assert_eq!(destination.hide_path, dead_letter.hide_path);
        let never = [400, 409, 500, 503, 418].map(|status| retry.never_retry.contains(status));
        (never, destination.max_per_second, destination.hide_path, dead_letter.response)
    };
    let of_broker_alone = ([false, false, true, true, true], Some(20), true, Response::None);
    assert_eq!(read(""), of_broker_alone);
    let own = "lastmile.dev/retry-on: 503, lastmile.dev/max-per-second: 5, lastmile.dev/hide-path: 'false', \
               lastmile.dev/dead-letter-response: beginning";
    let both = ([true, false, true, false, true], Some(5), false, Response::Beginning);
    assert_eq!(read(own), both);
    let max_replies = |of_broker| {
        let reading = read_one(&broker(of_broker, "{}"));
        reading
            .catalogue
            .topic(&"default/b".parse().unwrap())
            .map(|topic| topic.settings.max_replies)
    };
    assert_eq!(max_replies(of_broker), Some(200));
    assert_eq!(max_replies("a: b"), Some(64));
    assert_eq!(max_replies("lastmile.dev/max-replies: -1"), None, "it is left out");
}

#[test]
fn an_annotation_that_is_wrong_or_without_effect_is_reported() {
    for (text, expected) in [
        (
            annotated("a: b", "lastmile.dev/nevr-retry: '1'"),
            "f:8:60: warning: metadata.annotations.lastmile.dev/nevr-retry: unknown annotation \"lastmile.dev/nevr-retry\"; did you mean lastmile.dev/never-retry?",
        ),
        (
            annotated("a: b", "lastmile.dev/max-replies: 3"),
            "f:8:61: warning: metadata.annotations.lastmile.dev/max-replies: no effect: set it on \
             a Broker or a Channel",
        ),
        (
            broker("lastmile.dev/max-replies: -1", "{}"),
            "f:3:61: error: metadata.annotations.lastmile.dev/max-replies: \"-1\" is out of range; \
             expected a whole number from 0 to 10000",
        ),
        (
            annotated("lastmile.dev/max-per-second: many", ""),
            "f:3:64: error: metadata.annotations.lastmile.dev/max-per-second: \"many\" is out of \
             range; expected a whole number from 1 to 10000",
        ),
        (
            annotated("lastmile.dev/hide-path: 'yes'", ""),
            "f:3:59: error: metadata.annotations.lastmile.dev/hide-path: \"yes\" is not a valid \
             value; known: true, false",
        ),
        (
            annotated("lastmile.dev/dead-letter-response: nothing", ""),
            "f:3:70: error: metadata.annotations.lastmile.dev/dead-letter-response: \"nothing\" is \
             not a valid value; known: beginning, none",
        ),
        (
            native_topic("default/b", "") + &broker("lastmile.dev/max-replies: 200", "{}"),
            "f:8:61: warning: metadata.annotations.lastmile.dev/max-replies: no effect: default/b is described by the Topic at f:3:38; set maxReplies there",
        ),
    ] {
        assert_eq!(shown(&read_one(&text)), [expected], "{text}");
    }
}

#[test]
fn every_stated_value_has_its_place() {
    let of_broker =
        broker("", "{delivery: {retry: 5, timeout: PT5S, deadLetterSink: {uri: s3://of-broker}}}");
    let metadata = "metadata: {name: t, annotations: {lastmile.dev/retry-on: '400'}}";
    let text = trigger("  delivery: {retry: 0, backoffDelay: PT2S, format: json}\n")
        .replace("metadata: {name: t}", metadata);
    let reading = read_one(&format!("{of_broker}{text}"));
    assert_eq!(
        origins(&reading, "default/b/t"),
        [
            "deadLetter.sink f:4:66",
            "maxAttempts f:12:21",
            "neverRetry f:8:58",
            "retryOn f:8:58",
            "schedule f:12:38",
            "schema f:12:52",
            "timeout f:4:38",
            "url f:11:21",
        ]
    );
}

#[test]
fn a_schedule_in_parts_has_all_its_places_and_the_class_that_numbers_it() {
    let of_broker = broker(
        &class("Kafka"),
        "{delivery: {backoffPolicy: linear, deadLetterSink: {uri: 'pubsub://nowhere'}}}",
    );
    let reading =
        read_one(&format!("{of_broker}{}", trigger("  delivery: {backoffDelay: PT2S}\n")));
    let origins = &reading.origins[&"default/b/t".parse().unwrap()];
    assert_eq!(origins["schedule"], "f:4:34, f:12:28, numbered as in Kafka");
    assert!(
        !origins.contains_key("deadLetter.sink"),
        "an unmapped sink is not followed: {origins:?}"
    );
}

#[test]
fn fields_that_are_not_known_are_warnings_with_a_suggestion() {
    let text = trigger("  delivery: {retrys: 3}\nstatus: {anything: 1}\n")
        .replace("{name: t}", "{name: t, lables: {}}");
    let of_broker = broker(&class("Kafka"), "{delivery: {}}");
    let (subscription, found) = subscription(&format!("{of_broker}{text}"));
    assert_eq!(subscription.retry.max_attempts, 1);
    assert_eq!(
        found,
        [
            "f:8:21: warning: metadata.lables: unknown field \"lables\"; did you mean labels?",
            "f:12:14: warning: spec.delivery.retrys: unknown field \"retrys\"; did you mean retry?",
        ]
    );
}

#[test]
fn a_trigger_is_left_out_when_its_broker_has_an_error() {
    let reading = read_one(&format!("{}{}", broker("", "{delivery: {retry: -1}}"), trigger("")));
    assert_eq!(
        shown(&reading),
        ["f:4:26: error: spec.delivery.retry: must be 0 to 999, but is -1"]
    );
    assert_eq!(reading.catalogue.subscriptions().count(), 0);
}

/// Returns true if the filter of a Trigger with these lines matches an event with these members.
fn takes(filter: &str, members: &str) -> bool {
    let (subscription, _) = subscription(&format!("{}{}", broker("", "{}"), trigger(filter)));
    subscription.filter.takes(&Members::parse(members).unwrap())
}

#[test]
fn more_retries_than_14_days_or_any_dialect_allow_are_a_warning() {
    const FIT: &str = "attempts fit into 14 days, the maximum duration of a delivery";
    for (delivery, attempts, expected) in [
        (
            "{retry: 28800, backoffPolicy: linear, backoffDelay: PT15S}",
            402,
            format!("of 28800 retries, only 401 are made: 402 {FIT}; retry: 401"),
        ),
        (
            "{retry: 1000, backoffPolicy: exponential, backoffDelay: PT1S}",
            20,
            format!("of 1000 retries, only 19 are made: 20 {FIT}; retry: 19"),
        ),
        (
            "{retry: 2147483647, backoffDelay: PT1S, backoffMax: PT1S}",
            1000,
            "of 2147483647 retries, only 999 are made: the limit is 1000 attempts; retry: 999"
                .to_owned(),
        ),
        ("{retry: 999, backoffDelay: PT1S}", 1000, String::new()),
    ] {
        // The setting of the broker is reported once, however many triggers inherit it.
        let other = trigger("").replace("{name: t}", "{name: u}");
        let text = format!(
            "{}{}---\n{other}",
            broker(&class("Kafka"), &format!("{{delivery: {delivery}}}")),
            trigger("")
        );
        let (subscription, found) = subscription(&text);
        assert_eq!(subscription.retry.max_attempts, attempts, "{delivery}");
        let expected = (!expected.is_empty())
            .then(|| format!("f:4:26: warning: spec.delivery.retry: {expected}"));
        assert_eq!(found, Vec::from_iter(expected), "{delivery}");
    }
}
