//! The state that the handlers share.

use std::sync::Arc;

use deadletters::DeadLetters;

use super::guard::Guard;
use super::letter_caches::LetterCaches;
use super::running_jobs::RunningJobs;
use crate::replay_sender::ReplayQueues;

/// The state, as handlers get it.
pub(super) type SharedApp = Arc<App>;

pub(super) struct App {
    pub(super) letters: DeadLetters,
    pub(super) caches: Arc<LetterCaches>,
    pub(super) guard: Arc<Guard>,
    pub(super) jobs: RunningJobs,
    pub(super) queues: ReplayQueues,
}
