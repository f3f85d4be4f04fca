//! The sent events and their expected meaning, which is written by hand or read from the event by a
//! JSON library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::event::schema::Schema;
use serde_json::{Map, Value, json};

/// The content mode of CloudEvents over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Structured,
    Binary,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Structured, Self::Binary];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Binary => "binary",
        }
    }

    pub(crate) fn schema(self) -> Schema {
        match self {
            Self::Structured => Schema::CloudEventsStructured,
            Self::Binary => Schema::CloudEventsBinary,
        }
    }
}

/// An event with its expected forms.
pub(crate) struct Sent {
    pub(crate) name: &'static str,
    pub(crate) published: &'static str,
    /// The body in structured mode, if it differs from the published event.
    pub(crate) converted: Option<&'static str>,
    /// The body in binary mode.
    pub(crate) data: &'static [u8],
    /// The content type in binary mode; empty if there is none.
    pub(crate) content_type: &'static str,
}

impl Sent {
    /// The body in structured mode.
    pub(crate) fn structured(&self) -> &'static str {
        self.converted.unwrap_or(self.published)
    }

    /// Returns the expected body.
    pub(crate) fn body(&self, mode: Mode) -> &'static [u8] {
        match mode {
            Mode::Structured => self.structured().as_bytes(),
            Mode::Binary => self.data,
        }
    }

    /// Returns the expected content type.
    pub(crate) fn content_type(&self, mode: Mode) -> Option<&'static str> {
        match mode {
            Mode::Structured => Some("application/cloudevents+json; charset=utf-8"),
            Mode::Binary => Some(self.content_type).filter(|value| !value.is_empty()),
        }
    }

    /// Returns the expected meaning for a subscriber: attributes by name, and `data`. A null
    /// attribute is absent.
    pub(crate) fn meaning(&self, mode: Mode) -> Map<String, Value> {
        let mut event: Map<String, Value> =
            serde_json::from_str(self.structured()).expect("an event is an object");
        event.retain(|_, value| !value.is_null());
        match mode {
            Mode::Structured => {
                if let Some(base64) = event.remove("data_base64") {
                    event.insert("data".to_owned(), json!({"$base64": base64}));
                }
            }
            Mode::Binary => {
                event.retain(|name, _| !matches!(name.as_str(), "data" | "data_base64"));
                let attributes = event
                    .into_iter()
                    .map(|(name, value)| (name.to_ascii_lowercase(), as_text(value)));
                event = attributes.collect();
                let content_type = self.content_type(mode);
                event
                    .extend(content_type.map(|value| ("datacontenttype".to_owned(), value.into())));
                event.extend(self.binary_data().map(|data| ("data".to_owned(), data)));
            }
        }
        event
    }

    /// Returns the data according to its content type: JSON, text, or bytes.
    fn binary_data(&self) -> Option<Value> {
        let text = std::str::from_utf8(self.data);
        let json = self.content_type.to_ascii_lowercase().contains("json");
        match text {
            Ok("") | Ok("null") => None,
            Ok(text) if json => {
                Some(serde_json::from_str(text).expect("data of a JSON type is JSON"))
            }
            Ok(text) => Some(text.into()),
            Err(_) => Some(json!({"$base64": STANDARD.encode(self.data)})),
        }
    }
}

/// Converts a value to text, because headers have no types.
fn as_text(value: Value) -> Value {
    let text = value.as_str().map(ToOwned::to_owned);
    text.unwrap_or_else(|| value.to_string()).into()
}

/// An event in which every byte matters: order, spaces, escapes, numbers.
pub(crate) const EXACT: &str = "{ \"type\":\"order.created\" ,\n\t\"specversion\": \"1.0\",\"source\":\"/shop\",\"id\":\"e-1\",\
    \"subject\":\"Euro € 😀\",\"time\":\"2026-11-20T07:03:00Z\",\"count\":5,\"yes\":true,\
    \"data\":{\"b\":1.50,\"a\" : [1,\t2],\"text\":\"gr\\u00fc\\u00dfe, grüße \\/ 🦀\"}\n}";

const JSON: &str = "application/json";
/// The content type of an event without data.
const NOTHING: &str = "";

/// Makes a CloudEvent with these additional members.
macro_rules! event {
    ($members:literal) => {
        concat!(
            r#"{"specversion":"1.0","type":"order.created","source":"/shop","id":"e-1","time":"2026-11-20T07:03:00Z""#,
            $members,
            "}"
        )
    };
}

const fn sent(
    name: &'static str,
    published: &'static str,
    data: &'static [u8],
    content_type: &'static str,
) -> Sent {
    Sent { name, published, converted: None, data, content_type }
}

/// Events about attributes.
static ATTRIBUTES: [Sent; 15] = [
    sent(
        "exact",
        EXACT,
        "{\"b\":1.50,\"a\" : [1,\t2],\"text\":\"gr\\u00fc\\u00dfe, grüße \\/ 🦀\"}".as_bytes(),
        JSON,
    ),
    sent("subject", event!(r#","subject":"Euro € 😀""#), b"", NOTHING),
    sent(
        "hard-subject",
        event!(r#","subject":"100% \"said\" %41 ~\ttab\u0001\u007f\n\\ü""#),
        b"",
        NOTHING,
    ),
    sent("empty-subject", event!(r#","subject":"""#), b"", NOTHING),
    sent(
        "no-time",
        r#"{"specversion":"1.0","type":"order.created","source":"/shop","id":"e-1"}"#,
        b"",
        NOTHING,
    ),
    sent(
        "null-subject",
        event!(r#","subject":null,"dataschema":null,"datacontenttype":null"#),
        b"",
        NOTHING,
    ),
    sent(
        "null-time",
        r#"{"specversion":"1.0","type":"order.created","source":"/shop","id":"e-1","time":null}"#,
        b"",
        NOTHING,
    ),
    sent(
        "extensions",
        event!(
            r#","count":5,"less":-2147483648,"yes":true,"no":false,"zeros":"007","at":"2026-11-20T07:03:00.1234567Z","text":"grüße""#
        ),
        b"",
        NOTHING,
    ),
    sent("capital-extension", event!(r#","MyExtension":"x""#), b"", NOTHING),
    sent("fraction-extension", event!(r#","ratio":1.5"#), b"", NOTHING),
    sent(
        "dataschema",
        event!(r#","dataschema":"https://example.com/schema","data":{"a":1}"#),
        br#"{"a":1}"#,
        JSON,
    ),
    // Event Grid sends events like this one.
    sent(
        "event-grid-dataschema",
        event!(r##","dataschema":"#","data":{"a":1}"##),
        br#"{"a":1}"#,
        JSON,
    ),
    sent(
        "seven-digits",
        r#"{"specversion":"1.0","type":"order.created","source":"/shop","id":"e-1","time":"2026-11-20T07:03:00.1234567+01:00"}"#,
        b"",
        NOTHING,
    ),
    sent(
        "nine-digits",
        r#"{"specversion":"1.0","type":"order.created","source":"/shop","id":"e-1","time":"2021-05-04T07:33:33.773581268Z"}"#,
        b"",
        NOTHING,
    ),
    sent(
        "no-moment",
        r#"{"specversion":"1.0","type":"order.created","source":"/shop","id":"e-1","time":"lunchtime"}"#,
        b"",
        NOTHING,
    ),
];

/// Events about data.
static DATA: [Sent; 17] = [
    sent(
        "object",
        event!(r#","datacontenttype":"application/json","data":{"b": 1, "a": 2}"#),
        br#"{"b": 1, "a": 2}"#,
        JSON,
    ),
    sent("array", event!(r#","data":[1, 2]"#), b"[1, 2]", JSON),
    sent(
        "string",
        event!(r#","datacontenttype":"application/json","data":"gr\u00fc\u00dfe""#),
        br#""gr\u00fc\u00dfe""#,
        JSON,
    ),
    sent("number", event!(r#","data":1.50"#), b"1.50", JSON),
    sent("zero", event!(r#","data":0"#), b"0", JSON),
    sent("false", event!(r#","data":false"#), b"false", JSON),
    sent("null", event!(r#","data":null"#), b"", NOTHING),
    sent("twice", event!(r#","data":{"a":1,"a":2}"#), br#"{"a":1,"a":2}"#, JSON),
    sent(
        "parameters",
        event!(r#","datacontenttype":"application/json; charset=utf-8","data":{"a":1}"#),
        br#"{"a":1}"#,
        "application/json; charset=utf-8",
    ),
    sent(
        "json-by-suffix",
        event!(r#","datacontenttype":"application/vnd.x+JSON;v=1","data":[1, 2 ]"#),
        b"[1, 2 ]",
        "application/vnd.x+JSON;v=1",
    ),
    sent(
        "text",
        event!(r#","datacontenttype":"text/plain; charset=utf-8","data":"gr\u00fc\u00dfe\n""#),
        "grüße\n".as_bytes(),
        "text/plain; charset=utf-8",
    ),
    sent("empty-text", event!(r#","datacontenttype":"text/plain","data":"""#), b"", "text/plain"),
    sent(
        "xml",
        event!(r#","datacontenttype":"text/xml","data":"<a b=\"c\"/>""#),
        br#"<a b="c"/>"#,
        "text/xml",
    ),
    sent(
        "bytes",
        event!(r#","datacontenttype":"application/octet-stream","data_base64":"AP+AgQ==""#),
        b"\x00\xff\x80\x81",
        "application/octet-stream",
    ),
    sent(
        "text-as-bytes",
        event!(r#","datacontenttype":"text/plain","data_base64":"Z3LDvMOfZQ==""#),
        "grüße".as_bytes(),
        "text/plain",
    ),
    sent(
        "json-as-bytes",
        event!(r#","datacontenttype":"application/json","data_base64":"eyJhIjoxfQ==""#),
        br#"{"a":1}"#,
        JSON,
    ),
    sent("space-around", concat!("\r\n ", event!(r#","data":{"a":1}"#), "\n"), br#"{"a":1}"#, JSON),
];

/// Events that are converted to CloudEvents.
static CONVERTED: [Sent; 3] = [
    Sent {
        name: "event-grid",
        published: r#"{"id":"e-1","topic":"/subscriptions/s/topics/t","subject":"orders/7 €","eventType":"Shop.Created","eventTime":"2026-11-20T07:03:00.1234567Z","dataVersion":"2.1","metadataVersion":"1","data":{"n": 1.50}}"#,
        converted: Some(
            r#"{"specversion":"1.0","type":"Shop.Created","id":"e-1","time":"2026-11-20T07:03:00.1234567Z","subject":"orders/7 €","source":"/subscriptions/s/topics/t","data":{"n": 1.50}}"#,
        ),
        data: br#"{"n": 1.50}"#,
        content_type: JSON,
    },
    Sent {
        name: "event-grid-domain",
        published: r#"{"id":"e-2","subject":"s","eventType":"Shop.Created","eventTime":"2026-11-20T07:03:00Z","data":"text"}"#,
        converted: Some(
            r#"{"specversion":"1.0","type":"Shop.Created","id":"e-2","time":"2026-11-20T07:03:00Z","subject":"s","source":"shop/orders","data":"text"}"#,
        ),
        data: br#""text""#,
        content_type: JSON,
    },
    Sent {
        name: "custom",
        published: r#"{"orderId": 7, "kind": "created", "total": 1.10, "nested": {"at": "2026-11-20T07:03:00Z"}}"#,
        converted: Some(
            r#"{"specversion":"1.0","type":"created","source":"shop/orders","id":"7","time":"2026-11-20T07:03:00Z","subject":"none","data":{"orderId": 7, "kind": "created", "total": 1.10, "nested": {"at": "2026-11-20T07:03:00Z"}}}"#,
        ),
        data: br#"{"orderId": 7, "kind": "created", "total": 1.10, "nested": {"at": "2026-11-20T07:03:00Z"}}"#,
        content_type: JSON,
    },
];

pub(crate) fn all() -> impl Iterator<Item = &'static Sent> {
    ATTRIBUTES.iter().chain(&DATA).chain(&CONVERTED)
}
