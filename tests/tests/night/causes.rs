//! An operator's first look in the morning: each cause with its name, on one screen.

use delivery::time::duration::DAY_MS;

use crate::container::{NightContainer, Stored};
use crate::destinations::{BILLING, SUBSCRIPTIONS};
use crate::lifetime::{EVENTS, INVOICES};

/// Each cause, in alphabetical order, with the number of its dead letters. A title may go on after these words.
pub(crate) const CAUSES: [(&str, u64); 13] = [
    ("302 Found", EVENTS),
    ("401 the token has expired", EVENTS),
    ("404 no such account book", 2 * EVENTS),
    ("413 the document is too long", 2 * EVENTS),
    ("422 Field required: body.customer.email", EVENTS),
    ("503 overloaded", EVENTS),
    ("certificate from an unknown issuer", 2 * EVENTS),
    ("connection refused", INVOICES),
    ("event too large to send again", 1),
    ("host name does not resolve", 2 * EVENTS),
    ("malformed event: the event is not JSON", 1),
    ("no response within 1 s", 2 * EVENTS),
    ("topic shop/ordrs does not exist", EVENTS),
];

/// The most lines of `why`, of which two are for a cause.
const LINES_MAX: usize = 45;
const WIDTH: usize = 80;
/// The invoices that were put off all day, at least.
const UNATTEMPTED_MIN: usize = 5;

#[test]
fn each_cause_has_a_title_that_names_it() {
    let causes = NightContainer::new().causes(&[]);
    assert_eq!(causes.len(), CAUSES.len(), "{causes:#?}");
    for ((title, count), (expected, letters)) in causes.iter().zip(CAUSES) {
        assert!(title.starts_with(expected), "{title}, expected {expected}");
        assert_eq!(*count, letters, "{title}");
    }
}

#[test]
fn the_night_has_dead_letters_of_every_subscription_and_some_that_were_never_attempted() {
    let stored = NightContainer::new().stored();
    for subscription in SUBSCRIPTIONS {
        assert!(stored.iter().any(|letter| letter.is_of(subscription)), "{subscription}");
    }
    let billing: Vec<&Stored> = stored.iter().filter(|letter| letter.is_of(BILLING)).collect();
    let unattempted = billing.iter().filter(|letter| letter.properties()["deliveryattempts"] == 0);
    assert!(unattempted.count() >= UNATTEMPTED_MIN, "almost all were attempted");
    let times = || stored.iter().map(Stored::decided_ms);
    let (first, last) = (times().min().expect("a time"), times().max().expect("a time"));
    assert!(last - first >= DAY_MS, "the default time to live is a day");
}

#[test]
fn why_fits_a_screen_of_80_columns() {
    let night = NightContainer::new();
    let printed = night.text(&["why"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines.len() <= LINES_MAX, "{} lines:\n{printed}", lines.len());
    for line in &lines {
        assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
    }
    for (title, _) in CAUSES {
        let lines = lines.iter().filter(|line| line.contains(title)).count();
        assert_eq!(lines, 1, "{title}:\n{printed}");
    }
}
