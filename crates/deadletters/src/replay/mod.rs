//! Replays dead letters. By default, sends the original event only to the subscription of the dead
//! letter, as a new delivery with a new id and no attempts.
//!
//! A job first writes its complete plan. Then it sends chunks of ten, and writes each chunk to the
//! ledger before and after sending. A job that was killed at any time can be resumed from its
//! [`ledger`], which lists uncertain deliveries. The results of the deliveries are in [`ends`].
//! Separate from [`sender`], which handles targets but no ledgers, from [`ReplayPlan`], which is
//! pure, and from `run`, which sends.
//!
//! Promises: every dead letter of the plan is sent at least once, or has an entry with the reason
//! why it was not. Duplicates occur only in chunks that a resumed job lists as uncertain. The order
//! is not guaranteed.

pub mod ends;
mod failures;
pub(crate) mod ledger_files;
mod new_ends;
mod plan;
mod run;
pub mod sender;

use std::collections::{BTreeMap, HashSet};
use std::future::pending;
use std::sync::Mutex;

use adapters::machine::Machine;
use adapters::storage::PutOutcome;
use anyhow::{bail, ensure};
use delivery::ports::Clock as _;
use delivery::shell::quoted;
use delivery::time::moment;
use futures::future::{FutureExt as _, select};
use uuid::Uuid;

use self::ends::{EndCounts, ReplayEnds};
pub use self::failures::PROBED;
use self::new_ends::NewEnds;
use self::run::{Halt, Run, RunResult};
use self::sender::{ReplaySender, ReplayTarget};
use crate::dead_letters::DeadLetters;
use crate::ledger::{
    self, CHUNK, JobHeader, KnownEnd, LedgerEntry, PlannedReplay, ReplayCounts, ReplayState,
    write_done, write_plan,
};
use crate::rate::Rate;

pub use self::ledger_files::{Jobs, Replayed, UnreadableLedger};
pub use self::plan::{ReplayPlan, is_subscription};

/// Options of one run of a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// The maximum rate; `None` for the rate in the job's ledger.
    pub rate: Option<Rate>,
    /// True if uncertain dead letters are skipped instead of sent again.
    pub skip_uncertain: bool,
    /// True if a delivery that is set aside again does not count as a failure. This is expected
    /// soon after the end of a pause, because the functions cache the pause.
    pub expects_set_aside: bool,
}

/// An event that reports the progress of a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// The probe was sent; the job waits for the results of its deliveries.
    Probing,
    /// No delivery of the probe has ended in time. The job sends the other dead letters.
    NoneEnded {
        /// The time that the job has waited.
        waited_ms: u64,
    },
    /// A chunk was sent, with these counts.
    Chunk(ReplayCounts),
}

/// The settings of a new job.
#[derive(Debug)]
pub struct NewJob {
    /// The name of the job.
    pub job: String,
    /// The target to which the dead letters are sent.
    pub target: ReplayTarget,
    /// The URL of the queue; `None` if the target is a URL.
    pub queue: Option<String>,
    /// True if the functions record the results of the job's deliveries in this container.
    pub results: bool,
    /// The maximum rate; `None` for the default rate.
    pub rate: Option<Rate>,
    /// The name of the person who starts the job, if known.
    pub by: Option<String>,
    /// A note of the person who starts the job.
    pub note: Option<String>,
}

/// Returns the default name of a job: its start time, in a form that keys allow.
#[must_use]
pub fn job_name(now_ms: u64) -> String {
    // Milliseconds, because two jobs may start within one second.
    let to_the_ms: String = moment::rfc3339(now_ms).chars().take(23).collect();
    to_the_ms.replace([':', '.'], "-")
}

/// A replay job and its ledger.
pub struct ReplayJob {
    letters: DeadLetters,
    /// The header of the job.
    pub header: JobHeader,
    plan: Vec<PlannedReplay>,
    chunks: BTreeMap<u32, Vec<LedgerEntry>>,
    is_resumed: bool,
    /// Dead letters that another job has sent or a person has dismissed since this job began.
    closed: HashSet<Uuid>,
}

impl ReplayJob {
    /// Creates a job and writes its plan.
    ///
    /// # Errors
    /// Fails if a job with this name exists, or the ledger cannot be written.
    pub async fn start(
        letters: &DeadLetters,
        new: NewJob,
        plan: ReplayPlan,
    ) -> anyhow::Result<Self> {
        let NewJob { job, target, queue, results, rate, by, note } = new;
        let key = letters.ledger_key(&job, "plan");
        let exists = format!(
            "the job {job} already exists: use --resume {}, or another --name",
            quoted(&job)
        );
        let plan = plan.ordered();
        let header = JobHeader {
            v: ledger::VERSION,
            job,
            at: moment::rfc3339(Machine.now_ms()),
            to: target.to_string(),
            queue,
            letters: plan.len(),
            results,
            rate: Some(rate.unwrap_or_default()),
            by,
            note,
        };
        // The write is conditional: otherwise a concurrent replay with the same name would
        // overwrite this ledger, and both would send the dead letters.
        let put = letters.container.put_if_absent(&key, write_plan(&header, &plan), None).await?;
        ensure!(put == PutOutcome::Written, exists);
        let (letters, chunks, closed) = (letters.clone(), BTreeMap::new(), HashSet::new());
        Ok(Self { letters, header, plan, chunks, is_resumed: false, closed })
    }

    /// Reads a job from its ledger, to continue it.
    ///
    /// # Errors
    /// Fails if no job has this name, or its ledger cannot be read.
    pub async fn resume(letters: &DeadLetters, job: &str) -> anyhow::Result<Self> {
        let Some((header, plan)) = letters.plan_of(job).await? else {
            let jobs = letters.job_names().await?;
            let others = match &jobs[..] {
                [] => "there are no jobs".to_owned(),
                jobs => format!("jobs: {}", jobs.join(", ")),
            };
            bail!("there is no job {job} in {}; {others}", letters.container.name);
        };
        let chunks = letters.read_chunks(job, None).await?;
        let (letters, closed) = (letters.clone(), HashSet::new());
        Ok(Self { letters, header, plan, chunks, is_resumed: true, closed })
    }

    /// Returns the chunks that may or may not have been sent, with the number of uncertain dead
    /// letters in each.
    #[must_use]
    pub fn uncertain(&self) -> Vec<(u32, u64)> {
        ledger::uncertain_chunks(&self.chunks)
    }

    /// Returns the numbers of the job's dead letters by state.
    #[must_use]
    pub fn counts(&self) -> ReplayCounts {
        ReplayCounts::count(self.chunks.values().flatten())
    }

    /// Counts the deliveries that the job has sent, by their results in `ends`.
    #[must_use]
    pub fn end_counts(&self, ends: &ReplayEnds) -> EndCounts {
        EndCounts::count(self.chunks.values().flatten(), ends, Machine.now_ms())
    }

    /// Returns the counts of the chunks that a run does not send. The counts of the job are the sum
    /// of these and the counts that [`Self::run`] reports.
    #[must_use]
    pub fn settled(&self) -> ReplayCounts {
        let open: HashSet<u32> = self.open_chunks().into_iter().collect();
        let settled = self.chunks.iter().filter(|(number, _)| !open.contains(number));
        ReplayCounts::count(settled.flat_map(|(_, entries)| entries))
    }

    /// Returns every dead letter of the plan in the order of sending, with its entry if there is
    /// one.
    pub fn entries(&self) -> impl Iterator<Item = (Uuid, Option<&LedgerEntry>)> {
        let chunks = (1..).zip(self.plan.chunks(CHUNK));
        chunks.flat_map(|(number, planned)| {
            let entries = self.chunks.get(&number).map(Vec::as_slice).unwrap_or_default();
            planned
                .iter()
                .map(PlannedReplay::letter)
                .map(|letter| (letter, entries.iter().find(|entry| entry.letter == letter)))
        })
    }

    /// Sends all unfinished dead letters. After `interrupted` is ready, no further chunk is sent;
    /// chunks in progress are finished. A run with more than five dead letters first sends five as
    /// a probe, if the target is a URL or the job records results. The run stops if the probe
    /// fails, or after ten consecutive failures.
    ///
    /// # Errors
    /// Fails if the ledger or a dead letter cannot be read or written, or deliveries fail. The
    /// ledger then contains the progress.
    pub async fn run(
        &mut self,
        sender: &ReplaySender,
        options: RunOptions,
        interrupted: impl Future<Output = ()> + Send,
        on_event: impl Fn(RunEvent) + Sync,
    ) -> anyhow::Result<ReplayCounts> {
        let ends = self.new_ends(options).await?;
        let began_ms = Machine.now_ms();
        if self.is_resumed {
            self.closed = self.closed_since().await?;
            self.add_ends().await?;
        }
        let failures = Mutex::default();
        let interrupted = interrupted.map(|()| Halt::Interrupted).boxed().shared();
        if self.open_letters() > PROBED && (ends.is_some() || sender.answers_at_once()) {
            let run = Run::new(&*self, began_ms, sender, options, interrupted.clone(), &failures);
            let probed = run.probe(ends.as_ref(), &on_event).await;
            self.keep(probed)?;
        }
        let failing = match &ends {
            Some(ends) => ends.failing().map(Halt::of_ends).boxed(),
            None => pending().boxed(),
        };
        let halt = select(interrupted, failing).map(|halt| halt.factor_first().0);
        let run = Run::new(&*self, began_ms, sender, options, halt.boxed().shared(), &failures);
        let rest = run.send_open(&on_event).await;
        self.keep(rest)?;
        self.finish().await
    }

    /// Watches the results of deliveries from now on; `None` if the job does not record results.
    async fn new_ends(&self, options: RunOptions) -> anyhow::Result<Option<NewEnds>> {
        if !self.header.results {
            return Ok(None);
        }
        NewEnds::begin(&self.letters, &self.header.job, options.expects_set_aside).await.map(Some)
    }

    /// Adds recorded results to uncertain entries, because a result proves that the dead letter was
    /// sent.
    async fn add_ends(&mut self) -> anyhow::Result<()> {
        if self.header.results && self.counts().uncertain > 0 {
            let ends = self.letters.ends(&self.header.job).await?;
            let uncertain = |entry: &&mut LedgerEntry| entry.state == ReplayState::Intent;
            for entry in self.chunks.values_mut().flatten().filter(uncertain) {
                entry.end = ends.get(&entry.letter).map(KnownEnd::from);
            }
        }
        Ok(())
    }

    /// Returns the dead letters that another job has sent or a person has dismissed since this job
    /// began.
    async fn closed_since(&self) -> anyhow::Result<HashSet<Uuid>> {
        let (JobHeader { job, at, .. }, states) = (&self.header, self.letters.states().await?);
        let letters = self.plan.iter().map(PlannedReplay::letter);
        Ok(letters.filter(|letter| states.is_closed_since(*letter, job, at)).collect())
    }

    /// Adds the chunks of a run to the job, even if the run has failed.
    fn keep(&mut self, result: RunResult) -> anyhow::Result<()> {
        self.chunks.extend(result.chunks);
        result.failed.map_or(Ok(()), Err)
    }

    fn open_letters(&self) -> usize {
        let finished = usize::try_from(self.counts().finished()).unwrap_or(usize::MAX);
        self.plan.len().saturating_sub(finished)
    }

    /// Returns the numbers of the chunks that contain an unfinished dead letter.
    fn open_chunks(&self) -> Vec<u32> {
        let chunks = (1..).zip(self.plan.chunks(CHUNK));
        let open = chunks.filter(|(number, planned)| {
            let entries = self.chunks.get(number);
            entries.is_none_or(|entries| {
                ReplayCounts::count(entries).finished() < planned.len() as u64
            })
        });
        open.map(|(number, _)| number).collect()
    }

    /// Returns the first chunk with enough open dead letters for a probe. A probe of a single dead
    /// letter that is refused repeatedly would prove nothing about the others.
    fn chunk_to_probe(&self) -> Option<u32> {
        self.open_chunks().into_iter().find(|number| {
            let finished = self
                .chunks
                .get(number)
                .map_or(0, |entries| ReplayCounts::count(entries).finished());
            self.planned_of_chunk(*number).len() as u64 >= finished + PROBED as u64
        })
    }

    fn planned_of_chunk(&self, number: u32) -> &[PlannedReplay] {
        self.plan.chunks(CHUNK).nth(number.saturating_sub(1) as usize).unwrap_or_default()
    }

    /// Writes all entries to `done.ndjson`, if every dead letter is finished.
    async fn finish(&self) -> anyhow::Result<ReplayCounts> {
        let counts = self.counts();
        if counts.finished() == self.plan.len() as u64 {
            let key = self.letters.ledger_key(&self.header.job, "done");
            let entries: Vec<LedgerEntry> = self.chunks.values().flatten().cloned().collect();
            let done = write_done(&self.header, &entries);
            self.letters.container.put(&key, done).await?;
        }
        Ok(counts)
    }
}
