//! Notices about destinations: slow, failing, recovered, disabled or enabled.
//!
//! A notice is a CloudEvent. It is stored beside the state of its destination until it is sent. Its id stays the same when it is
//! sent again.

mod event;
mod transition;

pub use self::transition::{Notice, Transition};

#[cfg(test)]
mod tests;
