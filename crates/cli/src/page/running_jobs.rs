//! The replays that this process runs.
//!
//! A job runs in a task of its own; the pages only show it. What it has sent is in its ledger, so a
//! job that ends with this process can be resumed like any other.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapters::machine::Machine;
use anyhow::ensure;
use deadletters::ledger::{JobHeader, ReplayCounts};
use deadletters::replay::sender::ReplaySender;
use deadletters::replay::{ReplayJob, RunEvent, RunOptions};
use delivery::ports::Clock as _;
use tokio::task::JoinHandle;

use super::letter_caches::LetterCaches;
use crate::advice::chain;

/// The jobs of this process.
#[derive(Default)]
pub(super) struct RunningJobs {
    runs: Mutex<HashMap<String, Run>>,
    /// Held while a job is started or resumed: its ledger must not change before it runs.
    pub(super) starting: tokio::sync::Mutex<()>,
}

/// A job that runs, or has run.
struct Run {
    header: JobHeader,
    begun_ms: u64,
    /// How far it was when it was started here.
    before: ReplayCounts,
    counts: Arc<Mutex<ReplayCounts>>,
    task: JoinHandle<()>,
    problem: Arc<Mutex<Option<String>>>,
}

/// How far a job is.
pub(super) struct JobProgress {
    pub(super) header: JobHeader,
    pub(super) counts: ReplayCounts,
    /// Dead letters a second.
    pub(super) rate: u64,
    /// How long it takes at that rate; `None` before the first dead letter is finished.
    pub(super) left_ms: Option<u64>,
}

impl RunningJobs {
    /// Runs a job in a task of its own; afterwards the caches are read again.
    ///
    /// # Errors
    /// When it runs already.
    pub(super) fn run(
        &self,
        mut job: ReplayJob,
        sender: ReplaySender,
        options: RunOptions,
        caches: Arc<LetterCaches>,
    ) -> anyhow::Result<()> {
        let name = job.header.job.clone();
        // Locked until the run is inserted: two requests must not both start it.
        let mut runs = self.runs();
        ensure!(
            runs.get(&name).is_none_or(|run| run.task.is_finished()),
            "the job {name} is running"
        );
        let (header, begun_ms, before) = (job.header.clone(), Machine.now_ms(), job.settled());
        let counts = Arc::new(Mutex::new(before));
        let problem: Arc<Mutex<Option<String>>> = Arc::default();
        let (sum, failure) = (Arc::clone(&counts), Arc::clone(&problem));
        let task = tokio::spawn(async move {
            let on_event = |event| {
                if let RunEvent::Chunk(chunk) = event {
                    let mut counts = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    *counts = counts.plus(chunk);
                }
            };
            if let Err(error) = job.run(&sender, options, pending(), on_event).await {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain(&error));
            }
            // After a failure as well: part of the job may have been sent.
            caches.expire();
        });
        runs.insert(name, Run { header, begun_ms, before, counts, task, problem });
        Ok(())
    }

    /// How far a job is that runs here.
    pub(super) fn progress(&self, job: &str) -> Option<JobProgress> {
        let runs = self.runs();
        let run = runs.get(job).filter(|run| !run.task.is_finished())?;
        let counts = *run.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let done = counts.finished().saturating_sub(run.before.finished());
        let took_ms = Machine.now_ms().saturating_sub(run.begun_ms);
        let open = (run.header.letters as u64).saturating_sub(counts.finished());
        let left_ms = took_ms.saturating_mul(open).checked_div(done);
        Some(JobProgress {
            header: run.header.clone(),
            counts,
            rate: done.saturating_mul(1_000) / took_ms.max(1),
            left_ms,
        })
    }

    /// Whether a job runs here, or has run.
    pub(super) fn knows(&self, job: &str) -> bool {
        self.runs().contains_key(job)
    }

    /// Why a job failed here, if it did.
    pub(super) fn problem(&self, job: &str) -> Option<String> {
        self.runs().get(job)?.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of the jobs that run here.
    pub(super) fn names(&self) -> Vec<String> {
        let runs = self.runs();
        runs.iter().filter(|(_, run)| !run.task.is_finished()).map(|(job, _)| job.clone()).collect()
    }

    /// Waits until no job runs here.
    pub(super) async fn finish(&self) {
        // Taken out, so that the lock is not held while they are awaited.
        let runs = std::mem::take(&mut *self.runs());
        for run in runs.into_values() {
            // A job that panicked has ended too; its ledger says how far it was.
            let _ = run.task.await;
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
