//! The state of a delivery: what happened to it so far, what an answer means, and how it ended.
//!
//! [`Delivery`] is one event for one subscription. [`outcome`] says what happened in an attempt and
//! what that means, [`reason`] why a delivery ended, and a dead letter holds both. [`probation`] is
//! what is known of a destination that keeps failing. Decides nothing about what comes next: that is
//! [`machine`](crate::machine).

mod deadletter;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
mod delivery;
pub mod outcome;
pub mod probation;
pub mod reason;
pub mod trace;

pub(crate) use deadletter::cut;
pub use deadletter::{Addresses, DeadLetter, Returned, Store};
pub use delivery::{
    Batching, DELIVERY_NAMESPACE, Delivery, DeliveryTarget, Entry, HISTORY_FIRST, HISTORY_LAST,
    History, Origin, RESPONSE_KEPT_BYTES,
};
