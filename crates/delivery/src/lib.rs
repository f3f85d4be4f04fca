//! Every rule of delivery, and nothing else.
//!
//! An event arrives, an attempt is made or put off, what happened is judged, and the delivery ends,
//! waits or becomes a dead letter. All of that is decided here, over plain values: no I/O, no
//! clock, no randomness, no runtime, no AWS. The moment is an argument (`now_ms`, milliseconds
//! since 1970-01-01 UTC), jitter is an argument, an answer from a destination is an argument. So
//! the same functions run in production, in the simulation and in explanations.
//!
//! Reading order: [`event`] (what was published, with [`foreign`] and [`binary`]) ·
//! [`subscription`] (where it goes and how hard to try) · [`catalogue`] (all of them) ·
//! [`manifest`] (files → catalogue) · [`filter`] · [`schedule`] · [`outcome`] (what happened →
//! verdict) · [`delivery`](mod@delivery) (state and history) · [`step`] (the machine) · [`consent`]
//! (whether a destination wants events) · [`request`] (one attempt as data, with [`header`],
//! [`secret`], [`mapping`], [`path`] and [`trace`]) · [`deadletter`] · [`blob`] (key and bytes) ·
//! [`stored`] (both read back) · [`wire`] (what travels beside the event) · [`ports`] (what the
//! shell promises). For people: [`policy`] (what a subscription says) · [`explain`] (how a delivery
//! lives by it) · [`diff`] (what another file would change).
//!
//! All arithmetic is in whole milliseconds and saturates.

pub mod address;
pub mod binary;
pub mod blob;
pub mod catalogue;
pub mod consent;
pub mod deadletter;
pub mod delivery;
pub mod diff;
pub mod duration;
pub mod event;
pub mod explain;
pub mod filter;
pub mod foreign;
pub mod header;
mod json;
pub mod manifest;
pub mod mapping;
pub mod moment;
pub mod outcome;
pub mod path;
pub mod policy;
pub mod ports;
pub mod probation;
pub mod profile;
pub mod reply;
pub mod request;
pub mod schedule;
pub mod secret;
pub mod sink;
pub mod step;
pub mod stored;
pub mod subscription;
pub mod trace;
mod uri;
pub mod wire;
