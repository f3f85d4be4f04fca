//! Events of other publishers: an independent library as the oracle, and a corpus of real and of
//! invalid events.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use cloudevents::{AttributesReader as _, EventBuilder as _, EventBuilderV10};
use delivery::event::envelope::decode;
use delivery::event::{Element, Event, Input, Shape};
use lastmile_tests::conformance::{FORMAT, Results};
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::samples::skipped;

/// The one event of a text, or why it is invalid.
pub(crate) fn decode_one(text: &str, input: Input) -> Result<Event, String> {
    let body: Arc<str> = text.into();
    let [element] = &decode(&body, input)[..] else { panic!("one event is expected: {text}") };
    match element {
        Element::Event(event) => Ok(event.clone()),
        Element::Malformed { text, why } => {
            assert_eq!(*text, body, "what is malformed is kept whole");
            Err(why.to_string())
        }
    }
}

proptest! {
    #[test]
    fn an_event_built_by_an_independent_library_is_read_with_the_same_id_type_and_source(
        (id, ty, source) in ("\\PC{1,40}", ".{1,40}", "[a-z/:.#ü]{1,40}"),
        subject in option::of(".{0,20}"), flag in any::<bool>(), count in any::<i64>(), data in option::of(".{0,60}"),
    ) {
        let builder = EventBuilderV10::new().id(&id).ty(&ty).source(&source);
        let builder = builder.time("2026-11-20T07:03:00Z").extension("flag", flag).extension("count", count);
        let builder = subject.iter().fold(builder, EventBuilderV10::subject);
        let builder = data.iter().fold(builder, |builder, data| {
            builder.data("application/json", serde_json::json!({ "text": data }))
        });
        let built = builder.build().expect("a valid event");
        let text = serde_json::to_string(&built).expect("an event is JSON");
        for input in [Input::Auto, Input::CloudEvents] {
            let event = decode_one(&text, input).expect("a valid event");
            prop_assert_eq!(event.shape(), Shape::CloudEvent);
            prop_assert_eq!(event.text().as_ref(), text.as_str());
            let members = event.members();
            let (id, ty, source) = (members.id(), members.event_type(), members.source());
            prop_assert_eq!(id.as_deref(), Some(built.id()));
            prop_assert_eq!(ty.as_deref(), Some(built.ty()));
            prop_assert_eq!(source.as_deref(), Some(built.source().as_str()));
        }
    }

    #[test]
    fn no_text_makes_the_decoder_panic_or_lose_a_byte(text in "[\\[\\]{}\",:a-c0-9 \\\\ü]{0,40}") {
        for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom, Input::Opaque] {
            for element in decode(&text.as_str().into(), input) {
                let kept = match &element {
                    Element::Event(event) => event.text(),
                    Element::Malformed { text, .. } => text,
                };
                prop_assert!(text.contains(kept.as_ref()));
            }
        }
    }
}

#[test]
fn endless_nesting_is_kept_and_does_not_exhaust_the_stack() {
    let data = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","data":{data}}}"#);
    assert_eq!(decode_one(&text, Input::Auto).expect("an event").text().as_ref(), text);
}

/// A folder of events from other projects, beside the repository; it is not part of it.
pub(crate) const CORPUS: &str = "../shared/corpus";

/// The path of a file or folder of the corpus, or `None` without a corpus.
pub(crate) fn corpus_path(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(CORPUS).join(name);
    if !path.exists() {
        skipped(name, CORPUS);
        return None;
    }
    Some(path)
}

/// A file of the corpus, or `None` without a corpus.
pub(crate) fn corpus(file: &str) -> Option<String> {
    corpus_path(file).map(|path| fs::read_to_string(path).expect("a text"))
}

pub(crate) type Raw = Box<RawValue>;

/// Name and text of each case of a file of `cloudevents-format`.
pub(crate) fn cases(text: &str, member: &str) -> Vec<(String, String)> {
    let file: BTreeMap<String, Raw> = serde_json::from_str(text).expect("an object");
    let tests: Vec<BTreeMap<String, Raw>> =
        serde_json::from_str(file["tests"].get()).expect("a list of cases");
    let case = |test: &BTreeMap<String, Raw>| {
        (serde_json::from_str(test["id"].get()).expect("a name"), test[member].get().to_owned())
    };
    tests.iter().map(case).collect()
}

#[test]
fn every_sample_of_the_corpus_keeps_its_bytes() {
    for (file, count) in [
        ("functions-framework-conformance.jsonl", 69),
        ("vcenter-event-broker-appliance.jsonl", 9),
        ("knative-docs.jsonl", 4),
    ] {
        let Some(text) = corpus(&format!("cloudevents-samples/{file}")) else { continue };
        let samples: Vec<BTreeMap<String, Raw>> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(samples.len(), count, "{file}");
        for sample in &samples {
            let text = sample["event"].get();
            // Not everything in the documentation of other projects is a CloudEvent; all of it can
            // be published.
            let event = decode_one(text, Input::Custom).expect("JSON");
            assert_eq!(event.text().as_ref(), text);
            if let Ok(event) = decode_one(text, Input::Auto) {
                assert_eq!(event.text().as_ref(), text);
            }
        }
        let body = format!(
            "[{}]",
            samples.iter().map(|sample| sample["event"].get()).collect::<Vec<_>>().join(" ,\n")
        );
        let kept: Vec<String> =
            decode(&body.into(), Input::Custom).into_iter().map(text_of).collect();
        assert!(
            kept.iter().map(String::as_str).eq(samples.iter().map(|sample| sample["event"].get())),
            "{file}"
        );
    }
}

fn text_of(element: Element) -> String {
    match element {
        Element::Event(event) => event.text().to_string(),
        Element::Malformed { text, .. } => text.to_string(),
    }
}

#[test]
fn every_valid_event_of_the_format_tests_is_accepted() {
    let Some(text) = corpus("cloudevents-format/valid-events.json") else { return };
    let cases = cases(&text, "event");
    assert_eq!(cases.len(), 10);
    for (name, text) in cases {
        let event =
            decode_one(&text, Input::CloudEvents).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(
            (event.shape(), event.text().as_ref()),
            (Shape::CloudEvent, text.as_str()),
            "{name}"
        );
    }
}

#[test]
fn every_valid_batch_of_the_format_tests_is_accepted() {
    let Some(text) = corpus("cloudevents-format/valid-batches.json") else { return };
    for (name, batch) in cases(&text, "batch") {
        let events: Vec<Raw> = serde_json::from_str(&batch).expect("an array");
        let elements = decode(&batch.as_str().into(), Input::CloudEvents);
        assert!(
            elements.iter().all(|element| matches!(element, Element::Event(_))),
            "{name}: {elements:?}"
        );
        let kept: Vec<String> = elements.into_iter().map(text_of).collect();
        assert!(
            kept.iter().map(String::as_str).eq(events.iter().map(|event| event.get())),
            "{name}"
        );
    }
}

/// Every event and batch of the format tests: accepted if valid, and refused if not, or a departure; `None`
/// without a corpus.
pub(crate) fn format_results() -> Option<Results> {
    let mut results = Results::of(FORMAT);
    let folder = |file: &str| corpus(&format!("cloudevents-format/{file}.json"));
    for (name, event) in cases(&folder("valid-events")?, "event") {
        results.check(&name, decode_one(&event, Input::CloudEvents).is_ok(), None);
    }
    for (name, event) in cases(&folder("invalid-events")?, "event") {
        let is_refused = decode_one(&event, Input::CloudEvents).is_err();
        let departs = (!is_refused).then(|| departure(&name));
        results.check(&name, is_refused, departs);
    }
    let is_event = |element: &Element| matches!(element, Element::Event(_));
    let decoded = |batch: &str| decode(&batch.into(), Input::CloudEvents);
    for (name, batch) in cases(&folder("valid-batches")?, "batch") {
        results.check(&name, decoded(&batch).iter().all(is_event), None);
    }
    for (name, batch) in cases(&folder("invalid-batches")?, "batch") {
        let is_refused = !decoded(&batch).iter().any(is_event);
        results.check(&name, is_refused, (!is_refused).then_some("batch-element"));
    }
    Some(results)
}

/// The departure that an accepted case belongs to.
fn departure(case: &str) -> &'static str {
    match why_laxer(case) {
        "a time is carried, not read" => "time",
        "a content type is carried, not read" => "content-type",
        "an empty optional attribute is carried" => "empty-attribute",
        "an odd attribute name is carried" => "attribute-name",
        "a fraction is carried" => "fraction",
        other => panic!("{case}: {other}"),
    }
}

/// Why we accept what the format calls invalid. Accepting anything that is not listed here is a
/// bug.
pub(crate) fn why_laxer(case: &str) -> &'static str {
    match case {
        // Event Grid and real publishers write times of their own; we compute nothing from an
        // event's time.
        "invalidTimeGarbage"
        | "invalidTimeToMinute"
        | "invalidTimeOffsetX"
        | "invalidTimeOffsetOutOfRange"
        | "invalidTimeOffsetNonInteger"
        | "invalidTimeOffsetHourOnly" => "a time is carried, not read",
        // The content type is for the subscriber to understand; we send the bytes either way.
        "invalidNonRfc2046DataContentType" | "invalidEmptyDataContentType" => {
            "a content type is carried, not read"
        }
        // Event Grid really sends `dataschema: "#"`; empty optional attributes are harmless.
        "invalidEmptyDataSchema" | "invalidEmptySubject" => {
            "an empty optional attribute is carried"
        }
        // Upper case and dots are common in what brokers add; refusing them would dead-letter
        // events that everyone else accepts.
        "invalidCapitalizedExtension" | "invalidPunctuatedExtension" => {
            "an odd attribute name is carried"
        }
        // The bytes are unchanged, so a fraction loses nothing here.
        "invalidNonIntegerExtensionValue" => "a fraction is carried",
        _ => "NO REASON",
    }
}

#[test]
fn every_invalid_event_of_the_format_tests_has_a_known_verdict() {
    let Some(text) = corpus("cloudevents-format/invalid-events.json") else { return };
    let mut table = String::new();
    for (name, text) in cases(&text, "event") {
        let decision = match decode_one(&text, Input::CloudEvents) {
            Ok(_) => format!("accepted: {}", why_laxer(&name)),
            Err(why) => format!("refused:  {why}"),
        };
        writeln!(table, "{name:<34} {decision}").expect("writing to a string never fails");
    }
    insta::assert_snapshot!("invalid_events", table);
}

#[test]
fn only_the_invalid_elements_of_an_invalid_batch_of_the_format_tests_are_refused() {
    let Some(text) = corpus("cloudevents-format/invalid-batches.json") else { return };
    let mut table = String::new();
    for (name, batch) in cases(&text, "batch") {
        writeln!(table, "{name}").expect("writing to a string never fails");
        for element in decode(&batch.as_str().into(), Input::CloudEvents) {
            let decision = match element {
                Element::Event(_) => "accepted".to_owned(),
                Element::Malformed { why, .. } => format!("refused:  {why}"),
            };
            writeln!(table, "    {decision}").expect("writing to a string never fails");
        }
    }
    insta::assert_snapshot!("invalid_batches", table);
}
