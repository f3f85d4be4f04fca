//! Serves the pages of replays: the plan and the forecast of a new replay, the jobs of this
//! process, and the jobs in the ledgers.

pub(super) mod forecast;
mod form;
pub(super) mod jobs;
pub(super) mod plan;
pub(super) mod running;
