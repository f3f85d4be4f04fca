//! Notices about destinations: slow, failing, recovered, disabled or enabled.
//!
//! A notice is a CloudEvent. It is stored beside the state of its destination until it is sent. If
//! it is sent again, it has the same id.

mod event;
mod transition;

pub use self::transition::{Notice, Transition};

#[cfg(test)]
mod tests;
