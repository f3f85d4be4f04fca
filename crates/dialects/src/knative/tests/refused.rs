//! Refused values of Knative files: a text with `^` at the place of its one error, and below it the
//! error.
//!
//! The fields that `docs/reference/conformance.md` lists have their errors there.

use super::{SUBSCRIBER, TRIGGER, broker, class, named, read_one, shown, subscription, trigger};
use crate::tests::support::{finds_one, rows};

/// Fields of a Trigger beside its broker and its subscriber.
const TRIGGERS: &str = r#"
delivery: {retry: ^many}
    spec.delivery.retry: expected a whole number, found text
delivery: {retry: ^2147483648}
    spec.delivery.retry: must be 0 to 999, but is 2147483648
delivery: {backoffPolicy: ^exponentail}
    spec.delivery.backoffPolicy: "exponentail" is not a valid value; did you mean exponential?
delivery: {backoffDelay: ^<duration>}
    spec.delivery.backoffDelay: "<duration>" is not an ISO 8601 duration: at character 1
delivery: {retryAfterMax: ^10d}
    spec.delivery.retryAfterMax: "10d" is not an ISO 8601
delivery: {backoffMax: ^0s}
    spec.delivery.backoffMax: must be PT0.001S to P14D, but is PT0S
delivery: {backoffMax: ^PT0S}
    spec.delivery.backoffMax: must be PT0.001S to P14D
delivery: {format: ^bniary}
    spec.delivery.format: "bniary" is not a valid value; did you mean binary?
filter: ^{sourceAndTipe: {type: a}}
    spec.filter: the filter has no supported condition
filters: [^{exat: {type: a}}]
    spec.filters[0]: the filter has no supported condition
filters: [^{exact: {type: a}, prefix: {type: a}}]
    spec.filters[0]: an expression must have exactly one operator
filters: [{any: [^{}]}]
    spec.filters[0].any[0]: the filter has no supported condition
filters: [{not: {exact: {subject: ^''}}}]
    spec.filters[0].not.exact.subject: an empty value cannot be compared
filters: [{not: {exact: {^Subject: test}}}]
    spec.filters[0].not.exact.Subject: not the name of an attribute; filters match only attributes
filters: [{not: {cesql: ^subject == 'test'}}]
    spec.filters[0].not.cesql: at character 10: expected a value or the name of an attribute, found =
"#;

/// The subscriber of a Trigger.
const SUBSCRIBERS: &str = r#"
subscriber: ^{}
    spec.subscriber: ref or uri is missing; uri: https://…
subscriber: {uri: ^nowhere}
    spec.subscriber.uri: no file or Destinations document defines "nowhere"; add to the spec of a Destinations document: nowhere: https://…
subscriber: {uri: ^audit.example.com/}
    spec.subscriber.uri: the URL has no scheme, and no file or Destinations document defines "audit.example.com/"; https://…, or add to the spec of a Destinations document: audit.example.com/: https://…
subscriber: {uri: ^s3://bucket}
    spec.subscriber.uri: a container can receive only dead letters
subscriber: {ref: ^{kind: Service, apiVersion: v1}}
    spec.subscriber.ref.name: name is missing
subscriber: {ref: ^{apiVersion: v1, kind: Service, name: other}}
    spec.subscriber.ref: no file or Destinations document defines "v1/Service/default/other"; add to the spec of a Destinations document: v1/Service/default/other: https://…
subscriber: {ref: ^{apiVersion: eventing.knative.dev/v1, kind: Broker, name: b}}
    spec.subscriber.ref: default/b would receive each of its events again, in an endless loop
subscriber: {ref: {apiVersion: v1, kind: Service, name: known}, uri: ^https://elsewhere/}
    spec.subscriber.uri: a uri with a ref must be relative
subscriber: {ref: {apiVersion: v1, kind: Service, name: known}, uri: ^//elsewhere/}
    spec.subscriber.uri: a uri with a ref must be relative
"#;

/// Whole documents, the version and kind of which are those of a Trigger unless they are stated.
const DOCUMENTS: &str = r#"
metadata: {name: ^a/b}, spec: {broker: b, subscriber: {uri: 'http://h/'}}
    metadata.name: not a valid name
metadata: {name: ^7}, spec: {broker: b, subscriber: {uri: 'http://h/'}}
    metadata.name: expected text, found a whole number
metadata: {name: t, annotations: {lastmile.dev/never-retry: ^'404,4O9'}}, spec: {broker: b, subscriber: {uri: 'http://h/'}}
    metadata.annotations.lastmile.dev/never-retry: "4O9" is not a status or a range
metadata: {name: t}, spec: ^5
    spec: expected a mapping, found a whole number
metadata: {name: t}, spec: ^{broker: b}
    spec.subscriber: subscriber is missing
metadata: {name: t}, spec: {broker: ^_a, subscriber: {uri: 'http://h/'}}
    spec.broker: not a valid name
metadata: {name: t}, spec: {broker: ^7, subscriber: {uri: 'http://h/'}}
    spec.broker: expected text, found a whole number
apiVersion: ^eventing.knative.dev/v2, kind: Broker, metadata: {name: c}
    apiVersion: the version "v2" is not supported; expected one of v1, v1beta1, v1alpha1
apiVersion: messaging.knative.dev/v1, kind: Subscription, metadata: {name: s}, spec: {channel: {apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: ^a/b}, subscriber: {uri: 'http://h/'}}
    spec.channel.name: not a valid name
"#;

#[test]
fn each_broken_field_is_refused_at_its_place() {
    let broker = broker("", "{}");
    let known = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {v1/Service/default/known: 'https://known/'}\n";
    let of_trigger = |fields: &str| format!("{broker}{TRIGGER}{SUBSCRIBER}  {fields}\n");
    let of_subscriber = |field: &str| format!("{broker}{TRIGGER}  {field}\n{known}");
    let document = |fields: &str| {
        let kind = if fields.starts_with("api") {
            ""
        } else {
            "apiVersion: eventing.knative.dev/v1, kind: Trigger, "
        };
        format!("{broker}{{{kind}{fields}}}\n")
    };
    let refuses = |table: &'static str, text: &dyn Fn(&str) -> String| {
        for (marked, expected) in rows(table) {
            finds_one(&text(marked), &format!("error: {expected}"));
        }
    };
    refuses(TRIGGERS, &of_trigger);
    refuses(SUBSCRIBERS, &of_subscriber);
    refuses(DOCUMENTS, &document);
    let without_spec = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t}\n";
    finds_one(&format!("^{without_spec}---\n{broker}"), "error: spec is missing");
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
    assert_eq!(
        shown(&read_one(&text)).iter().filter(|finding| finding.contains("error")).count(),
        2
    );
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
        ["f:12:23: warning: spec.delivery.timeout: shortened to PT10M, the maximum response \
          timeout; PT10M"]
    );
}
