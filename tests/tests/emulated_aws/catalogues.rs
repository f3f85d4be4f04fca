//! `lastmile` changes a catalogue in a bucket: with a role for one namespace, and with writers that race.

use std::io::Write as _;
use std::process::Command;

use lastmile_tests::snippets;
use lastmile_tests::writers::{Ledger, Place, document, race, succeeded};

use super::stack::{ACCOUNT, Stack};
use super::{Deployment, on_deployment};

const PUT: [&str; 2] = ["subscriptions", "put"];
/// A topic with a publisher, which is written into the namespace of the deployment.
const WITH_A_PUBLISHER: &str = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n\
     spec: {input: sns, from: [{snsTopic: 'arn:aws:sns:us-east-1:000000000000:shop-orders'}]}\n";

#[test]
fn a_role_for_one_namespace_writes_that_and_no_other() {
    on_deployment(|Deployment { stack, .. }| async move {
        let by_account = place(stack, "catalogue", &ACCOUNT);
        for namespace in ["shop", "billing"] {
            let put = by_account.change(&PUT, "account", &document(namespace, "first", 1));
            let _ = succeeded(put);
        }
        let others = ["billing", "_deployment"].map(|name| format!("catalogue/namespaces/{name}/"));
        let before =
            [stack.config_objects(&others[0]).await, stack.config_objects(&others[1]).await];
        assert!(before.iter().all(|objects| !objects.is_empty()), "{before:?}");

        let policy = snippets::under("catalogue.md", "A role for one namespace").text;
        let policy = policy.replace("CONFIG_BUCKET", stack.output("ConfigBucketName"));
        let credentials = stack.session("applies-shop", &policy);
        let credentials = credentials.each_ref().map(|(name, value)| (*name, value.as_str()));
        let by_role = place(stack, "catalogue", &credentials);
        let printed = succeeded(by_role.change(&PUT, "role", &document("shop", "second", 1)));
        assert!(printed.contains("shop: version 2, "), "{printed}");
        let denied = by_role.change(&PUT, "role", &document("billing", "second", 1));
        assert_denied(denied, "the namespace billing is not changed");
        let text = [WITH_A_PUBLISHER, &document("shop", "third", 1)].join("---\n");
        let denied = by_role.change(&["apply", "--yes"], "role", &text);
        assert_denied(denied, "the namespace _deployment is not changed");

        let after =
            [stack.config_objects(&others[0]).await, stack.config_objects(&others[1]).await];
        assert_eq!(before, after);
    });
}

#[test]
fn in_a_bucket_two_writers_lose_no_change() {
    race_in_bucket("race-of-few", 20);
}

#[test]
#[ignore = "takes minutes: run by hand after a change of the protocol or of storage"]
fn in_a_bucket_a_thousand_changes_of_two_writers_are_there() {
    race_in_bucket("race-of-many", 1_000);
}

/// Garbage is collected and none found: in a bucket nothing can be made older than it is.
fn race_in_bucket(prefix: &'static str, changes: u64) {
    on_deployment(|Deployment { stack, .. }| async move {
        let place = place(stack, prefix, &ACCOUNT);
        // The race has a runtime of its own.
        let raced = tokio::task::spawn_blocking(move || {
            race(&place, &Ledger::default(), changes, || place.collect_garbage())
        });
        let raced = raced.await.expect("the race ends");
        // Written past the test harness, which shows no output of tests that pass.
        let figures = format!("{changes} changes in a bucket, {} versions read", raced.reads);
        writeln!(std::io::stderr(), "{figures}").expect("standard error is writable");
        assert!(raced.removed == 0 && raced.reads > 0, "{raced:?}");
    });
}

/// The catalogue with this prefix, changed with these credentials.
pub(super) fn place(stack: &Stack, prefix: &str, credentials: &[(&str, &str)]) -> Place {
    let environment = stack.variables();
    let environment = environment.iter().chain(credentials);
    let environment = environment.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let uri = format!("s3://{}/{prefix}/", stack.output("ConfigBucketName"));
    Place::new(uri, stack.config_object(prefix), environment.collect())
}

/// Fails unless S3 denies this, and the program says what is not changed.
fn assert_denied(mut command: Command, problem: &str) {
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(problem) && errors.contains("AccessDenied"), "{errors}");
}
