//! Events of other projects: real events, and the valid and invalid events of the format tests of
//! CloudEvents.

use std::collections::BTreeMap;
use std::fs;

use delivery::event::envelope::decode;
use delivery::event::{Element, Input};
use lastmile_tests::conformance::{FORMAT, Results};
use serde_json::value::RawValue;

use super::outside;
use crate::events::decode_one;
use crate::letter_fidelity::kept_twice;

/// A file of the corpus, or `None` without a corpus.
pub(super) fn corpus(file: &str) -> Option<String> {
    let (folder, file) = file.split_once('/').expect("a folder and a file");
    let path = outside(&format!("corpus/{folder}"))?.join(file);
    Some(fs::read_to_string(path).expect("a text"))
}

pub(super) type Raw = Box<RawValue>;

/// Name and text of each case of a file of `cloudevents-format`.
pub(super) fn cases(text: &str, member: &str) -> Vec<(String, String)> {
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

/// Checks every event and batch of the format tests: a valid one must be accepted, and an invalid
/// one must be refused or be a departure. Returns `None` without a corpus.
pub(super) fn format_results() -> Option<Results> {
    let mut results = Results::new(FORMAT);
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

/// The reason why we accept an event that the format calls invalid. Accepting any other invalid
/// event is a bug.
pub(super) fn why_laxer(case: &str) -> &'static str {
    match case {
        // Event Grid and real publishers write times in forms of their own. We compute nothing from
        // the time of an event.
        "invalidTimeGarbage"
        | "invalidTimeToMinute"
        | "invalidTimeOffsetX"
        | "invalidTimeOffsetOutOfRange"
        | "invalidTimeOffsetNonInteger"
        | "invalidTimeOffsetHourOnly" => "a time is carried, not read",
        // The subscriber has to understand the content type; we send the bytes either way.
        "invalidNonRfc2046DataContentType" | "invalidEmptyDataContentType" => {
            "a content type is carried, not read"
        }
        // Event Grid really sends `dataschema: "#"`; empty optional attributes are harmless.
        "invalidEmptyDataSchema" | "invalidEmptySubject" => {
            "an empty optional attribute is carried"
        }
        // Upper case and dots are common in attributes that brokers add. Refusing them would
        // dead-letter events that all others accept.
        "invalidCapitalizedExtension" | "invalidPunctuatedExtension" => {
            "an odd attribute name is carried"
        }
        // The bytes are unchanged, so a fraction loses nothing here.
        "invalidNonIntegerExtensionValue" => "a fraction is carried",
        _ => "NO REASON",
    }
}

/// The events of other projects, from their files and from their test cases.
fn all_events() -> Option<Vec<String>> {
    let mut events = Vec::new();
    for (file, member) in [("valid-events", "event"), ("invalid-events", "event")] {
        let text = corpus(&format!("cloudevents-format/{file}.json"))?;
        events.extend(cases(&text, member).into_iter().map(|(_, event)| event));
    }
    let samples = outside("corpus/cloudevents-samples")?;
    for entry in fs::read_dir(samples).expect("a folder") {
        let text = fs::read_to_string(entry.expect("a file").path()).expect("a text");
        for line in text.lines().filter(|line| !line.is_empty()) {
            let mut sample: BTreeMap<String, Raw> = serde_json::from_str(line).expect("an object");
            events.push(sample.remove("event").expect("an event").get().to_owned());
        }
    }
    for entry in fs::read_dir(outside("corpus/eventgrid")?).expect("a folder") {
        events.push(fs::read_to_string(entry.expect("a file").path()).expect("a text"));
    }
    // A record that is an array has several events.
    events.retain(|event| !event.trim_start().starts_with('['));
    Some(events)
}

#[test]
fn every_event_of_other_projects_is_given_back_and_none_is_stored_twice() {
    let Some(events) = all_events() else { return };
    assert!(events.len() > 100, "{}", events.len());
    for event in &events {
        for event in [event.clone(), format!(" {event}\r\n")] {
            if decode_one(&event, Input::Auto).is_ok() {
                assert_eq!(kept_twice(&event, Input::Auto), 0, "{event}");
            }
            assert_eq!(kept_twice(&event, Input::Opaque), 0, "{event}");
        }
    }
}
