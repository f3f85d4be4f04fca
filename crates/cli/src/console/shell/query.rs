//! Parses the query of a URL: the filters, which have the names of the command-line options, and
//! the page of the list.
//!
//! The command-line parser parses the values, so that pages and commands accept the same values.

use std::error::Error as _;

use adapters::machine::Machine;
use axum::http::StatusCode;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use deadletters::filter::{Filter, TimeBound};
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use delivery::time::moment::rfc3339;
use url::form_urlencoded::{Serializer, parse};
use uuid::Uuid;

use super::error::PageError;
use crate::operations::filter_args::FilterArgs;
use crate::operations::shell;

/// A field of the form: one filter.
pub(in crate::console) struct Field {
    /// The name of the command-line option, without its dashes.
    pub(in crate::console) name: &'static str,
    /// The label of the field in the form.
    pub(in crate::console) label: &'static str,
    /// An example value, which the empty field shows.
    pub(in crate::console) hint: &'static str,
}

const fn field(name: &'static str, label: &'static str, hint: &'static str) -> Field {
    Field { name, label, hint }
}

/// The path of the list of dead letters.
pub(in crate::console) const LIST: &str = "/letters";
/// The name of the field for the search box.
pub(in crate::console) const SEARCH: &str = "search";

/// The fields of all filters, in the order of the form.
pub(in crate::console) const FIELDS: [Field; 15] = [
    field(
        SEARCH,
        "Search",
        "Id, event id, subscription, type, source, destination, reason, text of the last response",
    ),
    field("state", "State", "open, or all"),
    field("cause", "Cause", "3f9a12c4"),
    field("since", "Since", "2026-11-20, or PT1H"),
    field("until", "Until", "2026-11-20T12:00:00Z"),
    field("namespace", "Namespace", "shop"),
    field("topic", "Topic", "shop/orders"),
    field("subscription", "Subscription", "shop/orders/billing"),
    field("destination", "Destination", "https://*.example.com/*"),
    field("reason", "Reason", "TimeToLiveExceeded"),
    field("outcome", "Last outcome", "TimedOut"),
    field("status", "Last status", "503, or 5xx"),
    field("type", "Event type", "order.*"),
    field("source", "Event source", "*/checkout"),
    field("id", "Event or dead letter id", "order-17"),
];

/// The parameters of the list that are not filters: its page, its length, and `read=again`.
const PAGING: [&str; 3] = ["page", "limit", "read"];
/// The default number of dead letters on a page of the list.
const LIMIT: usize = 50;
/// The names of the filters by time. A link to a period replaces them.
const TIMES: [&str; 2] = ["since", "until"];
/// The maximum number of dead letters on a page of the list.
const LIMIT_MAX: usize = 500;

/// A form field with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::console) struct InvalidField {
    pub(in crate::console) field: String,
    /// The reason why the value is invalid, and what is expected.
    pub(in crate::console) why: String,
}

impl InvalidField {
    pub(in crate::console) fn new(field: &str, why: String) -> Self {
        Self { field: field.to_owned(), why }
    }
}

impl From<InvalidField> for PageError {
    fn from(invalid: InvalidField) -> Self {
        let title = match invalid.field.as_str() {
            "" => "A filter cannot be used".to_owned(),
            field => format!("The field {field} cannot be used"),
        };
        Self::new(StatusCode::BAD_REQUEST, title, invalid.why)
    }
}

/// The parsed query of a URL.
#[derive(Debug, Clone)]
pub(in crate::console) struct Query {
    /// The filters that have a value, as entered.
    filters: Vec<(String, String)>,
    /// The number of the page of the list, from 1.
    pub(in crate::console) page: usize,
    pub(in crate::console) limit: usize,
    /// True if the URL contains `read=again`. The console then reads the container again.
    pub(in crate::console) is_reread: bool,
}

/// Decodes a form or a query to pairs of name and value.
pub(in crate::console) fn pairs(form: &[u8]) -> Vec<(String, String)> {
    parse(form).into_owned().collect()
}

/// Returns the first non-empty value of a field, trimmed.
pub(in crate::console) fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let of_name = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.trim());
    of_name.into_iter().find(|value| !value.is_empty())
}

/// Builds a URL from a path and pairs of name and value.
pub(in crate::console) fn href<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct FilterOptions {
    #[command(flatten)]
    filter: FilterArgs,
}

impl Query {
    /// Parses the pairs of a URL. `others` are further names that the page accepts.
    ///
    /// # Errors
    /// The first field that is unknown or has an invalid value.
    pub(in crate::console) fn read(
        pairs: &[(String, String)],
        others: &[&str],
    ) -> Result<(Self, Filter), InvalidField> {
        let mut query = Self { filters: Vec::new(), page: 1, limit: LIMIT, is_reread: false };
        for (name, value) in pairs.iter().filter(|(_, value)| !value.trim().is_empty()) {
            if FIELDS.iter().any(|field| field.name == name) {
                query.filters.push((name.clone(), value.trim().to_owned()));
            } else if PAGING.contains(&name.as_str()) {
                query.set_paging(name, value.trim())?;
            } else if !others.contains(&name.as_str()) {
                let names = FIELDS.map(|field| field.name).join(", ");
                let why = format!("this filter does not exist; use one of: {names}");
                return Err(InvalidField::new(name, why));
            }
        }
        let filter = query.filter()?;
        Ok((query, filter))
    }

    /// Creates a query from an invalid URL without checking values, so that the form can show them
    /// again.
    pub(in crate::console) fn unchecked(pairs: Vec<(String, String)>) -> Self {
        let known =
            pairs.into_iter().filter(|(name, _)| FIELDS.iter().any(|field| field.name == name));
        Self { filters: known.collect(), page: 1, limit: LIMIT, is_reread: false }
    }

    fn set_paging(&mut self, name: &str, value: &str) -> Result<(), InvalidField> {
        let invalid =
            |expected: &str| InvalidField::new(name, format!("\"{value}\" is not {expected}"));
        let number = value.parse().ok().filter(|number: &usize| *number > 0);
        match name {
            "page" => {
                self.page = number.ok_or_else(|| invalid("a page: expected 1 or more"))?;
            }
            "limit" => {
                let number = number.filter(|number| *number <= LIMIT_MAX);
                let expected = format!("a length: expected 1 to {LIMIT_MAX}");
                self.limit = number.ok_or_else(|| invalid(&expected))?;
            }
            _ => self.is_reread = value == "again",
        }
        Ok(())
    }

    fn filter(&self) -> Result<Filter, InvalidField> {
        // Use `=`, so that a value that begins with a dash is not parsed as an option.
        let arguments = self.filters.iter().map(|(name, value)| format!("--{name}={value}"));
        let options =
            FilterOptions::try_parse_from(arguments).map_err(|error| invalid_field(&error))?;
        options.filter.filter().map_err(|error| {
            // The message begins with the name of the option.
            let text = error.to_string();
            let (option, why) = text.split_once(' ').unwrap_or(("", &text));
            InvalidField::new(option.trim_start_matches('-'), why.to_owned())
        })
    }

    /// Returns all filters that have a value: name and value.
    pub(in crate::console) fn filters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.filters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the values of a filter.
    pub(in crate::console) fn values(&self, name: &str) -> Vec<&str> {
        self.filters().filter(|(key, _)| *key == name).map(|(_, value)| value).collect()
    }

    /// Formats the filters as options of the command line.
    pub(in crate::console) fn as_options(&self) -> String {
        self.filters().map(|(name, value)| format!(" --{name} {}", shell::typed(value))).collect()
    }

    /// Returns true if no filter is set.
    pub(in crate::console) fn is_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// Returns a URL with all filters, at this path.
    pub(in crate::console) fn at(&self, path: &str) -> String {
        href(path, self.filters())
    }

    /// Returns a URL of the list with these values, which replace the existing values of the same
    /// filters.
    pub(in crate::console) fn with(&self, values: &[(&str, &str)]) -> String {
        self.with_others(LIST, values)
    }

    /// Returns a URL at this path with these values, which replace the existing values of the same
    /// filters.
    pub(in crate::console) fn with_others(&self, path: &str, values: &[(&str, &str)]) -> String {
        let others = self.filters().filter(|(name, _)| values.iter().all(|(key, _)| key != name));
        self.list(path, others.chain(values.iter().copied()))
    }

    /// Returns a URL at this path that keeps only the time range of the query.
    pub(in crate::console) fn with_period_of(&self, path: &str) -> String {
        self.list(path, self.filters().filter(|(name, _)| TIMES.contains(name)))
    }

    /// Returns a URL of the list without this value of a filter.
    pub(in crate::console) fn without(&self, name: &str, value: &str) -> String {
        self.list(LIST, self.filters().filter(|pair| *pair != (name, value)))
    }

    /// Returns a URL of the list without any value of these filters.
    pub(in crate::console) fn without_any(&self, names: &[&str]) -> String {
        self.list(LIST, self.filters().filter(|(name, _)| !names.contains(name)))
    }

    /// Returns a URL limited to events that became dead letters at this time or later. `None`
    /// removes the time range.
    pub(in crate::console) fn with_period(&self, path: &str, since: Option<&str>) -> String {
        let others = self.filters().filter(|(name, _)| !TIMES.contains(name));
        self.list(path, others.chain(since.map(|since| ("since", since))))
    }

    /// Returns a URL of another page of the list.
    pub(in crate::console) fn with_page(&self, page: usize) -> String {
        let page = page.to_string();
        let paging = (page != "1").then_some(("page", page.as_str()));
        self.list(LIST, self.filters().chain(paging))
    }

    /// Returns a URL at this path that makes the console read the container again.
    pub(in crate::console) fn reread(&self, path: &str) -> String {
        self.list(path, self.filters().chain([("read", "again")]))
    }

    /// Returns the URL of a dead letter. The URL contains the filters, so that links on that page
    /// keep them.
    pub(in crate::console) fn letter(&self, id: Uuid) -> String {
        self.list(&format!("/letters/{id}"), self.filters())
    }

    /// Returns the filters for a form with which the user picks single dead letters. Omits filters
    /// by id, because the ids of the picked dead letters replace them. Converts ages to times, so
    /// that the range does not shift.
    pub(in crate::console) fn for_picked(&self, now_ms: u64) -> Vec<(&str, String)> {
        let fixed = |name: &str, value: &str| match value.parse() {
            Ok(bound @ TimeBound::Ago(_)) if TIMES.contains(&name) => rfc3339(bound.ms(now_ms)),
            Ok(_) | Err(_) => value.to_owned(),
        };
        let others = self.filters().filter(|(name, _)| *name != "id");
        others.map(|(name, value)| (name, fixed(name, value))).collect()
    }

    fn list<'a>(&self, path: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let limit = self.limit.to_string();
        let length = (self.limit != LIMIT).then_some(("limit", limit.as_str()));
        href(path, pairs.collect::<Vec<_>>().into_iter().chain(length))
    }
}

/// Returns the time from the beginning of a filter's time range until now, in milliseconds, rounded
/// down to a whole second. Returns `None` if the range has no beginning.
pub(in crate::console) fn range_ms(filter: &Filter) -> Option<u64> {
    let range_ms = Machine.now_ms().saturating_sub(filter.since_ms?);
    // Round down, because some time has passed since the filter was created.
    Some(range_ms / SECOND_MS * SECOND_MS)
}

/// Converts an error of the command-line parser to an error about a form field.
fn invalid_field(error: &clap::Error) -> InvalidField {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.clone(),
        Some(ContextValue::Strings(options)) => options.join(" "),
        Some(_) | None => String::new(),
    };
    let field = option.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default();
    let why = match (error.kind(), error.source()) {
        (ErrorKind::ArgumentConflict, _) => "only one value is allowed".to_owned(),
        (_, Some(source)) => source.to_string(),
        (_, None) => error.to_string(),
    };
    InvalidField::new(field, why)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Test values. Some fields accept a value that others refuse.
    const VALUES: [&str; 16] = [
        "",
        " ",
        "PT1H",
        "2026-11-20",
        "shop",
        "shop/orders",
        "shop/orders/billing",
        "a*b",
        "TimeToLiveExceeded",
        "TimedOut,Busy",
        "5xx",
        "404,503",
        "--help",
        "=",
        "7",
        "again",
    ];

    fn names() -> Vec<&'static str> {
        FIELDS.iter().map(|field| field.name).chain(PAGING).chain(["job", "colour"]).collect()
    }

    fn any_pair() -> impl Strategy<Value = (String, String)> {
        let name = prop_oneof![9 => select(names()).prop_map(str::to_owned), 1 => any::<String>()];
        let value = prop_oneof![select(&VALUES[..]).prop_map(str::to_owned), any::<String>()];
        (name, value)
    }

    proptest! {
        #[test]
        fn any_form_is_read_or_names_a_field_and_each_link_leads_to_the_same_filters(
            given in vec(any_pair(), 0..5),
        ) {
            match Query::read(&given, &["job"]) {
                Ok((query, _)) => {
                    for link in [query.at(LIST), query.with_page(query.page), query.reread(LIST)] {
                        let form = link.split_once('?').map_or("", |(_, form)| form);
                        let again = read(form).expect("a link of ours");
                        prop_assert_eq!(&again.filters, &query.filters);
                    }
                    let same = read(query.with_page(query.page).trim_start_matches("/letters?")).unwrap();
                    prop_assert!(query.with_page(1) == LIST || same.page == query.page);
                    for (name, value) in query.filters() {
                        let fewer = read(query.without(name, value).trim_start_matches(LIST).trim_start_matches('?'));
                        prop_assert!(fewer.unwrap().filters().all(|pair| pair != (name, value)));
                    }
                }
                Err(invalid) => {
                    let is_known = names().contains(&invalid.field.as_str());
                    prop_assert!(is_known || given.iter().any(|(name, _)| *name == invalid.field));
                    prop_assert!(!invalid.why.is_empty());
                }
            }
            let _shown_again = Query::unchecked(given).at(LIST);
        }

        #[test]
        fn any_bytes_are_a_form(form in vec(any::<u8>(), 0..200)) {
            let _read = Query::read(&pairs(&form), &[]);
        }
    }

    fn read(text: &str) -> Result<Query, InvalidField> {
        Query::read(&pairs(text.as_bytes()), &[]).map(|(query, _)| query)
    }

    #[test]
    fn the_form_has_every_filter_option_and_no_other() {
        let command = FilterOptions::command();
        let mut options: Vec<&str> =
            command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let mut fields = FIELDS.map(|field| field.name);
        options.sort_unstable();
        fields.sort_unstable();
        assert_eq!(options, fields);
    }

    #[test]
    fn an_invalid_value_names_its_field_and_what_is_expected() {
        for (text, field, why) in [
            ("status=abc", "status", "expected a status such as 503"),
            ("since=yesterday", "since", "2026-11-20T07:00:00Z"),
            ("reason=Nope", "reason", "TimeToLiveExceeded"),
            ("outcome=--help", "outcome", "TimedOut"),
            ("topic=a/b/c", "topic", "full name"),
            ("topic=a&topic=b", "topic", "only one"),
            ("colour=red", "colour", "namespace"),
            ("page=0", "page", "1 or more"),
            ("limit=501", "limit", "1 to 500"),
        ] {
            let invalid = read(text).expect_err(text);
            assert!(invalid.field == field && invalid.why.contains(why), "{text}: {invalid:?}");
        }
    }

    #[test]
    fn links_keep_the_query_and_change_one_value() {
        let query = read("type=a%26b&status=5xx&status=404&topic=&page=3&limit=10").unwrap();
        assert_eq!((query.page, query.limit), (3, 10));
        assert_eq!(query.at("/replay"), "/replay?type=a%26b&status=5xx&status=404");
        assert_eq!(query.with(&[("status", "503")]), "/letters?type=a%26b&status=503&limit=10");
        assert_eq!(query.without("status", "404"), "/letters?type=a%26b&status=5xx&limit=10");
        assert_eq!(query.without_any(&["status"]), "/letters?type=a%26b&limit=10");
        assert_eq!(
            query.letter(Uuid::from_u128(7)),
            "/letters/00000000-0000-0000-0000-000000000007?type=a%26b&status=5xx&status=404&limit=10"
        );
        assert_eq!(query.with_page(1), "/letters?type=a%26b&status=5xx&status=404&limit=10");
        assert_eq!(read("").unwrap().with_page(2), "/letters?page=2");
    }

    #[test]
    fn periods_replace_each_other_and_picked_dead_letters_do_not_grow_too_old() {
        let query = read("since=PT1H&until=2126-11-20&search=no&id=order-1").unwrap();
        assert_eq!(query.with_period("/", Some("P1D")), "/?search=no&id=order-1&since=P1D");
        assert_eq!(query.with_period("/", None), "/?search=no&id=order-1");
        let picked = query.for_picked(7_200_000);
        let expected =
            [("since", "1970-01-01T01:00:00.0000000Z"), ("until", "2126-11-20"), ("search", "no")];
        assert_eq!(picked, expected.map(|(name, value)| (name, value.to_owned())));
    }
}
