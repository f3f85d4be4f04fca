//! Objects that are not read: a warning with the subscriptions that they change, or a count.

use super::*;
use crate::LeftOut;

/// A document of this kind.
fn object(api_version: &str, kind: &str, spec: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n---\n")
}

/// A Kafka broker `b` with settings of its own, and its trigger with this subscriber.
fn delivered(subscriber: &str) -> String {
    let broker = broker(&class("Kafka"), "{delivery: {retry: 1}}");
    format!("{broker}{TRIGGER}  subscriber: {subscriber}\n---\n")
}

/// The warnings and notes of a text.
fn found(text: &str) -> Vec<String> {
    let findings = read_one(text).findings;
    let reported = findings.iter().filter(|finding| finding.severity != Severity::Error);
    reported.map(|finding| format!("{}: {}", finding.severity.as_str(), finding.message)).collect()
}

const UNREAD: [(&str, &str); 6] = [
    ("flows.knative.dev/v1", "Sequence"),
    ("flows.knative.dev/v1", "Parallel"),
    ("eventing.knative.dev/v1alpha1", "EventTransform"),
    ("eventing.knative.dev/v1alpha1", "KafkaSink"),
    ("sinks.knative.dev/v1alpha1", "JobSink"),
    ("sinks.knative.dev/v1alpha1", "IntegrationSink"),
];

#[test]
fn an_object_that_a_subscription_sends_to_is_named_with_the_subscription() {
    for (api_version, kind) in UNREAD {
        let reference = format!("{{ref: {{apiVersion: {api_version}, kind: {kind}, name: x}}}}");
        let unread = object(api_version, kind, "{}");
        let sink = format!("  delivery: {{deadLetterSink: {reference}}}\n---\n");
        let subscriber = "{uri: 'http://h/'}";
        for (text, field) in [
            (delivered(&reference), "subscriber"),
            (
                delivered(subscriber).replace("---\n", &sink).replacen(&sink, "---\n", 1),
                "deadLetterSink",
            ),
            (
                delivered(subscriber).replace("retry: 1", &format!("deadLetterSink: {reference}")),
                "deadLetterSink",
            ),
        ] {
            let expected = format!(
                "warning: the {kind} default/x is not supported; this affects deliveries of \
                 default/b/t ({field})"
            );
            let found = found(&format!("{text}{unread}"));
            assert!(found.contains(&expected), "{text}{found:?}");
        }
    }
}

#[test]
fn an_object_that_publishes_to_a_broker_or_configures_it_is_named_with_its_subscriptions() {
    const TO_BROKER: &str = "{apiVersion: eventing.knative.dev/v1, kind: Broker, name: b}";
    for (kind, spec, field) in [
        ("Sequence", format!("{{reply: {{ref: {TO_BROKER}}}}}"), "broker"),
        ("Parallel", format!("{{branches: [{{reply: {{ref: {TO_BROKER}}}}}]}}"), "broker"),
        ("EventTransform", format!("{{sink: {{ref: {TO_BROKER}}}}}"), "broker"),
        ("RequestReply", format!("{{brokerRef: {TO_BROKER}}}"), "broker"),
        ("EventPolicy", format!("{{to: [{{ref: {TO_BROKER}}}]}}"), "broker"),
        (
            "EventPolicy",
            "{to: [{selector: {apiVersion: eventing.knative.dev/v1, kind: Broker}}]}".to_owned(),
            "policy",
        ),
        ("EventPolicy", "{from: [{sub: a}]}".to_owned(), "policy"),
    ] {
        let unread = object("eventing.knative.dev/v1alpha1", kind, &spec);
        assert_eq!(
            found(&format!("{}{unread}", delivered("{uri: 'http://h/'}"))),
            [format!(
                "warning: the {kind} default/x is not supported; this affects deliveries of \
                 default/b/t ({field})"
            )],
            "{spec}"
        );
    }
    let elsewhere = object("eventing.knative.dev/v1alpha1", "EventPolicy", "{}")
        .replace("{name: x}", "{name: x, namespace: other}");
    let found = found(&format!("{}{elsewhere}", delivered("{uri: 'http://h/'}")));
    assert!(found[0].starts_with("note: ignored 1 EventPolicy"), "{found:?}");
}

#[test]
fn an_object_behind_another_one_changes_the_same_subscription() {
    let reference = "{ref: {apiVersion: flows.knative.dev/v1, kind: Sequence, name: NAME}}";
    let to = |name: &str| reference.replace("NAME", name);
    let first = object("flows.knative.dev/v1", "Sequence", &format!("{{reply: {}}}", to("y")));
    let second = object("flows.knative.dev/v1", "Sequence", &format!("{{reply: {}}}", to("x")))
        .replace("name: x}\n", "name: y}\n");
    let found = found(&format!("{}{first}{second}", delivered(&to("x"))));
    for name in ["x", "y"] {
        let expected = format!(
            "warning: the Sequence default/{name} is not supported; this affects deliveries of \
             default/b/t (subscriber)"
        );
        assert!(found.contains(&expected), "{found:?}");
    }
}

#[test]
fn defaults_of_the_operator_are_named_with_the_subscriptions_that_have_them() {
    let operator = |config: &str| {
        object("operator.knative.dev/v1beta1", "KnativeEventing", &format!("{{{config}}}"))
    };
    let defaults = "config: {config-br-defaults: {default-br-config: 'clusterDefault: {delivery: {retry: 3}}'}}";
    let of_broker = |annotations: &str, spec: &str| {
        format!("{}{}---\n", broker(annotations, spec), trigger(""))
    };
    let [kafka, channels] = ["Kafka", "MTChannelBasedBroker"].map(class);
    let stated = "{delivery: {retry: 1}}";
    let of_channels = "config: {br-default-channel: {channel-template-spec: 'kind: KafkaChannel'}}";
    let is_named = |text: &str, config: &str| {
        let found = found(&format!("{text}{}", operator(config)));
        let warning = "warning: the KnativeEventing default/x is not supported; this affects \
                       deliveries of default/b/t (cluster defaults)";
        found.iter().any(|finding| finding == warning)
    };
    for config in [defaults, &defaults.replace("config-br-", "br-"), "defaultBrokerClass: Kafka"] {
        for text in
            [of_broker(&kafka, "{}"), of_broker("", stated), format!("{}---\n", trigger(""))]
        {
            assert!(is_named(&text, config), "{config} {text}");
        }
        assert!(!is_named(&of_broker(&kafka, stated), config), "{config}");
    }
    assert!(is_named(&of_broker(&channels, stated), of_channels));
    assert!(!is_named(&of_broker(&kafka, "{}"), of_channels));
    assert!(!is_named(&of_broker(&kafka, "{}"), "high-availability: {replicas: 2}"));
}

#[test]
fn a_config_map_that_a_broker_names_is_named_whatever_it_holds() {
    let broker = broker(&class("Kafka"), "{config: {name: x}, delivery: {retry: 1}}");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: b}\n---\n";
    let text = format!("{broker}{}---\n{}", trigger(""), map.replace("NAME", "x"));
    assert_eq!(
        found(&text),
        ["warning: the ConfigMap default/x is not supported; this affects deliveries of \
          default/b/t (config of its Broker)"]
    );
    let other = found(&format!("{broker}{}---\n{}", trigger(""), map.replace("NAME", "y")));
    assert_eq!(other, ["note: ignored 1 ConfigMap (v1): it contains no delivery settings"]);
}

#[test]
fn a_source_without_a_sink_is_a_subscription_that_is_left_out() {
    let text = object("sources.knative.dev/v1", "KafkaSource", "{topics: [a]}");
    assert_eq!(
        found(&text),
        ["warning: the KafkaSource default/x is not supported; this affects deliveries of \
          default/x/x (sink)"]
    );
    let [name, at, reason] =
        ["default/x/x", "f:1:1", "spec.sink is missing"].map(ToOwned::to_owned);
    let left_out = LeftOut { name, at, reason };
    assert_eq!(read_one(&text).left_out, [left_out]);
}

#[test]
fn a_warning_names_a_limited_number_of_subscriptions() {
    let triggers: Vec<String> =
        (0..105).map(|at| trigger("").replace("name: t", &format!("name: t{at:03}"))).collect();
    let policy = object("eventing.knative.dev/v1alpha1", "EventPolicy", "{}");
    let text = format!("{}{}---\n{policy}", broker(&class("Kafka"), "{}"), triggers.join("---\n"));
    let warning = found(&text).into_iter().find(|finding| finding.contains("EventPolicy")).unwrap();
    assert_eq!(warning.matches("(policy)").count(), 100, "{warning}");
    assert!(warning.ends_with("default/b/t099 (policy), 5 more"), "{warning}");
}

#[test]
fn a_subscription_that_is_not_deployed_is_left_out_with_its_first_error() {
    let left_out = |text: &str| -> Vec<[String; 3]> {
        let left_out = read_one(text).left_out;
        left_out
            .into_iter()
            .map(|subscription| [subscription.name, subscription.at, subscription.reason])
            .collect()
    };
    let reference = "{ref: {apiVersion: v1, kind: Service, name: s}}";
    let reason =
        "spec.subscriber.ref: no file or Destinations document defines \"v1/Service/default/s\"";
    assert_eq!(left_out(&delivered(reference)), [["default/b/t", "f:11:21", reason]]);
    let of_broken = delivered("{uri: 'http://h/'}").replace("retry: 1", "retry: -1");
    let elsewhere = "an object that the subscription refers to has an error";
    assert_eq!(left_out(&of_broken), [["default/b/t", "f:6:1", elsewhere]]);
    let channel = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {name: s}\nspec:\n  \
                   channel: {apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: c, namespace: n}\n  \
                   subscriber: {uri: nowhere}\n";
    let reason = "spec.subscriber.uri: no file or Destinations document defines \"nowhere\"";
    assert_eq!(left_out(channel), [["n/c/s", "f:6:21", reason]]);
    assert!(left_out(&delivered("{uri: 'http://h/'}")).is_empty());
}
