//! The replays that this page runs.
//!
//! A job runs by itself; a page only looks. What it has sent stands in its ledger, so a job that
//! ends with this process is taken up again like any other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adapters::machine::Machine;
use anyhow::ensure;
use delivery::ports::Clock as _;
use tokio::task::JoinHandle;

use super::Page;
use crate::letters::ledger::{Counts, Header};
use crate::letters::replay::sender::Sender;
use crate::letters::replay::{Pace, Replay};

/// The jobs of this process.
#[derive(Default)]
pub(super) struct Jobs {
    runs: Mutex<HashMap<String, Run>>,
    /// Held while a job is begun or taken up: what a ledger says stays true until the job runs.
    pub(super) beginning: tokio::sync::Mutex<()>,
}

/// A job that runs, or has run.
struct Run {
    header: Header,
    begun_ms: u64,
    /// How far it was when it began here.
    before: Counts,
    counts: Arc<Mutex<Counts>>,
    task: JoinHandle<()>,
    problem: Arc<Mutex<Option<String>>>,
}

/// How far a job is.
pub(super) struct Running {
    pub(super) header: Header,
    pub(super) counts: Counts,
    /// Letters a second.
    pub(super) rate: u64,
    /// How long it goes on at that rate; nothing before the first letter has its end.
    pub(super) left_ms: Option<u64>,
}

impl Jobs {
    /// Runs a job by itself.
    ///
    /// # Errors
    /// When it runs already.
    pub(super) fn run(
        &self,
        page: &Page,
        mut replay: Replay,
        sender: Sender,
        pace: Pace,
    ) -> anyhow::Result<()> {
        let job = replay.header.job.clone();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            runs.get(&job).is_none_or(|run| run.task.is_finished()),
            "the job {job} is under way"
        );
        let (header, begun_ms, before) =
            (replay.header.clone(), Machine.now_ms(), replay.settled());
        let counts = Arc::new(Mutex::new(before));
        let problem: Arc<Mutex<Option<String>>> = Arc::default();
        let (page, count, tell) = (Arc::clone(page), Arc::clone(&counts), Arc::clone(&problem));
        let task = tokio::spawn(async move {
            let told = |chunk: Counts| {
                let mut counts = count.lock().unwrap_or_else(PoisonError::into_inner);
                *counts = counts.plus(chunk);
            };
            if let Err(error) = replay.run(&sender, pace, told).await {
                *tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{error:#}"));
            }
            page.shelves.expire();
        });
        runs.insert(job, Run { header, begun_ms, before, counts, task, problem });
        Ok(())
    }

    /// How far a job is that runs here.
    pub(super) fn running(&self, job: &str) -> Option<Running> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let run = runs.get(job).filter(|run| !run.task.is_finished())?;
        let counts = *run.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let done = counts.ended().saturating_sub(run.before.ended());
        let took_ms = Machine.now_ms().saturating_sub(run.begun_ms);
        let open = (run.header.letters as u64).saturating_sub(counts.ended());
        let left_ms = took_ms.saturating_mul(open).checked_div(done);
        Some(Running {
            header: run.header.clone(),
            counts,
            rate: done.saturating_mul(1_000) / took_ms.max(1),
            left_ms,
        })
    }

    /// Whether a job runs here, or has run.
    pub(super) fn knows(&self, job: &str) -> bool {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).contains_key(job)
    }

    /// Why a job ended here, if it should not have.
    pub(super) fn problem(&self, job: &str) -> Option<String> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(job)?.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The jobs that run here.
    pub(super) fn under_way(&self) -> Vec<String> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.iter().filter(|(_, run)| !run.task.is_finished()).map(|(job, _)| job.clone()).collect()
    }

    /// Waits until no job runs here.
    pub(super) async fn end(&self) {
        let runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        for run in runs.into_values() {
            // A job that panicked has ended too; its ledger says how far it came.
            let _ = run.task.await;
        }
    }
}
