//! Finds the log lines that match the wanted text, the dead letters that these lines name, and the
//! replays of these dead letters.
//!
//! The log is queried at most four times:
//!
//! 1. The first query finds lines with the text.
//! 2. If no line has the text and the text is an id, it may be the id of a request with several
//!    events. Two queries find the deliveries of this request, and their lines.
//! 3. The last query finds missing lines of deliveries and of replays.

use std::collections::{BTreeSet, HashSet};
use std::future::ready;

use deadletters::DeadLetters;
use deadletters::filter::Filter;
use deadletters::ledger::ReplayRecord;
use deadletters::replay::ends::ReplayEndState;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::time::moment;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use local::watch::Line;
use uuid::Uuid;

use super::Range;
use super::log_source::LogSource;
use crate::operations::trace::{
    Letters, Trace, TracedReplay, Wanted, deliveries_of_batch, log_line, trace,
};
use crate::terminal::advice::describe;
use crate::terminal::text;
use crate::views::unreadable_ledger::not_shown;

/// The maximum number of deliveries that the last query names, because a query has at most 10,000
/// characters.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartQuery.html>
const DELIVERIES_MAX: usize = 200;
/// The maximum number of dead letters that one search reads.
const LETTERS_MAX: usize = 1_000;

/// The trace that was found, and notes about parts that could not be read.
pub(super) struct Found {
    pub(super) trace: Trace,
    pub(super) notes: Vec<String>,
}

/// The lines, dead letters and replays that were read so far, and notes about problems.
#[derive(Default)]
struct Reading {
    /// The text of each line in `lines`, to skip lines that a later query returns again.
    raw: HashSet<String>,
    lines: Vec<Line>,
    letters: Vec<StoredDeadLetter>,
    replays: Vec<TracedReplay>,
    notes: Vec<String>,
}

pub(super) async fn find(
    source: &LogSource,
    wanted: &Wanted,
    is_search: bool,
    range: Range,
) -> anyhow::Result<Found> {
    let mut reading = Reading::default();
    reading.look(source, wanted, range).await?;
    if let Some(id) = wanted.as_id().filter(|_| reading.lines.is_empty()) {
        reading.look_for_batch(source, id, range).await?;
    }
    let letters = source.letters().await?;
    if let Some((letters, container)) = &letters {
        reading.read_letters(letters, container, wanted, range).await?;
        reading.read_replays(letters).await?;
    }
    let more = reading.to_look_for(is_search);
    if !more.is_empty() {
        if more.len() > DELIVERIES_MAX {
            reading
                .notes
                .push(format!("only the first {DELIVERIES_MAX} deliveries are shown completely"));
        }
        let wanted = Wanted::deliveries(more.into_iter().take(DELIVERIES_MAX));
        reading.look(source, &wanted, range).await?;
    }
    let container = letters.map(|(letters, _)| letters.container.name).unwrap_or_default();
    let letters = Letters { container: &container, letters: &reading.letters };
    Ok(Found { trace: trace(&reading.lines, letters, &reading.replays), notes: reading.notes })
}

impl Reading {
    /// Reads and adds the log lines with the wanted text.
    async fn look(
        &mut self,
        source: &LogSource,
        wanted: &Wanted,
        range: Range,
    ) -> anyhow::Result<()> {
        let found = source.lines(wanted, range).await?;
        if found.is_cut {
            let count = text::grouped(found.lines.len() as u64);
            self.notes.push(format!(
                "only the first {count} log lines were read; narrow the period with --since and \
                 --until"
            ));
        }
        for raw in found.lines {
            let line = log_line(&raw);
            let is_in_range = |line: &Line| (range.since_ms..range.until_ms).contains(&line.at_ms);
            self.lines.extend(line.filter(is_in_range).filter(|_| self.raw.insert(raw)));
        }
        Ok(())
    }

    /// Reads and adds the lines of the deliveries in the request with this id.
    async fn look_for_batch(
        &mut self,
        source: &LogSource,
        id: Uuid,
        range: Range,
    ) -> anyhow::Result<()> {
        let mut attempts = Self::default();
        attempts.look(source, &Wanted::attempts(), range).await?;
        self.notes.append(&mut attempts.notes);
        let deliveries = deliveries_of_batch(id, &attempts.lines);
        if deliveries.is_empty() {
            return Ok(());
        }
        self.look(source, &Wanted::deliveries(deliveries), range).await
    }

    /// Reads and adds the dead letters that the lines name. If no line belongs to a delivery,
    /// searches all dead letters of the time range. This finds dead letters whose log lines have
    /// expired, or were omitted because of `LogLevel=warn`.
    async fn read_letters(
        &mut self,
        letters: &DeadLetters,
        container: &str,
        wanted: &Wanted,
        range: Range,
    ) -> anyhow::Result<()> {
        if self.deliveries().next().is_none() {
            self.letters = search(letters, wanted, range).await?;
            return Ok(());
        }
        let stored = self.lines.iter().filter(|line| line.name == "deadletter.stored");
        let here = stored.filter(|line| line.field("container") == container);
        let keys: BTreeSet<&str> = here.map(|line| line.field("key")).collect();
        for key in keys.into_iter().take(LETTERS_MAX) {
            match letters.of_key(key).await {
                Ok(letter) => self.letters.push(letter),
                // The dead letter may have been deleted since. Continue with its log lines.
                Err(error) => self.notes.push(describe(&error)),
            }
        }
        Ok(())
    }

    /// Adds the replays of each dead letter.
    async fn read_replays(&mut self, letters: &DeadLetters) -> anyhow::Result<()> {
        let ended = self.lines.iter().filter(|line| line.name == "delivery.ended");
        let ended = ended.filter_map(|line| line.field("delivery_id").parse().ok());
        let ids: BTreeSet<Uuid> =
            ended.chain(self.letters.iter().map(|letter| letter.id)).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let (records, unreadable) = letters.replays(&ids).await?;
        self.notes.extend(not_shown(&unreadable));
        for record in &records {
            self.replays.push(traced(record, &record.end_state_now()));
        }
        Ok(())
    }

    /// Returns the deliveries whose lines are missing or incomplete.
    fn to_look_for(&self, is_search: bool) -> BTreeSet<Uuid> {
        let known: BTreeSet<Uuid> = self.deliveries().collect();
        let replays = self.replays.iter().map(|replay| replay.delivery_id);
        let ended = self.lines.iter().filter(|line| line.name == "replay.ended");
        let ended = ended.filter_map(|line| line.field("delivery").parse().ok());
        let sources = self
            .letters
            .iter()
            .filter_map(|letter| letter.replay.as_ref().map(|replay| replay.letter));
        let missing =
            replays.chain(ended).chain(sources).filter(|delivery| !known.contains(delivery));
        let found = known.iter().copied().filter(|_| is_search);
        missing.chain(found).collect()
    }

    fn deliveries(&self) -> impl Iterator<Item = Uuid> {
        deliveries(&self.lines)
    }
}

/// Returns the ids of the deliveries that these lines are about.
fn deliveries(lines: &[Line]) -> impl Iterator<Item = Uuid> {
    lines.iter().filter_map(|line| line.field("delivery_id").parse().ok())
}

/// Reads the dead letters of the time range that contain the wanted text in an id.
async fn search(
    letters: &DeadLetters,
    wanted: &Wanted,
    range: Range,
) -> anyhow::Result<Vec<StoredDeadLetter>> {
    let Range { since_ms, until_ms } = range;
    let filter = Filter { since_ms: Some(since_ms), until_ms: Some(until_ms), ..Filter::default() };
    let is_wanted = |letter: &StoredDeadLetter| {
        let id = letter.id.to_string();
        let trace_id =
            letter.traceparent.as_deref().and_then(|traceparent| traceparent.split('-').nth(1));
        let ids = [Some(id.as_str()), letter.event_id.as_deref(), trace_id];
        ids.into_iter().flatten().any(|id| wanted.is(id))
    };
    let found = letters.all(&filter).try_filter(|letter| ready(is_wanted(letter)));
    found.take(LETTERS_MAX).try_collect().await
}

fn traced(record: &ReplayRecord, state: &ReplayEndState) -> TracedReplay {
    let outcome = match state {
        ReplayEndState::Ended(end) => Some(end.state.as_str().to_owned()),
        ReplayEndState::NotRecorded | ReplayEndState::UnderWay | ReplayEndState::Unknown => None,
    };
    TracedReplay {
        letter: record.entry.letter,
        job: record.job.clone(),
        delivery_id: record.entry.delivery,
        sent_ms: moment::parse(&record.entry.at),
        outcome,
    }
}
