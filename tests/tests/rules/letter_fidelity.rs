//! Every dead letter gives its event back to the byte, in every format: events that are hard to keep. `conformance`
//! has those of other projects.

use delivery::deadletter::blob;
use delivery::delivery::DeadLetter;
use delivery::event::Input;
use delivery::event::binary::structured;
use delivery::subscription::dead_letter_format::{Format, Layout};
use serde_json::Value;

use crate::formats::{letter, read_back};

/// Every format, and the layouts of that which has two.
const SHAPES: [(Format, Layout); 6] = [
    (Format::Namespace, Layout::Nested),
    (Format::Namespace, Layout::Flat),
    (Format::EventGrid, Layout::Nested),
    (Format::CloudEvents, Layout::Nested),
    (Format::Custom, Layout::Nested),
    (Format::Knative, Layout::Nested),
];

/// Fails unless each format gives this event back; how many hold its text twice for that.
pub(crate) fn kept_twice(event: &str, input: Input) -> usize {
    let mut twice = 0;
    for (format, layout) in SHAPES {
        let letter = DeadLetter { layout, ..letter(event, input, format) };
        let back = read_back(&[&letter]).remove(0);
        assert_eq!(back.event, event, "{format:?} {layout:?}");
        let again = back.again(back.id, None, 0).event;
        assert_eq!(again.shape(), letter.delivery.event.shape(), "{format:?} {layout:?} {event}");
        let blob = String::from_utf8(blob::bytes(&letter, None)).expect("text");
        let blob: Value = serde_json::from_str(&blob).expect("JSON");
        let blob = if blob.is_array() { &blob[0] } else { &blob };
        let own = blob["lastmile"].as_str().and_then(|own| serde_json::from_str(own).ok());
        let own: Value = own.unwrap_or_else(|| blob["deadletterProperties"].clone());
        twice += usize::from(own.get("original").is_some());
    }
    twice
}

/// An event in the Event Grid schema whose data is not its last member, with spaces, as its publishers write it.
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
        // No member of it says where it ends.
        ("{ }".to_owned(), 1),
        ("{\"a\": 1 , \"b\":[ ]\n}\n".to_owned(), 0),
        // In the formats that have such a member.
        (event(", \"lastmile\": \"mine\",\"data\":1"), 3),
        (event(",\"deadletterProperties\": 1 "), 1),
    ] {
        assert_eq!(kept_twice(&text, Input::Auto), twice, "{text}");
        // Whatever it is read as: nothing of that is to be seen in its text.
        kept_twice(&text, Input::Custom);
        kept_twice(&text, Input::Opaque);
    }
    for text in [" 42\n", "\"text\" ", "[ 1,2 ]", "null"] {
        assert_eq!(kept_twice(text, Input::Custom), 0, "{text}");
    }
}
