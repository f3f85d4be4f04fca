//! The first page: how many letters, when, whose and why, and the letters themselves, as far as the
//! filters mean them.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use delivery::deadletter::stored::StoredDeadLetter;
use maud::{Markup, html};

use super::chart::{Chart, Palette};
use super::filters::{chips, form};
use super::frame::{Place, Problem, Sheet, ago, block, line, moment, outcome, word};
use super::list::list;
use super::query::{Query, Wrong, pairs};
use super::shelves::{Patience, SHOWN_MS, Seen};
use super::{Page, reading};
use crate::letters::cause::{Cause, Causes};
use crate::letters::filter::decided_ms;
use crate::letters::shelf::{LETTERS_MAX, Shelf};
use crate::letters::stats::{Stats, greatest_first};
use crate::letters::text;

/// Of many causes and subscriptions the greatest are shown at once.
const NAMES_MAX: usize = 8;

/// And of the others no more than this; `lastmile deadletters why` has them all.
const CAUSES_MAX: usize = 200;

/// What the letters that are meant come to.
pub(super) struct Sums<'a> {
    pub(super) letters: Vec<&'a StoredDeadLetter>,
    stats: Stats,
    causes: Vec<Cause>,
}

impl<'a> Sums<'a> {
    fn of(letters: Vec<&'a StoredDeadLetter>) -> Self {
        let (mut stats, mut causes) = (Stats::default(), Causes::default());
        for letter in &letters {
            stats.add(letter);
            causes.add(letter);
        }
        Self { letters, stats, causes: causes.sorted() }
    }
}

pub(super) async fn answer(State(page): State<Page>, uri: Uri) -> Result<Response, Problem> {
    let asked = pairs(uri.query().unwrap_or_default().as_bytes());
    let (query, filter) = match Query::read(&asked, &[]) {
        Ok(read) => read,
        Err(wrong) => return Ok(refused(&page, &Query::unread(asked), &wrong)),
    };
    if query.again {
        page.shelves.expire();
        return Ok(Redirect::to(&query.at("/")).into_response());
    }
    let seen = page.shelves.seen(&query, &filter, SHOWN_MS, Patience::Moment).await;
    let shelf = match seen.map_err(|error| Problem::storage(&error))? {
        Seen::There(shelf) => shelf,
        Seen::Reading(requests) => return Ok(reading(&page, requests)),
    };
    let mut all = Stats::default();
    shelf.letters.iter().for_each(|letter| all.add(letter));
    let palette = Palette::new(&greatest_first(&all.reasons));
    let meant =
        shelf.letters.iter().map(AsRef::as_ref).filter(|letter| filter.takes(letter)).collect();
    let main = content(&page, &query, &shelf, &Sums::of(meant), &palette);
    Ok(Sheet::new("Dead letters", Place::Letters, main).answer(&page, StatusCode::OK))
}

/// The form as it was filled in, and what has to be changed.
fn refused(page: &Page, query: &Query, wrong: &Wrong) -> Response {
    let main = html! {
        h1 { "Nothing is shown" }
        (form(query, Some(wrong)))
    };
    Sheet::new("A filter cannot be used", Place::Letters, main)
        .answer(page, StatusCode::BAD_REQUEST)
}

fn content(
    page: &Page,
    query: &Query,
    shelf: &Shelf,
    sums: &Sums<'_>,
    palette: &Palette,
) -> Markup {
    html! {
        (head(query, shelf, sums))
        (remarks(page, shelf))
        @if shelf.letters.is_empty() && query.is_all() {
            (nothing(page))
        } @else {
            (form(query, None))
            @if sums.letters.is_empty() {
                (none_meant(query, shelf))
            } @else {
                (figures(query, sums, palette))
                (causes(query, &sums.causes))
                (list(query, shelf, sums, palette))
            }
        }
    }
}

fn head(query: &Query, shelf: &Shelf, sums: &Sums<'_>) -> Markup {
    let moments = || sums.letters.iter().filter_map(|letter| decided_ms(letter));
    let (first_ms, last_ms) = (moments().min(), moments().max());
    let count = sums.letters.len() as u64;
    html! {
        div .head {
            div {
                h1 {
                    (text::grouped(count)) " dead " (if count == 1 { "letter" } else { "letters" })
                    @if !query.is_all() { span .of { " of " (text::grouped(shelf.letters.len() as u64)) } }
                }
                p .sub {
                    @if let (Some(_), Some(_)) = (first_ms, last_ms) {
                        @if first_ms < last_ms { (moment(first_ms)) " – " }
                        (moment(last_ms))
                        " · "
                    }
                    "read " (ago(shelf.read_ms)) " · " a href=(query.reread()) { "Read again" }
                }
            }
            @if count > 0 {
                a .button.primary href=(query.at("/replay")) {
                    "Replay " (if count == 1 { "it".to_owned() } else { format!("these {}", text::grouped(count)) })
                    "…"
                }
            }
        }
        (chips(query))
    }
}

/// What was not read.
fn remarks(page: &Page, shelf: &Shelf) -> Markup {
    let strange = page.letters.strange();
    html! {
        @if shelf.is_cut {
            p .remark {
                "There are more than " (text::grouped(LETTERS_MAX as u64))
                " letters. About so many of the newest are summed up here; "
                "filters such as since and until reach the others."
            }
        }
        @if strange.blobs > 0 {
            p .remark { (text::grouped(strange.blobs)) " blobs are no dead letters, such as " (line(&strange.example)) }
        }
    }
}

fn nothing(page: &Page) -> Markup {
    html! { section .notice {
        h2 { "Nothing was left undelivered" }
        p {
            "There is no dead letter in " code { (line(&page.letters.place().name)) }
            ". New ones appear here as they are stored."
        }
        p { "To see some: " code { "lastmile demo" } " leaves eight of them in " code { ".lastmile" } "." }
    } }
}

fn none_meant(query: &Query, shelf: &Shelf) -> Markup {
    html! { section .notice {
        h2 { "No letter is meant" }
        p {
            "None of the " (text::letters(shelf.letters.len() as u64))
            " here fits all of the filters. Take one away, or widen it: " code { "5xx" }
            " means every status of its kind, and " code { "*" }
            " stands for anything in type, source, id and destination."
        }
        p {
            a .button href="/" { "All letters" }
            @if query.values("since").len() == 1 {
                " " a .button href=(query.without("since", query.values("since")[0])) { "At any time" }
            }
        }
    } }
}

fn figures(query: &Query, sums: &Sums<'_>, palette: &Palette) -> Markup {
    let reasons = greatest_first(&sums.stats.reasons);
    html! { div .figures {
        @if let Some(chart) = Chart::of(sums.letters.iter().copied()) {
            (chart.draw(query, palette, &reasons))
        }
        section .panel aria-labelledby="by-subscription" {
            h2 #by-subscription { "By subscription" }
            (bars(query, &greatest_first(&sums.stats.subscriptions)))
        }
    } }
}

/// Counts with bars, each a filter.
fn bars(query: &Query, counts: &[(&str, u64)]) -> Markup {
    let greatest = counts.first().map_or(1, |(_, count)| (*count).max(1));
    let row = |(name, count): &(&str, u64)| {
        html! { li {
            a href=(query.with(&of_subscription(name))) {
                span .name { (word(name)) } b { (text::grouped(*count)) }
                svg .bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                    rect width=((count * 1_000 / greatest).max(4)) height="10" {}
                }
            }
        } }
    };
    html! {
        ul .bars { @for pair in counts.iter().take(NAMES_MAX) { (row(pair)) } }
        @if counts.len() > NAMES_MAX {
            details {
                summary { (counts.len() - NAMES_MAX) " more" }
                ul .bars { @for pair in &counts[NAMES_MAX..] { (row(pair)) } }
            }
        }
    }
}

/// A whole name as the three filters that it is, for a name may hold a slash nowhere else.
fn of_subscription(name: &str) -> [(&str, &str); 3] {
    let mut parts = name.splitn(3, '/');
    ["namespace", "topic", "subscription"].map(|of| (of, parts.next().unwrap_or_default()))
}

fn causes(query: &Query, causes: &[Cause]) -> Markup {
    let (first, rarer) = causes.split_at(causes.len().min(NAMES_MAX));
    html! { section aria-labelledby="why" {
        h2 #why { "Why" }
        (table(query, first))
        @if !rarer.is_empty() {
            details .more {
                summary {
                    (text::grouped(rarer.len() as u64)) " rarer "
                    (if rarer.len() == 1 { "cause" } else { "causes" })
                }
                (table(query, &rarer[..rarer.len().min(CAUSES_MAX)]))
            }
        }
    } }
}

fn table(query: &Query, causes: &[Cause]) -> Markup {
    html! { table .cards role="table" aria-labelledby="why" {
        thead role="rowgroup" { tr role="row" {
            th role="columnheader" .number { "Letters" }
            th role="columnheader" { "Last outcome" }
            th role="columnheader" { "Response, or why" }
            th role="columnheader" { "Destination" }
            th role="columnheader" { "Newest" }
        } }
        tbody role="rowgroup" { @for of in causes { (cause(query, of)) } }
    } }
}

fn cause(query: &Query, cause: &Cause) -> Markup {
    let key = &cause.key;
    let status = key.status.map(|status| status.to_string());
    let known = [("destination", &key.destination), ("outcome", &key.outcome), ("status", &status)];
    let known: Vec<(&str, &str)> =
        known.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    html! { tr role="row" {
        td role="cell" .number data-label="Letters" {
            @if known.is_empty() { (text::grouped(cause.letters)) } @else {
                a href=(query.with(&known)) title="Only these: same destination, outcome and status" {
                    b { (text::grouped(cause.letters)) }
                }
            }
        }
        td role="cell" data-label="Last outcome" { (outcome(key.outcome.as_deref(), key.status)) }
        td role="cell" .said data-label="Response, or why" { (line(&key.line)) }
        td role="cell" .address data-label="Destination" {
            @match &key.destination { Some(url) => (word(url)), None => span .none { "nowhere" } }
        }
        td role="cell" .when data-label="Newest" { a href={ "/letters/" (cause.example) } { (moment(cause.last_ms)) } }
    } }
}

/// What a text of several lines says, in a box of its own.
pub(super) fn quoted(text: &str, label: &str) -> Markup {
    html! { pre role="region" tabindex="0" aria-label=(label) { (block(text)) } }
}
