//! Tables of the documentation that tests generate: `docs` say what the tests found.
//!
//! A table is between `<!-- NAME -->` and `<!-- /NAME -->`. With `UPDATE_GOLDEN` set, it is written
//! instead of compared, like all golden files.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Compares the table of this name in a file of `docs` with these rows.
///
/// # Panics
/// If the file has no such table, or a different one.
#[track_caller]
pub fn assert_table(file: &str, name: &str, head: &str, rows: &[String]) {
    // Tests run concurrently, and each of them writes the whole file.
    static WRITING: Mutex<()> = Mutex::new(());
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let found =
        text.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?)));
    let Some((before, (table, after))) = found else { panic!("{file} has no table {name}") };
    let rule = "|---".repeat(head.matches('|').count() - 1);
    let wanted = format!("{head}\n{rule}|\n{}\n", rows.join("\n"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let written = fs::write(&path, format!("{before}{open}{wanted}{close}{after}"));
        return written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert_eq!(table, wanted, "the table {name} of {file}; UPDATE_GOLDEN=1 writes it");
}
