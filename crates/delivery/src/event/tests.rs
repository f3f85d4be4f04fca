//! Decoding records into events. Events keep their bytes.

use std::sync::Arc;

use super::envelope::decode;
use super::*;

fn decoded(body: &str, input: Input) -> Vec<Result<(Shape, String), Malformed>> {
    decode(&body.into(), input)
        .into_iter()
        .map(|element| match element {
            Element::Event(event) => Ok((event.shape(), event.text().to_string())),
            Element::Malformed { why, .. } => Err(why),
        })
        .collect()
}

const CLOUD_EVENT: &str = r##"{ "specversion":"1.0","id":"1","source":"s","type":"t","dataschema":"#","n":12345678901234567890123,"data":{"a":1,"a":2} }"##;
const EVENT_GRID: &str = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13.1647262Z","data":{}}"#;

#[test]
fn an_event_keeps_its_bytes_and_is_known_by_its_shape() {
    for (body, shape) in [
        (CLOUD_EVENT, Shape::CloudEvent),
        (EVENT_GRID, Shape::EventGrid),
        (r#"{"orderId": 7}"#, Shape::Custom),
        (" 42\n", Shape::Custom),
        (r#""text""#, Shape::Custom),
    ] {
        assert_eq!(decoded(body, Input::Auto), [Ok((shape, body.to_owned()))]);
    }
    assert_eq!(decoded("<xml/>", Input::Opaque), [Ok((Shape::Opaque, "<xml/>".to_owned()))]);
}

#[test]
fn an_array_is_one_event_per_element_and_a_bad_element_spoils_only_itself() {
    let body = format!(r#" [{CLOUD_EVENT} , {{"specversion":"9"}},{{"x":1,"x":2}}, {EVENT_GRID}]"#);
    let elements = decoded(&body, Input::Auto);
    assert_eq!(elements[0], Ok((Shape::CloudEvent, CLOUD_EVENT.to_owned())));
    assert!(matches!(elements[1], Err(Malformed::CloudEvent(_))));
    assert_eq!(elements[2], Err(Malformed::DuplicateMember("x".to_owned())));
    assert_eq!(elements[3], Ok((Shape::EventGrid, EVENT_GRID.to_owned())));
    assert_eq!(elements.len(), 4);
}

#[test]
fn a_broken_array_is_one_malformed_record_with_its_whole_text() {
    let body: Arc<str> = r#"[{"a":1},{"#.into();
    let elements = decode(&body, Input::Auto);
    assert!(
        matches!(&elements[..], [Element::Malformed { text, why: Malformed::NotJson(_) }] if *text == body)
    );
}

#[test]
fn what_claims_to_be_a_cloud_event_has_to_be_one() {
    for (body, problem) in [
        (r#"{"specversion":"1.0","id":"","source":"s","type":"t"}"#, "id"),
        (r#"{"specversion":"1.0","id":"1","type":"t"}"#, "source"),
        (r#"{"specversion":"1.0","id":"1","source":"s","type":7}"#, "type"),
        (r#"{"specversion":"0.3","id":"1","source":"s","type":"t"}"#, "specversion"),
        (r#"{"specversion":1.0,"id":"1","source":"s","type":"t"}"#, "specversion"),
        (
            r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data":1,"data_base64":""}"#,
            "cannot be combined",
        ),
        (
            r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":7}"#,
            "data_base64",
        ),
        (r#"{"specversion":"1.0","id":"1","source":"s","type":"t","x":{}}"#, "attribute x"),
    ] {
        let [Err(Malformed::CloudEvent(why))] = &decoded(body, Input::Auto)[..] else {
            panic!("{body}")
        };
        assert!(why.contains(problem), "{why}");
    }
}

#[test]
fn null_data_is_absent() {
    for data in [
        r#""data":null"#,
        r#""data_base64":null"#,
        r#""data":null,"data_base64":null"#,
        r#""data":{},"data_base64":null"#,
        r#""data":null,"data_base64":"AA==""#,
    ] {
        let body = format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t",{data}}}"#);
        for input in [Input::Auto, Input::CloudEvents] {
            assert_eq!(decoded(&body, input), [Ok((Shape::CloudEvent, body.clone()))]);
        }
    }
}

#[test]
fn an_empty_array_holds_no_event_and_is_no_error() {
    for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom, Input::S3] {
        assert_eq!(decoded(" [ ] ", input), [], "{input:?}");
    }
}

#[test]
fn text_that_is_not_json_is_malformed_whatever_the_input_unless_opaque() {
    for body in ["", "hello", "{", r#"{"a":1} x"#, "[1,", "nul"] {
        for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom] {
            assert!(
                matches!(&decoded(body, input)[..], [Err(Malformed::NotJson(_))]),
                "{body} {input:?}"
            );
        }
    }
}

#[test]
fn a_topic_that_names_its_schema_takes_nothing_else() {
    assert!(matches!(
        &decoded(EVENT_GRID, Input::CloudEvents)[..],
        [Err(Malformed::CloudEvent(_))]
    ));
    assert!(matches!(&decoded(CLOUD_EVENT, Input::EventGrid)[..], [Err(Malformed::EventGrid(_))]));
    assert_eq!(decoded(CLOUD_EVENT, Input::Custom), [Ok((Shape::Custom, CLOUD_EVENT.to_owned()))]);
}

#[test]
fn an_event_read_back_from_a_queue_keeps_its_shape() {
    for (body, input, shape) in [
        (CLOUD_EVENT, Input::Auto, Shape::CloudEvent),
        (EVENT_GRID, Input::Auto, Shape::EventGrid),
        ("<xml/>", Input::Opaque, Shape::Opaque),
        (CLOUD_EVENT, Input::Opaque, Shape::Opaque),
        ("<xml/>", Input::Auto, Shape::Opaque),
        (r#"{"a":1}"#, Input::CloudEvents, Shape::Custom),
    ] {
        assert_eq!(Event::recall(&body.into(), input).shape(), shape, "{body}");
    }
}

#[test]
fn an_event_read_back_from_a_queue_keeps_its_members() {
    let member = |body: &str, input, shape| {
        let event = Event::recall(&body.into(), input).in_shape(shape);
        event.members().get("a").map(ToOwned::to_owned)
    };
    let expected = Some("1".to_owned());
    assert_eq!(
        member(r#"{"a":1}"#, Input::CloudEvents, Shape::Custom),
        expected,
        "read differently today"
    );
    assert_eq!(member(r#"{"a":1}"#, Input::Auto, Shape::EventGrid), expected);
    assert_eq!(member(r#"{"a":1}"#, Input::Auto, Shape::Opaque), None);
    assert_eq!(
        member(r#"{"a":1,"b":2,"b":3}"#, Input::Auto, Shape::Custom),
        None,
        "which b would be meant"
    );
    let opaque = Event::recall(&r#"{"a":1}"#.into(), Input::Opaque);
    assert_eq!(Event::recall(opaque.text(), Input::Auto).in_shape(Shape::Opaque), opaque);
}

#[test]
fn members_are_seen_through_escapes_and_in_order() {
    let members = Members::parse(r#"{"i\u0064":"a\nb","n": 1.50 ,"o":{"x": 1}}"#).unwrap();
    assert_eq!(members.id().as_deref(), Some("a\nb"));
    assert_eq!(members.get("n"), Some("1.50"));
    assert_eq!(members.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["id", "n", "o"]);
    assert!(matches!(
        Members::parse(r#"{"id":1,"i\u0064":2}"#),
        Err(Malformed::DuplicateMember(_))
    ));
}
