//! All I/O of lastmile: the ports of `delivery`, implemented on AWS, HTTP and this machine. All
//! decisions about deliveries are made in `delivery`.
//!
//! - Records: [`records`] reads a batch from Lambda and writes the response.
//! - Queues: [`queues`] sends messages, and repeats a send if `resend` permits it. [`events_queue`]
//!   publishes events that arrive over HTTP.
//! - HTTP: [`http`] makes one exchange with a destination, and `aws_http` is the HTTP client for
//!   AWS. Both trust the certificates that `authorities` finds.
//! - Storage: [`storage`] reads and writes objects of a bucket or files of a folder. [`file_text`]
//!   reads files that people wrote. [`live_topics`] reads subscriptions on demand and keeps them
//!   fresh.
//! - Dead letters: [`dead_letter_store`] stores them, with [`blobs`] in buckets and with [`sinks`]
//!   in external queues.
//! - State: [`table`] is the shared table. [`secrets`] looks up secrets, [`tokens`] fetches tokens,
//!   [`consents`] stores which endpoints accept events.
//! - Process: [`machine`] is the clock and the random numbers, and [`aws_time`] corrects a wrong
//!   clock. [`settings`] reads the environment, [`runtime`] runs a function, and [`stop`] waits for
//!   SIGTERM.
//! - Observability: [`telemetry`] logs and counts, [`metrics`] aggregates, and [`json_log`] formats
//!   log lines.
//! - Errors: [`error_words`], [`aws_error`] and `tls_words` describe errors for people.
//!
//! [`aws_ports::AwsPorts`] combines the ports of one function.

#![cfg_attr(not(test), deny(clippy::string_slice))] // a slice of untrusted text may panic

mod authorities;
pub mod aws_error;
mod aws_http;
pub mod aws_identity;
pub mod aws_ports;
pub mod aws_time;
pub mod blobs;
pub mod consents;
pub mod dead_letter_store;
pub mod error_words;
pub mod events_queue;
pub mod file_text;
pub mod http;
pub mod json_log;
pub mod live_topics;
pub mod machine;
pub mod metrics;
pub mod queues;
pub mod records;
mod refreshing;
mod resend;
pub mod runtime;
pub mod secrets;
pub mod settings;
pub mod sinks;
pub mod stop;
pub mod storage;
pub mod table;
pub mod telemetry;
pub mod timeouts;
mod tls_words;
pub mod tokens;
