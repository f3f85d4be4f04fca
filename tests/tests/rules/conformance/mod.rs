//! Suites of other projects, run here: how many of their cases pass, and which depart on purpose.
//!
//! `tests/conformance` runs these tests and prints their tables. The cases of Knative's suites and of the simulator of
//! Event Grid are copied here, with their names. The other suites read files of other projects from `../shared`, beside
//! the repository; no other test reads a file outside of it.

mod advanced_filter;
mod binding;
mod cesql;
mod corpus;
mod dead_letters;
mod events;
mod filter_values;
mod filters;
mod knative;
mod knative_fields;
mod manifests;
mod retries;
mod simulator;
mod tables;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lastmile_tests::conformance::{
    DEPARTURES, DEPARTURES_HEAD, Departure, SUITES_HEAD, departure_rows,
};
use lastmile_tests::document::assert_table;

/// A folder of `../shared`. Reports each missing folder once, past the test harness, which would swallow the line.
fn outside(folder: &str) -> Option<PathBuf> {
    static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(folder);
    if path.exists() {
        return Some(path);
    }
    if MISSING.lock().expect("no test panics here").insert(folder.to_owned()) {
        let line =
            format!("SKIPPED: conformance: ../shared/{folder} is not beside the repository\n");
        std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    }
    None
}

#[test]
fn the_docs_show_the_results_of_every_suite() {
    // These need no files of other projects: each case is checked here in any case.
    let [statuses, waits, broker, channel, headers, filters, binding] = [
        retries::statuses(),
        retries::waits(),
        knative::broker(),
        knative::channel(),
        knative::headers(),
        filters::results(),
        binding::results(),
    ];
    let with_corpus = [tables::results(), events::format_results(), cesql::results()];
    // Without all of their files there is no whole table to compare.
    let [Some(tables), Some(format), Some(cesql)] = with_corpus else { return };
    let suites =
        [tables, statuses, waits, broker, channel, headers, filters, format, binding, cesql];
    let rows = suites.map(|results| results.row());
    assert_table("reference/conformance.md", "suites", SUITES_HEAD, &rows);
}

#[test]
fn the_docs_list_exactly_the_departures_of_the_tests() {
    for (index, Departure { name, .. }) in DEPARTURES.iter().enumerate() {
        let earlier = DEPARTURES[..index].iter().any(|departure| departure.name == *name);
        assert!(!earlier, "{name} is listed twice");
    }
    assert_table("reference/conformance.md", "departures", DEPARTURES_HEAD, &departure_rows());
}
