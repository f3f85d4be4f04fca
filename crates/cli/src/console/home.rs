//! Serves the first page: the causes of dead letters, then the destinations, then the newest dead
//! letters.
//!
//! For each cause, the page shows when it began, its subscriptions, whether dead letters still
//! arrive, the last response, and the forecast of a replay.

use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::cause::{Cause, Trend};
use deadletters::letter_cache::LetterCache;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use maud::{Markup, html};
use uuid::Uuid;

use super::access::Action;
use super::app::{Console, SharedConsole};
use super::destinations::{Seen, no_deployment};
use super::letters::caches::{CacheState, LIST_MAX_AGE_MS, WaitMode};
use super::letters::filters::periods;
use super::letters::list::plain_rows;
use super::letters::overview::{chart, notices, read_at, subscriptions};
use super::letters::summary::Summary;
use super::replay::forecast::Forecast;
use super::shell::error::PageError;
use super::shell::layout::{PageLayout, Section, UpdateSchedule, reading};
use super::shell::markup::{age, line, outcome, word};
use super::shell::query::{LIST, Query, href, pairs, range_ms};
use super::sources::SourcesRead;
use crate::terminal::text;

/// The maximum number of causes on the page, as in `lastmile deadletters why`.
const CAUSES_MAX: usize = 30;
/// The maximum number of destinations on the page. The most urgent come first.
const DESTINATIONS_MAX: usize = 10;
/// The number of newest dead letters on the page.
const NEWEST_MAX: usize = 10;
/// The maximum number of characters of a response that are shown in a row.
const SAID_CHARS: usize = 120;

pub(super) async fn answer(
    State(console): State<SharedConsole>,
    uri: Uri,
) -> Result<Response, PageError> {
    let (query, filter) = Query::read(&pairs(uri.query().unwrap_or_default().as_bytes()), &[])?;
    if query.is_reread {
        console.caches.expire();
        // Redirect, so that reloading the page does not read everything again.
        return Ok(Redirect::to(&query.at("/")).into_response());
    }
    let state = console.caches.matching(&query, &filter, LIST_MAX_AGE_MS, WaitMode::Briefly).await;
    let cache = match state? {
        CacheState::Ready(cache) => cache,
        CacheState::Reading(requests) => return Ok(reading(&console, requests)),
    };
    let seen = Seen::read(&console, range_ms(&filter)).await;
    let sources = console.sources.read().await;
    let summary = Summary::new(cache.matching(&filter), &cache);
    let home = Home {
        console: &console,
        query: &query,
        cache: &cache,
        seen: &seen,
        sources: &sources,
        summary: &summary,
    };
    let main = home.markup();
    let updates = UpdateSchedule { read_ms: cache.read_ms, period_ms: LIST_MAX_AGE_MS };
    let announcement = text::dead_letters(summary.letters.len() as u64);
    let command = Some(format!("deadletters why{}{}", console.options, query.as_options()));
    let page = PageLayout::new("Home", Section::Home, main);
    let page = PageLayout { command, updates: Some(updates), announcement, ..page };
    Ok(page.respond(&console, StatusCode::OK))
}

struct Home<'a> {
    console: &'a Console,
    query: &'a Query,
    cache: &'a LetterCache,
    seen: &'a Seen,
    sources: &'a SourcesRead,
    summary: &'a Summary<'a>,
}

impl Home<'_> {
    fn markup(&self) -> Markup {
        let (count, causes) = (self.summary.letters.len() as u64, &self.summary.causes);
        html! {
            div .head { div {
                h1 { @match causes.len() {
                    0 if !self.query.is_all() => "No dead letters match",
                    0 if self.seen.is_any_unhealthy() => "No open dead letters, but a destination is not healthy",
                    0 => "No open dead letters",
                    several => {
                        (text::counted(several as u64, "cause")) " with "
                        (text::grouped(count)) " open dead letter" @if count != 1 { "s" }
                    }
                } }
                (read_at(self.cache, &self.query.reread("/")))
            } }
            (periods(self.query, "/"))
            (notices(self.console, self.cache))
            @if causes.is_empty() { (self.nothing_open()) }
            @else {
                (self.causes())
                (chart(self.query, self.cache, self.summary))
                (subscriptions(self.query, self.summary))
            }
            (self.destinations())
            (self.newest())
        }
    }

    fn nothing_open(&self) -> Markup {
        html! { p .sub {
            @if self.cache.letters.is_empty() {
                "There are no dead letters in " code { (line(&self.console.letters.container.name)) }
                ". New dead letters appear here as soon as they are stored. "
                code { "lastmile demo" } " creates some samples."
            } @else {
                @if self.query.is_all() { "There are no open dead letters. " }
                @else { "There are no open dead letters in this period. " a href="/" { "At any time" } " · " }
                a href=(href(LIST, [("state", "all")])) { "Show dead letters in other states" }
            }
        } }
    }

    fn causes(&self) -> Markup {
        let causes = &self.summary.causes;
        // A cause contains only the id of its example.
        let letters: HashMap<Uuid, &StoredDeadLetter> =
            self.summary.letters.iter().map(|letter| (letter.id, *letter)).collect();
        html! { section aria-labelledby="causes" {
            h2 #causes { "Causes" }
            table .cards.causes role="table" aria-labelledby="causes" {
                thead role="rowgroup" { tr role="row" {
                    th role="columnheader" .number { "Open" }
                    th role="columnheader" { "Cause" }
                    th role="columnheader" { "Affected subscriptions" }
                    th role="columnheader" { "Arriving" }
                    th role="columnheader" { "Replay forecast" }
                } }
                tbody role="rowgroup" { @for cause in causes.iter().take(CAUSES_MAX) {
                    (self.cause(cause, letters.get(&cause.example).copied()))
                } }
            }
            (placeholders(causes.get(..CAUSES_MAX.min(causes.len())).unwrap_or_default()))
            @if let Some(more) = causes.len().checked_sub(CAUSES_MAX).filter(|more| *more > 0) {
                p .hint { (text::grouped(more as u64)) " rarer causes: " code { "lastmile deadletters why --output json" } }
            }
        } }
    }

    fn cause(&self, cause: &Cause, example: Option<&StoredDeadLetter>) -> Markup {
        let path = format!("/causes/{}", cause.id);
        let id = cause.id.to_string();
        let counts: BTreeMap<String, u64> = cause
            .subscriptions
            .iter()
            .map(|subscription| (subscription.name.clone(), subscription.count))
            .collect();
        let forecast =
            Forecast::new(self.console, &counts, &self.sources.reading.catalogue, self.seen, None);
        let replay = self.query.with_others("/replay", &[("cause", &id)]);
        html! { tr role="row" {
            td role="cell" .number data-label="Open" { b { (text::grouped(cause.count)) } }
            td role="cell" .first.said data-label="Cause" { div {
                a .id href=(self.query.with_period_of(&path)) { (line(&cause.title)) }
                @if let Some(letter) = example { (said(letter)) }
            } }
            td role="cell" data-label="Affected subscriptions" { (subscriptions_of(cause)) }
            td role="cell" data-label="Arriving" { (arriving(cause, self.cache.read_ms)) }
            td role="cell" .replay-of data-label="Replay forecast" { div {
                span .kind { (forecast.short()) }
                @if forecast.is_risky() { " " b .state.bad { "the destination is not healthy" } }
                " " (self.console.access.link(Action::Replay, false, &replay, &html! { "Replay…" }))
            } }
        } }
    }

    fn destinations(&self) -> Markup {
        let all = self.seen.worst_first();
        html! { section aria-labelledby="destinations" {
            h2 #destinations { "Destinations" }
            @if self.console.deployment.is_none() { (no_deployment()) }
            @else { (self.seen.table(all.get(..DESTINATIONS_MAX.min(all.len())).unwrap_or_default())) }
            @if all.len() > DESTINATIONS_MAX {
                p { a href="/destinations" { "All " (text::grouped(all.len() as u64)) " destinations" } }
            }
        } }
    }

    fn newest(&self) -> Markup {
        let newest = self.summary.letters.get(..NEWEST_MAX.min(self.summary.letters.len()));
        let newest = newest.unwrap_or_default();
        html! { @if !newest.is_empty() { section aria-labelledby="newest" {
            h2 #newest { "Newest dead letters" }
            (plain_rows(self.query, newest, &self.cache.states))
            p { a href=(self.query.at(LIST)) { "All " (text::dead_letters(self.summary.letters.len() as u64)) } }
        } } }
    }
}

/// Renders the last outcome of a dead letter, and the beginning of the last response.
fn said(letter: &StoredDeadLetter) -> Markup {
    let response = letter.last_response.as_deref().unwrap_or_default();
    let first = response.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    html! { div .kind {
        @match letter.status {
            Some(_) => { "Last: " (outcome(letter.outcome.as_deref(), letter.status)) },
            None if letter.destination.is_none() => "No request was sent",
            // The title already names the failure of the connection.
            None => "Last: no response",
        }
        @if !first.is_empty() { " “" (line(&text::first_chars(first, SAID_CHARS))) "”" }
    } }
}

/// Renders an explanation of placeholders, if the title of a cause contains one.
pub(super) fn placeholders(causes: &[Cause]) -> Markup {
    html! { @if causes.iter().any(Cause::has_placeholder) {
        p .hint {
            "A placeholder in a title, such as " code { "<number>" } ", stands for a value that differs between events."
        }
    } }
}

/// Renders the most frequent subscription of a cause, and the number of its other subscriptions.
pub(super) fn subscriptions_of(cause: &Cause) -> Markup {
    html! {
        @if let Some(first) = cause.subscriptions.first() { (word(&first.name)) }
        @if cause.subscriptions.len() > 1 { " and " (cause.subscriptions.len() - 1) " more" }
    }
}

/// Returns true if the oldest event was published more than an hour before the first dead letter.
/// In that case, the cause probably began earlier: retries failed before the delivery became a dead
/// letter.
fn is_long_before(cause: &Cause) -> bool {
    let ages = cause.first_ms.zip(cause.oldest_event_ms);
    ages.is_some_and(|(first_ms, event_ms)| first_ms.saturating_sub(event_ms) > HOUR_MS)
}

/// Renders when a cause began, and whether dead letters with this cause still arrive.
pub(super) fn arriving(cause: &Cause, now_ms: u64) -> Markup {
    let quiet_ms = cause.last_ms.map(|last_ms| now_ms.saturating_sub(last_ms));
    html! { div .arriving {
        @match (cause.trend, quiet_ms) {
            (Trend::Over, Some(quiet_ms)) => { "none for " (text::duration(quiet_ms / SECOND_MS * SECOND_MS)) },
            (Trend::Over, None) => "at an unknown time",
            (trend, _) => { b .state.bad { "still arriving" } ", " (trend.as_str()) },
        }
        @if cause.is_reopened { " " b .state.open { "reopened" } }
        br;
        span .kind {
            @if is_long_before(cause) { "events from " (age(cause.oldest_event_ms)) ", dead letters from " (age(cause.first_ms)) }
            @else { "first " (age(cause.first_ms)) }
        }
    } }
}
