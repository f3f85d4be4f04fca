//! Documents of a container that a newer version or somebody else may have written. None begins a
//! line of a command's output. None prevents a command or the page from showing the other
//! documents.

use std::process::Output;

use axum::http::StatusCode;
use local::subscriber::{Subscriber, status_sequence};
use serde_json::json;

use crate::console_server::{ConsoleServer, hidden, status_and_text};
use crate::programs::printed;
use crate::sample_letters::{LETTERS, Sample, TestContainer, lines, text};

/// Text with which no line may begin.
const FORGED: &str = "FORGED";
/// A plan with an unknown version.
const NEWER: &str = "_replays/newer/plan.ndjson";

/// Checks that the planted text is printed, but at the beginning of no line.
fn check_lines(command: &[&str], output: &Output) {
    let (said, code) = printed(output);
    assert!(said.contains(FORGED), "{command:?} ({code:?}): {said}");
    let forged = said.lines().find(|line| line.trim_start().starts_with(FORGED));
    assert_eq!(forged, None, "{command:?} ({code:?}): {said}");
}

/// Returns a dead letter whose every member has two lines, the second of which is [`FORGED`].
fn two_lines_each() -> (String, String) {
    let two = |text: &str| format!("{text}\n{FORGED}");
    let history = json!([{"at": "2026-11-19T23:03:00Z", "outcome": two("Busy")}]);
    let sink = json!({
        "destination": two("https://sink.example.com/"), "reason": two("r"), "detail": two("d"), "history": history
    });
    let about = json!({
        "deadletterid": LETTERS[0].id(),
        "deadletterreasoncode": two("M"),
        "deadletterdetail": two("d"),
        "destination": two("https://billing.example.com/"),
        "deliveryresult": two("Busy"),
        "traceparent": two("00"),
        "sinkerror": two("e"),
        "history": history,
        "sink": sink,
    });
    let event = json!({"specversion": "1.0", "id": two("i"), "source": two("s"), "type": two("t")});
    let blob = json!({"event": event, "deadletterProperties": about});
    (LETTERS[0].key(), blob.to_string())
}

/// Returns the ledger of a job that has sent the first dead letter at this time.
fn ledger(job: &str, at: &str) -> [(String, String); 2] {
    let (id, key) = (LETTERS[0].id(), LETTERS[0].key());
    let header =
        json!({"v": 1, "job": job, "at": at, "to": "https://a.example.com/", "letters": 1});
    let entry = json!({"letter": id, "delivery": id, "state": "sent", "at": at});
    let plan = format!("{header}\n{}\n", json!({"key": key}));
    let file = |name: &str| format!("_replays/{job}/{name}.ndjson");
    [(file("plan"), plan), (file("done"), format!("{header}\n{entry}\n"))]
}

#[test]
fn no_member_of_a_document_begins_a_line() {
    let container = TestContainer::folder();
    let id = LETTERS[0].id();
    let at = format!("2026\n{FORGED}");
    let dismissal = json!({"v": 1, "letters": [id], "at": at, "by": at, "note": at}).to_string();
    let unreadable = format!("shop/orders/billing/2026/11/19/22/x\n{FORGED}.json");
    container.write(&[two_lines_each(), (unreadable, "not JSON".to_owned())]);
    container.write(&ledger("job", &at));
    container.write(&[(format!("_dismissed/{id}.ndjson"), dismissal)]);
    for verb in [
        &["show", &id][..],
        &["list", "--state", "all"],
        &["why", "--state", "all"],
        &["why", "--by", "reason,destination", "--state", "all"],
        &["jobs"],
        &["jobs", "job"],
        &["replay", "--resume", "job", "--dry-run"],
    ] {
        check_lines(verb, &container.run(verb));
    }
}

#[tokio::test]
async fn an_attempt_that_would_end_after_all_dates_is_shown_by_commands_and_the_page() {
    let container = TestContainer::folder();
    let (key, blob) = LETTERS[0].blob();
    let longest = format!("\"durationms\":{}", u64::MAX);
    container.write(&[(key, blob.replace("\"durationms\":34", &longest)), LETTERS[1].blob()]);
    let id = LETTERS[0].id();
    for verb in [
        &["list"][..],
        &["show", &id],
        &["why", "--by", "hour"],
        &["why"],
        &["list", "--since", "2026-11-19"],
    ] {
        let output = container.run(verb);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{verb:?}: {}", text(&output.stderr));
        assert!(said.contains("9999-12-30"), "{verb:?}: {said}");
    }
    let server = ConsoleServer::start(&container, &[]);
    for path in ["/", "/replay", &format!("/letters/{id}")] {
        assert!(server.page(path).await.contains("order-1") || path == "/replay", "{path}");
    }
}

/// Returns a container with the samples, the ledger of a job that has sent the first of them, and a
/// ledger of a newer version.
fn with_newer_ledger() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container.write(&ledger("known", "2026-11-21T07:03:00.0000000Z"));
    container.write(&[(NEWER.to_owned(), "{\"v\":2}\n".to_owned())]);
    container
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_does_not_repeat_what_an_unreadable_ledger_may_have_sent_unless_that_is_wanted() {
    let container = with_newer_ledger();
    let subscriber = Subscriber::listen(0).await.expect("a port");
    let url = format!("http://127.0.0.1:{}/again", subscriber.port().expect("a port"));
    let answers = status_sequence(vec![StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK], 0);
    tokio::spawn(subscriber.serve(answers, |_, _| {}));
    let replay = |more: &[&str]| {
        let output = container.run(&[&["replay", "--yes", "--to-url", &url], more].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, said, noted) = replay(&["order-2"]);
    assert_eq!((code, said.as_str()), (Some(1), ""), "{noted}");
    assert!(noted.contains(NEWER), "{noted}");
    for way in ["update lastmile", "move the folder _replays/newer to another place", "--state all"]
    {
        assert!(noted.contains(way), "{way}: {noted}");
    }
    let (code, said, noted) = replay(&["order-2", "--state", "all", "--name", "again"]);
    assert_eq!(code, Some(1), "{said}{noted}");
    assert!(
        said.contains("--resume again") && noted.contains("not shown: the replay job newer"),
        "{said}{noted}"
    );
    // A resumed job does not read the ledgers of other jobs.
    let resumed = container.run(&["replay", "--yes", "--resume", "again", "--to-url", &url]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    std::fs::rename(container.path().join("_replays/newer"), container.path().join("../newer"))
        .expect("it can be moved");
    let (code, said, noted) = replay(&["order-3"]);
    assert_eq!(code, Some(0), "{said}{noted}");
}

#[tokio::test]
async fn the_page_leaves_an_unreadable_ledger_out_and_replays_only_if_that_is_wanted() {
    let container = with_newer_ledger();
    container.write(&[("_dismissed/strange.ndjson".to_owned(), "{}\n".to_owned())]);
    let server = ConsoleServer::start(&container, &[]);
    let id = LETTERS[0].id();
    for path in ["/letters?state=all", "/jobs", &format!("/letters/{id}")] {
        let page = server.page(path).await;
        assert!(page.contains("not shown: the replay job newer"), "{path}: {page}");
        assert!(page.contains("/jobs/known"), "{path}: {page}");
        let is_named = page.contains(
            "1 record of dismissals cannot be read, for example _dismissed/strange.ndjson",
        );
        assert_eq!(is_named, path != "/jobs", "{path}: {page}");
    }
    let refused = server.page("/replay?id=order-2").await;
    assert!(refused.contains(NEWER) && !refused.contains("name=\"fingerprint\""), "{refused}");
    let wanted = server.page("/replay?id=order-2&state=all").await;
    assert!(wanted.contains("1 dead letter to send"), "{wanted}");
    let [token, shown] = ["token", "fingerprint"].map(|name| hidden(&wanted, name));
    let form = [("id", "order-2"), ("fingerprint", &shown), ("token", &token), ("job", "page")];
    let answer = server.post("/replay", &form).send().await.expect("an answer");
    let (status, said) = status_and_text(answer).await;
    assert!(status == 409 && said.contains(NEWER), "{status}: {said}");
    assert!(!container.path().join("_replays/page").exists());
    let all = ["list", "--state", "all", "--output", "ndjson"];
    assert_eq!(lines(&container.run(&all)).len(), 5);
}

#[tokio::test]
async fn the_page_does_not_show_a_removed_folder_as_a_container_without_dead_letters() {
    let container = TestContainer::folder();
    let server = ConsoleServer::start(&container, &[]);
    std::fs::remove_dir(container.path()).expect("the value is empty");
    let (status, said) = server.status_and_text("/").await;
    assert_eq!(status, 502, "{said}");
    assert!(said.contains("the folder letters no longer exists"), "{said}");
}
