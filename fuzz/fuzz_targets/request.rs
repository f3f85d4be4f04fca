//! Any event, mapping, schema and headers as a request: no panic, nothing that splits or mislabels it,
//! and the event as it was published.
//!
//! Input, by lines: options, the document's topic and destination as JSON, and two events.

#![no_main]

use std::sync::Arc;

use delivery::delivery::{Delivery, Origin};
use delivery::event::{Element, Input, Members, Shape, binary, decode_one};
use delivery::request::{
    AttemptContext, REQUEST_HEADERS_MAX, REQUEST_HEADERS_MAX_BYTES, Request, batch_key, compose,
};
use delivery::subscription::Subscription;
use delivery::subscription::header::is_name;
use delivery::subscription::secret::{Keyring, Secret};
use lastmile_fuzz::{NOW_MS, catalogue, lines};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// RFC 9110, 7.6.1 and 8.6, and what comes before them.
const OF_THE_CONNECTION: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fuzz_target!(|text: &str| {
    let ([options, topic, destination, batch, first, second], _) = lines(text);
    let Some(subscription) = subscription(options, topic, destination, batch) else { return };
    let input = match options.as_bytes().get(1) {
        Some(b'c') => Input::Custom,
        Some(b'o') => Input::Opaque,
        _ => Input::Auto,
    };
    let deliveries: Vec<Delivery> =
        [first, second].iter().filter_map(|text| delivery(text, input, &subscription)).collect();
    let alone: Vec<Option<Request>> =
        deliveries.iter().map(|delivery| check(&subscription, &[delivery])).collect();
    let keys: Vec<_> =
        deliveries.iter().map(|delivery| batch_key(&subscription, delivery)).collect();
    if let ([first, second], [Some((key, _)), Some((other, _))]) = (&deliveries[..], &keys[..]) {
        let together = check(&subscription, &[first, second]);
        let both_alone = alone.iter().all(Option::is_some);
        assert!(key != other || !both_alone || together.is_some(), "they cannot share a request");
    }
});

fn subscription(
    options: &str,
    topic: &str,
    destination: &str,
    batch: &str,
) -> Option<Arc<Subscription>> {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let mut destination = parsed(destination)?;
    destination["url"] = json!("https://user:hidden@example.com/hook?code=hidden");
    let mut spec = json!({ "destination": destination });
    if let Some(batch) = parsed(batch) {
        spec["batch"] = batch;
    }
    let topic = parsed(topic).unwrap_or_else(|| json!({}));
    let document = |kind: &str, metadata: Value, spec: Value| {
        json!({
            "apiVersion": "lastmile.dev/v1",
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
        })
    };
    let topic = document("Topic", json!({ "namespace": "n", "name": "t" }), topic);
    let metadata = json!({ "namespace": "n", "topic": "t", "name": "s" });
    let file = format!("{topic}\n---\n{}", document("Subscription", metadata, spec));
    let catalogue = catalogue(&file)?;
    let mut subscription = catalogue.subscriptions().next()?.as_ref().clone();
    subscription.destination.notification_headers = options.starts_with('n');
    Some(Arc::new(subscription))
}

fn delivery(text: &str, input: Input, subscription: &Subscription) -> Option<Delivery> {
    let Element::Event(event) = decode_one(&text.into(), input) else { return None };
    let origin = Origin { message: "m".to_owned(), index: 0 };
    Some(Delivery::new(event, subscription.name.clone(), origin, NOW_MS))
}

/// Composes a request twice, and checks it.
fn check(subscription: &Subscription, deliveries: &[&Delivery]) -> Option<Request> {
    let secrets = subscription.destination.secrets();
    let keyring: Keyring =
        secrets.map(|name| (name.clone(), Secret::new(SECRET.to_owned()))).collect();
    let context = AttemptContext { keyring: &keyring, now_ms: NOW_MS, timeout_ms: 30_000 };
    let request = compose(subscription, deliveries, context);
    assert_eq!(request, compose(subscription, deliveries, context), "not the same again");
    let shown = format!("{request:?}");
    assert!(!shown.contains("hidden"), "{shown}");
    if deliveries.iter().all(|delivery| !delivery.event.text().contains(SECRET)) {
        assert!(!shown.contains(SECRET), "{shown}");
    }
    let request = request.ok()?;
    check_headers(&request);
    assert_eq!(request.url, *subscription.destination.url);
    if let [delivery] = deliveries {
        check_body(&request, delivery, subscription);
    }
    Some(request)
}

fn check_headers(request: &Request) {
    let headers = &request.headers;
    assert!(headers.len() <= REQUEST_HEADERS_MAX);
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(bytes <= REQUEST_HEADERS_MAX_BYTES);
    let mut names: Vec<String> =
        headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1], "a header is there twice: {headers:?}");
    }
    for (name, value) in headers {
        assert!(is_name(name), "{name:?}");
        assert!(value.bytes().all(|byte| byte >= b' ' && byte != 0x7f), "{name}: {value:?}");
        assert_eq!(value.trim_matches([' ', '\t']), value, "{name}");
    }
    for name in OF_THE_CONNECTION {
        assert!(!names.iter().any(|header| header == name), "{name}");
    }
}

/// The published event is in the body to the byte, or the attributes and the data of a binary one.
fn check_body(request: &Request, delivery: &Delivery, subscription: &Subscription) {
    let (event, body) = (&delivery.event, &request.body);
    // Bytes of unknown type have none.
    let content_type = request.headers.iter().find(|(name, _)| name == "content-type");
    let content_type = content_type.map(|(_, value)| value.as_str());
    let as_published = subscription.destination.schema.is_none();
    let unbatched = subscription.batch.is_none();
    let array = format!("[{}]", event.text());
    match event.shape() {
        Shape::CloudEvent if as_published && unbatched => {
            assert_eq!(body, event.text().as_bytes());
        }
        Shape::Custom if as_published && unbatched && subscription.destination.plain_json => {
            assert_eq!(body, event.text().as_bytes());
        }
        Shape::CloudEvent | Shape::EventGrid | Shape::Custom if as_published => {
            assert_eq!(body, array.as_bytes());
        }
        Shape::Opaque => assert_eq!(body, event.text().as_bytes()),
        Shape::CloudEvent | Shape::EventGrid | Shape::Custom => {}
    }
    let attributes: Vec<(String, String)> = request
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("ce-")?.to_owned(), value.clone())))
        .collect();
    if attributes.is_empty() {
        let is_json = content_type.is_some_and(|value| value.contains("json"));
        assert!(!is_json || serde_json::from_slice::<&RawValue>(body).is_ok());
        return;
    }
    let structured =
        binary::structured(&attributes, content_type, body).expect("what is sent can be decoded");
    let Element::Event(read) = decode_one(&structured.as_str().into(), Input::CloudEvents) else {
        panic!("a binary event is not read back: {structured}");
    };
    if event.shape() == Shape::CloudEvent {
        same(&event.members(), &read.members(), body);
    }
}

/// Each attribute and the data of a published event are those of the binary one.
fn same(published: &Members<'_>, read: &Members<'_>, body: &[u8]) {
    for (name, value) in published.iter() {
        let is_data = ["data", "data_base64", "datacontenttype"].contains(&name);
        if !is_data && value != "null" {
            // Names of headers ignore case.
            let header = name.to_ascii_lowercase();
            assert_eq!(text(read, &header).as_deref(), text(published, name).as_deref(), "{name}");
        }
    }
    if published.get("data_base64").is_none_or(|data| data == "null") {
        let data = published.get("data").filter(|data| *data != "null").unwrap_or_default();
        let is_same = body == data.as_bytes();
        assert!(is_same || text(published, "data").is_some_and(|data| body == data.as_bytes()));
    }
}

/// A string, or a number or truth value as it is written.
fn text(members: &Members<'_>, name: &str) -> Option<String> {
    let raw = || members.get(name).map(ToOwned::to_owned);
    members.text(name).map(|text| text.into_owned()).or_else(raw)
}
