//! Requests that templates make: the examples in `examples/bodies` byte for byte, their secrets, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use delivery::delivery::Delivery;
use delivery::delivery::outcome::Unsendable;
use delivery::event::Input;
use delivery::request::verification::{SignedHeaders, Verifier};
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::Subscription;
use delivery::subscription::secret::{Keyring, Secret};
use dialects::{Reading, Source};

use crate::canonical::is_kept;
use crate::requests::assert_printed;
use crate::samples::{PUBLISHED_MS, delivery_of};

const ORDER: &str = r#"{"specversion":"1.0","id":"e-1","source":"/shop","type":"com.example.order.created",
    "time":"2026-11-20T07:03:00Z","datacontenttype":"application/json","data":{"id":"o/7 \"ä\"","total":1250,
    "currency":"EUR","customer":{"name":"Zoë"},"items":[{"count":2,"name":"tea"},{"count":1,"name":"cup"}],
    "email":"zoe+shop@example.com","name":"Zoë & Co"}}"#;
const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn read(text: &str) -> Reading {
    dialects::read(&[Source { name: "bodies.yaml", text }])
}

/// The one subscription of a text without a finding.
fn subscription_of(text: &str) -> Arc<Subscription> {
    let reading = read(text);
    assert!(reading.findings.is_empty(), "{text}: {:#?}", reading.findings);
    is_kept(&reading);
    Arc::clone(reading.catalogue.subscriptions().next().expect("a subscription"))
}

fn with(destination: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: billing}}\n\
         spec:\n  destination: {{url: \"https://a.example.com/in\"{destination}}}\n"
    )
}

fn keyring() -> Keyring {
    let secrets = [
        ("env:TEAMS_SIGNATURE", "s1g+n"),
        ("env:PAGERDUTY_ROUTING_KEY", "r0uting-key-0000"),
        ("env:STRIPE_AUTHORIZATION", "Bearer sk_test_1"),
        ("env:KEY", "k3y-of-the-receiver"),
        ("env:SIGNING", SIGNING),
    ];
    let named = |(name, value): (&str, &str)| {
        (name.parse().expect("a name"), Secret::new(value.to_owned()))
    };
    secrets.map(named).into_iter().collect()
}

fn composed(subscription: &Subscription, events: &[&str]) -> Result<Request, Unsendable> {
    let deliveries: Vec<Delivery> =
        events.iter().map(|event| delivery_of(event, Input::Auto)).collect();
    let deliveries: Vec<&Delivery> = deliveries.iter().collect();
    let now_ms = PUBLISHED_MS + 4_000;
    let context = AttemptContext { keyring: &keyring(), now_ms, timeout_ms: 30_000 };
    compose(subscription, &deliveries, context)
}

fn body(request: &Request) -> &str {
    std::str::from_utf8(&request.body).expect("a text")
}

#[test]
fn the_examples_are_sent_as_their_services_want_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bodies");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 5);
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let subscription = subscription_of(&fs::read_to_string(&file).expect("a text"));
        let request = composed(&subscription, &[ORDER]).expect(&name);
        assert_printed(&format!("body-{name}"), &request);
    }
}

#[test]
fn each_part_of_a_request_may_have_expressions() {
    let subscription = subscription_of(&with(
        ", method: PUT, query: {q: \"{{ event.data.id }}\"}, headers: [{name: x-of, value: \"{{ event.data.customer.name }}!\"}], \
         body: {id: \"{{ event.data.id }}\", total: \"{{ event.data.total }}\", fixed: [1, null, true], \
         raw: \"{{ event.data.items }}\"}",
    ).replace("/in\"", "/orders/{{ event.data.id }}/x?a=1\""));
    let request = composed(&subscription, &[ORDER]).expect("a request");
    assert_eq!(request.method.as_str(), "PUT");
    assert_eq!(
        request.url.as_str(),
        "https://a.example.com/orders/o%2F7%20%22%C3%A4%22/x?a=1&q=o%2F7+%22%C3%A4%22"
    );
    assert!(request.headers.contains(&("x-of".to_owned(), "Zo%C3%AB!".to_owned())));
    assert_eq!(
        body(&request),
        r#"{"fixed":[1,null,true],"id":"o/7 \"ä\"","raw":[{"count":2,"name":"tea"},{"count":1,"name":"cup"}],"total":1250}"#
    );
    let shown = subscription.destination.display();
    assert_eq!(shown, "https://a.example.com/orders/{{ event.data.id }}/x");
}

#[test]
fn the_signature_covers_the_body_that_is_sent() {
    let subscription = subscription_of(&with(
        ", signing: {secrets: [env:SIGNING]}, body: {of: \"{{ event.id }}\"}",
    ));
    let request = composed(&subscription, &[ORDER]).expect("a request");
    let header = |name: &str| {
        let found = request.headers.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    };
    let signed = SignedHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let verifier = Verifier::new([SIGNING]).expect("a key");
    assert_eq!(body(&request), r#"{"of":"e-1"}"#);
    assert!(verifier.check(signed, body(&request).as_bytes(), PUBLISHED_MS + 4_000).is_ok());
}

#[test]
fn a_secret_of_a_template_is_one_of_the_destination_and_is_hidden() {
    let subscription = subscription_of(&with(
        ", query: {key: \"{{ secret('env:KEY') }}\"}, body: {hash: \"{{ event.id | hmac('env:SIGNING') }}\"}",
    ));
    let names: Vec<String> = subscription.destination.secrets().map(ToString::to_string).collect();
    assert_eq!(names, ["env:KEY", "env:SIGNING"]);
    let credentials = subscription.destination.credentials(&keyring(), None);
    let echo = "you sent k3y-of-the-receiver".to_owned();
    assert_eq!(credentials.hide_in_text(echo), "you sent [secret]");
    let request = composed(&subscription, &[ORDER]).expect("a request");
    assert_eq!(request.hidden.len(), 2);
    assert_eq!(request.body_without_secrets(), None);
    let in_body = subscription_of(&with(", body: {key: \"{{ secret('env:KEY') }}\"}"));
    let in_body = composed(&in_body, &[ORDER]).expect("a request");
    assert_eq!(in_body.body_without_secrets().as_deref(), Some(&br#"{"key":"[secret]"}"#[..]));
    let context =
        AttemptContext { keyring: &Keyring::default(), now_ms: PUBLISHED_MS, timeout_ms: 1 };
    let without = compose(&subscription, &[&delivery_of(ORDER, Input::Auto)], context);
    let expected = "the secret env:KEY was not loaded".to_owned();
    assert_eq!(without.err(), Some(Unsendable::Unready(expected)));
}

#[test]
fn a_value_that_the_event_lacks_ends_the_delivery_with_place_and_expression() {
    let subscription = subscription_of(&with(", body: {a: [{b: \"{{ event.data.missing }}\"}]}"));
    let Err(Unsendable::Impossible(problem)) = composed(&subscription, &[ORDER]) else {
        panic!("a request was made");
    };
    assert!(
        problem.starts_with("destination.body.a[0].b: `{{ event.data.missing }}`: "),
        "{problem}"
    );
}

#[test]
fn values_of_an_event_stay_in_their_part_of_the_request() {
    let hostile = r#"a\r\nx-evil: 1\"}&b=/../{{ event.id }}?#"#;
    let order = ORDER.replace("Zoë\"", &format!("{hostile}\""));
    let template = "{{ event.data.customer.name }}";
    let text = with(&format!(", query: {{q: \"{template}\"}}, body: {{t: \"{template}\"}}"));
    let subscription = subscription_of(&text.replace("/in\"", &format!("/x/{template}/y\"")));
    let request = composed(&subscription, &[&order]).expect("a request");
    let value: String = serde_json::from_str(&format!("\"{hostile}\"")).expect("a text");
    let of_body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(of_body, serde_json::json!({ "t": value }));
    let pairs: Vec<(String, String)> = request.url.query_pairs().into_owned().collect();
    assert_eq!(pairs, [("q".to_owned(), value)]);
    assert_eq!(request.url.host_str(), Some("a.example.com"));
    assert_eq!(request.url.path().split('/').count(), 4);
    let header = with(&format!(", headers: [{{name: x-a, value: \"{template}\"}}]"));
    let path = with("").replace("/in\"", &format!("/x/{template}\""));
    for (text, value, problem) in
        [(header, hostile, "a control character"), (path, "..", "would change the path")]
    {
        let order = ORDER.replace("Zoë\"", &format!("{value}\""));
        let Err(Unsendable::Impossible(why)) = composed(&subscription_of(&text), &[&order]) else {
            panic!("{value} was sent");
        };
        assert!(why.contains(problem) && !why.contains("evil"), "{why}");
    }
}

#[test]
fn a_url_with_all_its_parameters_is_bounded() {
    let parameters = |count: usize| {
        let parameter = |number| format!("p{number}: \"{{{{ event.data.customer.name }}}}\"");
        let parameters: Vec<String> = (0..count).map(parameter).collect();
        subscription_of(&with(&format!(", query: {{{}}}", parameters.join(", "))))
    };
    let order = ORDER.replace("Zoë\"", &format!("{}\"", "z".repeat(1_000)));
    let url = |count: usize| composed(&parameters(count), &[&order]).map(|request| request.url);
    assert_eq!(url(8).expect("a request").query_pairs().count(), 8);
    let problem =
        "destination.query: the URL with its parameters has 9060 bytes; the limit is 8192 bytes";
    assert_eq!(url(9), Err(Unsendable::Impossible(problem.to_owned())));
}

#[test]
fn a_batch_is_one_body_of_all_its_events() {
    let batch =
        |body: &str| with(&format!(", body: {{ids: \"{body}\"}}")) + "  batch: {maxEvents: 10}\n";
    let subscription = subscription_of(&batch(
        "{% for each in events %}{{ each.id }}{% if not loop.last %},{% endif %}{% endfor %}",
    ));
    let other = ORDER.replace("e-1", "e-2");
    let request = composed(&subscription, &[ORDER, &other]).expect("a request");
    assert_eq!(body(&request), r#"{"ids":"e-1,e-2"}"#);
    let refused = read(&batch("{{ event.id }}")).findings;
    assert!(
        refused.iter().any(|finding| finding.to_string().contains("a batch has no `event`")),
        "{refused:#?}"
    );
}

#[test]
fn a_get_has_no_body_and_text_has_its_content_type() {
    let request = composed(&subscription_of(&with(", method: GET")), &[ORDER]).expect("a request");
    assert!(request.body.is_empty() && request.method.as_str() == "GET");
    let of_text = ", contentType: application/xml, bodyText: \"<id>{{ event.id }}</id>\"";
    let request = composed(&subscription_of(&with(of_text)), &[ORDER]).expect("a request");
    assert_eq!(body(&request), "<id>e-1</id>");
    assert_eq!(request.headers[0], ("content-type".to_owned(), "application/xml".to_owned()));
}

#[test]
fn what_cannot_be_a_request_is_refused_at_its_field() {
    for (destination, problem) in [
        (", body: 1, bodyText: x", "set only one of body and bodyText"),
        (", method: GET, body: 1", "a GET request has no body"),
        (", contentType: a/b", "contentType requires body or bodyText"),
        (", body: {zip: 01234}", "write it in quotes"),
        (", bodyText: x, contentType: text", "not a media type"),
        (", query: {api_key: abc}", "a credential must not be in clear text"),
        (", body: \"{{ event.id\"", "destination.body: "),
        (
            ", body: {a: [0, \"{% set x = 1 %}\"]}",
            "5:64: error: spec.destination.body.a[1]: `{% set x = 1 %}`: ",
        ),
        (", body: {\"a b\": {a: \"{{ a }}\"}}", "error: spec.destination.body.a b.a: `{{ a }}`: "),
        (", body: \"{{ secret('KEY') }}\"", "\"KEY\" is not the name of a secret"),
        (
            ", headers: [{name: x-real-ip, value: \"{{ event.id }}\"}]",
            "cannot contain a value from the event",
        ),
    ] {
        let findings = read(&with(destination)).findings;
        assert!(
            findings.iter().any(|finding| finding.to_string().contains(problem)),
            "{destination}: {findings:#?}"
        );
    }
    let reply = with("") + "  reply: 'https://r.example.com/{{ event.id }}'\n";
    let findings = read(&reply).findings;
    assert!(
        findings
            .iter()
            .any(|finding| finding.to_string().contains("expressions are supported only")),
        "{findings:#?}"
    );
    let host = with("").replace("a.example.com", "{{ event.id }}.example.com");
    let findings = read(&host).findings;
    assert!(
        findings.iter().any(|finding| finding.to_string().contains("only in the path")),
        "{findings:#?}"
    );
}

#[test]
fn the_error_of_a_template_states_its_place_once_and_no_text_of_a_credential() {
    for (destination, place) in [
        (", body: {a: \"{{ other }}\"}", "spec.destination.body.a: `"),
        (", bodyText: \"{{ other }}\"", "spec.destination.bodyText: `"),
        (", query: {q: \"{{ other }}\"}", "spec.destination.query.q: `"),
        (
            ", headers: [{name: x-a, value: \"{{ other }}\"}]",
            "spec.destination.headers[0].value: `",
        ),
        (
            ", headers: [{name: x-key, value: \"{{ other }}\"}]",
            "spec.destination.headers[0].value: there is no",
        ),
        (", query: {code: \"{{ other }}\"}", "spec.destination.query.code: there is no"),
    ] {
        let shown: Vec<String> =
            read(&with(destination)).findings.iter().map(ToString::to_string).collect();
        let found = shown.iter().find(|text| text.contains(place));
        let found = found.unwrap_or_else(|| panic!("{place}: {shown:#?}"));
        assert_eq!(found.matches("destination.").count(), 1, "{found}");
    }
}

/// A Topic with these fields of a destination, and a Subscription with those.
fn inheriting(topic: &str, subscription: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\n\
         spec: {{delivery: {{destination: {{{topic}}}}}}}\n---\n{}",
        with(subscription)
    )
}

#[test]
fn a_subscription_replaces_the_body_of_its_topic_or_sends_the_event() {
    let event_type = "application/cloudevents+json; charset=utf-8";
    for (topic, subscription, expected, content_type) in [
        ("body: {a: 1}", "", r#"{"a":1}"#, "application/json; charset=utf-8"),
        ("body: {a: 1}", ", body: {b: 2}", r#"{"b":2}"#, "application/json; charset=utf-8"),
        ("body: {a: 1}", ", bodyText: b", "b", "text/plain; charset=utf-8"),
        (
            "bodyText: a, contentType: a/a",
            ", body: {b: 2}",
            r#"{"b":2}"#,
            "application/json; charset=utf-8",
        ),
        ("bodyText: a, contentType: a/a", ", contentType: b/b", "a", "b/b"),
        ("bodyText: a, contentType: a/a", ", bodyText: b", "b", "text/plain; charset=utf-8"),
        ("body: {a: 1}, contentType: a/a", ", body: null", ORDER, event_type),
        ("bodyText: a", ", body: null", ORDER, event_type),
        ("bodyText: a", ", bodyText: null", ORDER, event_type),
        ("body: {a: 1}", ", body: null, bodyText: b", "b", "text/plain; charset=utf-8"),
    ] {
        let read = subscription_of(&inheriting(topic, subscription));
        let request = composed(&read, &[ORDER]).expect("a request");
        assert_eq!(body(&request), expected, "{topic} {subscription}");
        assert_eq!(request.headers[0].1, content_type, "{topic} {subscription}");
    }
    let findings = read(&inheriting("body: {a: 1}", ", method: GET")).findings;
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let expected = "a GET request has no body: set another method; body is set at bodies.yaml:4:";
    assert!(shown.iter().any(|text| text.contains(expected)), "{shown:#?}");
}
