//! `lastmile deadletters show`: prints all details of a dead letter.

use std::process::ExitCode;

use deadletters::dismissed::Dismissal;
use deadletters::facts::decided_ms;
use deadletters::filter::Filter;
use deadletters::ledger::ReplayRecord;
use deadletters::replay::ends::ReplayEndState;
use deadletters::{SAME_EVENT_READS_MAX, SameEvent};
use delivery::deadletter::stored::{FailedAt, StoredDeadLetter, StoredSink};
use delivery::delivery::FailingDestination;
use delivery::delivery::replay::ReplayOutcome;

use super::json::{DeadLetterJson, Links};
use super::search::Search;
use crate::operations::place::{DeadLettersPlace, Place};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{Output, note, out, out_json, out_raw};
use crate::terminal::text;
use crate::terminal::text::attempts::{Attempts, without_duration};
use crate::views::replay_end::NO_END;
use crate::views::unreadable_ledger::not_shown;

/// The maximum number of other dead letters of the same event that are listed.
const SAME_EVENT_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters show 4f1c02aa",
        "lastmile deadletters show 4f1c02aa --stack orders-prod --output json",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: DeadLettersPlace,
    /// Dead letter, by id, prefix of the id, key or event id
    #[arg(value_name = "ID|KEY")]
    id: String,
    /// Print the stored dead letter, unchanged
    #[arg(long, conflicts_with = "output", help_heading = OUTPUT)]
    raw: bool,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = Place::from(arguments.place).dead_letters().await?;
    let search = Search::start(letters);
    let letters = &search.letters;
    let found = letters.find(&[arguments.id]).await?;
    search.clear();
    if arguments.raw {
        for letter in &found {
            out_raw(&letters.bytes(&letter.key).await?)?;
        }
        return search.finish_filtered(Filter::default(), found.len()).await;
    }
    let states = letters.states().await?;
    not_shown(states.unreadable()).iter().for_each(note);
    for (index, letter) in found.iter().enumerate() {
        let end = states.replay_of(letter.id).map(ReplayRecord::end_state_now);
        let same_event = letters.of_same_event(letter).await?;
        let links = Links { states: &states, end: end.as_ref(), same_event: Some(&same_event) };
        match arguments.output {
            Output::Json => {
                let json = DeadLetterJson::new(letter, &links);
                out_json(&serde_json::to_string(&json)?)?;
            }
            Output::Table => {
                let separator = if index > 0 { "\n" } else { "" };
                out(&format!("{separator}{}", describe(letter, &links)))?;
            }
        }
    }
    search.finish_filtered(Filter::default(), found.len()).await
}

/// Formats all details of a dead letter.
fn describe(letter: &StoredDeadLetter, links: &Links<'_>) -> String {
    let optional = |name: &'static str, value: &Option<String>| {
        value.as_deref().map(|text| (name, text::line(text)))
    };
    let fields = [
        Some(("id", letter.id.to_string())),
        Some(("key", text::line(&letter.key))),
        Some(("subscription", text::line(&letter.subscription.to_string()))),
        Some(("reason", text::line(&letter.reason))),
        optional("detail", &letter.detail),
        optional("destination", &letter.destination),
        failed(letter).map(|party| ("failed", party)),
        optional("event", &letter.event_id),
        optional("type", &letter.event_type),
        optional("source", &letter.source),
        Some(("published", text::at(letter.published_ms))),
        Some(("decided", text::at(decided_ms(letter)))),
        Some(("attempts", letter.attempts.to_string())),
        optional("trace", &letter.traceparent),
        optional("sink error", &letter.sink_error),
        letter.replay.as_ref().map(|replay| {
            ("replay of", format!("{} by the job {}", replay.letter, text::line(replay.job())))
        }),
        Some(("state", links.states.state(letter.id).to_string())),
        links
            .states
            .replay_of(letter.id)
            .map(|replayed| ("replayed", describe_replay(replayed, links.end))),
        links
            .states
            .dismissal_of(letter.id)
            .map(|dismissal| ("dismissed", describe_dismissal(dismissal))),
    ];
    let mut description: String =
        fields.into_iter().flatten().map(|(name, value)| format!("{name:<14}{value}\n")).collect();
    description.push_str(&attempts(letter));
    if !letter.headers.is_empty() {
        description.push_str(&format!("\nheaders\n{}", headers(&letter.headers)));
    }
    description.push_str(&last_response(letter.last_response.as_deref(), &letter.last_headers));
    if let Some(sink) = &letter.sink {
        description.push_str(&describe_sink(sink));
    }
    description.push_str(&links.same_event.map(same_event).unwrap_or_default());
    description.push_str(&format!("\nevent\n{}", indented(&letter.event)));
    description
}

/// Describes which address failed last, if that was not the destination.
fn failed(letter: &StoredDeadLetter) -> Option<String> {
    let failure = letter.failure();
    let address = failure.destination.map(|destination| format!(", {}", text::line(destination)));
    let party = || format!("the {}{}", failure.at.as_str(), address.unwrap_or_default());
    match failure.at {
        FailedAt::Destination => None,
        FailedAt::Reply | FailedAt::Sink => Some(party()),
    }
}

/// Formats other dead letters of the same event.
fn same_event(SameEvent { letters, is_whole }: &SameEvent) -> String {
    let line = |other: &StoredDeadLetter| {
        let (subscription, reason) = (other.subscription.to_string(), &other.reason);
        format!("  {}  {}  {}\n", other.id, text::line(&subscription), text::line(reason))
    };
    if letters.is_empty() {
        return String::new();
    }
    let mut lines: String = letters.iter().take(SAME_EVENT_MAX).map(line).collect();
    if let Some(more) = letters.len().checked_sub(SAME_EVENT_MAX).filter(|more| *more > 0) {
        lines.push_str(&format!("  and {more} more\n"));
    }
    if !is_whole {
        let read = text::grouped(SAME_EVENT_READS_MAX as u64);
        lines.push_str(&format!("  (only the newest {read} of the topic were searched)\n"));
    }
    format!("\nthe same event\n{lines}")
}

fn describe_dismissal(Dismissal { at, by, note, .. }: &Dismissal) -> String {
    let by = by.as_deref().map(|by| format!(" by {}", text::line(by))).unwrap_or_default();
    format!("{}Z{by}: {}", text::seconds(at), text::line(note))
}

fn describe_replay(record: &ReplayRecord, end: Option<&ReplayEndState>) -> String {
    let end = match end {
        None | Some(ReplayEndState::NotRecorded) => String::new(),
        Some(ReplayEndState::UnderWay) => ": under way".to_owned(),
        Some(ReplayEndState::Unknown) => format!(": unknown: {NO_END}"),
        Some(ReplayEndState::Ended(end)) => match end.state {
            // If a replay fails, the new dead letter has the id of the replay's delivery.
            ReplayOutcome::DeadAgain => format!(": {} → {}", end.state, record.entry.delivery),
            ReplayOutcome::Delivered | ReplayOutcome::Dropped => format!(": {}", end.state),
        },
    };
    format!("{}{end}", describe_sending(record))
}

fn describe_sending(record: &ReplayRecord) -> String {
    let (job, delivery) = (&record.job, record.entry.delivery);
    if record.is_uncertain() {
        format!("may have been sent as delivery {delivery}, but the job {job} was interrupted")
    } else {
        format!("{}Z by the job {job} as delivery {delivery}", text::seconds(&record.entry.at))
    }
}

/// Describes why a sink did not accept the dead letter.
fn describe_sink(sink: &StoredSink) -> String {
    let fields = [
        sink.destination.as_deref().map(|text| ("destination", text::line(text))),
        Some(("reason", text::line(&sink.reason))),
        sink.detail.as_deref().map(|text| ("detail", text::line(text))),
        Some(("attempts", sink.attempts.to_string())),
    ];
    let fields: String = fields
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("  {name:<12}{value}\n"))
        .collect();
    let attempts = Attempts {
        count: sink.attempts,
        history: &sink.history,
        omitted: sink.omitted,
        published_ms: None,
    };
    format!(
        "\nthe sink did not accept the dead letter\n{fields}{}{}",
        indented(&attempts.lines().join("\n")),
        last_response(sink.last_response.as_deref(), &[])
    )
}

/// Formats the last response with its headers; empty if there was none.
fn last_response(body: Option<&str>, of_response: &[(String, String)]) -> String {
    let body = match body {
        None if of_response.is_empty() => return String::new(),
        None | Some("") => "  (an empty body)\n".to_owned(),
        Some(body) => indented(body),
    };
    let separator = if of_response.is_empty() { "" } else { "\n" };
    format!("\nlast response\n{}{separator}{body}", headers(of_response))
}

fn headers(headers: &[(String, String)]) -> String {
    let line = |(name, value): &(String, String)| {
        format!("  {}: {}\n", text::line(name), text::line(value))
    };
    headers.iter().map(line).collect()
}

/// Describes the attempts, or the reason why there are none.
fn attempts(letter: &StoredDeadLetter) -> String {
    let attempts = Attempts {
        count: letter.attempts,
        history: &letter.history,
        omitted: letter.omitted,
        published_ms: letter.published_ms,
    };
    let mut said = String::new();
    let lines = attempts.lines();
    if !lines.is_empty() {
        said.push_str(&format!("\nhistory\n{}", indented(&lines.join("\n"))));
    }
    if letter.attempts == 0 {
        said.push_str(&format!("\n{}\n", never_attempted(letter.failing.as_ref())));
    }
    said
}

/// Describes why no attempt was made: the last failure of the destination, which happened in
/// another delivery.
fn never_attempted(failing: Option<&FailingDestination>) -> String {
    let Some(FailingDestination { since_ms, outcome, status, detail }) = failing else {
        return "no attempt was made".to_owned();
    };
    let last = match (status, detail) {
        // With a status, the detail is text of the response. Otherwise, it is the reason why there
        // was no response.
        (None, Some(detail)) => text::line(detail),
        (Some(_), Some(detail)) => {
            format!("{}: {}", without_duration(outcome, *status), text::line(detail))
        }
        (Some(_) | None, None) => without_duration(outcome, *status),
    };
    format!(
        "no attempt was made, because the destination failed for other deliveries since {}; last \
         failure: {last}",
        text::at(Some(*since_ms))
    )
}

fn indented(text: &str) -> String {
    text::plain(text).lines().map(|line| format!("  {line}\n")).collect()
}
