//! The state that the handlers share.

use std::sync::Arc;

use deadletters::DeadLetters;
use deadletters::replay::sender::ReplayTarget;
use url::Url;

use super::guard::Guard;
use super::letter_caches::LetterCaches;
use super::running_jobs::RunningJobs;

/// The state, as handlers get it.
pub(super) type SharedApp = Arc<App>;

/// How replays are sent.
pub(crate) struct ReplaySettings {
    /// The events queue; without it that of the job, or of `lastmile dev`.
    pub(crate) queue_url: Option<Url>,
    /// The private addresses that events may be posted to.
    pub(crate) allow_private: String,
}

pub(super) struct App {
    pub(super) letters: DeadLetters,
    pub(super) caches: Arc<LetterCaches>,
    pub(super) guard: Arc<Guard>,
    pub(super) jobs: RunningJobs,
    pub(super) replays: ReplaySettings,
}

impl App {
    pub(super) fn new(
        letters: DeadLetters,
        replays: ReplaySettings,
        port: u16,
        random: [u32; 8],
    ) -> Self {
        let caches = Arc::new(LetterCaches::new(&letters));
        let guard = Arc::new(Guard::new(letters.container.clone(), port, random));
        Self { letters, caches, guard, jobs: RunningJobs::default(), replays }
    }

    /// The queue that was given, for a target that uses one.
    pub(super) fn given_queue(&self, target: &ReplayTarget) -> Option<Url> {
        self.replays.queue_url.clone().filter(|_| !matches!(target, ReplayTarget::Url(_)))
    }
}
