//! The defaults of stock Knative for brokers without `delivery`.

use super::*;

/// The attempts of the one subscription of a text, and its waits in milliseconds.
fn retries(text: &str) -> (u32, Vec<u64>) {
    let retry = &subscription(text).0.retry;
    (retry.max_attempts, waits_ms(&retry.schedule, retry.max_attempts - 1))
}

/// The waits of ten exponential retries, the first of which waits so long.
fn ten_waits(first_ms: u64) -> (u32, Vec<u64>) {
    (11, (0..10).map(|power| first_ms << power).collect())
}

#[test]
fn a_broker_without_delivery_is_retried_as_stock_knative_does_whatever_its_class() {
    for (annotations, first_ms) in [
        (String::new(), 400),
        (class("Kafka"), 400),
        (class("RabbitMQBroker"), 400),
        (class("Unheard"), 400),
        (class("MTChannelBasedBroker"), 200),
        (class("googlecloud"), 200),
    ] {
        for spec in ["{}", "{delivery: null}", "{config: {name: c}}"] {
            let text = format!("{}{}", broker(&annotations, spec), trigger(""));
            assert_eq!(retries(&text), ten_waits(first_ms), "{annotations} {spec}");
        }
    }
    let without_spec = broker(&class("Kafka"), "{}").replace("spec: {}\n", "");
    assert_eq!(retries(&format!("{without_spec}{}", trigger(""))), ten_waits(400));
}

#[test]
fn a_trigger_whose_broker_is_in_no_file_has_the_same_retries() {
    assert_eq!(retries(&trigger("")), ten_waits(400));
}

#[test]
fn a_delivery_of_the_trigger_replaces_the_defaults_or_is_merged_with_them_by_class() {
    let seconds = |waits: &[u64]| waits.iter().map(|s| s * SECOND_MS).collect::<Vec<_>>();
    let sink = "  delivery: {deadLetterSink: {uri: 's3://bucket'}}\n";
    let two = "  delivery: {retry: 2}\n";
    for (annotations, own, expected) in [
        (class("MTChannelBasedBroker"), sink, (1, vec![])),
        (class("MTChannelBasedBroker"), two, (3, seconds(&[1, 2]))),
        (class("Kafka"), sink, ten_waits(400)),
        (class("Kafka"), two, (3, vec![400, 800])),
        (class("Unheard"), two, (3, vec![400, 800])),
        (class("Kafka"), "  delivery: {backoffDelay: PT3S}\n", ten_waits(6_000)),
        (class("Kafka"), "  delivery: {retry: 0}\n", (1, vec![])),
    ] {
        let text = format!("{}{}", broker(&annotations, "{}"), trigger(own));
        assert_eq!(retries(&text), expected, "{annotations} {own}");
    }
    assert_eq!(retries(&trigger(two)), (3, vec![400, 800]));
}

#[test]
fn a_broker_with_a_delivery_of_its_own_has_no_defaults() {
    for delivery in ["{}", "{timeout: PT5S}"] {
        let spec = format!("{{delivery: {delivery}}}");
        let text = format!("{}{}", broker(&class("Kafka"), &spec), trigger(""));
        assert_eq!((retries(&text), notes(&text)), ((1, vec![]), vec![]), "{delivery}");
    }
}

#[test]
fn a_channel_has_no_defaults() {
    let text = "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {name: c}\n---\n\
                apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {name: s}\nspec:\n  \
                channel: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: c}\n  \
                subscriber: {uri: 'http://h/'}\n";
    assert_eq!((retries(text), notes(text)), ((1, vec![]), vec![]));
}

#[test]
fn the_defaults_are_reported_once_with_the_way_to_see_those_of_a_cluster() {
    let second = trigger("").replace("name: t", "name: u");
    let text = format!("{}{}---\n{second}", broker(&class("Kafka"), "{}"), trigger(""));
    assert_eq!(
        notes(&text),
        ["f:8:18: note: metadata.name: 2 subscriptions have the retry settings of stock Knative \
          for a Broker without delivery: retry: 10, backoffPolicy: exponential, backoffDelay: \
          PT0.2S; if your cluster has other settings, copy class and delivery from kubectl get \
          broker -o yaml to the Broker"]
    );
    let own = "  delivery: {retry: 2, backoffPolicy: linear, backoffDelay: PT1S}\n";
    for without in [
        broker(&class("Kafka"), "{}"),
        format!("{}{}", broker(&class("Kafka"), "{}"), trigger(own)),
        format!("{}{}", broker(&class("Kafka"), "{}"), trigger("  delivery: {retry: 0}\n")),
    ] {
        assert_eq!(notes(&without), Vec::<String>::new(), "{without}");
    }
}

#[test]
fn the_origin_of_a_default_is_stock_knative() {
    let stock = "default of stock Knative (config-br-defaults)";
    for (own, attempts, schedule) in [
        ("", stock.to_owned(), format!("{stock}, numbered as in Kafka")),
        (
            "  delivery: {backoffDelay: PT3S}\n",
            stock.to_owned(),
            format!("f:12:28, {stock}, numbered as in Kafka"),
        ),
        (
            "  delivery: {retry: 3}\n",
            "f:12:21".to_owned(),
            format!("{stock}, numbered as in Kafka"),
        ),
    ] {
        let text = format!("{}{}", broker(&class("Kafka"), "{}"), trigger(own));
        let reading = read_one(&text);
        let origins = &reading.origins[&"default/b/t".parse().unwrap()];
        assert_eq!((&origins["maxAttempts"], &origins["schedule"]), (&attempts, &schedule));
    }
}

#[test]
fn the_class_is_asked_for_only_where_the_files_have_settings() {
    let warned = |own: &str| {
        let found = subscription(&format!("{}{}", broker("", "{}"), trigger(own))).1;
        found.iter().any(|finding| finding.contains("no file states the class of this object"))
    };
    assert!(!warned(""), "the note about the defaults is enough");
    // The class decides if the defaults count beside it.
    assert!(warned("  delivery: {deadLetterSink: {uri: 's3://bucket'}}\n"));
}
