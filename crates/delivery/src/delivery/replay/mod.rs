//! Replays: the link from a delivery to the dead letter that it replays, and the result of such a
//! delivery.
//!
//! This module is separate because only `lastmile deadletters replay` creates such deliveries. The
//! link travels with the delivery. The result is written once, beside the ledger of the job.
//!
//! The job name of a [`Replay`] is always a valid segment of a key. The key of an object with
//! results depends only on these results, so writing the same results twice creates one object.

mod end;
mod of_delivery;

pub use self::end::{ReplayEnd, ReplayOutcome, StoredReplayEnd, read_ends, write_ends};
pub use self::of_delivery::{REPLAYS_FOLDER, Replay, ends_folder, is_job_name};
