//! The part of the console that reads queries.

mod shell;

use lastmile_fuzz::NOW_MS;
use uuid::Uuid;

use self::shell::error;
use self::shell::query::{self, InvalidField, LIST, Query, pairs};

/// One that a bar of the chart leads to.
const REASON: &str = "TimeToLiveExceeded";

pub(crate) fn check(form: &[u8]) {
    let given = pairs(form);
    let _shown_again = Query::unchecked(given.clone()).at(LIST);
    let query = match Query::read(&given, &["job"]) {
        Ok((query, _)) => query,
        Err(invalid) => {
            let is_given = given.iter().any(|(name, _)| *name == invalid.field);
            assert!(is_given || query::FIELDS.iter().any(|field| field.name == invalid.field));
            let _shown = error::PageError::from(invalid);
            return;
        }
    };
    let filters: Vec<_> = query.filters().collect();
    for link in
        [query.at(LIST), query.with_page(query.page), query.reread(LIST), query.letter(Uuid::nil())]
    {
        assert_eq!(read(&link).filters().collect::<Vec<_>>(), filters, "{link}");
    }
    let same = read(&query.with_page(query.page));
    assert_eq!((same.page, same.limit), (query.page, query.limit));
    assert!(read(&query.reread(LIST)).is_reread);
    for (name, value) in query.filters() {
        let fewer = read(&query.without(name, value));
        assert!(fewer.filters().all(|pair| pair != (name, value)));
        assert!(read(&query.without_any(&[name])).values(name).is_empty());
    }
    let with_reason = read(&query.with(&[("reason", REASON)]));
    let others = |query: &Query, names: &[&str]| -> Vec<_> {
        let kept = query.filters().filter(|(name, _)| !names.contains(name));
        kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    assert_eq!(with_reason.values("reason"), [REASON]);
    assert_eq!(others(&with_reason, &["reason"]), others(&query, &["reason"]));
    let times = ["since", "until"];
    let recent = read(&query.with_period(LIST, Some("1h")));
    assert_eq!(recent.values("since"), ["1h"]);
    assert_eq!(others(&recent, &times), others(&query, &times));
    assert_eq!(others(&read(&query.with_period(LIST, None)), &[]), others(&query, &times));
    for (name, value) in query.for_picked(NOW_MS) {
        // An age has become a time, which is read as well.
        assert!(single(name, &value).is_ok(), "{name}={value}");
    }
}

/// A link of ours.
fn read(link: &str) -> Query {
    let form = link.split_once('?').map_or("", |(_, form)| form);
    Query::read(&pairs(form.as_bytes()), &[]).map(|(query, _)| query).expect("a link of ours")
}

fn single(name: &str, value: &str) -> Result<Query, InvalidField> {
    Query::read(&[(name.to_owned(), value.to_owned())], &[]).map(|(query, _)| query)
}
