//! All I/O of lastmile: the ports of `delivery`, implemented on AWS, HTTP and this machine.
//!
//! Nothing here decides. [`records`] reads a batch from Lambda and writes the response; [`queues`]
//! sends messages, several times if `resend` says so; [`http`] makes one exchange, and `aws_http` those with AWS, both trusting `authorities`; [`storage`] reads and writes objects of a bucket or
//! files of a folder; [`blobs`] writes dead letters into buckets and [`sinks`] into other people's
//! queues, as `delivery` decides, by [`dead_letter_store`]; [`events_queue`] publishes what came over HTTP; [`file_text`] reads the text of a file that a person wrote; [`subscriptions`] keeps those of a file
//! fresh, and [`live_catalogue`] reads those of a catalogue by need; [`secrets`] looks up secrets, and [`tokens`] fetches tokens with them; [`consents`] keeps which endpoints want events; [`machine`]
//! is the clock and the random numbers, and the only file that reads either, and [`aws_time`] corrects a wrong clock; [`settings`] reads the
//! environment; [`telemetry`] writes the log and counts; [`metrics`] adds the counts up;
//! [`json_log`] formats the log's lines; [`runtime`] runs a function, and [`stop`] hears when it has to end. [`aws_ports::AwsPorts`] puts
//! them together as the ports of one function. [`error_words`] and `tls_words` describe errors for people.

#![cfg_attr(not(test), deny(clippy::string_slice))] // what others wrote may be cut within a character

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
