//! `infra/athena.sql`, checked against the blobs that `deadletter` writes.
//!
//! The tests have no Athena. They compare the tables' properties with the keys of blobs. Views and
//! queries are translated and run over the golden blobs of all five formats (see `athena/ask.py`).
//! The view must report each dead letter as [`delivery::deadletter::stored`] reads it. DuckDB and
//! jq run the examples of the page over the unchanged blobs. On a machine without Python or jq, a
//! test is reported as skipped.

use std::collections::BTreeMap;
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
/// The ids in the golden blobs, many of which have the same delivery.
const GOLDEN_IDS: [&str; 2] =
    ["3981ba0c-1072-5698-92be-c1c5991fb55c", "ec9c25c9-4a9a-56a3-8389-a25ca9d13e7f"];
/// The number of the replayed dead letter.
const REPLAYED: u128 = 1;
/// The number of the dead letter whose replay was refused.
const REFUSED: u128 = 2;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Writes every golden blob with a unique id, an invalid blob, and the ledger of a replay. Returns
/// the dead letters by blob.
fn container(root: &Path) -> BTreeMap<String, StoredDeadLetter> {
    let (blobs, ledger) = (root.join(FOLDER), root.join("_replays/job"));
    fs::create_dir_all(&blobs)
        .and_then(|()| fs::create_dir_all(&ledger))
        .expect("folders can be made");
    let mut letters = BTreeMap::new();
    let golden = fs::read_dir(here("golden/blobs")).expect("there are golden blobs");
    for (number, entry) in (1..).zip(golden) {
        let path = entry.expect("a folder can be read").path();
        let id = Uuid::from_u128(number).to_string();
        let blob = fs::read_to_string(path).expect("a blob");
        let blob = GOLDEN_IDS.iter().fold(blob, |blob, golden| blob.replace(golden, &id));
        let key = format!("{FOLDER}/{id}.json");
        fs::write(root.join(&key), &blob).expect("a file can be written");
        let letter = stored::read(&key, "", blob.as_bytes()).expect("a golden blob is valid");
        letters.insert(format!("s3://letters/{key}"), letter);
    }
    fs::write(blobs.join("cut.json"), "[{\"event\":").expect("a file can be written");
    let line = |number: u128, state: &str| {
        let letter = Uuid::from_u128(number).to_string();
        json!({"letter": letter, "delivery": letter, "state": state, "at": "2026-11-20T09:00:00.0000000Z"})
    };
    let lines = format!("{}\n{}\n", line(REPLAYED, "sent"), line(REFUSED, "refused"));
    fs::write(ledger.join("1.ndjson"), lines).expect("a file can be written");
    fs::write(ledger.join("plan.ndjson"), format!("{}\n", json!({"v": 1, "job": "job"})))
        .expect("a file can be written");
    letters
}

/// Returns the statements of `infra/athena.sql` and the query of the page.
fn script() -> String {
    let question = of_page("sql");
    let statements =
        fs::read_to_string(here("../infra/athena.sql")).expect("the statements can be read");
    format!("{statements}\n-- Question: of the page?\n{}", question.text)
}

/// Returns the only example of the page in this language.
fn of_page(language: &str) -> Snippet {
    let mut page = snippets::of_page("guides/dead-letters.md");
    page.retain(|snippet| snippet.language == language);
    let [example] = &page[..] else { panic!("the page has one example in {language}: {page:#?}") };
    example.clone()
}

/// Returns the report of `ask.py` about the container; `None`, reported as skipped, without Python.
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

/// Parses a time in the format of DuckDB, `2026-11-20 07:03:00.123+00`, to milliseconds.
fn moment_ms(value: &Value) -> Option<u64> {
    let text = value.as_str()?.replace(' ', "T").replace("+00", "Z");
    Some(moment::parse(&text).unwrap_or_else(|| panic!("{text} is not a valid time")))
}

/// The columns of the view that the reader also has.
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

fn assert_view_matches_the_reader(rows: &Value, mut letters: BTreeMap<String, StoredDeadLetter>) {
    for row in rows.as_array().expect("rows") {
        let path = row["path"].as_str().expect("a path").to_owned();
        let Some(id) = row["deadletterid"].as_str() else {
            assert!(path.ends_with("/cut.json"), "{row:#}");
            continue;
        };
        let letter =
            letters.remove(&path).unwrap_or_else(|| panic!("no such dead letter: {row:#}"));
        assert_eq!(id, letter.id.to_string());
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
    assert!(letters.is_empty(), "the view omits dead letters: {:?}", letters.keys());
}

fn assert_queries_return_rows(questions: &Value, letters: &BTreeMap<String, StoredDeadLetter>) {
    let answered =
        ["why?", "what became of one event?", "which endpoints are slow?", "of the page?"];
    for question in answered {
        assert!(
            questions[question].as_array().is_some_and(|rows| rows.len() > 1),
            "{question}: {questions:#}"
        );
    }
    // The number of rows depends on the day, so only the success of the query is checked.
    assert!(questions["how many of the last day, by reason?"].is_array());
    let waiting = texts(&questions["which were not sent again, the oldest first?"], "deadletterid");
    assert_eq!(waiting.len(), letters.len() - 1);
    assert!(!waiting.contains(&Uuid::from_u128(REPLAYED).to_string().as_str()));
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

/// Writes a folder `letters` with every golden blob. Returns the dead letters.
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
    let mut expected: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    for letter in copied_letters(root.path()) {
        let status = letter.status.map(|status| status.to_string());
        *expected.entry((letter.reason, status)).or_default() += 1;
    }
    let mut query = Command::new(python);
    query.args(["-c", QUERY, &of_page("duckdb").text]).current_dir(root.path());
    let done = query.output().expect("Python starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let rows: Vec<(String, Option<String>, usize)> =
        serde_json::from_slice(&done.stdout).expect("rows");
    let counted: BTreeMap<_, _> =
        rows.into_iter().map(|(reason, status, count)| ((reason, status), count)).collect();
    assert_eq!(counted, expected);
}

#[test]
fn jq_prints_dead_letters_of_every_format_as_the_page_says() {
    let root = tempfile::tempdir().expect("a folder can be made");
    let mut expected: Vec<String> = copied_letters(root.path())
        .into_iter()
        .map(|letter| {
            let destination = letter.destination.as_deref().unwrap_or("-");
            format!("{}\t{}\t{destination}", letter.id, letter.reason)
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
