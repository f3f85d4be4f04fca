//! Every rule of `delivery`, seen from outside: as tables, snapshots, properties and permanent
//! files.
//!
//! The crate's own tests check single functions. Here the rules are checked as `docs` describe
//! them: every HTTP status of every dialect, whole lifetimes of deliveries, and the bytes that
//! leave the system. Nothing here does I/O except for reading its files.

mod adaptive;
mod addresses;
mod arbitrary;
mod aws_envelopes;
mod aws_targets;
mod batches;
mod blobs;
mod bodies;
mod canonical;
mod cesql;
mod compatibility;
mod configuration;
mod conformance;
mod credentials;
mod events;
mod formats;
mod letter_fidelity;
mod lifetimes;
mod matching;
mod observability;
mod requests;
mod samples;
mod schedules;
mod schema;
mod statuses;
mod template;
mod wire;
