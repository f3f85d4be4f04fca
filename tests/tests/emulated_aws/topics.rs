//! `lastmile` changes topics in a bucket: with a role for one namespace, and with writers that race.

use std::io::Write as _;
use std::process::Command;

use aws_sdk_sqs::config::Credentials;
use delivery::topic_object::TOMBSTONE_TAG;
use lastmile_tests::snippets;
use lastmile_tests::writers::{Ledger, document, race, succeeded};

use super::stack::{ACCOUNT, SUBSCRIPTIONS};
use super::{Deployment, on_deployment};

/// The namespace that the role of the manual may change.
const OWN: &str = "shop";
const OTHER: &str = "not-of-the-role";
/// A topic with a publisher, which is written into an object beside the topics.
const WITH_A_PUBLISHER: &str = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: published}\n\
     spec: {input: sns, from: [{snsTopic: 'arn:aws:sns:us-east-1:000000000000:of-the-role'}]}\n";

#[test]
fn a_role_for_one_namespace_writes_that_and_no_other() {
    on_deployment(|Deployment { stack, .. }| async move {
        let bucket = stack.output("ConfigBucketName");
        let by_account = stack.place(bucket, &ACCOUNT);
        for namespace in [OWN, OTHER] {
            let _ = succeeded(by_account.apply("account", &document(namespace, "first", 1)));
        }
        let others = async || {
            let keys =
                [format!("{OTHER}/"), "_settings.json".to_owned(), "_publishers.json".to_owned()];
            let mut found = Vec::new();
            for key in keys {
                found.extend(stack.config_objects(&format!("{SUBSCRIPTIONS}{key}")).await);
            }
            found
        };
        let before = others().await;
        assert!(before.len() >= 2, "{before:?}");

        let policy = snippets::under("reference/storage.md", "A role for one namespace").text;
        let policy = policy.replace("CONFIG_BUCKET", bucket);
        let session = stack.session("applies-shop", &policy);
        let credentials = session.each_ref().map(|(name, value)| (*name, value.as_str()));
        let by_role = stack.place(bucket, &credentials);
        let printed = succeeded(by_role.apply("role", &document(OWN, "second", 1)));
        assert!(printed.contains("shop/orders: "), "{printed}");
        let _ =
            succeeded(by_role.command(&["rollback", "shop/orders", "--owner", "role", "--yes"]));
        let removed = document(OWN, "second", 1).replace("topic: orders", "topic: removed");
        let _ = succeeded(by_role.apply("role", &removed));
        let mut pruned = by_role.apply("role", &document(OWN, "second", 1));
        pruned.arg("--prune");
        let _ = succeeded(pruned);
        let tags = stack.tags(bucket, &format!("{SUBSCRIPTIONS}shop/removed.json")).await;
        assert_eq!(tags, [TOMBSTONE_TAG]);
        let tags = stack.tags(bucket, &format!("{SUBSCRIPTIONS}shop/orders.json")).await;
        assert_eq!(tags, [""; 0]);
        assert_denied(by_role.apply("role", &document(OTHER, "second", 1)), OTHER);
        let text = [WITH_A_PUBLISHER, &document(OWN, "third", 1)].join("---\n");
        assert_denied(by_role.apply("role", &text), "_publishers.json");
        // The emulated AWS evaluates the condition of the policy for each request above. It allows no other prefix.
        let [(_, id), (_, secret), (_, token)] = session;
        let session = Credentials::new(id, secret, Some(token), None, "session");
        for (prefix, is_allowed) in [(SUBSCRIPTIONS, true), ("", false), ("_", false)] {
            let listed = stack.listed_by(session.clone(), prefix).await;
            assert_eq!(
                listed,
                is_allowed.then_some(()).ok_or("AccessDenied".to_owned()),
                "{prefix}"
            );
        }

        assert_eq!(before, others().await);
    });
}

#[test]
fn in_a_bucket_two_writers_lose_no_change() {
    race_in_bucket("race-of-few", 20);
}

#[test]
#[ignore = "takes minutes: run by hand after a change of writing or of storage"]
fn in_a_bucket_a_thousand_changes_of_two_writers_are_there() {
    race_in_bucket("race-of-many", 1_000);
}

/// In a bucket of its own: the topic is one that others use.
fn race_in_bucket(bucket: &'static str, changes: u64) {
    on_deployment(|Deployment { stack, .. }| async move {
        stack.new_bucket(bucket).await;
        let place = stack.place(bucket, &ACCOUNT);
        // The race has a runtime of its own.
        let raced = tokio::task::spawn_blocking(move || race(&place, &Ledger::default(), changes));
        let reads = raced.await.expect("the race ends");
        // Written past the test harness, which shows no output of tests that pass.
        let figures = format!("{changes} changes in a bucket, read {reads} times meanwhile");
        writeln!(std::io::stderr(), "{figures}").expect("standard error is writable");
        assert!(reads > 0);
    });
}

/// Fails unless S3 denies this, and the program names what is not changed.
fn assert_denied(mut command: Command, name: &str) {
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(name) && errors.contains("AccessDenied"), "{errors}");
}
