//! The functions' responses to their queue: which records are redelivered, when, and what was
//! re-enqueued before; and the ingress function's responses to publishers.
//!
//! One test per rule of returning, splitting and acknowledging records, over fake ports that record
//! every call.

mod adaptive;
mod aws_targets;
mod batches;
mod by_need;
mod consent;
mod credentials;
mod dead_letters;
mod divided;
mod examples;
mod gate_limits;
mod identity;
mod ingress;
mod isolation;
mod json_log;
mod late;
mod metrics;
mod neighbours;
mod onward;
mod permits;
mod probation;
mod probes;
mod process;
mod rate;
mod records;
mod recoveries;
mod redelivered;
mod replays;
mod replies;
mod secret_policy;
mod sending;
mod shared;
mod signed;
mod sinks;
mod slow;
mod spared;
mod table_faults;
mod tokens;
mod trust;
mod unreadable;
mod unusable;
