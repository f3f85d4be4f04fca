use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::limits::RENDERED_MAX_BYTES;
use super::super::{BodyTemplate, PathTemplate};
use super::{order, text, values};

/// Templates of every construct, for events of any shape.
const TEMPLATES: &[&str] = &[
    "{{ event.data }}",
    "{{ event }}",
    "{{ event.data.a | default('x') }}",
    "{{ event.data | tojson }}",
    "{{ event.data | default(1) | upper | base64 }}",
    "{{ event.data[0] | default(none) }}",
    "{{ event.data | length }}",
    "{% for of in event.data %}{{ of }}{% else %}none{% endfor %}",
    "{% if event.data %}{{ event.data }}{% endif %}",
    "{{ event.data ~ event.data }}",
    "{{ event.data + 1 }}",
    "{{ event.data | urlencode }}",
    "{{ event.data | join('\"') }}",
    "{{ event.data | replace('a', '\"') }}",
    "{{ event.data | date('%Y') }}",
    "{{ event.data == event.data }}",
];

/// JSON of any shape with hostile names and texts.
fn arbitrary_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        hostile_text().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map(hostile_text(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

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
    fn any_template_makes_valid_json_of_any_event_or_an_error(
        event in arbitrary_json(),
        parts in prop::collection::vec(prop::sample::select(TEMPLATES).prop_map(str::to_owned), 1..6),
        between in hostile_text(),
    ) {
        let template = parts.join(&between);
        let body = json!({ "a": template, &between: [template, between] });
        if let Ok(compiled) = BodyTemplate::compile(&body, "body")
            && let Ok(rendered) = compiled.render(&values(event))
        {
            prop_assert!(rendered.len() <= RENDERED_MAX_BYTES);
            let rendered: Json = serde_json::from_slice(&rendered).unwrap();
            let names = |object: &Json| {
                object.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(names(&rendered), names(&body));
        }
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
