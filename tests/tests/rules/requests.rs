//! Requests as they leave the system, compared byte for byte with the files in `golden/requests`,
//! and deliveries that cannot be sent.
//!
//! A golden file is the request as text: method and path, headers, an empty line, the body. It
//! changes only on purpose: run with `UPDATE_GOLDEN=1`, then check the diff against the table of
//! what is sent.

use delivery::subscription::Signing;
use std::sync::Arc;

use delivery::delivery::Delivery;
use delivery::delivery::outcome::{TransportResult, Unsendable, Verdict, judge};
use delivery::event::Input;
use delivery::event::mapping::{Field, Mapping};
use delivery::event::schema::Schema;
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::Subscription;
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::{Keyring, Secret};
use proptest::prelude::*;

use crate::samples::{self, PUBLISHED_MS, delivery_of, subscription};

/// A CloudEvent in which every byte matters: order, spaces, escapes, a repeated name inside the
/// data, exact numbers.
const EXACT: &str = "{ \"type\":\"order.created\" ,\n\t\"specversion\": \"1.0\",\"source\":\"/shop\",\"id\":\"exact-1\",\
    \"subject\":\"Euro € 😀\",\"time\":\"2026-11-20T07:03:00.1234567+01:00\",\"dataschema\":\"#\",\"count\":5,\"yes\":true,\
    \"none\":null,\"data\":{\"b\":1.50,\"a\":12345678901234567890123,\"a\":1e400,\"text\":\"gr\\u00fc\\u00dfe, grüße \\/ 🦀\"}}";
const EVENT_GRID: &str = r##"{"id":"e-1","topic":"/subscriptions/s/topics/t","subject":"orders/7","eventType":"Shop.Created","eventTime":"2026-11-20T07:03:00.1234567Z","dataVersion":"2.1","metadataVersion":"1","data":{"n":12345678901234567890123}}"##;
const CUSTOM: &str =
    r#"{"orderId": 7, "kind": "created", "total": 1.10, "nested": {"at": "2026-11-20T07:03:00Z"}}"#;

/// One attempt as text.
fn printed(request: &Request) -> String {
    let headers: String =
        request.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let body =
        String::from_utf8(request.body.to_vec()).expect("the bodies of these requests are text");
    format!("{} {}\n{headers}\n{body}", request.method.as_str(), request.url)
}

fn composed(subscription: &Subscription, delivery: &Delivery) -> Result<Request, Unsendable> {
    let secrets = [
        ("env:TOKEN", "Bearer hush\n"),
        ("env:SIGNING", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("env:NEXT", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"),
    ];
    let keyring: Keyring = secrets
        .map(|(name, value)| (name.parse().expect("a name"), Secret::new(value.to_owned())))
        .into_iter()
        .collect();
    compose(
        subscription,
        &[delivery],
        AttemptContext { keyring: &keyring, now_ms: PUBLISHED_MS + 4_000, timeout_ms: 30_000 },
    )
}

fn in_schema(schema: Schema) -> Subscription {
    let mut subscription = subscription(Dialect::Native);
    subscription.destination.schema = Some(schema);
    subscription
}

fn field(path: Option<&str>, default: Option<&str>) -> Field {
    Field {
        path: path.map(|path| path.parse().expect("a path")),
        default: default.map(ToOwned::to_owned),
    }
}

fn mapped(mut subscription: Subscription) -> Subscription {
    subscription.mapping = Arc::new(Mapping {
        id: field(Some("orderId"), None),
        event_type: field(Some("kind"), Some("order")),
        event_time: field(Some("$.nested.at"), None),
        subject: field(Some("missing"), Some("none")),
        ..Mapping::default()
    });
    subscription
}

#[track_caller]
fn assert_golden(name: &str, subscription: &Subscription, delivery: &Delivery) {
    assert_printed(name, &composed(subscription, delivery).expect("it can be sent"));
}

/// Compares a request with the golden file of this name.
#[track_caller]
pub(crate) fn assert_printed(name: &str, request: &Request) {
    samples::assert_golden(&format!("requests/{name}.http"), printed(request).as_bytes());
}

#[test]
fn events_are_sent_in_the_schema_of_the_subscription_or_in_their_own() {
    let published = subscription(Dialect::Native);
    let [structured, binary, grid, custom] = [
        Schema::CloudEventsStructured,
        Schema::CloudEventsBinary,
        Schema::EventGrid,
        Schema::Custom,
    ]
    .map(in_schema);
    let mut plain = published.clone();
    plain.destination.plain_json = true;
    // A schema takes precedence over the dialect.
    let mut plain_custom = custom.clone();
    plain_custom.destination.plain_json = true;
    let mut defaults_only = grid.clone();
    defaults_only.mapping = Arc::new(Mapping {
        event_type: field(None, Some("order")),
        subject: field(None, Some("-")),
        ..Mapping::default()
    });
    let without_topic = EVENT_GRID.replace(r#""topic":"/subscriptions/s/topics/t","#, "");
    for (name, subscription, event) in [
        ("published-cloudevent", &published, EXACT),
        ("published-event-grid", &published, EVENT_GRID),
        ("published-custom", &published, CUSTOM),
        ("published-plain", &plain, CUSTOM),
        ("published-custom", &plain_custom, CUSTOM),
        ("cloudevent-structured", &structured, EXACT),
        ("cloudevent-binary", &binary, EXACT),
        ("cloudevent-custom", &custom, EXACT),
        ("event-grid-as-structured", &structured, EVENT_GRID),
        ("event-grid-as-binary", &binary, EVENT_GRID),
        ("event-grid-without-topic", &structured, &without_topic),
        ("custom-as-event-grid", &mapped(grid.clone()), CUSTOM),
        ("custom-as-structured", &mapped(structured.clone()), CUSTOM),
        ("custom-as-binary", &mapped(binary.clone()), CUSTOM),
        ("custom-as-custom", &mapped(custom.clone()), CUSTOM),
        ("custom-unmapped", &defaults_only, CUSTOM),
    ] {
        assert_golden(name, subscription, &delivery_of(event, Input::Auto));
    }
    let text = delivery_of("<order id=\"1\">grüße</order>\n", Input::Opaque);
    assert_golden("published-opaque", &published, &text);
}

#[test]
fn binary_data_follows_its_content_type() {
    let binary = in_schema(Schema::CloudEventsBinary);
    for (name, members) in [
        ("no-data", ""),
        ("text", r#","datacontenttype":"text/plain; charset=utf-8","data":"gr\u00fc\u00dfe\n""#),
        ("json-string", r#","datacontenttype":"application/json","data":"gr\u00fc\u00dfe""#),
        ("json-suffix", r#","datacontenttype":"application/vnd.x+JSON;v=1","data":[1, 2 ]"#),
        ("xml-object", r#","datacontenttype":"application/xml","data":{"not": "xml"}"#),
        ("base64", r#","datacontenttype":"application/octet-stream","data_base64":"Z3LDvMOfZQ==""#),
        ("base64-untyped", r#","data_base64":"Z3LDvMOfZQ==""#),
        ("null", r#","data":null"#),
        ("null-base64", r#","data":{"n": 1.50},"data_base64":null"#),
    ] {
        let event = delivery_of(&event_with(members), Input::Auto);
        assert_golden(&format!("binary-{name}"), &binary, &event);
    }
}

#[test]
fn headers_describe_the_delivery_and_continue_its_trace() {
    let mut notified = mapped(in_schema(Schema::EventGrid));
    notified.destination.notification_headers = true;
    let mut as_published = notified.clone();
    as_published.destination.schema = None;
    let again = Delivery { attempts: 2, ..delivery_of(EVENT_GRID, Input::Auto) };
    let [custom, exact] = [CUSTOM, EXACT].map(|event| delivery_of(event, Input::Auto));
    let own = r#","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01","tracestate":"rojo=00f067aa0ba902b7""#;
    let of_queue = Some("00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01".to_owned());
    let traced = delivery_of(&event_with(own), Input::Auto);
    let traced = Delivery { traceparent: of_queue.clone(), ..traced };
    let untraced = Delivery { traceparent: of_queue, ..custom.clone() };
    let native = subscription(Dialect::Native);
    for (name, subscription, delivery) in [
        ("notification-headers", &notified, &again),
        ("notification-headers-custom", &notified, &custom),
        ("notification-headers-cloudevent", &as_published, &exact),
        ("trace-of-event", &native, &traced),
        ("trace-of-event-binary", &in_schema(Schema::CloudEventsBinary), &traced),
        ("trace-of-queue", &native, &untraced),
    ] {
        assert_golden(name, subscription, delivery);
    }
}

#[test]
fn a_request_built_from_an_event_is_valid_or_not_sent() {
    let mut odd_source = mapped(in_schema(Schema::CloudEventsStructured));
    odd_source.mapping = Arc::new(Mapping {
        topic: field(Some("source"), None),
        ..Mapping::clone(&odd_source.mapping)
    });
    let event = r#"{"kind":"k","source":"shop <1> ö"}"#;
    let body =
        composed(&odd_source, &delivery_of(event, Input::Auto)).expect("it can be sent").body;
    assert!(
        String::from_utf8_lossy(&body).contains(r#""source":"shop%20%3C1%3E%20%C3%B6""#),
        "{body:?}"
    );
    for at in ["\"yesterday\"", "\"2020-13-45\"", "1700000000"] {
        let custom = format!(r#"{{"kind":"k","nested":{{"at":{at}}}}}"#);
        for schema in [Schema::CloudEventsStructured, Schema::CloudEventsBinary, Schema::EventGrid]
        {
            let (why, _) = refused(&mapped(in_schema(schema)), &custom, Input::Auto);
            assert!(why.contains("eventTime is not an RFC 3339 time"), "{why}");
        }
    }
    let grid = EVENT_GRID.replace("2026-11-20T07:03:00.1234567Z", "08/13/2020");
    assert!(
        refused(&in_schema(Schema::CloudEventsStructured), &grid, Input::Auto)
            .0
            .contains("RFC 3339")
    );
    composed(&in_schema(Schema::EventGrid), &delivery_of(&grid, Input::Auto))
        .expect("as it was published");
}

#[test]
fn a_version_that_no_header_can_hold_is_made_sendable_in_event_grids_headers() {
    let mut subscription = in_schema(Schema::EventGrid);
    subscription.destination.notification_headers = true;
    let odd = EVENT_GRID.replace(r#""dataVersion":"2.1""#, r#""dataVersion":"1\n2""#);
    let request = composed(&subscription, &delivery_of(&odd, Input::Auto)).expect("it can be sent");
    assert!(request.headers.contains(&("aeg-data-version".to_owned(), "1 2".to_owned())));
}

#[test]
fn more_headers_than_any_server_accepts_end_the_delivery_at_once() {
    let many: String = (0..30_000).map(|n| format!(r#","a{n}":1"#)).collect();
    for members in [many, format!(r#","subject":"{}""#, "x".repeat(70_000))] {
        let (why, retried) =
            refused(&in_schema(Schema::CloudEventsBinary), &event_with(&members), Input::Auto);
        assert!(why.contains("the limit is") && !retried, "{why}");
    }
}

#[test]
fn debug_output_of_a_request_shows_header_names_only() {
    let mut subscription = with_header(Value::Concealed("hush".to_owned()));
    subscription.destination.url =
        "https://user:hush@example.com/in?code=hush".parse().expect("an address");
    let request =
        composed(&subscription, &delivery_of(EXACT, Input::Auto)).expect("it can be sent");
    let printed = format!("{request:?}");
    assert!(printed.contains("x-h") && !printed.contains("hush"), "{printed}");
}

fn header(name: &str, value: Value) -> Header {
    Header { name: name.to_owned(), value }
}

fn at(path: &str) -> Value {
    Value::Path(path.parse().expect("a path"))
}

#[test]
fn a_subscriptions_headers_come_from_the_file_the_event_or_a_secret() {
    let mut subscription = subscription(Dialect::Native);
    subscription.destination.headers = vec![
        header("X-Tenant", Value::Static("acme".to_owned())),
        header("x-key", Value::Concealed("hush".to_owned())),
        header("Authorization", Value::Secret("env:TOKEN".parse().expect("a name"))),
        header("x-number", at("$.data.a")),
        header("x-text", at("$.data.text")),
        header("x-subject", at("subject")),
        header("x-yes", at("yes")),
        header("x-object", at("data")),
        header("x-null", at("none")),
        header("x-nothing", at("$.data.nothing")),
        header("traceparent", Value::Static("mine".to_owned())),
    ];
    let delivery =
        Delivery { traceparent: Some("theirs".to_owned()), ..delivery_of(EXACT, Input::Auto) };
    assert_golden("headers", &subscription, &delivery);
    let shown: Vec<_> = subscription
        .destination
        .headers
        .iter()
        .filter_map(|header| header.shown(&delivery.event))
        .collect();
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["X-Tenant", "x-number", "x-text", "x-subject", "x-yes", "traceparent"]);
    assert!(!format!("{subscription:?}").contains("hush"), "a secret is printed");
}

#[test]
fn a_signature_covers_the_sent_body_and_keeps_its_id_over_all_attempts() {
    let mut signed = in_schema(Schema::CloudEventsBinary);
    let secrets = ["env:SIGNING", "env:NEXT"].map(|name| name.parse().expect("a name")).to_vec();
    signed.destination.signing = Some(Signing { secrets, public_keys: None });
    let first = delivery_of(EXACT, Input::Auto);
    assert_golden("signed", &signed, &first);
    let again = Delivery { attempts: 7, ..first.clone() };
    let id = |delivery| {
        let request = composed(&signed, delivery).expect("it can be sent");
        request.headers.into_iter().find(|(name, _)| name == "webhook-id").expect("an id").1
    };
    assert_eq!(id(&first), id(&again));
    assert_eq!(id(&first), first.id.to_string());
}

/// Returns the reason why an event cannot be sent, and whether its delivery is retried.
#[track_caller]
fn refused(subscription: &Subscription, text: &str, input: Input) -> (String, bool) {
    let problem = composed(subscription, &delivery_of(text, input)).expect_err(text);
    let exchange = problem.exchange(PUBLISHED_MS);
    let retried = matches!(judge(&subscription.retry, &exchange), Verdict::Retry { .. });
    assert_eq!(
        exchange.result,
        if retried { TransportResult::Aborted } else { TransportResult::Unsendable }
    );
    (exchange.detail.expect("why"), retried)
}

fn with_header(value: Value) -> Subscription {
    let mut subscription = subscription(Dialect::Native);
    subscription.destination.headers = vec![header("x-h", value)];
    subscription
}

fn event_with(members: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{members}}}"#)
}

#[test]
fn a_delivery_that_cannot_be_sent_ends_with_the_reason() {
    let opaque = refused(&in_schema(Schema::Custom), "text", Input::Opaque);
    assert!(
        opaque.0.contains("opaque topic cannot be delivered as custom") && !opaque.1,
        "{opaque:?}"
    );
    for (schema, says) in [
        (Schema::EventGrid, "finds no eventType"),
        (Schema::CloudEventsStructured, "finds no eventType"),
    ] {
        let (why, retried) = refused(&in_schema(schema), CUSTOM, Input::Auto);
        assert!(why.contains(says) && !retried, "{why}");
    }
    for (subscription, members, says) in [
        (in_schema(Schema::EventGrid), "", "CloudEvent cannot be delivered as an Event Grid event"),
        (in_schema(Schema::CloudEventsBinary), r#","":"x""#, "\"\" cannot be sent as a header"),
        (
            in_schema(Schema::CloudEventsBinary),
            r#","DATA":"x""#,
            "\"DATA\" cannot be sent as a header",
        ),
        (
            in_schema(Schema::CloudEventsBinary),
            r#","a b":"x""#,
            "\"a b\" cannot be sent as a header",
        ),
        (
            in_schema(Schema::CloudEventsBinary),
            r#","ext":"x","EXT":"y""#,
            "two attributes map to the header ce-ext",
        ),
        (in_schema(Schema::CloudEventsBinary), r#","data_base64":"?""#, "not base64"),
        (
            in_schema(Schema::CloudEventsBinary),
            r#","datacontenttype":"Application/CloudEvents+JSON ; charset=utf-8","data":{}"#,
            "use schema: cloudevents-structured",
        ),
        (
            in_schema(Schema::CloudEventsBinary),
            r#","datacontenttype":"application/cloudevents-batch+avro","data_base64":"eA==""#,
            "use schema: cloudevents-structured",
        ),
    ] {
        let (why, retried) = refused(&subscription, &event_with(members), Input::Auto);
        assert!(why.contains(says) && !retried, "{why}");
    }
}

#[test]
fn no_value_of_an_event_keeps_it_from_being_sent() {
    let long = format!(r#","h":"{}""#, "x".repeat(5_000));
    let cut = "x".repeat(4_096);
    for (members, value) in [
        (r#","h":"note ""#, "note"),
        (r#","h":"a\tb""#, "a b"),
        (r#","h":"a\r\nb: c""#, "a  b: c"),
        (r#","h":"größe\u00a0""#, "gr%C3%B6%C3%9Fe"),
        (&long, &cut),
    ] {
        let delivery = delivery_of(&event_with(members), Input::Auto);
        let request = composed(&with_header(at("h")), &delivery).expect("it can be sent");
        let sent = request.headers.iter().find(|(name, _)| name == "x-h");
        assert_eq!(sent.map(|(_, value)| value.as_str()), Some(value), "{members}");
    }
    let members = r#","datacontenttype":" text/plain\r\n","data":"x""#;
    let delivery = delivery_of(&event_with(members), Input::Auto);
    let request =
        composed(&in_schema(Schema::CloudEventsBinary), &delivery).expect("it can be sent");
    assert_eq!(request.headers[0], ("content-type".to_owned(), "text/plain".to_owned()));
}

#[test]
fn a_missing_or_invalid_secret_fails_the_attempt_and_is_not_shown() {
    let mut signed = subscription(Dialect::Native);
    signed.destination.signing =
        Some(Signing { secrets: vec!["env:TOKEN".parse().expect("a name")], public_keys: None });
    let secret = with_header(Value::Secret("env:MISSING".parse().expect("a name")));
    for (subscription, says) in
        [(signed, "env:TOKEN is not base64"), (secret, "env:MISSING was not loaded")]
    {
        let (why, retried) = refused(&subscription, &event_with(""), Input::Auto);
        assert!(why.contains(says) && retried && !why.contains("hush"), "{why}");
    }
}

proptest! {
    /// Any attribute becomes a header of printable ASCII that decodes to the same text.
    #[test]
    fn an_attribute_in_a_header_decodes_to_its_value(subject in any::<String>()) {
        let quoted = serde_json::to_string(&subject).expect("every string can be written as JSON");
        let event = format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":{quoted}}}"#);
        let request = composed(&in_schema(Schema::CloudEventsBinary), &delivery_of(&event, Input::Auto)).expect("it can be sent");
        let (_, value) = request.headers.iter().find(|(name, _)| name == "ce-subject").expect("a subject");
        prop_assert!(value.bytes().all(|byte| matches!(byte, b'!'..=b'~') && byte != b'"'));
        prop_assert_eq!(percent_encoding::percent_decode_str(value).decode_utf8().expect("UTF-8"), subject);
    }

    #[test]
    fn a_structured_body_is_the_published_text(before in "[ \t\n\r]*", data in any::<String>(), after in "[ \t\n\r]*") {
        let data = serde_json::to_string(&data).expect("every string can be written as JSON");
        let event = format!(r#"{before}{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{{"a":{data},"a":1}}}}{after}"#);
        let request = composed(&in_schema(Schema::CloudEventsStructured), &delivery_of(&event, Input::Auto)).expect("it can be sent");
        prop_assert_eq!(request.body, event.into_bytes());
    }
}
