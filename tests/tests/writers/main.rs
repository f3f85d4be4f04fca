//! Processes that change a catalogue in a folder at once, with the removal of garbage and a reader beside them, and
//! processes that are killed while they do. `emulated_aws` has the first for a bucket.

mod aging;
mod killed;

use std::io::Write as _;

use lastmile_tests::writers::{Ledger, Place, race, runtime};

use aging::Aging;

/// The command line.

#[test]
fn of_two_writers_beside_the_removal_of_garbage_and_a_reader_no_change_is_lost() {
    race_in_folder(100);
}

#[test]
#[ignore = "takes minutes: run by hand after a change of the protocol or of storage"]
fn of_a_thousand_changes_of_two_writers_none_is_lost() {
    race_in_folder(1_000);
}

fn race_in_folder(changes: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, ledger) = (Place::in_folder(folder.path()), Ledger::default());
    let aging = Aging::of(&place, folder.path());
    let raced = race(&place, &ledger, changes, || {
        runtime().block_on(aging.age_replaced(&ledger));
        place.collect_garbage()
    });
    aging.age_all();
    let left = place.collect_garbage();
    assert_eq!(aging.objects(), aging.needed([raced.newest.id].into_iter()));
    let (reads, removed) = (raced.reads, raced.removed);
    report(format_args!(
        "{changes} changes, {reads} versions read, {removed} objects removed meanwhile and {left} afterwards"
    ));
    assert!(removed > 0 && reads > 0);
}

/// Written past the test harness, which shows no output of tests that pass.
fn report(figures: impl std::fmt::Display) {
    writeln!(std::io::stderr(), "{figures}").expect("standard error is writable");
}
