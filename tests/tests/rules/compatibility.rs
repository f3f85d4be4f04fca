//! Two versions of the functions side by side: each reads the messages of the other.
//!
//! The frozen reader in `tests/compatibility/v1` stands for the older version, and the fixtures in
//! `crates/delivery/fixtures/wire/v1` are its messages. The wire format is version 1 as long as
//! these tests pass.

use std::fs;
use std::path::Path;

use delivery::deadletter::{blob, stored};
use delivery::delivery::DeadLetter;
use delivery::event::{Event, Input};
use delivery::subscription::dead_letter_format::Format;
use delivery::wire::{
    WireError, read_dead_letter, read_delivery, read_publication, write_dead_letter,
    write_delivery, write_publication,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::arbitrary;
use crate::samples::EVENT;

/// The fixtures of version 1: the name of the attribute, and its text.
fn fixtures() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/delivery/fixtures/wire/v1");
    let read = |file: fs::DirEntry| {
        let name = file.file_name().into_string().expect("a plain name");
        let (attribute, _) = name.split_once('-').expect("it begins with the attribute's name");
        let text = fs::read_to_string(file.path()).expect("a fixture is text");
        (attribute.to_owned(), text.trim_end().to_owned())
    };
    let files = fs::read_dir(folder).expect("there are fixtures");
    files.map(|file| read(file.expect("a file"))).collect()
}

/// An attribute, read and written again by the code of today.
fn rewritten(name: &str, attribute: &str) -> Result<String, WireError> {
    match name {
        "publication" => {
            read_publication(attribute).map(|publication| write_publication(&publication))
        }
        "delivery" => {
            let event = Event::recall(&EVENT.into(), Input::Auto);
            read_delivery(attribute, event).map(|delivery| write_delivery(&delivery))
        }
        "deadletter" => {
            read_dead_letter(attribute, &EVENT.into()).map(|letter| write_dead_letter(&letter))
        }
        other => panic!("{other}"),
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("an attribute is JSON")
}

/// True if `whole` contains all of `part`. It may have further members.
fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|whole| is_within(value, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(a, b)| is_within(a, b))
        }
        (part, whole) => part == whole,
    }
}

fn assert_version_1_reads(name: &str, attribute: &str) -> Result<(), TestCaseError> {
    match wire_v1::read(attribute, name) {
        Ok(read) => prop_assert!(is_within(&read, &json(attribute)), "{} {}", read, attribute),
        Err(why) => return Err(TestCaseError::fail(format!("{why}: {attribute}"))),
    }
    Ok(())
}

#[test]
fn fixtures_of_version_1_stay_readable() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 25, "{}", fixtures.len());
    for (name, text) in fixtures {
        let frozen = wire_v1::read(&text, &name).unwrap_or_else(|why| panic!("{why}: {text}"));
        let today = rewritten(&name, &text).unwrap_or_else(|why| panic!("{why}: {text}"));
        // Version 1 does not return its version number, so its reading is only a part of the text.
        assert!(is_within(&frozen, &json(&text)), "{frozen} {text}");
        assert_eq!(json(&today), json(&text));
    }
}

/// A part that is taken for the whole record would be delivered under wrong ids.
#[test]
fn version_1_knows_which_part_of_a_record_a_message_is() {
    let parts = fixtures().into_iter().filter(|(_, text)| text.contains(r#""part":"#));
    for (name, text) in parts {
        let frozen = wire_v1::read(&text, &name).unwrap_or_else(|why| panic!("{why}: {text}"));
        assert_eq!(frozen["part"], json(&text)["part"]);
    }
}

#[test]
fn a_word_of_another_version_is_kept_by_each_reader() {
    for (from, to) in [
        (r#""outcome":"Busy""#, r#""outcome":"Overloaded""#),
        (r#""outcome":"Busy""#, r#""outcome":"Busy","region":{"of":["eu"]}"#),
        (r#""reason":"TimeToLiveExceeded""#, r#""reason":"Superseded""#),
        (r#""reason":"MalformedEvent""#, r#""reason":"Out_of-Range2""#),
        (r#""company":"alone""#, r#""company":"in_pairs""#),
    ] {
        let changed = |(name, text): (String, String)| {
            text.contains(from).then(|| (name, text.replace(from, to)))
        };
        let newer: Vec<_> = fixtures().into_iter().filter_map(changed).collect();
        assert!(!newer.is_empty(), "{from}");
        for (name, text) in newer {
            let frozen = wire_v1::read(&text, &name).unwrap_or_else(|why| panic!("{why}: {text}"));
            assert!(frozen.to_string().contains(to.rsplit(',').next().expect("text")), "{frozen}");
            let today = rewritten(&name, &text).unwrap_or_else(|why| panic!("{why}: {text}"));
            assert_eq!(json(&today), json(&text));
        }
    }
}

#[test]
fn a_word_of_a_newer_version_is_in_the_dead_letter_of_every_format() {
    let newer =
        |(name, text): &(String, String)| name == "deadletter" && text.contains("Superseded");
    let (_, text) = fixtures().into_iter().find(newer).expect("there is one");
    for format in Format::ALL {
        let letter = read_dead_letter(&text, &EVENT.into()).expect("version 1");
        let blob = blob::bytes(&DeadLetter { format, ..letter }, None);
        // Each format has the reason itself, and its code among our own fields.
        let written = String::from_utf8_lossy(&blob).matches("Superseded").count();
        assert_eq!(written, 2, "{format:?}");
        let key = "shop/orders/billing/2026/11/20/7/3981ba0c-1072-5698-92be-c1c5991fb55c.json";
        let stored = stored::read(key, "", &blob).expect("our own");
        assert_eq!(stored.reason, "Superseded", "{format:?}");
        assert_eq!(stored.outcome.as_deref(), Some("Overloaded"), "{format:?}");
        let outcomes: Vec<&str> =
            stored.history.iter().map(|attempt| attempt.outcome.as_str()).collect();
        assert_eq!(outcomes, ["Busy", "Overloaded"], "{format:?}");
    }
}

#[test]
fn a_word_that_says_what_has_to_be_done_is_read_by_neither() {
    for (from, to) in [
        (r#""v":1"#, r#""v":2"#),
        (r#""leg":"reply""#, r#""leg":"copy""#),
        (r#""leg":"sink""#, r#""leg":"copy""#),
        (r#""format":"custom""#, r#""format":"avro""#),
        (r#""layout":"flat""#, r#""layout":"round""#),
        (r#""error_data":"base64""#, r#""error_data":"gzip""#),
        (r#""published_ms":"#, r#""shape":"avro","published_ms":"#),
        (r#""last":{"response":"#, r#""last":{"response_gzip":"#),
        (r#""outcome":"Busy""#, r#""outcome":"not a word""#),
        (r#""reason":"MalformedEvent""#, r#""reason":"""#),
    ] {
        let fixtures = fixtures().into_iter();
        let newer = fixtures.filter(|(name, text)| name != "publication" && text.contains(from));
        let newer: Vec<_> = newer.map(|(name, text)| (name, text.replace(from, to))).collect();
        assert!(!newer.is_empty(), "{from}");
        for (name, text) in newer {
            assert!(wire_v1::read(&text, &name).is_err(), "{text}");
            assert!(rewritten(&name, &text).is_err(), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_today_is_read_by_version_1(
        delivery in arbitrary::delivery(),
        of_sink in arbitrary::sink_delivery(),
        letter in arbitrary::letter(),
    ) {
        assert_version_1_reads("delivery", &write_delivery(&delivery))?;
        assert_version_1_reads("delivery", &write_delivery(&of_sink))?;
        assert_version_1_reads("deadletter", &write_dead_letter(&letter))?;
    }
}
