//! The first page: how many dead letters match the filters, when, of which subscriptions and why,
//! and the list of them.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::cause::Cause;
use deadletters::facts::decided_ms;
use deadletters::letter_cache::{LETTERS_MAX, LetterCache};
use deadletters::stats::{Stats, greatest_first};
use delivery::time::moment::rfc3339;
use maud::{Markup, html};

use super::app::{App, SharedApp};
use super::chart::{Chart, Palette};
use super::error::PageError;
use super::filters::{chips, form};
use super::layout::{NavSection, PageLayout, UpdateSchedule, reading};
use super::letter_caches::{CacheState, LIST_MAX_AGE_MS, WaitMode};
use super::list::list;
use super::markup::{jobs_not_shown, line, time, word};
use super::query::{InvalidField, Query, pairs};
use super::suggestions::Suggestions;
use super::summary::Summary;
use crate::text;

/// How many causes and subscriptions are shown unfolded, the most frequent ones.
const UNFOLDED_MAX: usize = 8;
/// How many causes are shown above the list.
const TOP_CAUSES: usize = 4;

/// The most folded causes: as many as `lastmile deadletters why` shows, with those above.
const FOLDED_CAUSES_MAX: usize = 22;

pub(super) async fn answer(State(app): State<SharedApp>, uri: Uri) -> Result<Response, PageError> {
    let pairs = pairs(uri.query().unwrap_or_default().as_bytes());
    let (query, filter) = match Query::read(&pairs, &[]) {
        Ok(read) => read,
        Err(invalid) => return Ok(invalid_filter(&app, &Query::unchecked(pairs), &invalid)),
    };
    if query.is_reread {
        app.caches.expire();
        // Redirected, so that a reload does not read everything once more.
        return Ok(Redirect::to(&query.at("/")).into_response());
    }
    let container = &app.letters.container;
    let state = app.caches.matching(&query, &filter, LIST_MAX_AGE_MS, WaitMode::Briefly).await;
    let cache = match state? {
        CacheState::Ready(cache) => cache,
        CacheState::Reading(requests) => return Ok(reading(container, requests)),
    };
    let mut all = Stats::default();
    cache.letters.iter().for_each(|letter| all.add(letter));
    let palette = Palette::new(&greatest_first(&all.reasons));
    let summary = Summary::of(cache.matching(&filter));
    let suggestions = Suggestions::of(&cache, &all);
    let main = html! {
        (head(&query, &cache, &summary))
        (notices(&app, &cache))
        (content(&app, &query, &cache, &summary, &palette, &suggestions))
    };
    let updates = UpdateSchedule { read_ms: cache.read_ms, period_ms: LIST_MAX_AGE_MS };
    let count = text::dead_letters(summary.letters.len() as u64);
    let page = PageLayout::new("Dead letters", NavSection::DeadLetters, main);
    let page = PageLayout { updates: Some(updates), announcement: count, ..page };
    Ok(page.respond(container, StatusCode::OK))
}

/// The form as it was filled in, with the error.
fn invalid_filter(app: &App, query: &Query, invalid: &InvalidField) -> Response {
    let main = html! {
        h1 { "Nothing is shown" }
        (form(query, &Suggestions::default(), Some(invalid)))
    };
    PageLayout::new("A filter cannot be used", NavSection::DeadLetters, main)
        .respond(&app.letters.container, StatusCode::BAD_REQUEST)
}

fn content(
    app: &App,
    query: &Query,
    cache: &LetterCache,
    summary: &Summary<'_>,
    palette: &Palette,
    suggestions: &Suggestions,
) -> Markup {
    html! {
        @if cache.letters.is_empty() && query.is_all() {
            (empty_container(app))
        } @else {
            (form(query, suggestions, None))
            (chips(query))
            @if summary.letters.is_empty() {
                (no_match(query, cache))
            } @else {
                (figures(query, summary, palette))
                (list(query, cache, summary, palette))
                (causes(query, &summary.causes))
                (subscriptions(query, summary))
            }
        }
    }
}

fn head(query: &Query, cache: &LetterCache, summary: &Summary<'_>) -> Markup {
    let times = || summary.letters.iter().filter_map(|letter| decided_ms(letter));
    let (first_ms, last_ms) = (times().min(), times().max());
    let count = summary.letters.len() as u64;
    html! {
        div .head {
            div {
                h1 {
                    (text::dead_letters(count))
                    @if !query.is_all() { span .of { " of " (text::grouped(cache.letters.len() as u64)) } }
                }
                p .sub {
                    @if let (Some(_), Some(_)) = (first_ms, last_ms) {
                        @if first_ms < last_ms { (time(first_ms)) " – " }
                        (time(last_ms))
                        " · "
                    }
                    "as of " (time_of_day(cache.read_ms)) " UTC · " a href=(query.reread()) { "Read again" }
                    // Filled by page.js.
                    span #refresh data-keep {}
                }
            }
            @if count > 0 {
                // To replay everything is seldom what is wanted: loud only once something is filtered.
                a .button.primary[!query.is_all()] href=(query.at("/replay")) {
                    "Replay " (if count == 1 { "it".to_owned() } else { format!("these {}", text::grouped(count)) })
                    "…"
                }
            }
        }
    }
}

/// A time today, to the second.
fn time_of_day(ms: u64) -> Markup {
    let text = text::at(Some(ms));
    let time = text.split(' ').nth(1).unwrap_or(&text).trim_end_matches('Z');
    html! { time datetime=(rfc3339(ms)) title=(text) { (time) } }
}

/// What is not shown.
fn notices(app: &App, cache: &LetterCache) -> Markup {
    let unreadable = app.letters.unreadable_blobs();
    html! {
        @if cache.is_truncated {
            p .notice {
                "There are more than " (text::grouped(LETTERS_MAX as u64))
                " dead letters. Only about that many of the newest are summed up here; "
                "filters such as since and until show the others."
            }
        }
        @if unreadable.count > 0 {
            p .notice {
                (text::grouped(unreadable.count)) " blobs are not dead letters, for example "
                (line(&unreadable.example))
            }
        }
        (jobs_not_shown(cache.states.unreadable()))
    }
}

fn empty_container(app: &App) -> Markup {
    html! { section .message {
        h2 { "There are no dead letters" }
        p {
            "There is no dead letter in " code { (line(&app.letters.container.name)) }
            ". New ones appear here as they are stored."
        }
        p { "To see some: " code { "lastmile demo" } " writes eight of them to " code { ".lastmile" } "." }
    } }
}

fn no_match(query: &Query, cache: &LetterCache) -> Markup {
    if query.is_all() {
        return html! { section .message {
            h2 { "No dead letter is open" }
            p { (text::dead_letters(cache.letters.len() as u64)) " in other states." }
            p { a .button href=(query.with(&[("state", "all")])) { "Show them" } }
        } };
    }
    html! { section .message {
        h2 { "No dead letter matches" }
        p {
            "None of the " (text::dead_letters(cache.letters.len() as u64))
            " here matches all of the filters. Remove one, or widen it: " code { "5xx" }
            " matches every status of that class, and " code { "*" }
            " matches anything in type, source, id and destination."
        }
        p {
            a .button href="/" { "All dead letters" }
            @if let [since] = query.values("since").as_slice() {
                " " a .button href=(query.without("since", since)) { "At any time" }
            }
        }
    } }
}

fn figures(query: &Query, summary: &Summary<'_>, palette: &Palette) -> Markup {
    let reasons = greatest_first(&summary.stats.reasons);
    html! { div .figures {
        @if let Some(chart) = Chart::of(summary.letters.iter().copied()) {
            (chart.draw(query, palette, &reasons))
        }
        (top_causes(query, &summary.causes))
    } }
}

/// The most frequent causes in a line each.
fn top_causes(query: &Query, causes: &[Cause]) -> Markup {
    html! { section .panel.top-causes aria-labelledby="top-causes" {
        h2 #top-causes { "Most frequent causes" }
        ul {
            @for cause in causes.iter().take(TOP_CAUSES) {
                li {
                    b .number { (text::grouped(cause.count)) }
                    div {
                        a href=(only(query, cause)) { (line(&cause.title)) }
                        " " span .host { (line(&subscriptions_of(cause))) }
                    }
                }
            }
        }
        p .sub { a href="#why" {
            @if causes.len() > TOP_CAUSES { "All " (text::grouped(causes.len() as u64)) " causes" } @else { "With subscriptions" }
        } }
    } }
}

/// The overview with only the letters of a cause.
fn only(query: &Query, cause: &Cause) -> String {
    let id = cause.id.to_string();
    query.with(&[("cause", id.as_str())])
}

/// The most frequent subscription of a cause, and the number of others.
fn subscriptions_of(cause: &Cause) -> String {
    let first = cause.subscriptions.first().map(|of| of.name.as_str()).unwrap_or_default();
    match cause.subscriptions.len().saturating_sub(1) {
        0 => first.to_owned(),
        more => format!("{first} +{more}"),
    }
}

/// Counts by subscription.
fn subscriptions(query: &Query, summary: &Summary<'_>) -> Markup {
    html! { section .panel aria-labelledby="by-subscription" {
        h2 #by-subscription { "By subscription" }
        (bars(query, &greatest_first(&summary.stats.subscriptions)))
    } }
}

/// Counts with bars, each a link to its filter.
fn bars(query: &Query, counts: &[(&str, u64)]) -> Markup {
    let greatest = counts.first().map_or(1, |(_, count)| (*count).max(1));
    let row = |(name, count): &(&str, u64)| {
        html! { li {
            a href=(query.with(&subscription_filters(name))) {
                span .name { (word(name)) } b { (text::grouped(*count)) }
                svg .bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                    rect width=((count * 1_000 / greatest).max(4)) height="10" {}
                }
            }
        } }
    };
    html! {
        ul .bars { @for pair in counts.iter().take(UNFOLDED_MAX) { (row(pair)) } }
        @if counts.len() > UNFOLDED_MAX {
            details {
                summary { (counts.len() - UNFOLDED_MAX) " more" }
                ul .bars { @for pair in counts.iter().skip(UNFOLDED_MAX) { (row(pair)) } }
            }
        }
    }
}

/// The full name of a subscription as three filters.
fn subscription_filters(name: &str) -> [(&str, &str); 3] {
    let mut parts = name.splitn(3, '/');
    ["namespace", "topic", "subscription"].map(|of| (of, parts.next().unwrap_or_default()))
}

fn causes(query: &Query, causes: &[Cause]) -> Markup {
    let (first, rarer) = causes.split_at(causes.len().min(UNFOLDED_MAX));
    html! { section aria-labelledby="why" {
        h2 #why { "Why" }
        (table(query, first.iter()))
        @if !rarer.is_empty() {
            details .more {
                summary {
                    (text::counted(rarer.len() as u64, "rarer cause"))
                }
                (table(query, rarer.iter().take(FOLDED_CAUSES_MAX)))
                @if let Some(more) = rarer.len().checked_sub(FOLDED_CAUSES_MAX).filter(|more| *more > 0) {
                    p .sub {
                        "… and " (text::grouped(more as u64)) " more: "
                        code { "lastmile deadletters why --output json" }
                    }
                }
            }
        }
    } }
}

fn table<'a>(query: &Query, causes: impl Iterator<Item = &'a Cause>) -> Markup {
    html! { table .cards role="table" aria-labelledby="why" {
        thead role="rowgroup" { tr role="row" {
            th role="columnheader" .number { "Count" }
            th role="columnheader" { "Cause" }
            th role="columnheader" { "Subscriptions" }
            th role="columnheader" { "Trend" }
            th role="columnheader" { "Newest" }
        } }
        tbody role="rowgroup" { @for of in causes { (cause(query, of)) } }
    } }
}

fn cause(query: &Query, cause: &Cause) -> Markup {
    html! { tr role="row" {
        td role="cell" .number data-label="Count" {
            a href=(only(query, cause)) title="Only this cause" { b { (text::grouped(cause.count)) } }
        }
        td role="cell" .said data-label="Cause" { (line(&cause.title)) }
        td role="cell" .address data-label="Subscriptions" { (word(&subscriptions_of(cause))) }
        td role="cell" data-label="Trend" { (cause.trend.as_str()) }
        td role="cell" .when data-label="Newest" { a href=(query.letter(cause.example)) { (time(cause.last_ms)) } }
    } }
}
