//! The defaults of a cluster, and what else brokers are configured by.

use super::*;

/// A ConfigMap with one text.
fn config_map(name: &str, key: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: knative-eventing}}\ndata:\n  \
         {key}: |\n{lines}---\n"
    )
}

fn broker_defaults(text: &str) -> String {
    config_map("config-br-defaults", "default-br-config", text)
}

const CHANNELS: &str = "clusterDefault:\n  apiVersion: messaging.knative.dev/v1\n  kind: InMemoryChannel\n\
                        namespaceDefaults:\n  shop:\n    apiVersion: messaging.knative.dev/v1\n    kind: KafkaChannel\n    \
                        spec: {numPartitions: 3, delivery: {retry: 2}}\n";

/// The second wait of a linear policy, which tells how retries are numbered: 1 or 2 seconds.
fn numbering(subscription: &Subscription) -> u64 {
    waits_ms(&subscription.retry.schedule, 2)[1] / SECOND_MS
}

const LINEAR: &str = "  delivery: {retry: 9, backoffPolicy: linear, backoffDelay: PT1S}\n";

#[test]
fn a_broker_without_delivery_has_that_of_the_cluster_or_of_its_namespace() {
    let defaults = broker_defaults(
        "clusterDefault:\n  brokerClass: MTChannelBasedBroker\n  delivery: {retry: 10, backoffDelay: PT0.2S}\n\
         namespaceDefaults:\n  shop:\n    brokerClass: Kafka\n    delivery: {retry: 3}\n",
    );
    for (namespace, spec, attempts) in [
        ("default", "{}", 11),
        ("shop", "{}", 4),
        ("default", "{delivery: {retry: 5}}", 6),
        ("default", "{delivery: {backoffDelay: PT2S}}", 1),
    ] {
        let of =
            |text: String| text.replace("{name: ", &format!("{{namespace: {namespace}, name: "));
        let text = format!("{defaults}{}{}", of(broker("", spec)), of(trigger("")));
        let (subscription, found) = subscription(&text);
        assert_eq!(
            (subscription.retry.max_attempts, found),
            (attempts, vec![]),
            "{namespace} {spec}"
        );
    }
}

#[test]
fn a_broker_of_channels_without_defaults_has_the_channels_that_stock_knative_names() {
    let template = "apiVersion: messaging.knative.dev/v1\nkind: KafkaChannel\n";
    let map = config_map("config-br-default-channel", "channel-template-spec", template);
    for (documents, annotations, expected) in [
        ("", class("MTChannelBasedBroker"), 1),
        (map.as_str(), class("MTChannelBasedBroker"), 2),
        (map.as_str(), class("Kafka"), 2),
    ] {
        let text = format!("{documents}{}{}", broker(&annotations, "{}"), trigger(LINEAR));
        let (subscription, found) = subscription(&text);
        assert_eq!((numbering(&subscription), found), (expected, vec![]), "{documents}");
    }
}

#[test]
fn the_class_of_a_broker_without_an_annotation_is_the_default_one() {
    let defaults =
        |class: &str| broker_defaults(&format!("clusterDefault: {{brokerClass: {class}}}\n"));
    for (documents, annotations, expected) in [
        (String::new(), "", 2),
        (defaults("MTChannelBasedBroker"), "", 1),
        (defaults("Kafka"), "", 2),
        (defaults("Kafka"), "eventing.knative.dev/broker.class: MTChannelBasedBroker", 1),
    ] {
        let text = format!("{documents}{}{}", broker(annotations, "{}"), trigger(LINEAR));
        assert_eq!(numbering(&subscription(&text).0), expected, "{documents}{annotations}");
    }
}

#[test]
fn each_class_of_brokers_may_have_its_own_defaults() {
    let defaults = broker_defaults(
        "clusterDefault:\n  brokerClass: Kafka\n  delivery: {retry: 1}\n  brokerClasses:\n    \
         RabbitMQBroker: {delivery: {retry: 2}}\n",
    );
    // A class without defaults of its own has those of the default class.
    for (class_name, attempts) in [("Kafka", 2), ("RabbitMQBroker", 3), ("MTChannelBasedBroker", 2)]
    {
        let text = format!("{defaults}{}{}", broker(&class(class_name), "{}"), trigger(""));
        assert_eq!(subscription(&text).0.retry.max_attempts, attempts, "{class_name}");
    }
}

#[test]
fn the_channels_of_a_broker_are_those_of_the_default_config_map_and_may_have_a_delivery() {
    let channels = |delivery: &str| {
        config_map(
            "channels",
            "channel-template-spec",
            &format!(
                "apiVersion: messaging.knative.dev/v1\nkind: KafkaChannel\nspec: {{numPartitions: 1{delivery}}}\n"
            ),
        )
    };
    let defaults = broker_defaults(
        "clusterDefault: {brokerClass: MTChannelBasedBroker, apiVersion: v1, kind: ConfigMap, name: channels, \
         namespace: knative-eventing}\n",
    );
    let of = |delivery: &str, rest: &str| {
        let text = format!("{defaults}{}{}{}", channels(delivery), broker("", "{}"), trigger(rest));
        subscription(&text).0
    };
    assert_eq!(numbering(&of("", LINEAR)), 2);
    assert_eq!(of(", delivery: {retry: 6}", "").retry.max_attempts, 7);
    assert_eq!(of(", delivery: {retry: 6}", LINEAR).retry.max_attempts, 10);
}

#[test]
fn a_plain_channel_is_what_its_namespace_has_as_a_default() {
    let defaults = config_map("default-ch-webhook", "default-ch-config", CHANNELS);
    let object = "apiVersion: messaging.knative.dev/v1\nkind: Channel\nmetadata: {namespace: NS, name: c}\n---\n";
    let of_channel = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {namespace: NS, name: s}\nspec:\n  \
                      channel: {apiVersion: messaging.knative.dev/v1, kind: Channel, name: c}\n  \
                      subscriber: {uri: 'http://h/'}\n";
    for (namespace, expected, attempts) in [("default", 1, 1), ("shop", 2, 3)] {
        let of = |text: String| text.replace("NS", namespace);
        for channel in [object, ""] {
            let text = of(format!("{defaults}{channel}{of_channel}{LINEAR}"));
            assert_eq!(numbering(&subscription(&text).0), expected, "{namespace} {channel:?}");
        }
        let text = of(format!("{defaults}{object}{of_channel}"));
        assert_eq!(subscription(&text).0.retry.max_attempts, attempts);
    }
}

#[test]
fn what_is_wrong_with_a_text_is_reported_once_at_the_text() {
    let defaults = broker_defaults(
        "clusterDefault:\n  delivery:\n    retry: -1\n    retrys: 2\n    deadLetterSink: {ref: {apiVersion: v1, kind: \
         Service, name: s}}\n",
    );
    let other = broker("", "{}").replace("name: b,", "name: c,");
    let reading = read_one(&format!("{defaults}{}{other}", broker("", "{}")));
    let found = shown(&reading);
    assert_eq!(found.len(), 3, "{found:?}");
    for (finding, part) in found.iter().zip([
        "error: data.default-br-config: in line 3 of the text: clusterDefault.delivery.retry: has to be 0 to 999, is -1",
        "warning: data.default-br-config: in line 4 of the text: clusterDefault.delivery.retrys: unknown field",
        "warning: data.default-br-config: in line 5 of the text: clusterDefault.delivery.deadLetterSink.ref: nothing says",
    ]) {
        assert!(finding.starts_with("f:6:5: ") && finding.contains(part), "{finding}");
    }
    let keys = reading.findings.iter().filter_map(|finding| finding.reference.as_ref());
    assert_eq!(keys.map(|of| of.key.as_str()).collect::<Vec<_>>(), ["v1/Service/default/s"]);
    let text = format!("{}{}", broker_defaults("just a text\n"), broker("", "{}"));
    assert_eq!(
        shown(&read_one(&text)),
        ["f:6:5: warning: data.default-br-config: not used: this text is no mapping"]
    );
}

#[test]
fn the_config_of_a_rabbitmq_broker_is_no_riddle() {
    let config = "apiVersion: eventing.knative.dev/v1alpha1\nkind: RabbitmqBrokerConfig\nmetadata: {name: b}\nspec:\n  \
                  rabbitmqClusterReference: {name: rabbitmq}\n  queueType: quorum\n---\n";
    let broker = broker(
        &class("RabbitMQBroker"),
        "{config: {apiVersion: eventing.knative.dev/v1alpha1, kind: RabbitmqBrokerConfig, name: b}}",
    );
    let (subscription, found) = subscription(&format!("{config}{broker}{}", trigger(LINEAR)));
    assert_eq!((numbering(&subscription), found), (2, vec![]));
    let misspelt = config.replace("queueType", "queueTipe").replace("---\n", "");
    let found = shown(&read_one(&misspelt));
    assert_eq!(
        found,
        ["f:6:3: warning: spec.queueTipe: unknown field \"queueTipe\"; did you mean queueType?"]
    );
}

#[test]
fn the_defaults_of_a_namespace_come_before_those_of_the_cluster() {
    let defaults = broker_defaults(
        "clusterDefault:\n  brokerClass: Kafka\n  delivery: {retry: 1}\n  brokerClasses: {googlecloud: {delivery: {retry: 2}}}\n\
         namespaceDefaults:\n  default:\n    brokerClass: RabbitMQBroker\n    delivery: {retry: 3}\n    \
         brokerClasses: {MTChannelBasedBroker: {delivery: {retry: 4}}}\n",
    );
    for (annotation, attempts) in [
        (String::new(), 4),
        (class("RabbitMQBroker"), 4),
        (class("MTChannelBasedBroker"), 5),
        (class("googlecloud"), 3),
        (class("Kafka"), 2),
    ] {
        let text = format!("{defaults}{}{}", broker(&annotation, "{}"), trigger(""));
        assert_eq!(subscription(&text).0.retry.max_attempts, attempts, "{annotation}");
    }
    // Without settings for its default class, a namespace has those of the cluster.
    let defaults = broker_defaults(
        "clusterDefault: {brokerClass: Kafka, delivery: {retry: 1}}\nnamespaceDefaults: {default: {brokerClass: RabbitMQBroker}}\n",
    );
    let text = format!("{defaults}{}{}", broker("", "{}"), trigger(""));
    assert_eq!(subscription(&text).0.retry.max_attempts, 2);
    // As in Knative, the settings of a class count only beside default ones. Those of stock Knative are left.
    let defaults = broker_defaults(
        "clusterDefault: {brokerClass: Kafka, brokerClasses: {RabbitMQBroker: {delivery: {retry: 1}}}}\n",
    );
    let text = format!("{defaults}{}{}", broker(&class("RabbitMQBroker"), "{}"), trigger(""));
    assert_eq!(subscription(&text).0.retry.max_attempts, 11);
}

#[test]
fn a_second_config_map_of_the_same_use_is_not_used_and_a_warning() {
    let of_brokers = |retry: u8| {
        broker_defaults(&format!(
            "clusterDefault: {{brokerClass: Kafka, delivery: {{retry: {retry}}}}}\n"
        ))
    };
    let text = format!("{}{}{}{}", of_brokers(3), of_brokers(5), broker("", "{}"), trigger(""));
    let (broker_default, found) = subscription(&text);
    assert_eq!(broker_default.retry.max_attempts, 4);
    assert_eq!(
        found,
        [
            "f:13:5: warning: data.default-br-config: not used: the one at f:6:5 holds; remove one of them"
        ]
    );
    let of_channels = config_map("default-ch-webhook", "default-ch-config", CHANNELS);
    let template = config_map("channels", "channelTemplateSpec", "kind: KafkaChannel\n");
    for (first, field) in [(of_channels, "default-ch-config"), (template, "channelTemplateSpec")] {
        let found = shown(&read_one(format!("{first}{first}").trim_end_matches("---\n")));
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(
            finding.contains(&format!("warning: data.{field}: not used: the one at f:")),
            "{finding}"
        );
    }
}

#[test]
fn a_config_map_that_no_file_has_is_a_warning_where_its_channels_matter() {
    let config = "{config: {apiVersion: v1, kind: ConfigMap, name: absent}}";
    let found = |class_name: &str| {
        subscription(&format!("{}{}", broker(&class(class_name), config), trigger(""))).1
    };
    assert_eq!(
        found("MTChannelBasedBroker"),
        [
            "f:4:56: warning: spec.config.name: the ConfigMap default/absent is not in any of the files: the channels of the \
             broker are taken for InMemoryChannels; their retries are numbered from zero"
        ]
    );
    assert_eq!(found("Kafka"), Vec::<String>::new());
    let defaults = broker_defaults(
        "clusterDefault: {brokerClass: MTChannelBasedBroker, kind: ConfigMap, name: absent, namespace: x}\n",
    );
    let other = broker("", "{}").replace("name: b,", "name: c,");
    let found = shown(&read_one(&format!("{defaults}{}{other}{}", broker("", "{}"), trigger(""))));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(
        finding.contains("data.default-br-config: the ConfigMap x/absent is not in any"),
        "{finding}"
    );
}

#[test]
fn a_class_that_no_file_states_is_one_warning_where_it_matters() {
    let count = |text: &str| {
        let found = shown(&read_one(text));
        found.iter().filter(|finding| finding.contains("no file states its class")).count()
    };
    let own = "  delivery: {timeout: PT5S}\n";
    for (of_broker, of_trigger, warnings) in [
        ("{}", "", 0),
        ("{delivery: {timeout: PT9S}}", "", 0),
        // Numbering.
        ("{}", LINEAR, 1),
        ("{delivery: {retry: 1}}", "", 1),
        // Inheritance, also of the defaults of stock Knative.
        ("{}", own, 1),
        ("{delivery: {timeout: PT9S}}", own, 1),
        ("{delivery: {retry: 1}}", LINEAR, 1),
    ] {
        let text = |annotations: &str| {
            let other = trigger(of_trigger).replace("name: t", "name: u");
            format!("{}{}---\n{other}", broker(annotations, of_broker), trigger(of_trigger))
        };
        assert_eq!(count(&text("")), warnings, "{of_broker} {of_trigger}");
        assert_eq!(count(&text(&class("Kafka"))), 0);
        let defaults = broker_defaults("clusterDefault: {brokerClass: Kafka}\n");
        assert_eq!(count(&format!("{defaults}{}", text(""))), 0);
    }
}
