//! Combines log lines, dead letters and replays into one [`TracedDelivery`] for each delivery id.
//!
//! The log takes precedence, because it contains successful attempts. A dead letter supplies data
//! that the log no longer contains: attempts, reason and time of publication.
//!
//! Promises: each delivery occurs once, steps are sorted by time, and the result does not depend on
//! the order of the input.

use std::collections::BTreeMap;

use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter};
use local::watch::Line;
use tracing_subscriber::filter::LevelFilter;
use uuid::Uuid;

use super::model::{
    DeliveryEnd, ReplaySource, Step, Trace, TracedDelivery, TracedLetter, TracedReplay,
    UnmatchedEvent,
};
use crate::operations::line_words::{Kind, LineWords, words};

/// Dead letters that were read, and the name of their container.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Letters<'a> {
    pub(crate) container: &'a str,
    pub(crate) letters: &'a [StoredDeadLetter],
}

/// The log lines and the dead letter about one delivery.
#[derive(Default)]
struct Sources<'a> {
    lines: Vec<&'a Line>,
    letter: Option<&'a StoredDeadLetter>,
}

/// Builds the deliveries from these log lines, dead letters and replays.
pub(crate) fn trace(lines: &[Line], letters: Letters<'_>, replays: &[TracedReplay]) -> Trace {
    let mut sources: BTreeMap<Uuid, Sources<'_>> = BTreeMap::new();
    for line in lines {
        if let Ok(id) = line.field("delivery_id").parse() {
            sources.entry(id).or_default().lines.push(line);
        }
    }
    for letter in letters.letters {
        sources.entry(letter.id).or_default().letter = Some(letter);
    }
    let replays = all_replays(lines, replays);
    let made =
        sources.into_iter().map(|(id, found)| delivery(id, found, letters.container, &replays));
    let mut deliveries: Vec<TracedDelivery> = made.collect();
    deliveries.sort_by_cached_key(|delivery| {
        (first_ms(delivery), delivery.subscription.clone(), delivery.delivery_id)
    });
    let mut unmatched: Vec<UnmatchedEvent> =
        lines.iter().filter(|line| line.name == "event.unmatched").map(unmatched).collect();
    unmatched.sort_by_key(|event| event.at_ms);
    Trace { deliveries, unmatched }
}

fn first_ms(delivery: &TracedDelivery) -> u64 {
    let first = delivery.steps.first().map(|step| step.at_ms);
    first.or(delivery.published_ms).or(delivery.ended_ms).unwrap_or_default()
}

fn delivery(
    delivery_id: Uuid,
    sources: Sources<'_>,
    container: &str,
    replays: &[TracedReplay],
) -> TracedDelivery {
    let Sources { mut lines, letter } = sources;
    lines.sort_by_key(|line| line.at_ms);
    let field = |name: &str| first_field(&lines, name);
    let last = |name: &str| lines.iter().rev().find(|line| line.name == name).copied();
    let at_sink = |is_accepted| lines.iter().rev().find(|line| ends_at_sink(line, is_accepted));
    let delivered = last("delivery.delivered").or_else(|| at_sink(true).copied());
    let ended = last("delivery.ended").or_else(|| at_sink(false).copied());
    let end = end(delivered, ended, letter);
    let replays_of = |letter: Uuid| replays.iter().filter(move |replay| replay.letter == letter);
    TracedDelivery {
        delivery_id,
        subscription: field("subscription")
            .or_else(|| letter.map(|letter| letter.subscription.to_string()))
            .unwrap_or_default(),
        event_id: field("event_id").or_else(|| letter?.event_id.clone()),
        source: field("source").or_else(|| letter?.source.clone()),
        event_type: field("type").or_else(|| letter?.event_type.clone()),
        trace_id: field("trace_id").or_else(|| letter.and_then(trace_of)),
        published_ms: published_ms(delivered).or_else(|| letter?.published_ms),
        end,
        ended_ms: ended_ms(end, delivered, ended, letter),
        continues_ms: (end == DeliveryEnd::UnderWay).then(|| continues_ms(&lines)).flatten(),
        attempts: attempts(&lines, letter),
        reason: field("reason").or_else(|| Some(letter?.reason.clone())),
        detail: field("detail").or_else(|| letter?.detail.clone()),
        dead_letter: traced_letter(&lines, letter, container),
        steps: steps(&lines, letter),
        replay_of: replay_of(delivery_id, letter, replays),
        replays: replays_of(delivery_id).cloned().collect(),
    }
}

/// Returns the value of a field in the first line that has the field.
fn first_field(lines: &[&Line], name: &str) -> Option<String> {
    let values = lines.iter().map(|line| line.field(name));
    values.into_iter().find(|value| !value.is_empty()).map(ToOwned::to_owned)
}

/// True if this line ends the delivery of a dead letter to its sink. Such a delivery has its own id
/// and no other line about its end.
fn ends_at_sink(line: &Line, is_accepted: bool) -> bool {
    let is_last = line.field("leg") == "sink" && line.field("wait_ms").is_empty();
    line.name == "delivery.attempted"
        && is_last
        && is_accepted == (line.field("verdict") == "delivered")
}

fn end(
    delivered: Option<&Line>,
    ended: Option<&Line>,
    letter: Option<&StoredDeadLetter>,
) -> DeliveryEnd {
    match (delivered, ended.map(|line| line.field("end")), letter) {
        // SQS may deliver a record twice. A success takes precedence over another result.
        (Some(_), _, _) => DeliveryEnd::Delivered,
        (None, Some("Dropped"), _) => DeliveryEnd::Dropped,
        (None, Some(_), _) | (None, None, Some(_)) => DeliveryEnd::DeadLettered,
        (None, None, None) => DeliveryEnd::UnderWay,
    }
}

fn ended_ms(
    end: DeliveryEnd,
    delivered: Option<&Line>,
    ended: Option<&Line>,
    letter: Option<&StoredDeadLetter>,
) -> Option<u64> {
    match end {
        DeliveryEnd::Delivered => delivered.map(|line| line.at_ms),
        DeliveryEnd::DeadLettered | DeliveryEnd::Dropped => {
            ended.map(|line| line.at_ms).or_else(|| letter.and_then(deadletters::facts::decided_ms))
        }
        DeliveryEnd::UnderWay => None,
    }
}

/// Computes the time of publication from the log line of the successful attempt, which contains the
/// age of the event.
fn published_ms(delivered: Option<&Line>) -> Option<u64> {
    let line = delivered?;
    Some(line.at_ms.saturating_sub(number(line, "age_ms")?))
}

/// Returns the end of the current wait; `None` if the last line is not about a wait.
fn continues_ms(lines: &[&Line]) -> Option<u64> {
    let line = lines.last()?;
    Some(line.at_ms.saturating_add(number(line, "wait_ms")?))
}

fn attempts(lines: &[&Line], letter: Option<&StoredDeadLetter>) -> u64 {
    // `deadletter.returned` counts the attempts of the delivery to the sink, which has its own id.
    let counted = lines
        .iter()
        .filter(|line| line.name != "deadletter.returned")
        .filter_map(|line| number(line, "attempt").or_else(|| number(line, "attempts")))
        .max();
    counted.or_else(|| letter.map(|letter| letter.attempts.into())).unwrap_or_default()
}

fn trace_of(letter: &StoredDeadLetter) -> Option<String> {
    letter.traceparent.as_deref()?.split('-').nth(1).map(ToOwned::to_owned)
}

/// Lists the steps in the log. If the log has no attempts, the attempts in the dead letter's
/// history come first.
fn steps(lines: &[&Line], letter: Option<&StoredDeadLetter>) -> Vec<Step> {
    let is_attempt =
        |line: &&Line| line.name == "delivery.attempted" && line.field("leg") != "sink";
    let from_letter = letter.filter(|_| !lines.iter().any(is_attempt));
    let history = from_letter.into_iter().flat_map(|letter| {
        let omitted = u64::from(letter.omitted);
        letter
            .history
            .iter()
            .zip(omitted.saturating_add(1)..)
            .map(|(attempt, number)| past(attempt, number))
    });
    history.chain(lines.iter().filter_map(|line| step(line))).collect()
}

/// Converts a log line to a step. Returns `None` if other lines already report its information.
fn step(line: &Line) -> Option<Step> {
    let words = match words(line) {
        Some(words) => words,
        // `words` omits this line because an earlier line contains the same information. A trace
        // may lack the earlier line.
        None if line.name == "delivery.delivered" => {
            LineWords { next: "delivered".to_owned(), ..LineWords::new(Kind::Good, "delivered") }
        }
        None => return None,
    };
    let text = |name: &str| Some(line.field(name).to_owned()).filter(|value| !value.is_empty());
    Some(Step {
        at_ms: line.at_ms,
        line: line.name.clone(),
        attempt: number(line, "attempt"),
        leg: text("leg"),
        outcome: text("outcome"),
        text: words.outcome.clone(),
        status: line.field("status").parse().ok(),
        duration_ms: number(line, "duration_ms"),
        wait_ms: number(line, "wait_ms"),
        words,
    })
}

/// Converts an attempt in a dead letter's history to the step with this number.
fn past(attempt: &StoredAttempt, number: u64) -> Step {
    let fields = [
        ("attempt", number.to_string()),
        ("outcome", attempt.outcome.clone()),
        ("status", attempt.status.map(|status| status.to_string()).unwrap_or_default()),
        ("duration_ms", attempt.duration_ms.to_string()),
    ];
    let line = Line {
        name: "delivery.attempted".to_owned(),
        at_ms: attempt.at_ms.saturating_add(attempt.duration_ms),
        level: LevelFilter::INFO.into_level().expect("a level that is not OFF"),
        fields: fields.into_iter().collect(),
    };
    let step = step(&line).expect("an attempt has words");
    Step { line: "history".to_owned(), ..step }
}

fn traced_letter(
    lines: &[&Line],
    letter: Option<&StoredDeadLetter>,
    container: &str,
) -> Option<TracedLetter> {
    let named = |name: &str| lines.iter().rev().find(|line| line.name == name);
    let text = |line: &Line, name: &str| Some(line.field(name).to_owned());
    if let Some(line) = named("deadletter.stored") {
        let (container, key) = (text(line, "container"), text(line, "key"));
        return Some(TracedLetter { container, key, sink: None });
    }
    if let Some(letter) = letter {
        let (container, key) = (Some(container.to_owned()), Some(letter.key.clone()));
        return Some(TracedLetter { container, key, sink: None });
    }
    let sink = text(named("deadletter.handed_over")?, "sink");
    Some(TracedLetter { container: None, key: None, sink })
}

/// Returns each known replay once, with its outcome according to the log.
fn all_replays(lines: &[Line], known: &[TracedReplay]) -> Vec<TracedReplay> {
    let mut replays: BTreeMap<Uuid, TracedReplay> =
        known.iter().map(|replay| (replay.delivery_id, replay.clone())).collect();
    for line in lines.iter().filter(|line| line.name == "replay.ended") {
        let ids = (line.field("letter").parse(), line.field("delivery").parse());
        let (Ok(letter), Ok(delivery_id)) = ids else { continue };
        let job = line.field("job").to_owned();
        let new = TracedReplay { letter, job, delivery_id, sent_ms: None, outcome: None };
        let replay = replays.entry(delivery_id).or_insert(new);
        replay.outcome = Some(line.field("outcome").to_owned());
    }
    replays.into_values().collect()
}

fn replay_of(
    delivery_id: Uuid,
    letter: Option<&StoredDeadLetter>,
    replays: &[TracedReplay],
) -> Option<ReplaySource> {
    let known = replays.iter().find(|replay| replay.delivery_id == delivery_id);
    let known = known.map(|replay| ReplaySource { letter: replay.letter, job: replay.job.clone() });
    known.or_else(|| {
        let replay = letter?.replay.as_ref()?;
        Some(ReplaySource { letter: replay.letter, job: replay.job().to_owned() })
    })
}

fn unmatched(line: &Line) -> UnmatchedEvent {
    let text = |name: &str| Some(line.field(name).to_owned()).filter(|value| !value.is_empty());
    UnmatchedEvent {
        at_ms: line.at_ms,
        topic: line.field("topic").to_owned(),
        event_id: text("event_id"),
        source: text("source"),
        event_type: text("type"),
        trace_id: text("trace_id"),
    }
}

fn number(line: &Line, name: &str) -> Option<u64> {
    line.field(name).parse().ok()
}
