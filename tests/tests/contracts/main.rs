//! The promises of each port, checked against every implementation.
//!
//! A contract is a function over the trait, written once, with the doc comment of the port as its
//! text. Beside the contracts are the few promises of a single implementation, such as the number
//! of its requests.

mod blobs;
mod cloud;
mod coalescing;
mod consents;
mod handshakes;
mod http;
mod machine;
mod queue;
mod resending;
mod scripted_sqs;
mod secrets;
mod sinks;
mod storage;
mod subscriptions;
mod tls;
