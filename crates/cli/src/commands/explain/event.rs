//! `lastmile explain --event`: which subscriptions of a topic get an event, and why ([`crate::operations::event_report`]); and what
//! their templates make of it ([`crate::operations::rendered_request`]).

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::machine::Machine;
use delivery::event::Element;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};

use super::{event_text, selected, topics};
use crate::commands::publish::{documents, text_of};
use crate::operations::event_report::{EventReport, RequestReport, elements, report};
use crate::operations::rendered_request::rendered_request;
use crate::terminal::output::{Output, out, out_json};
use crate::terminal::text;
use crate::terminal::usage::usage_error;

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
    }
    let is_matched = reports.iter().flat_map(|of| &of.subscriptions).any(|of| of.matches);
    Ok(if is_matched { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Adds the requests that templates make of the event, and the event as it was received.
fn add_requests(report: &mut EventReport, catalogue: &Catalogue, element: &Element) {
    let Element::Event(event) = element else { return };
    let EventReport { subscriptions, onward, received, .. } = report;
    let onward = onward.iter_mut().flat_map(|of| &mut of.subscriptions);
    for of in subscriptions.iter_mut().chain(onward).filter(|of| of.matches) {
        let name = of.subscription.parse().ok();
        let subscription = name.and_then(|name| catalogue.subscription(&name));
        let rendered = subscription.and_then(|subscription| rendered_request(subscription, event));
        of.request = rendered.map(RequestReport::from);
        if of.request.is_some() {
            *received = Some(event.text().to_string());
        }
    }
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
        let explained = |(index, element)| {
            let mut report = report(catalogue, topic, &element, index + 1, &names, now_ms);
            add_requests(&mut report, catalogue, &element);
            report
        };
        elements.enumerate().map(explained).collect::<Vec<_>>()
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
