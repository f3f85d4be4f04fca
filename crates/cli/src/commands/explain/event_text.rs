//! Formats the results of an event for each subscription as text.

use crate::operations::event_report::{
    EventReport, FoundReport, HeaderReport, OnwardReport, PartReport, RequestReport,
    SubscriptionReport,
};
use crate::terminal::text;

/// The number of spaces by which a condition is indented below its parent.
const INDENT: usize = 2;
/// The width of the column with the result of a condition, including the gap after it.
const VERDICT: usize = 5;

/// Formats the results of all events, with a blank line between events.
pub(super) fn write(reports: &[EventReport]) -> String {
    let each: Vec<String> = reports.iter().map(event).collect();
    each.join("\n")
}

fn event(report: &EventReport) -> String {
    let EventReport { event, id, event_type, topic, received, problem, subscriptions, onward } =
        report;
    let named = |label: &str, value: &Option<String>| match value {
        Some(value) => format!(", {label} {}", text::line(value)),
        None => String::new(),
    };
    let head = format!("event {event}{}{}", named("id", id), named("type", event_type));
    if let Some(problem) = problem {
        let problem = text::line(problem);
        return format!(
            "{head}\n{topic}: not a valid event, so it becomes a dead letter: {problem}\n"
        );
    }
    let received = received.iter().map(|text| format!("received:\n{}", indented(text, INDENT)));
    let received: String = received.collect();
    let mut lines = format!("{head}\n{received}{}", of_topic(topic, subscriptions));
    for OnwardReport { topic, problem, subscriptions } in onward {
        lines.push_str("\nforwarded to ");
        lines.push_str(&match problem {
            Some(problem) => format!("{topic}, where the event becomes a dead letter: {problem}\n"),
            None => of_topic(topic, subscriptions),
        });
    }
    lines
}

fn of_topic(topic: &str, subscriptions: &[SubscriptionReport]) -> String {
    let (count, getting) =
        (subscriptions.len(), subscriptions.iter().filter(|report| report.matches).count());
    let mut lines = format!("{topic}: the event matches {getting} of {count} subscriptions\n");
    for report in subscriptions {
        lines.push('\n');
        lines.push_str(&subscription(report));
    }
    lines
}

fn subscription(report: &SubscriptionReport) -> String {
    let SubscriptionReport {
        subscription,
        matches,
        expired,
        paused,
        not_before,
        destination,
        filter,
        changed_headers,
        request,
    } = report;
    let notes = [
        (*expired, ", has expired and receives no new events"),
        (*paused && *matches, ", is paused, so the delivery becomes a dead letter"),
    ];
    let notes: String = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
    let mut lines = format!("{}{subscription} -> {destination}{notes}\n", verdict(*matches));
    part(filter, INDENT, &mut lines);
    if let Some(moment) = not_before.as_ref().filter(|_| *matches) {
        lines.push_str(&format!("{}no attempt before {moment}\n", " ".repeat(INDENT)));
    }
    for HeaderReport { name, value, changes } in changed_headers.iter().filter(|_| *matches) {
        let margin = " ".repeat(INDENT);
        let (name, value, changes) = (text::line(name), text::line(value), changes.join(", "));
        lines.push_str(&format!("{margin}header {name} is sent as \"{value}\": {changes}\n"));
    }
    lines.push_str(&request.as_ref().map_or_else(String::new, rendered));
    lines
}

/// Formats the rendered request, or the reason why rendering failed.
fn rendered(request: &RequestReport) -> String {
    let margin = " ".repeat(INDENT);
    match request {
        RequestReport::Rendered(rendering) => {
            format!("{margin}request:\n{}", indented(&rendering.text, 2 * INDENT))
        }
        RequestReport::Failed { problem } => {
            let problem = text::line(problem);
            format!(
                "{margin}no request can be made, so the delivery becomes a dead letter: {problem}\n"
            )
        }
    }
}

/// Indents each line, and escapes characters that a terminal would interpret.
fn indented(text: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("{margin}{}\n", text::line(line)),
    };
    text.lines().map(line).collect()
}

fn verdict(matches: bool) -> String {
    format!("{:<VERDICT$}", if matches { "yes" } else { "no" })
}

fn part(report: &PartReport, indent: usize, lines: &mut String) {
    let PartReport { condition, matches, found, problem, column, parts } = report;
    let found: Vec<String> = found.iter().map(value).collect();
    let found =
        if found.is_empty() { String::new() } else { format!("    [{}]", found.join(", ")) };
    let margin = " ".repeat(indent);
    lines.push_str(&format!("{margin}{}{}{found}\n", verdict(*matches), text::line(condition)));
    if let Some(problem) = problem {
        let (below, at) = match column {
            Some(column) => (column - 1, format!("^ character {column}: ")),
            None => (0, String::new()),
        };
        let below = " ".repeat(indent + VERDICT + below);
        lines.push_str(&format!("{below}{at}{}\n", text::line(problem)));
    }
    parts.iter().for_each(|inner| part(inner, indent + INDENT, lines));
}

fn value(FoundReport { name, value }: &FoundReport) -> String {
    let value = value.as_deref().map_or_else(|| "missing".to_owned(), text::line);
    format!("{name}: {value}")
}
