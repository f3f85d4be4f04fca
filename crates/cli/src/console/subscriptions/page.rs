//! Serves the page of one subscription: its destination, its policy, the conditions that defer its
//! deliveries, and a test of its filter.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::policy::settings;
use maud::{Markup, html};

use crate::console::app::{Console, SharedConsole};
use crate::console::destinations::Seen;
use crate::console::live::preview::{filter, onward, verdict};
use crate::console::shell::error::PageError;
use crate::console::shell::layout::{PageLayout, Section};
use crate::console::shell::markup::{line, word};
use crate::console::shell::query::{href, pairs, value};
use crate::operations::event_report::{elements, report};

/// The maximum number of events in the form that are explained.
const EVENTS_MAX: usize = 10;
/// The maximum number of characters of an event in the form. Each character may need nine bytes
/// there, and the size of a form is limited.
const EVENT_MAX_CHARS: usize = 6_000;

/// The namespace, the topic and the name of a subscription, in the path of its page.
type NameInPath = Path<(String, String, String)>;

pub(in crate::console) async fn subscription_page(
    State(console): State<SharedConsole>,
    name: NameInPath,
) -> Result<Response, PageError> {
    page(&console, name, "").await
}

/// Explains whether the subscription matches the event in the form. The form uses POST to keep
/// events out of URLs, which browsers store in their history.
pub(in crate::console) async fn explain(
    State(console): State<SharedConsole>,
    name: NameInPath,
    form: Bytes,
) -> Result<Response, PageError> {
    page(&console, name, value(&pairs(&form), "event").unwrap_or_default()).await
}

async fn page(
    console: &Console,
    Path((namespace, topic, name)): NameInPath,
    event: &str,
) -> Result<Response, PageError> {
    let name = SubscriptionName { topic: TopicName { namespace, topic }, name };
    let last = console.sources.read().await;
    let catalogue = &last.reading.catalogue;
    let Some(subscription) = catalogue.subscription(&name) else {
        if let Some(problem) = &last.problem {
            let title = "The subscriptions cannot be read";
            return Err(PageError::new(StatusCode::BAD_GATEWAY, title, problem));
        }
        if last.at_ms == 0 {
            let why = "This console shows only a container of dead letters. Start it with \
                       `lastmile console --stack NAME` to see subscriptions too.";
            return Err(PageError::new(
                StatusCode::NOT_FOUND,
                "Subscriptions are not available",
                why,
            ));
        }
        let why = format!("The subscription {name} does not exist. It may have been removed.");
        let error = PageError::new(StatusCode::NOT_FOUND, "No such subscription", why);
        return Err(error.with_link("/subscriptions".to_owned(), "All subscriptions"));
    };
    let seen = Seen::read(console, None).await;
    let main = html! {
        p .crumbs { a href="/subscriptions" { "Subscriptions" } " / " span { (word(&name.to_string())) } }
        div .head { div {
            h1 { (word(&name.to_string())) }
            p .sub { "to " (word(&subscription.destination.display())) }
        } }
        (gates(subscription, &seen))
        div .story {
            div { (who_gets(console, catalogue, subscription, event)) }
            div { (policy(subscription)) (elsewhere(&name)) }
        }
    };
    let command = console.is_stack.then(|| format!("explain{} {name}", console.options));
    let page = PageLayout::new(name.to_string(), Section::Subscriptions, main);
    Ok(PageLayout { command, ..page }.respond(console, StatusCode::OK))
}

/// Renders the conditions that currently defer deliveries.
fn gates(subscription: &Subscription, seen: &Seen) -> Markup {
    let destination = seen.of_subscription(&subscription.name.to_string());
    html! { section .panel aria-labelledby="gates" {
        h2 #gates { "Next delivery" }
        @if subscription.paused {
            p .notice { "The subscription is paused: each event becomes a dead letter, which can \
                         be replayed later." }
        }
        @match destination {
            None => p .none { "The state of the destination is unknown." },
            Some(destination) => {
                p { (line(&destination.next)) }
                @for (name, why) in &destination.conditions {
                    p { b .state.bad { (line(name)) } " " (line(why)) }
                }
                @for limit in &destination.limits { p { "Limit: " (line(limit)) } }
                p { a href={ "/destinations/" (destination.key) } { "Destination" } }
            }
        }
    } }
}

fn policy(subscription: &Subscription) -> Markup {
    html! { section aria-labelledby="policy" {
        h2 #policy { "Policy" }
        dl .facts.settings { @for setting in settings(subscription) {
            div { dt { (line(&setting.field)) } dd { (line(&setting.text)) } }
        } }
    } }
}

/// Renders the filter of a subscription, and a form that tests whether the filter matches an event.
/// The result contains the same data as `lastmile explain --event`.
fn who_gets(
    console: &Console,
    catalogue: &Catalogue,
    subscription: &Arc<Subscription>,
    event: &str,
) -> Markup {
    html! { section aria-labelledby="who" {
        h2 #who { "Matching events" }
        p .mono.said { (line(&subscription.filter.to_string())) }
        form method="post" {
            (console.token.field())
            div .field {
                label for="event" { "Test an event" }
                textarea #event name="event" rows="8" spellcheck="false" maxlength=(EVENT_MAX_CHARS) { "\n" (event) }
            }
            div .buttons { button type="submit" { "Explain" } }
        }
        @if !event.is_empty() { (explained(catalogue, subscription, event)) }
    } }
}

fn explained(catalogue: &Catalogue, subscription: &Arc<Subscription>, event: &str) -> Markup {
    let (topic, names) = (&subscription.name.topic, BTreeSet::from([&subscription.name]));
    let text: Arc<str> = event.into();
    let elements = elements(catalogue, topic, &text);
    html! { @for (index, element) in elements.iter().take(EVENTS_MAX).enumerate() {
        @let report = report(catalogue, topic, element, index + 1, &names, Machine.now_ms());
        @if let Some(problem) = &report.problem { p .invalid { "Not a valid event: " (line(problem)) } }
        @for forward in &report.onward { (onward(forward)) }
        @for entry in &report.subscriptions {
            p {
                "Event " (line(report.id.as_deref().unwrap_or("without an id"))) ": "
                (verdict(entry))
            }
            (filter(&entry.filter))
        }
    } }
}

fn elsewhere(name: &SubscriptionName) -> Markup {
    let (namespace, topic) = (name.topic.namespace.as_str(), name.topic.topic.as_str());
    let letters = href(
        "/letters",
        [("namespace", namespace), ("topic", topic), ("subscription", &name.name)],
    );
    html! { p { a href=(letters) { "Dead letters of this subscription" } } }
}
