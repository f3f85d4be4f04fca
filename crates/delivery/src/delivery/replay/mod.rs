//! That a delivery is a replay of a dead letter, and how such a delivery ended.
//!
//! Separate because only `lastmile deadletters replay` makes such deliveries: what is here travels with them
//! and is written once, beside the ledger of the job, when they end. No other delivery carries or writes it.
//!
//! Promises: a [`Replay`] has the name of a job that can be a segment of a key. The key of an end depends on
//! job and dead letter only, so that the first end that is written counts.

mod end;
mod of_delivery;

pub use self::end::{ReplayEnd, ReplayOutcome, StoredReplayEnd};
pub use self::of_delivery::{ENDS_FOLDER, REPLAYS_FOLDER, Replay, is_job_name};
