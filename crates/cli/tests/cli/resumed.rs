//! The end of a pause: `apply` and `rollback` print the command that replays its dead letters.

use crate::deployments::{document, try_apply};
use crate::versioned_bucket::VersionedBucket;

const PAUSED: &str = ", paused: true";
const COMMAND: &str = "shop/orders/a has dead letters from the pause; this replays them:\n  \
    lastmile deadletters replay --subscription shop/orders/a --reason Paused --until-quiet PT12M\n";

#[test]
fn apply_prints_the_command_for_each_subscription_whose_pause_ends_and_for_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let apply = |a: &str, b: &str| {
        let documents = [document("a", a), document("b", b)];
        let (printed, code) = try_apply(folder.path(), &documents, &["--yes"]);
        assert_eq!(code, Some(0), "{printed}");
        printed
    };
    for printed in [apply("", ""), apply(PAUSED, PAUSED)] {
        assert!(!printed.contains("deadletters replay"), "{printed}");
    }
    let printed = apply("", PAUSED);
    assert!(printed.contains(COMMAND), "{printed}");
    assert!(!printed.contains("shop/orders/b has"), "{printed}");
}

#[test]
fn rollback_to_a_version_before_the_pause_prints_the_same_command() {
    let Some(bucket) = VersionedBucket::new("resumed") else { return };
    for more in ["", PAUSED] {
        bucket.apply("team", &[document("a", more)], &[]);
    }
    let (printed, code) = bucket.run(&["rollback", "shop/orders", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains(COMMAND), "{printed}");
}
