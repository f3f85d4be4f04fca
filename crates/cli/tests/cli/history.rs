//! The author of a change and the reason for it: the commands that change a topic record them, and
//! `subscriptions history` lists them.

use crate::deployments::{document, try_apply};
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
    assert!(notes.contains("the history will not show who makes this change: STS"), "{notes}");
    let head = bucket.request("HEAD", "/subscriptions/shop/orders.json", "");
    assert!(head.contains("x-amz-meta-message: why") && !head.contains("x-amz-meta-by"), "{head}");
}

#[test]
fn a_folder_stores_no_message_and_a_message_is_not_endless() {
    let folder = tempfile::tempdir().expect("a folder");
    let apply =
        |message: &str| try_apply(folder.path(), &[document("a", "")], &["--yes", "-m", message]);
    let (printed, code) = apply("why");
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("a folder keeps no history: --message is not stored"), "{printed}");
    let (printed, code) = apply(&"x".repeat(141));
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("it has 141 characters; a message has at most 140"), "{printed}");
}
