//! Serves the list page: the number of matching dead letters, the chart over time, the list, and
//! counts by subscription.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::facts::decided_ms;
use deadletters::letter_cache::{LETTERS_MAX, LetterCache};
use deadletters::stats::{Stats, greatest_first};
use delivery::time::moment::rfc3339;
use maud::{Markup, html};

use super::caches::{CacheState, LIST_MAX_AGE_MS, WaitMode};
use super::chart::{Chart, Palette};
use super::filters::{chips, form};
use super::list::list;
use super::suggestions::Suggestions;
use super::summary::Summary;
use crate::console::access::Action;
use crate::console::app::{Console, SharedConsole};
use crate::console::shell::error::PageError;
use crate::console::shell::layout::{PageLayout, Section, UpdateSchedule, reading};
use crate::console::shell::markup::{line, states_not_read, time, word};
use crate::console::shell::query::{InvalidField, LIST, Query, pairs};
use crate::terminal::text;

/// The number of subscriptions with the most dead letters that the page always shows. The user can
/// unfold the others.
const UNFOLDED_MAX: usize = 8;

pub(in crate::console) async fn answer(
    State(console): State<SharedConsole>,
    uri: Uri,
) -> Result<Response, PageError> {
    let pairs = pairs(uri.query().unwrap_or_default().as_bytes());
    let (query, filter) = match Query::read(&pairs, &[]) {
        Ok(read) => read,
        Err(invalid) => return Ok(invalid_filter(&console, &Query::unchecked(pairs), &invalid)),
    };
    if query.is_reread {
        console.caches.expire();
        // Redirect, so that reloading the page does not read everything again.
        return Ok(Redirect::to(&query.at(LIST)).into_response());
    }
    let state = console.caches.matching(&query, &filter, LIST_MAX_AGE_MS, WaitMode::Briefly).await;
    let cache = match state? {
        CacheState::Ready(cache) => cache,
        CacheState::Reading(requests) => return Ok(reading(&console, requests)),
    };
    let all = stats(&cache);
    let palette = Palette::new(&greatest_first(&all.reasons));
    let summary = Summary::new(cache.matching(&filter), &cache);
    let suggestions = Suggestions::collect(&cache, &all);
    let main = html! {
        (head(&console, &query, &cache, &summary))
        (notices(&console, &cache))
        (content(&console, &query, &cache, &summary, &palette, &suggestions))
    };
    let updates = UpdateSchedule { read_ms: cache.read_ms, period_ms: LIST_MAX_AGE_MS };
    let count = text::dead_letters(summary.letters.len() as u64);
    let page = PageLayout::new("Dead letters", Section::DeadLetters, main);
    let command = Some(format!("deadletters list{}{}", console.options, query.as_options()));
    let page = PageLayout { command, updates: Some(updates), announcement: count, ..page };
    Ok(page.respond(&console, StatusCode::OK))
}

/// Responds with the form, the values as entered, and the error.
fn invalid_filter(console: &Console, query: &Query, invalid: &InvalidField) -> Response {
    let main = html! {
        h1 { "No results" }
        (form(query, &Suggestions::default(), Some(invalid)))
    };
    PageLayout::new("A filter cannot be used", Section::DeadLetters, main)
        .respond(console, StatusCode::BAD_REQUEST)
}

fn content(
    console: &Console,
    query: &Query,
    cache: &LetterCache,
    summary: &Summary<'_>,
    palette: &Palette,
    suggestions: &Suggestions,
) -> Markup {
    html! {
        @if cache.letters.is_empty() && query.is_all() {
            (empty_container(console))
        } @else {
            (form(query, suggestions, None))
            (chips(query))
            @if summary.letters.is_empty() {
                (no_match(query, cache))
            } @else {
                (draw(query, summary, palette))
                (list(console, query, cache, summary, palette))
                (subscriptions(query, summary))
            }
        }
    }
}

fn head(console: &Console, query: &Query, cache: &LetterCache, summary: &Summary<'_>) -> Markup {
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
                @if last_ms.is_some() {
                    p .sub {
                        @if first_ms < last_ms { (time(first_ms)) " – " }
                        (time(last_ms))
                    }
                }
                (read_at(cache, &query.reread(LIST)))
            }
            @if count > 0 {
                // Few readers want to replay everything, so the button is prominent only if a
                // filter is set.
                (console.access.link(Action::Replay, !query.is_all(), &query.at("/replay"), &html! {
                    "Replay " (if count == 1 { "it".to_owned() } else { format!("these {}", text::grouped(count)) }) "…"
                }))
            }
        }
    }
}

/// Renders the time at which the container was read, and a link that reads it again.
pub(in crate::console) fn read_at(cache: &LetterCache, reread: &str) -> Markup {
    html! { p .sub {
        "As of " (time_of_day(cache.read_ms)) " · " a href=(reread) { "Read again" }
        // page.js fills this element.
        span #refresh data-keep {}
    } }
}

/// Renders the time of day, to the second.
fn time_of_day(ms: u64) -> Markup {
    let text = text::at(Some(ms));
    let time = text.split(' ').nth(1).unwrap_or(&text).trim_end_matches('Z');
    html! { time datetime=(rfc3339(ms)) title=(text) { (time) } }
}

/// Renders notices about data that is missing from the page: older dead letters above the limit of
/// a cache, blobs that are not dead letters, and unreadable replays or dismissals.
pub(in crate::console) fn notices(console: &Console, cache: &LetterCache) -> Markup {
    let unreadable = console.letters.unreadable_blobs();
    html! {
        @if cache.is_truncated {
            p .notice {
                "There are more than " (text::grouped(LETTERS_MAX as u64))
                " dead letters. This page covers only the newest of them, about that many; "
                "use filters such as since and until to see the others."
            }
        }
        @if unreadable.count > 0 {
            p .notice {
                (text::grouped(unreadable.count)) " blobs are not dead letters, for example "
                (line(&unreadable.example))
            }
        }
        (states_not_read(&cache.states))
    }
}

fn empty_container(console: &Console) -> Markup {
    html! { section .message {
        h2 { "There are no dead letters" }
        p {
            "There are no dead letters in " code { (line(&console.letters.container.name)) }
            ". New dead letters appear here as soon as they are stored."
        }
        p { "For samples, run " code { "lastmile demo" } ", which writes eight dead letters to " code { ".lastmile" } "." }
    } }
}

fn no_match(query: &Query, cache: &LetterCache) -> Markup {
    if query.is_all() {
        return html! { section .message {
            h2 { "No open dead letters" }
            p { (text::dead_letters(cache.letters.len() as u64)) " in other states." }
            p { a .button href=(query.with(&[("state", "all")])) { "Show them" } }
        } };
    }
    html! { section .message {
        h2 { "No dead letters match" }
        p {
            "None of the " (text::dead_letters(cache.letters.len() as u64))
            " matches all filters. Remove a filter, or widen it: " code { "5xx" }
            " matches every status of the class, and " code { "*" }
            " matches any text in type, source, id and destination."
        }
        p {
            a .button href=(LIST) { "All dead letters" }
            @if let [since] = query.values("since").as_slice() {
                " " a .button href=(query.without("since", since)) { "At any time" }
            }
        }
    } }
}

/// Renders the chart of dead letters over time, by reason.
pub(in crate::console) fn chart(
    query: &Query,
    cache: &LetterCache,
    summary: &Summary<'_>,
) -> Markup {
    let all = stats(cache);
    draw(query, summary, &Palette::new(&greatest_first(&all.reasons)))
}

/// Counts all dead letters of the cache, by reason and by other values. The colours of reasons
/// depend on these counts, so a filter does not change them.
fn stats(cache: &LetterCache) -> Stats {
    let mut all = Stats::default();
    cache.letters.iter().for_each(|letter| all.add(letter));
    all
}

fn draw(query: &Query, summary: &Summary<'_>, palette: &Palette) -> Markup {
    let reasons = greatest_first(&summary.stats.reasons);
    html! { @if let Some(chart) = Chart::new(summary.letters.iter().copied()) {
        (chart.draw(query, palette, &reasons))
    } }
}

/// Renders the number of dead letters of each subscription.
pub(in crate::console) fn subscriptions(query: &Query, summary: &Summary<'_>) -> Markup {
    html! { section .panel aria-labelledby="by-subscription" {
        h2 #by-subscription { "By subscription" }
        (bars(query, &greatest_first(&summary.stats.subscriptions)))
    } }
}

/// Renders a bar for each subscription, with its number of dead letters. Each bar links to the list
/// of the dead letters of that subscription.
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

/// Splits the full name of a subscription into three filters: namespace, topic and subscription.
fn subscription_filters(name: &str) -> [(&str, &str); 3] {
    let mut parts = name.splitn(3, '/');
    ["namespace", "topic", "subscription"].map(|field| (field, parts.next().unwrap_or_default()))
}
