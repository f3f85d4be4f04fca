//! One letter: its event, why it ended, what was tried, and where it lies.

use axum::extract::{self, Path};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use delivery::deadletter::stored::{StoredDeadLetter, StoredSink};
use maud::{Markup, html};
use uuid::Uuid;

use super::Page;
use super::frame::{Place, Problem, Sheet, block, line, moment, outcome, word};
use super::json::laid_out;
use super::list::name;
use super::overview::quoted;
use super::query::href;
use super::reason::meaning;
use super::shelves::{COUNTED_MS, Patience, Seen};
use super::timeline::{self, timeline};
use crate::letters::filter::decided_ms;
use crate::letters::ledger::{Replayed, State};
use crate::letters::{is_of, text};

/// A larger event is shown by its raw blob alone.
const SHOWN_MAX_BYTES: usize = 256 * 1_024;
/// The characters of an id.
const ID_MAX_CHARS: usize = 36;

pub(super) async fn answer(
    extract::State(page): extract::State<Page>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let letter = find(&page, &id).await?;
    let replayed =
        page.letters.replayed(&[letter.id]).await.map_err(|error| Problem::storage(&error))?;
    let main = content(&page, &letter, replayed.get(&letter.id));
    let title = letter.event_id.clone().unwrap_or_else(|| letter.id.to_string());
    Ok(Sheet::new(title, Place::Letters, main).answer(&page, StatusCode::OK))
}

/// The blob of a letter, to the byte, as text: no browser looks for anything else in it.
pub(super) async fn raw(
    extract::State(page): extract::State<Page>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let letter = find(&page, &id).await?;
    let bytes = page.letters.bytes(&letter.key).await.map_err(|error| Problem::storage(&error))?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response())
}

/// The letter of this id, or of an id that begins like this. What no letter bears is not looked for
/// in every blob, or any address would cost a reading of the whole container.
async fn find(page: &Page, id: &str) -> Result<StoredDeadLetter, Problem> {
    if let Some((id, key)) =
        id.parse().ok().and_then(|id: Uuid| Some((id, page.shelves.key_of(id)?)))
    {
        // It may have been removed since it was read.
        let there = page.letters.of_key(&key).await.unwrap_or_default();
        if let Some(letter) = there.into_iter().find(|letter| letter.id == id) {
            return Ok(letter);
        }
    }
    let none = || {
        let why = format!(
            "{} holds no letter {id}. It may have been removed.",
            page.letters.place().name
        );
        Problem::new(StatusCode::NOT_FOUND, "No such letter", why)
    };
    let is_id = id.len() <= ID_MAX_CHARS && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_id || !may_be_there(page, id).await? {
        return Err(none());
    }
    let found = page.letters.one(id).await.map_err(|error| {
        let is_ambiguous = error.to_string().starts_with("several letters");
        let several = || Problem::new(StatusCode::CONFLICT, "Not one letter", format!("{error:#}"));
        if is_ambiguous { several() } else { Problem::storage(&error) }
    })?;
    found.ok_or_else(none)
}

/// Whether a letter that begins like this was read a moment ago, or not all letters are read.
async fn may_be_there(page: &Page, id: &str) -> Result<bool, Problem> {
    let seen = page.shelves.whole(COUNTED_MS, Patience::Endless).await;
    Ok(match seen.map_err(|error| Problem::storage(&error))? {
        Seen::There(shelf) => {
            shelf.is_cut || shelf.letters.iter().any(|letter| is_of(id, &letter.id.to_string()))
        }
        Seen::Reading(_) => true,
    })
}

fn content(page: &Page, letter: &StoredDeadLetter, replayed: Option<&Replayed>) -> Markup {
    let id = letter.id.to_string();
    html! {
        p .crumbs { a href="/" { "Letters" } " / " span { (name(letter)) } }
        div .head {
            div {
                h1 { (name(letter)) }
                p .sub {
                    @if let Some(kind) = &letter.event_type { (word(kind)) " for " } @else { "for " }
                    a href=(of_subscription(letter)) { (word(&letter.subscription.to_string())) }
                }
            }
            a .button.primary href=(href("/replay", [("id", id.as_str())])) { "Replay it…" }
        }
        (verdict(letter, replayed))
        div .story {
            div {
                section aria-labelledby="attempts" {
                    h2 #attempts { "What was tried" span .of { " " (tried(letter)) } }
                    (timeline(letter))
                }
                (response(letter.last_response.as_deref(), "response"))
                @if let Some(sink) = &letter.sink { (at_sink(sink)) }
            }
            div {
                (event(letter))
                (stored(page, letter))
            }
        }
    }
}

fn of_subscription(letter: &StoredDeadLetter) -> String {
    let name = &letter.subscription;
    let (namespace, topic) = (name.topic.namespace.as_str(), name.topic.topic.as_str());
    href("/", [("namespace", namespace), ("topic", topic), ("subscription", &name.name)])
}

fn tried(letter: &StoredDeadLetter) -> String {
    let count = text::grouped(letter.attempts.into());
    let attempts = if letter.attempts == 1 { "attempt" } else { "attempts" };
    match decided_ms(letter).zip(letter.published_ms) {
        Some((end_ms, published_ms)) if end_ms > published_ms => {
            format!("{count} {attempts} in {}", text::span(end_ms - published_ms))
        }
        Some(_) | None => format!("{count} {attempts}"),
    }
}

/// Why it ended.
fn verdict(letter: &StoredDeadLetter, replayed: Option<&Replayed>) -> Markup {
    html! { section .verdict aria-labelledby="verdict" {
        h2 #verdict { (word(&letter.reason)) }
        @if let Some(meaning) = meaning(&letter.reason) { p { (meaning) } }
        @if let Some(detail) = &letter.detail { p .detail { (block(detail)) } }
        dl {
            div { dt { "Last outcome" } dd { (outcome(letter.outcome.as_deref(), letter.status)) } }
            div {
                dt { "Destination" }
                dd .address {
                    @match &letter.destination { Some(url) => (word(url)), None => span .none { "nowhere" } }
                }
            }
            div { dt { "Ended" } dd { (moment(decided_ms(letter))) } }
            div { dt { "Replayed" } dd { (again(replayed)) } }
            @if let Some(problem) = &letter.sink_error {
                div .wide { dt { "Not in its own container" } dd { (block(problem)) } }
            }
        }
    } }
}

fn again(replayed: Option<&Replayed>) -> Markup {
    let Some(Replayed { job, line: of }) = replayed else {
        return html! { span .none { "not yet" } };
    };
    let job = html! { a href={ "/jobs/" (job) } { (line(job)) } };
    html! {
        @match of.state {
            State::Intent => { "perhaps, by " (job) ", which was broken off" },
            State::Sent | State::Refused | State::Skipped | State::Gone | State::Unfit => {
                (of.at.get(..19).unwrap_or(&of.at).replace('T', " ")) " by " (job)
            },
        }
        " " span .kind { "as delivery " (of.delivery) }
    }
}

/// What a sink made of the letter that did not take it.
fn at_sink(sink: &StoredSink) -> Markup {
    html! {
        section aria-labelledby="sink" {
            h2 #sink { "Its sink did not take it" }
            dl .facts {
                div {
                    dt { "Sink" }
                    dd { @match &sink.destination { Some(url) => (word(url)), None => span .none { "not known" } } }
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
            Some(text) => (quoted(&laid_out(text).unwrap_or_else(|| text.to_owned()), "The last response")),
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
            div { dt { "Published" } dd { (moment(letter.published_ms)) } }
            @if let Some(trace) = &letter.traceparent { div { dt { "Trace" } dd .mono { (line(trace)) } } }
        }
        @if is_large {
            p .remark {
                "It is too large to be shown here: "
                a href={ "/letters/" (letter.id) "/raw" } { "the blob as it is stored" }
            }
        } @else {
            (quoted(&laid_out(&letter.event).unwrap_or_else(|| letter.event.clone()), "The event"))
        }
        @if !letter.headers.is_empty() {
            h3 { "Headers that were sent" }
            dl .facts {
                @for (name, value) in &letter.headers { div { dt { (line(name)) } dd .mono { (line(value)) } } }
            }
        }
    } }
}

fn stored(page: &Page, letter: &StoredDeadLetter) -> Markup {
    let place = page.letters.place();
    html! { section aria-labelledby="stored" {
        h2 #stored { "Where it is stored" }
        dl .facts {
            div { dt { "Letter" } dd .mono { (letter.id) } }
            div { dt { "Container" } dd .mono { (line(&place.name)) } }
            div { dt { "Key" } dd .mono { (word(&letter.key)) } }
        }
        p { a href={ "/letters/" (letter.id) "/raw" } { "The blob as it is stored" } }
    } }
}
