//! `lastmile rollback`: a topic becomes what it was, as a whole or for one owner.
//!
//! A folder has at most one earlier version of a file; buckets have more.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::moment;

use crate::deployments::{apply, document, object, try_apply, uri};
use crate::programs::run;

/// How long before the current version the earlier one was written.
const EARLIER: Duration = Duration::from_secs(60 * 60);

/// A deployment in a folder.
struct Deployment(tempfile::TempDir);

impl Deployment {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn apply(&self, owner: &str, names: &[&str], attempts: u32) {
        let retry = format!(", retry: {{maxAttempts: {attempts}}}");
        let documents: Vec<String> = names.iter().map(|name| document(name, &retry)).collect();
        apply(self.path(), owner, &documents);
    }

    /// Keeps the current version of a topic as the earlier one, written an hour ago.
    fn keep(&self, topic: &str) {
        let path = object(self.path(), &format!("{topic}.json"));
        let earlier = path.with_extension("json.previous");
        std::fs::copy(&path, &earlier).expect("a copy");
        let file = File::options().write(true).open(&earlier).expect("a file");
        let modified = file.metadata().and_then(|of| of.modified()).expect("a time");
        file.set_modified(modified - EARLIER).expect("a time");
    }

    fn rollback(&self, name: &str, more: &[&str]) -> (String, Option<i32>) {
        let to = uri(self.path());
        run(self.path(), &[&["rollback", name, "--to", &to], more].concat())
    }

    /// Each subscription with its owner and its number of attempts.
    fn attempts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(object(self.path(), "shop/orders.json"));
        let object: serde_json::Value =
            serde_json::from_str(&text.expect("an object")).expect("JSON");
        let subscriptions = object["subscriptions"].as_object().into_iter().flatten();
        let line = |(name, of): (&String, &serde_json::Value)| {
            let owner = of["owner"].as_str().unwrap_or_default();
            format!("{name} {owner} {}", of["spec"]["retry"]["maxAttempts"])
        };
        subscriptions.map(line).collect()
    }
}

/// A time as `--at` takes it, so long ago.
fn ago(time: Duration) -> String {
    let ago_ms = u64::try_from(time.as_millis()).expect("a time");
    moment::rfc3339(Machine.now_ms() - ago_ms)
}

#[test]
fn a_topic_becomes_what_it_was_with_the_entries_of_all_owners() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    deployment.apply("two", &["b"], 1);
    deployment.keep("shop/orders");
    deployment.apply("one", &["a", "c"], 2);
    deployment.apply("two", &["b"], 2);
    let changed = ["a one 2", "b two 2", "c one 2"];
    let (printed, code) = deployment.rollback("shop/orders", &[]);
    assert_eq!(code, Some(2), "nobody confirms: {printed}");
    assert_eq!(deployment.attempts(), changed);
    let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    for part in [
        "~ subscription shop/orders/a\n    retry.maxAttempts: 2 -> 1",
        "~ subscription shop/orders/b\n    retry.maxAttempts: 2 -> 1",
        "- subscription shop/orders/c",
        "shop/orders: ",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert_eq!(deployment.attempts(), ["a one 1", "b two 1"]);
    let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("nothing to do"), "{printed}");
}

#[test]
fn a_rollback_for_one_owner_leaves_the_entries_of_others() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    deployment.apply("two", &["b"], 1);
    deployment.keep("shop/orders");
    deployment.apply("one", &["a", "c"], 2);
    deployment.apply("two", &["b"], 2);
    let (printed, code) = deployment.rollback("shop/orders", &["--owner", "one", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("- subscription shop/orders/c"), "{printed}");
    assert!(!printed.contains("orders/b"), "{printed}");
    assert_eq!(deployment.attempts(), ["a one 1", "b two 2"]);
}

#[test]
fn a_rollback_takes_nothing_from_another_owner() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    deployment.keep("shop/orders");
    let to = uri(deployment.path());
    let delete =
        ["subscriptions", "delete", "shop/orders/a", "--owner", "one", "--yes", "--to", &to];
    let (printed, code) = run(deployment.path(), &delete);
    assert_eq!(code, Some(0), "{printed}");
    deployment.apply("two", &["a"], 2);
    let (printed, code) = deployment.rollback("shop/orders", &["--owner", "one", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the subscription a belongs to \"two\""), "{printed}");
    assert_eq!(deployment.attempts(), ["a two 2"]);
}

#[test]
fn a_topic_that_was_removed_or_damaged_comes_back() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    deployment.keep("shop/orders");
    let (printed, code) =
        try_apply(deployment.path(), &[], &["--owner", "one", "--prune", "--allow-empty", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(deployment.attempts(), [""; 0]);
    assert_eq!(deployment.rollback("shop/orders", &["--yes"]).1, Some(0));
    assert_eq!(deployment.attempts(), ["a one 1"]);

    std::fs::write(object(deployment.path(), "shop/orders.json"), "damaged").expect("a file");
    let (printed, code) = deployment.rollback("shop/orders", &["--owner", "one", "--yes"]);
    assert_eq!(code, Some(1), "what others have is not known: {printed}");
    let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(deployment.attempts(), ["a one 1"]);
}

#[test]
fn a_version_that_cannot_be_used_is_not_restored() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    deployment.keep("shop/orders");
    let earlier = object(deployment.path(), "shop/orders.json.previous");
    deployment.apply("one", &["a"], 2);
    let good = std::fs::read_to_string(&earlier).expect("a file");
    for (text, problem) in [
        ("damaged".to_owned(), "is not restored: "),
        (good.replace("https://a.", "ftp://a."), "shop/orders/a: "),
    ] {
        std::fs::write(&earlier, text).expect("a file");
        let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(problem), "{printed}");
        assert_eq!(deployment.attempts(), ["a one 2"]);
    }
    // Nor is one that a policy of today forbids.
    std::fs::write(
        &earlier,
        good.replace("code=secret\"", "code=secret\",\"signing\":{\"secrets\":[\"env:A\"]}"),
    )
    .expect("a file");
    let policy = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n";
    apply(deployment.path(), "platform", &[policy.to_owned()]);
    let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the secret \"env:A\" may not be sent"), "{printed}");
    assert_eq!(deployment.attempts(), ["a one 2"]);
}

#[test]
fn the_topics_of_a_namespace_become_what_they_were_at_a_time() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    let other = |attempts: u32| {
        let other = document("a", &format!(", retry: {{maxAttempts: {attempts}}}"));
        apply(deployment.path(), "one", &[other.replace("topic: orders", "topic: others")]);
    };
    other(1);
    deployment.keep("shop/orders");
    deployment.keep("shop/others");
    deployment.apply("one", &["a"], 2);
    other(2);
    let (printed, code) = deployment.rollback("shop", &["--yes"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("--at is required"), "{printed}");
    let at = ago(EARLIER / 2);
    let (printed, code) = deployment.rollback("shop", &["--at", &at, "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    for topic in ["orders", "others"] {
        let part = format!("~ subscription shop/{topic}/a\n    retry.maxAttempts: 2 -> 1");
        assert!(printed.contains(&part), "{printed}");
    }
    assert_eq!(deployment.attempts(), ["a one 1"]);
    // What is there now is the version of this time.
    let (printed, code) = deployment.rollback("shop", &["--at", &ago(Duration::ZERO), "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("nothing to do"), "{printed}");
}

#[test]
fn a_time_of_which_no_version_is_kept_removes_nothing() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    for name in ["shop/orders", "shop"] {
        let (printed, code) = deployment.rollback(name, &["--at", "2020-01-01T00:00:00Z", "--yes"]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains("shop/orders has no version of that time"), "{printed}");
    }
    let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the topic shop/orders has no earlier version"), "{printed}");
    assert_eq!(deployment.attempts(), ["a one 1"]);
}

#[test]
fn names_that_are_not_there_and_arguments_that_do_not_fit_are_errors() {
    let deployment = Deployment::new();
    deployment.apply("one", &["a"], 1);
    apply(deployment.path(), "one", &[document("a", "").replace("topic: orders", "topic: others")]);
    let at = ago(EARLIER);
    for (name, more, expected, problem) in [
        ("shop/orders/a", &[][..], 2, "\"shop/orders/a\" is no topic"),
        ("bank", &[], 1, "has no topic in the namespace bank"),
        ("bank", &["--at", &at], 1, "has no topic in the namespace bank"),
        ("shop", &["--owner", "one"], 2, "--at is required"),
        ("shop", &["--at", "yesterday"], 2, "a time is written as 2026-11-20T07:00:00Z"),
    ] {
        let (printed, code) = deployment.rollback(name, more);
        assert_eq!(code, Some(expected), "{name} {more:?}: {printed}");
        assert!(printed.contains(problem), "{name} {more:?}: {printed}");
    }
}
