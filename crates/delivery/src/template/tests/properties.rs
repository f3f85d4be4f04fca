use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::{BodyTemplate, PathTemplate};
use super::{order, text, values};

/// Strings that are near those that break something.
fn hostile_text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "\"",
        "\\",
        "\r\n",
        "\0",
        "\u{7f}",
        "\u{2028}",
        "ä",
        "𝄞",
        "{{ event.id }}",
        "/",
        "..",
        "%2e",
        "?",
        "#",
        "&",
        "=",
        "a",
        "\\u0000",
        "'",
        "<",
    ];
    let piece = prop_oneof![
        prop::sample::select(PIECES).prop_map(str::to_owned),
        any::<char>().prop_map(String::from)
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn strings_of_an_event_come_back_unchanged(value in hostile_text(), name in hostile_text()) {
        let template = json!({
            "value": "{{ event.data.v }}", "text": "<{{ event.data.v }}>", "object": "{{ event.data.o }}",
            "loop": "{% for x in event.data.l %}{{ x }}{% endfor %}", "json": "{{ event.data.o | tojson }}",
        });
        let compiled = BodyTemplate::compile(&template, "body").unwrap();
        let object = json!({ name: value });
        let data = json!({ "v": value, "o": object, "l": [value, value] });
        let rendered: Json = serde_json::from_slice(&compiled.render(&values(data)).unwrap()).unwrap();
        prop_assert_eq!(&rendered["value"], &json!(value));
        prop_assert_eq!(&rendered["text"], &json!(format!("<{value}>")));
        prop_assert_eq!(&rendered["object"], &object);
        prop_assert_eq!(&rendered["loop"], &json!(format!("{value}{value}")));
        let text = rendered["json"].as_str().unwrap();
        prop_assert_eq!(serde_json::from_str::<Json>(text).unwrap(), object);
    }

    #[test]
    fn a_value_never_leaves_its_segment_its_header_or_its_query_value(value in hostile_text()) {
        let values = values(json!(value));
        let path = PathTemplate::compile("https://a.example/x/{{ event.data }}/y?z=1", "url").unwrap();
        if let Ok(url) = path.render(&values) {
            let segments: Vec<&str> = url.path().split('/').collect();
            prop_assert_eq!((segments.len(), segments[1], segments[3]), (4, "x", "y"));
            let decoded = percent_encoding::percent_decode_str(segments[2]).decode_utf8().unwrap();
            prop_assert_eq!(&*decoded, &value);
            prop_assert_eq!((url.host_str(), url.query()), (Some("a.example"), Some("z=1")));
        }
        if let Ok(header) = text("{{ event.data }}").unwrap().render_header(&values) {
            prop_assert!(header.is_ascii() && !header.chars().any(char::is_control) && header.trim() == header);
        }
        let query = text("{{ event.data }}").unwrap().render_query_value(&values).unwrap();
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let expected: Vec<(String, String)> =
            if value.is_empty() { Vec::new() } else { vec![(value, String::new())] };
        prop_assert_eq!(pairs, expected);
    }

    #[test]
    fn no_text_makes_the_compiler_panic(text in hostile_text(), words in prop::collection::vec(
        prop::sample::select(&["{{", "}}", "{%", "%}", " if ", " for ", " in ", "else", "endif", "endfor", "event", ".", "|",
            "(", ")", "[", "]", "-", "not ", "1", "'a'", ":", ",", "~", "is ", "date", "99999999999999999999999999999999999"][..]), 0..25)) {
        let text = words.concat() + &text;
        if let Ok(template) = super::text(&text) {
            let _ = template.render_text(&values(order()));
        }
    }
}
