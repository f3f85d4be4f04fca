//! The filters of a page: those that are set, each with a link to remove it, and the form of all.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use maud::{Markup, html};

use super::markup::line;
use super::query::{FIELDS, Field, InvalidField, Query};

/// The lengths of the list that the form offers.
const LIMITS: [usize; 4] = [25, 50, 100, 500];

/// The filters that are set.
pub(super) fn chips(query: &Query) -> Markup {
    html! { @if !query.is_all() {
        ul .chips aria-label="Filters" {
            @for (name, value) in query.filters() {
                li { a href=(query.without(name, value)) {
                    span { (label(name)) } " " b { (line(value)) } span .cross aria-hidden="true" { "×" }
                    span .unseen { " – remove this filter" }
                } }
            }
            li { a .all href="/" { "Clear all" } }
        }
    } }
}

/// The form of all filters; open when one of them is invalid.
pub(super) fn form(query: &Query, invalid: Option<&InvalidField>) -> Markup {
    html! { details .filter open[invalid.is_some()] {
        summary { "Filter" }
        @if let Some(invalid) = invalid {
            p #invalid .invalid role="alert" { b { (line(label(&invalid.field))) } ": " (line(&invalid.why)) }
        }
        form action="/" method="get" {
            div .fields { @for of in &FIELDS { (field(of, query, invalid.is_some_and(|invalid| invalid.field == of.name))) } }
            datalist #reasons { @for reason in Reason::NAMED { option value=(reason) {} } }
            datalist #outcomes { @for outcome in Outcome::ALL { option value=(outcome.as_str()) {} } }
            p .hint {
                "Times are UTC, or how long ago, as in PT1H and P2D. " code { "*" }
                " matches anything in destination, type, source and id. "
                "Several reasons, outcomes and statuses are separated by commas."
            }
            div .buttons {
                button .primary type="submit" { "Filter" }
                a .button href="/" { "Clear" }
                label .inline { "Dead letters a page " select name="limit" { @for limit in LIMITS {
                    option value=(limit) selected[limit == query.limit] { (limit) }
                } } }
            }
        }
    } }
}

/// The label of a field; its name if the form has no such field.
fn label(name: &str) -> &str {
    FIELDS.iter().find(|field| field.name == name).map_or(name, |field| field.label)
}

fn field(Field { name, label, hint }: &Field, query: &Query, is_invalid: bool) -> Markup {
    let values = query.values(name);
    let choices = match *name {
        "reason" => Some("reasons"),
        "outcome" => Some("outcomes"),
        _ => None,
    };
    html! { div .field {
        label for=(name) { (label) }
        input id=(name) name=(name) value=[values.first()] placeholder=(hint) list=[choices]
            autocomplete="off" spellcheck="false"
            aria-invalid=[is_invalid.then_some("true")] aria-describedby=[is_invalid.then_some("invalid")];
        // A filter with several values has an input for each.
        @for value in values.iter().skip(1) {
            input name=(name) value=(value) aria-label=(label) autocomplete="off" spellcheck="false";
        }
    } }
}
