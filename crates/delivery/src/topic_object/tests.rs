//! Objects that cannot be read, or of which one entry cannot. What is written is read back:
//! `tests/tests/rules/canonical.rs`.

use super::*;
use crate::subscription::name::TopicName;
use crate::subscription::secret_policy::SecretPolicy;

fn topic() -> TopicName {
    "shop/orders".parse().expect("a topic")
}

fn object(text: &str) -> Result<TopicObject<'_>, ObjectError> {
    match Content::parse(text.as_bytes())? {
        Content::Topic(object) => Ok(object),
        Content::Removed(at) => panic!("removed at {at}"),
    }
}

/// The names that can be used, and the reason for each that cannot.
fn read_names(text: &str) -> (Vec<String>, Vec<(String, String)>) {
    let object = object(text).expect("an object");
    let read = read(&topic(), &object, &SecretPolicy::default()).expect("a topic");
    let names = read.subscriptions().map(|subscription| subscription.name.name.clone()).collect();
    (names, read.unusable().clone().into_iter().collect())
}

#[test]
fn a_subscription_that_cannot_be_used_affects_itself_only() {
    let good = r#"{"owner":"a","spec":{"destination":{"url":"https://example.com/"}}}"#;
    let deep = format!(r#"{{"spec":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let large = format!(r#"{{"spec":{{"x":"{}"}}}}"#, "x".repeat(ENTRY_MAX_BYTES));
    for (bad, reason) in [
        ("1", "not a JSON object"),
        ("{}", "missing"),
        (r#"{"spec":{"destination":{"url":"example.com"}}}"#, "spec.destination.url"),
        (r#"{"spec":{"destination":{"url":"https://a.example"}},"x":1}"#, "unknown field"),
        (r#"{"metadata":{},"spec":{}}"#, "metadata"),
        (
            r#"{"spec":{"destination":{"url":"https://a.example"},"retry":{"maxAttempts":4000000000}}}"#,
            "maxAttempts",
        ),
        (&deep, "recursion"),
        (&large, "bytes of JSON"),
    ] {
        let text = format!(r#"{{"v":1,"subscriptions":{{"a":{good},"b":{bad},"c":{good}}}}}"#);
        let (names, unusable) = read_names(&text);
        assert_eq!(names, ["a", "c"], "{bad:.80}");
        let [(name, why)] = &unusable[..] else { panic!("{unusable:?}") };
        assert!(name == "b" && why.contains(reason), "{why}");
    }
    let (names, unusable) =
        read_names(&format!(r#"{{"v":1,"subscriptions":{{"a":{good},"x/y":{good}}}}}"#));
    assert_eq!(names, ["a"]);
    assert!(unusable[0].1.contains("its name"), "{unusable:?}");
}

#[test]
fn an_object_that_cannot_be_used_says_why() {
    let error = |text: &str| Content::parse(text.as_bytes()).expect_err(text).to_string();
    for (text, expected) in [
        ("", "expected a JSON object"),
        ("# nothing", "expected a JSON object"),
        ("[]", "expected a JSON object"),
        ("{}", "missing field `v`"),
        (r#"{"v":2,"new":1}"#, "version 2"),
        (r#"{"v":2}"#, "version 2"),
        (r#"{"v":1,"subscription":{}}"#, "unknown field `subscription`"),
        (r#"{"v":1,"subscriptions":{"a":{},"a":{}}}"#, r#"the subscription "a" occurs twice"#),
        (r#"{"v":1,"removed":"x","subscriptions":{"a":{}}}"#, "removed"),
        (r#"{"v":1,"subscriptions":{"a":{}"#, "EOF"),
    ] {
        let found = error(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    let many: Vec<String> = (0..=SUBSCRIPTIONS_MAX).map(|n| format!(r#""s{n}":{{}}"#)).collect();
    let found = error(&format!(r#"{{"v":1,"subscriptions":{{{}}}}}"#, many.join(",")));
    assert!(found.contains("10001 subscriptions"), "{found}");
    let large = " ".repeat(OBJECT_MAX_BYTES + 1);
    assert!(error(&large).contains("16777217 bytes"));
    assert_eq!(Content::parse(b"\xff"), Err(ObjectError::NotText));
}

#[test]
fn settings_of_a_topic_that_cannot_be_used_are_an_error_of_the_whole() {
    let text = r#"{"v":1,"topic":{"owner":"a","spec":{"input":"xml"}},"subscriptions":{}}"#;
    let found = read(&topic(), &object(text).expect("an object"), &SecretPolicy::default());
    let Err(ObjectError::Settings(why)) = found else { panic!("{found:?}") };
    assert!(why.contains("spec.input"), "{why}");
}

#[test]
fn a_removed_topic_is_told_from_one_without_subscriptions() {
    let removed = tombstone("2026-11-20T07:00:00Z");
    let at = "2026-11-20T07:00:00Z".to_owned();
    assert_eq!(Content::parse(removed.as_bytes()), Ok(Content::Removed(at)));
    assert_eq!(object(r#"{"v":1}"#), Ok(TopicObject::default()));
}
