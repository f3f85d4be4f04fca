//! Notices about destinations: slow, failing, recovered, disabled or enabled.
//!
//! A notice is a CloudEvent. The state of its destination contains the notice until it is sent. If
//! the notice is sent again, it has the same id.

mod event;
mod transition;

pub use self::transition::{Notice, Transition};

#[cfg(test)]
mod tests;
