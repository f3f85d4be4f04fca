//! The table of classes: their numbering of retries, and the warnings about them.

use super::{broker, class, subscription, trigger, waits_ms};

/// The waits of five retries in seconds, with a delay of PT1S.
const LINEAR: [u64; 5] = [1, 2, 3, 4, 5];
const EXPONENTIAL: [u64; 5] = [2, 4, 8, 16, 32];
const LINEAR_FROM_ZERO: [u64; 5] = [0, 1, 2, 3, 4];
const EXPONENTIAL_FROM_ZERO: [u64; 5] = [1, 2, 4, 8, 16];
const FROM_ONE: [[u64; 5]; 2] = [LINEAR, EXPONENTIAL];
/// A part of the warning if no file states the class.
const UNSTATED: &str = "no file states the class of this object";
const FROM_ZERO: [[u64; 5]; 2] = [LINEAR_FROM_ZERO, EXPONENTIAL_FROM_ZERO];

/// A subscription of a channel of this API and kind, with this `delivery`, after the other
/// documents.
fn of_channel(documents: &str, api_version: &str, kind: &str, delivery: &str) -> String {
    let channel = format!("  channel: {{apiVersion: {api_version}, kind: {kind}, name: c}}\n");
    let head =
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {name: s}\nspec:\n";
    format!(
        "{documents}{head}{channel}  subscriber: {{uri: 'http://h/'}}\n  delivery: {delivery}\n"
    )
}

fn channel(api_version: &str, kind: &str, spec: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: c}}\nspec: {spec}\n---\n")
}

/// Checks the waits of both back-off policies. `text` makes the documents from a `delivery`, and
/// `warning` is a part of the only warning, if there is one.
fn each_policy_waits(
    text: impl Fn(&str) -> String,
    expected: [[u64; 5]; 2],
    warning: Option<&str>,
) {
    for (policy, expected) in ["linear", "exponential"].into_iter().zip(expected) {
        let text = text(&format!("{{retry: 5, backoffPolicy: {policy}, backoffDelay: PT1S}}"));
        let (subscription, found) = subscription(&text);
        assert_eq!(
            waits_ms(&subscription.retry.schedule, 5),
            expected.map(|s| s * 1_000),
            "{text}"
        );
        assert_eq!(found.len(), usize::from(warning.is_some()), "{text}\n{found:?}");
        let says = warning.unwrap_or_default();
        assert!(
            found.iter().all(|finding| finding.contains("warning: ") && finding.contains(says)),
            "{text}\n{found:?}"
        );
    }
}

#[test]
fn every_class_of_brokers_numbers_its_retries_in_its_way() {
    let unknown = "the broker class \"Kafkaa\" is unknown; its retries are numbered from one; did \
                   you mean Kafka?";
    for (annotations, expected, warning) in [
        (String::new(), FROM_ONE, Some(UNSTATED)),
        (class("Kafkaa"), FROM_ONE, Some(unknown)),
        (class("Kafka"), FROM_ONE, None),
        (class("KafkaNamespaced"), FROM_ONE, None),
        (class("RabbitMQBroker"), FROM_ONE, None),
        (class("MTChannelBasedBroker"), FROM_ZERO, None),
    ] {
        let of_trigger = |delivery: &str| trigger(&format!("  delivery: {delivery}\n"));
        each_policy_waits(
            |delivery| format!("{}{}", broker(&annotations, "{}"), of_trigger(delivery)),
            expected,
            warning,
        );
        each_policy_waits(
            |delivery| {
                format!(
                    "{}{}",
                    broker(&annotations, &format!("{{delivery: {delivery}}}")),
                    trigger("")
                )
            },
            expected,
            warning,
        );
    }
    let missing = "no file contains the broker default/b, so its class and delivery are unknown";
    each_policy_waits(
        |delivery| trigger(&format!("  delivery: {delivery}\n")),
        FROM_ONE,
        Some(missing),
    );
}

#[test]
fn a_channel_based_broker_is_numbered_as_the_channels_in_its_template() {
    let template = |kind: &str| {
        format!("channelTemplateSpec: {{apiVersion: messaging.knative.dev/v1beta1, kind: {kind}}}")
    };
    let config = "config: {kind: ConfigMap, name: channels, namespace: knative-eventing}";
    let unknown = "the channel kind \"Other\" is unknown; its retries are numbered from one";
    for (spec, expected, warning) in [
        (String::new(), FROM_ZERO, None),
        (
            config.to_owned(),
            FROM_ZERO,
            Some("retries are numbered from zero, as for InMemoryChannel"),
        ),
        (template("KafkaChannel"), FROM_ONE, None),
        (template("InMemoryChannel"), FROM_ZERO, None),
        (template("Other"), FROM_ONE, Some(unknown)),
    ] {
        let broker = broker(&class("MTChannelBasedBroker"), &format!("{{{spec}}}"));
        each_policy_waits(
            |delivery| format!("{broker}{}", trigger(&format!("  delivery: {delivery}\n"))),
            expected,
            warning,
        );
    }
}

#[test]
fn every_kind_of_channels_numbers_its_retries_in_its_way() {
    const CORE: &str = "messaging.knative.dev/v1";
    const GOOGLE: &str = "messaging.cloud.google.com/v1beta1";
    let none = "supports no delivery parameters in Knative; lastmile supports them";
    for (api_version, kind, expected, warning) in [
        (CORE, "InMemoryChannel", FROM_ZERO, None),
        ("messaging.knative.dev/v1beta1", "KafkaChannel", FROM_ONE, None),
        ("messaging.knative.dev/v1alpha1", "NatssChannel", FROM_ONE, Some(none)),
        (GOOGLE, "Channel", FROM_ONE, Some(none)),
        (CORE, "OtherChannel", FROM_ONE, Some("the channel kind \"OtherChannel\" is unknown")),
    ] {
        let object = channel(api_version, kind, "{}");
        each_policy_waits(
            |delivery| of_channel(&object, api_version, kind, delivery),
            expected,
            warning,
        );
        let (alone, _) = subscription(&of_channel("", api_version, kind, "{retry: 5}"));
        assert_eq!(waits_ms(&alone.retry.schedule, 5), expected[1].map(|s| s * 1_000), "{kind}");
        let with_delivery =
            |delivery: &str| channel(api_version, kind, &format!("{{delivery: {delivery}}}"));
        each_policy_waits(
            |delivery| of_channel(&with_delivery(delivery), api_version, kind, ""),
            expected,
            warning,
        );
        let plain = channel(
            CORE,
            "Channel",
            &format!("{{channelTemplate: {{apiVersion: {api_version}, kind: {kind}}}}}"),
        );
        each_policy_waits(
            |delivery| of_channel(&plain, CORE, "Channel", delivery),
            if kind == "Channel" { FROM_ONE } else { expected },
            warning,
        );
    }
    each_policy_waits(
        |delivery| of_channel(&channel(CORE, "Channel", "{}"), CORE, "Channel", delivery),
        FROM_ONE,
        Some(UNSTATED),
    );
    each_policy_waits(|delivery| of_channel("", CORE, "Channel", delivery), FROM_ONE, None);
}

#[test]
fn googlecloud_is_exponential_from_zero_up_to_ten_minutes_and_wants_a_topic_as_its_sink() {
    let text = |delivery: &str| {
        format!(
            "{}{}",
            broker(&class("googlecloud"), "{}"),
            trigger(&format!("  delivery: {delivery}\n"))
        )
    };
    let (first, found) = subscription(&text("{retry: 5, backoffDelay: PT1S}"));
    assert_eq!(waits_ms(&first.retry.schedule, 5), EXPONENTIAL_FROM_ZERO.map(|s| s * 1_000));
    assert_eq!((first.retry.schedule.max_ms, found), (Some(600_000), vec![]));
    let (capped, _) = subscription(&text("{retry: 5, backoffMax: PT3S}"));
    assert_eq!(capped.retry.schedule.max_ms, Some(3_000));
    for sink in ["s3://bucket", "https://h/", "sqs://127.0.0.1:4566/000000000000/q"] {
        let (_, found) = subscription(&text(&format!("{{deadLetterSink: {{uri: '{sink}'}}}}")));
        assert_eq!(
            found,
            [
                "f:12:36: warning: spec.delivery.deadLetterSink.uri: a broker of class googlecloud supports only a pubsub:// topic as its sink"
            ]
        );
    }
    let mapped = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {'pubsub://p': 'https://h/'}\n";
    let (_, found) =
        subscription(&format!("{}{mapped}", text("{deadLetterSink: {uri: 'pubsub://p'}}")));
    assert_eq!(found, Vec::<String>::new());
    for in_broker in [true, false] {
        let delivery = "{retry: 5, backoffPolicy: linear}";
        let text = if in_broker {
            format!(
                "{}{}",
                broker(&class("googlecloud"), &format!("{{delivery: {delivery}}}")),
                trigger("")
            )
        } else {
            text(delivery)
        };
        let found = super::shown(&super::read_one(&text));
        assert_eq!(found.len(), 1, "{found:?}");
        let at = if in_broker { "f:4:44" } else { "f:12:39" };
        let message = "error: spec.delivery.backoffPolicy: a broker of class googlecloud supports \
                       only exponential; backoffPolicy: exponential";
        assert_eq!(found[0], format!("{at}: {message}"));
    }
}
