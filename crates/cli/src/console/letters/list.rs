//! Renders the list of dead letters, newest first, in pages. Users can pick single dead letters for
//! a replay.

use adapters::machine::Machine;
use deadletters::facts::decided_ms;
use deadletters::letter_cache::LetterCache;
use deadletters::state::LetterStates;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use maud::{Markup, html};

use super::chart::{Palette, swatch};
use super::summary::Summary;
use crate::console::access::Action;
use crate::console::app::Console;
use crate::console::shell::markup::{age, line, outcome, word};
use crate::console::shell::query::Query;
use crate::terminal::text;

/// The columns of the list, after the check boxes.
const COLUMNS: [&str; 7] =
    ["Decided", "Event", "Subscription", "Reason", "Last outcome", "Attempts", "State"];
/// The maximum length of an id or type in a row. The page of the dead letter shows the whole text.
const CELL_MAX_CHARS: usize = 200;
/// The name of the form field that marks a form with check boxes. The field is set even if the user
/// has picked no dead letter.
pub(in crate::console) const PICKED: &str = "picked";

/// Renders the page of the list that the query selects, or the last page if the list has fewer
/// pages.
pub(in crate::console) fn list(
    console: &Console,
    query: &Query,
    cache: &LetterCache,
    summary: &Summary<'_>,
    palette: &Palette,
) -> Markup {
    let count = summary.letters.len();
    let pages = count.div_ceil(query.limit).max(1);
    // The list may have been longer when the link was created.
    let at = query.page.min(pages);
    let shown = summary.letters.chunks(query.limit).nth(at - 1).unwrap_or_default();
    html! { section aria-labelledby="letters" {
        h2 #letters { "Dead letters" span .of { " newest first" } }
        form .pick action="/replay" method="get" {
            @for (name, value) in query.for_picked(Machine.now_ms()) { input type="hidden" name=(name) value=(value); }
            input type="hidden" name=(PICKED) value="yes";
            table .cards.rows role="table" aria-labelledby="letters" {
                thead role="rowgroup" { tr role="row" {
                    th role="columnheader" .box {
                        span .unseen { "Select" }
                        input type="checkbox" data-script data-pick-all hidden aria-label="Select all on this page";
                    }
                    @for name in COLUMNS { th role="columnheader" .number[name == "Attempts"] { (name) } }
                } }
                tbody role="rowgroup" { @for letter in shown {
                    (row(query, letter, &cache.states, palette))
                } }
            }
            (pick_bar(console, query, count, shown.len()))
        }
        @if pages > 1 { (paging(query, at, pages, count)) }
    } }
}

/// Renders rows without check boxes, for pages that show few dead letters.
pub(in crate::console) fn plain_rows(
    query: &Query,
    letters: &[&StoredDeadLetter],
    states: &LetterStates,
) -> Markup {
    html! { table .cards.rows role="table" aria-label="Dead letters" {
        thead role="rowgroup" { tr role="row" { @for name in COLUMNS {
            th role="columnheader" .number[name == "Attempts"] { (name) }
        } } }
        tbody role="rowgroup" { @for letter in letters {
            tr role="row" data-key=(letter.id) { (cells(query, letter, states, None)) }
        } }
    } }
}

/// Renders the bar with the actions for picked dead letters. With scripts, the bar appears when the
/// user picks a dead letter.
fn pick_bar(console: &Console, query: &Query, count: usize, shown: usize) -> Markup {
    html! { div .pick-bar role="group" aria-label="Selected dead letters" {
        span .picked role="status" {}
        (console.access.submit(Action::Replay, true, &html! { "Replay selected…" }))
        @if shown > 1 {
            button type="button" data-script data-pick-page hidden { "Select all " (shown) " on this page" }
        }
        (console.access.link(Action::Replay, false, &query.at("/replay"), &html! {
            "Replay all " (text::grouped(count as u64)) " matching…"
        }))
        button type="button" data-script data-pick-none hidden { "Clear selection" }
    } }
}

fn row(
    query: &Query,
    letter: &StoredDeadLetter,
    states: &LetterStates,
    palette: &Palette,
) -> Markup {
    html! { tr role="row" data-key=(letter.id) {
        td role="cell" .box { label {
            input type="checkbox" name="id" value=(letter.id) autocomplete="off";
            span .unseen { "Select " (name(letter)) " of " (line(&letter.subscription.to_string())) }
        } }
        (cells(query, letter, states, Some(palette)))
    } }
}

/// Cuts a publisher's text, which may be as long as an event, to the maximum length in a row.
fn cut(text: &str) -> String {
    text::first_chars(text, CELL_MAX_CHARS)
}

/// Renders the cells of a row. The palette gives a reason the same colour as in the chart.
fn cells(
    query: &Query,
    letter: &StoredDeadLetter,
    states: &LetterStates,
    palette: Option<&Palette>,
) -> Markup {
    html! {
        td role="cell" .when data-label="Decided" { (age(decided_ms(letter))) }
        td role="cell" .first data-label="Event" { div {
            a .id href=(query.letter(letter.id)) { (name(letter)) }
            @if let Some(kind) = &letter.event_type { " " span .kind { (word(&cut(kind))) } }
        } }
        td role="cell" .whose data-label="Subscription" { (word(&letter.subscription.to_string())) }
        td role="cell" .reason data-label="Reason" {
            span {
                @if let Some(palette) = palette { (swatch(&palette.class(&letter.reason))) }
                (word(&letter.reason))
            }
        }
        td role="cell" data-label="Last outcome" { (outcome(letter.outcome.as_deref(), letter.status)) }
        td role="cell" .number data-label="Attempts" { (letter.attempts) }
        td role="cell" .replayed data-label="State" { (state(letter, states)) }
    }
}

/// Renders the name of a dead letter: the id of its event. If the event has no id, renders the
/// short id of the dead letter.
pub(in crate::console) fn name(letter: &StoredDeadLetter) -> Markup {
    html! { @match letter.event_id.as_deref().filter(|id| !id.trim().is_empty()) {
        Some(id) => (line(&cut(id))),
        None => (text::short_id(letter.id)),
    } }
}

/// Renders the state of a dead letter, and the job that has replayed it.
fn state(letter: &StoredDeadLetter, states: &LetterStates) -> Markup {
    let state = states.state(letter.id);
    html! { @match states.replay_of(letter.id) {
        Some(record) => a href={ "/jobs/" (record.job) } {
            (state) span .unseen { ", by the job " (line(&record.job)) }
        },
        None => (state),
    } }
}

fn paging(query: &Query, at: usize, pages: usize, letters: usize) -> Markup {
    let (first, last) = ((at - 1) * query.limit + 1, (at * query.limit).min(letters));
    html! { nav .paging aria-label="Pages of the list" {
        @if at > 1 {
            a .button rel="prev" href=(query.with_page(at - 1)) { "Newer" }
        } @else {
            span .button.off { "Newer" }
        }
        span { (text::grouped(first as u64)) "–" (text::grouped(last as u64)) " of " (text::grouped(letters as u64)) }
        @if at < pages {
            a .button rel="next" href=(query.with_page(at + 1)) { "Older" }
        } @else {
            span .button.off { "Older" }
        }
    } }
}
