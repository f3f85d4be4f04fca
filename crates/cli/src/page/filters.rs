//! The filters of a page: those that say something, each with a way to take it away, and the form
//! of all.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use maud::{Markup, html};

use super::frame::line;
use super::query::{FIELDS, Field, Query, Wrong};

/// How many letters a page of the list may have, as the form offers it.
const LIMITS: [usize; 4] = [25, 50, 100, 500];

/// What is filtered by.
pub(super) fn chips(query: &Query) -> Markup {
    html! { @if !query.is_all() {
        ul .chips aria-label="Filters" {
            @for (name, value) in query.filters() {
                li { a href=(query.without(name, value)) {
                    span { (label(name)) } " " b { (line(value)) } span .cross aria-hidden="true" { "×" }
                    span .unseen { " – take this filter away" }
                } }
            }
            li { a .all href="/" { "Clear all" } }
        }
    } }
}

/// The form of all filters; open when one of them has to be changed.
pub(super) fn form(query: &Query, wrong: Option<&Wrong>) -> Markup {
    html! { details .filter open[wrong.is_some()] {
        summary { "Filter" }
        @if let Some(wrong) = wrong {
            p #wrong .wrong role="alert" { b { (line(label(&wrong.field))) } ": " (line(&wrong.why)) }
        }
        form action="/" method="get" {
            div .fields { @for of in &FIELDS { (field(of, query, wrong.is_some_and(|wrong| wrong.field == of.name))) } }
            datalist #reasons { @for reason in Reason::NAMED { option value=(reason) {} } }
            datalist #outcomes { @for outcome in Outcome::ALL { option value=(outcome.as_str()) {} } }
            p .hint {
                "Times are UTC, or how long ago, as in PT1H and P2D. " code { "*" }
                " stands for anything in destination, type, source and id. "
                "Reasons, outcomes and statuses may be several, with commas."
            }
            div .buttons {
                button .primary type="submit" { "Filter" }
                a .button href="/" { "Clear" }
                label .inline { "Letters a page " select name="limit" { @for limit in LIMITS {
                    option value=(limit) selected[limit == query.limit] { (limit) }
                } } }
            }
        }
    } }
}

/// What the form calls a field; another is called as it calls itself.
fn label(name: &str) -> &str {
    FIELDS.iter().find(|field| field.name == name).map_or(name, |field| field.label)
}

fn field(Field { name, label, hint }: &Field, query: &Query, is_wrong: bool) -> Markup {
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
            aria-invalid=[is_wrong.then_some("true")] aria-describedby=[is_wrong.then_some("wrong")];
        // A filter that was given several times has a field for each.
        @for value in values.iter().skip(1) {
            input name=(name) value=(value) aria-label=(label) autocomplete="off" spellcheck="false";
        }
    } }
}
