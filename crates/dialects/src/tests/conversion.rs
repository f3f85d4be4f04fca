use super::support::{native_subscription, native_topic, read_one, shown};

/// Returns the findings and the number of remaining subscriptions.
fn found(text: &str) -> (Vec<String>, usize) {
    let reading = read_one(text);
    (shown(&reading), reading.catalogue.subscriptions().count())
}

fn topic(spec: &str) -> String {
    native_topic("n/t", spec)
}

fn native(name: &str, destination: &str) -> String {
    let destination = format!("destination: {{url: 'https://h/'{destination}}}");
    native_subscription(&format!("n/t/{name}"), &destination)
}

/// Mappings of a topic with custom input.
const NOTHING: &str = "";
const TYPE: &str = "eventType: {field: kind}";
const BOTH: &str = "eventType: {default: order}, subject: {field: id, default: none}";

#[test]
fn what_cannot_be_converted_is_an_error_and_what_may_be_is_none() {
    let schemas = ["cloudevents-structured", "cloudevents-binary", "eventgrid", "custom"];
    for (input, mapping, possible) in [
        ("auto", NOTHING, [true, true, true, true]),
        ("cloudevents", NOTHING, [true, true, false, true]),
        ("eventgrid", NOTHING, [true, true, true, true]),
        ("opaque", NOTHING, [false, false, false, false]),
        ("sns", NOTHING, [true, true, false, true]),
        ("eventbridge", NOTHING, [true, true, false, true]),
        ("s3", NOTHING, [true, true, false, true]),
        ("custom", NOTHING, [false, false, false, true]),
        ("custom", TYPE, [true, true, false, true]),
        ("custom", BOTH, [true, true, true, true]),
        ("custom", "subject: {default: x}", [false, false, false, true]),
    ] {
        let topic = topic(&format!("input: {input}, mapping: {{{mapping}}}"));
        for (schema, possible) in schemas.into_iter().zip(possible) {
            let text = format!("{topic}{}", native("s", &format!(", schema: {schema}")));
            let (errors, left) = found(&text);
            let errors: Vec<&String> =
                errors.iter().filter(|finding| finding.contains(": error: ")).collect();
            assert_eq!(
                (errors.len(), left),
                (usize::from(!possible), usize::from(possible)),
                "{input} {mapping} {schema}"
            );
            let place = "f:9:49: error: spec.destination.schema: the ";
            assert!(
                errors.iter().all(|error| error.starts_with(place) && error.contains(schema)),
                "{errors:?}"
            );
        }
        assert_eq!(found(&format!("{topic}{}", native("s", ""))).1, 1, "without a schema, {input}");
    }
}

#[test]
fn a_conversion_that_is_impossible_says_what_would_be_possible() {
    let problem = |spec: &str, schema: &str| {
        let (mut errors, _) =
            found(&format!("{}{}", topic(spec), native("s", &format!(", schema: {schema}"))));
        errors
            .pop()
            .map(|error| error.replace("f:9:49: error: spec.destination.schema: ", ""))
            .unwrap_or_default()
    };
    assert_eq!(
        problem("input: opaque", "custom"),
        "the topic n/t has input opaque, so its events cannot be delivered as custom; omit schema \
         to send each event as it was published"
    );
    assert_eq!(
        problem("input: cloudevents", "eventgrid"),
        "the topic n/t has input cloudevents, and CloudEvents cannot be delivered as eventgrid; \
         use a CloudEvents schema"
    );
    assert_eq!(
        problem("input: custom", "eventgrid"),
        "the mapping of the topic n/t provides no eventType and no subject, which eventgrid \
         requires; add to the spec of the Topic: mapping: {eventType: {field: …, default: …}}"
    );
}

#[test]
fn events_in_binary_form_share_no_request() {
    let own =
        native("s", ", schema: cloudevents-binary").replace("}}\n", "}, batch: {maxEvents: 2}}\n");
    let refused = "error: FIELD: events in the schema cloudevents-binary cannot share a request: \
                   the body is the data of one event; use schema: cloudevents-structured, or omit \
                   batch";
    let (errors, left) = found(&own);
    let expected = refused.replace("FIELD", "spec.batch");
    assert_eq!((errors, left), (vec![format!("f:4:77: {expected}")], 0));
    let topic = topic("delivery: {batch: {preferredKilobytes: 2}}");
    let both = [
        native("a", ", schema: cloudevents-binary"),
        native("b", ", schema: cloudevents-binary"),
        native("c", ""),
    ];
    let (errors, left) = found(&format!("{topic}{}", both.concat()));
    let expected = refused.replace("FIELD", "spec.delivery.batch");
    assert_eq!((errors, left), (vec![format!("f:4:26: {expected}")], 1));
}

#[test]
fn batches_of_opaque_text_are_odd_and_load() {
    let grid = "name: s\nlastmile: {topic: n/t}\nproperties: {destination: {endpointType: WebHook, properties: \
                {endpointUrl: 'https://h/', maxEventsPerBatch: 9}}}\n";
    let own = native("s", "").replace("}}\n", "}, batch: {maxEvents: 2}}\n");
    for (text, place) in [
        (own.as_str(), "f:9:49: warning: spec.batch"),
        (grid, "f:8:110: warning: properties.destination.properties.maxEventsPerBatch"),
    ] {
        let (odd, left) = found(&format!("{}{text}", topic("input: opaque")));
        let expected = "no effect: the topic n/t has input opaque, so each event is sent in a \
                        separate request; omit batch";
        assert_eq!((odd, left), (vec![format!("{place}: {expected}")], 1));
    }
}

#[test]
fn a_topics_own_schema_is_reported_once_however_many_follow_it() {
    let topic = topic("input: opaque, delivery: {destination: {schema: custom}}");
    let (errors, left) = found(&format!("{topic}{}{}", native("a", ""), native("b", "")));
    assert_eq!((errors.len(), left), (1, 0), "{errors:?}");
    assert!(
        errors[0].starts_with("f:4:56: error: spec.delivery.destination.schema: the topic n/t has"),
        "{errors:?}"
    );
}

#[test]
fn subscriptions_of_other_families_are_checked_against_a_native_topic() {
    let grid = "name: s\nlastmile: {topic: n/t}\nproperties:\n  eventDeliverySchema: EventGridSchema\n  destination: \
                {endpointType: WebHook, properties: {endpointUrl: 'https://h/'}}\n";
    let knative = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {name: s, namespace: n}\nspec:\n  \
                   channel: {apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: t}\n  \
                   subscriber: {uri: 'https://h/'}\n  delivery: {format: binary}\n";
    // No file has the channel itself; that warning is ignored.
    let found = |text: &str| {
        let (mut found, left) = found(text);
        found.retain(|finding| !finding.contains("no file contains the channel"));
        (found, left)
    };
    for (text, input, expected) in [
        (
            grid,
            "cloudevents",
            "f:9:24: error: properties.eventDeliverySchema: the topic n/t has input cloudevents",
        ),
        (
            grid,
            "custom",
            "f:9:24: error: properties.eventDeliverySchema: the mapping of the topic n/t provides \
             no eventType",
        ),
        (knative, "opaque", "f:12:22: error: spec.delivery.format: the topic n/t has input opaque"),
        (
            knative,
            "custom",
            "f:12:22: error: spec.delivery.format: the mapping of the topic n/t provides no \
             eventType",
        ),
    ] {
        let (errors, left) = found(&format!("{}{text}", topic(&format!("input: {input}"))));
        assert_eq!((errors.len(), left), (1, 0), "{errors:?}");
        assert!(errors[0].starts_with(expected), "{errors:?}");
        assert_eq!(found(text).1, 1, "nothing is known of a topic that no document describes");
        let mapped = topic(&format!("input: custom, mapping: {{{BOTH}}}"));
        assert_eq!(found(&format!("{mapped}{text}")), (Vec::new(), 1));
    }
}
