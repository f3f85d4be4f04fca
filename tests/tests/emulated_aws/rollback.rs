//! `lastmile rollback` restores an earlier version of a topic, as a whole or for one owner.
//!
//! The tests use buckets with versions, because a folder keeps none.

use std::process::Command;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::moment;
use lastmile_tests::writers::Place;
use serde_json::Value;

use super::stack::{ACCOUNT, SUBSCRIPTIONS, Stack};
use super::{Deployment, on_deployment};

/// Subscriptions in a bucket of their own.
struct Topics<'a> {
    stack: &'a Stack,
    bucket: &'static str,
    place: Place,
}

/// A subscription with this number of attempts.
fn document(topic: &str, name: &str, attempts: u32) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/in'}}, retry: {{maxAttempts: {attempts}}}}}\n"
    )
}

/// The current time, in the format of `--at`.
fn now() -> String {
    moment::rfc3339(Machine.now_ms())
}

/// Returns the output of a program and its exit code.
fn run(mut command: Command) -> (String, Option<i32>) {
    let output = command.output().expect("the program runs");
    let printed = [output.stdout, output.stderr].concat();
    (String::from_utf8(printed).expect("text"), output.status.code())
}

fn assert_done((printed, code): (String, Option<i32>)) {
    assert_eq!(code, Some(0), "{printed}");
}

impl<'a> Topics<'a> {
    async fn new(stack: &'a Stack, bucket: &'static str) -> Self {
        stack.new_versioned_bucket(bucket).await;
        Self { stack, bucket, place: stack.place(bucket, &ACCOUNT) }
    }

    fn apply(&self, owner: &str, names: &[&str], attempts: u32) {
        let documents = names.iter().map(|name| document("orders", name, attempts));
        assert_done(run(self.place.apply(owner, &documents.collect::<Vec<_>>().join("---\n"))));
    }

    fn rollback(&self, name: &str, more: &[&str]) -> (String, Option<i32>) {
        run(self.place.command(&[&["rollback", name], more].concat()))
    }

    /// Removes all subscriptions of an owner.
    fn remove(&self, owner: &str) {
        let mut apply = self.place.apply(owner, "");
        apply.args(["--prune", "--allow-empty"]);
        assert_done(run(apply));
    }

    async fn object(&self, topic: &str) -> String {
        self.stack.object(self.bucket, &format!("{SUBSCRIPTIONS}shop/{topic}.json")).await
    }

    async fn overwrite(&self, topic: &str, text: &str) {
        let key = format!("{SUBSCRIPTIONS}shop/{topic}.json");
        self.stack.put_object(self.bucket, &key, text).await;
    }

    /// Returns each subscription with its owner and its number of attempts.
    async fn attempts(&self, topic: &str) -> Vec<String> {
        let object: Value = serde_json::from_str(&self.object(topic).await).expect("JSON");
        let subscriptions = object["subscriptions"].as_object().into_iter().flatten();
        let line = |(name, entry): (&String, &Value)| {
            let owner = entry["owner"].as_str().unwrap_or_default();
            format!("{name} {owner} {}", entry["spec"]["retry"]["maxAttempts"])
        };
        subscriptions.map(line).collect()
    }
}

#[test]
fn a_topic_becomes_what_it_was_with_the_entries_of_all_owners() {
    on_deployment(|Deployment { stack, .. }| async move {
        let topics = Topics::new(stack, "rollback-of-all").await;
        topics.apply("one", &["a"], 1);
        topics.apply("one", &["a", "c"], 2);
        let (printed, code) = topics.rollback("shop/orders", &[]);
        assert_eq!(code, Some(2), "nobody confirms: {printed}");
        assert_eq!(topics.attempts("orders").await, ["a one 2", "c one 2"]);
        let (printed, code) = topics.rollback("shop/orders", &["--yes"]);
        assert_eq!(code, Some(0), "{printed}");
        for part in [
            "~ subscription shop/orders/a\n    retry.maxAttempts: 2 -> 1",
            "- subscription shop/orders/c",
            "shop/orders: ",
        ] {
            assert!(printed.contains(part), "{part} in {printed}");
        }
        assert_eq!(topics.attempts("orders").await, ["a one 1"]);
        // A rollback is a new version, so the next rollback reverts it.
        assert_done(topics.rollback("shop/orders", &["--yes"]));
        assert_eq!(topics.attempts("orders").await, ["a one 2", "c one 2"]);
        let history = ["subscriptions", "history", "shop/orders", "--output", "json"];
        let (printed, code) = run(topics.place.command(&history));
        let versions: Vec<Value> = serde_json::from_str(&printed).expect("a list");
        assert_eq!((versions.len(), code), (4, Some(0)), "{printed}");
    });
}

#[test]
fn a_rollback_for_one_owner_leaves_the_entries_of_others_and_takes_none() {
    on_deployment(|Deployment { stack, .. }| async move {
        let topics = Topics::new(stack, "rollback-of-one").await;
        topics.apply("two", &["b"], 2);
        topics.apply("one", &["a"], 1);
        topics.apply("one", &["a", "c"], 2);
        let (printed, code) = topics.rollback("shop/orders", &["--owner", "one", "--yes"]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("- subscription shop/orders/c"), "{printed}");
        assert!(!printed.contains("orders/b"), "{printed}");
        assert_eq!(topics.attempts("orders").await, ["a one 1", "b two 2"]);

        let at = now();
        topics.remove("one");
        topics.apply("two", &["a"], 2);
        let to_then = ["--owner", "one", "--at", &at, "--yes"];
        let (printed, code) = topics.rollback("shop/orders", &to_then);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains("the subscription a belongs to \"two\""), "{printed}");
        assert_eq!(topics.attempts("orders").await, ["a two 2", "b two 2"]);
    });
}

#[test]
fn a_topic_that_was_removed_or_damaged_comes_back() {
    on_deployment(|Deployment { stack, .. }| async move {
        let topics = Topics::new(stack, "rollback-of-removed").await;
        topics.apply("one", &["a"], 1);
        topics.remove("one");
        assert!(topics.object("orders").await.contains("removed"));
        assert_done(topics.rollback("shop/orders", &["--yes"]));
        assert_eq!(topics.attempts("orders").await, ["a one 1"]);

        topics.overwrite("orders", "damaged").await;
        let (printed, code) = topics.rollback("shop/orders", &["--owner", "one", "--yes"]);
        assert_eq!(code, Some(1), "the entries of others are not known: {printed}");
        assert_done(topics.rollback("shop/orders", &["--yes"]));
        assert_eq!(topics.attempts("orders").await, ["a one 1"]);
    });
}

#[test]
fn a_version_that_cannot_be_used_is_not_restored() {
    on_deployment(|Deployment { stack, .. }| async move {
        let topics = Topics::new(stack, "rollback-of-unusable").await;
        topics.apply("one", &["a"], 1);
        let good = topics.object("orders").await;
        let secret = r#"example.com/in","signing":{"secrets":["env:A"]}"#;
        let policy = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n";
        let documents = [policy.to_owned(), document("others", "b", 1)].join("---\n");
        assert_done(run(topics.place.apply("platform", &documents)));
        for (text, problem) in [
            ("damaged".to_owned(), "was not restored: "),
            (good.replace("https://a.", "ftp://a."), "shop/orders/a: "),
            // The current secret policy forbids this version.
            (good.replace(r#"example.com/in""#, secret), r#"the secret "env:A" may not be sent"#),
        ] {
            topics.overwrite("orders", &text).await;
            topics.overwrite("orders", &good).await;
            let (printed, code) = topics.rollback("shop/orders", &["--yes"]);
            assert_eq!(code, Some(1), "{printed}");
            assert!(printed.contains(problem), "{printed}");
            assert_eq!(topics.object("orders").await, good);
        }
    });
}

#[test]
fn the_topics_of_a_namespace_become_what_they_were_at_a_time() {
    on_deployment(|Deployment { stack, .. }| async move {
        let topics = Topics::new(stack, "rollback-of-namespace").await;
        let apply = |attempts: u32| {
            let documents = ["orders", "others"].map(|topic| document(topic, "a", attempts));
            assert_done(run(topics.place.apply("one", &documents.join("---\n"))));
        };
        apply(1);
        let at = now();
        apply(2);
        let (printed, code) = topics.rollback("shop", &["--yes"]);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains("requires --at"), "{printed}");
        let (printed, code) = topics.rollback("shop", &["--at", &at, "--yes"]);
        assert_eq!(code, Some(0), "{printed}");
        for topic in ["orders", "others"] {
            let part = format!("~ subscription shop/{topic}/a\n    retry.maxAttempts: 2 -> 1");
            assert!(printed.contains(&part), "{printed}");
            assert_eq!(topics.attempts(topic).await, ["a one 1"]);
        }
        let (printed, code) = topics.rollback("shop", &["--at", &at, "--yes"]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("nothing to do"), "{printed}");
    });
}
