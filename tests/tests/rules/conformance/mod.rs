//! Suites of other projects, run here: how many of their cases pass, and which depart on purpose.
//!
//! `tests/conformance` runs these tests and prints what they found. What the suites of Knative and the simulator of Event
//! Grid expect is written down here in our own words, with the names of their cases.

mod binding;

mod filters;
mod knative;
mod retries;
mod tables;

use lastmile_tests::conformance::{
    DEPARTURES, DEPARTURES_HEAD, Departure, SUITES_HEAD, departure_rows,
};
use lastmile_tests::document::assert_table;

use crate::{cesql, events};

#[test]
fn the_docs_show_the_results_of_every_suite() {
    let with_corpus = [tables::results(), events::format_results(), cesql::kit_results()];
    // Without the corpus there is nothing to compare; which part is missing was reported.
    let [Some(tables), Some(format), Some(cesql)] = with_corpus else { return };
    let suites = [
        tables,
        retries::statuses(),
        retries::waits(),
        knative::broker(),
        knative::channel(),
        knative::headers(),
        filters::results(),
        format,
        binding::results(),
        cesql,
    ];
    let rows = suites.map(|results| results.row());
    assert_table("conformance.md", "suites", SUITES_HEAD, &rows);
}

#[test]
fn the_docs_list_exactly_the_departures_of_the_tests() {
    for (index, Departure { name, .. }) in DEPARTURES.iter().enumerate() {
        let earlier = DEPARTURES[..index].iter().any(|of| of.name == *name);
        assert!(!earlier, "{name} is listed twice");
    }
    assert_table("conformance.md", "departures", DEPARTURES_HEAD, &departure_rows());
}
