//! The end of a pause: `rollback` prints the command that replays its dead letters. For `apply`,
//! see `transcripts/apply.md`.

use crate::deployments::document;
use crate::versioned_bucket::VersionedBucket;

const PAUSED: &str = ", paused: true";
const COMMAND: &str = "shop/orders/a has dead letters with the reason Paused; replay them with:\n  \
                       lastmile deadletters replay --subscription shop/orders/a --reason Paused \
                       --until-quiet PT12M\n";

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
