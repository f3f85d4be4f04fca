//! The state that the handlers share.

use std::sync::Arc;

use deadletters::DeadLetters;

use super::guard::Guard;
use super::letter_caches::LetterCaches;
use super::running_jobs::RunningJobs;
use crate::replay_sender::ReplayQueues;

/// The state, as handlers get it.
pub(super) type SharedApp = Arc<App>;

/// How replays are sent.
pub(crate) struct ReplaySettings {
    /// Where they are enqueued.
    pub(crate) queues: ReplayQueues,
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
}
