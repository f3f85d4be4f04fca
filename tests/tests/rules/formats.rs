//! Blobs beyond the documentation's samples: which are nested, and what is read back.

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::deadletter::{blob, stored};
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Entry, History, Returned, WaitReason};
use delivery::event::mapping::{Field, Mapping};
use delivery::event::portable::portable;
use delivery::event::schema::Schema;
use delivery::event::{Event, Input};
use delivery::subscription::Subscription;
use delivery::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Format, Layout};
use delivery::subscription::profile::Dialect;
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::arbitrary;
use crate::blobs::assert_golden;
use crate::samples::{EVENT, PUBLISHED_MS, delivery_of, subscription};

const GRID: &str = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13.1647262Z","dataVersion":"2","data":{"n": 1.50}}"#;
const CUSTOM: &str = r#"{"orderId": 7, "kind": "order.created", "total": 1.10}"#;

/// A dead letter about this event after one response of 404.
pub(crate) fn letter(text: &str, input: Input, format: Format) -> DeadLetter {
    let mut delivery = delivery_of(text, input);
    delivery.attempts = 1;
    let at_ms = PUBLISHED_MS + 40;
    delivery.history.push(Entry::new(at_ms, Outcome::NotFound, Some(404), 25));
    delivery.last_response = Some(b"gone".to_vec());
    let mut subscription = subscription(Dialect::Native);
    subscription.dead_letter.format = DeadLetterFormat::Fixed(format);
    subscription.mapping = mapping().into();
    DeadLetter::new(
        delivery,
        &subscription,
        Reason::MaxDeliveryAttemptsExceeded,
        PUBLISHED_MS + 100,
    )
}

fn mapping() -> Mapping {
    let field = |path: &str| Field { path: Some(path.parse().expect("a path")), default: None };
    let subject = Field { path: None, default: Some("none".to_owned()) };
    Mapping { id: field("orderId"), event_type: field("kind"), subject, ..Mapping::default() }
}

pub(crate) fn read_back(letter: &DeadLetter) -> StoredDeadLetter {
    let key = blob::key(letter, "pre");
    stored::read(&key, "pre", &blob::bytes(letter, None)).expect("our own")
}

fn text_of(letter: &DeadLetter) -> String {
    String::from_utf8(blob::bytes(letter, None)).expect("text")
}

#[test]
fn an_event_in_another_schema_keeps_its_published_values() {
    for (name, text, input, format) in [
        ("cloudevents-from-event-grid", GRID, Input::Auto, Format::CloudEvents),
        ("cloudevents-from-custom", CUSTOM, Input::Custom, Format::CloudEvents),
        ("eventgrid-from-custom", CUSTOM, Input::Custom, Format::EventGrid),
        ("knative-from-custom", CUSTOM, Input::Custom, Format::Knative),
        ("custom-from-cloudevents", EVENT, Input::Auto, Format::Custom),
        ("custom-from-event-grid", GRID, Input::Auto, Format::Custom),
        ("eventgrid-from-cloudevents", EVENT, Input::Auto, Format::EventGrid),
    ] {
        let letter = letter(text, input, format);
        assert_golden(name, &blob::bytes(&letter, None));
        let back = read_back(&letter);
        assert_eq!(back.event, text, "{name}");
    }
}

#[test]
fn an_unmapped_custom_event_has_the_id_of_its_message() {
    let mut unmapped = subscription(Dialect::Native);
    unmapped.dead_letter.format = DeadLetterFormat::Fixed(Format::Custom);
    let letter = DeadLetter::new(
        delivery_of(CUSTOM, Input::Custom),
        &unmapped,
        Reason::TimeToLiveExceeded,
        PUBLISHED_MS,
    );
    assert_golden("custom-unmapped", &blob::bytes(&letter, None));
    let document: Value = serde_json::from_str(&text_of(&letter)).expect("JSON");
    assert_eq!(document[0]["id"], letter.delivery.origin.message);
    assert_eq!(
        (&document[0]["eventTime"], &document[0]["topic"]),
        (&document[0]["publishTime"], &"shop/orders".into())
    );
}

#[test]
fn a_member_with_one_of_our_names_is_replaced_and_its_value_kept() {
    let event = r#"{"specversion":"1.0","id":"1","lastmile":"mine","source":"s","deadletterreason":"x","errorretry":9,"customDeliveryProperties":"c","type":"t"}"#;
    for (name, format, layout, replaced) in [
        (
            "cloudevents-replaced",
            Format::CloudEvents,
            Layout::Nested,
            &["lastmile", "deadletterreason"][..],
        ),
        ("knative-replaced", Format::Knative, Layout::Nested, &["lastmile", "errorretry"]),
        ("namespace-flat-replaced", Format::Namespace, Layout::Flat, &["customDeliveryProperties"]),
    ] {
        let letter = DeadLetter { layout, ..letter(event, Input::Auto, format) };
        assert_golden(name, &blob::bytes(&letter, None));
        let blob: Value = serde_json::from_str(&text_of(&letter)).expect("JSON");
        let about = match &blob[0]["lastmile"] {
            Value::String(ours) => serde_json::from_str(ours).expect("JSON in a string"),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => blob["deadletterProperties"].clone(),
        };
        assert_eq!(about["original"], event, "{name}");
        let shown = if blob.is_array() { &blob[0] } else { &blob };
        let published: Value = serde_json::from_str(event).expect("JSON");
        assert!(replaced.iter().all(|member| shown[member] != published[member]), "{name}");
        assert_eq!(read_back(&letter).event, event, "{name}");
    }
}

#[test]
fn an_event_that_does_not_fit_a_format_is_nested() {
    for (text, input, format, layout) in [
        ("<xml/>", Input::Opaque, Format::CloudEvents, Layout::Nested),
        ("<xml/>", Input::Opaque, Format::Custom, Layout::Nested),
        ("<xml/>", Input::Opaque, Format::Namespace, Layout::Flat),
        ("[1]", Input::Custom, Format::Namespace, Layout::Flat),
        ("42", Input::Custom, Format::Knative, Layout::Nested),
        (r#""text""#, Input::Custom, Format::EventGrid, Layout::Nested),
        (r#"{"event":{"a":1}}"#, Input::Custom, Format::Namespace, Layout::Flat),
        (r#"{"a":1,"a":2}"#, Input::Auto, Format::Namespace, Layout::Flat),
    ] {
        let letter = DeadLetter { layout, ..letter(text, input, format) };
        let nested = text_of(&DeadLetter {
            format: Format::Namespace,
            layout: Layout::Nested,
            ..letter.clone()
        });
        let expected = if format == Format::Namespace { nested } else { format!("[{nested}]") };
        assert_eq!(text_of(&letter), expected);
        assert_eq!(read_back(&letter).event, text);
    }
    assert_golden(
        "cloudevents-opaque",
        &blob::bytes(&letter("<xml/>", Input::Opaque, Format::CloudEvents), None),
    );
}

#[test]
fn without_an_attempt_no_format_has_outcome_time_or_status() {
    for (format, text, input, name) in [
        (Format::EventGrid, GRID, Input::Auto, "eventgrid-no-attempt"),
        (Format::CloudEvents, EVENT, Input::Auto, "cloudevents-no-attempt"),
        (Format::Custom, CUSTOM, Input::Custom, "custom-no-attempt"),
        (Format::Knative, EVENT, Input::Auto, "knative-no-attempt"),
    ] {
        let with = letter(text, input, format);
        let delivery = delivery_of(text, input);
        let letter = DeadLetter { delivery, reason: Reason::TimeToLiveExceeded.into(), ..with };
        assert_golden(name, &blob::bytes(&letter, Some("b: missing")));
        let back = read_back(&letter);
        assert_eq!(
            (back.attempts, back.status, &back.outcome, back.last_attempt_ms),
            (0, None, &None, None),
            "{name}"
        );
        assert_eq!(
            (back.reason.as_str(), back.published_ms),
            ("TimeToLiveExceeded", Some(PUBLISHED_MS)),
            "{name}"
        );
    }
}

/// A dead letter in Knative's format that its sink refused too.
fn returned_letter(format: Format) -> DeadLetter {
    let mut history = History::default();
    let at_ms = PUBLISHED_MS + 200;
    history.push(Entry::new(at_ms, Outcome::Busy, Some(503), 30));
    let returned = Returned {
        address: Some("https://sink.example.com/letters?code=7".to_owned()),
        reason: Reason::MaxDeliveryAttemptsExceeded.into(),
        detail: None,
        attempts: 1,
        history,
        last_response: Some(b"later".to_vec()),
    };
    DeadLetter { returned: Some(returned), ..letter(EVENT, Input::Auto, format) }
}

#[test]
fn a_returned_dead_letter_keeps_its_reason_and_reports_its_sink() {
    for (name, format) in [
        ("knative-returned", Format::Knative),
        ("namespace-returned", Format::Namespace),
        ("cloudevents-returned", Format::CloudEvents),
    ] {
        let letter = returned_letter(format);
        assert_golden(name, &blob::bytes(&letter, None));
        let back = read_back(&letter);
        assert_eq!(
            (back.reason.as_str(), back.attempts),
            ("MaxDeliveryAttemptsExceeded", 1),
            "{name}"
        );
        assert_eq!((back.status, back.history.len()), (Some(404), 1), "{name}");
        let sink = back.sink.as_ref().expect("it was asked");
        assert_eq!(
            (sink.destination.as_deref(), sink.attempts),
            (Some("https://sink.example.com/letters"), 1)
        );
        assert_eq!(
            (sink.history[0].status, sink.last_response.as_deref()),
            (Some(503), Some("later"))
        );
    }
}

#[test]
fn a_sink_delivery_is_a_cloud_event_in_the_cloud_events_formats_only() {
    for (format, event, is_cloud_event) in [
        (Format::CloudEvents, EVENT, true),
        (Format::Knative, EVENT, true),
        (Format::Knative, r#""text""#, false),
        (Format::EventGrid, GRID, false),
        (Format::Custom, CUSTOM, false),
        (Format::Namespace, EVENT, false),
    ] {
        let letter = letter(event, Input::Auto, format);
        let enriched = blob::enriched(&letter);
        assert_eq!(enriched.is_cloud_event, is_cloud_event, "{format:?}");
        let json: Value = serde_json::from_str(&enriched.json).expect("JSON");
        assert!(json.is_object(), "{json}");
        assert_eq!(json.get("specversion").is_some(), is_cloud_event, "{json}");
        let blob: Value = serde_json::from_str(&text_of(&letter)).expect("JSON");
        assert_eq!(if blob.is_array() { &blob[0] } else { &blob }, &json, "{format:?}");
    }
}

#[test]
fn a_response_with_characters_that_sqs_refuses_is_escaped() {
    let mut letter = letter(EVENT, Input::Auto, Format::Namespace);
    letter.delivery.last_response = Some("\u{ffff}\u{1}".into());
    let json = blob::enriched(&letter).json;
    assert!(json.contains(r"\uffff\u0001") && !json.contains('\u{ffff}'), "{json}");
}

#[test]
fn the_default_format_is_that_of_the_dialect() {
    let by = |dialect, schema: Option<Schema>, text: &str, input| {
        let mut subscription: Subscription = subscription(dialect);
        subscription.destination.schema = schema;
        DeadLetter::new(
            delivery_of(text, input),
            &subscription,
            Reason::TimeToLiveExceeded,
            PUBLISHED_MS,
        )
        .format
    };
    for dialect in [Dialect::EventGrid, Dialect::EventGridResource, Dialect::EventGridKubernetes] {
        for (text, input, format) in [
            (EVENT, Input::Auto, Format::CloudEvents),
            (GRID, Input::Auto, Format::EventGrid),
            (CUSTOM, Input::Auto, Format::Custom),
            ("text", Input::Opaque, Format::Namespace),
        ] {
            assert_eq!(by(dialect, None, text, input), format);
        }
        for (schema, format) in [
            (Schema::CloudEventsStructured, Format::CloudEvents),
            (Schema::CloudEventsBinary, Format::CloudEvents),
            (Schema::EventGrid, Format::EventGrid),
            (Schema::Custom, Format::Custom),
        ] {
            assert_eq!(by(dialect, Some(schema), CUSTOM, Input::Auto), format);
        }
    }
    for (dialect, format) in [
        (Dialect::Knative, Format::Knative),
        (Dialect::EventGridNamespace, Format::Namespace),
        (Dialect::Native, Format::Namespace),
    ] {
        assert_eq!(by(dialect, None, EVENT, Input::Auto), format);
    }
}

#[test]
fn an_event_grid_dead_letter_is_written_at_the_later_of_the_decision_and_five_minutes_after_the_last_attempt()
 {
    let mut subscription = subscription(Dialect::EventGrid);
    subscription.dead_letter.delay_ms = 5 * MINUTE_MS;
    let not_before = |attempted_ms: Option<u64>, reason, decided_ms| {
        let mut delivery = delivery_of(EVENT, Input::Auto);
        if let Some(at_ms) = attempted_ms {
            let (outcome, status) = (Outcome::BadRequest, Some(400));
            delivery.history.push(Entry::new(at_ms, outcome, status, 1));
        }
        // A postponement after it is no attempt.
        let now_ms = PUBLISHED_MS + 60 * MINUTE_MS;
        delivery.wait(WaitReason::Probation, now_ms, now_ms + 10 * MINUTE_MS);
        DeadLetter::new(delivery, &subscription, reason, decided_ms).not_before_ms
    };
    let attempt_ms = PUBLISHED_MS + MINUTE_MS;
    let refused = Reason::UndeliverableDueToHttpBadRequest;
    assert_eq!(not_before(Some(attempt_ms), refused, attempt_ms + 20), attempt_ms + 5 * MINUTE_MS);
    let late_ms = attempt_ms + 12 * HOUR_MS;
    assert_eq!(not_before(Some(attempt_ms), Reason::TimeToLiveExceeded, late_ms), late_ms);
    assert_eq!(not_before(None, Reason::TimeToLiveExceeded, late_ms), late_ms);
}

#[test]
fn only_knatives_format_has_full_addresses_and_never_with_a_user() {
    let mut subscription = subscription(Dialect::Knative);
    subscription.destination.url =
        "https://user:hush@a.example.com/in?code=7".parse().expect("an address");
    let made = |subscription: &Subscription| {
        let delivery = delivery_of(EVENT, Input::Auto);
        DeadLetter::new(delivery, subscription, Reason::TimeToLiveExceeded, PUBLISHED_MS)
    };
    let letter = made(&subscription);
    let addresses = letter.addresses.clone().expect("the addresses");
    assert_eq!(addresses.subscriber, "https://a.example.com/in?code=[secret]");
    assert_eq!(addresses.failed, addresses.subscriber);
    assert!(!text_of(&letter).contains("hush"));
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Knative) {
        subscription.dead_letter.format = DeadLetterFormat::Fixed(format);
        let text = text_of(&made(&subscription));
        assert!(!text.contains("hush") && !text.contains("code=7"), "{text}");
    }
}

/// Any event: one of each shape, perhaps with one of our names among its members, and text.
fn event() -> impl Strategy<Value = (String, Input)> {
    let value = prop_oneof![
        Just("null".to_owned()),
        "-?[1-9][0-9]{0,25}",
        "\\PC{0,8}".prop_map(|text| Value::String(text).to_string()),
        Just(r#"{"a": [1, {"b": 2.50}]}"#.to_owned()),
        Just(r#"{"\udfff": "a\ud800 \\ud800"}"#.to_owned()),
    ];
    let name = prop_oneof![
        "[a-z]{1,8}",
        select(
            &[
                "lastmile",
                "data",
                "event",
                "deadletterreason",
                "deadLetterReason",
                "errorretry",
                "original"
            ][..]
        )
        .prop_map(str::to_owned),
        select(
            &[
                "deadletterProperties",
                "customDeliveryProperties",
                "brokerProperties",
                "published",
                "knativeerrordata"
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    let members =
        proptest::collection::btree_map(name, value, 0..6).prop_map(Vec::from_iter).prop_shuffle();
    let members = members.prop_map(|members| {
        let written = members.into_iter().map(|(name, value)| format!("\"{name}\": {value}"));
        written.collect::<Vec<_>>().join(",")
    });
    let space = || "[ \t\r\n]{0,2}";
    let required = select(
        &[
            r#""specversion":"1.0","id":"1","source":"/s","type":"t""#,
            r#""id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13.1647262Z""#,
            r#""orderId": 7,"kind":"k""#,
            "",
        ][..],
    );
    let spaces = (space(), space(), space(), space());
    let object = (required, members, spaces).prop_map(|(required, members, (a, b, c, d))| {
        let all = [required.to_owned(), members].into_iter().filter(|part| !part.is_empty());
        let all = all.collect::<Vec<_>>().join(&format!("{a},{b}"));
        (format!("{d}{{{a}{all}{c}}}{b}"), Input::Auto)
    });
    prop_oneof![
        6 => object,
        1 => "\\PC{0,40}".prop_map(|text| (text, Input::Opaque)),
        1 => select(&["42", " [1, 2]\n", r#""text" "#, "{", "null", "{ }", "{\"a\":1,\"a\":2}\n"][..]).prop_map(|text| (text.to_owned(), Input::Custom)),
    ]
}

proptest! {
    #[test]
    fn every_written_blob_is_read_back(
        (text, input) in event(),
        letter in arbitrary::letter(),
        format in select(&Format::ALL[..]),
        (layout, error_data) in (select(&Layout::ALL[..]), select(&ErrorData::ALL[..])),
        mapped in any::<bool>(),
    ) {
        let mut letter = letter;
        letter.delivery.event = Event::recall(&text.as_str().into(), input);
        let mut subscription = subscription(Dialect::Native);
        subscription.dead_letter.format = DeadLetterFormat::Fixed(format);
        subscription.mapping = if mapped { mapping().into() } else { subscription.mapping };
        let decided = DeadLetter::new(letter.delivery.clone(), &subscription, Reason::ProcessingFailed, letter.decided_ms);
        let letter = DeadLetter { format, layout, error_data, mapped: decided.mapped, addresses: decided.addresses, ..letter };
        let key = blob::key(&letter, "pre");
        let bytes = blob::bytes(&letter, Some("why"));
        let written = String::from_utf8_lossy(&bytes);
        let is_readable = portable(&written).is_some_and(|readable| readable == written);
        prop_assert!(is_readable, "{written}");
        let back = stored::read(&key, "pre", &bytes).expect("our own");
        let delivery = &letter.delivery;
        prop_assert_eq!(back.id, delivery.id);
        prop_assert_eq!(&back.subscription, &delivery.subscription);
        prop_assert_eq!(&back.reason, &letter.reason.to_string());
        prop_assert_eq!(back.attempts, delivery.attempts);
        prop_assert_eq!(&back.detail, &letter.detail);
        prop_assert_eq!(back.sink_error.as_deref(), Some("why"));
        prop_assert_eq!(back.omitted, delivery.history.omitted());
        prop_assert_eq!(back.history.len(), delivery.history.first().len() + delivery.history.last().count());
        let newest = delivery.history.newest_attempt();
        prop_assert_eq!(&back.outcome, &newest.map(|attempt| attempt.outcome.to_string()));
        prop_assert_eq!(back.status, newest.and_then(|attempt| attempt.status));
        prop_assert_eq!(&back.event, &text);
    }
}
