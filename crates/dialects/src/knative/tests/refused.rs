//! What is refused, field by field: a text with `^` before the place that the one error has to
//! point at.

use super::{
    EXAMPLE, SUBSCRIBER, TRIGGER, broker, class, named, read_one, shown, subscription, trigger,
};

/// The text has one error, at its `^`, that begins so.
fn is_refused(marked: &str, expected: &str) {
    let (before, after) = marked.split_once('^').unwrap_or_else(|| panic!("no ^ in {marked}"));
    let (line, column) = (
        before.lines().count().max(1),
        before.lines().last().unwrap_or_default().chars().count() + 1,
    );
    let found = shown(&read_one(&format!("{before}{after}")));
    let errors: Vec<&String> = found.iter().filter(|of| of.contains(": error: ")).collect();
    assert_eq!(errors.len(), 1, "{marked}: {found:?}");
    let expected = format!("f:{line}:{column}: error: {expected}");
    assert!(
        errors[0].starts_with(&expected),
        "{marked}\nexpected {expected}\nfound    {}",
        errors[0]
    );
}

/// The example with the right text broken has one error, at the `^` of the broken one.
fn each_is_refused(table: &[(&str, &str, &str)]) {
    for (right, broken, expected) in table {
        assert!(EXAMPLE.contains(right), "{right}");
        is_refused(&EXAMPLE.replacen(right, broken, 1), expected);
    }
}

#[test]
fn a_broken_delivery_is_refused_at_its_place() {
    each_is_refused(&[
        ("    retry: 5 ", "    retry: ^-1 ", "spec.delivery.retry: has to be 0 to 999, is -1"),
        (
            "    retry: 3\n",
            "    retry: ^many\n",
            "spec.delivery.retry: expected a whole number, found text",
        ),
        (
            "    retry: 3\n",
            "    retry: ^2147483648\n",
            "spec.delivery.retry: has to be 0 to 999, is 2147483648",
        ),
        (
            "    backoffPolicy: exponential\n    retry: 3",
            "    backoffPolicy: ^exponentail\n    retry: 3",
            "spec.delivery.backoffPolicy: \"exponentail\" is not known here; did you mean exponential?",
        ),
        (
            "    backoffDelay: PT1S\n    backoffPolicy: exponential\n    retry: 3",
            "    backoffDelay: ^<duration>\n    retry: 3",
            "spec.delivery.backoffDelay: \"<duration>\" is not an ISO 8601 duration: at character 1",
        ),
        (
            "timeout: PT10S",
            "timeout: ^PT0S",
            "spec.delivery.timeout: has to be PT0.001S to PT10M, is \"PT0S\"",
        ),
        (
            "retryAfterMax: PT10M",
            "retryAfterMax: ^10d",
            "spec.delivery.retryAfterMax: \"10d\" is not an ISO 8601",
        ),
        (
            "retryAfterMax: PT10M",
            "backoffMax: ^0s",
            "spec.delivery.backoffMax: has to be PT0.001S to P14D, is PT0S",
        ),
        (
            "retryAfterMax: PT10M",
            "backoffMax: ^PT0S",
            "spec.delivery.backoffMax: has to be PT0.001S to P14D",
        ),
        (
            "retryAfterMax: PT10M",
            "format: ^bniary",
            "spec.delivery.format: \"bniary\" is not known here; did you mean binary?",
        ),
    ]);
}

#[test]
fn a_broken_name_version_or_address_is_refused_at_its_place() {
    each_is_refused(&[
        (
            "kind: Trigger\nmetadata:\n  name: audit",
            "kind: Trigger\nmetadata:\n  name: ^a/b",
            "metadata.name: not a usable name",
        ),
        (
            "    name: orders\n  subscriber",
            "    name: ^a/b\n  subscriber",
            "spec.channel.name: not a usable name",
        ),
        (
            "  broker: with-dead-letter-sink\n  filters",
            "  broker: ^_a\n  filters",
            "spec.broker: not a usable name",
        ),
        (
            "\n  name: orders\n",
            "\n  name: ^7\n",
            "metadata.name: expected text, found a whole number",
        ),
        (
            "apiVersion: eventing.knative.dev/v1\nkind: Broker",
            "apiVersion: ^eventing.knative.dev/v2\nkind: Broker",
            "apiVersion: the version \"v2\" is not known here; known: v1, v1beta1, v1alpha1",
        ),
        (
            "    uri: https://audit.example.com/",
            "    uri: ^nowhere",
            "spec.subscriber.uri: nothing says what \"nowhere\" is here; add to the spec of a Destinations document: nowhere: https://…",
        ),
        (
            "    uri: https://audit.example.com/",
            "    uri: ^audit.example.com/",
            "spec.subscriber.uri: the URL has no scheme, and nothing says what \"audit.example.com/\" is here; https://…, or add to \
             the spec of a Destinations document: audit.example.com/: https://…",
        ),
        (
            "    uri: https://audit.example.com/",
            "    uri: ^s3://bucket",
            "spec.subscriber.uri: a container is not a destination for events",
        ),
        (
            "    uri: /events ",
            "    uri: ^https://elsewhere/ ",
            "spec.subscriber.uri: a uri beside a ref is relative to it",
        ),
        (
            "    uri: /events ",
            "    uri: ^//elsewhere/ ",
            "spec.subscriber.uri: a uri beside a ref is relative to it",
        ),
        (
            "\"404,429\"",
            "^\"404,4O9\"",
            "metadata.annotations.lastmile.dev/never-retry: \"4O9\" is neither a status nor a range",
        ),
    ]);
}

#[test]
fn a_broken_filter_is_refused_at_its_place() {
    each_is_refused(&[
        (
            "exact: {subject: test}",
            "exact: {subject: ^''}",
            "spec.filters[1].not.exact.subject: an empty value cannot be compared",
        ),
        (
            "exact: {subject: test}",
            "cesql: ^subject == 'test'",
            "spec.filters[1].not.cesql: at character 10: a value or the name of an attribute is expected, found =",
        ),
        (
            "exact: {subject: test}",
            "exact: {^Subject: test}",
            "spec.filters[1].not.exact.Subject: not the name of an attribute",
        ),
        ("- prefix: {type: order.}", "- ^{}", "spec.filters[0].any[0]: no condition is known here"),
    ]);
}

#[test]
fn a_reference_without_an_entry_shows_the_entry_to_add() {
    let trigger = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t, namespace: n}\nspec:\n  \
                   broker: b\n  subscriber: {ref: ^{apiVersion: serving.knative.dev/v1, kind: Service, name: s}}\n";
    let key = "serving.knative.dev/v1/Service/n/s";
    is_refused(
        trigger,
        &format!(
            "spec.subscriber.ref: nothing says what \"{key}\" is here; add to the spec of a Destinations document: {key}: https://…"
        ),
    );
}

#[test]
fn what_is_missing_is_reported_by_name() {
    let head = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t}\n";
    let broker = broker("", "{}");
    for (rest, expected) in [
        ("^", "spec is missing"),
        ("spec: ^5\n", "spec: expected a mapping, found a whole number"),
        ("spec: ^{broker: b}\n", "spec.subscriber: subscriber is missing"),
        (
            "spec: {broker: b, subscriber: ^{}}\n",
            "spec.subscriber: ref or uri is missing; uri: https://…",
        ),
        (
            "spec: {broker: b, subscriber: {ref: ^{kind: Service, apiVersion: v1}}}\n",
            "spec.subscriber.ref.name: name is missing",
        ),
        (
            "spec: {broker: ^7, subscriber: {uri: 'http://h/'}}\n",
            "spec.broker: expected text, found a whole number",
        ),
        (
            "spec: {broker: b, filter: ^{sourceAndTipe: {type: a}}, subscriber: {uri: 'http://h/'}}\n",
            "spec.filter: no condition is known here",
        ),
        (
            "spec: {broker: b, filters: [^{exat: {type: a}}], subscriber: {uri: 'http://h/'}}\n",
            "spec.filters[0]: no condition is known here",
        ),
        (
            "spec: {broker: b, filters: [^{exact: {type: a}, prefix: {type: a}}], subscriber: {uri: 'http://h/'}}\n",
            "spec.filters[0]: an expression has one operator",
        ),
        (
            "spec: {broker: b, subscriber: {ref: ^{apiVersion: eventing.knative.dev/v1, kind: Broker, name: b}}}\n",
            "spec.subscriber.ref: default/b would get each of its events again and again",
        ),
    ] {
        if rest == "^" {
            is_refused(&format!("^{head}---\n{broker}"), expected);
        } else {
            is_refused(&format!("{broker}{head}{rest}"), expected);
        }
    }
}

#[test]
fn a_name_is_defined_once() {
    let broker = broker("", "{}");
    let found = shown(&read_one(&format!("{broker}{broker}")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("the topic default/b is defined twice; the first is at f:3:18"),
        "{found:?}"
    );
}

#[test]
fn what_knative_accepts_as_empty_is_accepted() {
    let broker = broker(&class("Kafka"), "{}");
    let text = format!(
        "{broker}{TRIGGER}{SUBSCRIBER}  filters: [{{all: []}}, {{exact: {{}}}}, {{cesql: ''}}, {{}}, {{not: null}}]\n"
    );
    assert_eq!(shown(&read_one(&text)), Vec::<String>::new());
    let text = format!(
        "{broker}{TRIGGER}{SUBSCRIBER}  filters: [{{not: {{exact: {{}}}}}}, {{}}, {{al: []}}]\n"
    );
    assert_eq!(shown(&read_one(&text)).iter().filter(|of| of.contains("error")).count(), 2);
    let subscription = format!(
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s, namespace: ''}}\nspec:\n  \
         channel: {{apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: c, namespace: ''}}\n{SUBSCRIBER}  reply: {{}}\n"
    );
    let reading = read_one(&subscription);
    assert_eq!(named(&reading, "default/c/s").reply, None);
    assert_eq!(shown(&reading), Vec::<String>::new());
}

#[test]
fn a_timeout_that_no_request_may_have_is_cut_with_a_warning() {
    let broker = broker(&class("Kafka"), "{}");
    let (read, found) =
        subscription(&format!("{broker}{}", trigger("  delivery: {timeout: PT15M}\n")));
    assert_eq!(read.destination.response_timeout_ms, 600_000);
    assert_eq!(
        found,
        [
            "f:12:23: warning: spec.delivery.timeout: read as PT10M: no request takes longer here; PT10M"
        ]
    );
}
