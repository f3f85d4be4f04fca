//! What each port promises, held against every implementation.
//!
//! A contract is a function over the trait, written once, with the doc comment of the port as its
//! text. Beside the contracts stand the few promises that only one implementation makes: how many
//! requests it needs, say.

mod blobs;
mod cloud;
mod coalescing;
mod consents;
mod handshakes;
mod http;
mod machine;
mod queue;
mod secrets;
mod sinks;
mod storage;
mod subscriptions;
mod tls;
