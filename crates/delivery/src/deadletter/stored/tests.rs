//! What is read of blobs that are written here, and of those that are not.

use super::*;

const KEY: &str =
    "dead/shop/or%20ders/%2E%2E/2026/11/20/7/3981ba0c-1072-5698-92be-c1c5991fb55c.json";

fn one(text: &str) -> StoredDeadLetter {
    let mut letters = read(KEY, "dead", text.as_bytes()).expect(text);
    assert_eq!(letters.len(), 1, "{text}");
    letters.remove(0)
}

#[test]
fn a_key_names_subscription_and_guid() {
    let letter = one(r#"{"event":{"id":"1"},"deadletterProperties":{"deadletterreason":"x"}}"#);
    assert_eq!(letter.subscription.to_string(), "shop/or ders/..");
    assert_eq!(letter.id.to_string(), "3981ba0c-1072-5698-92be-c1c5991fb55c");
    assert_eq!((letter.key.as_str(), letter.reason.as_str()), (KEY, "x"));
    for (key, prefix) in [(KEY, ""), (KEY, "dea"), (KEY, "other"), ("a/b/c.json", "")] {
        assert!(read(key, prefix, b"{}").is_err(), "{key} {prefix}");
    }
}

#[test]
fn every_spelling_of_the_properties_is_read_nested_flat_and_in_arrays() {
    for name in ["deadletterProperties", "deadLetterProperties", "brokerProperties"] {
        let fields = format!(
            r#""customDeliveryProperties":{{"A-b":"1"}},"{name}":{{"deliveryattempts":3}}"#
        );
        for text in [
            format!(r#"{{"event":{{"id":"1","type":"t","source":"s"}},{fields}}}"#),
            format!(r#"{{"id":"1","type":"t","source":"s",{fields}}}"#),
        ] {
            let letter = one(&text);
            assert_eq!(letter.event, r#"{"id":"1","type":"t","source":"s"}"#);
            let values =
                [&letter.event_id, &letter.event_type, &letter.source].map(|text| text.as_deref());
            assert_eq!(values, [Some("1"), Some("t"), Some("s")]);
            assert_eq!(
                (letter.attempts, letter.headers),
                (3, vec![("A-b".to_owned(), "1".to_owned())])
            );
            let several = read(KEY, "/dead/", format!("[{text},{text}]").as_bytes()).unwrap();
            assert_eq!(several.len(), 2);
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
    let letter =
        one(&format!(r#"{{"event":{{}},"deadletterProperties":{{"history":[{omitted}]}}}}"#));
    assert_eq!(letter.omitted, u32::MAX);
}
