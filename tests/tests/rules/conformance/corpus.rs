//! The requests for each event of the corpus, and for a generated set of events, in both modes.
//!
//! `events` checks which of these events are accepted; this module checks the requests:
//! - A structured body is the published text.
//! - A binary message follows the HTTP binding, which is implemented a second time here.
//!
//! `docs/reference/conformance.md` has a row for each invalid case of the format tests. It also has
//! a row for each difference between a published event and the event that is read back from binary
//! mode.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudevents::event::AttributeValue;
use delivery::delivery::outcome::Unsendable;
use delivery::event::binary::structured;
use delivery::event::envelope::decode;
use delivery::event::schema::Schema;
use delivery::event::{Element, Input};
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::Keyring;
use lastmile_tests::document::assert_table;
use serde_json::Value;

use super::events::{self, Raw, cases, why_laxer};
use crate::events::decode_one;
use crate::samples::{PUBLISHED_MS, delivery_of, subscription};

/// The request that carries this CloudEvent.
fn composed(event: &str, schema: Schema) -> Result<Request, Unsendable> {
    let mut subscription = subscription(Dialect::Native);
    subscription.destination.schema = Some(schema);
    let keyring = Keyring::default();
    let context = AttemptContext { keyring: &keyring, now_ms: PUBLISHED_MS, timeout_ms: 30_000 };
    compose(&subscription, &[&delivery_of(event, Input::CloudEvents)], context)
}

/// The members of an event, each as written.
fn members(event: &str) -> BTreeMap<String, Raw> {
    serde_json::from_str(event).unwrap_or_else(|error| panic!("{error}: {event}"))
}

fn text_of(raw: &Raw) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// A binary message: its headers by name, and its body.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Message {
    fn from_request(request: &Request) -> Self {
        let headers: BTreeMap<String, String> = request.headers.iter().cloned().collect();
        assert_eq!(headers.len(), request.headers.len(), "a header is repeated: {request:?}");
        Self { headers, body: request.body.to_vec() }
    }

    /// The message that the HTTP binding requires for this event.
    fn demanded(event: &str) -> Self {
        let mut members = members(event);
        for name in ["data", "data_base64"] {
            // A null member counts as absent.
            members
                .remove(name)
                .filter(|raw| raw.get() != "null")
                .map(|raw| members.insert(name.to_owned(), raw));
        }
        let declared = members
            .remove("datacontenttype")
            .as_ref()
            .and_then(text_of)
            .filter(|declared| !declared.is_empty());
        let data = members.remove("data");
        let base64 = members.remove("data_base64");
        // Bytes of unknown type have no content type, nor has an event without data.
        let default =
            data.as_ref().filter(|_| base64.is_none()).map(|_| "application/json".to_owned());
        let declared = declared.or(default);
        let content_type = declared.clone().unwrap_or_default();
        let body = match (base64, data) {
            (Some(base64), _) => {
                STANDARD.decode(text_of(&base64).expect("a text")).expect("base64")
            }
            (None, Some(data)) if says_json(&content_type) => data.get().into(),
            (None, Some(data)) => text_of(&data).unwrap_or_else(|| data.get().to_owned()).into(),
            (None, None) => Vec::new(),
        };
        let mut headers: BTreeMap<String, String> =
            declared.into_iter().map(|declared| ("content-type".to_owned(), declared)).collect();
        for (name, raw) in members.iter().filter(|(_, raw)| raw.get() != "null") {
            let value = text_of(raw).unwrap_or_else(|| raw.get().to_owned());
            headers.insert(format!("ce-{}", name.to_lowercase()), percent_encoded(&value));
        }
        Self { headers, body }
    }
}

/// Encodes as in 3.1.3.2 of the HTTP binding: everything but printable ASCII, and also the space,
/// the double quote and `%`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' | b'"' | b'%' | 0..=0x1f | 0x7f..=0xff => write!(encoded, "%{byte:02X}"),
            _ => write!(encoded, "{}", char::from(byte)),
        }
        .expect("writing to a string never fails");
    }
    encoded
}

/// True for `*/json` and `*/*+json`.
fn says_json(content_type: &str) -> bool {
    let essence = content_type.to_lowercase();
    let essence = essence.split(';').next().expect("a first part").trim_end();
    essence.ends_with("/json") || essence.ends_with("+json")
}

/// Checks both modes of an event.
#[track_caller]
fn assert_travels(name: &str, event: &str) {
    let request = composed(event, Schema::CloudEventsStructured)
        .unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(request.body, event.as_bytes(), "{name}");
    assert_eq!(request.headers[0].1, "application/cloudevents+json; charset=utf-8", "{name}");
    assert_eq!(request.headers.len(), 1, "{name}");
    let request =
        composed(event, Schema::CloudEventsBinary).unwrap_or_else(|why| panic!("{name}: {why}"));
    let message = Message::from_request(&request);
    assert_eq!(message, Message::demanded(event), "{name}");
    assert_says_the_same_to_the_sdk(name, event, &message);
}

/// Compares each header with what the CloudEvents SDK for Rust reads from the event, if it can read
/// it.
fn assert_says_the_same_to_the_sdk(name: &str, event: &str, message: &Message) {
    let Ok(read) = serde_json::from_str::<cloudevents::Event>(event) else { return };
    for (attribute, value) in read.iter().filter(|(attribute, _)| *attribute != "datacontenttype") {
        let header = message
            .headers
            .get(&format!("ce-{}", attribute.to_lowercase()))
            .unwrap_or_else(|| panic!("{name}: {attribute}"));
        let decoded = percent_encoding::percent_decode_str(header).decode_utf8().expect("UTF-8");
        if let AttributeValue::Time(time) = value {
            // The SDK writes times in its own form, so they are compared as instants.
            let instant = |text: &str| text.parse::<jiff::Timestamp>().expect("a time");
            assert_eq!(instant(&decoded), instant(&time.to_rfc3339()), "{name}");
        } else {
            assert_eq!(decoded, value.to_string(), "{name}: {attribute}");
        }
    }
}

/// Every valid event of the corpus, with a name.
fn valid_events() -> Vec<(String, String)> {
    let mut events = Vec::new();
    if let Some(text) = events::corpus("cloudevents-format/valid-events.json") {
        events.extend(cases(&text, "event"));
    }
    if let Some(text) = events::corpus("cloudevents-format/valid-batches.json") {
        for (name, batch) in cases(&text, "batch") {
            let batch: Vec<Raw> = serde_json::from_str(&batch).expect("an array");
            events.extend(batch.iter().map(|event| (name.clone(), event.get().to_owned())));
        }
    }
    for file in
        ["functions-framework-conformance", "vcenter-event-broker-appliance", "knative-docs"]
    {
        let Some(text) = events::corpus(&format!("cloudevents-samples/{file}.jsonl")) else {
            continue;
        };
        for (line, sample) in text.lines().enumerate() {
            let event = members(sample)["event"].get().to_owned();
            events.push((format!("{file} {}", line + 1), event));
        }
    }
    // One sample of vCenter has an empty id.
    events.retain(|(_, event)| decode_one(event, Input::CloudEvents).is_ok());
    assert!(events.is_empty() || events.len() == 10 + 7 + 69 + 8 + 4, "{} events", events.len());
    events
}

#[test]
fn every_valid_event_of_the_corpus_is_sent_in_both_modes() {
    for (name, event) in valid_events() {
        assert_travels(&name, &event);
    }
}

/// Members that an event may have besides the required ones; none of them needs an impossible
/// header.
const ATTRIBUTES: [&str; 22] = [
    "",
    r#""subject":"Euro € 😀""#,
    r#""subject":"100% \"said\" %41 a\/b\\c\ttab\u0001\u007f\u0000 gr\u00fc\u00df \ud83d\ude00""#,
    r#""subject":"""#,
    r#""subject":" spaces around ""#,
    r#""subject":null,"time":null,"none":null"#,
    r#""time":"2026-11-20T07:03:00.1234567+01:00""#,
    r#""time":"2021-05-04T07:33:33.773581268Z""#,
    r#""time":"lunchtime""#,
    r##""dataschema":"#""##,
    r#""dataschema":"https://example.com/schema?a=%20""#,
    r#""count":5"#,
    r#""least":-2147483648,"most":2147483647"#,
    r#""beyond":2147483648"#,
    r#""big":12345678901234567890123,"less":-12345678901234567890123"#,
    r#""exact":1.50,"power":1e3,"zero":-0"#,
    r#""yes":true,"no":false"#,
    r#""digits":"5","zeros":"007","plus":"+5","minus":"-0""#,
    r#""MyExtension":"x""#,
    r#""my.extension":"x","my_other":"y""#,
    r#""\u0065scaped":"x""#,
    r#""specVersion2":"gr\u00fc\u00dfe, grüße""#,
];

/// Data with its content type.
const DATA: [&str; 26] = [
    "",
    r#""data":{"b": 1.50 ,"a":12345678901234567890123, "c" : -0.0}"#,
    r#""data":{"a":1,"a":2,"a":{"a":1,"a":[1,2 , 3]}}"#,
    r#""data":[1e400,1E-400,0.1000000000000000055511151231257827]"#,
    r#""data":{"gr\u00fc\u00dfe":"grüße","😀":"\ud83d\ude00","\/":"\/","half":"\ud83d"}"#,
    r#""data":"gr\u00fc\u00dfe \"€\"""#,
    r#""data":"""#,
    r#""data":12345678901234567890123"#,
    r#""data":true"#,
    r#""data":null"#,
    r#""data":null,"data_base64":null"#,
    r#""data":{},"data_base64":null"#,
    r#""data":null,"data_base64":"AP+AgQ==""#,
    r#""datacontenttype":null,"data":{}"#,
    r#""datacontenttype":"application/json; charset=utf-8","data":{ }"#,
    r#""datacontenttype":"application/vnd.x+JSON;v=1","data":[1, 2 ]"#,
    r#""datacontenttype":"text/plain; charset=utf-8","data":"gr\u00fc\u00dfe\n\u0000""#,
    r#""datacontenttype":"text/plain","data":"""#,
    r#""datacontenttype":"text/plain","data":"5""#,
    r#""datacontenttype":"text/plain""#,
    r#""datacontenttype":"application/xml","data":{"not": "xml"}"#,
    r#""datacontenttype":"application/octet-stream","data_base64":"AP+AgQ==""#,
    r#""datacontenttype":"application/octet-stream","data_base64":"""#,
    r#""datacontenttype":"application/json","data_base64":"eyJhIjogMX0=""#,
    r#""datacontenttype":"application/json","data_base64":"ew==""#,
    r#""data_base64":"eyJhIjogMX0=""#,
];

/// Combines each attribute with each data.
fn made_events() -> Vec<String> {
    let pairs =
        ATTRIBUTES.iter().flat_map(|attributes| DATA.iter().map(move |data| [*attributes, *data]));
    let made = pairs.map(|[attributes, data]| {
        let required = r#""specversion":"1.0","id":"1","source":"/s","type":"t""#;
        let members: Vec<&str> = [required, attributes, data]
            .into_iter()
            .filter(|members| !members.is_empty())
            .collect();
        format!("{{ {}\t}}", members.join(" ,\n"))
    });
    made.collect()
}

#[test]
fn every_generated_event_is_sent_in_both_modes() {
    let events = made_events();
    assert_eq!(events.len(), 572);
    for event in events {
        assert_travels(&event, &event);
    }
}

/// A text with half a surrogate pair is JSON, but not Unicode text.
#[test]
fn invalid_unicode_is_not_sent_in_binary_mode() {
    for (members, says) in [
        (r#""subject":"\ud83d""#, "subject"),
        (r#""extension":"a\udc00b""#, "extension"),
        (r#""datacontenttype":"text/plain\ud83d""#, "datacontenttype"),
        (r#""datacontenttype":5"#, "datacontenttype"),
        (r#""datacontenttype":"text/plain","data":"\ud83d""#, "data"),
    ] {
        let event =
            format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t",{members}}}"#);
        let structured =
            composed(&event, Schema::CloudEventsStructured).expect("its bytes can be sent");
        assert_eq!(structured.body, event.as_bytes());
        let why = composed(&event, Schema::CloudEventsBinary).expect_err(&event).to_string();
        assert!(why.contains(says), "{event}: {why}");
    }
}

#[test]
fn the_docs_list_how_every_invalid_event_is_handled() {
    let Some(text) = events::corpus("cloudevents-format/invalid-events.json") else { return };
    let rows: Vec<String> =
        cases(&text, "event").iter().map(|(name, event)| invalid_row(name, event)).collect();
    assert_eq!(rows.len(), 25);
    assert_table(
        "reference/conformance.md",
        "invalid-events",
        "| format test | decision | why | in binary mode |",
        &rows,
    );
}

fn invalid_row(name: &str, event: &str) -> String {
    if let Err(why) = decode_one(event, Input::CloudEvents) {
        return format!("| `{name}` | refused | {why} | |");
    }
    let structured =
        composed(event, Schema::CloudEventsStructured).expect("an accepted event can be sent");
    assert_eq!(structured.body, event.as_bytes(), "{name}");
    let binary = match composed(event, Schema::CloudEventsBinary) {
        Ok(request) => {
            let message = Message::from_request(&request);
            assert_eq!(message, Message::demanded(event), "{name}");
            let declared = members(event).get("datacontenttype").and_then(text_of);
            match (declared, message.headers.get("content-type")) {
                (Some(declared), Some(sent_as)) if declared != *sent_as => {
                    format!("sent as `{sent_as}`")
                }
                (Some(_) | None, _) => "sent".to_owned(),
            }
        }
        Err(why) => format!("refused: {why}"),
    };
    format!("| `{name}` | accepted | {} | {binary} |", why_laxer(name))
}

#[test]
fn the_docs_list_the_accepted_elements_of_every_invalid_batch() {
    let Some(text) = events::corpus("cloudevents-format/invalid-batches.json") else { return };
    let decision = |element: Element| match element {
        Element::Event(_) => "accepted".to_owned(),
        Element::Malformed { why, .. } => format!("refused: {why}"),
    };
    let row = |(name, batch): (String, String)| {
        let decision: Vec<String> =
            decode(&batch.as_str().into(), Input::CloudEvents).into_iter().map(decision).collect();
        format!("| `{name}` | {} |", decision.join("; "))
    };
    let rows: Vec<String> = cases(&text, "batch").into_iter().map(row).collect();
    assert_table(
        "reference/conformance.md",
        "invalid-batches",
        "| format test | its elements |",
        &rows,
    );
}

/// A difference between a published event and the event that is read back, because headers cannot
/// express the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    SaysContentType,
    DropsNull,
    LowersName,
    BooleanIsText,
    NumberIsText,
    TextIsNumber,
    DropsEmptyData,
    TextIsBase64,
    OtherIsBase64,
    Base64IsJson,
}

impl Change {
    const ALL: [Self; 10] = [
        Self::SaysContentType,
        Self::DropsNull,
        Self::LowersName,
        Self::BooleanIsText,
        Self::NumberIsText,
        Self::TextIsNumber,
        Self::DropsEmptyData,
        Self::TextIsBase64,
        Self::OtherIsBase64,
        Self::Base64IsJson,
    ];

    /// A row of the docs: the published members, the members that are read back, and the reason.
    fn row(self) -> [&'static str; 3] {
        match self {
            Self::SaysContentType => {
                ["no `datacontenttype`", "`\"application/json\"`", "the header says it"]
            }
            Self::DropsNull => {
                ["an attribute or data that is null", "not there", "no header says it"]
            }
            Self::LowersName => {
                ["`\"MyExtension\":…`", "`\"myextension\":…`", "headers have no case"]
            }
            Self::BooleanIsText => ["`true`", "`\"true\"`", "headers have no types"],
            Self::NumberIsText => [
                "`1.50`, `2147483648`",
                "`\"1.50\"`, `\"2147483648\"`",
                "only 32-bit integers are read as numbers",
            ],
            Self::TextIsNumber => ["an extension `\"5\"`", "`5`", "it looks like a 32-bit integer"],
            Self::DropsEmptyData => {
                ["data that is an empty text or no bytes", "no data", "an empty body is no data"]
            }
            Self::TextIsBase64 => {
                ["data that is text of another type than JSON", "`data_base64`", "it is not JSON"]
            }
            Self::OtherIsBase64 => {
                ["JSON data whose type is not JSON", "`data_base64`", "its type says so"]
            }
            Self::Base64IsJson => {
                ["`data_base64` of a JSON type that holds JSON", "`data`", "the type says JSON"]
            }
        }
    }
}

/// The event as our own reader of binary mode understands the message.
fn read_back(message: &Message) -> BTreeMap<String, Raw> {
    let attribute = |(name, value): (&String, &String)| {
        Some((name.strip_prefix("ce-")?.to_owned(), value.clone()))
    };
    let attributes: Vec<(String, String)> = message.headers.iter().filter_map(attribute).collect();
    members(
        &structured(
            &attributes,
            message.headers.get("content-type").map(String::as_str),
            &message.body,
        )
        .expect("what is sent can be decoded"),
    )
}

/// Returns the differences between an event and the event that is read back. Panics at a difference
/// that is not a `Change`, because that is a bug.
fn changes(event: &str, message: &Message) -> BTreeSet<Change> {
    let (mut was, mut is) = (members(event), read_back(message));
    let mut changes: BTreeSet<Change> =
        data_change(&mut was, &mut is, message).into_iter().collect();
    for (name, raw) in was {
        let lower = name.to_lowercase();
        let now = is.remove(&lower);
        changes.extend((lower != name).then_some(Change::LowersName));
        changes.extend(attribute_change(
            &lower,
            raw.get(),
            now.as_ref().map(|raw| raw.get()),
            event,
        ));
    }
    if let Some(content_type) = is.remove("datacontenttype") {
        assert_eq!(content_type.get(), r#""application/json""#, "{event}");
        changes.insert(Change::SaysContentType);
    }
    assert!(is.is_empty(), "{event}: {is:?}");
    changes
}

fn attribute_change(name: &str, was: &str, is: Option<&str>, event: &str) -> Option<Change> {
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let Some(is) = is else {
        assert_eq!(was, "null", "{name} is gone: {event}");
        return Some(Change::DropsNull);
    };
    match (value(was), value(is)) {
        (Value::Null, Value::String(text))
            if name == "datacontenttype" && text == "application/json" =>
        {
            Some(Change::SaysContentType)
        }
        (Value::Bool(_), Value::String(text)) if text == was => Some(Change::BooleanIsText),
        (Value::Number(_), Value::String(text)) if text == was => Some(Change::NumberIsText),
        (Value::Number(_), Value::Number(_)) if was == is => None,
        (Value::String(text), Value::Number(_)) if text == is => Some(Change::TextIsNumber),
        (Value::String(text), Value::String(same)) if text == same => None,
        (was, is) => panic!("{name} was {was} and is {is}: {event}"),
    }
}

/// Removes the data from both events and returns its change: JSON keeps its spelling, and bytes
/// stay bytes.
fn data_change(
    was: &mut BTreeMap<String, Raw>,
    is: &mut BTreeMap<String, Raw>,
    message: &Message,
) -> Option<Change> {
    let was_null = |raw: &Raw| raw.get() == "null";
    let nulls = ["data", "data_base64"].map(|name| was.get(name).is_some_and(was_null));
    let mut take = |name: &str| (was.remove(name).filter(|raw| !was_null(raw)), is.remove(name));
    let ((data, data_now), (base64, base64_now)) = (take("data"), take("data_base64"));
    let bytes = |raw: &Raw| STANDARD.decode(text_of(raw).expect("a text")).expect("base64");
    match (data, base64, data_now, base64_now) {
        (None, None, None, None) => nulls.contains(&true).then_some(Change::DropsNull),
        (Some(data), None, Some(now), None) if data.get() == now.get() => None,
        (None, Some(base64), None, Some(now)) if base64.get() == now.get() => None,
        (Some(_), None, None, None) | (None, Some(_), None, None) if message.body.is_empty() => {
            Some(Change::DropsEmptyData)
        }
        (Some(data), None, None, Some(now)) => match text_of(&data) {
            Some(text) if text.as_bytes() == bytes(&now) => Some(Change::TextIsBase64),
            None if data.get().as_bytes() == bytes(&now) => Some(Change::OtherIsBase64),
            _ => panic!("{data} became {now}"),
        },
        (None, Some(base64), Some(now), None) if bytes(&base64) == now.get().as_bytes() => {
            Some(Change::Base64IsJson)
        }
        other => panic!("{message:?}: {other:?}"),
    }
}

#[test]
fn an_event_sent_in_binary_mode_is_read_back_unchanged_except_for_what_the_docs_list() {
    let mut seen = BTreeSet::new();
    for event in made_events() {
        let request = composed(&event, Schema::CloudEventsBinary).expect("it can be sent");
        seen.extend(changes(&event, &Message::from_request(&request)));
    }
    assert!(seen.iter().eq(&Change::ALL), "{seen:?}");
    for (_, event) in valid_events() {
        let request = composed(&event, Schema::CloudEventsBinary).expect("it can be sent");
        changes(&event, &Message::from_request(&request));
    }
    let rows: Vec<String> =
        Change::ALL.iter().map(|change| format!("| {} |", change.row().join(" | "))).collect();
    assert_table(
        "reference/conformance.md",
        "round-trip",
        "| published | read back | because |",
        &rows,
    );
}
