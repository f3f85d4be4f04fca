//! Processes that change a topic in a folder at once, with a reader beside them, and processes that are killed while they
//! do. `emulated_aws` has the first for a bucket.

mod killed;

use std::io::Write as _;

use lastmile_tests::writers::{Ledger, Place, race};

#[test]
fn of_two_writers_beside_a_reader_no_change_is_lost() {
    race_in_folder(100);
}

#[test]
#[ignore = "takes minutes: run by hand after a change of writing or of storage"]
fn of_a_thousand_changes_of_two_writers_none_is_lost() {
    race_in_folder(1_000);
}

fn race_in_folder(changes: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, ledger) = (Place::in_folder(folder.path()), Ledger::default());
    let reads = race(&place, &ledger, changes);
    report(format_args!("{changes} changes, read {reads} times meanwhile"));
    assert!(reads > 0);
}

/// Written past the test harness, which shows no output of tests that pass.
fn report(figures: impl std::fmt::Display) {
    writeln!(std::io::stderr(), "{figures}").expect("standard error is writable");
}
