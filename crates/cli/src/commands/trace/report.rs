//! Formats a trace for people: a heading for each delivery, with the steps of the delivery below.
//! Describes steps with the same texts as `lastmile dev`.

use delivery::time::moment::rfc3339;

use crate::operations::line_words::Kind;
use crate::operations::trace::{
    DeliveryEnd, Step, Trace, TracedDelivery, TracedLetter, TracedReplay,
};
use crate::terminal::output::out_rendered;
use crate::terminal::styled::{Part, Screen, Style};
use crate::terminal::text;

/// The number of characters of a date, such as `2026-11-20`.
const DAY_CHARS: usize = 10;
/// The indentation of the steps below a heading.
const INDENT: &str = "  ";

/// Prints every delivery, and every event without a matching subscription. `place` contains the
/// option with which other commands find the dead letters.
pub(super) fn write(trace: &Trace, place: &str, screen: Screen) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for delivery in &trace.deliveries {
        lines.extend(described(delivery, place));
        lines.push(Vec::new());
    }
    for event in &trace.unmatched {
        let said = format!("no subscription of {} matches", event.topic);
        let at = text::at(Some(event.at_ms));
        let id = event.event_id.as_deref().unwrap_or("-");
        lines.push(vec![dim(&at), plain(&format!("event {id}")), Part::new(Style::Bad, said)]);
    }
    lines.iter().try_for_each(|parts| out_rendered(&screen.line(parts)))
}

/// Formats the number of deliveries by outcome.
pub(super) fn summary(trace: &Trace) -> String {
    let count = |end| trace.deliveries.iter().filter(|delivery| delivery.end == end).count() as u64;
    let ends = [
        (count(DeliveryEnd::Delivered), "delivered"),
        (count(DeliveryEnd::DeadLettered), "dead-lettered"),
        (count(DeliveryEnd::Dropped), "dropped"),
        (count(DeliveryEnd::UnderWay), "not finished"),
        (trace.unmatched.len() as u64, "not matched"),
    ];
    let ends = ends.iter().filter(|(count, _)| *count > 0);
    let ends: Vec<String> =
        ends.map(|(count, end)| format!("{} {end}", text::grouped(*count))).collect();
    let all = match trace.deliveries.len() as u64 {
        1 => "1 delivery".to_owned(),
        count => format!("{} deliveries", text::grouped(count)),
    };
    format!("{all}: {}\n", ends.join(", "))
}

fn described(delivery: &TracedDelivery, place: &str) -> Vec<Vec<Part>> {
    let event = format!("event {}", delivery.event_id.as_deref().unwrap_or("-"));
    let (style, end) = end(delivery);
    let mut lines = vec![
        vec![Part::new(Style::Name, &delivery.subscription), plain(&event), Part::new(style, end)],
        about(delivery),
    ];
    if let Some(source) = &delivery.replay_of {
        lines.push(below(&format!(
            "a replay of dead letter {} by job {}",
            source.letter, source.job
        )));
    }
    let mut day = String::new();
    for step in &delivery.steps {
        let of_step = text::first_chars(&rfc3339(step.at_ms), DAY_CHARS);
        if day != of_step {
            lines.push(below(&of_step));
            day = of_step;
        }
        lines.push(step_line(step));
    }
    lines.extend(delivery.dead_letter.as_ref().map(|letter| letter_line(delivery, letter, place)));
    lines.extend(delivery.replays.iter().map(replay_line));
    lines
}

fn end(delivery: &TracedDelivery) -> (Style, String) {
    let after = text::counted(delivery.attempts, "attempt");
    let why = delivery.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let detail =
        delivery.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    match delivery.end {
        DeliveryEnd::Delivered => {
            let times = delivery.ended_ms.zip(delivery.published_ms);
            let took = times.map(|(ended, published)| ended.saturating_sub(published));
            let took = took.map(|ms| format!(", {} after publication", text::duration(ms)));
            let by = ordinal(delivery);
            (Style::Good, format!("delivered{} by {by}{}", to(delivery), took.unwrap_or_default()))
        }
        DeliveryEnd::DeadLettered => {
            (Style::Bad, format!("dead-lettered after {after}{why}{detail}"))
        }
        DeliveryEnd::Dropped => (Style::Bad, format!("dropped after {after}{why}{detail}")),
        DeliveryEnd::UnderWay => {
            let next =
                delivery.continues_ms.map(|ms| format!(", continues {}", text::at(Some(ms))));
            (Style::Waiting, format!("not finished after {after}{}", next.unwrap_or_default()))
        }
    }
}

/// Names the target of a delivery of a dead letter, because its event was not delivered.
fn to(delivery: &TracedDelivery) -> &'static str {
    let is_to_sink = delivery.steps.iter().any(|step| step.leg.as_deref() == Some("sink"));
    if is_to_sink { " to the sink" } else { "" }
}

fn ordinal(delivery: &TracedDelivery) -> String {
    match delivery.attempts {
        // An event for a topic is forwarded without an attempt.
        0 => "publication to a topic".to_owned(),
        number => format!("attempt {number}"),
    }
}

/// Formats the type, the source and the publication time of a delivery's event, the webhook-id of
/// the delivery, and the trace id.
fn about(delivery: &TracedDelivery) -> Vec<Part> {
    let label = |name: &str, value: Option<&str>| value.map(|value| format!("{name} {value}"));
    let id = delivery.delivery_id.to_string();
    let published = delivery.published_ms.map(|ms| text::at(Some(ms)));
    let said = [
        label("type", delivery.event_type.as_deref()),
        label("source", delivery.source.as_deref()),
        label("published", published.as_deref()),
        label("webhook-id", Some(&id)),
        label("trace", delivery.trace_id.as_deref()),
    ];
    let texts = said.into_iter().flatten().collect::<Vec<_>>().join("  ");
    vec![dim(&format!("{INDENT}{texts}"))]
}

fn step_line(step: &Step) -> Vec<Part> {
    let words = &step.words;
    let took = words.duration_ms.map(|ms| format!(" in {}", text::duration(ms)));
    let outcome = format!("{}{}", words.outcome, took.unwrap_or_default());
    // Omit other details, because the outcome of the attempt or the heading contains them.
    let detail = if words.kind == Kind::Wait { words.detail.as_str() } else { "" };
    vec![
        dim(&format!("{INDENT}{}", text::time_of_day(step.at_ms))),
        plain(words.target),
        plain(&words.name),
        Part::new(words.style(), outcome),
        plain(detail),
        Part::new(words.style(), &words.next),
    ]
}

fn letter_line(delivery: &TracedDelivery, letter: &TracedLetter, place: &str) -> Vec<Part> {
    match &letter.sink {
        Some(sink) => below(&format!("the dead letter is in its sink, {sink}")),
        None => {
            let id = delivery.delivery_id;
            below(&format!("dead letter: lastmile deadletters show {id}{place}"))
        }
    }
}

fn replay_line(replay: &TracedReplay) -> Vec<Part> {
    let sent = replay.sent_ms.map(|ms| format!(" at {}", text::at(Some(ms))));
    let outcome = replay.outcome.as_deref().unwrap_or("result not recorded");
    below(&format!(
        "replayed by job {}{}: {outcome}, webhook-id {}",
        replay.job,
        sent.unwrap_or_default(),
        replay.delivery_id
    ))
}

fn below(said: &str) -> Vec<Part> {
    vec![plain(&format!("{INDENT}{said}"))]
}

fn dim(said: &str) -> Part {
    Part::new(Style::Dim, said)
}

fn plain(said: &str) -> Part {
    Part::new(Style::Plain, said)
}
