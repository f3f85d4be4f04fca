//! Tables of the documentation that tests read or write.
//!
//! A table is between `<!-- NAME -->` and `<!-- /NAME -->`. [`rows`] reads one with rules. One with results is compared; under `tests/conformance --write`, which
//! `scripts/generate` calls, they write it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Set by `tests/conformance --write`.
const WRITES_TABLES: &str = "LASTMILE_WRITE_TABLES";

/// The rows of the table of this name in a file of `docs`, each as its cells.
///
/// # Panics
/// If the file has no such table.
#[must_use]
#[track_caller]
pub fn rows(file: &str, name: &str) -> Vec<Vec<String>> {
    let path = path_of(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (_, rest) = text
        .split_once(&format!("<!-- {name} -->\n"))
        .unwrap_or_else(|| panic!("{file} has no table {name}"));
    let (rows, _) = rest.split_once(&format!("<!-- /{name} -->")).expect("it ends");
    let cells = |row: &str| {
        let row = row.trim().trim_start_matches('|').trim_end_matches('|');
        row.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.lines().skip(2).map(cells).collect()
}

fn path_of(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(file)
}

/// Compares the table of this name in a file of `docs` with these rows.
///
/// # Panics
/// If the file has no such table, or a different one.
#[track_caller]
pub fn assert_table(file: &str, name: &str, head: &str, rows: &[String]) {
    // Tests run concurrently, and each of them writes the whole page.
    static WRITING: Mutex<()> = Mutex::new(());
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path_of(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let found =
        text.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?)));
    let Some((before, (table, after))) = found else { panic!("{file} has no table {name}") };
    let rule = "|---".repeat(head.matches('|').count() - 1);
    let wanted = format!("{head}\n{rule}|\n{}\n", rows.join("\n"));
    if std::env::var_os(WRITES_TABLES).is_some() {
        let written = fs::write(&path, format!("{before}{open}{wanted}{close}{after}"));
        return written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert_eq!(table, wanted, "the table {name} of {file}; scripts/generate writes it");
}
