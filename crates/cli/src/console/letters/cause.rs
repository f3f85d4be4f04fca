//! Serves the page of one cause: when it began, its subscriptions, the last response, and the
//! forecast of a replay.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use deadletters::cause::{Cause, CausePrefix};
use deadletters::filter::Filter;
use deadletters::letter_cache::LetterCache;
use deadletters::state::LetterState;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::reason::Reason;
use maud::{Markup, html};
use uuid::Uuid;

use super::caches::{CacheState, LIST_MAX_AGE_MS, WaitMode};
use super::fingerprint::{FINGERPRINT, fingerprint};
use super::links::{dismiss_form, record, still_sent};
use super::list::plain_rows;
use super::overview::chart;
use super::summary::Summary;
use crate::console::access::Action;
use crate::console::app::{Console, SharedConsole};
use crate::console::destinations::Seen;
use crate::console::home::{arriving, placeholders};
use crate::console::replay::forecast::Forecast;
use crate::console::shell::error::PageError;
use crate::console::shell::guard::TOKEN;
use crate::console::shell::layout::{PageLayout, Section, reading};
use crate::console::shell::markup::{boxed, line, outcome, time, time_and_age, word};
use crate::console::shell::query::{LIST, Query, href, pairs, range_ms, value};
use crate::console::subscriptions;
use crate::operations::set_aside::QUIET_AFTER;
use crate::terminal::text;

/// The number of newest dead letters on the page.
const NEWEST_MAX: usize = 20;

pub(in crate::console) async fn answer(
    State(console): State<SharedConsole>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let mut pairs = pairs(uri.query().unwrap_or_default().as_bytes());
    let (query, filter) = of_cause(&mut pairs, &id, &[])?;
    let state = console.caches.matching(&query, &filter, LIST_MAX_AGE_MS, WaitMode::Briefly).await;
    let cache = match state? {
        CacheState::Ready(cache) => cache,
        CacheState::Reading(requests) => return Ok(reading(&console, requests)),
    };
    let all = cache.matching(&filter.clone().of_any_state());
    let counts = cache.states.counts(all.iter().map(|letter| letter.id));
    let open = Summary::new(cache.matching(&filter), &cache);
    let is_open = !open.causes.is_empty();
    // If no dead letter is open, show the cause by its dead letters in all states.
    let shown = if is_open { &open } else { &Summary::new(all, &cache) };
    let seen = Seen::read(&console, range_ms(&filter)).await;
    let [cause] = shown.causes.as_slice() else { return Err(no_cause(&id, shown.causes.len())) };
    let sources = console.sources.read().await;
    let letters: BTreeMap<String, u64> = cause
        .subscriptions
        .iter()
        .map(|subscription| (subscription.name.clone(), subscription.count))
        .collect();
    let forecast = Forecast::new(&console, &letters, &sources.reading.catalogue, &seen, None);
    let view =
        View { console: &console, query: &query, cache: &cache, seen: &seen, cause, shown, counts };
    let main = view.markup(is_open.then_some(&forecast));
    let command = Some(format!("deadletters list{} --cause {}", console.options, cause.id));
    let page = PageLayout::new(cause.title.clone(), Section::Home, main);
    Ok(PageLayout { command, ..page }.respond(&console, StatusCode::OK))
}

/// Returns the query and the filter for one cause. `id` is the id of the cause, or a prefix of that
/// id.
fn of_cause(
    pairs: &mut Vec<(String, String)>,
    id: &str,
    others: &[&str],
) -> Result<(Query, Filter), PageError> {
    if id.parse::<CausePrefix>().is_err() {
        return Err(no_cause(id, 0));
    }
    pairs.retain(|(name, _)| name != "cause");
    pairs.push(("cause".to_owned(), id.to_owned()));
    Ok(Query::read(pairs, others)?)
}

fn no_cause(id: &str, count: usize) -> PageError {
    let why = match count {
        0 => format!("No dead letter in this container has the cause {id}."),
        several => format!("{several} causes begin with {id}."),
    };
    PageError::new(StatusCode::NOT_FOUND, "No such cause", why)
}

struct View<'a> {
    console: &'a Console,
    query: &'a Query,
    cache: &'a Arc<LetterCache>,
    seen: &'a Seen,
    cause: &'a Cause,
    shown: &'a Summary<'a>,
    /// The number of dead letters in each state.
    counts: Vec<(LetterState, u64)>,
}

impl View<'_> {
    fn markup(&self, forecast: Option<&Forecast>) -> Markup {
        let cause = self.cause;
        let example = self.shown.letters.iter().find(|letter| letter.id == cause.example);
        html! {
            p .crumbs { a href="/" { "Home" } " / cause " code { (cause.id) } }
            div .head { div {
                h1 { (line(&cause.title)) }
                p .sub {
                    @for (at, (state, count)) in self.counts.iter().enumerate() {
                        @if at > 0 { ", " }
                        (text::grouped(*count)) " " (state)
                    }
                    " · events published from " (time(cause.oldest_event_ms))
                    " · dead letters from " (time(cause.first_ms)) " to " (time(cause.last_ms))
                }
                (placeholders(std::slice::from_ref(cause)))
            } (arriving(cause, self.cache.read_ms)) }
            @match forecast {
                Some(forecast) => (self.actions(forecast)),
                None => p .notice { "There are no open dead letters of this cause." },
            }
            div .story {
                div {
                    @if let Some(letter) = example { (last_answer(letter)) }
                    (self.never_sent())
                    (chart(self.query, self.cache, self.shown))
                }
                div { (self.whom()) }
            }
            (self.newest())
        }
    }

    /// Renders an explanation of dead letters without an attempt. Their cause is the failure of
    /// other deliveries to the same destination.
    fn never_sent(&self) -> Markup {
        let put_off = [Reason::TimeToLiveExceeded, Reason::MaxDeliveryAttemptsExceeded]
            .map(|reason| reason.to_string());
        let never = |letter: &&&StoredDeadLetter| {
            letter.attempts == 0 && letter.destination.is_some() && put_off.contains(&letter.reason)
        };
        let count = self.shown.letters.iter().filter(never).count() as u64;
        html! { @if count > 0 {
            p .hint {
                (text::dead_letters(count)) " without an attempt: at each due time, the destination was failing or at its limit."
            }
        } }
    }

    /// Renders the forecast of a replay, and the forms that replay or dismiss the dead letters.
    fn actions(&self, forecast: &Forecast) -> Markup {
        let id = self.cause.id.to_string();
        let replay = self.query.with_others("/replay", &[("cause", &id)]);
        html! { section .panel aria-labelledby="actions" {
            h2 #actions { "Replay " (text::dead_letters(self.cause.count)) }
            (forecast.markup())
            (forecast.unlisted())
            div .buttons {
                (self.console.access.link(Action::Replay, true, &replay, &html! { "Replay…" }))
                a .button href=(href(LIST, [("cause", id.as_str())])) { "Show the dead letters" }
            }
            @if self.cause.is_set_aside {
                p .hint {
                    "Replay until no more arrive: "
                    code { "lastmile deadletters replay" (self.console.options) " --cause " (id) " --until-quiet " (QUIET_AFTER) }
                }
            }
            (still_sent(self.shown.letters.iter().map(|letter| letter.id), &self.cache.states))
            (dismiss_form(self.console, &format!("/causes/{id}/dismiss"), &self.hidden(), &html! {
                "Dismiss " (text::dead_letters(self.cause.count))
            }))
        } }
    }

    /// Returns the hidden fields of the dismissal form, which limit the dismissal to the dead
    /// letters that the page shows.
    fn hidden(&self) -> Vec<(&str, String)> {
        let filters = self.query.filters().map(|(name, value)| (name, value.to_owned()));
        let shown = fingerprint(self.shown.letters.iter().map(|letter| letter.id));
        filters.chain([(FINGERPRINT, shown)]).collect()
    }

    fn whom(&self) -> Markup {
        html! { section aria-labelledby="whom" {
            h2 #whom { "Affected subscriptions" }
            table .plain {
                thead { tr {
                    th scope="col" { "Subscription" } th .number scope="col" { "Dead letters" }
                    th scope="col" { "Destination" }
                } }
                tbody { @for subscription in &self.cause.subscriptions { tr {
                    td { (subscriptions::link(self.console, &subscription.name)) }
                    td .number { (text::grouped(subscription.count)) }
                    td { (self.destination(&subscription.name)) }
                } } }
            }
        } }
    }

    /// Renders the health of the destination of a subscription.
    fn destination(&self, name: &str) -> Markup {
        html! { @match self.seen.of_subscription(name) {
            Some(destination) => {
                a href={ "/destinations/" (destination.key) } { (word(&destination.address)) }
                " " (self.seen.health(destination))
            },
            None => span .none { "unknown" },
        } }
    }

    fn newest(&self) -> Markup {
        let letters = &self.shown.letters;
        let newest = letters.get(..NEWEST_MAX.min(letters.len())).unwrap_or_default();
        html! { section aria-labelledby="newest" {
            h2 #newest { "Newest dead letters" }
            (plain_rows(self.query, newest, &self.cache.states))
        } }
    }
}

/// Renders the last outcome of a dead letter, and its last response.
fn last_answer(letter: &StoredDeadLetter) -> Markup {
    html! { section aria-labelledby="said" {
        h2 #said { "Last response of the endpoint" }
        @if let Some(destination) = &letter.destination {
            p {
                (outcome(letter.outcome.as_deref(), letter.status)) " "
                span .kind { "from " (line(destination)) ", " (time_and_age(letter.last_attempt_ms)) }
            }
        }
        @match letter.last_response.as_deref() {
            None if letter.destination.is_none() => p .none { "No request was sent." },
            None => p .none { "There was no response." },
            Some("") => p .none { "The response body was empty." },
            Some(text) => (boxed(&text::indented(text).unwrap_or_else(|| text.to_owned()), "The last response")),
        }
        p { a href={ "/letters/" (letter.id) } { "The dead letter with its attempts" } }
    } }
}

/// Handles the form that dismisses the open dead letters of a cause.
pub(in crate::console) async fn dismiss(
    State(console): State<SharedConsole>,
    Path(id): Path<String>,
    form: Bytes,
) -> Result<Response, PageError> {
    let mut pairs = pairs(&form);
    let (query, filter) = of_cause(&mut pairs, &id, &["note", FINGERPRINT, TOKEN])?;
    let state = console.caches.matching(&query, &filter, 0, WaitMode::UntilRead).await;
    let CacheState::Ready(cache) = state? else {
        let why = "The container is still being read.";
        return Err(PageError::new(StatusCode::SERVICE_UNAVAILABLE, "Not loaded yet", why));
    };
    // Read the container again instead of using a cache. Either exactly the dead letters that the
    // page showed are dismissed, or none.
    let open = Summary::new(cache.matching(&filter), &cache);
    let [cause] = open.causes.as_slice() else { return Err(no_cause(&id, open.causes.len())) };
    let back = query.with_period_of(&format!("/causes/{id}"));
    let letters: Vec<Uuid> = open.letters.iter().map(|letter| letter.id).collect();
    if value(&pairs, FINGERPRINT) != Some(fingerprint(letters.iter().copied()).as_str()) {
        let count = text::dead_letters(letters.len() as u64);
        let why = format!(
            "The selection has changed to {count}. Nothing was dismissed; check the dead letters \
             and try again."
        );
        let error = PageError::new(StatusCode::CONFLICT, "The dead letters have changed", why);
        return Err(error.with_link(back, "Back to the cause"));
    }
    record(&console, letters, [cause.id], &form, &back).await
}
