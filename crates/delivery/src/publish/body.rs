//! Converts the body of a publish request into the body of a message.
//!
//! A publisher that declares an event format must send valid events. An invalid event is refused
//! here. If it were enqueued, it would become a dead letter.

use super::http_request::HttpRequest;
use super::refusal::Refusal;
use super::route::Route;
use crate::delivery::check_moment;
use crate::event::binary::{self, ContentMode, header_text};
use crate::event::envelope::Elements;
use crate::event::json::without_mark;
use crate::event::{Element, Input};
use crate::ports::{EVENT_MAX_BYTES, MESSAGE_MAX_BYTES};
use crate::subscription::name::TopicName;
use crate::wire::TOPIC_ATTRIBUTE;

/// Maximum number of events in a request. More events could exceed the memory of a function.
const EVENTS_MAX: usize = 10_000;

/// A message to send to the events queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The value of the message's `topic` attribute.
    pub topic: TopicName,
    /// The unchanged body of the request. For an event in binary mode, it is the structured form.
    pub body: String,
    /// Number of events in the body.
    pub events: usize,
}

/// Creates the message that a request publishes to the topic of its route. `input` is the input
/// format of that topic.
///
/// # Errors
/// - 400 for invalid events
/// - 413 for a message or an event above its maximum size, or too many events
/// - 415 for an unsupported content type, or a compressed body
pub fn message(
    request: &HttpRequest<'_>,
    route: &Route,
    input: Input,
    now_ms: u64,
) -> Result<Published, Refusal> {
    check_encoding(request)?;
    let body = message_body(request, input)?;
    let topic = route.topic.clone();
    let of_topic = topic_bytes(&topic);
    let bytes = body.len() + of_topic;
    if bytes > MESSAGE_MAX_BYTES {
        let problem = format!(
            "the message with its topic has {bytes} bytes; the limit is {MESSAGE_MAX_BYTES} bytes. \
             In binary mode, data that is not JSON is base64-encoded, which adds a third"
        );
        return Err(Refusal::new(413, problem));
    }
    let events = count_events(&body, of_topic, effective_input(request, input), now_ms)?;
    Ok(Published { topic, body, events })
}

/// Returns the size in bytes of the topic attribute, which counts as part of the event.
#[must_use]
pub fn topic_bytes(topic: &TopicName) -> usize {
    TOPIC_ATTRIBUTE.len() + "String".len() + topic.to_string().len()
}

/// Returns the error message if an event of this size is too large; `None` if the size is allowed.
/// `bytes` includes the topic.
#[must_use]
pub fn too_large(bytes: usize) -> Option<String> {
    (bytes > EVENT_MAX_BYTES).then(|| {
        format!(
            "the event with its topic has {bytes} bytes; the limit is {EVENT_MAX_BYTES} bytes. \
             Store the data elsewhere, and send a reference"
        )
    })
}

/// Refuses a compressed body, because no function would decompress it before delivery.
fn check_encoding(request: &HttpRequest<'_>) -> Result<(), Refusal> {
    let encodings = request.headers.iter().filter(|(name, _)| name == "content-encoding");
    for (_, value) in encodings {
        let text = header_text(value);
        let is_none =
            |encoding: &str| encoding.is_empty() || encoding.eq_ignore_ascii_case("identity");
        if let Some(found) = text.split(',').map(str::trim).find(|encoding| !is_none(encoding)) {
            let problem = format!(
                "the content-encoding {found} is not supported: send the body uncompressed"
            );
            return Err(Refusal::new(415, problem));
        }
    }
    Ok(())
}

/// Returns the body of the message. It is the unchanged body of the request, or the structured form
/// of an event in binary mode.
fn message_body(request: &HttpRequest<'_>, input: Input) -> Result<String, Refusal> {
    let content_type = content_type(request);
    let content_type = content_type.as_deref();
    let mode = ContentMode::from_content_type(content_type);
    if mode == ContentMode::Data && has_version(request) {
        if let Some((name, _)) = request.headers.iter().find(|(name, _)| is_data(name)) {
            return Err(bad_request(format!(
                "{name} is not an attribute: send the data as the body"
            )));
        }
        let structured =
            binary::structured(&binary_attributes(request), content_type, request.body);
        return structured.map_err(bad_request);
    }
    let is_json = content_type.is_some_and(binary::is_json) && mode != ContentMode::OtherFormat;
    if !is_json && input != Input::Opaque {
        let found = content_type.unwrap_or("none");
        let problem = format!(
            "the content type is {found}; expected application/cloudevents+json, \
             application/cloudevents-batch+json or application/json, or ce-* headers for an event \
             in binary mode"
        );
        return Err(Refusal::new(415, problem));
    }
    let body = String::from_utf8(request.body.to_vec());
    let body = body.map_err(|error| bad_request(format!("the body is not UTF-8: {error}")))?;
    let body = if input == Input::Opaque { body } else { without_mark(&body).to_owned() };
    if body.is_empty() {
        return Err(bad_request("the body is empty; send an event"));
    }
    match (mode, body.trim_start().starts_with('[')) {
        (ContentMode::Structured, true) => {
            Err(bad_request("the body is an array; send it as application/cloudevents-batch+json"))
        }
        (ContentMode::Batched, false) => Err(bad_request("a batch must be a JSON array of events")),
        (ContentMode::Structured, false)
        | (ContentMode::Batched, true)
        | (ContentMode::OtherFormat | ContentMode::Data, _) => Ok(body),
    }
}

fn bad_request(problem: impl Into<String>) -> Refusal {
    Refusal::new(400, problem)
}

/// Returns the input format by which the events are checked. If the publisher declares CloudEvents,
/// they must be valid CloudEvents.
fn effective_input(request: &HttpRequest<'_>, declared_input: Input) -> Input {
    let says_cloud_event = has_version(request)
        || ContentMode::from_content_type(content_type(request).as_deref()) != ContentMode::Data;
    if declared_input == Input::Auto && says_cloud_event {
        Input::CloudEvents
    } else {
        declared_input
    }
}

/// True for `ce-data` and `ce-data_base64`. These headers are not allowed, because the body is the
/// data.
fn is_data(name: &str) -> bool {
    matches!(name, "ce-data" | "ce-data_base64")
}

/// True if the request has the header `ce-specversion`, which marks a CloudEvent in binary mode.
fn has_version(request: &HttpRequest<'_>) -> bool {
    request.headers.iter().any(|(name, _)| name == "ce-specversion")
}

fn content_type(request: &HttpRequest<'_>) -> Option<String> {
    let (_, value) = request.headers.iter().find(|(name, _)| name == "content-type")?;
    Some(header_text(value))
}

/// Returns the attributes of an event in binary mode, which are the headers `ce-…`.
fn binary_attributes(request: &HttpRequest<'_>) -> Vec<(String, String)> {
    let attributes =
        request.headers.iter().filter_map(|(name, value)| Some((name.strip_prefix("ce-")?, value)));
    attributes.map(|(name, value)| (name.to_owned(), header_text(value))).collect()
}

/// Counts the events in a body; an empty array has none. One invalid event causes a refusal of the
/// whole request.
fn count_events(
    body: &str,
    topic_bytes: usize,
    input: Input,
    now_ms: u64,
) -> Result<usize, Refusal> {
    let body = body.into();
    let malformed = |number: usize, why| bad_request(format!("event {number} is malformed: {why}"));
    let elements = Elements::parse(&body, input).map_err(|why| malformed(1, why))?;
    // The number is checked before any element is decoded.
    if elements.len() > EVENTS_MAX {
        let problem =
            format!("the request has {} events; the limit is {EVENTS_MAX}", elements.len());
        return Err(Refusal::new(413, problem));
    }
    for number in 1..=elements.len() {
        match elements.decode(number - 1) {
            Element::Malformed { why, .. } => return Err(malformed(number, why)),
            Element::Event(event) if event.members().id().as_deref() == Some("") => {
                return Err(bad_request(format!("event {number}: id is empty")));
            }
            Element::Event(event) => {
                check_moment(&event, now_ms).map_err(|why| malformed(number, why))?;
                if let Some(why) = too_large(event.text().len() + topic_bytes) {
                    return Err(Refusal::new(413, format!("event {number}: {why}")));
                }
            }
        }
    }
    Ok(elements.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ATTRIBUTE_MAX_BYTES;

    const CLOUD: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
    const GRID: &str =
        r#"[{"id":"1","subject":"s","eventType":"t","eventTime":"2026-11-20T07:03:00Z"}]"#;
    const NOW_MS: u64 = 1_796_115_600_000;
    const BINARY: [(&str, &str); 4] =
        [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t%20u")];
    const STRUCTURED: (&str, &str) =
        ("content-type", "application/cloudevents+json; charset=utf-8");
    const BATCH: (&str, &str) = ("content-type", "application/cloudevents-batch+json");
    const JSON: (&str, &str) = ("Content-Type", "application/json; charset=utf-8");

    fn read(
        headers: &[(&str, &str)],
        body: &str,
        input: Input,
    ) -> Result<(String, usize), Refusal> {
        let headers: Vec<(String, Vec<u8>)> = headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_bytes().to_vec()))
            .collect();
        let (method, path) = ("POST", "/shop/orders");
        let body = body.as_bytes();
        let request = HttpRequest { method, path, query: "", headers: &headers, body };
        let route = Route { topic: "shop/orders".parse().unwrap(), status: 202 };
        message(&request, &route, input, NOW_MS).map(|published| (published.body, published.events))
    }

    #[test]
    fn every_mode_becomes_one_message_with_the_bytes_of_its_events() {
        let (two, marked) = (format!("[{CLOUD}, {CLOUD}]"), format!("\u{feff}{CLOUD}"));
        let structured = r#"{"specversion":"1.0","type":"t u","source":"/s","id":"1","datacontenttype":"application/json","data":{"n": 1.50}}"#;
        let text = r#"{"specversion":"1.0","type":"t u","source":"/s","id":"1","datacontenttype":"text/plain","data_base64":"aGk="}"#;
        let binary =
            |content_type: &'static str| [&BINARY[..], &[("content-type", content_type)]].concat();
        for (headers, body, expected, events) in [
            (vec![STRUCTURED], CLOUD, CLOUD, 1),
            (vec![BATCH], two.as_str(), two.as_str(), 2),
            (vec![JSON], CLOUD, CLOUD, 1),
            (vec![JSON], GRID, GRID, 1),
            (
                vec![JSON],
                r#"{"Source": "com.example", "DetailType": "t"}"#,
                r#"{"Source": "com.example", "DetailType": "t"}"#,
                1,
            ),
            (vec![JSON], r#" [{"n":1},{"n":2},{"n":3}]"#, r#" [{"n":1},{"n":2},{"n":3}]"#, 3),
            (binary("application/json"), r#"{"n": 1.50}"#, structured, 1),
            (binary("text/plain"), "hi", text, 1),
            // A body in an event format is the event, even if headers repeat its attributes.
            (binary("application/cloudevents+json"), CLOUD, CLOUD, 1),
            (binary("Application/CloudEvents-Batch+JSON"), two.as_str(), two.as_str(), 2),
            (vec![BATCH], " [ ]", " [ ]", 0),
            (vec![JSON], "[]", "[]", 0),
            // A byte order mark is skipped.
            (vec![STRUCTURED], marked.as_str(), CLOUD, 1),
        ] {
            let found = read(&headers, body, Input::Auto);
            assert_eq!(found, Ok((expected.to_owned(), events)), "{headers:?}");
        }
        let opaque = read(&[("content-type", "text/plain")], "hi", Input::Opaque);
        assert_eq!(opaque, Ok(("hi".to_owned(), 1)));
    }

    #[test]
    fn a_compressed_body_is_refused_whatever_it_is() {
        for (encoding, refused) in [
            ("gzip", Some("gzip")),
            ("identity, Br", Some("Br")),
            ("deflate", Some("deflate")),
            ("Identity", None),
            ("", None),
        ] {
            for (input, kind) in
                [(Input::Auto, JSON), (Input::Opaque, ("content-type", "text/plain"))]
            {
                let found = read(&[kind, ("Content-Encoding", encoding)], CLOUD, input);
                let Some(name) = refused else {
                    assert_eq!(found, Ok((CLOUD.to_owned(), 1)));
                    continue;
                };
                let refusal = found.unwrap_err();
                assert_eq!(refusal.status, 415);
                assert!(
                    refusal.text.contains(&format!("the content-encoding {name} is not supported")),
                    "{}",
                    refusal.text
                );
            }
        }
    }

    #[test]
    fn what_is_not_what_it_says_is_refused_with_a_reason() {
        let no_id = CLOUD.replace(r#""id":"1","#, "");
        let at = |moment: &str| CLOUD.replace('}', &format!(r#","deliverat":"{moment}"}}"#));
        let (not_a_time, too_far) = (at("tomorrow"), at("2026-12-15T09:00:00Z"));
        let no_id_is_second = format!("[{CLOUD}, {no_id}]");
        let empty_id = r#"[{"n":1},{"id":"","topic":"/t","subject":"","eventType":"t","eventTime":"2026-11-20T07:03:00Z","data":{},"dataVersion":"1"}]"#;
        for (headers, body, input, status, text) in [
            (vec![STRUCTURED], no_id.as_str(), Input::Auto, 400, "event 1 is malformed"),
            (vec![BATCH], no_id_is_second.as_str(), Input::Auto, 400, "event 2 is malformed"),
            (vec![JSON], empty_id, Input::Auto, 400, "event 2: id is empty"),
            (vec![STRUCTURED], not_a_time.as_str(), Input::Auto, 400, "RFC 3339"),
            (vec![STRUCTURED], too_far.as_str(), Input::Auto, 400, "within 14 days"),
            (vec![STRUCTURED], GRID, Input::Auto, 400, "cloudevents-batch+json"),
            (vec![STRUCTURED], r#"{"n":1}"#, Input::Auto, 400, "specversion"),
            (vec![BATCH], CLOUD, Input::Auto, 400, "a batch must be a JSON array"),
            (vec![JSON], "{", Input::Auto, 400, "not JSON"),
            (vec![JSON], GRID, Input::CloudEvents, 400, "CloudEvent"),
            (vec![], CLOUD, Input::Auto, 415, "the content type is none"),
            (vec![("content-type", "text/plain")], "hi", Input::Auto, 415, "text/plain"),
            (BINARY[..3].to_vec(), "", Input::Auto, 400, "type must be"),
            (
                vec![("content-type", "application/cloudevents+avro")],
                "x",
                Input::Auto,
                415,
                "application/cloudevents+avro",
            ),
            (
                [&BINARY[..], &[("ce-data_base64", "aGk=")]].concat(),
                "",
                Input::Auto,
                400,
                "is not an attribute",
            ),
            (vec![("content-type", "text/plain")], "", Input::Opaque, 400, "the body is empty"),
            (vec![JSON], "", Input::Auto, 400, "the body is empty"),
            ([&BINARY[..], &[("ce-id", "2")]].concat(), "", Input::Auto, 400, "twice"),
            ([&BINARY[..], &[("ce-subject", "%FF")]].concat(), "", Input::Auto, 400, "ce-subject"),
            ([&BINARY[..], &[("ce-subject", "100%")]].concat(), "", Input::Auto, 400, "ce-subject"),
        ] {
            let refusal = read(&headers, body, input).expect_err(body);
            assert_eq!(refusal.status, status, "{headers:?} {body}");
            assert!(refusal.text.contains(text), "{}", refusal.text);
        }
    }

    #[test]
    fn what_does_not_fit_a_message_with_its_topic_is_refused() {
        // The topic attribute needs space for its name, its type and its value.
        let room = MESSAGE_MAX_BYTES - "topicStringshop/orders".len();
        let sized = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let largest = room - ATTRIBUTE_MAX_BYTES;
        assert!(read(&[JSON], &sized(largest), Input::Auto).is_ok());
        // One event alone is too large, and two smaller events are too large together.
        let two = format!("[{},{}]", sized(room / 2), sized(room / 2));
        for (body, why) in [(sized(largest + 1), "limit is 1032192"), (two, "limit is 1048576")] {
            let refusal = read(&[JSON], &body, Input::Auto).expect_err("it is too large");
            assert!(refusal.status == 413 && refusal.text.contains(why), "{}", refusal.text);
        }
        let list = |events: usize| format!("[{}1]", "1,".repeat(events - 1));
        assert_eq!(
            read(&[JSON], &list(EVENTS_MAX), Input::Auto).map(|parsed| parsed.1),
            Ok(EVENTS_MAX)
        );
        let refusal = read(&[JSON], &list(EVENTS_MAX + 1), Input::Auto).expect_err("too many");
        assert!(
            refusal.status == 413 && refusal.text.contains("the limit is 10000"),
            "{}",
            refusal.text
        );
        let text = [&BINARY[..], &[("content-type", "text/plain")]].concat();
        let refused = read(&text, &"x".repeat(room * 4 / 5), Input::Auto);
        assert!(refused.expect_err("as base64 it is too large").text.contains("base64"));
    }
}
