//! `--since` and the times of decisions.

use delivery::time::moment::rfc3339;

use crate::container::{NightContainer, Stored};

#[test]
fn since_a_time_finds_exactly_what_was_decided_then_or_later() {
    let night = NightContainer::new();
    let stored = night.stored();
    let mut decided: Vec<u64> = stored.iter().map(Stored::decided_ms).collect();
    decided.sort_unstable();
    let (first, last) = (decided[0], decided[decided.len() - 1]);
    let middle = decided[decided.len() / 2];
    for at_ms in [first - 1, first, first + 1, middle, middle + 1, last, last + 1] {
        let later = stored.iter().filter(|letter| letter.decided_ms() >= at_ms);
        let mut expected: Vec<String> = later.map(Stored::id).collect();
        expected.sort();
        let since = rfc3339(at_ms);
        assert_eq!(night.listed(&["--since", &since]), expected, "{since}");
    }
}
