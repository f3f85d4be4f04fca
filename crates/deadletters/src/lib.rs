//! Finds, filters, groups and replays the dead letters in a container. There is no database: the
//! keys are the index.
//!
//! The `lastmile deadletters` commands and the console share this crate:
//!
//! - [`container`] reads and writes blobs and counts the requests, and `walk` finds the newest
//!   hours without listing everything;
//! - [`filter`] decides which dead letters match, and [`cause`] and [`stats`] sum them up;
//! - [`replay`] sends dead letters again and keeps its [`ledger`] beside them;
//! - [`dismissed`] stores dismissals, and [`state`] derives the state of each dead letter;
//! - [`letter_cache`] caches dead letters in memory, and `disk_cache` on disk;
//! - `elsewhere` finds alternatives for a search without a result.
//!
//! Pure: `key`, `filter`, `cause`, `stats`, `summary`, `ledger`, `recorded`.
//!
//! Promises: an id counts once, no matter how many blobs have it. A blob that is not a dead letter
//! is reported and never hides others. Stored dead letters are never rewritten. The crate does not
//! depend on the local AWS or on the functions.

#![cfg_attr(not(test), deny(clippy::string_slice))] // a slice of untrusted text may panic

mod cache_line;
pub mod cause;
pub mod container;
mod dead_letters;
mod disk_cache;
mod dismissal;
pub mod dismissed;
mod elsewhere;
pub mod facts;
pub mod filter;
mod find;
mod key;
mod known_states;
pub mod ledger;
mod left_behind;
pub mod letter_cache;
mod listed;
mod rate;
mod reading;
mod reads;
mod recorded;
pub mod replay;
mod replayed;
#[cfg(test)]
mod samples;
pub mod state;
pub mod stats;
mod summary;
mod walk;

pub use self::dead_letters::{DeadLetters, ListedTotal};
pub use self::elsewhere::MissingName;
pub use self::find::{SAME_EVENT_READS_MAX, SameEvent, matches_id};
pub use self::left_behind::{LEFT_BEHIND_READS_MAX, LeftBehind};
pub use self::rate::Rate;
pub use self::reads::{ReadObserver, ReadProgress, UnreadableBlobs};
