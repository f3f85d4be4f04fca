//! Dead letters at the command line: found, shown, grouped, replayed, in a folder and in S3.

use std::process::Output;

use local::aws::{LocalAws, LocalAwsConfig};
use serde_json::Value;

use crate::sample_letters;
use crate::sample_letters::{DUPLICATE, LETTERS, Sample, TestContainer, lines, requests, text};

/// The sample dead letters, one of them in two blobs.
fn samples() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container.write(&[DUPLICATE.blob()]);
    container
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn dead_letters_are_listed_newest_first_and_a_guid_counts_once() {
    let container = samples();
    insta::assert_snapshot!(stdout(&container.run(&["list"])));
    let two = container.run(&["list", "--limit", "2", "--output", "ndjson"]);
    insta::assert_snapshot!(stdout(&two));
    let all: Vec<Value> =
        serde_json::from_slice(&container.run(&["list", "--output", "json"]).stdout).expect("JSON");
    assert_eq!(all.len(), LETTERS.len());
}

#[test]
fn filters_decide_which_dead_letters_match() {
    let container = samples();
    for (filter, events) in [
        (&["--subscription", "mail"][..], "order-5"),
        (&["--subscription", "shop/orders/billing", "--status", "5xx"], "order-4 order-2 order-1"),
        (&["--outcome", "TimedOut,NotFound"], "order-5 order-3"),
        (&["--outcome", "timeout,404"], "order-5 order-3"),
        (&["--outcome", "timedout", "--outcome", "notFound"], "order-5 order-3"),
        (&["--reason", "UndeliverableDueToHttpNotFound"], "order-3"),
        (&["--type", "order.p*"], "order-3"),
        (&["--id", "order-2", "--id", "order-5"], "order-5 order-2"),
        (&["--destination", "https://mail.*", "--namespace", "shop"], "order-5"),
        (&["--since", "2026-11-20T10:00:00Z"], "order-5 order-4"),
        (&["--since", "2026-11-20", "--until", "2026-11-20T10:00:00Z"], "order-3 order-2"),
        (&["--topic", "shop/orders", "--source", "*", "--until", "2026-11-20"], "order-1"),
    ] {
        let output = container.run(&[&["list", "--output", "ndjson"], filter].concat());
        let found = lines(&output);
        let found: Vec<&str> =
            found.iter().map(|line| line["event_id"].as_str().unwrap_or("-")).collect();
        assert_eq!(found.join(" "), events, "{filter:?} {}", text(&output.stderr));
    }
}

#[test]
fn show_finds_a_dead_letter_by_id_key_or_event() {
    let container = samples();
    let shown = stdout(&container.run(&["show", "00000000-0000-0000-0000-000000000004"]));
    insta::assert_snapshot!(shown);
    let path = format!("letters/{}", LETTERS[3].key());
    for name in ["order-4".to_owned(), LETTERS[3].key(), path] {
        assert_eq!(stdout(&container.run(&["show", &name])), shown, "{name}");
    }
    assert_eq!(stdout(&container.run(&["show", "--raw", "order-4"])), LETTERS[3].blob().1);
    let json: Value =
        serde_json::from_str(&stdout(&container.run(&["show", "order-4", "--output", "json"])))
            .expect("JSON");
    assert_eq!(
        (&json["event"]["id"], &json["history"][1]["status"]),
        (&"order-4".into(), &503.into())
    );
    assert_eq!(container.run(&["show", "order-9"]).status.code(), Some(1));
}

#[test]
fn why_sums_up_what_happened() {
    let container = samples();
    insta::assert_snapshot!(stdout(&container.run(&["why", "--until", "2026-11-21"])));
    let by_all = "reason,subscription,destination,hour";
    insta::assert_snapshot!(stdout(&container.run(&["why", "--by", by_all])));
    let causes: Value =
        serde_json::from_slice(&container.run(&["why", "--output", "json"]).stdout).expect("JSON");
    assert_eq!((&causes[0]["count"], &causes[0]["title"]), (&3.into(), &"503 overloaded".into()));
    let by_hour = container.run(&["why", "--by", "hour", "--output", "json"]);
    let by_hour: Value = serde_json::from_slice(&by_hour.stdout).expect("JSON");
    assert_eq!(by_hour["hours"]["2026-11-20T09:00:00.0000000Z"], 2);
    assert_eq!((&by_hour["letters"], by_hour.get("reasons")), (&5.into(), None));
}

#[test]
fn every_event_is_listed_whole_and_only_matches_are_purged() {
    let container = samples();
    let full = lines(&container.run(&["list", "--full", "--id", "order-1"]));
    assert_eq!(full[0]["event"]["data"]["n"], 1);
    let counted = stdout(&container.run(&[
        "purge",
        "--subscription",
        "billing",
        "--status",
        "503",
        "--dry-run",
    ]));
    assert!(counted.starts_with("3 dead letters would be removed"), "{counted}");
    assert_eq!(lines(&container.run(&["list", "--output", "ndjson"])).len(), LETTERS.len());
    let purged =
        stdout(&container.run(&["purge", "--subscription", "billing", "--status", "503", "--yes"]));
    assert!(
        purged.contains("removed; a bucket that keeps versions frees the space later"),
        "{purged}"
    );
    assert_eq!(lines(&container.run(&["list", "--output", "ndjson"])).len(), LETTERS.len() - 3);
    // What is no dead letter stays, and is reported.
    let key = "shop/orders/billing/2026/11/20/7/11111111-1111-5111-8111-111111111111.json";
    container.write(&[(key.to_owned(), "[{}, {}]".to_owned())]);
    let all = container.run(&["purge", "--all", "--yes"]);
    assert_eq!(all.status.code(), Some(1));
    let said = text(&all.stderr);
    assert!(said.contains("not dead letters: 1 blob") && said.contains("array of 2"), "{said}");
}

#[test]
fn exit_codes_distinguish_nothing_found_from_failure_and_errors_name_valid_values() {
    let container = samples();
    assert_eq!(container.run(&["list", "--namespace", "other"]).status.code(), Some(1));
    assert_eq!(container.run(&["jobs"]).status.code(), Some(1));
    for (arguments, said) in [
        (&["list", "--reason", "Nothing"][..], "MaxDeliveryAttemptsExceeded, TimeToLiveExceeded"),
        (&["list", "--outcome", "Nothing"], "TimedOut, Busy"),
        (&["list", "--outcome", "TimedOutt"], "did you mean TimedOut?"),
        (&["list", "--outcome", "timout"], "did you mean timeout?"),
        (&["list", "--reason", "TimeToLiveExceded"], "did you mean TimeToLiveExceeded?"),
        (&["list", "--status", "5"], "5xx"),
        (&["list", "--status", "6xx"], "a status of HTTP is 100 to 599"),
        (&["list", "--status", "500-400"], "ends before it begins"),
        (&["list", "--since", "2026-11-21", "--until", "2026-11-20"], "nothing can match"),
        (&["jobs", "a/b"], "is not a valid job name"),
        (&["list", "--since", "yesterday"], "2h, 7d or PT1H"),
        (&["list", "--container", "nowhere"], "lastmile demo"),
        (&["list", "--every", "1s"], "--follow"),
        (&["list", "--follow", "--output", "json"], "cannot be used with"),
        (&["list", "--full", "--limit", "1"], "cannot be used with"),
        (&["replay"], "confirm with --yes"),
        (&["purge"], "--all"),
        (&["purge", "--all"], "confirm with --yes"),
        (&["purge", "--all", "--status", "503"], "--all contradicts"),
        (&["list", "--topic", "a/b/c"], "neither a name nor a full name"),
        (&["list", "--reason", "Nothing"], "TimeToLiveExceeded"),
        (&["replay", "--yes", "--rate", "fast"], "50/s"),
        (&["replay", "--yes", "--resume", "one", "--status", "503"], "cannot be used with"),
        (
            &["replay", "--yes", "--queue-url", "http://127.0.0.1:1/000000000000/events"],
            "is an events queue",
        ),
    ] {
        let output = container.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", text(&output.stderr));
    }
    for (arguments, said) in [
        (&["replay", "--yes", "--resume", "nothing"][..], "there is no job nothing"),
        (&["jobs", "nothing"], "there is no job nothing in letters; nor any other"),
        (
            &["replay", "--yes", "--queue-url", "http://127.0.0.1:1/000000000000/retry"],
            "start `lastmile dev",
        ),
    ] {
        let output = container.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(!container.path().join("_replays").exists());
}

#[test]
fn a_blob_that_is_not_a_dead_letter_is_reported_and_hides_no_other() {
    let container = samples();
    container
        .write(&[("shop/orders/billing/2026/11/20/7/strange.json".to_owned(), "{".to_owned())]);
    container.write(&[("readme.txt".to_owned(), "not ours".to_owned())]);
    let output = container.run(&["list", "--output", "ndjson"]);
    assert_eq!(lines(&output).len(), LETTERS.len());
    assert!(
        text(&output.stderr).contains("not dead letters: 1 blob, for example"),
        "{}",
        text(&output.stderr)
    );
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

#[test]
fn completions_know_the_verbs() {
    let container = samples();
    for shell in ["bash", "zsh", "fish"] {
        let output =
            container.lastmile(&["completions", shell]).output().expect("the program runs");
        assert!(text(&output.stdout).contains("rescue"), "{shell}");
    }
}
