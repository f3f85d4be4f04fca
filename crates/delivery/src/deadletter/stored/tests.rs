//! Reading blobs that this system writes, and others.

use uuid::Uuid;

use super::*;
use crate::delivery::reason::Reason;
use crate::delivery::replay::{Replay, ReplayEnd, ReplayOutcome};
use crate::delivery::{DeadLetter, DeliveryTarget};

const KEY: &str =
    "dead/shop/or%20ders/%2E%2E/2026/11/20/7/3981ba0c-1072-5698-92be-c1c5991fb55c.json";

fn only_letter(text: &str) -> StoredDeadLetter {
    read(KEY, "dead", text.as_bytes()).expect(text)
}

#[test]
fn a_dead_letter_is_identified_by_its_key_whatever_the_blob_says() {
    let other = "00000000-0000-0000-0000-000000000001";
    let stated = format!(
        r#"{{"event":{{}},"deadletterProperties":{{"deadletterid":"{other}","deadletterreason":"x"}}}}"#
    );
    let guid = Uuid::try_parse("3981ba0c-1072-5698-92be-c1c5991fb55c").unwrap();
    assert_eq!((only_letter(&stated).id, id_of_key(KEY)), (guid, guid));
    // If the name is not a GUID, the id derives from the whole path after the prefix.
    let (copy, other) = ("a/b/c/2026/11/20/7/copy.json", "a/b/d/2026/11/20/7/copy.json");
    let read_id = |key: &str, prefix| read(key, prefix, stated.as_bytes()).unwrap().id;
    for (key, prefix) in [(copy.to_owned(), ""), (format!("p/q/{copy}"), "p/q")] {
        let id = id_of_key(&key);
        assert_eq!((read_id(&key, prefix), id_of_key(copy)), (id, id), "{key}");
    }
    assert_ne!(read_id(copy, ""), read_id(other, ""));
}

#[test]
fn a_blob_with_more_or_fewer_than_one_dead_letter_is_an_error_that_says_so() {
    let letter = r#"{"event":{},"deadletterProperties":{"deadletterreason":"x"}}"#;
    assert_eq!(only_letter(&format!(" [ {letter} ] ")), only_letter(letter));
    for count in [0, 2, 10_001] {
        let several = format!("[{}]", vec![letter; count].join(","));
        let why = read(KEY, "dead", several.as_bytes()).unwrap_err();
        let expected = format!(
            "{KEY}: the blob is an array of {count} elements, but must contain exactly one dead \
             letter"
        );
        assert!(why.starts_with(&expected), "{why}");
    }
}

#[test]
fn a_key_names_subscription_and_guid() {
    let letter =
        only_letter(r#"{"event":{"id":"1"},"deadletterProperties":{"deadletterreason":"x"}}"#);
    assert_eq!(letter.subscription.to_string(), "shop/or ders/..");
    assert_eq!(letter.id.to_string(), "3981ba0c-1072-5698-92be-c1c5991fb55c");
    assert_eq!((letter.key.as_str(), letter.reason.as_str()), (KEY, "x"));
    for (key, prefix) in [(KEY, ""), (KEY, "dea"), (KEY, "other"), ("a/b/c.json", "")] {
        assert!(read(key, prefix, b"{}").is_err(), "{key} {prefix}");
    }
}

#[test]
fn every_spelling_of_the_properties_is_read_nested_flat_and_in_an_array() {
    for name in ["deadletterProperties", "deadLetterProperties", "brokerProperties"] {
        let fields = format!(
            r#""customDeliveryProperties":{{"A-b":"1"}},"{name}":{{"deliveryattempts":3}}"#
        );
        for text in [
            format!(r#"{{"event":{{"id":"1","type":"t","source":"s"}},{fields}}}"#),
            format!(r#"{{"id":"1","type":"t","source":"s",{fields}}}"#),
        ] {
            let letter = only_letter(&text);
            assert_eq!(letter.event, r#"{"id":"1","type":"t","source":"s"}"#);
            let values =
                [&letter.event_id, &letter.event_type, &letter.source].map(|text| text.as_deref());
            assert_eq!(values, [Some("1"), Some("t"), Some("s")]);
            assert_eq!(
                (letter.attempts, letter.headers),
                (3, vec![("A-b".to_owned(), "1".to_owned())])
            );
            assert!(read(KEY, "/dead/", format!("[{text}]").as_bytes()).is_ok(), "{text}");
        }
    }
}

#[test]
fn what_is_no_blob_of_dead_letters_is_an_error() {
    for text in [
        "",
        "x",
        "{",
        "1",
        "{}",
        "[{}]",
        r#"{"event":{}}"#,
        r#"{"event":1,"deadletterProperties":"x"}"#,
    ] {
        assert!(read(KEY, "dead", text.as_bytes()).is_err(), "{text}");
    }
    assert!(read(KEY, "dead", &[0xff]).is_err());
}

#[test]
fn a_history_that_left_out_more_than_a_number_can_hold_is_read() {
    let omitted = r#"{"omitted":4294967295},{"omitted":1}"#;
    let letter = only_letter(&format!(
        r#"{{"event":{{}},"deadletterProperties":{{"history":[{omitted}]}}}}"#
    ));
    assert_eq!(letter.omitted, u32::MAX);
}

fn returned(sink: &str, more: &str) -> StoredDeadLetter {
    only_letter(&format!(
        r#"{{"event":{{"id":"1"}},"deadletterProperties":{{"deadletterreasoncode":"MaxDeliveryAttemptsExceeded",
        "deliveryattempts":2,"destination":"https://a.example.com/",{more}"deliveryattemptutc":"2026-11-20T07:00:00Z"{sink}}}}}"#
    ))
}

#[test]
fn a_dead_letter_is_replayed_to_the_party_that_failed() {
    let (id, now_ms) = (Uuid::from_u128(7), 1_795_158_190_000);
    let again = |letter: &StoredDeadLetter| {
        let delivery = letter.again(id, Replay::new("j", letter.id), now_ms);
        assert_eq!((delivery.id, delivery.attempts, delivery.published_ms), (id, 0, now_ms));
        assert_eq!(delivery.replay, Replay::new("j", letter.id));
        assert_eq!(&**delivery.event.text(), r#"{"id":"1"}"#);
        delivery.target
    };
    let published = returned("", "");
    assert_eq!(published.failure().at, FailedAt::Destination);
    assert_eq!(again(&published), DeliveryTarget::Destination);
    let reply = returned("", r#""leg":"reply","#);
    assert_eq!((reply.failure().at, again(&reply)), (FailedAt::Reply, DeliveryTarget::Reply));
    let malformed = StoredDeadLetter { reason: "MalformedEvent".to_owned(), ..reply };
    assert!(malformed.is_malformed_reply());
    assert_eq!(malformed.failure().at, FailedAt::Destination);

    let sink = r#","sink":{"destination":"https://sink.example.com/","reason":"MaxDeliveryAttemptsExceeded",
        "deliveryattempts":1,"lastresponse":"later","history":[{"at":"2026-11-20T07:00:01Z","outcome":"Busy","status":503,"durationms":1}]}"#;
    let letter = returned(sink, r#""leg":"reply","#);
    let failure = letter.failure();
    assert_eq!(
        (failure.at, failure.destination),
        (FailedAt::Sink, Some("https://sink.example.com/"))
    );
    assert_eq!((failure.status, failure.last_response), (Some(503), Some("later")));
    // The sink receives the dead letter as before, but with a new id.
    let DeliveryTarget::Sink(on_its_way) = again(&letter) else { panic!("to its sink") };
    let DeadLetter { delivery, reason, returned, destination, .. } = *on_its_way;
    assert_eq!((delivery.id, delivery.attempts, delivery.target), (id, 2, DeliveryTarget::Reply));
    assert_eq!((reason.to_string(), destination), (letter.reason.clone(), letter.destination));
    assert_eq!((returned, delivery.replay), (None, None));
}

#[test]
fn a_replay_waits_for_a_moment_that_is_still_ahead_and_else_starts_at_once() {
    // 2026-11-20, 07:03:10 UTC.
    let now_ms = 1_795_158_190_000;
    for (deliver_at, wait_ms) in [
        ("2026-11-20T07:03:00Z", 0),
        ("2026-11-20T08:03:10Z", 3_600_000),
        // This impossible time made the event a dead letter.
        ("tomorrow", 0),
    ] {
        let letter = only_letter(&format!(
            r#"{{"event":{{"specversion":"1.0","id":"1","source":"/s","type":"t","deliverat":"{deliver_at}"}},
            "deadletterProperties":{{"deadletterreasoncode":"Paused","deliveryattempts":0}}}}"#
        ));
        let again = letter.again(Uuid::from_u128(7), None, now_ms);
        assert_eq!((again.published_ms, again.due_ms - now_ms), (now_ms, wait_ms), "{deliver_at}");
    }
}

#[test]
fn a_replay_to_a_sink_that_refuses_again_is_a_new_dead_letter_of_that_replay() {
    let sink =
        r#","sink":{"destination":"https://sink.example.com/","reason":"x","deliveryattempts":1}"#;
    let letter = returned(
        sink,
        r#""replayof":"00000000-0000-0000-0000-000000000001","replayjob":"earlier","#,
    );
    let delivery = letter.again(Uuid::from_u128(7), Replay::new("j", letter.id), 1);
    let delivered = ReplayEnd::of_success(&delivery, 2).unwrap();
    assert_eq!((delivered.outcome, delivered.replay.job()), (ReplayOutcome::Delivered, "j"));
    let dead = DeadLetter::without_subscription(delivery, Reason::MaxDeliveryAttemptsExceeded, 2);
    assert_eq!(dead.returned.as_ref().map(|returned| returned.attempts), Some(0));
    let end = ReplayEnd::of_dead_letter(&dead, None, 2).unwrap();
    assert_eq!(
        (end.outcome, end.replay.job(), end.delivery),
        (ReplayOutcome::DeadAgain, "j", Uuid::from_u128(7))
    );
}
