//! The ends of deliveries that come while a job runs: whether its first deliveries were delivered, and whether
//! the last have failed.
//!
//! Separate from [`super::ends`], which counts all of a job. A run that continues a job looks only at what ends
//! meanwhile: the failures before may be the reason why it was stopped.

use std::collections::HashSet;

use adapters::machine::Machine;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::replay::{ReplayOutcome, StoredReplayEnd};
use delivery::ports::Clock as _;
use delivery::time::duration::{MINUTE_MS, format_ms};
use futures::future::join_all;
use uuid::Uuid;

use super::ends::LOOK_EVERY_MS;
use super::failures::{IN_A_ROW, ProbeVerdict, Verdict, is_failure, judge_ends, judge_probe};
use crate::cause::Causes;
use crate::dead_letters::DeadLetters;
use crate::recorded::recorded_ms;

/// The longest wait for the ends of the first deliveries.
const PROBE_MAX_MS: u64 = MINUTE_MS;
/// The objects that a look reads: the newest, and some more, since they are not written in the order of their times.
const READS_MAX: usize = 3 * IN_A_ROW;
/// A look at the ends takes at most this part of the time: a listing of many takes seconds.
const LOOK_SHARE: u64 = 10;

/// The ends of a job since a run of it began.
pub(super) struct NewEnds {
    letters: DeadLetters,
    job: String,
    /// The keys of the objects that were there before.
    before: HashSet<String>,
    /// The dead letters whose deliveries had ended before.
    ended_before: HashSet<Uuid>,
    /// True if a delivery that is set aside again is no failure.
    expects_set_aside: bool,
}

/// The result of the first deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// One was delivered, or nothing speaks against sending the rest.
    Passed,
    /// None has ended.
    NoneEnded { waited_ms: u64 },
    /// They failed; for people.
    Failed(String),
}

impl NewEnds {
    pub(super) async fn begin(
        letters: &DeadLetters,
        job: &str,
        expects_set_aside: bool,
    ) -> anyhow::Result<Self> {
        let keys = letters.end_keys(job).await?;
        let ended_before = letters.read_ends(&keys).await?.into_keys().collect();
        let (letters, job, before) = (letters.clone(), job.to_owned(), HashSet::from_iter(keys));
        Ok(Self { letters, job, before, ended_before, expects_set_aside })
    }

    /// Waits until the deliveries of these dead letters tell whether to send more.
    pub(super) async fn probe(&self, mut sent: Vec<Uuid>) -> anyhow::Result<ProbeResult> {
        // One that is sent again may have ended before.
        sent.retain(|letter| !self.ended_before.contains(letter));
        let until_ms = Machine.now_ms().saturating_add(PROBE_MAX_MS);
        loop {
            let mut ends = self.read(&self.new_keys().await?).await?;
            ends.retain(|end| sent.contains(&end.letter));
            let is_time_over = Machine.now_ms() >= until_ms;
            match judge_probe(sent.len(), &outcomes(&ends), is_time_over) {
                ProbeVerdict::Wait => Machine.sleep(LOOK_EVERY_MS).await,
                ProbeVerdict::Continue => return Ok(ProbeResult::Passed),
                ProbeVerdict::ContinueUnproved => {
                    return Ok(ProbeResult::NoneEnded { waited_ms: PROBE_MAX_MS });
                }
                ProbeVerdict::Stop => return self.failed_probe(sent.len(), &ends).await,
            }
        }
    }

    async fn failed_probe(
        &self,
        sent: usize,
        ends: &[StoredReplayEnd],
    ) -> anyhow::Result<ProbeResult> {
        let Some(why) = self.why(ends).await else { return Ok(ProbeResult::Passed) };
        let failed = ends.len();
        let what = match failed == sent {
            true => format!("the first {sent} deliveries failed"),
            false => format!(
                "{failed} of the first {sent} deliveries failed, and the others did not end within {}",
                format_ms(PROBE_MAX_MS)
            ),
        };
        Ok(ProbeResult::Failed(format!("stopped: {what}: {why}")))
    }

    /// Returns once the last deliveries have failed, with the reason for people.
    pub(super) async fn failing(&self) -> anyhow::Result<String> {
        let (mut wait_ms, mut seen) = (LOOK_EVERY_MS, 0);
        loop {
            Machine.sleep(wait_ms).await;
            let begun_ms = Machine.now_ms();
            let new = self.new_keys().await?;
            if new.len() > seen
                && let Some(why) = self.last_failures(&new).await?
            {
                return Ok(format!("stopped: the last {IN_A_ROW} deliveries failed: {why}"));
            }
            seen = new.len();
            let took_ms = Machine.now_ms().saturating_sub(begun_ms);
            wait_ms = took_ms.saturating_mul(LOOK_SHARE).max(LOOK_EVERY_MS);
        }
    }

    /// The keys of the objects that were written since, the newest first.
    async fn new_keys(&self) -> anyhow::Result<Vec<String>> {
        let mut listed = self.letters.listed_ends(&self.job).await?;
        listed.retain(|of| !self.before.contains(&of.key));
        listed.sort_by(|a, b| (b.modified_ms, &a.key).cmp(&(a.modified_ms, &b.key)));
        Ok(listed.into_iter().map(|of| of.key).collect())
    }

    async fn last_failures(&self, newest_first: &[String]) -> anyhow::Result<Option<String>> {
        let mut ends = self.read(newest_first).await?;
        ends.sort_by_key(|end| (recorded_ms(&end.at), end.letter));
        match judge_ends(&outcomes(&ends)) {
            Verdict::Continue => Ok(None),
            Verdict::Stop => Ok(self.why(ends.rchunks(IN_A_ROW).next().unwrap_or(&ends)).await),
        }
    }

    /// The ends in the newest of these objects.
    async fn read(&self, newest_first: &[String]) -> anyhow::Result<Vec<StoredReplayEnd>> {
        let newest = newest_first.get(..READS_MAX).unwrap_or(newest_first);
        Ok(self.letters.read_ends(newest).await?.into_values().collect())
    }

    /// The most frequent cause of these failures, for people. `None` if one of them was set aside, and that is
    /// expected.
    async fn why(&self, ends: &[StoredReplayEnd]) -> Option<String> {
        let failed = ends.iter().filter(|end| is_failure(end.state));
        let letters = join_all(failed.map(|end| self.new_dead_letter(end))).await;
        let letters: Vec<StoredDeadLetter> = letters.into_iter().flatten().collect();
        if self.expects_set_aside && letters.iter().any(StoredDeadLetter::is_set_aside) {
            return None;
        }
        let mut causes = Causes::default();
        letters.iter().for_each(|letter| causes.add(letter));
        let title = causes.sorted(Machine.now_ms()).into_iter().next().map(|cause| cause.title);
        // Dropped events, and those at a sink, cannot be read here.
        title.or_else(|| ends.last().map(|end| end.state.to_string()))
    }

    /// The dead letter that a delivery became again, if it can be read here.
    async fn new_dead_letter(&self, end: &StoredReplayEnd) -> Option<StoredDeadLetter> {
        self.letters.of_key(end.key.as_deref()?).await.ok()
    }
}

fn outcomes(ends: &[StoredReplayEnd]) -> Vec<ReplayOutcome> {
    ends.iter().map(|end| end.state).collect()
}
