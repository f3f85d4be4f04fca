//! What an address of the page asks for: the filters of the verbs under their own names, and which
//! part of the list.
//!
//! The values are read by the very definition that the command line has, so both take the same and
//! refuse the same.

use std::error::Error as _;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use url::form_urlencoded::{Serializer, parse};

use crate::commands::deadletters::Meant;
use crate::letters::filter::Filter;

/// A filter in the form of the page.
pub(super) struct Field {
    /// Its name: the option of the verbs without its dashes.
    pub(super) name: &'static str,
    /// How the form calls it.
    pub(super) label: &'static str,
    /// What may stand there.
    pub(super) hint: &'static str,
}

const fn field(name: &'static str, label: &'static str, hint: &'static str) -> Field {
    Field { name, label, hint }
}

/// Every filter, in the order of the form.
pub(super) const FIELDS: [Field; 12] = [
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
    field("id", "Event or letter id", "order-17"),
];

/// Which page of the list, and how long it is.
const PAGING: [&str; 3] = ["page", "limit", "read"];
/// How many letters a page of the list has, unless it is said.
pub(super) const LIMIT: usize = 50;
/// How many it may have.
const LIMIT_MAX: usize = 500;

/// A value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The field it stands in.
    pub(super) field: String,
    /// What is wrong, and what would be right.
    pub(super) why: String,
}

/// What an address asks for.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// The filters that say something, as they were written.
    filters: Vec<(String, String)>,
    /// From 1.
    pub(super) page: usize,
    pub(super) limit: usize,
    /// Whether the container is to be read again.
    pub(super) again: bool,
}

/// Names and values of a form.
pub(super) fn pairs(form: &[u8]) -> Vec<(String, String)> {
    parse(form).into_owned().collect()
}

/// The value of a field, if it says anything.
pub(super) fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let of_name = pairs.iter().filter(|(of, _)| of == name).map(|(_, value)| value.trim());
    of_name.into_iter().find(|value| !value.is_empty())
}

/// Paths and pairs as an address.
pub(super) fn href<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Asked {
    #[command(flatten)]
    meant: Meant,
}

impl Query {
    /// Reads the pairs of an address; `others` are the names that its page knows besides.
    ///
    /// # Errors
    /// The first field that is unknown or has a value that cannot be used.
    pub(super) fn read(
        pairs: &[(String, String)],
        others: &[&str],
    ) -> Result<(Self, Filter), Wrong> {
        let mut query = Self { filters: Vec::new(), page: 1, limit: LIMIT, again: false };
        for (name, value) in pairs.iter().filter(|(_, value)| !value.trim().is_empty()) {
            if FIELDS.iter().any(|field| field.name == name) {
                query.filters.push((name.clone(), value.trim().to_owned()));
            } else if PAGING.contains(&name.as_str()) {
                query.turn(name, value.trim())?;
            } else if !others.contains(&name.as_str()) {
                let names = FIELDS.map(|field| field.name).join(", ");
                return Err(Wrong {
                    field: name.clone(),
                    why: format!("there is no such filter; there are {names}"),
                });
            }
        }
        let filter = query.filter()?;
        Ok((query, filter))
    }

    /// The pairs of an address that cannot be read, for the form to show them again.
    pub(super) fn unread(pairs: Vec<(String, String)>) -> Self {
        let known =
            pairs.into_iter().filter(|(name, _)| FIELDS.iter().any(|field| field.name == name));
        Self { filters: known.collect(), page: 1, limit: LIMIT, again: false }
    }

    fn turn(&mut self, name: &str, value: &str) -> Result<(), Wrong> {
        let wrong = |right: String| Wrong {
            field: name.to_owned(),
            why: format!("\"{value}\" is not {right}"),
        };
        let number = value.parse().ok().filter(|number: &usize| *number > 0);
        match name {
            "page" => {
                self.page =
                    number.ok_or_else(|| wrong("a page: 1 or more is expected".to_owned()))?
            }
            "limit" => {
                let number = number.filter(|number| *number <= LIMIT_MAX);
                self.limit = number
                    .ok_or_else(|| wrong(format!("a length: 1 to {LIMIT_MAX} is expected")))?;
            }
            _ => self.again = value == "again",
        }
        Ok(())
    }

    fn filter(&self) -> Result<Filter, Wrong> {
        let arguments = self.filters.iter().map(|(name, value)| format!("--{name}={value}"));
        let asked = Asked::try_parse_from(arguments).map_err(|error| explain(&error))?;
        asked.meant.filter().map_err(|error| {
            // It begins with the option that it is about.
            let text = error.to_string();
            let (option, why) = text.split_once(' ').unwrap_or(("", &text));
            Wrong { field: option.trim_start_matches('-').to_owned(), why: why.to_owned() }
        })
    }

    /// Every filter that says something.
    pub(super) fn filters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.filters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What a filter says, each of its values.
    pub(super) fn values(&self, name: &str) -> Vec<&str> {
        self.filters().filter(|(of, _)| *of == name).map(|(_, value)| value).collect()
    }

    /// Whether every letter is meant.
    pub(super) fn is_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// The same filters at another path.
    pub(super) fn at(&self, path: &str) -> String {
        href(path, self.filters())
    }

    /// The overview with these values in the place of what the same filters said.
    pub(super) fn with(&self, values: &[(&str, &str)]) -> String {
        let others = self.filters().filter(|(name, _)| values.iter().all(|(of, _)| of != name));
        href("/", others.chain(values.iter().copied()))
    }

    /// The overview without this value of a filter.
    pub(super) fn without(&self, name: &str, value: &str) -> String {
        href("/", self.filters().filter(|pair| *pair != (name, value)))
    }

    /// The same list at another page.
    pub(super) fn turned(&self, page: usize) -> String {
        let (page, limit) = (page.to_string(), self.limit.to_string());
        let paging = [(page != "1").then_some(("page", page.as_str()))];
        let length = [(self.limit != LIMIT).then_some(("limit", limit.as_str()))];
        href("/", self.filters().chain(paging.into_iter().chain(length).flatten()))
    }

    /// The same, with the container read again first.
    pub(super) fn reread(&self) -> String {
        href("/", self.filters().chain([("read", "again")]))
    }
}

/// What the command line would say, told for a form.
fn explain(error: &clap::Error) -> Wrong {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.clone(),
        Some(ContextValue::Strings(options)) => options.join(" "),
        Some(_) | None => String::new(),
    };
    let field =
        option.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default().to_owned();
    let why = match (error.kind(), error.source()) {
        (ErrorKind::ArgumentConflict, _) => "only one value is expected here".to_owned(),
        (_, Some(source)) => source.to_string(),
        (_, None) => error.to_string(),
    };
    Wrong { field, why }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn read(text: &str) -> Result<Query, Wrong> {
        Query::read(&pairs(text.as_bytes()), &[]).map(|(query, _)| query)
    }

    #[test]
    fn the_form_has_every_filter_of_the_verbs_and_no_other() {
        let command = Asked::command();
        let mut options: Vec<&str> =
            command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let mut fields = FIELDS.map(|field| field.name);
        options.sort_unstable();
        fields.sort_unstable();
        assert_eq!(options, fields);
    }

    #[test]
    fn a_value_that_cannot_be_used_names_its_field_and_what_would_be_right() {
        for (text, field, why) in [
            ("status=abc", "status", "503, or 5xx"),
            ("since=yesterday", "since", "2026-11-20T07:00:00Z"),
            ("reason=Nope", "reason", "TimeToLiveExceeded"),
            ("outcome=--help", "outcome", "TimedOut"),
            ("topic=a/b/c", "topic", "no name"),
            ("topic=a&topic=b", "topic", "only one"),
            ("colour=red", "colour", "namespace"),
            ("page=0", "page", "1 or more"),
            ("limit=501", "limit", "1 to 500"),
        ] {
            let wrong = read(text).expect_err(text);
            assert!(wrong.field == field && wrong.why.contains(why), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn addresses_keep_what_was_asked_and_change_one_thing() {
        let query = read("type=a%26b&status=5xx&status=404&topic=&page=3&limit=10").unwrap();
        assert_eq!((query.page, query.limit), (3, 10));
        assert_eq!(query.at("/replay"), "/replay?type=a%26b&status=5xx&status=404");
        assert_eq!(query.with(&[("status", "503")]), "/?type=a%26b&status=503");
        assert_eq!(query.without("status", "404"), "/?type=a%26b&status=5xx");
        assert_eq!(query.turned(1), "/?type=a%26b&status=5xx&status=404&limit=10");
        assert_eq!(read("").unwrap().turned(2), "/?page=2");
    }
}
