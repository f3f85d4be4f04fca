//! Events that arrive by HTTP: the rules of the HTTP protocol binding for content types and `ce-*`
//! headers.

use delivery::event::binary::{ContentMode, header_text, structured};
use delivery::event::{Input, Members};
use delivery::publish::{DefaultTopic, HttpRequest, message, route};
use lastmile_tests::conformance::{BINDING, Results};

use crate::events::decode_one;

/// The bytes of a `ce-subject`, its decoded text, and the name of our departure from the binding.
type Header = (&'static [u8], Option<&'static str>, Option<&'static str>);

const HEADERS: [Header; 17] = [
    (b"plain", Some("plain"), None),
    (b"Euro%20%E2%82%AC%20%F0%9F%98%80", Some("Euro \u{20ac} \u{1f600}"), None),
    (b"%e2%82%ac", Some("\u{20ac}"), None),
    (b"unn%65cessary", Some("unnecessary"), None),
    (b"once%2541", Some("once%41"), None),
    (br#""quoted""#, Some("quoted"), None),
    (br#""with \"escapes\" \\""#, Some(r#"with "escapes" \"#), None),
    (br#""and%20encoded""#, Some("and encoded"), None),
    (b"%C0%A0", None, None),
    (b"%FF", None, None),
    (b"%ED%A0%80", None, None),
    (b"\xff", None, None),
    ("Gr\u{fc}\u{df}e".as_bytes(), Some("Gr\u{fc}\u{df}e"), Some("raw-utf-8")),
    (b"two words", Some("two words"), Some("literal-quotes")),
    (br#"say "hi""#, Some(r#"say "hi""#), Some("literal-quotes")),
    (b"100%", None, Some("lone-percent")),
    (b"%zz", None, Some("lone-percent")),
];

/// A content type, the mode that it selects whatever headers there are, and the name of our
/// departure from the binding.
const MODES: [(&str, ContentMode, Option<&str>); 8] = [
    ("application/cloudevents+json", ContentMode::Structured, None),
    ("application/cloudevents+json; charset=UTF-8", ContentMode::Structured, None),
    ("APPLICATION/CloudEvents+json", ContentMode::Structured, None),
    ("application/cloudevents-batch+json", ContentMode::Batched, None),
    ("application/json", ContentMode::Data, None),
    ("text/xml", ContentMode::Data, None),
    ("application/cloudevents+avro", ContentMode::OtherFormat, Some("no-format")),
    ("application/cloudevents-batch+xml", ContentMode::OtherFormat, Some("no-format")),
];

/// The name of a `ce-*` header without its prefix, whether it is accepted, and the name of our
/// departure from the binding.
type Name = (&'static str, bool, Option<&'static str>);

const NAMES: [Name; 9] = [
    ("ext", true, None),
    ("7", true, None),
    ("averyverylongnameofanextension", true, None),
    ("my-ext", true, Some("header-name")),
    ("my_ext", true, Some("header-name")),
    ("my.ext", true, Some("header-name")),
    ("my~ext", true, Some("header-name")),
    ("data", false, None),
    ("data_base64", false, None),
];

/// True if a request in binary mode with an attribute of this name is published. The published
/// event must have the value of the attribute.
fn is_published(name: &str) -> bool {
    let required =
        [("specversion", "1.0"), ("id", "1"), ("source", "/s"), ("type", "t"), (name, "x")];
    let headers = required.map(|(name, value)| (format!("ce-{name}"), value.as_bytes().to_vec()));
    let (method, path) = ("POST", "/topics/shop/orders");
    let request = HttpRequest { method, path, query: "", headers: &headers, body: b"" };
    let route = route(&request, &DefaultTopic::default()).expect("a path");
    let Ok(published) = message(&request, &route, Input::Auto, 0) else { return false };
    let members = Members::parse(&published.body).expect("an object");
    assert_eq!(members.text(name).as_deref(), Some("x"), "{name}");
    true
}

fn subject(header: &[u8]) -> Option<String> {
    let required = [("specversion", "1.0"), ("id", "1"), ("source", "/s"), ("type", "t")];
    let mut attributes: Vec<(String, String)> =
        required.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    attributes.push(("subject".to_owned(), header_text(header)));
    let event = structured(&attributes, None, b"").ok()?;
    decode_one(&event, Input::CloudEvents).expect("an event");
    let members = Members::parse(&event).expect("an object");
    members.text("subject").map(std::borrow::Cow::into_owned)
}

pub(super) fn results() -> Results {
    let mut results = Results::new(BINDING);
    for (header, expected, departs) in HEADERS {
        let found = subject(header);
        assert_eq!(found.as_deref(), expected, "{}", header.escape_ascii());
        results.count(departs);
    }
    for (content_type, expected, departs) in MODES {
        assert_eq!(ContentMode::from_content_type(Some(content_type)), expected, "{content_type}");
        results.count(departs);
    }
    for (name, expected, departs) in NAMES {
        assert_eq!(is_published(name), expected, "{name}");
        results.count(departs);
    }
    let twice = [("datacontenttype".to_owned(), "text/html".to_owned())];
    let event = structured(&twice, Some("text/plain"), b"").expect("decoded");
    assert_eq!(event, r#"{"datacontenttype":"text/plain"}"#);
    results.count(Some("declared-twice"));
    results
}
