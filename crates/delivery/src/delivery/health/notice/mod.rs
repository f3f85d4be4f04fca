//! What people and programs are told about destinations: that one became slow or keeps failing, that it
//! recovered, that it was disabled or enabled.
//!
//! A notice is a CloudEvent. It is kept beside the state of its destination until it is sent, and has the
//! same id however often that happens.

mod event;
mod transition;

pub(super) use self::transition::NOTICE_NAMESPACE;
pub use self::transition::{Notice, Transition};

#[cfg(test)]
mod tests;
