//! Watches the results of deliveries while a job runs: the results of the probe, and consecutive
//! failures.
//!
//! Separate from [`super::ends`], which counts all results of a job. A resumed run ignores earlier
//! results, because earlier failures may be the reason why the job was stopped.

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

/// Maximum time that a run waits for the results of its probe.
const PROBE_MAX_MS: u64 = MINUTE_MS;
/// Maximum number of objects that one check reads. More than the newest ten, because objects are
/// not written in the order of the results that they contain.
const READS_MAX: usize = 3 * IN_A_ROW;
/// The wait after a check is this many times as long as the check, so that checks take about a
/// tenth of the time. Listing many results takes seconds.
const LOOK_SHARE: u64 = 10;

/// The results of a job's deliveries that were recorded since this run of the job began.
pub(super) struct NewEnds {
    letters: DeadLetters,
    job: String,
    /// The keys of the result objects that existed before the run.
    before: HashSet<String>,
    /// The dead letters whose deliveries had ended before the run.
    ended_before: HashSet<Uuid>,
    /// True if a delivery that is set aside again does not count as a failure.
    expects_set_aside: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// At least one dead letter was delivered, none had to be checked, or the failures are
    /// expected.
    Passed,
    /// No delivery of the probe has ended in time.
    NoneEnded { waited_ms: u64 },
    /// The deliveries of the probe failed. The text is the reason, in words for people.
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

    /// Waits for the results of these dead letters, and decides whether the run continues.
    pub(super) async fn probe(&self, mut sent: Vec<Uuid>) -> anyhow::Result<ProbeResult> {
        // Ignore dead letters that are sent again: an earlier delivery has already ended.
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
        let summary = match failed == sent {
            true => format!("the first {sent} deliveries failed"),
            false => format!(
                "{failed} of the first {sent} deliveries failed, and the others did not finish \
                 within {}",
                format_ms(PROBE_MAX_MS)
            ),
        };
        Ok(ProbeResult::Failed(format!("stopped: {summary}: {why}")))
    }

    /// Waits until [`IN_A_ROW`] consecutive deliveries have failed, and returns the reason, in
    /// words for people. Never returns if they do not fail.
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

    /// Returns the keys of the result objects written since the run began, newest first.
    async fn new_keys(&self) -> anyhow::Result<Vec<String>> {
        let mut listed = self.letters.listed_ends(&self.job).await?;
        listed.retain(|object| !self.before.contains(&object.key));
        listed.sort_by(|a, b| (b.modified_ms, &a.key).cmp(&(a.modified_ms, &b.key)));
        Ok(listed.into_iter().map(|object| object.key).collect())
    }

    async fn last_failures(&self, newest_first: &[String]) -> anyhow::Result<Option<String>> {
        let mut ends = self.read(newest_first).await?;
        ends.sort_by_key(|end| (recorded_ms(&end.at), end.letter));
        match judge_ends(&outcomes(&ends)) {
            Verdict::Continue => Ok(None),
            Verdict::Stop => Ok(self.why(ends.rchunks(IN_A_ROW).next().unwrap_or(&ends)).await),
        }
    }

    /// Returns the results in the newest of these objects.
    async fn read(&self, newest_first: &[String]) -> anyhow::Result<Vec<StoredReplayEnd>> {
        let newest = newest_first.get(..READS_MAX).unwrap_or(newest_first);
        Ok(self.letters.read_ends(newest).await?.into_values().collect())
    }

    /// Returns the most frequent cause of these failures, for people. Returns `None` if a delivery
    /// was set aside again and [`Self::expects_set_aside`] is true.
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
        // Dropped events, and dead letters at a sink, cannot be read here.
        title.or_else(|| ends.last().map(|end| end.state.to_string()))
    }

    /// Returns the dead letter that the failed delivery became, if this container has it.
    async fn new_dead_letter(&self, end: &StoredReplayEnd) -> Option<StoredDeadLetter> {
        self.letters.of_key(end.key.as_deref()?).await.ok()
    }
}

fn outcomes(ends: &[StoredReplayEnd]) -> Vec<ReplayOutcome> {
    ends.iter().map(|end| end.state).collect()
}
