//! What each port promises, held against every implementation.
//!
//! A contract is a function over the trait, written once, with the doc comment of the port as its
//! text. Beside the contracts stand the few promises that only one implementation makes: how many
//! requests it needs, say.

#[path = "contracts/blobs.rs"]
mod blobs;
#[path = "contracts/cloud.rs"]
mod cloud;
#[path = "contracts/coalescing.rs"]
mod coalescing;
#[path = "contracts/consents.rs"]
mod consents;
#[path = "contracts/handshakes.rs"]
mod handshakes;
#[path = "contracts/http.rs"]
mod http;
#[path = "contracts/machine.rs"]
mod machine;
#[path = "contracts/queue.rs"]
mod queue;
#[path = "contracts/secrets.rs"]
mod secrets;
#[path = "contracts/sinks.rs"]
mod sinks;
#[path = "contracts/subscriptions.rs"]
mod subscriptions;
#[path = "contracts/tls.rs"]
mod tls;
