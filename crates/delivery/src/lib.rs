//! Every rule of delivery, and nothing else.
//!
//! An event arrives, an attempt is made or put off, what happened is judged, and the delivery ends,
//! waits or becomes a dead letter. All of that is decided here, over plain values: no I/O, no
//! clock, no randomness, no runtime, no AWS. The moment is an argument (`now_ms`, milliseconds
//! since 1970-01-01 UTC), jitter is an argument, an answer from a destination is an argument. So
//! the same functions run in production, in the simulation and in explanations.
//!
//! The rooms, from the ground up; each knows only those below it:
//!
//! - [`time`]: durations and moments. [`address`] stands apart: which addresses are never called.
//! - [`event`]: what was published.
//! - [`subscription`]: which events go where, and how hard to try.
//! - [`delivery`](mod@delivery): one event for one subscription, what happened, how it ended.
//! - [`manifest`]: files of every dialect, read into subscriptions. [`deadletter`]: the bytes of a dead
//!   letter, written and read back. [`wire`]: what travels beside an event in a queue.
//! - [`request`]: one attempt as data.
//! - [`machine`]: what happens next.
//! - [`explain`]: how a delivery would live. [`ports`]: what the shell promises.
//!
//! All arithmetic is in whole milliseconds and saturates.

pub mod address;
pub mod deadletter;
pub mod delivery;
pub mod event;
pub mod explain;
pub mod machine;
pub mod manifest;
pub mod ports;
pub mod request;
pub mod subscription;
pub mod time;
pub mod wire;
