//! Dead letters that a person has dismissed: left out by every verb and the page unless they are wanted.

use serde_json::Value;

use crate::console_server::ConsoleServer;
use crate::sample_letters::{LETTERS, Sample, TestContainer, lines, sample, text};

fn container() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container
}

fn count(container: &TestContainer, arguments: &[&str]) -> usize {
    lines(&container.run(&[&["list", "--output", "ndjson"], arguments].concat())).len()
}

#[test]
fn what_is_dismissed_is_left_out_until_it_is_wanted_or_the_dismissal_is_taken_back() {
    let container = container();
    let id = LETTERS[1].id();
    let done = container.run(&["dismiss", &id, "--note", "a test order\u{1b}[2J"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout), "1 dead letter dismissed\n");
    let counts = [&[][..], &["--state", "dismissed"], &["--state", "all"]];
    assert_eq!(counts.map(|state| count(&container, state)), [4, 1, 5]);
    let shown = text(&container.run(&["show", &id]).stdout);
    assert!(shown.contains("dismissed") && shown.contains("a test order"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    for by in [&["--by", "reason"][..], &[]] {
        let sum = |more: &[&str]| {
            let done = container.run(&[&["why", "--output", "json"], by, more].concat());
            let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
            match json.as_array() {
                Some(causes) => {
                    causes.iter().filter_map(|cause| cause["count"].as_u64()).sum::<u64>()
                }
                None => json["letters"].as_u64().expect("a number"),
            }
        };
        assert_eq!((sum(&[]), sum(&["--state", "open,dismissed"])), (4, 5), "{by:?}");
    }
    let replay = text(&container.run(&["replay", "--dry-run"]).stdout);
    assert!(replay.starts_with("4 dead letters to send again"), "{replay}");
    let replay = text(&container.run(&["replay", "--dry-run", "--state", "all"]).stdout);
    assert!(replay.starts_with("5 dead letters to send again"), "{replay}");
    let undone = container.run(&["undismiss", &id]);
    assert_eq!(undone.status.code(), Some(0), "{}", text(&undone.stderr));
    assert_eq!(count(&container, &[]), 5);
}

#[test]
fn a_dismissal_needs_a_note_and_a_dead_letter() {
    let container = container();
    assert_eq!(container.run(&["dismiss", &LETTERS[0].id()]).status.code(), Some(2));
    let empty = container.run(&["dismiss", &LETTERS[0].id(), "--note", " "]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("a note is needed"), "{}", text(&empty.stderr));
    let unknown = container.run(&["dismiss", "no-such-order", "--note", "x"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(!container.path().join("_dismissed").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_dismisses_with_its_token_only_and_shows_the_note() {
    let container = container();
    let server = ConsoleServer::start(&container, &[]);
    let path = format!("/letters/{}", LETTERS[0].id());
    let dismiss = format!("{path}/dismiss");
    let forged = server.post(&dismiss, &[("token", "x"), ("note", "n")]).send().await;
    assert_eq!(forged.expect("it answers").status(), 403);
    let token = server.token().await;
    let empty = server.post(&dismiss, &[("token", &token), ("note", "")]).send().await;
    assert_eq!(empty.expect("it answers").status(), 400);
    let form = [("token", token.as_str()), ("note", "known <b>bug</b>")];
    let done = server.post(&dismiss, &form).send().await.expect("it answers");
    assert_eq!(done.status(), 303);
    let page = server.page(&path).await;
    assert!(page.contains("known &lt;b&gt;bug&lt;/b&gt;"), "{page}");
    assert!(page.contains("Take the dismissal back"), "{page}");
    assert!(!server.page("/letters").await.contains(&path), "it is not listed");
    let undo = format!("{path}/undismiss");
    let undone = server.post(&undo, &[("token", &token)]).send().await.expect("it answers");
    assert_eq!(undone.status(), 303);
    assert!(server.page("/letters").await.contains(&path), "it is listed again");
}

#[test]
fn what_matches_a_filter_is_dismissed_and_taken_back_together_and_both_stay_on_record() {
    let container = container();
    let unfiltered = container.run(&["dismiss", "--note", "x"]);
    assert_eq!(unfiltered.status.code(), Some(2));
    assert!(text(&unfiltered.stderr).contains("neither an id nor a filter"), "{unfiltered:?}");
    let done = container.run(&["dismiss", "--subscription", "billing", "--note", "known"]);
    let dismissed = 5 - count(&container, &[]);
    assert!(dismissed > 1, "{done:?}");
    assert_eq!(text(&done.stdout), format!("{dismissed} dead letters dismissed\n"));
    let nothing = container.run(&["dismiss", "--subscription", "billing", "--note", "known"]);
    let noted = text(&nothing.stderr);
    assert_eq!(nothing.status.code(), Some(1), "{noted}");
    assert!(noted.contains(&format!("in other states: {dismissed} dismissed; --state all")));
    let undone = container.run(&["undismiss", "--subscription", "billing"]);
    assert!(text(&undone.stdout).contains("no longer dismissed"), "{undone:?}");
    assert_eq!(count(&container, &[]), 5);
    let records = container.path().join("_dismissed").read_dir().expect("a folder").count();
    assert_eq!(records, 2);
}

#[test]
fn a_dismissed_cause_is_reopened_by_the_next_dead_letter_alone() {
    let container = container();
    let causes = |more: &[&str]| -> Vec<Value> {
        let done = container.run(&[&["why", "--output", "json"], more].concat());
        serde_json::from_slice(&done.stdout).expect("JSON")
    };
    let first = causes(&[]).remove(0);
    let id = first["id"].as_str().expect("an id");
    let done = container.run(&["dismiss", "--cause", id, "--note", "known"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(causes(&[]).iter().all(|cause| cause["id"] != id));
    // As if that had been on the day before the next one.
    let folder = container.path().join("_dismissed");
    let record =
        folder.read_dir().expect("a folder").next().expect("a record").expect("it is read").path();
    let mut dismissal: Value =
        serde_json::from_slice(&std::fs::read(&record).expect("a record")).expect("JSON");
    dismissal["at"] = "2026-11-20T23:00:00.0000000Z".into();
    std::fs::write(&record, dismissal.to_string()).expect("it is written");
    assert!(causes(&["--state", "all"]).iter().all(|cause| cause["reopened"] == false));
    container.write(&[sample(7, (21, 10), "overloaded").blob()]);
    let again = causes(&["--cause", id]);
    assert_eq!(
        (again.len(), &again[0]["count"], &again[0]["reopened"]),
        (1, &1.into(), &true.into())
    );
    let table = text(&container.run(&["why"]).stdout);
    assert_eq!(table.matches("reopened").count(), 1, "{table}");
}

#[test]
fn a_purge_removes_what_is_in_the_wanted_state() {
    let container = container();
    let id = LETTERS[2].id();
    let done = container.run(&["dismiss", &id, "--note", "x"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let purged = container.run(&["purge", "--status", "404", "--yes"]);
    assert_eq!(purged.status.code(), Some(1), "it is not open: {purged:?}");
    let purged = container.run(&["purge", "--state", "dismissed", "--yes"]);
    assert!(text(&purged.stdout).starts_with("1 dead letter removed"), "{purged:?}");
    assert_eq!(count(&container, &["--state", "all"]), 4);
}
