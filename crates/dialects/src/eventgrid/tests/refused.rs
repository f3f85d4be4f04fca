//! What is refused or warned about, and where: a text with `^` before the place that the one
//! finding has to point at.

use super::{DESTINATIONS, S2, S3, S4, push, read_files, shown, webhook};

/// One finding at the `^`, which begins with these words after its severity.
fn finds_one(marked: &str, more: &[&str], expected: &str) {
    let (before, after) = marked.split_once('^').unwrap_or_else(|| panic!("no ^ in {marked}"));
    let (line, column) = (
        before.lines().count().max(1),
        before.lines().last().unwrap_or_default().chars().count() + 1,
    );
    let text = format!("{before}{after}");
    let texts: Vec<&str> = std::iter::once(text.as_str()).chain(more.iter().copied()).collect();
    let reading = read_files(&texts);
    let found = shown(&reading);
    let severity = expected.split(':').next().unwrap_or_default();
    let found: Vec<&String> =
        found.iter().filter(|finding| finding.contains(&format!(": {severity}: "))).collect();
    assert_eq!(found.len(), 1, "{marked}: {found:#?}");
    let expected = format!("{line}:{column}: {expected}");
    assert!(
        found[0].starts_with(&expected),
        "{marked}\nexpected {expected}\nfound    {}",
        found[0]
    );
    let errors = usize::from(severity == "error");
    assert_eq!(reading.catalogue.subscriptions().count(), 1 - errors, "{marked}");
}

/// A part of a sample, what it is broken to, and the finding.
type Broken = (&'static str, &'static str, &'static str);

const KUBERNETES: &[Broken] = &[
    (
        "\"maxDeliveryAttempts\": 3",
        "\"maxDeliveryAttempts\": ^\"3\"",
        "error: properties.retryPolicy.maxDeliveryAttempts: expected a whole number, found text; write 3, without quotes",
    ),
    (
        "\"maxDeliveryAttempts\": 3",
        "\"maxDeliveryAttempts\": ^0",
        "error: properties.retryPolicy.maxDeliveryAttempts: has to be 1 to 1000, is 0",
    ),
    (
        "InMinutes\": 30",
        "InMinutes\": ^20161",
        "error: properties.retryPolicy.eventTimeToLiveInMinutes: has to be 1 to 20160, is 20161",
    ),
    (
        "\"https://b",
        "^\"b",
        "error: properties.destination.properties.endpointUrl: the URL has no scheme; http://… or https://…",
    ),
    (
        "\"https://b",
        "^\"/subscriptions/b",
        "error: properties.destination.properties.endpointUrl: not the address of a webhook; http://… or https://…",
    ),
    (
        "\" CloudEvent",
        "^\" CloudEvents",
        "error: properties.destination.properties.eventDeliverySchema: \"CloudEventsSchemaV1_0\" is not known here; did you mean CloudEventSchemaV1_0?",
    ),
    (
        "\"WebHook\"",
        "^\"WebHooks\"",
        "error: properties.destination.endpointType: \"WebHooks\" is not known here; did you mean WebHook?",
    ),
];

const TOPIC: &[Broken] = &[
    (
        "\"maxDeliveryAttempts\": 30",
        "\"maxDeliveryAttempts\": ^31",
        "error: properties.retryPolicy.maxDeliveryAttempts: has to be 1 to 30, is 31",
    ),
    (
        "InMinutes\": 1440",
        "InMinutes\": ^1441",
        "error: properties.retryPolicy.eventTimeToLiveInMinutes: has to be 1 to 1440, is 1441",
    ),
    (
        "PerBatch\": 1000",
        "PerBatch\": ^5001",
        "error: properties.destination.properties.maxEventsPerBatch: has to be 1 to 5000, is 5001",
    ),
    (
        "Kilobytes\": 512",
        "Kilobytes\": ^1025",
        "error: properties.destination.properties.preferredBatchSizeInKilobytes: has to be 1 to 1024, is 1025",
    ),
];

const NAMESPACE: &[Broken] = &[
    (
        "Count\": 3",
        "Count\": ^11",
        "error: properties.deliveryConfiguration.push.maxDeliveryCount: has to be 1 to 10, is 11",
    ),
    (
        "\"P1D\"",
        "^\"P8D\"",
        "error: properties.deliveryConfiguration.push.eventTimeToLive: has to be PT1M to P7D, is \"P8D\"",
    ),
    (
        "InDays\": 2",
        "InDays\": ^3",
        "error: properties.deliveryConfiguration.push.deadLetterDestinationWithResourceIdentity.deliveryRetryPeriodInDays: has to be 1 to 2, is 3",
    ),
    (
        "\"Push\"",
        "^\"Queue\"",
        "error: properties.deliveryConfiguration.deliveryMode: pull delivery is not supported",
    ),
];

#[test]
fn each_sample_with_one_field_broken_is_refused_at_line_and_column() {
    for (sample, table) in [(S2, KUBERNETES), (S3, TOPIC), (S4, NAMESPACE)] {
        for (right, wrong, expected) in table {
            assert!(sample.contains(right), "{right}");
            finds_one(&sample.replacen(right, wrong, 1), &[DESTINATIONS], expected);
        }
    }
}

#[test]
fn endpoints_and_headers_that_cannot_be_honoured_are_refused_at_their_position() {
    let hub = |id: &str| {
        format!(
            "{{name: n, lastmile: {{topic: a/b}}, properties: {{destination: {{endpointType: EventHub, properties: {{resourceId: {id}}}}}}}}}"
        )
    };
    let mapping = |of: &str| {
        webhook("", "")
            .replace("'http://h/'", &format!("'http://h/', deliveryAttributeMappings: {of}"))
    };
    let eleven = (0..11)
        .map(|n| format!("{{name: h{n}, type: Static, properties: {{value: v}}}}"))
        .collect::<Vec<_>>()
        .join(", ");
    for (marked, expected) in [
        (
            hub("^/hub"),
            "error: properties.destination.properties.resourceId: this resource needs an address in a Destinations document; spec: {\"/hub\": https://…}",
        ),
        (
            mapping("[{name: a, type: ^Dynamc, properties: {sourceField: data.x}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].type: \"Dynamc\" is not known here; did you mean Dynamic?",
        ),
        (
            mapping("[^{name: a, properties: {value: v}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].type: type is missing",
        ),
        (
            mapping("[{name: a, type: Dynamic, properties: {sourceField: ^'data.*'}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].properties.sourceField: not a path; a path leads to one value",
        ),
        (
            mapping("[{name: a, type: Dynamic, properties: ^{}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].properties.sourceField: sourceField is missing",
        ),
        (
            mapping("[{name: a, type: Static, properties: ^{isSecret: true}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].properties.value: value is missing",
        ),
        (
            mapping("[{name: a, type: Static, properties: {value: v, isSecret: ^1}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].properties.isSecret: expected true or false, found a whole number",
        ),
        (
            mapping("[{name: ^aeg-x, type: Static, properties: {value: v}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0].name: the header \"aeg-x\" cannot be set by a subscription",
        ),
        (
            mapping("[^{name: x-forwarded-for, type: Dynamic, properties: {sourceField: data.a}}]"),
            "error: properties.destination.properties.deliveryAttributeMappings[0]: the header \"x-forwarded-for\" cannot have a value of the event: state the value here, or choose another name",
        ),
        (
            mapping(&format!("^[{eleven}]")),
            "error: properties.destination.properties.deliveryAttributeMappings: at most 10 headers are allowed, found 11",
        ),
    ] {
        finds_one(&marked, &[], expected);
    }
}

#[test]
fn what_is_wrong_or_odd_around_them_is_reported_at_its_position() {
    for (marked, expected) in [
        (
            webhook(", expirationTimeUtc: ^tomorrow", ""),
            "error: properties.expirationTimeUtc: \"tomorrow\" is not an RFC 3339 time",
        ),
        (webhook("", ", lastmile: {dialect: ^knative}"), "error: lastmile.dialect: \"knative\" is not known here"),
        (
            webhook("", ", lastmile: {onRefused: ^all}"),
            "error: lastmile.onRefused: onRefused has no effect where each event has a request of its own; maxEvents (maxEventsPerBatch in Event Grid) enables",
        ),
        (webhook("", ", lastmile: {onRefused: ^none}"), "error: lastmile.onRefused: \"none\" is not known here"),
        (webhook("", ", lastmile: {topic: ^a}"), "error: lastmile.topic: a topic is namespace/topic"),
        (
            webhook("", ", lastmile: {retryOn: ^[400], neverRetry: [400]}"),
            "error: lastmile.retryOn: 400 is in neverRetry too",
        ),
        (webhook("", ", name: ^_n"), "error: name: not a usable name: names that begin with _ are reserved"),
        (
            "^{name: n, properties: {destination: {endpointType: WebHook, properties: {endpointUrl: 'http://h/'}}}}"
                .to_owned(),
            "error: neither an id, a topic, a scope nor lastmile names the topic of this subscription; add \"lastmile\": {\"topic\": \"namespace/topic\"}",
        ),
        (
            push(", eventTimeToLive: ^PT59S"),
            "error: properties.deliveryConfiguration.push.eventTimeToLive: has to be PT1M to P7D",
        ),
        (
            push("").replace("destination: {", "^destinatio: {").replace(
                "push: {",
                "push: {destination: {endpointType: WebHook, properties: {endpointUrl: 'http://h/'}}, ",
            ),
            "warning: properties.deliveryConfiguration.push.destinatio: unknown field \"destinatio\"; did you mean destination?",
        ),
        (
            webhook(", ^retrypolicy: {}", ""),
            "warning: properties.retrypolicy: unknown field \"retrypolicy\"; did you mean retryPolicy?",
        ),
        (
            webhook(", eventDeliverySchema: ^Avro", ""),
            "error: properties.eventDeliverySchema: \"Avro\" is not known here; known: EventGridSchema, CloudEventSchemaV1_0, CustomInputSchema",
        ),
        (
            webhook(", eventDeliverySchema: CustomInputSchema", "")
                .replace("'http://h/'", "'http://h/', eventDeliverySchema: ^EventGridSchema"),
            "error: properties.destination.properties.eventDeliverySchema: the properties of the subscription have another",
        ),
        (
            webhook(", retryPolicy: {maxDeliveryAttempts: 1, maxNumberOfAttempts: ^2}", ""),
            "warning: properties.retryPolicy.maxNumberOfAttempts: not used",
        ),
    ] {
        finds_one(&marked, &[], expected);
    }
}
