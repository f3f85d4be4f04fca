//! Serves the page of one event: its deliveries, each with its attempts, requests, responses, waits
//! and end.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::Live;
use super::feed::{Event, Feed, Step};
use super::page::{class, since, step_name};
use crate::console::app::SharedConsole;
use crate::console::shell::error::PageError;
use crate::console::shell::layout::Section;
use crate::console::shell::markup::{boxed, line, time, word};
use crate::operations::line_words::Kind;
use crate::operations::shown_exchange::{ShownBody, ShownExchange};
use crate::terminal::text;
use crate::terminal::text::indented;

/// The maximum size of an event that is shown.
const SHOWN_MAX_BYTES: usize = 256 * 1_024;

pub(in crate::console) async fn answer(
    State(console): State<SharedConsole>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, PageError> {
    // If the id is not valid UTF-8, no event has it.
    let id = id.map(|Path(id)| id).unwrap_or_default();
    // Read the number of the last step before the event, so that scripts receive every later step.
    let live = console.live()?;
    let last = live.read(Feed::last_step);
    let event = live.event(&id)?;
    let is_its = |step: &&Arc<Step>| step.event == Some(event.number);
    let under_way: Vec<_> = live.read(|feed| feed.under_way().filter(is_its).cloned().collect());
    let title = name(&event).to_owned();
    Ok(console.page(&title, Section::Live, content(live, &event, &under_way, last)))
}

fn name(event: &Event) -> &str {
    match event.published.id.as_str() {
        "" => "An event without an id",
        id => id,
    }
}

fn content(live: &Live, event: &Event, under_way: &[Arc<Step>], last: u64) -> Markup {
    let published = &event.published;
    let deliveries = deliveries(event, under_way);
    let id = live.run.id(event.number);
    html! {
        p .crumbs { a href="/live" { "Live" } " / event " (event.number) }
        div .head {
            div {
                h1 { (line(name(event))) }
                p .sub { (line(&published.event_type)) }
            }
            @if published.body.is_some() {
                div .buttons {
                    a .button.primary href={ "/publish?from=" (id) } { "Edit and resend" }
                }
            }
        }
        div .story #event data-event=(id) data-last=(live.run.id(last)) {
            div {
                @if deliveries.is_empty() {
                    section aria-labelledby="none" {
                        h2 #none { "Deliveries" }
                        p .none { "No attempt has finished yet, or no subscription matches." }
                        (own_steps(event))
                    }
                }
                @for (at, steps) in deliveries.iter().enumerate() { (delivery(event, at, steps)) }
                @if event.more_steps > 0 {
                    p .notice { (text::grouped(event.more_steps as u64)) " more steps are not stored." }
                }
            }
            div { (body(event)) }
        }
    }
}

/// Groups the steps of an event by delivery, in the order in which the deliveries began. In each
/// group, an attempt in progress comes last.
fn deliveries<'a>(event: &'a Event, under_way: &'a [Arc<Step>]) -> Vec<Vec<&'a Arc<Step>>> {
    let mut all: Vec<Vec<&Arc<Step>>> = Vec::new();
    let steps = event.steps.iter().chain(under_way);
    for step in steps.filter(|step| step.subject.delivery.is_some()) {
        let same =
            |steps: &&mut Vec<&Arc<Step>>| steps[0].subject.delivery == step.subject.delivery;
        match all.iter_mut().find(same) {
            Some(steps) => steps.push(step),
            None => all.push(vec![step]),
        }
    }
    all
}

/// Renders the steps of the event that belong to no delivery, except its publication.
fn own_steps(event: &Event) -> Markup {
    let own =
        |step: &&Arc<Step>| step.subject.delivery.is_none() && step.facts.words.kind != Kind::Event;
    html! { @for step in event.steps.iter().filter(own) {
        p { (time(Some(step.facts.at_ms))) " " (line(&step.facts.words.name)) ": " (line(&step.facts.words.outcome)) }
    } }
}

fn delivery(event: &Event, at: usize, steps: &[&Arc<Step>]) -> Markup {
    let subject = &steps[0].subject;
    let destination =
        steps.iter().map(|step| &step.facts.destination).find(|address| !address.is_empty());
    let id = subject.delivery.map(|id| id.to_string()).unwrap_or_default();
    html! { section aria-labelledby={ "delivery-" (at) } {
        h2 id={ "delivery-" (at) } { (word(&subject.subscription)) }
        dl .facts {
            @if let Some(destination) = destination { div { dt { "To" } dd { (word(destination)) } } }
            div { dt { "Delivery" } dd .mono { (id) } }
        }
        ol .timeline {
            li .mark { span .what { "Published" } (time(Some(event.at_ms))) }
            @for (at, step) in steps.iter().enumerate() {
                @let exchange = event.exchanges.get(&step.number);
                // Attempts in progress have numbers of their own, which are not keys of
                // `exchanges`.
                @let exchange = exchange.filter(|_| step.facts.words.kind != Kind::UnderWay);
                (timeline_step(exchange, step, at + 1 == steps.len()))
            }
        }
    } }
}

fn timeline_step(exchange: Option<&Arc<ShownExchange>>, step: &Step, is_newest: bool) -> Markup {
    let (facts, words) = (&step.facts, &step.facts.words);
    let of_step = match words.kind {
        Kind::Good => "attempt delivered",
        Kind::Failed | Kind::Silent => "attempt",
        Kind::UnderWay => "attempt under-way",
        Kind::End => "mark end",
        Kind::Event | Kind::Wait | Kind::Stored | Kind::Note => "mark",
    };
    html! {
        li class=(of_step) {
            span .what { (line(&capitalized(&step_name(step)))) }
            (time(Some(facts.at_ms)))
            span class={ "outcome " (class(words.kind)) } { b { (word(&words.outcome)) } }
            @if words.kind == Kind::UnderWay {
                span .took data-since=(facts.at_ms) { (since(facts.at_ms)) }
            }
            @if let Some(ms) = words.duration_ms { span .took { "in " (text::duration(ms)) } }
            @if !words.detail.is_empty() { span .detail { (word(&words.detail)) } }
            @if facts.due_ms.is_none() && !words.next.is_empty() {
                span .took { (line(&words.next)) }
            }
            @if let Some(id) = words.dead_letter {
                a href={ "/letters/" (id) } { "Open and replay the dead letter" }
            }
            @if let Some(exchange) = exchange { (request_and_response(step, exchange)) }
        }
        @if let Some(due_ms) = facts.due_ms {
            li .wait.g1 {
                @if is_newest { span .due data-due=(due_ms) { (line(&words.next)) } }
                @else { (text::duration(due_ms.saturating_sub(facts.at_ms))) " later" }
            }
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn request_and_response(step: &Step, exchange: &ShownExchange) -> Markup {
    let name = format!("of {}", step_name(step));
    html! { details .exchange data-key=(step.number) {
        summary { "Request and response" span .unseen { " " (line(&name)) } }
        h3 { "Request" }
        @if exchange.deliveries > 1 {
            p .hint { "A batch: " (exchange.deliveries) " deliveries shared this request." }
        }
        p .mono.said { (exchange.method) " " (word(&exchange.url)) }
        (headers(&exchange.headers))
        (body_of(&exchange.body, &format!("The body of the request {name}")))
        @match &exchange.response {
            None => {
                h3 { "No response" }
                @if let Some(detail) = &exchange.detail { p .mono.said { (line(detail)) } }
            }
            Some(response) => {
                h3 { "Response" }
                p .mono.said {
                    (response.status) " " (text::status_name(response.status).unwrap_or_default())
                }
                (headers(&response.headers))
                (body_of(&response.body, &format!("The body of the response {name}")))
            }
        }
    } }
}

pub(super) fn headers(headers: &[(String, String)]) -> Markup {
    html! { dl .headers {
        @for (name, value) in headers { div { dt .mono { (line(name)) } dd .mono { (line(value)) } } }
    } }
}

pub(super) fn body_of(body: &ShownBody, label: &str) -> Markup {
    html! {
        @if body.text.is_empty() { p .none { "No body." } }
        @else {
            (boxed(&indented(&body.text).unwrap_or_else(|| body.text.clone()), label))
            @if body.is_cut {
                p .hint { "Truncated, " (text::grouped(body.bytes as u64)) " bytes." }
            }
        }
    }
}

fn body(event: &Event) -> Markup {
    let published = &event.published;
    html! { section aria-labelledby="published" {
        h2 #published { "Event" }
        dl .facts {
            @if let Some(topic) = &published.topic { div { dt { "Topic" } dd { (word(topic)) } } }
            @for (name, value) in [("Id", &published.id), ("Type", &published.event_type), ("Source", &published.source)] {
                @if !value.is_empty() { div { dt { (name) } dd { (word(value)) } } }
            }
            div { dt { "Published" } dd { (time(Some(event.at_ms))) } }
        }
        @match &published.body {
            None => p .none { "The event is not available, because it was received before lastmile \
                               dev started, or is a replay." },
            Some(body) if body.len() > SHOWN_MAX_BYTES => {
                p .notice { "The event is too large to show: " (text::grouped(body.len() as u64)) " bytes." }
            }
            Some(body) => {
                (boxed(&indented(body).unwrap_or_else(|| body.to_string()), "The event as it was published"))
            }
        }
    } }
}
