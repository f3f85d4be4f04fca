//! `infra/athena.sql`, checked against the blobs that are written.
//!
//! The tests have no Athena. The tables' properties are checked against the keys of blobs, and
//! views and queries run, translated, over the golden blobs of all five formats (`athena/ask.py`
//! says how). The view has to report each dead letter as [`delivery::deadletter::stored`] reads it.
//! DuckDB and jq run the examples of the page over the blobs as they are. A machine without Python or jq skips a test and reports that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use delivery::deadletter::stored;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::time::moment;
use lastmile_tests::libraries;
use lastmile_tests::snippets::{self, Snippet};
use serde_json::{Value, json};
use uuid::Uuid;

/// The folder that the sample queries read.
const FOLDER: &str = "shop/orders/billing/2026/11/20/7";
/// A replayed dead letter, one of two in its blob.
const REPLAYED: &str = "769012cb-982e-5281-a432-6457e5b6b038";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Writes every golden blob, one invalid blob, and the ledger of a replay; returns the dead letters
/// by blob and id.
fn container(root: &Path) -> BTreeMap<(String, String), StoredDeadLetter> {
    let (blobs, ledger) = (root.join(FOLDER), root.join("_replays/job"));
    fs::create_dir_all(&blobs)
        .and_then(|()| fs::create_dir_all(&ledger))
        .expect("folders can be made");
    let mut letters = BTreeMap::new();
    for entry in fs::read_dir(here("golden/blobs")).expect("there are golden blobs") {
        let path = entry.expect("a folder can be read").path();
        let (name, bytes) = (path.file_name().expect("a name"), fs::read(&path).expect("a blob"));
        fs::write(blobs.join(name), &bytes).expect("a file can be written");
        let key = format!("{FOLDER}/{}", name.to_str().expect("a plain name"));
        for letter in stored::read(&key, "", &bytes).expect("a golden blob is valid") {
            letters
                .insert((format!("s3://letters/{key}"), letter.delivery_id().to_string()), letter);
        }
    }
    fs::write(blobs.join("cut.json"), "[{\"event\":").expect("a file can be written");
    let line = |letter: &str, state: &str| json!({"letter": letter, "delivery": letter, "state": state, "at": "2026-11-20T09:00:00.0000000Z"});
    let refused = "82bad657-6b5b-5e8e-bf31-5bb1bafb611c";
    let lines = format!("{}\n{}\n", line(REPLAYED, "sent"), line(refused, "refused"));
    fs::write(ledger.join("1.ndjson"), lines).expect("a file can be written");
    fs::write(ledger.join("plan.ndjson"), format!("{}\n", json!({"v": 1, "job": "job"})))
        .expect("a file can be written");
    letters
}

/// The statements of `infra/athena.sql`, and the query of the page.
fn script() -> String {
    let question = of_page("sql");
    let statements =
        fs::read_to_string(here("../infra/athena.sql")).expect("the statements can be read");
    format!("{statements}\n-- Question: of the page?\n{}", question.text)
}

/// The one example of the page in this language.
fn of_page(language: &str) -> Snippet {
    let mut page = snippets::of_page("dead-letters.md");
    page.retain(|of| of.language == language);
    let [example] = &page[..] else { panic!("the page has one example in {language}: {page:#?}") };
    example.clone()
}

/// What `ask.py` reports about the container; `None`, reported as skipped, without Python.
fn run_queries(root: &Path) -> Option<Value> {
    let sources = here("tests/athena");
    let python = libraries::python("the Athena queries")?;
    let statements = root.join("statements.sql");
    fs::write(&statements, script()).expect("a file can be written");
    let mut ask = Command::new(python);
    let done =
        ask.arg(sources.join("ask.py")).arg(statements).arg(root).output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(serde_json::from_slice(&done.stdout).expect("it prints JSON"))
}

/// A time as DuckDB writes it, `2026-11-20 07:03:00.123+00`, in milliseconds.
fn moment_ms(value: &Value) -> Option<u64> {
    let text = value.as_str()?.replace(' ', "T").replace("+00", "Z");
    Some(moment::parse(&text).unwrap_or_else(|| panic!("{text} is not a valid time")))
}

/// The columns of the view that the reader has too.
fn columns_of_view(row: &Value) -> Value {
    json!({
        "subscription": row["subscription"], "reason": row["reason"], "outcome": row["outcome"],
        "status": row["status"], "attempts": row["attempts"], "published": moment_ms(&row["published_at"]),
        "attempted": moment_ms(&row["last_attempt_at"]), "destination": row["destination"],
        "response": row["last_response"], "detail": row["detail"], "sink_error": row["sink_error"],
        "sink": row["sink_reason"], "sink_destination": row["sink_destination"],
    })
}

fn expected(letter: &StoredDeadLetter) -> Value {
    json!({
        "subscription": letter.subscription.name, "reason": letter.reason, "outcome": letter.outcome,
        "status": letter.status, "attempts": letter.attempts, "published": letter.published_ms,
        "attempted": letter.last_attempt_ms, "destination": letter.destination,
        "response": letter.last_response, "detail": letter.detail, "sink_error": letter.sink_error,
        "sink": letter.sink.as_ref().map(|sink| sink.reason.as_str()),
        "sink_destination": letter.sink.as_ref().and_then(|sink| sink.destination.as_deref()),
    })
}

fn texts<'a>(rows: &'a Value, name: &str) -> Vec<&'a str> {
    rows.as_array().expect("rows").iter().filter_map(|row| row[name].as_str()).collect()
}

fn assert_partitions_match_the_keys(tables: &Value) {
    let lines = &tables["deadletter_lines"];
    let names = ["namespace", "topic", "subscription", "year", "month", "day", "hour"];
    assert_eq!(lines["partitions"], json!(names));
    let properties = &lines["properties"];
    assert_eq!(properties["projection.enabled"], "true");
    let template = names.map(|name| format!("${{{name}}}")).join("/");
    assert_eq!(
        properties["storage.location.template"],
        format!("s3://DEAD_LETTER_BUCKET/{template}/")
    );
    for name in &names[..3] {
        assert_eq!(properties[format!("projection.{name}.type")], "injected");
    }
    for (name, from, to) in [("month", 1, 12), ("day", 1, 31), ("hour", 0, 23)] {
        assert_eq!(properties[format!("projection.{name}.range")], format!("{from},{to}"));
        // With `digits`, numbers would have leading zeros.
        assert_eq!(properties[format!("projection.{name}.digits")], Value::Null);
    }
}

fn assert_view_matches_the_reader(
    rows: &Value,
    mut letters: BTreeMap<(String, String), StoredDeadLetter>,
) {
    for row in rows.as_array().expect("rows") {
        let path = row["path"].as_str().expect("a path").to_owned();
        let Some(id) = row["deadletterid"].as_str() else {
            assert!(path.ends_with("/cut.json"), "{row:#}");
            continue;
        };
        let letter = letters
            .remove(&(path, id.to_owned()))
            .unwrap_or_else(|| panic!("no such dead letter: {row:#}"));
        assert_eq!(columns_of_view(row), expected(&letter), "{row:#}");
        for (name, expected) in [
            ("event_id", &letter.event_id),
            ("event_type", &letter.event_type),
            ("event_source", &letter.source),
        ] {
            assert!(
                expected.is_none() || row[name].as_str() == expected.as_deref(),
                "{name} of {row:#}: {expected:?}"
            );
        }
    }
    assert_eq!(letters.into_keys().collect::<Vec<_>>(), [], "the view omits dead letters");
}

fn assert_queries_return_rows(
    questions: &Value,
    letters: &BTreeMap<(String, String), StoredDeadLetter>,
) {
    let answered =
        ["why?", "what became of one event?", "which endpoints are slow?", "of the page?"];
    for question in answered {
        assert!(
            questions[question].as_array().is_some_and(|rows| rows.len() > 1),
            "{question}: {questions:#}"
        );
    }
    // How many there are depends on the day; that the query runs does not.
    assert!(questions["how many of the last day, by reason?"].is_array());
    let waiting = texts(&questions["which were not sent again, the oldest first?"], "deadletterid");
    let expected = letters.keys().filter(|(_, id)| id != REPLAYED).count();
    assert_eq!(waiting.len(), expected);
    assert!(!waiting.contains(&REPLAYED));
    let unread = texts(&questions["is there anything that cannot be read?"], "path");
    assert_eq!(unread, [format!("s3://letters/{FOLDER}/cut.json")]);
}

#[test]
fn athena_reads_every_dead_letter_of_every_format_as_the_reader_does() {
    let root = tempfile::tempdir().expect("a folder can be made");
    let letters = container(root.path());
    assert!(letters.len() > 40, "{letters:#?}");
    let Some(reported) = run_queries(root.path()) else { return };
    assert_partitions_match_the_keys(&reported["tables"]);
    assert_queries_return_rows(&reported["questions"], &letters);
    assert_view_matches_the_reader(&reported["deadletters"], letters);
}

/// A folder `letters` with every golden blob, and their dead letters.
fn copied_letters(root: &Path) -> Vec<StoredDeadLetter> {
    let letters = container(root);
    fs::remove_file(root.join(FOLDER).join("cut.json")).expect("a file can be removed");
    fs::remove_dir_all(root.join("_replays")).expect("a folder can be removed");
    fs::create_dir(root.join("letters")).expect("a folder can be made");
    fs::rename(root.join("shop"), root.join("letters/shop")).expect("a folder can be moved");
    letters.into_values().collect()
}

#[test]
fn duckdb_counts_dead_letters_of_every_format_as_the_page_says() {
    const QUERY: &str = "import duckdb, json, sys\n\
        print(json.dumps(duckdb.execute(sys.argv[1]).fetchall()))";
    let Some(python) = libraries::python("DuckDB reads dead letters") else { return };
    let root = tempfile::tempdir().expect("a folder can be made");
    let mut expected: BTreeMap<(String, Option<String>), BTreeSet<Uuid>> = BTreeMap::new();
    for letter in copied_letters(root.path()) {
        let status = letter.status.map(|status| status.to_string());
        let id = letter.delivery_id();
        expected.entry((letter.reason, status)).or_default().insert(id);
    }
    let mut query = Command::new(python);
    query.args(["-c", QUERY, &of_page("duckdb").text]).current_dir(root.path());
    let done = query.output().expect("Python starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let rows: Vec<(String, Option<String>, usize)> =
        serde_json::from_slice(&done.stdout).expect("rows");
    let counted: BTreeMap<_, _> =
        rows.into_iter().map(|(reason, status, count)| ((reason, status), count)).collect();
    let expected = expected.into_iter().map(|(group, ids)| (group, ids.len())).collect();
    assert_eq!(counted, expected);
}

#[test]
fn jq_prints_dead_letters_of_every_format_as_the_page_says() {
    let root = tempfile::tempdir().expect("a folder can be made");
    let mut expected: Vec<String> = copied_letters(root.path())
        .into_iter()
        .map(|letter| {
            let destination = letter.destination.as_deref().unwrap_or("-");
            format!("{}\t{}\t{destination}", letter.delivery_id(), letter.reason)
        })
        .collect();
    let mut jq = Command::new("jq");
    jq.arg("-r").arg(of_page("jq").text);
    let blobs = fs::read_dir(root.path().join("letters").join(FOLDER)).expect("there are blobs");
    jq.args(blobs.map(|entry| entry.expect("a folder can be read").path()));
    let Ok(done) = jq.output() else {
        return libraries::skipped("jq reads dead letters", "jq");
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let printed = String::from_utf8(done.stdout).expect("text");
    let mut printed: Vec<&str> = printed.lines().collect();
    printed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(printed, expected);
}
