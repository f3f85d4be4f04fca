//! Runs the replays of this process.
//!
//! Each job runs in a task of its own; the pages only show its progress. The ledger records the
//! dead letters that a job has sent. Therefore, a job can be resumed after this process has ended.

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

use crate::console::letters::caches::LetterCaches;
use crate::terminal::advice::chain;

/// The replay jobs that this process has started.
#[derive(Default)]
pub(in crate::console) struct RunningJobs {
    runs: Mutex<HashMap<String, Run>>,
    /// A lock that is held while a job starts or resumes, so that its ledger does not change before
    /// the job runs.
    pub(in crate::console) starting: tokio::sync::Mutex<()>,
}

/// A replay job that this process runs or has run.
struct Run {
    header: JobHeader,
    begun_ms: u64,
    /// The counts when this process started or resumed the job.
    before: ReplayCounts,
    counts: Arc<Mutex<ReplayCounts>>,
    task: JoinHandle<()>,
    problem: Arc<Mutex<Option<String>>>,
}

/// The progress of a job that runs in this process.
pub(in crate::console) struct JobProgress {
    pub(in crate::console) header: JobHeader,
    pub(in crate::console) counts: ReplayCounts,
    /// The average rate so far, in dead letters per second.
    pub(in crate::console) rate: u64,
    /// The remaining time at the average rate, in milliseconds. `None` before the first dead letter
    /// is finished.
    pub(in crate::console) left_ms: Option<u64>,
}

impl RunningJobs {
    /// Runs a job in a task of its own. When the job ends, marks the caches as stale, so that pages
    /// read the container again.
    ///
    /// # Errors
    /// If the job is already running.
    pub(in crate::console) fn run(
        &self,
        mut job: ReplayJob,
        sender: ReplaySender,
        options: RunOptions,
        caches: Arc<LetterCaches>,
    ) -> anyhow::Result<()> {
        let name = job.header.job.clone();
        // Keep the lock until the run is inserted, so that two requests cannot both start the job.
        let mut runs = self.runs();
        ensure!(
            runs.get(&name).is_none_or(|run| run.task.is_finished()),
            "the job {name} is already running"
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
            // Mark the caches as stale after a failure too, because the job may have sent some dead
            // letters.
            caches.expire();
        });
        runs.insert(name, Run { header, begun_ms, before, counts, task, problem });
        Ok(())
    }

    /// Returns the progress of a job; `None` if the job does not run in this process.
    pub(in crate::console) fn progress(&self, job: &str) -> Option<JobProgress> {
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

    /// Returns true if this process runs the job, or has run it.
    pub(in crate::console) fn knows(&self, job: &str) -> bool {
        self.runs().contains_key(job)
    }

    /// Returns the error with which a job failed in this process; `None` if it did not fail.
    pub(in crate::console) fn problem(&self, job: &str) -> Option<String> {
        self.runs().get(job)?.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the names of the running jobs.
    pub(in crate::console) fn names(&self) -> Vec<String> {
        let runs = self.runs();
        runs.iter().filter(|(_, run)| !run.task.is_finished()).map(|(job, _)| job.clone()).collect()
    }

    /// Waits until all jobs have finished.
    pub(in crate::console) async fn finish(&self) {
        // Take the jobs out of the map, so that the lock is not held while waiting.
        let runs = std::mem::take(&mut *self.runs());
        for run in runs.into_values() {
            // A job that has panicked has ended too. Its ledger records the progress.
            let _ = run.task.await;
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
