//! The promises of each port, checked against every implementation.
//!
//! A contract is a function over the trait, written once, with the doc comment of the port as its
//! text. Beside the contracts are the few promises of a single implementation, such as the number
//! of its requests.

mod aws_parameters;
mod aws_requests;
mod blobs;
mod cloud;
mod coalescing;
mod consents;
mod events_queue;
mod handshakes;
mod http;
mod live_topics;
mod machine;
mod ministack;
mod ports;
mod queue;
mod resending;
mod scripted_s3;
mod scripted_sqs;
mod secrets;
mod sigv4;
mod sinks;
mod storage;
mod storage_errors;
mod table;
mod tls;
mod tokens;
mod views;
