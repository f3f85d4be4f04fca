//! Every rule of `delivery`, seen from outside: as tables, snapshots, properties and files that are
//! kept for ever.
//!
//! The crate's own tests hold single functions. Here the rules are held as `docs` tell them: every
//! HTTP status of every dialect, whole lives of deliveries, and the bytes that leave the system.
//! Nothing here does I/O but read its files.

mod addresses;
mod arbitrary;
mod batches;
mod blobs;
mod configuration;
mod corpus;
mod documented;
mod events;
mod foreign;
mod formats;
mod lives;
mod observability;
mod requests;
mod samples;
mod schedules;
mod statuses;
mod wire;
