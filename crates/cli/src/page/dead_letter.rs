//! One dead letter: its event, its reason, its attempts, and where it is stored.

use std::sync::Arc;

use axum::extract::{self, Path};
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use deadletters::facts::decided_ms;
use deadletters::ledger::ReplayRecord;
use deadletters::matches_id;
use delivery::deadletter::stored::{FailedAt, StoredDeadLetter, StoredSink};
use maud::{Markup, html};
use uuid::Uuid;

use super::app::{App, SharedApp};
use super::curl;
use super::error::PageError;
use super::json::indented;
use super::layout::{NavSection, PageLayout};
use super::letter_caches::{COUNT_MAX_AGE_MS, CacheState, WaitMode};
use super::letter_links::{self, LetterLinks};
use super::list::name;
use super::markup::{
    block, boxed, jobs_not_shown, line, named_box, or_none, outcome, time, time_and_age, word,
};
use super::neighbours::{ListPlace, related};
use super::query::{Query, href, pairs};
use super::reason_text::meaning;
use super::timeline::{self, timeline};
use crate::text;

/// A larger event is not shown; the page links to its blob.
const SHOWN_MAX_BYTES: usize = 256 * 1_024;
/// The length of an id.
const ID_MAX_CHARS: usize = 36;

pub(super) async fn answer(
    extract::State(app): extract::State<SharedApp>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    // The filters of the list that a person came from.
    let (query, filter) = Query::read(&pairs(uri.query().unwrap_or_default().as_bytes()), &[])?;
    let letter = find(&app, &id).await?;
    let states = app.letters.states().await.map_err(PageError::storage)?;
    let replayed = states.replay_of(letter.id);
    let cache = app.caches.held(&query);
    let place = cache.as_deref().and_then(|cache| ListPlace::of(letter.id, &filter, cache));
    let others = cache.as_deref().map(|cache| related(&letter, cache));
    let links = letter_links::of(&letter, &states);
    let shown = ShownLetter {
        letter: &letter,
        query: &query,
        place: place.as_ref(),
        others,
        links: &links,
    };
    let main = html! {
        (jobs_not_shown(states.unreadable()))
        (content(&app, &shown, replayed))
    };
    let title = letter.event_id.clone().unwrap_or_else(|| letter.id.to_string());
    let page = PageLayout::new(title, NavSection::DeadLetters, main);
    Ok(page.respond(&app.letters.container, StatusCode::OK))
}

/// The blob of a dead letter as it is stored. As plain text: a browser must not interpret it.
pub(super) async fn raw(
    extract::State(app): extract::State<SharedApp>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let letter = find(&app, &id).await?;
    let bytes = app.letters.bytes(&letter.key).await.map_err(PageError::storage)?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response())
}

/// The dead letter of this id, or of an id that begins like this. An unknown id is not searched for
/// in every blob: any URL would cost reading the whole container.
pub(super) async fn find(app: &App, id: &str) -> Result<StoredDeadLetter, PageError> {
    if let Some((id, key)) = id.parse().ok().and_then(|id: Uuid| Some((id, app.caches.key_of(id)?)))
    {
        // It may have been removed since it was read.
        let letters = app.letters.of_key(&key).await.unwrap_or_default();
        if let Some(letter) = letters.into_iter().find(|letter| letter.id == id) {
            return Ok(letter);
        }
    }
    let none = || {
        let why = format!(
            "There is no dead letter {id} in {}. It may have been removed.",
            app.letters.container.name
        );
        PageError::new(StatusCode::NOT_FOUND, "No such dead letter", why)
    };
    // What cannot be an id must not cost a storage request.
    let is_id = id.len() <= ID_MAX_CHARS && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_id || !may_exist(app, id).await? {
        return Err(none());
    }
    let mut found = app.letters.find(&[id.to_owned()]).await.map_err(PageError::storage)?;
    if found.len() > 1 {
        let mut why = format!("several dead letters match {id}:");
        for letter in &found {
            why.push_str(&format!("\n  {}  {}", letter.id, letter.key));
        }
        return Err(PageError::new(StatusCode::CONFLICT, "Several dead letters", why));
    }
    found.pop().ok_or_else(none)
}

/// Whether the cache has an id that begins like this, or does not hold everything.
async fn may_exist(app: &App, id: &str) -> Result<bool, PageError> {
    let state = app.caches.whole(COUNT_MAX_AGE_MS, WaitMode::UntilRead).await;
    Ok(match state? {
        CacheState::Ready(cache) => {
            let is_match = |id_of: Uuid| matches_id(id, &id_of.to_string());
            let mut letters = cache.letters.iter();
            let is_it = |it: &Arc<StoredDeadLetter>| is_match(it.id) || is_match(it.delivery_id());
            cache.is_truncated || letters.any(is_it)
        }
        CacheState::Reading(_) => true,
    })
}

/// A dead letter, and where a person came from.
struct ShownLetter<'a> {
    letter: &'a StoredDeadLetter,
    query: &'a Query,
    place: Option<&'a ListPlace>,
    /// Others of the same event.
    others: Option<Markup>,
    links: &'a LetterLinks,
}

fn content(app: &App, shown: &ShownLetter<'_>, replayed: Option<&ReplayRecord>) -> Markup {
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
                    a href=(subscription_href(letter)) { (word(&letter.subscription.to_string())) }
                }
            }
            a .button.primary href=(href("/replay", [("id", id.as_str())])) { "Replay it…" }
        }
        (verdict(letter, replayed))
        (shown.links.section(app, letter))
        div .story {
            div {
                section aria-labelledby="attempts" {
                    h2 #attempts { "Attempts" span .of { " " (attempts(letter)) } }
                    (timeline(letter))
                }
                (response(letter.last_response.as_deref(), "response"))
                @if let Some(sink) = &letter.sink { (sink_section(sink)) }
            }
            div {
                (event(letter))
                @if let Some(others) = &shown.others { (others) }
                (request(letter))
                (storage(app, letter))
            }
        }
    }
}

fn subscription_href(letter: &StoredDeadLetter) -> String {
    let name = &letter.subscription;
    let (namespace, topic) = (name.topic.namespace.as_str(), name.topic.topic.as_str());
    href("/", [("namespace", namespace), ("topic", topic), ("subscription", &name.name)])
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

/// Why it is a dead letter.
fn verdict(letter: &StoredDeadLetter, replayed: Option<&ReplayRecord>) -> Markup {
    html! { section .verdict aria-labelledby="verdict" {
        h2 #verdict { (word(&letter.reason)) }
        @if let Some(meaning) = meaning(&letter.reason) { p { (meaning) } }
        @if let Some(detail) = &letter.detail { p .detail { (block(detail)) } }
        dl {
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
                div .wide { dt { "Not in its own container" } dd { (block(problem)) } }
            }
        }
    } }
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

/// What happened at a sink that did not accept the dead letter.
fn sink_section(sink: &StoredSink) -> Markup {
    html! {
        section aria-labelledby="sink" {
            h2 #sink { "Its sink did not accept it" }
            dl .facts {
                div {
                    dt { "Sink" }
                    dd { (or_none(sink.destination.as_deref().map(word), "not known")) }
                }
                @if let Some(detail) = &sink.detail { div { dt { "Detail" } dd { (block(detail)) } } }
            }
            (timeline::at_sink(sink))
        }
        (response(sink.last_response.as_deref(), "sink-response"))
    }
}

fn response(response: Option<&str>, id: &str) -> Markup {
    html! { section aria-labelledby=(id) {
        h2 id=(id) { "Last response" }
        @match response {
            None => p .none { "There was none." },
            Some("") => p .none { "Its body was empty." },
            Some(text) => (boxed(&indented(text).unwrap_or_else(|| text.to_owned()), "The last response")),
        }
    } }
}

fn event(letter: &StoredDeadLetter) -> Markup {
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
        @if is_large {
            p .notice {
                "It is too large to show here: "
                a href={ "/letters/" (letter.id) "/raw" } { "the blob as it is stored" }
            }
        } @else {
            (boxed(&indented(&letter.event).unwrap_or_else(|| letter.event.clone()), "The event"))
        }
    } }
}

/// The request: its own headers as they were sent, and the event as a command.
fn request(letter: &StoredDeadLetter) -> Markup {
    let is_large = letter.event.len() > SHOWN_MAX_BYTES;
    let command = curl::command(letter).filter(|_| !is_large);
    html! { section aria-labelledby="request" {
        h2 #request { "Request" }
        @if letter.headers.is_empty() {
            p .none { "The dead letter has no headers of its own: the subscription sets none, or only credentials." }
        } @else {
            h3 { "Headers" span .of { " of the subscription, as they were sent, without credentials" } }
            dl .facts.headers {
                @for (name, value) in &letter.headers { div { dt .mono { (line(name)) } dd .mono { (line(value)) } } }
            }
        }
        @if let Some(command) = command {
            details .command {
                summary { "The event as a curl command" }
                p .hint {
                    "Sends the event as it was published. Credentials, signatures and the query of the address are not                      in it, and the subscription may send another schema."
                    @if !command.left_out.is_empty() {
                        " Left out: "
                        @for (at, name) in command.left_out.iter().enumerate() { @if at > 0 { ", " } (line(name)) }
                        "."
                    }
                }
                button type="button" data-copy="curl" hidden { "Copy" }
                (named_box(&command.text, "The event as a curl command", "curl"))
            }
        } @else if is_large {
            p .none { "The event is too large for a command to copy." }
        }
    } }
}

fn storage(app: &App, letter: &StoredDeadLetter) -> Markup {
    let container = &app.letters.container;
    html! { section aria-labelledby="stored" {
        h2 #stored { "Where it is stored" }
        dl .facts {
            div { dt { "Id" } dd .mono { (letter.id) } }
            div { dt { "Container" } dd .mono { (line(&container.name)) } }
            div { dt { "Key" } dd .mono { (word(&letter.key)) } }
        }
        p { a href={ "/letters/" (letter.id) "/raw" } { "The blob as it is stored" } }
    } }
}
