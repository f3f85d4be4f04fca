//! `lastmile deadletters show`: the whole story of a letter.

use std::process::ExitCode;

use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter, StoredSink};
use delivery::time::duration::format_ms;
use uuid::Uuid;

use super::meant::Container;
use super::shape::{Output, Whole};
use super::{Look, out};
use crate::letters::filter::decided_ms;
use crate::letters::ledger::{Replayed, State};
use crate::letters::text;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    container: Container,
    /// The letter's id or the beginning of it, its key, or the id of its event
    #[arg(value_name = "ID|KEY")]
    letter: String,
    /// The blob, to the byte
    #[arg(long, conflicts_with = "output")]
    raw: bool,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    let look = Look::begin(&letters);
    let found = letters.find(&[arguments.letter]).await?;
    look.clear();
    if arguments.raw {
        let mut keys: Vec<&str> = found.iter().map(|letter| letter.key.as_str()).collect();
        keys.dedup();
        for key in keys {
            out(&String::from_utf8_lossy(&letters.bytes(key).await?))?;
        }
        return Ok(look.end(found.len()));
    }
    let ids: Vec<Uuid> = found.iter().map(|letter| letter.id).collect();
    let replayed = letters.replayed(&ids).await?;
    for (place, letter) in found.iter().enumerate() {
        let replayed = replayed.get(&letter.id);
        match arguments.output {
            Output::Json => {
                out(&format!("{}\n", serde_json::to_string(&Whole::new(letter, replayed))?))?
            }
            Output::Table => {
                out(&format!("{}{}", if place > 0 { "\n" } else { "" }, story(letter, replayed)))?
            }
        }
    }
    Ok(look.end(found.len()))
}

/// All there is to know about a letter.
fn story(letter: &StoredDeadLetter, replayed: Option<&Replayed>) -> String {
    let optional = |name: &'static str, value: &Option<String>| {
        value.as_deref().map(|text| (name, text::plain(text)))
    };
    let known = [
        Some(("letter", letter.id.to_string())),
        Some(("key", text::line(&letter.key))),
        Some(("subscription", text::line(&letter.subscription.to_string()))),
        Some(("reason", text::line(&letter.reason))),
        optional("detail", &letter.detail),
        optional("destination", &letter.destination),
        optional("event", &letter.event_id),
        optional("type", &letter.event_type),
        optional("source", &letter.source),
        Some(("published", text::at(letter.published_ms))),
        Some(("ended", text::at(decided_ms(letter)))),
        Some(("attempts", letter.attempts.to_string())),
        optional("trace", &letter.traceparent),
        optional("sink error", &letter.sink_error),
        replayed.map(|replayed| ("replayed", again(replayed))),
    ];
    let mut story: String =
        known.into_iter().flatten().map(|(name, value)| format!("{name:<14}{value}\n")).collect();
    match letter.history.first() {
        Some(first) => {
            let from_ms = letter.published_ms.unwrap_or(first.at_ms).min(first.at_ms);
            story.push_str(&format!(
                "\nhistory\n{}",
                history(&letter.history, letter.omitted, from_ms)
            ));
        }
        None => story.push_str("\nno attempt was made\n"),
    }
    if !letter.headers.is_empty() {
        story.push_str("\nheaders\n");
        letter.headers.iter().for_each(|(name, value)| {
            story.push_str(&format!("  {}: {}\n", text::line(name), text::line(value)));
        });
    }
    story.push_str(&answered(letter.last_response.as_deref()));
    if let Some(sink) = &letter.sink {
        story.push_str(&at_sink(sink));
    }
    story.push_str(&format!("\nevent\n{}", indented(&letter.event)));
    story
}

fn again(Replayed { job, line }: &Replayed) -> String {
    match line.state {
        State::Intent => {
            format!("perhaps, by the job {job}, as delivery {}: it was broken off", line.delivery)
        }
        State::Sent | State::Refused | State::Skipped | State::Gone | State::Unfit => {
            format!("{} by the job {job}, as delivery {}", &line.at[..19], line.delivery)
        }
    }
}

/// How the letter fared at a sink that did not take it.
fn at_sink(sink: &StoredSink) -> String {
    let known = [
        sink.destination.as_deref().map(|text| ("destination", text::plain(text))),
        Some(("reason", text::line(&sink.reason))),
        sink.detail.as_deref().map(|text| ("detail", text::plain(text))),
        Some(("attempts", sink.attempts.to_string())),
    ];
    let known: String =
        known.into_iter().flatten().map(|(name, value)| format!("  {name:<12}{value}\n")).collect();
    let from_ms = sink.history.first().map_or(0, |first| first.at_ms);
    let history = history(&sink.history, sink.omitted, from_ms);
    format!(
        "\nits sink did not take it\n{known}{history}{}",
        answered(sink.last_response.as_deref())
    )
}

/// The last response, if there was one.
fn answered(response: Option<&str>) -> String {
    match response {
        None => String::new(),
        Some("") => "\nlast response\n  (an empty body)\n".to_owned(),
        Some(response) => format!("\nlast response\n{}", indented(response)),
    }
}

/// The attempts along a line of time that begins at this moment.
fn history(attempts: &[StoredAttempt], omitted: u32, from_ms: u64) -> String {
    let mut lines = String::new();
    let kept_first = delivery::delivery::HISTORY_FIRST;
    for (place, attempt) in attempts.iter().enumerate() {
        if omitted > 0 && place == kept_first {
            lines.push_str(&format!("       {omitted} more\n"));
        }
        let number = place + 1 + if place < kept_first { 0 } else { omitted as usize };
        let since = format!("+{}", format_ms(attempt.at_ms - from_ms.min(attempt.at_ms)));
        let outcome = text::outcome(Some(&attempt.outcome), attempt.status);
        let at = text::at(Some(attempt.at_ms));
        lines.push_str(&format!(
            "  {number:>3}  {at}  {since:<14}  {outcome} in {} ms\n",
            attempt.duration_ms
        ));
    }
    lines
}

fn indented(text: &str) -> String {
    text::plain(text).lines().map(|line| format!("  {line}\n")).collect()
}
