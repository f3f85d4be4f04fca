//! A local AWS, in this process: queues, object storage and the event source mappings between queues and functions.
//!
//! It is a crate of its own so that what only serves a developer's machine never reaches a deployed function. It
//! promises that the same AWS clients, and the user's own tools, work against it; it does not aim to be all of AWS.

pub mod aws;
pub mod mapping;
