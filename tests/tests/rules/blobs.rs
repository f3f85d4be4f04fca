//! Blobs as they leave the system, compared byte for byte with the files in `golden/blobs`, and
//! their keys.
//!
//! A golden file changes only on purpose: run with `UPDATE_GOLDEN=1`, then check the diff against
//! the table of dead-letter formats.

use std::fs;
use std::path::PathBuf;

use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, blob, stored};
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Entry, Origin};
use delivery::event::{Event, Input};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::time::duration::{HOUR_MS, MINUTE_MS};

use crate::samples::{self, PUBLISHED_MS, delivery, delivery_of};

/// An event in which every byte matters: order, spaces, escapes, a repeated number, large and exact
/// numbers.
const EXACT: &str = "{ \"type\":\"order.created\" ,\n\t\"specversion\": \"1.0\",\"source\":\"/shop\",\"id\":\"exact-1\",\
    \"time\":\"2026-11-20T07:03:00.1234567+01:00\",\"dataschema\":\"#\",\"comexampleothervalue\":5,\
    \"data\":{\"b\":1.50,\"a\":12345678901234567890123,\"a\":1e400,\"text\":\"gr\\u00fc\\u00dfe, grüße \\/ 🦀\"}}";

/// The event of the documentation's sample, and its two headers.
const DOCUMENTED: &str = r#"{"specversion":"1.0","type":"com.example.someevent","source":"/mycontext","id":"A234-1234-1234","time":"2018-04-05T17:31:00Z","comexampleextension1":"value","comexampleothervalue":5,"datacontenttype":"application/json","data":{}}"#;

fn letter(delivery: Delivery, reason: Reason) -> DeadLetter {
    DeadLetter::without_subscription(delivery, reason, PUBLISHED_MS + HOUR_MS)
}

/// After one attempt with this response, 40 ms after publication.
fn answered(mut delivery: Delivery, outcome: Outcome, status: u16, body: &[u8]) -> Delivery {
    delivery.attempts = 1;
    delivery.history.push(Entry::new(PUBLISHED_MS + 40, outcome, Some(status), 25));
    delivery.last_response = Some(body.to_vec());
    delivery
}

/// A dead letter about a refused delivery that had a destination.
fn refused(body: &[u8]) -> DeadLetter {
    let delivery = answered(delivery(), Outcome::Unauthorized, 401, body);
    let destination = Some("https://billing.example.com/events".to_owned());
    DeadLetter { destination, ..letter(delivery, Reason::UndeliverableDueToHttpUnauthorized) }
}

/// The dead letter of the documentation's sample: three attempts, the last one refused, two
/// headers.
pub(crate) fn documented() -> DeadLetter {
    let mut delivery = delivery_of(DOCUMENTED, Input::CloudEvents);
    let attempts = [
        (Outcome::TimedOut, None),
        (Outcome::SocketError, None),
        (Outcome::Unauthorized, Some(401)),
    ];
    for (minute, (outcome, status)) in (0..).zip(attempts) {
        let at_ms = PUBLISHED_MS + minute * MINUTE_MS;
        delivery.history.push(Entry::new(at_ms, outcome, status, 30_000));
    }
    delivery.attempts = 3;
    delivery.last_response = Some(Vec::new());
    let headers = [("custom-header-1", "value1"), ("custom-header-2", "34")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    DeadLetter { headers, ..letter(delivery, Reason::UndeliverableDueToHttpUnauthorized) }
}

/// After thirty attempts without a response.
fn long() -> DeadLetter {
    let mut delivery = delivery();
    delivery.attempts = 30;
    for minute in 0..30 {
        let at_ms = PUBLISHED_MS + minute * MINUTE_MS;
        delivery.history.push(Entry::new(at_ms, Outcome::TimedOut, None, 30_000));
    }
    letter(delivery, Reason::MaxDeliveryAttemptsExceeded)
}

/// Compares with the golden blob of this name.
#[track_caller]
pub(crate) fn assert_golden(name: &str, bytes: &[u8]) {
    samples::assert_golden(&format!("blobs/{name}.json"), bytes);
}

#[test]
fn dead_letters_are_written_as_in_the_golden_files() {
    let late = |text, input| letter(delivery_of(text, input), Reason::TimeToLiveExceeded);
    let malformed = |text| {
        let letter = letter(delivery_of(text, Input::Opaque), Reason::MalformedEvent);
        letter.with_detail("the member \"a\" stands twice")
    };
    let headers = [("X-Tenant", "acme"), ("x-größe", "7 \"Zoll\"")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let grid = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13.1647262Z","data":{}}"#;
    let cut_within_a_character = [b"gr".as_slice(), &"ü".as_bytes()[..1]].concat();
    for (name, letter) in [
        // Neither outcome nor attempt nor status.
        ("no-attempt", letter(delivery(), Reason::TimeToLiveExceeded)),
        ("one-attempt", refused(b"{\"error\":\"who are you?\"}\n")),
        ("binary-response", refused(&[0xff, 0x00, 0x1f, 0x8b])),
        ("cut-response", refused(&cut_within_a_character)),
        ("empty-response", refused(b"")),
        // It counts the attempts that it leaves out.
        ("long-history", long()),
        ("headers", DeadLetter { headers, ..refused(b"") }),
        ("malformed-text", malformed("{\"id\": \"1\",\n <oops> \u{fffd} \"ü\"")),
        ("malformed-json", malformed("{\"a\":1,\"a\":2}")),
        ("opaque", late("<order id=\"1\">grüße</order>\n", Input::Opaque)),
        ("exact", late(EXACT, Input::CloudEvents)),
        ("event-grid", late(grid, Input::Auto)),
        ("custom", late(r#"{"orderId": 7, "total": 1.10}"#, Input::Custom)),
        ("custom-number", late(" 42 ", Input::Custom)),
    ] {
        assert_golden(name, &blob::bytes(&letter, None));
    }
    let unreached = letter(delivery(), Reason::TimeToLiveExceeded);
    let why = "letters/shop: NoSuchBucket: \"letters\" does not exist";
    assert_golden("sink-error", &blob::bytes(&unreached, Some(why)));
}

#[test]
fn every_golden_blob_is_read_back() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/blobs");
    let mut blobs = 0;
    for file in fs::read_dir(folder).expect("the golden blobs") {
        let path = file.expect("a file").path();
        let key = blob::key(&letter(delivery(), Reason::TimeToLiveExceeded), "");
        let letter =
            stored::read(&key, "", &fs::read(&path).expect("bytes")).expect("a dead letter");
        assert!(letter.reason.parse::<Reason>().is_ok(), "{path:?}");
        blobs += 1;
    }
    assert!(blobs > 0);
}

/// The names of an object's members in order; `serde_json::Value` would sort them.
pub(crate) fn names_in_order(object: &str) -> Vec<String> {
    let members = delivery::event::Members::parse(object).expect("an object");
    members.iter().map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn a_key_is_prefix_names_hour_and_guid() {
    let guid = delivery().id;
    let mut letter = letter(delivery(), Reason::TimeToLiveExceeded);
    for (prefix, expected) in [
        ("", format!("shop/orders/billing/2026/11/20/8/{guid}.json")),
        ("dead", format!("dead/shop/orders/billing/2026/11/20/8/{guid}.json")),
        ("/dead/letters/", format!("dead/letters/shop/orders/billing/2026/11/20/8/{guid}.json")),
    ] {
        assert_eq!(blob::key(&letter, prefix), expected);
    }
    // 2027-01-02T03:04:05Z: month, day and hour without leading zeros; the time is that of the decision.
    letter.decided_ms = 1_798_859_045_000;
    assert_eq!(blob::key(&letter, ""), format!("shop/orders/billing/2027/1/2/3/{guid}.json"));
    letter.delivery.due_ms += HOUR_MS;
    assert_eq!(blob::key(&letter, ""), format!("shop/orders/billing/2027/1/2/3/{guid}.json"));
}

#[test]
fn a_key_is_percent_encoded_and_stays_within_its_folders() {
    let in_key = |name: SubscriptionName| {
        let origin = Origin { message: "m".to_owned(), index: 0 };
        let delivery =
            Delivery::new(Event::recall(&"{}".into(), Input::Auto), name, origin, PUBLISHED_MS);
        let guid = format!("/2026/11/20/8/{}.json", delivery.id);
        blob::key(&letter(delivery, Reason::TopicNotFound), "")
            .strip_suffix(&guid)
            .expect("the hour")
            .to_owned()
    };
    let in_place =
        |text: &str| SubscriptionName { topic: TopicName::nameless(), name: text.to_owned() };
    for (name, key) in [
        ("a b/ö+ü/日本".parse().expect("well formed"), "a%20b/%C3%B6%2B%C3%BC/%E6%97%A5%E6%9C%AC"),
        ("a/b/..".parse().expect("well formed"), "a/b/%2E%2E"),
        ("a/./b".parse().expect("well formed"), "a/%2E/b"),
        ("A-1/b_2/c.3".parse().expect("well formed"), "A-1/b_2/c.3"),
        ("a%2Fb/c:d/e\\f".parse().expect("well formed"), "a%252Fb/c%3Ad/e%5Cf"),
        (in_place(MALFORMED), "_/_/_malformed"),
        (
            SubscriptionName {
                topic: "shop/orders".parse().expect("well formed"),
                name: MALFORMED.to_owned(),
            },
            "shop/orders/_malformed",
        ),
        (
            SubscriptionName {
                topic: "shop/gone".parse().expect("well formed"),
                name: UNKNOWN_TOPIC.to_owned(),
            },
            "shop/gone/_unknown",
        ),
    ] {
        assert_eq!(in_key(name), key);
    }
}
