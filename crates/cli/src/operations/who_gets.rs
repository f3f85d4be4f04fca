//! Explains which subscriptions match the events of a file, and which requests would be sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::machine::Machine;
use delivery::event::Element;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};

use crate::operations::event_files::{documents, text_of};
use crate::operations::event_report::{EventReport, RequestReport, elements, report};
use crate::operations::rendered_request::rendered_request;
use crate::terminal::output::note;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// Reports the result of each event in a file, for each of these topics and subscriptions.
pub(crate) fn reports(
    file: &str,
    catalogue: &Catalogue,
    topics: &BTreeSet<TopicName>,
    selected: &[Arc<Subscription>],
) -> anyhow::Result<Vec<EventReport>> {
    let now_ms = Machine.now_ms();
    let names: BTreeSet<&SubscriptionName> =
        selected.iter().map(|subscription| &subscription.name).collect();
    let text = text_of(file)?;
    let documents: Vec<Arc<str>> = documents(&text).into_iter().map(|(_, text)| text).collect();
    let of_topic = |topic| {
        let elements = documents.iter().flat_map(|text| elements(catalogue, topic, text));
        let explained = |(index, element)| {
            let mut report = report(catalogue, topic, &element, index + 1, &names, now_ms);
            add_requests(&mut report, catalogue, &element);
            report
        };
        elements.enumerate().map(explained).collect::<Vec<_>>()
    };
    let reports: Vec<EventReport> = topics.iter().flat_map(of_topic).collect();
    if topics.is_empty() {
        return Err(usage_error("the files contain no topic"));
    }
    if reports.is_empty() {
        return Err(usage_error(format!("{} contains no event", text::line(file))));
    }
    Ok(reports)
}

/// Returns the names of all subscriptions that match an event of a file. Prints a note for each
/// topic that cannot read an event.
///
/// # Errors
/// A usage error if the file cannot be read, or contains no event that a topic can read.
pub(crate) fn who_gets(file: &str, catalogue: &Catalogue) -> anyhow::Result<BTreeSet<String>> {
    let all: Vec<Arc<Subscription>> = catalogue.subscriptions().cloned().collect();
    let topics = catalogue.topics().map(|topic| topic.name.clone()).collect();
    let reports = reports(file, catalogue, &topics, &all)?;
    let problem = |report: &EventReport| {
        let EventReport { event, topic, problem, .. } = report;
        let (file, problem) = (text::line(file), problem.as_ref()?);
        Some(format!("{file}: event {event} cannot be read for {topic}: {problem}"))
    };
    let problems: Vec<String> = reports.iter().filter_map(problem).collect();
    match problems.first() {
        Some(first) if problems.len() == reports.len() => return Err(usage_error(first.clone())),
        _ => problems.iter().for_each(note),
    }
    let entries = reports.into_iter().flat_map(|report| report.subscriptions);
    Ok(entries.filter(|entry| entry.matches).map(|entry| entry.subscription).collect())
}

/// Adds the rendered request of each subscription that uses templates or an AWS target. If there is
/// such a request, also adds the text of the event as published.
fn add_requests(report: &mut EventReport, catalogue: &Catalogue, element: &Element) {
    let Element::Event(event) = element else { return };
    let EventReport { subscriptions, onward, received, .. } = report;
    let onward = onward.iter_mut().flat_map(|onward_report| &mut onward_report.subscriptions);
    for entry in subscriptions.iter_mut().chain(onward).filter(|entry| entry.matches) {
        let name = entry.subscription.parse().ok();
        let subscription = name.and_then(|name| catalogue.subscription(&name));
        let rendered = subscription.and_then(|subscription| rendered_request(subscription, event));
        entry.request = rendered.map(RequestReport::from);
        if entry.request.is_some() {
            *received = Some(event.text().to_string());
        }
    }
}
