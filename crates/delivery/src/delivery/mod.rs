//! The state of a delivery: its attempts so far, what an answer means, and how it ended.
//!
//! [`Delivery`] is one event for one subscription. [`outcome`] says what happened in an attempt and
//! what that means, [`reason`] why a delivery ended; a dead letter holds both. [`health`] holds
//! what is known of destinations that are not healthy, [`replay`] what a replayed delivery knows of its job. What a delivery does next is decided by
//! `machine`.

mod deadletter;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
mod delivery;
pub mod health;
pub mod outcome;
mod publication;
pub mod reason;
pub mod replay;
pub mod trace;
mod word;

pub(crate) use deadletter::truncated_detail;
pub use deadletter::{Addresses, DeadLetter, Returned, Store};
pub use delivery::{
    Batching, DELIVERY_NAMESPACE, Delivery, DeliveryTarget, Entry, HISTORY_FIRST, HISTORY_LAST,
    History, Origin, RESPONSE_KEPT_BYTES, id_of,
};
pub(crate) use publication::is_zero;
pub use publication::{Hold, Onward, Part, Publication, following_id, share};
pub use word::Word;
