//! Previews the request that each subscription of a topic would receive for an event.
//!
//! The preview matches events and builds requests with the code of dispatch. It sends nothing and
//! shows no credential.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::aws_identity::Identity;
use adapters::machine::Machine;
use delivery::event::{Element, Event};
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};
use maud::{Markup, html};

use super::event::{body_of, headers};
use crate::console::shell::markup::{line, word};
use crate::operations::aws_targets::TargetRules;
use crate::operations::environment::Allowed;
use crate::operations::event_report::{
    EventReport, OnwardReport, PartReport, SubscriptionReport, elements, report,
};
use crate::operations::from_here::FromHere;
use crate::operations::rendered_request::first_request;
use crate::operations::shown_exchange::ShownExchange;
use crate::terminal::advice::chain;

/// The maximum number of events in a preview, and of subscriptions for each event.
const SHOWN_MAX: usize = 20;

/// An event, and the request for each matching subscription.
pub(super) struct Preview {
    report: EventReport,
    /// The request for each subscription of the report, in the same order; `None` if the
    /// subscription does not match.
    requests: Vec<Option<Result<ShownExchange, String>>>,
}

/// Previews the events in this text for all subscriptions of a topic. Secrets may only come from
/// the variables in `allowed`.
///
/// # Errors
/// If this machine cannot build requests.
pub(super) async fn preview(
    catalogue: &Catalogue,
    topic: &TopicName,
    text: &str,
    allowed: &Allowed,
) -> anyhow::Result<Vec<Preview>> {
    let from_here = FromHere::as_dev(
        allowed.clone(),
        Identity::of_person(|_| false),
        &catalogue.settings().secrets,
    )?;
    let text: Arc<str> = text.into();
    let of_topic: Vec<&Arc<Subscription>> = match catalogue.topic_subscriptions(topic) {
        Some(of_topic) => of_topic.subscriptions().collect(),
        None => Vec::new(),
    };
    let names: BTreeSet<&SubscriptionName> =
        of_topic.iter().map(|subscription| &subscription.name).collect();
    let now_ms = Machine.now_ms();
    let mut previews = Vec::new();
    for (index, element) in
        elements(catalogue, topic, &text).into_iter().take(SHOWN_MAX).enumerate()
    {
        let mut report = report(catalogue, topic, &element, index + 1, &names, now_ms);
        // Show matching subscriptions first, so that many others do not hide them.
        report.subscriptions.sort_by_key(|entry| !entry.matches);
        let mut requests = Vec::new();
        for entry in report.subscriptions.iter().take(SHOWN_MAX) {
            let name = entry.subscription.parse().ok();
            let subscription = name.and_then(|name| catalogue.subscription(&name));
            requests.push(match (subscription, &element) {
                (Some(subscription), Element::Event(event)) if entry.matches => {
                    Some(request(subscription, event, &from_here).await)
                }
                _ => None,
            });
        }
        previews.push(Preview { report, requests });
    }
    Ok(previews)
}

async fn request(
    subscription: &Subscription,
    event: &Event,
    from_here: &FromHere,
) -> Result<ShownExchange, String> {
    let rules = TargetRules::here().map_err(|problem| chain(&problem))?;
    if let Some(problem) = rules.problem(subscription) {
        return Err(problem.to_string());
    }
    let keyring = from_here.keyring_without_token(&subscription.destination).await;
    let keyring = keyring.map_err(|problem| problem.to_string())?;
    first_request(subscription, event, &keyring).map(|(_, shown)| shown)
}

impl Preview {
    /// Renders the preview as a part of the page.
    pub(super) fn markup(&self) -> Markup {
        let report = &self.report;
        let count = report.subscriptions.iter().filter(|entry| entry.matches).count();
        let id = report.id.as_deref().unwrap_or("without an id");
        html! { section .panel {
            h2 { "Preview: event " (line(id)) }
            @if let Some(problem) = &report.problem {
                p .invalid { "Not a valid event of " (line(&report.topic)) ", so it becomes a dead letter: " (line(problem)) }
            } @else {
                p .sub { (count) " of " (report.subscriptions.len()) " subscriptions of " (line(&report.topic)) " match. Nothing was sent." }
                @for forward in &report.onward { (onward(forward)) }
                @if let Some(more) = report.subscriptions.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
                    p .hint { (more) " more subscriptions are not shown." }
                }
                @for (entry, request) in report.subscriptions.iter().zip(&self.requests) {
                    (subscription(entry, request.as_ref()))
                }
            }
        } }
    }
}

/// Renders the number of matching subscriptions of a topic to which the event is forwarded.
pub(in crate::console) fn onward(report: &OnwardReport) -> Markup {
    let count = report.subscriptions.iter().filter(|entry| entry.matches).count();
    html! { p {
        "The event is forwarded to " (line(&report.topic)) ": "
        @match &report.problem {
            Some(problem) => { "it becomes a dead letter there: " (line(problem)) },
            None => { (count) " of " (report.subscriptions.len()) " subscriptions match" },
        }
    } }
}

fn subscription(
    report: &SubscriptionReport,
    request: Option<&Result<ShownExchange, String>>,
) -> Markup {
    html! { section {
        h3 { (word(&report.subscription)) " " (verdict(report)) }
        @if let Some(moment) = report.not_before.as_ref().filter(|_| report.matches) {
            p .hint { "There is no attempt before " (line(moment)) "." }
        }
        @match request {
            None => (filter(&report.filter)),
            Some(Err(problem)) => p .notice { "No request can be made: " (line(problem)) },
            Some(Ok(exchange)) => {
                p .mono.said { (exchange.method) " " (word(&exchange.url)) }
                (headers(&exchange.headers))
                (body_of(
                    &exchange.body,
                    &format!("The body of the request to {}", report.subscription)
                ))
            }
        }
    } }
}

/// Renders whether a subscription matches the event.
pub(in crate::console) fn verdict(report: &SubscriptionReport) -> Markup {
    html! { @match (report.matches, report.expired, report.paused) {
        (_, true, _) => b .state { "expired" },
        (true, _, true) => b .state.open { "matches, but is paused: the event becomes a dead letter" },
        (true, _, false) => b .state.good { "matches" },
        (false, _, _) => b .state { "does not match" },
    } }
}

/// Renders the conditions of a filter, each with the value in the event.
pub(in crate::console) fn filter(part: &PartReport) -> Markup {
    html! { ul .conditions { (condition(part)) } }
}

fn condition(part: &PartReport) -> Markup {
    html! { li {
        span class=(if part.matches { "state good" } else { "state bad" }) { (if part.matches { "yes" } else { "no" }) }
        " " code { (line(&part.condition)) }
        @for found in &part.found {
            " " span .kind { (line(&found.name)) " is " (line(found.value.as_deref().unwrap_or("missing"))) }
        }
        @if let Some(problem) = &part.problem { " " span .invalid { (line(problem)) } }
        @if !part.parts.is_empty() { ul { @for part in &part.parts { (condition(part)) } } }
    } }
}
