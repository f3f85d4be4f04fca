//! Values that brokers and channels take from their cluster, and ConfigMaps that are not read.

use super::*;

const MAPS: [(&str, &str, &str); 4] = [
    (
        "config-br-defaults",
        "default-br-config",
        "clusterDefault: {brokerClass: Kafka, delivery: {retry: 3, backoffPolicy: linear}}",
    ),
    ("config-br-default-channel", "channel-template-spec", "kind: KafkaChannel"),
    ("config-br-default-channel", "channelTemplateSpec", "kind: KafkaChannel"),
    (
        "default-ch-webhook",
        "default-ch-config",
        "clusterDefault: {kind: InMemoryChannel, spec: {delivery: {retry: 3}}}",
    ),
];

/// A ConfigMap with one text.
fn config_map(name: &str, key: &str, text: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: knative-eventing}}\ndata: {{{key}: '{text}'}}\n---\n"
    )
}

/// A Subscription of the plain Channel `c`. With `channel`, the Channel is a document with these
/// fields.
fn of_channel(channel: Option<&str>) -> String {
    let api = "apiVersion: messaging.knative.dev/v1\nkind:";
    let channel = channel
        .map(|spec| format!("{api} Channel\nmetadata: {{name: c}}\nspec: {{{spec}}}\n---\n"));
    format!(
        "{}{api} Subscription\nmetadata: {{name: s}}\nspec:\n  \
         channel: {{apiVersion: messaging.knative.dev/v1, kind: Channel, name: c}}\n{SUBSCRIBER}---\n",
        channel.unwrap_or_default()
    )
}

fn of_broker(annotations: &str, spec: &str) -> String {
    format!("{}{}---\n", broker(annotations, &format!("{{{spec}}}")), trigger(""))
}

/// Returns the warnings about objects that are not read.
fn losses(text: &str) -> Vec<String> {
    shown(&read_one(text))
        .into_iter()
        .filter(|finding| finding.contains(" is not supported; this affects"))
        .collect()
}

const TEMPLATE: &str = "apiVersion: messaging.knative.dev/v1, kind: KafkaChannel";
const BROKERS: &str = "config-br-defaults";
const CHANNELS_OF_BROKERS: &str = "config-br-default-channel";
const CHANNELS: &str = "default-ch-webhook";

#[test]
fn no_config_map_changes_a_subscription() {
    let channels = class("MTChannelBasedBroker");
    for (name, key, text) in MAPS {
        let map = config_map(name, key, text);
        for other in [
            of_broker("", ""),
            of_broker(&channels, ""),
            of_broker(&channels, &format!("config: {{name: {name}, namespace: knative-eventing}}")),
            trigger(""),
            of_channel(Some("")),
            of_channel(None),
        ] {
            assert_eq!(subscription(&format!("{map}{other}")).0, subscription(&other).0, "{map}");
        }
    }
}

#[test]
fn a_config_map_with_defaults_is_named_with_each_subscription_that_leaves_them_to_the_cluster() {
    let [kafka, channels] = ["Kafka", "MTChannelBasedBroker"].map(class);
    let delivery = "delivery: {retry: 1}";
    let inline = format!("{delivery}, channelTemplateSpec: {{{TEMPLATE}}}");
    let named = format!("{delivery}, config: {{name: other}}");
    let google = of_broker("", delivery).replace(
        "eventing.knative.dev/v1\nkind: Broker",
        "eventing.cloud.google.com/v1\nkind: Broker",
    );
    let backing = "apiVersion: messaging.knative.dev/v1\nkind: KafkaChannel\nmetadata: {name: c, ownerReferences: [{kind: \
                   Channel}]}\n---\n";
    let none: &[&str] = &[];
    for (text, expected) in [
        (of_broker("", ""), &[BROKERS][..]),
        (of_broker("", delivery), &[BROKERS]),
        (of_broker(&kafka, ""), &[BROKERS]),
        (of_broker(&kafka, "delivery: null"), &[BROKERS]),
        (of_broker(&kafka, delivery), none),
        (google, none),
        (of_broker(&channels, ""), &[BROKERS, CHANNELS_OF_BROKERS]),
        (of_broker(&channels, delivery), &[BROKERS, CHANNELS_OF_BROKERS]),
        (of_broker(&channels, &inline), none),
        (of_broker(&channels, &named), none),
        (trigger(""), &[BROKERS]),
        (of_channel(None), &[CHANNELS]),
        (of_channel(Some("")), &[CHANNELS]),
        (of_channel(Some("channelTemplate: null")), &[CHANNELS]),
        (of_channel(Some(&format!("channelTemplate: {{{TEMPLATE}}}"))), none),
        (format!("{backing}{}", of_channel(Some(""))), none),
        (of_channel(None).replace("kind: Channel", "kind: KafkaChannel"), none),
        (
            of_channel(None)
                .replace("messaging.knative.dev/v1, ", "messaging.cloud.google.com/v1, "),
            none,
        ),
    ] {
        for (name, key, defaults) in MAPS {
            let found = losses(&format!("{}{text}", config_map(name, key, defaults)));
            assert_eq!(
                found.len(),
                usize::from(expected.contains(&name)),
                "{name} {text} {found:?}"
            );
            let message = format!(
                "the ConfigMap knative-eventing/{name} is not supported; this affects deliveries \
                 of default/"
            );
            assert!(
                found
                    .iter()
                    .all(|finding| finding.contains(&message)
                        && finding.contains("(cluster defaults)")),
                "{found:?}"
            );
        }
    }
}

#[test]
fn a_config_map_without_the_key_of_its_defaults_is_counted() {
    for (name, ..) in MAPS {
        let text = format!("{}{}", config_map(name, "_example", "x"), of_broker("", ""));
        assert_eq!(losses(&text), Vec::<String>::new());
    }
}

#[test]
fn the_help_names_what_to_write_where_and_the_command_that_prints_it() {
    let text = |name: &str| {
        let (_, key, defaults) = MAPS.into_iter().find(|(map, ..)| *map == name).unwrap();
        let channels = class("MTChannelBasedBroker");
        let all = format!("{}{}", of_broker(&channels, ""), of_channel(None));
        losses(&format!("{}{all}", config_map(name, key, defaults))).remove(0)
    };
    let broker = "copy the annotation eventing.knative.dev/broker.class and spec.delivery from \
                  kubectl get broker -o yaml to each Broker";
    let channel = "copy knative.dev/channelKind from kubectl get broker -o yaml to \
                   spec.channelTemplateSpec.kind of each MTChannelBasedBroker";
    assert!(text(BROKERS).ends_with(&format!("; {broker}; {channel}")), "{}", text(BROKERS));
    assert!(text(CHANNELS_OF_BROKERS).ends_with(channel), "{}", text(CHANNELS_OF_BROKERS));
    let of_channels = "copy spec.channelTemplate from kubectl get channel -o yaml to each Channel";
    assert!(text(CHANNELS).ends_with(of_channels), "{}", text(CHANNELS));
}

#[test]
fn a_config_map_that_a_broker_names_is_one_warning() {
    let channels = class("MTChannelBasedBroker");
    let map = config_map("mine", "channel-template-spec", "kind: KafkaChannel");
    let spec = "config: {kind: ConfigMap, name: mine, namespace: knative-eventing}";
    let text = format!("{map}{}", of_broker(&channels, spec));
    let found = subscription(&text).1;
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(
        finding.contains(
            "the ConfigMap knative-eventing/mine is not supported; this affects deliveries of \
             default/b/t (config of its Broker); for an MTChannelBasedBroker, copy \
             knative.dev/channelKind from kubectl get broker -o yaml to \
             spec.channelTemplateSpec.kind"
        ),
        "{finding}"
    );
    let inline = format!("{spec}, channelTemplateSpec: {{{TEMPLATE}}}");
    assert_eq!(
        subscription(&format!("{map}{}", of_broker(&channels, &inline))).1,
        Vec::<String>::new()
    );
}

#[test]
fn a_config_map_that_no_file_has_is_a_warning_where_its_channels_matter() {
    let config = "config: {apiVersion: v1, kind: ConfigMap, name: absent}";
    let found = |class_name: &str, spec: &str| subscription(&of_broker(&class(class_name), spec)).1;
    assert_eq!(
        found("MTChannelBasedBroker", config),
        ["f:4:56: warning: spec.config.name: the ConfigMap default/absent of this Broker's \
          channels is not read: retries are numbered from zero, as for InMemoryChannel; copy \
          knative.dev/channelKind from kubectl get broker -o yaml to \
          spec.channelTemplateSpec.kind of each MTChannelBasedBroker"]
    );
    let none = Vec::<String>::new();
    let inline = format!("{config}, channelTemplateSpec: {{{TEMPLATE}}}");
    assert_eq!(found("MTChannelBasedBroker", &inline), none);
    assert_eq!(found("Kafka", config), none);
    assert_eq!(found("RabbitMQBroker", config), none);
}

#[test]
fn a_class_that_no_file_states_is_one_warning_where_it_matters() {
    let count = |text: &str| {
        let found = shown(&read_one(text));
        found.iter().filter(|finding| finding.contains("no file states the class of")).count()
    };
    let linear = "  delivery: {retry: 9, backoffPolicy: linear, backoffDelay: PT1S}\n";
    let own = "  delivery: {timeout: PT5S}\n";
    for (of_broker, of_trigger, warnings) in [
        ("{}", "", 0),
        ("{delivery: {timeout: PT9S}}", "", 0),
        // The numbering of retries matters.
        ("{}", linear, 1),
        ("{delivery: {retry: 1}}", "", 1),
        // Inherited values matter, including the defaults of stock Knative.
        ("{}", own, 1),
        ("{delivery: {timeout: PT9S}}", own, 1),
        ("{delivery: {retry: 1}}", linear, 1),
    ] {
        let text = |annotations: &str| {
            let other = trigger(of_trigger).replace("name: t", "name: u");
            format!("{}{}---\n{other}", broker(annotations, of_broker), trigger(of_trigger))
        };
        assert_eq!(count(&text("")), warnings, "{of_broker} {of_trigger}");
        assert_eq!(count(&text(&class("Kafka"))), 0);
    }
}
