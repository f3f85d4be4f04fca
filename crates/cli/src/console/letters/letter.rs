//! Serves the page of one dead letter: its event, its reason, its attempts, and its location in
//! storage.

use std::sync::Arc;

use axum::extract::{self, Path};
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use deadletters::cause::titled_cause;
use deadletters::facts::decided_ms;
use deadletters::ledger::ReplayRecord;
use deadletters::matches_id;
use delivery::deadletter::stored::{FailedAt, StoredDeadLetter, StoredSink};
use maud::{Markup, html};

use super::caches::{COUNT_MAX_AGE_MS, CacheState, WaitMode};
use super::curl;
use super::links::{self, LetterLinks};
use super::list::name;
use super::neighbours::{ListPlace, related};
use super::reason_text::meaning;
use super::timeline::{self, timeline};
use crate::console::access::Action;
use crate::console::app::{Console, SharedConsole};
use crate::console::shell::error::PageError;
use crate::console::shell::layout::{PageLayout, Section};
use crate::console::shell::markup::{
    block, boxed, line, named_box, or_none, outcome, states_not_read, time, time_and_age, word,
};
use crate::console::shell::query::{Query, href, pairs};
use crate::console::subscriptions;
use crate::terminal::text;
use crate::terminal::text::indented;

/// The maximum size of an event that is shown. For a larger event, the page links to the blob.
const SHOWN_MAX_BYTES: usize = 256 * 1_024;
/// The maximum length of an id in a URL: a UUID with hyphens.
const ID_MAX_CHARS: usize = 36;

pub(in crate::console) async fn answer(
    extract::State(console): extract::State<SharedConsole>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    // The query contains the filters of the list from which the user opened this page.
    let (query, filter) = Query::read(&pairs(uri.query().unwrap_or_default().as_bytes()), &[])?;
    let letter = find(&console, &id).await?;
    let states = console.letters.states().await.map_err(PageError::storage)?;
    let replayed = states.replay_of(letter.id);
    let cache = console.caches.held(&query);
    let place = cache.as_deref().and_then(|cache| ListPlace::find(letter.id, &filter, cache));
    let others = cache.as_deref().map(|cache| related(&letter, cache));
    let links = links::find_links(&letter, &states);
    let shown = ShownLetter {
        letter: &letter,
        query: &query,
        place: place.as_ref(),
        others,
        links: &links,
    };
    let main = html! {
        (states_not_read(&states))
        (content(&console, &shown, replayed))
    };
    let title = letter.event_id.clone().unwrap_or_else(|| letter.id.to_string());
    let command = Some(format!("deadletters show{} {}", console.options, letter.id));
    let page = PageLayout { command, ..PageLayout::new(title, Section::DeadLetters, main) };
    Ok(page.respond(&console, StatusCode::OK))
}

/// Serves the stored blob of a dead letter, as plain text so that browsers do not interpret it.
pub(in crate::console) async fn raw(
    extract::State(console): extract::State<SharedConsole>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    if console.hides_events {
        let why = "The console was started with --hide-events.";
        return Err(PageError::new(StatusCode::FORBIDDEN, "The event is hidden", why));
    }
    let letter = find(&console, &id).await?;
    let bytes = console.letters.bytes(&letter.key).await.map_err(PageError::storage)?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response())
}

/// Finds a dead letter by its id or a prefix of the id. If a complete cache has no such id, the
/// container is not searched. Otherwise, any URL could cause a read of the whole container.
pub(in crate::console) async fn find(
    console: &Console,
    id: &str,
) -> Result<StoredDeadLetter, PageError> {
    if let Some(key) = id.parse().ok().and_then(|id| console.caches.key_of(id)) {
        // The blob may have been removed since the cache was filled.
        if let Ok(letter) = console.letters.of_key(&key).await {
            return Ok(letter);
        }
    }
    let none = || {
        let why = format!(
            "The dead letter {id} does not exist in {}. It may have been removed.",
            console.letters.container.name
        );
        PageError::new(StatusCode::NOT_FOUND, "No such dead letter", why)
    };
    // An invalid id must not cause a storage request.
    let is_id = id.len() <= ID_MAX_CHARS && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_id || !may_exist(console, id).await? {
        return Err(none());
    }
    let mut found = console.letters.find(&[id.to_owned()]).await.map_err(PageError::storage)?;
    if found.len() > 1 {
        let mut why = format!("several dead letters match {id}:");
        for letter in &found {
            why.push_str(&format!("\n  {}  {}", letter.id, letter.key));
        }
        return Err(PageError::new(StatusCode::CONFLICT, "Several dead letters", why));
    }
    found.pop().ok_or_else(none)
}

/// Returns true if a dead letter whose id has this prefix may exist: if the cache contains one, or
/// the cache is incomplete.
async fn may_exist(console: &Console, id: &str) -> Result<bool, PageError> {
    let state = console.caches.whole(COUNT_MAX_AGE_MS, WaitMode::UntilRead).await;
    Ok(match state? {
        CacheState::Ready(cache) => {
            let has_id = |letter: &Arc<StoredDeadLetter>| matches_id(id, &letter.id.to_string());
            cache.is_truncated || cache.letters.iter().any(has_id)
        }
        CacheState::Reading(_) => true,
    })
}

/// A dead letter with its related data, and the query of the list from which the user opened it.
struct ShownLetter<'a> {
    letter: &'a StoredDeadLetter,
    query: &'a Query,
    place: Option<&'a ListPlace>,
    /// The rendered list of other dead letters of the same event.
    others: Option<Markup>,
    links: &'a LetterLinks,
}

fn content(console: &Console, shown: &ShownLetter<'_>, replayed: Option<&ReplayRecord>) -> Markup {
    let (letter, query) = (shown.letter, shown.query);
    let id = letter.id.to_string();
    let page = shown.place.map_or(1, |place| place.page(query.limit));
    html! {
        div .trail {
            p .crumbs { a href=(query.with_page(page)) { "Dead letters" } " / " span { (name(letter)) } }
            @if let Some(place) = shown.place { (place.links(query)) }
        }
        div .head {
            div {
                h1 { (name(letter)) }
                p .sub {
                    @if let Some(kind) = &letter.event_type { (word(kind)) " for " } @else { "for " }
                    (subscriptions::link(console, &letter.subscription.to_string()))
                }
            }
            (console.access.link(Action::Replay, true, &href("/replay", [("id", id.as_str())]), &html! { "Replay it…" }))
        }
        (verdict(letter, replayed))
        (shown.links.facts(letter))
        div .story {
            div {
                section aria-labelledby="attempts" {
                    h2 #attempts { "Attempts" span .of { " " (attempts(letter)) } }
                    (timeline(letter))
                }
                (response(letter.last_response.as_deref(), &letter.last_headers, "response"))
                @if let Some(sink) = &letter.sink { (sink_section(sink)) }
                (shown.links.form(console, letter))
            }
            div {
                (event(console, letter))
                @if let Some(others) = &shown.others { (others) }
                (request(console, letter))
                (storage(console, letter))
            }
        }
    }
}

fn attempts(letter: &StoredDeadLetter) -> String {
    let attempts = text::counted(letter.attempts.into(), "attempt");
    match decided_ms(letter).zip(letter.published_ms) {
        Some((end_ms, published_ms)) if end_ms > published_ms => {
            format!("{attempts} in {}", text::duration(end_ms - published_ms))
        }
        Some(_) | None => attempts,
    }
}

/// Renders the reason of a dead letter, with its meaning and its details.
fn verdict(letter: &StoredDeadLetter, replayed: Option<&ReplayRecord>) -> Markup {
    html! { section .verdict aria-labelledby="verdict" {
        h2 #verdict { (word(&letter.reason)) }
        @if let Some(meaning) = meaning(&letter.reason) { p { (meaning) } }
        @if let Some(detail) = &letter.detail { p .detail { (block(detail)) } }
        dl {
            div { dt { "Cause" } dd { (cause(letter)) } }
            div { dt { "Last outcome" } dd { (outcome(letter.outcome.as_deref(), letter.status)) } }
            div {
                dt { @match letter.failure().at {
                    FailedAt::Reply => "Address for replies",
                    FailedAt::Destination | FailedAt::Sink => "Destination",
                } }
                dd .address { (or_none(letter.destination.as_deref().map(word), "nowhere")) }
            }
            div { dt { "Decided" } dd { (time_and_age(decided_ms(letter))) } }
            div { dt { "Replayed" } dd { (replay(replayed)) } }
            @if let Some(problem) = &letter.sink_error {
                div .wide { dt { "Problem with the subscription's container" } dd { (block(problem)) } }
            }
        }
    } }
}

/// Renders the title of a dead letter's cause, as a link to the page of the cause.
fn cause(letter: &StoredDeadLetter) -> Markup {
    let (id, title) = titled_cause(letter);
    html! { a href={ "/causes/" (id) } { (line(&title)) } }
}

fn replay(replayed: Option<&ReplayRecord>) -> Markup {
    let Some(record) = replayed else { return html! { span .none { "not yet" } } };
    let job = html! { a href={ "/jobs/" (record.job) } { (line(&record.job)) } };
    html! {
        @if record.is_uncertain() { "uncertain, by " (job) ", which was interrupted" }
        @else { (line(&text::seconds(&record.entry.at))) " by " (job) }
        " " span .kind { "as delivery " (record.entry.delivery) }
    }
}

/// Renders the outcome at a sink that did not accept the dead letter.
fn sink_section(sink: &StoredSink) -> Markup {
    html! {
        section aria-labelledby="sink" {
            h2 #sink { "The sink did not accept the dead letter" }
            dl .facts {
                div {
                    dt { "Sink" }
                    dd { (or_none(sink.destination.as_deref().map(word), "unknown")) }
                }
                @if let Some(detail) = &sink.detail { div { dt { "Detail" } dd { (block(detail)) } } }
            }
            (timeline::at_sink(sink))
        }
        (response(sink.last_response.as_deref(), &[], "sink-response"))
    }
}

fn response(response: Option<&str>, headers: &[(String, String)], id: &str) -> Markup {
    html! { section aria-labelledby=(id) {
        h2 id=(id) { "Last response" }
        @if !headers.is_empty() {
            details {
                summary { (text::counted(headers.len() as u64, "header")) }
                dl .headers { @for (name, value) in headers {
                    div { dt .mono { (line(name)) } dd .mono { (line(value)) } }
                } }
            }
        }
        @match response {
            None => p .none { "There was no response." },
            Some("") => p .none { "The response body was empty." },
            Some(text) => (boxed(&indented(text).unwrap_or_else(|| text.to_owned()), "The last response")),
        }
    } }
}

fn event(console: &Console, letter: &StoredDeadLetter) -> Markup {
    let is_large = letter.event.len() > SHOWN_MAX_BYTES;
    html! { section aria-labelledby="event" {
        h2 #event { "Event" span .of { " " (text::grouped(letter.event.len() as u64)) " bytes" } }
        dl .facts {
            @for (name, value) in [("Id", &letter.event_id), ("Type", &letter.event_type), ("Source", &letter.source)] {
                @if let Some(value) = value { div { dt { (name) } dd { (word(value)) } } }
            }
            div { dt { "Published" } dd { (time(letter.published_ms)) } }
            @if let Some(trace) = &letter.traceparent { div { dt { "Trace" } dd .mono { (line(trace)) } } }
        }
        @if console.hides_events {
            p .none { "The content of the event is hidden, because the console was started with \
                       --hide-events." }
        } @else if is_large {
            p .notice {
                "The event is too large to show here: "
                a href={ "/letters/" (letter.id) "/raw" } { "open the stored blob" }
            }
        } @else {
            (boxed(&indented(&letter.event).unwrap_or_else(|| letter.event.clone()), "The event"))
        }
    } }
}

/// Renders the headers that the subscription added to the request, and a curl command that sends
/// the event.
fn request(console: &Console, letter: &StoredDeadLetter) -> Markup {
    let is_large = letter.event.len() > SHOWN_MAX_BYTES;
    let command = curl::command(letter).filter(|_| !is_large && !console.hides_events);
    html! { section aria-labelledby="request" {
        h2 #request { "Request" }
        @if letter.headers.is_empty() {
            p .none { "The subscription sets no headers, or only headers with credentials." }
        } @else {
            h3 { "Headers" span .of { " of the subscription as sent, without credentials" } }
            dl .facts.headers {
                @for (name, value) in &letter.headers { div { dt .mono { (line(name)) } dd .mono { (line(value)) } } }
            }
        }
        @if let Some(command) = command {
            details .command {
                summary { "The event as a curl command" }
                p .hint {
                    "Sends the event as it was published, without credentials, signatures or \
                     the query of the address. The subscription may use another schema."
                    @if !command.left_out.is_empty() {
                        " Omitted: "
                        @for (at, name) in command.left_out.iter().enumerate() { @if at > 0 { ", " } (line(name)) }
                        "."
                    }
                }
                button type="button" data-copy="curl" hidden { "Copy" }
                (named_box(&command.text, "The event as a curl command", "curl"))
            }
        } @else if is_large {
            p .none { "The event is too large for a curl command." }
        }
    } }
}

fn storage(console: &Console, letter: &StoredDeadLetter) -> Markup {
    let container = &console.letters.container;
    html! { section aria-labelledby="stored" {
        h2 #stored { "Storage location" }
        dl .facts {
            div { dt { "Id" } dd .mono { (letter.id) } }
            div { dt { "Container" } dd .mono { (line(&container.name)) } }
            div { dt { "Key" } dd .mono { (word(&letter.key)) } }
        }
        @if !console.hides_events {
            p { a href={ "/letters/" (letter.id) "/raw" } { "The stored blob" } }
        }
    } }
}
