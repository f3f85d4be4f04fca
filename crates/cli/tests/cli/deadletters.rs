//! Dead letters in S3: every verb gives the same as in a folder, which
//! `transcripts/dead_letters.md` shows.

use local::aws::{LocalAws, LocalAwsConfig};
use serde_json::Value;

use crate::sample_letters;
use crate::sample_letters::{DUPLICATE, LETTERS, Sample, TestContainer, requests, text};

/// The sample dead letters, one of them in two blobs.
fn samples() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container.write(&[DUPLICATE.blob()]);
    container
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_gives_the_same_as_a_folder() {
    let folder = samples();
    let data = tempfile::tempdir().expect("a folder can be made");
    let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30);
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    let bucket = TestContainer::bucket(&aws.endpoint(), "s3://dead-letters/some/prefix");
    let blobs = [&LETTERS[..], &[DUPLICATE]].concat();
    let blobs: Vec<_> = blobs
        .into_iter()
        .map(Sample::blob)
        .map(|(key, text)| (format!("some/prefix/{key}"), text))
        .collect();
    sample_letters::write(&data.path().join("dead-letters"), &blobs);
    for arguments in [
        &["list"][..],
        &["why", "--by", "reason"],
        &["why"],
        &["list", "--full"],
        &["replay", "--dry-run"],
    ] {
        // The commands that `why` prints name the container.
        let own = "--container s3://dead-letters/some/prefix";
        let expected = text(&folder.run(arguments).stdout);
        let said = text(&bucket.run(arguments).stdout).replace(own, "--container letters");
        let said = said.replace("some/prefix/", "");
        assert!(!expected.is_empty(), "{arguments:?}");
        assert_eq!(said, expected, "{arguments:?}");
    }
    let uri = format!("s3://dead-letters/some/prefix/{}", LETTERS[3].key());
    assert!(text(&bucket.run(&["show", &uri]).stdout).contains("order-4"));
    let jobs =
        bucket.run(&["replay", "--yes", "--queue-url", &aws.queue_url("retry"), "--name", "one"]);
    assert_eq!(jobs.status.code(), Some(0), "{}", text(&jobs.stderr));
    let jobs: Value =
        serde_json::from_slice(&bucket.run(&["jobs", "--output", "json"]).stdout).expect("JSON");
    assert_eq!(
        (&jobs[0]["job"], &jobs[0]["sent"], &jobs[0]["done"]),
        (&"one".into(), &5.into(), &true.into())
    );
    let purged = bucket.run(&["purge", "--id", "order-1", "--state", "all", "--yes"]);
    assert!(text(&purged.stdout).starts_with("1 dead letter removed"), "{}", text(&purged.stderr));
    assert!(requests(&bucket.run(&["list", "--state", "all"])) > 0);
    aws.stop().await;
}
