//! All I/O of lastmile: the ports of `delivery`, implemented on AWS, HTTP and this machine.
//!
//! Nothing here decides. [`records`] reads what Lambda hands over and writes the answer; [`queues`]
//! sends messages; [`http`] makes one exchange; [`blobs`] writes and reads objects; [`letters`]
//! stores a dead letter; [`subscriptions`] keeps the catalogue fresh; [`secrets`] looks secrets up;
//! [`consents`] remembers which destinations want events; [`machine`] tells the time and rolls the
//! dice, and is the only file that asks for either; [`settings`] reads the environment;
//! [`telemetry`] writes the log and counts what it tells; [`metrics`] adds that up; [`runtime`] is
//! what a function runs on. [`shell::AwsPorts`] puts them together as the ports of one function.

pub mod aws_ports;
pub mod blobs;
pub mod consents;
pub mod http;
pub mod json_log;
pub mod letters;
pub mod machine;
pub mod metrics;
pub mod queues;
pub mod records;
pub mod runtime;
pub mod secrets;
pub mod settings;
pub mod sinks;
pub mod subscriptions;
pub mod telemetry;
