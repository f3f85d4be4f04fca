//! The samples of the documentation, in every format: their dead letters as our blobs, and the
//! differences.
//!
//! The blobs are golden files. If the documentation is beside the repository, each is compared with
//! its sample: the same names in the same order, the same values, and no further differences than
//! those in [`SAMPLES`].

use std::fs;

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::deadletter::{blob, stored};
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::{Addresses, DeadLetter, Delivery, Entry, Origin};
use delivery::event::binary::structured;
use delivery::event::mapping::Mapped;
use delivery::event::{Event, Input, Members};
use delivery::subscription::dead_letter_format::{ErrorData, Format, Layout};
use delivery::time::moment;
use lastmile_tests::conformance::Results;
use serde_json::Value;
use serde_json::value::RawValue;

use super::outside;
use crate::blobs::{assert_golden, names_in_order};
use crate::samples::PUBLISHED_MS;

/// Event Grid, "delivery event formats".
const EVENT_GRID: &str = "003_0731032aa352bbc0.txt";
/// Event Grid namespaces, "dead lettering for event subscriptions to namespace topics".
const NAMESPACES: &str = "004_0e6d3fc2c0c14748.txt";

/// A sample, and every way in which our blob of the same dead letter differs.
struct Sample {
    blob: &'static str,
    page: &'static str,
    /// Its index among the dead letters of the page.
    index: usize,
    /// Members that the sample lacks: name and reason.
    more: &'static [(&'static str, &'static str)],
    /// Members with other values: name and reason.
    other: &'static [(&'static str, &'static str)],
    /// Our blob is an array.
    array: bool,
    letter: fn() -> DeadLetter,
}

const STATUS: &str = "what §6 adds: the status of the last attempt";
const OURS: &str =
    "what §6 adds: our own fields, as JSON in a string, since CloudEvents allows no objects there";
const WHOLE: &str = "our own fields come after the five of the sample";
const SHORT: &str = "the sample leaves out what stands there";

/// Every deviation. Blobs of the flat formats are arrays (§10); all
/// times have milliseconds, followed by zeros where the sample has more digits.
const SAMPLES: [Sample; 6] = [
    Sample {
        blob: "eventgrid-documented",
        page: EVENT_GRID,
        index: 0,
        more: &[("lastHttpStatusCode", STATUS), ("lastmile", OURS)],
        other: &[],
        array: true,
        letter: event_grid,
    },
    Sample {
        blob: "cloudevents-documented",
        page: EVENT_GRID,
        index: 1,
        more: &[
            ("specversion", "no CloudEvent is without it (§10)"),
            ("lastdeliveryattempttime", "the sample ends before it, with a comma"),
            ("lasthttpstatuscode", STATUS),
            ("lastmile", OURS),
        ],
        other: &[],
        array: true,
        letter: cloud_event,
    },
    Sample {
        blob: "custom-documented",
        page: EVENT_GRID,
        index: 2,
        more: &[("lastHttpStatusCode", STATUS), ("lastmile", OURS)],
        other: &[],
        array: true,
        letter: custom,
    },
    Sample {
        blob: "documented",
        page: NAMESPACES,
        index: 0,
        more: &[],
        other: &[("deadletterProperties", WHOLE)],
        array: false,
        letter: namespace,
    },
    Sample {
        blob: "namespace-flat-documented",
        page: NAMESPACES,
        index: 1,
        more: &[],
        other: &[("deadletterProperties", WHOLE)],
        array: false,
        letter: namespace_flat,
    },
    Sample {
        blob: "namespace-binary-documented",
        page: NAMESPACES,
        index: 2,
        more: &[],
        other: &[("event", SHORT), ("deadletterProperties", WHOLE)],
        array: false,
        letter: namespace_binary,
    },
];

/// The members that hold times; the sample's are equal to ours, cut to milliseconds.
const TIMES: [&str; 3] = ["publishTime", "lastDeliveryAttemptTime", "publishtime"];

fn delivery(event: &str, input: Input, published: &str) -> Delivery {
    let origin = Origin { message: "8bc07e6f-0885-4729-90e4-7c3f052bd754".to_owned(), index: 0 };
    let name = "rgwithoutpolicy/myegteststgfoo/mysubscription".parse().expect("well formed");
    let published_ms = moment::parse(published).expect("a time");
    Delivery::new(Event::recall(&event.into(), input), name, origin, published_ms)
}

fn attempted(
    delivery: &mut Delivery,
    at_ms: u64,
    outcome: Outcome,
    status: Option<u16>,
    body: &str,
) {
    delivery.attempts += 1;
    delivery.history.push(Entry::new(at_ms, outcome, status, 12));
    delivery.last_response = status.map(|_| body.into());
}

/// After one attempt with status 404, as in all samples of Event Grid.
fn not_found(
    event: &str,
    input: Input,
    published: &str,
    attempted_at: &str,
    format: Format,
) -> DeadLetter {
    let mut delivery = delivery(event, input, published);
    let at_ms = moment::parse(attempted_at).expect("a time");
    attempted(&mut delivery, at_ms, Outcome::NotFound, Some(404), "");
    let letter =
        DeadLetter::without_subscription(delivery, Reason::MaxDeliveryAttemptsExceeded, at_ms + 12);
    DeadLetter { format, destination: Some("https://example.com/in".to_owned()), ..letter }
}

fn event_grid() -> DeadLetter {
    let event = r#"{"id":"93902694-901e-008f-6f95-7153a806873c","eventTime":"2020-08-13T17:18:13.1647262Z","eventType":"Microsoft.Storage.BlobCreated","dataVersion":"","metadataVersion":"1","topic":"/subscriptions/0000000000-0000-0000-0000-000000000000000/resourceGroups/rgwithoutpolicy/providers/Microsoft.Storage/storageAccounts/myegteststgfoo","subject":"/blobServices/default/containers/deadletter/blobs/myBlobFile.txt","data":{"api":"PutBlob","clientRequestId":"c0d879ad-88c8-4bbe-8774-d65888dc2038","requestId":"93902694-901e-008f-6f95-7153a8000000","eTag":"0x8D83FACDC0C3402","contentType":"text/plain","contentLength":0,"blobType":"BlockBlob","url":"https://myegteststgfoo.blob.core.windows.net/deadletter/myBlobFile.txt","sequencer":"00000000000000000000000000015508000000000005101c","storageDiagnostics":{"batchId":"cfb32f79-3006-0010-0095-711faa000000"}}}"#;
    let [published, at] = ["2020-08-13T17:18:14.0265758Z", "2020-08-13T17:18:14.0465788Z"];
    not_found(event, Input::Auto, published, at, Format::EventGrid)
}

fn cloud_event() -> DeadLetter {
    let event = r#"{"specversion":"1.0","id":"caee971c-3ca0-4254-8f99-1395b394588e","source":"mysource","dataversion":"1.0","subject":"mySubject","type":"fooEventType","datacontenttype":"application/json","data":{"prop1":"value1","prop2":5}}"#;
    let [published, at] = ["2020-08-13T21:21:36.4018726Z", "2020-08-13T21:21:36.4218726Z"];
    not_found(event, Input::Auto, published, at, Format::CloudEvents)
}

/// The sample does not show its mapping: its id and time are those of the message, the rest are
/// fields or defaults.
fn custom() -> DeadLetter {
    let event = r#"{"prop1":"my property","prop2":5,"myEventType":"fooEventType"}"#;
    let [published, at] = ["2020-08-13T18:11:29.4121391Z", "2020-08-13T18:11:29.4277644Z"];
    let mapped = Mapped {
        id: "8bc07e6f-0885-4729-90e4-7c3f052bd754".to_owned(),
        topic: "/subscriptions/00000000000-0000-0000-0000-000000000000000/resourceGroups/rgwithoutpolicy/providers/Microsoft.EventGrid/topics/myCustomSchemaTopic".to_owned(),
        event_time: published.to_owned(),
        event_type: Some("myEventType".to_owned()),
        subject: Some("subjectDefault".to_owned()),
        data_version: Some("1.0".to_owned()),
    };
    DeadLetter {
        mapped: Some(mapped),
        ..not_found(event, Input::Custom, published, at, Format::Custom)
    }
}

fn namespace() -> DeadLetter {
    crate::blobs::documented()
}

fn namespace_flat() -> DeadLetter {
    DeadLetter { layout: Layout::Flat, ..namespace() }
}

/// Published in binary mode; the sample keeps the spelling of its headers.
fn namespace_binary() -> DeadLetter {
    let attributes = [
        ("specversion", "1.0"),
        ("type", "com.example.someevent"),
        ("source", "/mycontext"),
        ("id", "A234-1234-1234"),
        ("time", "2018-04-05T17:31:00Z"),
        ("comexampleextension1", "value"),
        ("comexampleothervalue", "5"),
    ];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let event = structured(
        &attributes,
        Some("application/vnd.apache.thrift.binary"),
        &[0x80, 0x01, 0xff, 0x00],
    )
    .expect("its values are encoded");
    let mut letter = namespace();
    letter.delivery.event = Event::recall(&event.into(), Input::Auto);
    letter
        .headers
        .iter_mut()
        .for_each(|(name, _)| *name = name.replace("custom-header", "Custom-Header"));
    letter
}

/// The page on Knative's deliveries shows no whole event, but an address and a response.
pub(super) fn knative() -> DeadLetter {
    let event = r#"{"specversion":"1.0","type":"dev.knative.example","source":"/mycontext","id":"1","data":{"n":1.50}}"#;
    let mut delivery = delivery(event, Input::Auto, "2026-11-20T07:03:00.123Z");
    let body = "Internal Server Error: Failed to process event.\n";
    attempted(&mut delivery, PUBLISHED_MS + 40, Outcome::GenericError, Some(500), body);
    let letter = DeadLetter::without_subscription(
        delivery,
        Reason::MaxDeliveryAttemptsExceeded,
        PUBLISHED_MS + 60,
    );
    let subscriber = "http://myservice.mynamespace.svc.cluster.local:3000/mypath".to_owned();
    let destination = Some(subscriber.clone());
    let addresses = Some(Addresses { failed: subscriber.clone(), subscriber });
    DeadLetter { format: Format::Knative, addresses, destination, ..letter }
}

/// The only dead letter of a blob.
fn only_letter(blob: &str, array: bool) -> String {
    if !array {
        return blob.to_owned();
    }
    let elements: Vec<&RawValue> = serde_json::from_str(blob).expect("an array");
    assert_eq!(elements.len(), 1, "{blob}");
    elements[0].get().to_owned()
}

/// Counts each sample, which the tests here compare; `None` without the documents.
pub(super) fn count_samples(results: &mut Results) -> Option<()> {
    for sample in &SAMPLES {
        shown(sample.page, sample.index)?;
        let differs = sample.other.iter().any(|(name, _)| *name == "deadletterProperties");
        results.count(differs.then_some("whole-properties"));
    }
    Some(())
}

#[test]
fn every_sample_has_its_golden_blob() {
    for Sample { blob: name, letter, .. } in &SAMPLES {
        assert_golden(name, &blob::bytes(&letter(), None));
    }
    assert_golden("knative-documented", &blob::bytes(&knative(), None));
}

#[test]
fn a_blob_has_the_samples_names_in_the_samples_order_and_only_listed_additions() {
    for sample in &SAMPLES {
        let Some(shown) = shown(sample.page, sample.index) else { return };
        let ours = only_letter(
            &String::from_utf8(blob::bytes(&(sample.letter)(), None)).expect("text"),
            sample.array,
        );
        let more = |name: &String| !sample.more.iter().any(|(listed, _)| listed == name);
        let names: Vec<String> = names_in_order(&ours).into_iter().filter(more).collect();
        assert_eq!(names, names_in_order(&shown), "{}", sample.blob);
        let [ours, theirs]: [Value; 2] =
            [&ours, &shown].map(|text| serde_json::from_str(text).expect("JSON"));
        for (name, why) in sample.more.iter().chain(sample.other) {
            assert_ne!(ours[name], theirs[name], "{}: {name} is no deviation: {why}", sample.blob);
        }
        for name in
            names.iter().filter(|name| !sample.other.iter().any(|(listed, _)| listed == name))
        {
            let text = |value: &Value| {
                value.as_str().map(|text| text.get(..23).unwrap_or(text).to_owned())
            };
            let same = ours[name] == theirs[name]
                || (TIMES.contains(&name.as_str()) && text(&ours[name]) == text(&theirs[name]));
            assert!(same, "{}: {name}: {} is not {}", sample.blob, ours[name], theirs[name]);
        }
    }
}

#[test]
fn the_properties_of_a_namespace_dead_letter_start_with_the_samples_and_its_event_has_its_names() {
    for sample in SAMPLES.iter().filter(|sample| sample.page == NAMESPACES) {
        let Some(shown) = shown(sample.page, sample.index) else { return };
        let ours = String::from_utf8(blob::bytes(&(sample.letter)(), None)).expect("text");
        let member = |text: &str, name| {
            Members::parse(text).expect("an object").get(name).map(str::to_owned)
        };
        let [our_properties, properties] =
            [&ours, &shown].map(|text| member(text, "deadletterProperties").expect("properties"));
        assert_eq!(
            names_in_order(&our_properties)[..5],
            names_in_order(&properties),
            "{}",
            sample.blob
        );
        if let (Some(ours), Some(shown)) = (member(&ours, "event"), member(&shown, "event")) {
            assert_eq!(names_in_order(&ours), names_in_order(&shown), "{}", sample.blob);
        }
    }
}

#[test]
fn the_samples_themselves_are_read_as_dead_letters() {
    for sample in &SAMPLES {
        let Some(shown) = shown(sample.page, sample.index) else { return };
        let letter = (sample.letter)();
        let key = blob::key(&letter, "");
        let [theirs, ours]: [StoredDeadLetter; 2] =
            [shown.into_bytes(), blob::bytes(&letter, None)]
                .map(|bytes| stored::read(&key, "", &bytes).expect(sample.blob));
        assert_eq!((theirs.id, theirs.attempts), (ours.id, ours.attempts), "{}", sample.blob);
        assert_eq!(theirs.outcome, ours.outcome, "{}", sample.blob);
        assert_eq!(
            (theirs.event_id, theirs.event_type),
            (ours.event_id, ours.event_type),
            "{}",
            sample.blob
        );
        assert_eq!(theirs.headers, ours.headers, "{}", sample.blob);
        let names =
            |event: &str| names_in_order(event).into_iter().filter(|name| name != "specversion");
        assert!(names(&theirs.event).eq(names(&ours.event)), "{}: {}", sample.blob, theirs.event);
    }
}

/// A dead letter of a page, as JSON: without its comments and its superfluous comma.
fn shown(page: &str, index: usize) -> Option<String> {
    let page = fs::read_to_string(outside("seeds")?.join(page)).expect("a page");
    let lines = page.lines().filter(|line| !line.trim().starts_with("//"));
    let page = lines.collect::<Vec<_>>().join("\n");
    let mut letters = Vec::new();
    let mut rest = page.as_str();
    while let Some(begin) = rest.find("{\n") {
        let length = object_length(&rest[begin..]).unwrap_or(1);
        let object = &rest[begin..begin + length];
        let is_letter =
            object.contains("\"deadLetterReason\"") || object.contains("\"deadletterreason\"");
        letters.extend(is_letter.then(|| object.replace(",\n}", "\n}")));
        rest = &rest[begin + length..];
    }
    Some(letters.into_iter().nth(index).expect("the page shows it"))
}

/// The length of the object at the start of a text.
fn object_length(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

#[test]
fn errors_in_knatives_format_match_its_documentation_exactly() {
    let written = |letter: &DeadLetter| {
        let text = only_letter(&String::from_utf8(blob::bytes(letter, None)).expect("text"), true);
        let added = names_in_order(&text).split_off(5);
        (added, serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    let all = [
        "knativeerrordest",
        "knativeerrorcode",
        "knativeerrordata",
        "errorsubscriberuri",
        "errorreason",
    ];
    let (names, members) = written(&knative());
    assert_eq!(names, [&all[..], &["errorretry", "lastmile"]].concat());
    assert_eq!(
        members["knativeerrordest"],
        "http://myservice.mynamespace.svc.cluster.local:3000/mypath"
    );
    assert_eq!(members["knativeerrorcode"], 500);
    assert_eq!(members["knativeerrordata"], "Internal Server Error: Failed to process event.");
    assert_eq!(
        (&members["errorreason"], &members["errorretry"]),
        (&"MaxDeliveryAttemptsExceeded".into(), &1.into())
    );
    let base64 = DeadLetter { error_data: ErrorData::Base64, ..knative() };
    let encoded = "SW50ZXJuYWwgU2VydmVyIEVycm9yOiBGYWlsZWQgdG8gcHJvY2VzcyBldmVudC4=";
    assert_eq!(written(&base64).1["knativeerrordata"], encoded);
    assert_golden("knative-base64", &blob::bytes(&base64, None));
    let mut empty = knative();
    empty.delivery.last_response = Some(Vec::new());
    assert_eq!(written(&empty).1["knativeerrordata"], "");
    // No response: neither code nor data, although the page says that the code is always there
    // (§10).
    let mut silent = knative();
    attempted(&mut silent.delivery, PUBLISHED_MS + 1_000, Outcome::TimedOut, None, "");
    assert_eq!(
        written(&silent).0,
        ["knativeerrordest", "errorsubscriberuri", "errorreason", "errorretry", "lastmile"]
    );
    assert_golden("knative-no-answer", &blob::bytes(&silent, None));
}
