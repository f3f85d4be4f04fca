//! That a delivery is a replay of a dead letter, and how such a delivery ended.
//!
//! Separate because only `lastmile deadletters replay` makes such deliveries: what is here travels with them
//! and is written once, beside the ledger of the job, when they end. No other delivery carries or writes it.
//!
//! Promises: a [`Replay`] has the name of a job that can be a segment of a key. The key of an end depends on
//! job, dead letter and outcome only: an end that is reported twice is one object.

mod end;
mod of_delivery;

pub use self::end::{ReplayEnd, ReplayOutcome, StoredReplayEnd};
pub use self::of_delivery::{ENDS_FOLDER, REPLAYS_FOLDER, Replay, is_job_name, read_end_file};
