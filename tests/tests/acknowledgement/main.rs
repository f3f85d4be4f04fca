//! Both functions and the ingress, over fake ports that record every call. The tests check which
//! records are acknowledged, re-enqueued, returned to their queue or dead-lettered, and in which
//! order. They also check log lines and metrics.
//!
//! There is one example for each failure of a port and for each promise of order. Unit tests and
//! the rule tables show the rules themselves. The simulation shows that no combination of failures
//! breaks a promise.

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
