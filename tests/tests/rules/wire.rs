//! The message attributes beside an event. Version 1 is read for ever: its examples are in
//! `crates/delivery/fixtures/wire/v1`. Fixtures are added, never changed.

use std::fs;
use std::path::PathBuf;

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::{
    Addresses, Batching, DeadLetter, Delivery, DeliveryTarget, Entry, HISTORY_FIRST, HISTORY_LAST,
    Hold, Onward, Origin, Part, Publication, RESPONSE_KEPT_BYTES, Returned, Store, WaitReason,
    Word,
};
use delivery::event::mapping::Mapped;
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Message, MessageGroup};
use delivery::subscription::dead_letter_format::{ErrorData, Format, Layout};
use delivery::subscription::name::{NAME_MAX_BYTES, NameRange};
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use delivery::wire::{
    ATTRIBUTE_MAX_BYTES, WireError, read_dead_letter, read_delivery, read_hold, read_publication,
    write_dead_letter, write_delivery, write_publication,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::arbitrary;
use crate::samples::{PUBLISHED_MS, delivery};

/// A delivery after one response with status 503.
fn retried() -> Delivery {
    let mut delivery = delivery();
    delivery.attempts = 1;
    delivery.due_ms = PUBLISHED_MS + 30_100;
    delivery.history.push(Entry::new(PUBLISHED_MS + 40, Outcome::Busy, Some(503), 60));
    delivery.last_response = Some(b"{\"error\":\"busy\"}\n".to_vec());
    delivery
}

/// A delivery after thirty attempts. Its history keeps only the first and the last ones.
fn long() -> Delivery {
    let mut delivery = delivery();
    delivery.attempts = 30;
    delivery.due_ms = PUBLISHED_MS + 30 * MINUTE_MS;
    for minute in 0..30 {
        delivery.history.push(Entry::new(
            PUBLISHED_MS + minute * MINUTE_MS,
            Outcome::TimedOut,
            None,
            30_000,
        ));
    }
    delivery
}

/// A delivery with names and a response outside ASCII and outside the basic multilingual plane.
fn outside_ascii() -> Delivery {
    let origin = Origin { message: "m".to_owned(), index: 3 };
    let event = delivery().event;
    let new =
        Delivery::new(event, "größe/日本/🦀".parse().expect("well formed"), origin, PUBLISHED_MS);
    Delivery { last_response: Some("nicht möglich 🦀\u{7f}\u{1}".into()), ..new }
}

/// A delivery of a reply to the reply address, far along a chain, in a trace.
fn reply() -> Delivery {
    let traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
    Delivery { target: DeliveryTarget::Reply, hops: 9, traceparent, ..retried() }
}

/// A delivery whose retry alone failed. It is never batched again.
fn after_retry_alone() -> Delivery {
    let mut delivery = Delivery { attempts: 2, batching: Batching::Disabled.into(), ..retried() };
    delivery.history.push(Entry::new(PUBLISHED_MS + 30_100, Outcome::Busy, Some(503), 60));
    delivery
}

/// A delivery that probation postponed before its first attempt.
fn postponed() -> Delivery {
    let mut delivery = delivery();
    delivery.wait(WaitReason::Probation, PUBLISHED_MS + 40, PUBLISHED_MS + 10_000);
    delivery
}

/// A delivery that waits for an hour before its first attempt.
fn scheduled() -> Delivery {
    let mut delivery = delivery().delayed(HOUR_MS);
    delivery.wait(WaitReason::Scheduled, PUBLISHED_MS + 40, PUBLISHED_MS + HOUR_MS);
    delivery
}

/// A dead letter with only the required fields.
fn minimal_letter() -> DeadLetter {
    DeadLetter::without_subscription(delivery(), Reason::MalformedEvent, PUBLISHED_MS + 5)
}

/// A dead letter with all fields.
fn full_letter() -> DeadLetter {
    DeadLetter {
        detail: Some("größer als erlaubt".to_owned()),
        not_before_ms: PUBLISHED_MS + 100 + 5 * MINUTE_MS,
        store: Store::Container("letters/shop/2026".parse().expect("well formed")),
        keep_trying_for_ms: 4 * HOUR_MS,
        headers: vec![
            ("X-Tenant".to_owned(), "acme".to_owned()),
            ("x-größe".to_owned(), "7".to_owned()),
        ],
        destination: Some("https://billing.example.com/events".to_owned()),
        ..DeadLetter::without_subscription(retried(), Reason::of_status(418), PUBLISHED_MS + 100)
    }
}

/// A delivery that sends a dead letter to its sink.
fn sink_delivery() -> Delivery {
    Delivery { target: DeliveryTarget::Sink(Box::new(minimal_letter())), ..retried() }
}

/// A delivery that was held three times since its last attempt, because its subscription was not
/// known.
fn held() -> Delivery {
    Delivery {
        hold: Hold { count: 3, until_ms: PUBLISHED_MS + HOUR_MS, ..Hold::default() },
        ..retried()
    }
}

/// A delivery with everything that a newer version may write and this version does not know.
fn newer() -> Delivery {
    let mut newer = Delivery { batching: other("in_pairs"), ..retried() };
    let more = [("bytes".to_owned(), json!(7)), ("region".to_owned(), json!({"of": ["eu"]}))];
    let known = Entry::new(PUBLISHED_MS + 30_100, Outcome::Busy, Some(503), 60);
    newer.history.push(Entry { outcome: other("Overloaded"), more: more.into(), ..known });
    newer
}

/// A word that this version does not know.
fn other<T>(word: &str) -> Word<T> {
    Word::Other(word.into())
}

/// A dead letter with everything that a newer version may write and this version does not know.
fn newer_letter() -> DeadLetter {
    let returned = returned_letter().returned.expect("it was returned");
    let returned = Some(Returned { reason: other("Unreachable"), ..returned });
    DeadLetter { delivery: newer(), reason: other("Superseded"), returned, ..minimal_letter() }
}

/// A record that waits before it is read, with only the required fields.
fn minimal_publication() -> Publication {
    Publication {
        message: "059f36b4-87a3-44ab-83d2-661975830a7d".to_owned(),
        published_ms: PUBLISHED_MS,
        topic: None,
        group: None,
        traceparent: None,
        hold: Hold::default(),
        part: None,
        onward: None,
    }
}

/// Some elements of a record, for some subscriptions.
fn part_of_a_publication() -> Publication {
    let names = NameRange { from: "billing".to_owned(), before: Some("größe".to_owned()) };
    let part = Part { first: 5_200, input: Input::CloudEvents, names };
    Publication { part: Some(part), ..full_publication() }
}

/// A publication with all fields of a whole record.
fn full_publication() -> Publication {
    Publication {
        topic: Some("shop/größe".to_owned()),
        group: Some("tenant-7".to_owned()),
        traceparent: reply().traceparent,
        hold: held().hold,
        ..minimal_publication()
    }
}

/// Each fixture with the value that is read from it. A fixture keeps its name of version 1.
fn publications() -> [(&'static str, Publication); 5] {
    let all = Part { first: 0, input: Input::Auto, names: NameRange::default() };
    let elements = Publication { part: Some(all), ..minimal_publication() };
    let onward = Onward {
        hops: 2,
        replies_left: 63,
        via: vec!["shop/größe".parse().expect("a topic")],
        is_dead_letter: true,
    };
    let goes_on = Publication { onward: Some(onward), ..elements.clone() };
    [
        ("publication-bare", minimal_publication()),
        ("publication-full", full_publication()),
        ("publication-part", part_of_a_publication()),
        ("publication-elements", elements),
        ("publication-that-goes-on", goes_on),
    ]
}

fn deliveries() -> [(&'static str, Delivery); 15] {
    let via = ["shop/orders", "shop/größe"].map(|topic| topic.parse().expect("well formed")).into();
    let binary = Some(vec![0xff, 0x00, 0x1f, 0x8b]);
    [
        ("delivery-of-a-newer-version", newer()),
        ("delivery-of-a-letter", sink_delivery()),
        ("delivery-of-a-letter-by-topics", Delivery { via, ..retried() }),
        ("delivery-before-its-first-attempt", delivery()),
        ("delivery-after-an-answer", retried()),
        ("delivery-after-a-binary-answer", Delivery { last_response: binary, ..retried() }),
        ("delivery-with-a-long-history", long()),
        ("delivery-outside-ascii", outside_ascii()),
        ("delivery-of-a-reply", reply()),
        (
            "delivery-owed-an-attempt-alone",
            Delivery { batching: Batching::RetryAlone.into(), ..retried() },
        ),
        ("delivery-that-stays-alone", after_retry_alone()),
        ("delivery-that-was-put-off", postponed()),
        ("delivery-that-starts-later", scheduled()),
        ("delivery-that-was-held", held()),
        ("delivery-that-was-abandoned", Delivery { abandoned: true, ..delivery() }),
    ]
}

/// A dead letter in the format of Knative.
fn letter_of_knative() -> DeadLetter {
    let addresses = Addresses {
        subscriber: "https://billing.example.com/events?größe=7".to_owned(),
        failed: "https://replies.example.com/".to_owned(),
    };
    let addresses = Some(addresses);
    DeadLetter {
        format: Format::Knative,
        error_data: ErrorData::Base64,
        addresses,
        ..full_letter()
    }
}

/// All mapped properties of a custom event.
fn mapped() -> Mapped {
    Mapped {
        id: "7".to_owned(),
        topic: "shop/orders".to_owned(),
        event_time: "2026-11-20T07:03:00.1230000Z".to_owned(),
        event_type: Some("order.created".to_owned()),
        subject: Some("größe".to_owned()),
        data_version: Some("2".to_owned()),
    }
}

/// A dead letter returned from its sink, after the time to live of the sink delivery.
fn returned_letter() -> DeadLetter {
    let Delivery { attempts, history, last_response, .. } = retried();
    let address = Some("https://sink.example.com/?größe=7".to_owned());
    let (reason, detail) = (Reason::TimeToLiveExceeded.into(), Some("größer".to_owned()));
    let returned = Some(Returned { address, reason, detail, attempts, history, last_response });
    DeadLetter { returned, ..minimal_letter() }
}

fn letters() -> [(&'static str, DeadLetter); 12] {
    let queue = "sqs.eu-west-1.amazonaws.com/123456789012/lost".parse().expect("well formed");
    let Delivery { target, traceparent, .. } = reply();
    let ended = Delivery { target, hops: 11, traceparent, ..delivery() };
    let unmapped = Mapped { event_type: None, subject: None, data_version: None, ..mapped() };
    let unmapped = Some(unmapped);
    [
        ("deadletter-of-a-newer-version", newer_letter()),
        ("deadletter-for-a-queue", DeadLetter { store: Store::Queue(queue), ..minimal_letter() }),
        ("deadletter-returned", returned_letter()),
        (
            "deadletter-that-no-topic-takes",
            minimal_letter().store_in_default("no subscription of topic shop/größe takes it"),
        ),
        ("deadletter-knative", letter_of_knative()),
        (
            "deadletter-custom",
            DeadLetter { format: Format::Custom, mapped: Some(mapped()), ..full_letter() },
        ),
        (
            "deadletter-eventgrid-unmapped",
            DeadLetter { format: Format::EventGrid, mapped: unmapped, ..minimal_letter() },
        ),
        ("deadletter-flat", DeadLetter { layout: Layout::Flat, ..minimal_letter() }),
        ("deadletter-cloudevents", DeadLetter { format: Format::CloudEvents, ..minimal_letter() }),
        ("deadletter-bare", minimal_letter()),
        ("deadletter-full", full_letter()),
        (
            "deadletter-of-a-reply",
            DeadLetter::without_subscription(ended, Reason::ReplyLoop, PUBLISHED_MS + 5),
        ),
    ]
}

fn fixture(name: &str) -> String {
    let file = format!("../crates/delivery/fixtures/wire/v1/{name}.json");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.trim_end().to_owned()
}

#[test]
fn a_hold_is_read_without_the_rest() {
    for (text, hold) in [
        (write_publication(&full_publication()), full_publication().hold),
        (write_delivery(&held()), held().hold),
        (write_delivery(&retried()), Hold::default()),
        (write_dead_letter(&full_letter()), Hold::default()),
        ("express".to_owned(), Hold::default()),
    ] {
        assert_eq!(read_hold(&text), hold, "{text}");
    }
}

#[test]
fn a_received_event_has_the_schema_of_its_publication_whatever_its_text_looks_like() {
    let text = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
    let shape = |delivery: &Delivery| delivery.event.shape();
    for input in [Input::Auto, Input::CloudEvents, Input::Custom, Input::Opaque] {
        let sent = Delivery { event: Event::recall(&text.into(), input), ..delivery() };
        let received = Event::recall(&text.into(), Input::Auto);
        let read = read_delivery(&write_delivery(&sent), received).expect("a valid attribute");
        assert_eq!(shape(&read), shape(&sent), "{input:?}");
    }
}

#[test]
fn each_fixture_of_version_1_is_read_and_written_back_to_the_same_text() {
    for (name, publication) in publications() {
        let text = fixture(name);
        assert_eq!(write_publication(&publication), text, "{name}");
        assert_eq!(read_publication(&text).expect(name), publication, "{name}");
    }
    for (name, delivery) in deliveries() {
        let text = fixture(name);
        assert_eq!(write_delivery(&delivery), text, "{name}");
        assert_eq!(read_delivery(&text, delivery.event.clone()).expect(name), delivery, "{name}");
    }
    for (name, letter) in letters() {
        let (text, event) = (fixture(name), letter.delivery.event.text());
        assert_eq!(write_dead_letter(&letter), text, "{name}");
        assert_eq!(read_dead_letter(&text, event).expect(name), letter, "{name}");
    }
}

#[test]
fn every_fixture_is_used_by_the_tests() {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates/delivery/fixtures/wire/v1");
    let files =
        fs::read_dir(folder).expect("the fixtures").map(|file| file.expect("a file").file_name());
    let mut found: Vec<String> =
        files.map(|name| name.into_string().expect("a plain name")).collect();
    found.sort();
    let names = deliveries().map(|(name, _)| name).into_iter();
    let names = names.chain(letters().map(|(name, _)| name));
    let names = names.chain(publications().map(|(name, _)| name));
    let mut known: Vec<String> = names.map(|name| format!("{name}.json")).collect();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn a_newer_version_is_an_error_of_its_own_so_that_the_message_waits_for_newer_code() {
    for (text, version) in [(r#"{"v":2}"#, 2), (r#"{"v":2,"id":7}"#, 2), (r#"{"v":0}"#, 0)] {
        let of_delivery = read_delivery(text, delivery().event);
        assert!(matches!(of_delivery, Err(WireError::UnknownVersion(v)) if v == version), "{text}");
        let of_letter = read_dead_letter(text, delivery().event.text());
        assert!(matches!(of_letter, Err(WireError::UnknownVersion(v)) if v == version), "{text}");
    }
}

#[test]
fn an_attribute_in_another_format_is_an_error() {
    for text in [
        "",
        "x",
        "{}",
        "[]",
        "null",
        "1",
        r#"{"v":1}"#,
        r#"{"v":"1"}"#,
        r#"{"v":-1}"#,
        r#"{"v":1.0}"#,
    ] {
        assert!(
            matches!(read_delivery(text, delivery().event), Err(WireError::Unreadable(_))),
            "{text}"
        );
        assert!(
            matches!(
                read_dead_letter(text, delivery().event.text()),
                Err(WireError::Unreadable(_))
            ),
            "{text}"
        );
    }
    let letter = fixture("deadletter-full");
    for end in 0..letter.len() {
        assert!(
            matches!(
                read_dead_letter(&letter[..end], delivery().event.text()),
                Err(WireError::Unreadable(_))
            ),
            "{end}"
        );
    }
    assert!(
        read_dead_letter(&fixture("delivery-after-an-answer"), delivery().event.text()).is_err(),
        "a dead letter has a reason"
    );
}

#[test]
fn a_value_that_no_version_writes_is_an_error() {
    let good = fixture("deadletter-full");
    for (right, invalid) in [
        (r#""status":503"#, r#""status":"503""#),
        (r#""status":503"#, r#""status":65536"#),
        (r#""subscription":"shop/orders/billing""#, r#""subscription":"shop/orders""#),
        (r#""container":"letters/shop/2026""#, r#""container":"/shop""#),
        (r#""last":{"response":"#, r#""last":{"response_base64":"#),
        (r#""attempts":1"#, r#""attempts":-1"#),
        (r#""id":"#, r#""id":"x","was":"#),
        (r#""layout":"nested""#, r#""layout":"nested","mapped":{"id":"1"}"#),
        (r#""layout":"nested""#, r#""layout":"nested","addresses":{"failed":"x"}"#),
    ] {
        let bad = good.replacen(right, invalid, 1);
        assert_ne!(bad, good, "{right}");
        assert!(
            matches!(
                read_dead_letter(&bad, delivery().event.text()),
                Err(WireError::Unreadable(_))
            ),
            "{bad}"
        );
    }
}

#[test]
fn an_error_names_the_format_that_was_expected() {
    for (name, part, expected) in [
        ("deadletter-full", "origin", "OriginV1"),
        ("deadletter-custom", "mapped", "MappedV1"),
        ("deadletter-knative", "addresses", "AddressesV1"),
    ] {
        let mut wire: Value = serde_json::from_str(&fixture(name)).expect("a fixture is JSON");
        wire[part] = json!(1);
        let read = read_dead_letter(&wire.to_string(), delivery().event.text());
        let error = read.expect_err("a number is not an object").to_string();
        assert!(error.contains(&format!("expected struct {expected} at")), "{error}");
    }
}

#[test]
fn an_unknown_field_is_ignored() {
    let text = fixture("delivery-after-an-answer").replacen(
        r#""attempts""#,
        r#""later":[{"a":1}],"attempts""#,
        1,
    );
    assert_eq!(read_delivery(&text, delivery().event).expect("version 1"), retried());
}

#[test]
fn an_unknown_delivery_target_is_an_error() {
    for (name, right, invalid) in [
        ("delivery-of-a-reply", r#""hops":9"#, r#""hops":-1"#),
        ("delivery-of-a-letter", r#""leg":"sink""#, r#""leg":"reply""#),
        ("delivery-of-a-letter", r#""leg":"sink","#, ""),
        ("delivery-of-a-reply", r#""leg":"reply""#, r#""leg":"sink""#),
        ("delivery-of-a-letter-by-topics", "shop/orders", "shop"),
        ("delivery-owed-an-attempt-alone", r#""company":"owed_alone""#, r#""company":"we come""#),
    ] {
        let bad = fixture(name).replacen(right, invalid, 1);
        assert_ne!(bad, fixture(name), "{right}");
        assert!(
            matches!(read_delivery(&bad, delivery().event), Err(WireError::Unreadable(_))),
            "{bad}"
        );
    }
}

/// A delivery with the longest value in every field that does not depend on its subscription.
fn longest() -> Delivery {
    let part = "x".repeat(NAME_MAX_BYTES);
    let origin = Origin { message: "m".repeat(100), index: u32::MAX };
    let new = Delivery::new(
        delivery().event,
        [part.as_str(); 3].join("/").parse().expect("well formed"),
        origin,
        u64::MAX,
    );
    let mut delivery = Delivery {
        attempts: u32::MAX,
        due_ms: u64::MAX,
        target: DeliveryTarget::Reply,
        hops: u32::MAX,
        batching: Batching::RetryAlone.into(),
        traceparent: reply().traceparent,
        ..new
    };
    for _ in 0..HISTORY_FIRST + HISTORY_LAST + 1_000 {
        delivery.history.push(Entry::new(
            u64::MAX,
            Outcome::ResolutionError,
            Some(u16::MAX),
            u64::MAX,
        ));
    }
    // Control characters are sent in base64, so no byte needs more room than its base64 form.
    delivery.last_response = Some(vec![1; RESPONSE_KEPT_BYTES]);
    delivery.last_detail = Some("d".repeat(500));
    let headers = (0..32).map(|number| (format!("x-{number:0>20}"), "v".repeat(100)));
    delivery.last_headers = headers.collect();
    delivery
}

#[test]
fn the_longest_history_and_response_leave_room_for_the_rest_of_a_dead_letter() {
    let attribute = write_delivery(&longest());
    assert!(attribute.len() <= ATTRIBUTE_MAX_BYTES * 9 / 10, "{}", attribute.len());
    let reason = Reason::UndeliverableDueToHttpUnsupportedMediaType;
    let letter = DeadLetter { delivery: longest(), reason: reason.into(), ..full_letter() };
    let bytes = write_dead_letter(&letter).len();
    assert!(bytes <= ATTRIBUTE_MAX_BYTES, "{bytes}");
}

#[test]
fn counts_travel_in_attributes_of_their_own_and_only_if_there_is_something_to_count() {
    let subscription = delivery().subscription;
    let message = |receives, unread| Message {
        body: "{}".into(),
        topic: None,
        attribute: Attribute::Delivery("{}".to_owned()),
        group: MessageGroup::Subscription(subscription.clone()),
        receives,
        unread,
        wait_ms: 0,
    };
    for (receives, unread, expected) in [
        (0, 0, vec![("delivery", "{}")]),
        (3, 0, vec![("delivery", "{}"), ("receives", "3")]),
        (0, 2, vec![("delivery", "{}"), ("unread", "2")]),
    ] {
        let message = message(receives, unread);
        let attributes = message.attributes();
        let attributes: Vec<_> = attributes.iter().map(|(name, text)| (*name, &**text)).collect();
        assert_eq!(attributes, expected);
    }
}

#[test]
fn a_message_that_is_too_long_in_its_attribute_or_in_total_does_not_fit() {
    let message = |body: String, attribute: String| {
        let subscription = delivery().subscription;
        let topic = Some(subscription.topic.clone());
        Message {
            body: body.into(),
            topic,
            attribute: Attribute::DeadLetter(attribute),
            group: MessageGroup::Subscription(subscription),
            receives: 0,
            unread: 0,
            wait_ms: 0,
        }
    };
    let attributes = "topicStringshop/ordersdeadletterString".len();
    let whole = 1_048_576 - attributes;
    for (body_bytes, attribute_bytes, fits) in [
        (1, 16_384, true),
        (1, 16_385, false),
        (whole - 100, 100, true),
        (whole - 99, 100, false),
        (whole - 100, 101, false),
    ] {
        let message = message("x".repeat(body_bytes), "y".repeat(attribute_bytes));
        assert_eq!(message.fits(), fits, "{body_bytes} + {attribute_bytes}");
    }
    let headers = vec![("x-large".to_owned(), "z".repeat(ATTRIBUTE_MAX_BYTES))];
    let letter = write_dead_letter(&DeadLetter { headers, ..full_letter() });
    assert!(!message("{}".to_owned(), letter).fits());
}

proptest! {
    #[test]
    fn any_delivery_is_read_back_as_written(delivery in arbitrary::delivery()) {
        let text = write_delivery(&delivery);
        prop_assert!(text.is_ascii());
        prop_assert!(text.len() <= ATTRIBUTE_MAX_BYTES);
        prop_assert_eq!(read_delivery(&text, delivery.event.clone()).expect("our own"), delivery);
    }

    #[test]
    fn any_sink_delivery_is_read_back_as_written(delivery in arbitrary::sink_delivery()) {
        let text = write_delivery(&delivery);
        prop_assert_eq!(read_delivery(&text, delivery.event.clone()).expect("ours"), delivery);
    }

    #[test]
    fn any_dead_letter_is_read_back_as_written(letter in arbitrary::letter()) {
        let text = write_dead_letter(&letter);
        prop_assert!(text.is_ascii());
        prop_assert_eq!(read_dead_letter(&text, letter.delivery.event.text()).expect("our own"), letter);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        prop_assert!(read_delivery(&text, delivery().event).is_err());
        prop_assert!(read_dead_letter(&text, delivery().event.text()).is_err());
        prop_assert!(read_publication(&text).is_err());
        prop_assert_eq!(read_hold(&text), Hold::default());
    }
}
