//! That a delivery is a replay of a dead letter, and how such a delivery ended.
//!
//! Separate because only `lastmile deadletters replay` makes such deliveries: what is here travels with them
//! and is written once, beside the ledger of the job, when they end. No other delivery carries or writes it.
//!
//! Promises: a [`Replay`] has the name of a job that can be a segment of a key. Ends that are written together
//! have a key that depends on them alone: written twice, they are one object.

mod end;
mod of_delivery;

pub use self::end::{ReplayEnd, ReplayOutcome, StoredReplayEnd, read_ends, write_ends};
pub use self::of_delivery::{REPLAYS_FOLDER, Replay, ends_folder, is_job_name};
