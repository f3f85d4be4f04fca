//! A native Topic beside the broker, channel or event source of its name.

use super::{SUBSCRIBER, broker, read_one, shown, trigger};
use delivery::event::Input;
use delivery::event::envelope::Publisher;

/// A native Topic of this name with this `spec`.
fn topic(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: default, name: {name}}}\nspec: {{{spec}}}\n---\n"
    )
}

const SOURCE: &str = "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {name: b}\nspec:\n  sink: {uri: \
                      'http://h/'}\n---\n";

#[test]
fn a_topic_document_says_how_the_records_of_its_object_are_read() {
    let said =
        topic("b", "input: custom, mapping: {eventType: {field: kind}}, from: [{bucket: uploads}]");
    let knative = format!("{}{}---\n", broker("", "{delivery: {retry: 5}}"), trigger(""));
    for (text, name) in [
        (format!("{said}{knative}"), "default/b/t"),
        (format!("{knative}{said}"), "default/b/t"),
        (format!("{said}{SOURCE}"), "default/b/b"),
    ] {
        let reading = read_one(&text);
        assert!(
            !shown(&reading).iter().any(|finding| finding.contains(" error: ")),
            "{:?}",
            shown(&reading)
        );
        let described = reading.catalogue.topic(&"default/b".parse().unwrap()).unwrap();
        assert_eq!(
            (described.settings.input, &described.settings.from[..]),
            (Input::Custom, &[Publisher::Bucket("uploads".to_owned())][..])
        );
        let subscription = reading.catalogue.subscription(&name.parse().unwrap()).unwrap();
        assert_eq!(subscription.mapping, described.settings.mapping);
        assert!(subscription.mapping.event_type.path.is_some());
        assert_eq!(subscription.retry.max_attempts, if name.ends_with('t') { 6 } else { 1 });
    }
}

#[test]
fn a_topic_document_does_not_say_how_they_are_delivered() {
    let said = topic("b", "delivery: {retry: {maxAttempts: 3}}");
    let reading = read_one(&format!("{said}{}{}", broker("", "{}"), trigger("")));
    assert_eq!(
        shown(&reading),
        ["f:4:8: error: spec.delivery: the delivery of default/b is configured by the object at \
          f:8:18; remove delivery here, and configure it there"]
    );
    assert_eq!(reading.catalogue.subscriptions().count(), 0);
}

#[test]
fn a_second_topic_document_of_either_family_is_an_error() {
    for (text, first) in [
        (format!("{0}{0}{1}", topic("b", ""), broker("", "{}")), "the first is at f:3:38"),
        (format!("{}{1}{1}", topic("b", ""), broker("", "{}")), "the first is at f:8:18"),
    ] {
        let found = shown(&read_one(&text));
        let errors: Vec<&String> =
            found.iter().filter(|finding| finding.contains(" error: ")).collect();
        assert_eq!(errors.len(), 1, "{found:?}");
        assert!(
            errors[0].contains("the topic default/b is defined twice") && errors[0].contains(first),
            "{errors:?}"
        );
    }
}

#[test]
fn a_topic_document_with_an_error_leaves_out_the_subscriptions_to_its_object() {
    let reading =
        read_one(&format!("{}{}{}", topic("b", "input: snss"), broker("", "{}"), trigger("")));
    assert_eq!(
        (shown(&reading).len(), reading.catalogue.subscriptions().count()),
        (1, 0),
        "{:?}",
        shown(&reading)
    );
}

#[test]
fn the_position_of_a_reply_is_reported() {
    let channel = "{apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: c}";
    let text = format!(
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s}}\nspec:\n  channel: {channel}\n\
         {SUBSCRIBER}  reply: {{uri: 'http://r/'}}\n"
    );
    let reading = read_one(&text);
    assert_eq!(reading.origins[&"default/c/s".parse().unwrap()]["reply"], "f:7:16");
}
