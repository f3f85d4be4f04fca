//! Reports which subscriptions of a topic match an event, and why.
//!
//! `lastmile explain --event` and the console show the report. This module does not match events
//! itself: `delivery::explain::event_matches` parses and matches each event as dispatch does.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::delivery::check_moment;
use delivery::event::envelope::{self, decode};
use delivery::event::{Element, Input, Members};
use delivery::explain::{ChangedHeader, EventMatch, Onward, event_matches, onward};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::filter::explanation::{Explanation, Found, Problem};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::time::moment::rfc3339;
use serde::Serialize;

use crate::operations::exchange_text;
use crate::operations::shown_exchange::ShownExchange;

/// The report about one event: the result of matching it with each subscription of a topic. The
/// members and their order are a public interface.
#[derive(Serialize)]
pub(crate) struct EventReport {
    /// The position of the event in the file, from 1.
    pub(crate) event: usize,
    pub(crate) id: Option<String>,
    #[serde(rename = "type")]
    pub(crate) event_type: Option<String>,
    pub(crate) topic: String,
    /// The event as published, if a request was rendered from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) received: Option<String>,
    /// The reason why the text is not an event and would become a dead letter.
    pub(crate) problem: Option<String>,
    pub(crate) subscriptions: Vec<SubscriptionReport>,
    /// The results for the topics to which this topic forwards the event.
    pub(crate) onward: Vec<OnwardReport>,
}

/// The results for the subscriptions of another topic, to which the event is forwarded.
#[derive(Serialize)]
pub(crate) struct OnwardReport {
    pub(crate) topic: String,
    /// The reason why the event becomes a dead letter on that topic.
    pub(crate) problem: Option<String>,
    pub(crate) subscriptions: Vec<SubscriptionReport>,
}

/// The result of matching an event with one subscription.
#[derive(Serialize)]
pub(crate) struct SubscriptionReport {
    pub(crate) subscription: String,
    pub(crate) matches: bool,
    /// True if the subscription has expired, and receives no new events.
    pub(crate) expired: bool,
    /// True if deliveries are paused: each becomes a dead letter immediately, for a later replay.
    pub(crate) paused: bool,
    /// The time before which no attempt would be made if the event were published now; `null` if
    /// the first attempt would be due at once.
    pub(crate) not_before: Option<String>,
    pub(crate) destination: String,
    pub(crate) filter: PartReport,
    /// The headers whose values are changed because their characters cannot be sent.
    pub(crate) changed_headers: Vec<HeaderReport>,
    /// The request that the templates of the destination render from the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<RequestReport>,
}

/// The result of rendering a request with templates.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum RequestReport {
    /// The request that would be sent. Headers that need a secret are omitted.
    Rendered(RenderedRequest),
    /// Rendering failed, so the delivery would become a dead letter.
    Failed { problem: String },
}

/// A request that the templates of a destination render from an event.
#[derive(Serialize)]
pub(crate) struct RenderedRequest {
    method: &'static str,
    url: String,
    headers: Vec<NamedValue>,
    body: String,
    /// The whole request as text, for people.
    #[serde(skip)]
    pub(crate) text: String,
}

#[derive(Serialize)]
struct NamedValue {
    name: String,
    value: String,
}

impl From<Result<ShownExchange, String>> for RequestReport {
    fn from(rendered: Result<ShownExchange, String>) -> Self {
        let shown = match rendered {
            Ok(shown) => shown,
            Err(problem) => return Self::Failed { problem },
        };
        let text = exchange_text::request(&shown);
        let ShownExchange { method, url, headers, body, .. } = shown;
        let named = |(name, value)| NamedValue { name, value };
        let headers = headers.into_iter().map(named).collect();
        Self::Rendered(RenderedRequest { method, url, headers, body: body.text, text })
    }
}

/// A header that is sent with a changed value.
#[derive(Serialize)]
pub(crate) struct HeaderReport {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) changes: Vec<&'static str>,
}

/// The result of one condition of a filter.
#[derive(Serialize)]
pub(crate) struct PartReport {
    pub(crate) condition: String,
    pub(crate) matches: bool,
    pub(crate) found: Vec<FoundReport>,
    pub(crate) problem: Option<String>,
    /// The position of the problem in the text of the condition, in characters from 1.
    pub(crate) column: Option<usize>,
    pub(crate) parts: Vec<PartReport>,
}

/// A value in the event, as it was written in JSON; `null` if the event has no such value.
#[derive(Serialize)]
pub(crate) struct FoundReport {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// Splits a record of this topic into events. If the topic lists an AWS service in `from`, a
/// message of that service is parsed in the service's format. Any other message is parsed as
/// events.
pub(crate) fn elements(catalogue: &Catalogue, topic: &TopicName, text: &Arc<str>) -> Vec<Element> {
    let input = catalogue.topic(topic).map_or(Input::Auto, |topic| topic.settings.input);
    let publisher = envelope::publisher(text)
        .filter(|publisher| input == Input::Auto && catalogue.topic_from(publisher) == Some(topic));
    decode(text, publisher.map_or(input, |publisher| envelope::input_of(&publisher)))
}

/// Reports the result of one event for these subscriptions of a topic.
pub(crate) fn report(
    catalogue: &Catalogue,
    topic: &TopicName,
    element: &Element,
    event: usize,
    names: &BTreeSet<&SubscriptionName>,
    now_ms: u64,
) -> EventReport {
    let empty = EventReport {
        event,
        id: None,
        event_type: None,
        topic: topic.to_string(),
        received: None,
        problem: None,
        subscriptions: Vec::new(),
        onward: Vec::new(),
    };
    let decoded = match element {
        Element::Event(decoded) => check_moment(decoded, now_ms).map(|()| decoded),
        Element::Malformed { why, .. } => Err(why.clone()),
    };
    let decoded = match decoded {
        Ok(decoded) => decoded,
        Err(why) => return EventReport { problem: Some(why.to_string()), ..empty },
    };
    let members = decoded.members();
    let text = |name| members.get(name).and_then(|value| serde_json::from_str(value).ok());
    let mut matches = event_matches(catalogue, topic, decoded, now_ms);
    matches.retain(|event_match| names.contains(&event_match.subscription.name));
    let onward = onward(catalogue, topic, &matches, decoded, now_ms);
    EventReport {
        id: text("id"),
        event_type: event_type(&members),
        subscriptions: matches.into_iter().map(SubscriptionReport::from).collect(),
        onward: onward.into_iter().map(OnwardReport::from).collect(),
        ..empty
    }
}

/// Returns the event type: the member `type` of a CloudEvent, or `eventType` of an Event Grid
/// event.
fn event_type(members: &Members<'_>) -> Option<String> {
    let value = members.get("type").or_else(|| members.get("eventType"))?;
    serde_json::from_str(value).ok()
}

impl From<Onward> for OnwardReport {
    fn from(Onward { topic, matches }: Onward) -> Self {
        let (matches, problem) = match matches {
            Ok(matches) => (matches, None),
            Err(reason) => (Vec::new(), Some(reason.to_string())),
        };
        let subscriptions = matches.into_iter().map(SubscriptionReport::from).collect();
        Self { topic: topic.to_string(), problem, subscriptions }
    }
}

impl From<EventMatch> for SubscriptionReport {
    fn from(event_match: EventMatch) -> Self {
        let EventMatch { subscription, matches, is_expired, filter, starts_ms, changed_headers } =
            event_match;
        Self {
            subscription: subscription.name.to_string(),
            matches,
            expired: is_expired,
            paused: subscription.paused,
            not_before: starts_ms.map(rfc3339),
            destination: subscription.destination.display(),
            filter: filter.into(),
            changed_headers: changed_headers.into_iter().map(HeaderReport::from).collect(),
            request: None,
        }
    }
}

impl From<ChangedHeader> for HeaderReport {
    fn from(ChangedHeader { name, sent }: ChangedHeader) -> Self {
        let changes = sent.changes.iter().map(|change| change.as_str()).collect();
        Self { name, value: sent.value, changes }
    }
}

impl From<Explanation> for PartReport {
    fn from(explanation: Explanation) -> Self {
        let Explanation { condition, matches, found, problem, parts } = explanation;
        let found = found.into_iter().map(|Found { name, value }| FoundReport { name, value });
        let (problem, column) = match problem {
            Some(Problem { message, column }) => (Some(message), column),
            None => (None, None),
        };
        Self {
            condition,
            matches,
            found: found.collect(),
            problem,
            column,
            parts: parts.into_iter().map(Self::from).collect(),
        }
    }
}
