//! The cache of summaries: the same output with and without it, and fewer requests.

use std::path::{Path, PathBuf};

use local::aws::{LocalAws, LocalAwsConfig};

use crate::sample_letters::{self, DUPLICATE, LETTERS, Sample, TestContainer, requests, text};

/// Every verb that uses the cache, with every filter.
const COMMANDS: [&[&str]; 24] = [
    &["list", "--limit", "2"],
    &["list", "--limit", "0", "--output", "ndjson"],
    &["list", "--output", "json"],
    &["why", "--by", "reason,subscription,destination,hour"],
    &["why", "--output", "json"],
    &["replay", "--dry-run"],
    &["replay", "--dry-run", "order-4"],
    &["purge", "--dry-run", "--subscription", "billing"],
    &["show", "order-4"],
    &["list", "--namespace", "shop"],
    &["list", "--topic", "shop/orders"],
    &["why", "--by", "hour", "--subscription", "mail"],
    &["why", "--by", "reason", "--since", "2026-11-20"],
    &["why", "--until", "2026-11-20"],
    &["list", "--search", "PLEASE wait"],
    &["list", "--search", "mail.example"],
    &["list", "--reason", "UndeliverableDueToHttpNotFound"],
    &["list", "--outcome", "404,timeout"],
    &["list", "--status", "5xx"],
    &["list", "--type", "order.p*"],
    &["list", "--source", "https://shop.*"],
    &["list", "--id", "order-2"],
    &["list", "--destination", "https://mail.*"],
    &["list", "--cause", "0000"],
];

/// A bucket with the sample dead letters and a blob that is none.
async fn bucket(data: &Path) -> (LocalAws, TestContainer) {
    let config = LocalAwsConfig::of_lastmile(0, data.to_path_buf(), 30);
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    let blobs = [&LETTERS[..], &[DUPLICATE]].concat();
    let mut blobs: Vec<_> = blobs.into_iter().map(Sample::blob).collect();
    blobs.push(("shop/orders/billing/2026/11/20/7/strange.json".to_owned(), "{".to_owned()));
    sample_letters::write(&data.join("dead-letters"), &blobs);
    let container = TestContainer::bucket(&aws.endpoint(), "s3://dead-letters");
    (aws, container)
}

/// The only file of the cache.
fn cache_file(container: &TestContainer) -> PathBuf {
    let files = std::fs::read_dir(container.cache().join("lastmile/dead-letters"));
    let mut files =
        files.expect("there is a cache").map(|file| file.expect("it can be listed").path());
    let file = files.next().expect("there is a file");
    assert_eq!(files.next(), None);
    file
}

/// The outputs and the exit code, without what depends on the number of requests and on time.
fn said(container: &TestContainer, arguments: &[&str], is_off: bool) -> (String, u64) {
    let mut command = container.command(arguments);
    if is_off {
        command.env("LASTMILE_CACHE", "off");
    }
    let output = command.output().expect("the program runs");
    let is_same = |line: &&str| !line.contains(" storage request");
    let errors = text(&output.stderr);
    let errors: Vec<&str> = errors.lines().filter(is_same).collect();
    let printed = format!("{:?}\n{}\n{errors:#?}", output.status.code(), text(&output.stdout));
    (
        printed,
        if errors.len() < text(&output.stderr).lines().count() { requests(&output) } else { 0 },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_prints_the_same_with_and_without_the_cache() {
    let data = tempfile::tempdir().expect("a folder can be made");
    let (aws, container) = bucket(data.path()).await;
    for arguments in COMMANDS {
        let without = said(&container, arguments, true);
        assert!(!container.cache().exists(), "{arguments:?} wrote a cache");
        let first = said(&container, arguments, false);
        let second = said(&container, arguments, false);
        assert_eq!((&first.0, &second.0), (&without.0, &without.0), "{arguments:?}");
        // A filter without a match may read everything twice.
        assert!(first.1 <= without.1, "{arguments:?}");
        assert!(second.1 < first.1 || second.1 == 0, "{arguments:?}: {} of {}", second.1, first.1);
        std::fs::remove_dir_all(container.cache()).expect("a folder can be removed");
    }
    aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_new_blobs_are_read_and_a_purge_removes_its_own_from_the_cache() {
    let data = tempfile::tempdir().expect("a folder can be made");
    let (aws, container) = bucket(data.path()).await;
    let (printed, first) = said(&container, &["why"], false);
    assert!(!printed.contains("to read"), "few blobs are not counted: {printed}");
    let (_, second) = said(&container, &["why"], false);
    // The blob that is no dead letter is read, and reported, each time.
    assert_eq!(first - second, LETTERS.len() as u64 + 1);
    let cached = std::fs::read_to_string(cache_file(&container)).expect("text");
    assert!(cached.contains("order-1") && !cached.contains("specversion"), "{cached}");

    let new = Sample { number: 9, ..LETTERS[0] };
    sample_letters::write(&data.path().join("dead-letters"), &[new.blob()]);
    let (_, third) = said(&container, &["why", "--by", "reason"], false);
    assert_eq!(third, second + 1);

    let purged = said(&container, &["purge", "--id", "order-9", "--yes"], false).0;
    assert!(purged.contains("1 dead letter removed"), "{purged}");
    let cached = std::fs::read_to_string(cache_file(&container)).expect("text");
    assert!(cached.contains("order-1") && !cached.contains("order-9"), "{cached}");

    let mut wrong = container.command(&["list"]);
    let output = wrong.env("LASTMILE_CACHE", "no").output().expect("the program runs");
    let expected = "LASTMILE_CACHE is \"no\", but the only valid value is \"off\"";
    assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    let unusable = container.command(&["list"]).env("XDG_CACHE_HOME", "/dev/null").output();
    let unusable = unusable.expect("the program runs");
    assert_eq!(unusable.status.code(), Some(0));
    assert!(text(&unusable.stderr).contains("the cache of dead letters cannot be used: "));
    aws.stop().await;
}
