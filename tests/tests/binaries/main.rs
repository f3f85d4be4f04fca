//! The binaries of the functions, as Lambda runs them: their environment is the template's, and a
//! scripted Runtime API invokes them.
//!
//! Separate from the other tests, which call the libraries: here is what only `main.rs` decides,
//! such as whose attributes are believed and when an invocation ends. SQS and S3 are local.

mod authorities;
mod deadletter;
mod dispatch;
mod environment;
mod ingress;
mod large;
mod records;
mod runtime_api;
mod settings;
mod world;
