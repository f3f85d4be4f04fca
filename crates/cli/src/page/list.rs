//! The letters themselves, newest first, a page at a time.

use delivery::deadletter::stored::StoredDeadLetter;
use maud::{Markup, html};

use super::chart::{Palette, swatch};
use super::frame::{line, moment, outcome, word};
use super::overview::Sums;
use super::query::Query;
use crate::letters::filter::decided_ms;
use crate::letters::ledger::{Replayed, State};
use crate::letters::shelf::Shelf;
use crate::letters::text;

/// What is said of each letter.
const COLUMNS: [&str; 7] =
    ["Ended", "Event", "Subscription", "Reason", "Last outcome", "Attempts", "Replayed"];

/// The page of the list that is asked for, or the last there is.
pub(super) fn list(query: &Query, shelf: &Shelf, sums: &Sums<'_>, palette: &Palette) -> Markup {
    let pages = sums.letters.len().div_ceil(query.limit).max(1);
    let at = query.page.min(pages);
    let shown = sums.letters.chunks(query.limit).nth(at - 1).unwrap_or_default();
    html! { section aria-labelledby="letters" {
        h2 #letters { "Letters" span .of { " newest first" } }
        table .cards role="table" aria-labelledby="letters" {
            thead role="rowgroup" { tr role="row" { @for name in COLUMNS {
                th role="columnheader" .number[name == "Attempts"] { (name) }
            } } }
            tbody role="rowgroup" { @for letter in shown { (row(letter, shelf.replayed.get(&letter.id), palette)) } }
        }
        @if pages > 1 { (paging(query, at, pages, sums.letters.len())) }
    } }
}

fn row(letter: &StoredDeadLetter, replayed: Option<&Replayed>, palette: &Palette) -> Markup {
    html! { tr role="row" {
        td role="cell" .when data-label="Ended" { (moment(decided_ms(letter))) }
        td role="cell" .first data-label="Event" { div {
            a .id href={ "/letters/" (letter.id) } { (name(letter)) }
            @if let Some(kind) = &letter.event_type { " " span .kind { (word(kind)) } }
        } }
        td role="cell" .whose data-label="Subscription" { (word(&letter.subscription.to_string())) }
        td role="cell" .reason data-label="Reason" {
            span { (swatch(&palette.class(&letter.reason))) (word(&letter.reason)) }
        }
        td role="cell" data-label="Last outcome" { (outcome(letter.outcome.as_deref(), letter.status)) }
        td role="cell" .number data-label="Attempts" { (letter.attempts) }
        td role="cell" data-label="Replayed" { @match replayed { Some(of) => (by(of)), None => span .none { "–" } } }
    } }
}

/// What a letter is called: by its event, else by its own id.
pub(super) fn name(letter: &StoredDeadLetter) -> Markup {
    html! { @match letter.event_id.as_deref().filter(|id| !id.trim().is_empty()) {
        Some(id) => (line(id)),
        None => (letter.id.to_string()[..8]),
    } }
}

/// The job that sent a letter again, and whether that is certain.
pub(super) fn by(Replayed { job, line: of }: &Replayed) -> Markup {
    html! {
        a href={ "/jobs/" (job) } { @match of.state {
            State::Intent => "perhaps",
            State::Sent | State::Refused | State::Skipped | State::Gone | State::Unfit => {
                "yes" span .unseen { ", by the job " (line(job)) }
            },
        } }
    }
}

fn paging(query: &Query, at: usize, pages: usize, letters: usize) -> Markup {
    let (first, last) = ((at - 1) * query.limit + 1, (at * query.limit).min(letters));
    html! { nav .paging aria-label="Pages of the list" {
        @if at > 1 {
            a .button rel="prev" href=(query.turned(at - 1)) { "Newer" }
        } @else {
            span .button.off { "Newer" }
        }
        span { (text::grouped(first as u64)) "–" (text::grouped(last as u64)) " of " (text::grouped(letters as u64)) }
        @if at < pages {
            a .button rel="next" href=(query.turned(at + 1)) { "Older" }
        } @else {
            span .button.off { "Older" }
        }
    } }
}
