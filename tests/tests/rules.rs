//! Every rule of `delivery`, seen from outside: as tables, snapshots, properties and files that are
//! kept for ever.
//!
//! The crate's own tests hold single functions. Here the rules are held as `docs` tell them: every
//! HTTP status of every dialect, whole lives of deliveries, and the bytes that leave the system.
//! Nothing here does I/O but read its files.

#[path = "rules/addresses.rs"]
mod addresses;
#[path = "rules/arbitrary.rs"]
mod arbitrary;
#[path = "rules/batches.rs"]
mod batches;
#[path = "rules/blobs.rs"]
mod blobs;
#[path = "rules/configuration.rs"]
mod configuration;
#[path = "rules/corpus.rs"]
mod corpus;
#[path = "rules/documented.rs"]
mod documented;
#[path = "rules/events.rs"]
mod events;
#[path = "rules/foreign.rs"]
mod foreign;
#[path = "rules/formats.rs"]
mod formats;
#[path = "rules/lives.rs"]
mod lives;
#[path = "rules/observability.rs"]
mod observability;
#[path = "rules/requests.rs"]
mod requests;
#[path = "rules/samples.rs"]
mod samples;
#[path = "rules/schedules.rs"]
mod schedules;
#[path = "rules/statuses.rs"]
mod statuses;
#[path = "rules/wire.rs"]
mod wire;
