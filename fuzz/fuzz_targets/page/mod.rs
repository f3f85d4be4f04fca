//! The part of the page that reads queries.

#[path = "../../../crates/cli/src/page/query.rs"]
mod query;

use lastmile_fuzz::NOW_MS;
use query::{InvalidField, Query, pairs};
use uuid::Uuid;

/// What is shown in place of the page.
mod error {
    use axum::http::StatusCode;

    pub(super) struct PageError;

    impl PageError {
        pub(super) fn new(status: StatusCode, title: String, why: String) -> Self {
            assert!(status.is_client_error() && !title.is_empty() && !why.is_empty());
            Self
        }
    }
}

pub(crate) fn check(form: &[u8]) {
    let given = pairs(form);
    let _shown_again = Query::unchecked(given.clone()).at("/");
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
        [query.at("/"), query.with_page(query.page), query.reread(), query.letter(Uuid::nil())]
    {
        assert_eq!(read(&link).filters().collect::<Vec<_>>(), filters, "{link}");
    }
    let same = read(&query.with_page(query.page));
    assert_eq!((same.page, same.limit), (query.page, query.limit));
    assert!(read(&query.reread()).is_reread);
    for (name, value) in query.filters() {
        let fewer = read(&query.without(name, value));
        assert!(fewer.filters().all(|pair| pair != (name, value)));
        assert!(read(&query.without_any(&[name])).values(name).is_empty());
    }
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
