//! `lastmile explain --event`: which subscriptions of a topic get an event, and why.
//!
//! Separate from the life of a delivery. Each event is read and compared as dispatch does it
//! (`delivery::explain::event_matches`); nothing is compared here.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::machine::Machine;
use delivery::event::envelope::{self, decode};
use delivery::event::{Element, Input, Members};
use delivery::explain::{ChangedHeader, EventMatch, Onward, event_matches, onward};
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::filter::explanation::{Explanation, Found, Problem};
use delivery::subscription::name::{SubscriptionName, TopicName};
use serde::Serialize;

use super::{Output, event_text, selected, topics};
use crate::commands::publish::{documents, text_of};
use crate::files::usage_error;
use crate::output::{out, out_json};
use crate::text;

/// An event, and what the subscriptions of a topic make of it. Its members and their order are a contract.
#[derive(Serialize)]
pub(super) struct EventReport {
    /// Its place in the file, from 1.
    pub(super) event: usize,
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    pub(super) event_type: Option<String>,
    pub(super) topic: String,
    /// Why it is no event: it would become a dead letter.
    pub(super) problem: Option<String>,
    pub(super) subscriptions: Vec<SubscriptionReport>,
    /// The topics that it goes on to from there.
    pub(super) onward: Vec<OnwardReport>,
}

/// What happens on a topic that an event goes on to.
#[derive(Serialize)]
pub(super) struct OnwardReport {
    pub(super) topic: String,
    /// Why it becomes a dead letter there.
    pub(super) problem: Option<String>,
    pub(super) subscriptions: Vec<SubscriptionReport>,
}

/// What one subscription makes of an event.
#[derive(Serialize)]
pub(super) struct SubscriptionReport {
    pub(super) subscription: String,
    pub(super) matches: bool,
    /// It gets no new events any more.
    pub(super) expired: bool,
    /// Its deliveries wait.
    pub(super) paused: bool,
    pub(super) destination: String,
    pub(super) filter: PartReport,
    /// The headers whose values are changed so that they can be sent.
    pub(super) changed_headers: Vec<HeaderReport>,
}

/// A header that is not sent as the event has it.
#[derive(Serialize)]
pub(super) struct HeaderReport {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) changes: Vec<&'static str>,
}

/// A part of a filter.
#[derive(Serialize)]
pub(super) struct PartReport {
    pub(super) condition: String,
    pub(super) matches: bool,
    pub(super) found: Vec<FoundReport>,
    pub(super) problem: Option<String>,
    /// The character of the condition that the problem is about, from 1.
    pub(super) column: Option<usize>,
    pub(super) parts: Vec<PartReport>,
}

/// A value of the event, in JSON as it was written; `null` where there is none.
#[derive(Serialize)]
pub(super) struct FoundReport {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// Prints the explanations. The answer is yes if one of the subscriptions gets one of the events.
pub(super) fn run(
    file: &str,
    catalogue: &Catalogue,
    topics: &BTreeSet<TopicName>,
    selected: &[Arc<Subscription>],
    output: Output,
) -> anyhow::Result<ExitCode> {
    let reports = reports(file, catalogue, topics, selected)?;
    match output {
        Output::Table => out(&event_text::write(&reports))?,
        Output::Json => out_json(&match &reports[..] {
            [one] => serde_json::to_string(one)?,
            several => serde_json::to_string(several)?,
        })?,
        Output::Svg => {
            return Err(usage_error("--event has no picture: --output table or json"));
        }
    }
    let is_matched = reports.iter().flat_map(|of| &of.subscriptions).any(|of| of.matches);
    Ok(if is_matched { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of all subscriptions that get one of the events of a file.
///
/// # Errors
/// A usage error if the file cannot be read, or has something that is no event.
pub(crate) fn who_gets(file: &str, catalogue: &Catalogue) -> anyhow::Result<BTreeSet<String>> {
    let all = selected(catalogue, None)?;
    let reports = reports(file, catalogue, &topics(None, catalogue), &all)?;
    let malformed = reports.iter().find_map(|of| Some((of, of.problem.as_ref()?)));
    if let Some((EventReport { event, topic, .. }, problem)) = malformed {
        let file = text::line(file);
        return Err(usage_error(format!(
            "{file}: event {event} cannot be read for {topic}: {problem}"
        )));
    }
    let subscriptions = reports.into_iter().flat_map(|of| of.subscriptions);
    Ok(subscriptions.filter(|of| of.matches).map(|of| of.subscription).collect())
}

/// Explains each event of a file for each of these topics, about these subscriptions.
fn reports(
    file: &str,
    catalogue: &Catalogue,
    topics: &BTreeSet<TopicName>,
    selected: &[Arc<Subscription>],
) -> anyhow::Result<Vec<EventReport>> {
    let now_ms = Machine.now_ms();
    let names: BTreeSet<&SubscriptionName> = selected.iter().map(|of| &of.name).collect();
    let text = text_of(file)?;
    let documents: Vec<Arc<str>> = documents(&text).into_iter().map(|(_, text)| text).collect();
    let of_topic = |topic| {
        let elements = documents.iter().flat_map(|text| elements(catalogue, topic, text));
        let report =
            |(index, element)| report(catalogue, topic, &element, index + 1, &names, now_ms);
        elements.enumerate().map(report).collect::<Vec<_>>()
    };
    let reports: Vec<EventReport> = topics.iter().flat_map(of_topic).collect();
    if topics.is_empty() {
        return Err(usage_error("no file names a topic"));
    }
    if reports.is_empty() {
        return Err(usage_error(format!("{} contains no event", text::line(file))));
    }
    Ok(reports)
}

/// The events of a record of this topic. A message of another service is read as such where the topic has it in
/// `from`; published with the name of a topic, it is an event like any other.
pub(crate) fn elements(catalogue: &Catalogue, topic: &TopicName, text: &Arc<str>) -> Vec<Element> {
    let input = catalogue.topic(topic).map_or(Input::Auto, |topic| topic.settings.input);
    let publisher = envelope::publisher(text)
        .filter(|publisher| input == Input::Auto && catalogue.topic_from(publisher) == Some(topic));
    decode(text, publisher.map_or(input, |publisher| envelope::input_of(&publisher)))
}

fn report(
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
        problem: None,
        subscriptions: Vec::new(),
        onward: Vec::new(),
    };
    let decoded = match element {
        Element::Event(decoded) => decoded,
        Element::Malformed { why, .. } => {
            return EventReport { problem: Some(why.to_string()), ..empty };
        }
    };
    let members = decoded.members();
    let text = |name| members.get(name).and_then(|value| serde_json::from_str(value).ok());
    let mut matches = event_matches(catalogue, topic, decoded, now_ms);
    matches.retain(|of| names.contains(&of.subscription.name));
    let onward = onward(catalogue, topic, &matches, decoded, now_ms);
    EventReport {
        id: text("id"),
        event_type: event_type(&members),
        subscriptions: matches.into_iter().map(SubscriptionReport::from).collect(),
        onward: onward.into_iter().map(OnwardReport::from).collect(),
        ..empty
    }
}

/// The type by its name in CloudEvents, else by that of Event Grid.
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
    fn from(of: EventMatch) -> Self {
        let EventMatch { subscription, matches, is_expired, filter, changed_headers } = of;
        Self {
            subscription: subscription.name.to_string(),
            matches,
            expired: is_expired,
            paused: subscription.paused,
            destination: subscription.destination.display(),
            filter: filter.into(),
            changed_headers: changed_headers.into_iter().map(HeaderReport::from).collect(),
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
    fn from(of: Explanation) -> Self {
        let Explanation { condition, matches, found, problem, parts } = of;
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
