//! Events that are hard to keep: every dead letter gives its event back byte for byte, in every
//! format. Every JSON reader can read the dead letter. `conformance` tests the events of other
//! projects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::deadletter::{blob, stored};
use delivery::delivery::DeadLetter;
use delivery::delivery::reason::Reason;
use delivery::event::Input;
use delivery::event::binary::structured;
use delivery::event::portable::NESTING_MAX;
use delivery::subscription::dead_letter_format::{Format, Layout};
use serde_json::Value;

use crate::blobs::assert_golden;
use crate::formats::{letter, read_back};

/// Every format, with both layouts of `namespace`.
const SHAPES: [(Format, Layout); 6] = [
    (Format::Namespace, Layout::Nested),
    (Format::Namespace, Layout::Flat),
    (Format::EventGrid, Layout::Nested),
    (Format::CloudEvents, Layout::Nested),
    (Format::Custom, Layout::Nested),
    (Format::Knative, Layout::Nested),
];

/// Fails unless each format gives this event back. Returns the number of dead letters that store
/// its text twice.
pub(crate) fn kept_twice(event: &str, input: Input) -> usize {
    let mut twice = 0;
    for (format, layout) in SHAPES {
        let letter = DeadLetter { layout, ..letter(event, input, format) };
        let back = read_back(&letter);
        assert_eq!(back.event, event, "{format:?} {layout:?}");
        let again = back.again(back.id, None, 0).event;
        assert_eq!(again.shape(), letter.delivery.event.shape(), "{format:?} {layout:?} {event}");
        let (_, own) = written(&letter);
        twice += usize::from(own.get("original").is_some());
    }
    twice
}

/// Returns the dead letter of a blob, and our own members in it. Fails unless the blob is valid
/// Unicode JSON with fewer than 128 levels, because `serde_json` reads no other.
fn written(letter: &DeadLetter) -> (Value, Value) {
    let blob = blob::bytes(letter, None);
    let blob: Value = serde_json::from_slice(&blob)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&blob)));
    let first = if blob.is_array() { &blob[0] } else { &blob };
    // The event may have a member of this name itself that is not JSON.
    let own = first["lastmile"].as_str().and_then(|own| serde_json::from_str(own).ok());
    let own = own.unwrap_or_else(|| first["deadletterProperties"].clone());
    (first.clone(), own)
}

/// An event in the Event Grid schema as its publishers write it, with spaces and with a member
/// after `data`.
const GRID: &str = "{\"topic\": \"/t\", \"subject\": \"s\", \"id\": \"1\", \"eventType\": \"t\", \
    \"eventTime\": \"2020-08-13T17:18:13.1647262Z\", \"data\": {\"n\": 1.50}, \"dataVersion\": \"1\" }\n";

#[test]
fn odd_events_are_given_back_and_stored_twice_only_where_a_member_is_replaced() {
    let event = |rest: &str| {
        format!(
            "{{ \"specversion\": \"1.0\",\"id\":\"1\",\n\"source\":\"s\" ,\"type\":\"t\"{rest}}}"
        )
    };
    let attributes = [("specversion", "1.0"), ("id", "1"), ("source", "s"), ("type", "t")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let bytes = structured(&attributes, Some("application/octet-stream"), b"\xff\0\xfe")
        .expect("the attributes are text");
    for (text, twice) in [
        (event(""), 0),
        (event("\r\n\t "), 0),
        (event(",\"data\":-123456789012345678901234567890.100e3"), 0),
        (event(",\"data\":{\"a\":1,\"a\" : 2}"), 0),
        (event(",\"data\":\"gr\\u00fc\\/ \u{2028}\", \"\\u0061bc\": true"), 0),
        (format!("\n{}\n", event(" , \"data\" : null ")), 0),
        (bytes, 0),
        (GRID.to_owned(), 0),
        // The object has no member that marks its end.
        ("{ }".to_owned(), 1),
        ("{\"a\": 1 , \"b\":[ ]\n}\n".to_owned(), 0),
        // The text is stored twice in the formats that have a member of this name.
        (event(", \"lastmile\": \"mine\",\"data\":1"), 3),
        (event(",\"deadletterProperties\": 1 "), 1),
    ] {
        assert_eq!(kept_twice(&text, Input::Auto), twice, "{text}");
        // The event is also given back if it is read as custom or opaque.
        kept_twice(&text, Input::Custom);
        kept_twice(&text, Input::Opaque);
    }
    for text in [" 42\n", "\"text\" ", "[ 1,2 ]", "null"] {
        assert_eq!(kept_twice(text, Input::Custom), 0, "{text}");
    }
}

fn cloud_event(rest: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{rest}}}"#)
}

/// A value with this many levels.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Events with escapes of unpaired surrogates.
fn with_surrogates() -> Vec<String> {
    let grid = GRID.replace(r#""n": 1.50"#, r#""n\udfff": "\ud800""#);
    vec![
        cloud_event(r#","data":"\ud800""#),
        cloud_event(r#","data":{"\uDC00":[{"a\ud800b":"\udfff\ud83d"}]}"#),
        cloud_event(r#","subject":"a\udc00","comext":"\ude00\ud83d","data":1"#),
        // Both names are the same after the replacement.
        cloud_event(r#","data":{"\ud800":1,"\ud801":2,"\ud83d\ude00":3}"#),
        cloud_event(r#","data" : "\\\ud800 \\ud800" "#),
        cloud_event(r#","lastmile":"mine","deadletterProperties":"\ud800""#),
        format!("\n {} ", cloud_event(r#","data":["\ud800"]"#)),
        grid,
        r#"{"orderId":"\ud800","kind":"\udc00","total":1.10}"#.to_owned(),
        r#"["\ud800"]"#.to_owned(),
        r#""\ud800 text""#.to_owned(),
    ]
}

/// Other events that some reader may refuse.
fn hard_to_read() -> Vec<String> {
    vec![
        // The surrogate is in a name of the event itself, so the event is malformed.
        cloud_event(r#","\ud800":1"#),
        cloud_event(&format!(",\"data\":{}", nested(NESTING_MAX - 1))),
        cloud_event(&format!(",\"data\":{}", nested(NESTING_MAX))),
        cloud_event(&format!(",\"data\":{}", nested(127))),
        cloud_event(&format!(",\"data\":[\"\\ud800\",{}]", nested(3_000))),
        format!("{}1{}", r#"{"x":"#.repeat(300), "}".repeat(300)),
        nested(300),
        cloud_event(r#","data":{"m":-1e-999,"a":1,"a":{"A":1,"a":2}}"#),
        cloud_event(r#","data":"\u0000\uffff\ufffe\u007f\ud83d\ude00""#),
        cloud_event(",\"data\":\"\u{fffe}\u{ffff}\u{7f}\u{85}\u{2028}\u{feff}\""),
        "\u{1}\u{ffff}<xml>\\ud800</xml>".to_owned(),
        String::new(),
    ]
}

#[test]
fn every_dead_letter_is_readable_json_and_gives_its_event_back() {
    for event in with_surrogates().iter().chain(&hard_to_read()) {
        for input in [Input::Auto, Input::Custom, Input::Opaque] {
            kept_twice(event, input);
            for (format, layout) in SHAPES {
                let known = DeadLetter { layout, ..letter(event, input, format) };
                for reason in [Reason::MalformedEvent, Reason::ProcessingFailed] {
                    let letter = DeadLetter { reason: reason.into(), ..known.clone() };
                    written(&letter);
                    assert_eq!(read_back(&letter).event, *event, "{format:?} {reason:?}");
                }
            }
        }
    }
}

#[test]
fn what_a_sink_gets_is_readable_and_gives_the_event_back() {
    for event in with_surrogates() {
        for (format, layout) in SHAPES {
            let letter = DeadLetter { layout, ..letter(&event, Input::Auto, format) };
            let json = blob::enriched(&letter).json;
            serde_json::from_str::<Value>(&json).unwrap_or_else(|why| panic!("{why}: {json}"));
            let back = stored::read(&blob::key(&letter, ""), "", json.as_bytes()).expect("ours");
            assert_eq!(back.event, event, "{format:?} {layout:?}");
        }
    }
}

#[test]
fn an_event_with_unpaired_surrogates_is_shown_with_others_and_kept_in_base64() {
    let event = cloud_event(r#","subject":"a\udc00","data":{"\ud800":["\ud83d\ude00","\ud83d"]}"#);
    for (name, (format, layout)) in
        ["namespace", "namespace-flat", "eventgrid", "cloudevents", "custom", "knative"]
            .into_iter()
            .zip(SHAPES)
    {
        let letter = DeadLetter { layout, ..letter(&event, Input::Auto, format) };
        assert_golden(&format!("{name}-surrogates"), &blob::bytes(&letter, None));
        let (shown, own) = written(&letter);
        assert_eq!(own["original_base64"], STANDARD.encode(&event), "{name}");
        assert!(own.get("original").is_none() && own.get("around").is_none(), "{name}: {own}");
        let shown = match (format, layout) {
            (Format::Custom, _) => &shown["data"],
            (Format::Namespace, Layout::Nested) => &shown["event"],
            (Format::Namespace | Format::EventGrid | Format::CloudEvents | Format::Knative, _) => {
                &shown
            }
        };
        assert_eq!(shown["subject"], "a\u{fffd}", "{name}");
        assert_eq!(shown["data"]["\u{fffd}"][0], "\u{1f600}", "{name}");
        assert_eq!(shown["data"]["\u{fffd}"][1], "\u{fffd}", "{name}");
    }
    // Readable events are stored without base64.
    let (_, own) = written(&letter(&cloud_event(""), Input::Auto, Format::CloudEvents));
    assert!(own.get("original_base64").is_none());
}

#[test]
fn an_event_that_nests_too_deep_is_nested_text() {
    let event = cloud_event(&format!(",\"data\":{}", nested(NESTING_MAX)));
    for (format, layout) in SHAPES {
        let letter = DeadLetter { layout, ..letter(&event, Input::Auto, format) };
        let (shown, own) = written(&letter);
        assert_eq!(shown["event"], event, "{format:?}");
        assert!(own.get("original").is_none() && own.get("original_base64").is_none(), "{own}");
    }
    let letter = letter(&event, Input::Auto, Format::CloudEvents);
    assert_golden("cloudevents-deep", &blob::bytes(&letter, None));
}

#[test]
fn numbers_beyond_a_double_and_repeated_names_are_shown_as_they_were_published() {
    let data = format!(r#"{{"n":1e999,"m":-1e999,"a":1,"a":2,"i":{}}}"#, "9".repeat(400));
    let event = cloud_event(&format!(",\"data\":{data}"));
    for (format, layout) in SHAPES {
        let letter = DeadLetter { layout, ..letter(&event, Input::Auto, format) };
        let blob = String::from_utf8(blob::bytes(&letter, None)).expect("text");
        assert!(blob.contains(&data) && !blob.contains("original"), "{format:?} {blob}");
        assert_eq!(read_back(&letter).event, event, "{format:?}");
    }
}
