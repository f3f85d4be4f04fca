//! The ledger of a replay: what was meant to be sent, and what was. Pure: texts and decisions, no
//! storage.
//!
//! Beside the letters, in `_replays/<job>/`: `plan.ndjson` (a header, then every letter in the
//! order of sending), `<n>.ndjson` per chunk of ten, written before sending (`intent`) and again
//! after, and `done.ndjson` with all lines once every letter has its end. A chunk whose line still
//! says `intent` is uncertain: it may have been sent. That is said, and it is sent again unless
//! somebody says otherwise; the delivery's id is a function of job and letter, so a repeat can be
//! told.
//!
//! Version 1 of these texts is read for ever.

use std::collections::BTreeMap;

use delivery::time::moment;
use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

/// The letters of a chunk: what SQS takes in one call.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
pub(crate) const CHUNK: usize = 10;
/// The namespace of the ids of replayed deliveries (UUIDv5).
const REPLAY_NAMESPACE: Uuid = uuid!("0c1d7b52-5b5e-5a0f-8f52-6f2f0b6d4c11");
/// The version that is written.
const VERSION: u32 = 1;

/// What a job is: the first line of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    v: u32,
    /// Its name.
    pub(crate) job: String,
    /// When it was begun, RFC 3339.
    pub(crate) at: String,
    /// Where its letters go: `subscription`, `topic NS/TOPIC`, or a URL.
    pub(crate) to: String,
    /// The queue, if they go to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<String>,
    /// How many letters there are.
    pub(crate) letters: usize,
}

impl Header {
    /// The header of a job that begins now.
    pub(crate) fn new(
        job: String,
        now_ms: u64,
        to: String,
        queue: Option<String>,
        letters: usize,
    ) -> Self {
        Self { v: VERSION, job, at: moment::rfc3339(now_ms), to, queue, letters }
    }
}

/// A letter that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) letter: Uuid,
    pub(crate) key: String,
}

/// How far a letter came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// About to be sent; as long as it says so, nobody knows.
    Intent,
    /// It was taken.
    Sent,
    /// It was not taken; a resume tries again.
    Refused,
    /// Uncertain, and left so on purpose.
    Skipped,
    /// Its blob is not there any more.
    Gone,
    /// It cannot be sent by this way at all.
    Unfit,
}

impl State {
    /// Whether a resume leaves it alone.
    fn is_end(self) -> bool {
        match self {
            Self::Sent | Self::Skipped | Self::Gone | Self::Unfit => true,
            Self::Intent | Self::Refused => false,
        }
    }
}

/// A letter in a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) letter: Uuid,
    /// The id of its new delivery.
    pub(crate) delivery: Uuid,
    pub(crate) state: State,
    /// When that was so, RFC 3339.
    pub(crate) at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// The id of the delivery that a job makes of a letter.
pub(crate) fn delivery_id(job: &str, letter: Uuid) -> Uuid {
    Uuid::new_v5(&REPLAY_NAMESPACE, format!("{job}\n{letter}").as_bytes())
}

/// Whether a text can be the name of a job: part of a key as it is.
pub(crate) fn is_job(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.bytes().all(plain)
}

/// The lines of a chunk as it is begun or taken up again: what is still `intent` is to be sent now.
pub(crate) fn begin(
    job: &str,
    planned: &[Planned],
    before: Option<&[Line]>,
    skip_uncertain: bool,
    now_ms: u64,
) -> Vec<Line> {
    let at = moment::rfc3339(now_ms);
    let line = |planned: &Planned| {
        let kept = before.into_iter().flatten().find(|line| line.letter == planned.letter);
        let new = |state| Line {
            letter: planned.letter,
            delivery: delivery_id(job, planned.letter),
            state,
            at: at.clone(),
            problem: None,
        };
        match kept {
            Some(line) if line.state.is_end() => line.clone(),
            Some(Line { state: State::Intent, .. }) if skip_uncertain => new(State::Skipped),
            Some(_) | None => new(State::Intent),
        }
    };
    planned.iter().map(line).collect()
}

/// How many letters came how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) uncertain: u64,
    pub(crate) sent: u64,
    pub(crate) refused: u64,
    pub(crate) skipped: u64,
    pub(crate) gone: u64,
    pub(crate) unfit: u64,
}

impl Counts {
    /// Counts these lines.
    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        let mut counts = Self::default();
        for line in lines {
            *match line.state {
                State::Intent => &mut counts.uncertain,
                State::Sent => &mut counts.sent,
                State::Refused => &mut counts.refused,
                State::Skipped => &mut counts.skipped,
                State::Gone => &mut counts.gone,
                State::Unfit => &mut counts.unfit,
            } += 1;
        }
        counts
    }

    /// The sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            uncertain: self.uncertain + other.uncertain,
            sent: self.sent + other.sent,
            refused: self.refused + other.refused,
            skipped: self.skipped + other.skipped,
            gone: self.gone + other.gone,
            unfit: self.unfit + other.unfit,
        }
    }

    /// Letters that a resume leaves alone.
    pub(crate) fn ended(&self) -> u64 {
        self.sent + self.skipped + self.gone + self.unfit
    }
}

/// A job, summed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) header: Header,
    pub(crate) counts: Counts,
}

impl Job {
    /// Whether every letter has its end.
    pub(crate) fn is_done(&self) -> bool {
        self.counts.ended() == self.header.letters as u64
    }
}

/// A letter that was sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) job: String,
    pub(crate) line: Line,
}

/// Of the lines about a letter the one that counts: a certain one before an uncertain one, then the
/// newest.
pub(crate) fn remember(
    known: &mut std::collections::HashMap<Uuid, Replayed>,
    job: &str,
    line: Line,
) {
    if !matches!(line.state, State::Sent | State::Intent) {
        return;
    }
    let weight = |line: &Line| (line.state == State::Sent, line.at.clone());
    match known.get(&line.letter) {
        Some(other) if weight(&other.line) >= weight(&line) => {}
        Some(_) | None => _ = known.insert(line.letter, Replayed { job: job.to_owned(), line }),
    }
}

/// The text of a plan.
pub(crate) fn write_plan(header: &Header, plan: &[Planned]) -> Vec<u8> {
    let mut text = json(header);
    plan.iter().for_each(|planned| text.push_str(&json(planned)));
    text.into_bytes()
}

/// Reads a plan.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read_plan(bytes: &[u8]) -> Result<(Header, Vec<Planned>), String> {
    let mut lines = std::str::from_utf8(bytes).map_err(|error| error.to_string())?.lines();
    let header: Header = serde_json::from_str(lines.next().unwrap_or_default())
        .map_err(|error| error.to_string())?;
    if header.v != VERSION {
        return Err(format!(
            "it has version {}, and this program reads version {VERSION} only",
            header.v
        ));
    }
    let plan = lines
        .map(serde_json::from_str)
        .collect::<Result<Vec<Planned>, _>>()
        .map_err(|error| error.to_string())?;
    if plan.len() != header.letters {
        return Err(format!("it holds {} letters instead of {}", plan.len(), header.letters));
    }
    Ok((header, plan))
}

/// The text of a chunk.
pub(crate) fn write_lines<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<u8> {
    lines.into_iter().map(json).collect::<String>().into_bytes()
}

/// Reads a chunk.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read_lines(bytes: &[u8]) -> Result<Vec<Line>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    text.lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain structs with string keys serialize");
    format!("{text}\n")
}

/// The chunks of a ledger with letters about which nobody knows.
pub(crate) fn uncertain(chunks: &BTreeMap<u32, Vec<Line>>) -> Vec<(u32, u64)> {
    let counted = chunks.iter().map(|(number, lines)| (*number, Counts::of(lines).uncertain));
    counted.filter(|(_, uncertain)| *uncertain > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(number: u128) -> Planned {
        Planned { letter: Uuid::from_u128(number), key: format!("a/b/c/2026/1/2/3/{number}.json") }
    }

    fn line(number: u128, state: State) -> Line {
        let letter = Uuid::from_u128(number);
        Line {
            letter,
            delivery: delivery_id("j", letter),
            state,
            at: moment::rfc3339(7),
            problem: None,
        }
    }

    #[test]
    fn a_plan_and_its_chunks_are_read_back_and_a_cut_plan_is_refused() {
        let plan = [planned(1), planned(2)];
        let header = Header::new("j".to_owned(), 7, "subscription".to_owned(), None, 2);
        let text = write_plan(&header, &plan);
        assert_eq!(read_plan(&text), Ok((header, plan.to_vec())));
        let cut = &text[..text.len() - plan[1].key.len() - 70];
        assert!(read_plan(cut).is_err());
        assert!(
            read_plan(&String::from_utf8(text).unwrap().replace("\"v\":1", "\"v\":2").into_bytes())
                .is_err()
        );
        let lines = [
            line(1, State::Intent),
            Line { problem: Some("no".to_owned()), ..line(2, State::Refused) },
        ];
        assert_eq!(read_lines(&write_lines(&lines)), Ok(lines.to_vec()));
    }

    #[test]
    fn what_ended_is_left_alone_and_the_uncertain_is_sent_again_unless_told_not_to() {
        let plan: Vec<Planned> = (1..=7).map(planned).collect();
        let states =
            [State::Intent, State::Sent, State::Refused, State::Skipped, State::Gone, State::Unfit];
        let before: Vec<Line> =
            (1..).zip(states).map(|(number, state)| line(number, state)).collect();
        let states = |skip| {
            begin("j", &plan, Some(&before), skip, 9)
                .iter()
                .map(|line| line.state)
                .collect::<Vec<_>>()
        };
        use State::{Gone, Intent, Sent, Skipped, Unfit};
        assert_eq!(states(false), [Intent, Sent, Intent, Skipped, Gone, Unfit, Intent]);
        assert_eq!(states(true), [Skipped, Sent, Intent, Skipped, Gone, Unfit, Intent]);
        assert!(begin("j", &plan, None, true, 9).iter().all(|line| line.state == Intent));
    }

    #[test]
    fn the_id_of_a_delivery_is_a_function_of_job_and_letter() {
        let letter = Uuid::from_u128(1);
        assert_eq!(delivery_id("j", letter), delivery_id("j", letter));
        assert_eq!(delivery_id("j", letter).get_version_num(), 5);
        assert_ne!(delivery_id("j", letter), delivery_id("k", letter));
        assert_ne!(delivery_id("j", letter), letter);
    }

    #[test]
    fn a_certain_replay_counts_before_an_uncertain_one() {
        let mut known = std::collections::HashMap::new();
        for (job, state) in
            [("a", State::Intent), ("b", State::Sent), ("c", State::Intent), ("d", State::Refused)]
        {
            remember(&mut known, job, line(1, state));
        }
        assert_eq!(known[&Uuid::from_u128(1)].job, "b");
        assert_eq!(
            uncertain(&BTreeMap::from([
                (1, vec![line(1, State::Sent)]),
                (2, vec![line(2, State::Intent)])
            ])),
            [(2, 1)]
        );
    }

    #[test]
    fn a_job_is_named_so_that_its_name_can_be_a_folder() {
        for (name, is) in [
            ("a-1.b_C", true),
            ("", false),
            ("a/b", false),
            ("..", false),
            ("a b", false),
            ("ö", false),
        ] {
            assert_eq!(is_job(name), is, "{name}");
        }
    }
}
