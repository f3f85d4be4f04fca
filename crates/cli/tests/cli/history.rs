//! The author of a change and the reason for it: the commands that change a topic record them, and
//! `subscriptions history` lists them.

use serde_json::{Value, json};

use crate::deployments::document;
use crate::versioned_bucket::VersionedBucket;

/// The ARN of the account of the emulated AWS.
const CALLER: &str = "arn:aws:iam::000000000000:root";

#[test]
fn every_object_that_a_change_writes_has_its_author_and_the_reason() {
    let Some(bucket) = VersionedBucket::new("records") else { return };
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n\
                 spec: {input: sns, from: [{snsTopic: 'arn:aws:sns:us-east-1:000000000000:orders'}]}\n";
    let mapped = "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {crm: 'https://crm.example.com/'}\n";
    let documents = [document("a", ""), topic.to_owned(), mapped.to_owned()];
    bucket.apply("team", &documents, &["-m", "50 % more für ö"]);
    let head = |name: &str| bucket.request("HEAD", &format!("/subscriptions/{name}"), "");
    for name in
        ["shop/orders.json", "_settings.json", "_publishers.json", "_destinations/team.json"]
    {
        let head = head(name);
        for part in [
            format!("x-amz-meta-by: {CALLER}\r\n"),
            "x-amz-meta-message: 50 %25 more f%C3%BCr %C3%B6\r\n".to_owned(),
        ] {
            assert!(head.contains(&part), "{part} in {head}");
        }
    }
    let changed = document("a", ", retry: {maxAttempts: 3}");
    bucket.apply("team", &[changed], &[]);
    assert!(head("shop/orders.json").contains(CALLER));
    assert!(!head("shop/orders.json").contains("x-amz-meta-message"));
    for command in [
        &["rollback", "shop/orders"][..],
        &["subscriptions", "delete", "shop/orders/a", "--owner", "team"],
    ] {
        let reason = command.join(" ");
        let (printed, code) = bucket.run(&[command, &["--yes", "--message", &reason]].concat());
        assert_eq!(code, Some(0), "{printed}");
        let head = head("shop/orders.json");
        assert!(head.contains(&format!("x-amz-meta-message: {reason}\r\n")), "{head}");
    }
}

#[test]
fn a_change_is_made_without_a_name_if_nobody_knows_the_caller() {
    let Some(bucket) = VersionedBucket::new("nameless") else { return };
    std::fs::write(bucket.folder().join("a.yaml"), document("a", "")).expect("a file");
    let mut command = bucket.command(&["apply", "-f", "a.yaml", "--yes", "-m", "why"]);
    // Nobody listens there.
    let output = command.env("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1").output();
    let output = output.expect("the program runs");
    let notes = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(
        notes.contains("the history will not contain the author of this change: STS"),
        "{notes}"
    );
    let head = bucket.request("HEAD", "/subscriptions/shop/orders.json", "");
    assert!(head.contains("x-amz-meta-message: why") && !head.contains("x-amz-meta-by"), "{head}");
}

/// The text of the table, and the versions as JSON.
fn history(bucket: &VersionedBucket) -> (String, Vec<Value>) {
    let command = ["subscriptions", "history", "shop/orders"];
    let (table, code) = bucket.run(&command);
    assert_eq!(code, Some(0), "{table}");
    let (json, code) = bucket.run(&[&command[..], &["--output", "json"]].concat());
    assert_eq!(code, Some(0), "{json}");
    // Notes follow.
    let json = json.lines().next().unwrap_or_default();
    (table, serde_json::from_str(json).expect("a list"))
}

#[test]
fn the_changes_of_a_topic_are_listed_newest_first() {
    let Some(bucket) = VersionedBucket::new("history") else { return };
    let command = ["subscriptions", "history", "shop/orders"];
    let (printed, code) = bucket.run(&command);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no topic shop/orders in s3://history"), "{printed}");

    bucket.apply("team", &[document("a", ""), document("b", "")], &["-m", "the first"]);
    let changed = document("a", ", retry: {maxAttempts: 3}");
    bucket.apply("team", &[changed, document("c", "")], &["--prune", "-m", "the second"]);
    let path = "/subscriptions/shop/orders.json";
    bucket.request("PUT", path, "by hand");
    bucket.request("PUT", path, r#"{"v":1,"removed":"2026-11-20T07:00:00Z"}"#);

    let (table, versions) = history(&bucket);
    let column =
        |name: &str| versions.iter().map(|version| version[name].clone()).collect::<Vec<_>>();
    assert_eq!(
        column("message"),
        [json!(null), json!(null), json!("the second"), json!("the first")]
    );
    assert_eq!(column("by"), [json!(null), json!(null), json!(CALLER), json!(CALLER)]);
    assert_eq!(column("subscriptions"), [json!(null), json!(null), json!(2), json!(2)]);
    assert_eq!(column("removed"), [true, false, false, false]);
    assert_eq!(column("current"), [true, false, false, false]);
    assert!(
        versions[1]["problem"]
            .as_str()
            .is_some_and(|problem| problem.contains("not a valid object"))
    );
    let changes = json!({"settings": false, "added": ["c"], "changed": ["a"], "removed": ["b"]});
    assert_eq!(column("changes"), [json!(null), json!(null), changes, json!(null)]);
    let lines: Vec<&str> = table.lines().collect();
    for (line, parts) in [
        (1, &["removed"][..]),
        (2, &["7 ", "unusable: "]),
        (3, &[CALLER, "the second", "2 subscriptions", "+c, ~a, -b"]),
        (4, &[CALLER, "the first", "2 subscriptions"]),
    ] {
        assert!(parts.iter().all(|part| lines[line].contains(part)), "{line}: {table}");
    }

    // A version is no longer the current one once its object was deleted.
    bucket.request("DELETE", path, "");
    let (table, versions) = history(&bucket);
    assert!(
        table.contains("the object of shop/orders was deleted; restore it with lastmile rollback"),
        "{table}"
    );
    assert_eq!(versions.len(), 4);
}

#[test]
fn a_rollback_is_a_change_in_the_history() {
    let Some(bucket) = VersionedBucket::new("rolled-back") else { return };
    bucket.apply("team", &[document("a", "")], &[]);
    bucket.apply("team", &[document("b", "")], &[]);
    let rollback = ["rollback", "shop/orders", "--yes", "-m", "b was a mistake"];
    let (printed, code) = bucket.run(&rollback);
    assert_eq!(code, Some(0), "{printed}");
    let (_, versions) = history(&bucket);
    assert_eq!(versions[0]["message"], "b was a mistake");
    assert_eq!(versions[0]["changes"]["removed"], json!(["b"]));
    assert_eq!(versions[1]["changes"]["added"], json!(["b"]));
}
