//! Renders the filters of a page: the search box, the periods, the active filters with links that
//! remove them, and the form of all filters.

use maud::{Markup, html};

use super::suggestions::{Suggestions, list_of};
use crate::console::shell::markup::line;
use crate::console::shell::query::{FIELDS, Field, InvalidField, LIST, Query, SEARCH};
use crate::terminal::text;

/// The list lengths that the form offers.
const LIMITS: [usize; 4] = [25, 50, 100, 500];
/// The periods that the page offers as links: label, and value of `since`.
const PERIODS: [(&str, Option<&str>); 4] =
    [("Last hour", Some("PT1H")), ("Day", Some("P1D")), ("Week", Some("P7D")), ("All", None)];
/// The maximum number of values of a filter that a page lists. If a filter has more values, the
/// page shows only their number.
const CHIPS_MAX: usize = 5;

/// Renders the active filters, each with a link that removes it.
pub(in crate::console) fn chips(query: &Query) -> Markup {
    let is_long = |name: &str| query.values(name).len() > CHIPS_MAX;
    let chip = |href: String, name: &str, value: &str| {
        html! { li { a href=(href) {
            span { (label(name)) } " " b { (line(value)) } span .cross aria-hidden="true" { "×" }
            span .unseen { " – remove this filter" }
        } } }
    };
    html! { @if !query.is_all() {
        ul .chips aria-label="Filters" {
            @for (name, value) in query.filters().filter(|(name, _)| !is_long(name)) {
                (chip(query.without(name, value), name, value))
            }
            @for field in FIELDS.iter().filter(|field| is_long(field.name)) {
                @let count = text::grouped(query.values(field.name).len() as u64);
                (chip(query.without_any(&[field.name]), field.name, &format!("any of {count}")))
            }
            li { a .all href=(LIST) { "Clear all" } }
        }
    } }
}

/// Renders the form of all filters. The form is unfolded if a value is invalid.
pub(in crate::console) fn form(
    query: &Query,
    suggestions: &Suggestions,
    invalid: Option<&InvalidField>,
) -> Markup {
    html! { form .filter action=(LIST) method="get" role="search" data-keep {
        div .search-row {
            @for search_field in FIELDS.iter().filter(|field| field.name == SEARCH) {
                (search_box(search_field, query))
            }
            (periods(query, LIST))
            (more(query, suggestions, invalid))
        }
        @if let Some(invalid) = invalid {
            p #invalid .invalid role="alert" { b { (line(label(&invalid.field))) } ": " (line(&invalid.why)) }
        }
    } }
}

/// Renders the fields of all filters except the search box.
fn more(query: &Query, suggestions: &Suggestions, invalid: Option<&InvalidField>) -> Markup {
    let set = query.filters().filter(|(name, _)| *name != SEARCH).count();
    let is_invalid = |name: &str| invalid.is_some_and(|invalid| invalid.field == name);
    html! {
        details .more-filters open[invalid.is_some()] {
            summary { "More filters" @if set > 0 { span .of { " (" (set) " set)" } } }
            div .fields {
                @for filter_field in FIELDS.iter().filter(|field| field.name != SEARCH) {
                    (field(filter_field, query, is_invalid(filter_field.name)))
                }
            }
            (suggestions.lists())
            p .hint {
                "The search is case-insensitive and covers the fields named in its box, but not \
                 the data of events. Times are UTC, or durations before now, such as PT1H and \
                 P2D. " code { "*" }
                " matches any text in destination, type, source and id. "
                "Separate several reasons, outcomes or statuses with commas."
            }
            div .buttons {
                button .primary type="submit" { "Apply" }
                a .button href=(LIST) { "Clear" }
                label .inline { "Dead letters per page " select name="limit" { @for limit in limits(query) {
                    option value=(limit) selected[limit == query.limit] { (limit) }
                } } }
            }
        }
    }
}

/// Returns the list lengths that the form offers, including the current one.
fn limits(query: &Query) -> Vec<usize> {
    let mut limits = LIMITS.to_vec();
    if !limits.contains(&query.limit) {
        limits.push(query.limit);
        limits.sort_unstable();
    }
    limits
}

fn search_box(Field { name, label, hint }: &Field, query: &Query) -> Markup {
    html! { div .search-box {
        label .unseen for=(name) { (label) }
        input id=(name) name=(name) type="search" value=[query.values(name).first()] placeholder=(hint) title=(hint)
            autocomplete="off" autocapitalize="off" spellcheck="false" enterkeyhint="search";
        button type="submit" { "Search" }
    } }
}

/// Renders a link for each of [`PERIODS`], to the page at `path`. The linked page shows only dead
/// letters of that period.
pub(in crate::console) fn periods(query: &Query, path: &str) -> Markup {
    let (since, until) = (query.values("since"), query.values("until"));
    let is_current =
        |period: Option<&str>| until.is_empty() && since.as_slice() == period.as_slice();
    html! { nav .periods aria-label="Decided in" { @for (name, period) in PERIODS {
        a href=(query.with_period(path, period)) aria-current=[is_current(period).then_some("true")] { (name) }
    } } }
}

/// Returns the label of a field, or its name if the form has no such field.
fn label(name: &str) -> &str {
    FIELDS.iter().find(|field| field.name == name).map_or(name, |field| field.label)
}

fn field(Field { name, label, hint }: &Field, query: &Query, is_invalid: bool) -> Markup {
    let values = query.values(name);
    html! { div .field {
        label for=(name) { (label) }
        input id=(name) name=(name) value=[values.first()] placeholder=(hint) list=[list_of(name)]
            autocomplete="off" spellcheck="false"
            aria-invalid=[is_invalid.then_some("true")] aria-describedby=[is_invalid.then_some("invalid")];
        // A filter with several values has one input per value.
        @for value in values.iter().skip(1) {
            input name=(name) value=(value) aria-label=(label) autocomplete="off" spellcheck="false";
        }
    } }
}
