//! Brokers and channels as subscribers and as sinks of event sources, and the subscribers of
//! channels.

use super::*;
use delivery::subscription::name::TopicName;

const BROKER_REF: &str = "{ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: NAME}}";

fn to_broker(name: &str) -> String {
    BROKER_REF.replace("NAME", name)
}

fn topic(name: &str) -> Option<TopicName> {
    Some(name.parse().unwrap())
}

/// The broker `b`, and another one.
fn brokers() -> String {
    format!("{}{}", broker("", "{}"), broker("", "{}").replace("name: b,", "name: other,"))
}

#[test]
fn a_broker_as_subscriber_is_a_topic_that_events_go_on_to() {
    let (trigger, found) =
        subscription(&format!("{}{TRIGGER}  subscriber: {}\n", brokers(), to_broker("other")));
    assert_eq!(trigger.destination.topic(), topic("default/other"));
    assert_eq!(trigger.destination.display(), "topic:default/other");
    assert_eq!((&trigger.reply, found), (&None, vec![]));
}

#[test]
fn a_channel_may_be_the_subscriber_of_a_channel_and_does_not_reply() {
    let kind = "apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel";
    let channel = |name: &str| {
        format!(
            "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {{name: {name}}}\n---\n"
        )
    };
    let text = format!(
        "{}{}apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s}}\nspec:\n  \
         channel: {{{kind}, name: a}}\n  subscriber: {{ref: {{{kind}, name: b}}}}\n  reply: {{uri: 'http://h/'}}\n",
        channel("a"),
        channel("b")
    );
    let (subscription, found) = subscription(&text);
    assert_eq!(
        (subscription.destination.topic(), &subscription.reply),
        (topic("default/b"), &None)
    );
    assert_eq!(
        found,
        ["f:15:16: warning: spec.reply.uri: no effect: the subscriber is a topic, which does not \
          reply"]
    );
}

#[test]
fn a_source_with_a_broker_of_the_files_as_its_sink_has_a_topic_and_a_subscription() {
    let source = "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {name: ping}\nspec:\n  sink: SINK\n  \
                  delivery: {deadLetterSink: {uri: 's3://bucket'}}\n";
    let text = format!("{}{}", brokers(), source.replace("SINK", &to_broker("b")));
    let (ping, found) = subscription(&text);
    assert_eq!(ping.name.to_string(), "default/ping/ping");
    assert_eq!(ping.destination.topic(), topic("default/b"));
    assert!(matches!(
        &ping.dead_letter.sink,
        Sink::Container(container) if container.bucket == "bucket"
    ));
    assert_eq!(
        found,
        ["f:11:1: warning: event sources are not run; publish their events to default/ping"]
    );
}

#[test]
fn a_source_with_the_name_of_a_broker_publishes_to_its_sink_by_itself() {
    let source = "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {name: b}\nspec:\n  sink: SINK\n";
    for sink in ["b", "other"] {
        let reading =
            read_one(&format!("{}{}", brokers(), source.replace("SINK", &to_broker(sink))));
        let found = shown(&reading);
        assert_eq!((found.len(), reading.catalogue.subscriptions().count()), (1, 0), "{found:?}");
        assert!(
            found[0].contains(&format!("publishes to default/{sink} and needs no subscription"))
        );
    }
}

/// A channel with these subscribers.
fn channel(subscribers: &str) -> String {
    format!(
        "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {{name: c}}\nspec:\n  \
         delivery: {{retry: 4}}\n  subscribers: {subscribers}\n"
    )
}

const SUBSCRIBERS: &str = "[{uid: u1, generation: 1, subscriberUri: 'http://a/', replyUri: 'http://r/'}, \
                           {subscriberURI: 'http://b/', delivery: {retry: 7, deadLetterSinkURI: 's3://bucket'}}]";

#[test]
fn the_subscribers_of_a_channel_are_read_where_no_file_has_its_subscriptions() {
    let reading = read_one(&channel(SUBSCRIBERS));
    let first = named(&reading, "default/c/u1");
    let reply = ReplyTo::Address("http://r/".parse().unwrap());
    assert_eq!(
        (first.destination.url.as_str(), &first.reply, first.retry.max_attempts),
        ("http://a/", &Some(reply), 5)
    );
    let second = named(&reading, "default/c/subscriber-2");
    assert_eq!((second.destination.url.as_str(), second.retry.max_attempts), ("http://b/", 8));
    assert!(matches!(
        &second.dead_letter.sink,
        Sink::Container(container) if container.bucket == "bucket"
    ));
    let found = shown(&reading);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        found[0],
        "f:6:16: warning: spec.subscribers: the Subscriptions of this channel are missing: its \
         subscribers are read instead; add the Subscriptions to the files"
    );
    assert!(found[1].contains("this old field is read as deadLetterSink"), "{found:?}");
}

#[test]
fn beside_its_subscriptions_the_subscribers_of_a_channel_are_a_copy() {
    let subscription =
        channel_subscription("InMemoryChannel", "  subscriber: {uri: 'http://a/'}\n");
    let reading = read_one(&format!("{}---\n{subscription}", channel(SUBSCRIBERS)));
    let found = shown(&reading);
    assert_eq!(reading.catalogue.subscriptions().count(), 1);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(
        finding.contains("no file has the Subscriptions of 1 of these subscribers"),
        "{finding}"
    );
    let both = format!("{subscription}{}", subscription.replace("name: s", "name: t"));
    let reading = read_one(&format!("{}---\n{both}", channel(SUBSCRIBERS)));
    assert_eq!((reading.catalogue.subscriptions().count(), shown(&reading)), (2, vec![]));
}

#[test]
fn a_subscription_without_a_subscriber_sends_the_events_to_its_reply() {
    let text = |fields: &str| {
        format!("{}---\n{}", channel("[]"), channel_subscription("InMemoryChannel", fields))
    };
    let (to_reply, found) = subscription(&text("  reply: {uri: 'http://r/'}\n"));
    assert_eq!((to_reply.destination.url.as_str(), &to_reply.reply), ("http://r/", &None));
    assert_eq!((to_reply.retry.max_attempts, found), (5, vec![]));
    let neither = shown(&read_one(&text("  delivery: {retry: 1}\n")));
    assert!(neither.len() == 1 && neither[0].contains("subscriber is missing"), "{neither:?}");
}

#[test]
fn a_channel_that_no_file_has_is_a_note() {
    for kind in ["InMemoryChannel", "Channel"] {
        assert_eq!(
            notes(&channel_subscription(kind, SUBSCRIBER)),
            [
                "f:5:12: note: spec.channel: no file contains the channel default/c, so its delivery \
              is unknown; add the Channel to the files"
            ]
        );
    }
}

#[test]
fn a_trigger_that_names_no_broker_is_one_of_the_default_broker_with_a_warning() {
    let default = broker("", "{}").replace("name: b,", "name: default,");
    let (of_default, found) =
        subscription(&format!("{default}{}", trigger("").replace("  broker: b\n", "")));
    assert_eq!(of_default.name.to_string(), "default/default/t");
    assert!(
        found.len() == 1 && found[0].contains("the broker is missing; using \"default\""),
        "{found:?}"
    );
}

/// A parallelism of one means the order of events. Other numbers are rows of
/// `docs/reference/conformance.md`.
#[test]
fn a_parallelism_of_one_is_an_order_that_is_not_kept() {
    let named = "{name: t, annotations: {rabbitmq.eventing.knative.dev/parallelism: '1'}}";
    let trigger = trigger("").replace("{name: t}", named);
    let found = subscription(&format!("{}{trigger}", broker("", "{}"))).1;
    let expected = ": no effect: events are sent concurrently, and their order";
    assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
}

#[test]
fn the_channel_that_backs_a_channel_is_the_same_topic() {
    let api = "apiVersion: messaging.knative.dev/v1\nkind: ";
    let owner = "ownerReferences: [{apiVersion: messaging.knative.dev/v1, kind: Channel, name: c}]";
    let template =
        "channelTemplate: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel}, ";
    let fields = format!("{SUBSCRIBER}  delivery: {{retry: 1}}\n");
    for (template, owner) in [(template, owner), ("", owner), (template, "labels: {}")] {
        let copy = "subscribers: [{uid: u1, subscriberUri: 'http://a/'}]";
        let channel = format!("{api}Channel\nmetadata: {{name: c}}\nspec: {{{template}{copy}}}\n");
        let backing =
            format!("{api}InMemoryChannel\nmetadata: {{name: c, {owner}}}\nspec: {{{copy}}}\n");
        for text in [format!("{channel}---\n{backing}"), format!("{backing}---\n{channel}")] {
            for kind in ["Channel", "InMemoryChannel"] {
                let (read, found) =
                    subscription(&format!("{text}---\n{}", channel_subscription(kind, &fields)));
                assert_eq!((read.name.to_string().as_str(), found), ("default/c/s", vec![]));
                // The class of the one that backs it numbers from zero.
                assert_eq!(waits_ms(&read.retry.schedule, 1), [1_000]);
            }
        }
    }
}

#[test]
fn objects_of_different_kinds_may_have_one_name_and_have_a_topic_each() {
    let object = |api: &str, kind: &str, name: &str, spec: &str| {
        format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n")
    };
    let (core, channels) = ("eventing.knative.dev/v1", "messaging.knative.dev/v1");
    let source = |kind: &str, sink: &str| {
        object("sources.knative.dev/v1", kind, "o", &format!("{{sink: {sink}}}"))
    };
    let of_channel = |kind: &str| {
        let spec = format!(
            "{{channel: {{apiVersion: {channels}, kind: {kind}, name: o}}, subscriber: {{uri: 'http://h/'}}}}"
        );
        object(channels, "Subscription", &kind.to_lowercase(), &spec)
    };
    let files = [
        source("PingSource", "{uri: 'http://h/'}"),
        object(core, "Broker", "o", "{}"),
        object(core, "Trigger", "t", "{broker: o, subscriber: {uri: 'http://h/'}}"),
        object(channels, "InMemoryChannel", "o", "{delivery: {retry: 3}}"),
        object(channels, "KafkaChannel", "o", "{delivery: {retry: 5}}"),
        of_channel("KafkaChannel"),
        of_channel("InMemoryChannel"),
        source("ApiServerSource", &to_broker("o")),
        object(
            core,
            "Trigger",
            "on",
            &format!(
                "{{broker: o, subscriber: {{ref: {{apiVersion: {channels}, kind: KafkaChannel, name: o}}}}}}"
            ),
        ),
    ];
    let reading = read_one(&files.concat());
    let found = shown(&reading);
    let names = reading
        .catalogue
        .subscriptions()
        .map(|subscription| subscription.name.to_string())
        .collect::<Vec<_>>();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "default/o.inmemorychannel/inmemorychannel",
            "default/o.kafkachannel/kafkachannel",
            "default/o.pingsource/o",
            "default/o/on",
            "default/o/t",
        ],
        "{found:#?}"
    );
    let attempts = |name: &str| named(&reading, name).retry.max_attempts;
    assert_eq!(attempts("default/o.inmemorychannel/inmemorychannel"), 4);
    assert_eq!(attempts("default/o.kafkachannel/kafkachannel"), 6);
    assert_eq!(
        named(&reading, "default/o/on").destination.topic(),
        topic("default/o.kafkachannel")
    );
    assert!(found.iter().all(|finding| finding.contains("warning")), "{found:#?}");
    assert_eq!(
        found[1],
        "f:3:18: warning: metadata.name: a Broker already uses the topic default/o: this object \
         uses default/o.pingsource; publish the events of this object there, or rename the object"
    );
    assert_eq!(
        found.iter().filter(|finding| finding.contains("already uses the topic")).count(),
        3,
        "{found:#?}"
    );
}

#[test]
fn two_event_sources_of_one_name_have_a_topic_each_and_two_of_one_kind_are_one_too_many() {
    let source = |kind: &str| {
        format!(
            "apiVersion: sources.knative.dev/v1\nkind: {kind}\nmetadata: {{name: s}}\nspec: {{sink: {{uri: 'http://h/'}}}}\n---\n"
        )
    };
    let reading = read_one(&(source("PingSource") + &source("ContainerSource")));
    named(&reading, "default/s/s");
    named(&reading, "default/s.containersource/s");
    let twice = read_one(&(source("PingSource") + &source("PingSource")));
    assert!(
        shown(&twice)
            .iter()
            .any(|finding| finding.contains("the topic default/s is defined twice"))
    );
}
