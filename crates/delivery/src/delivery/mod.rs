//! The state of a delivery: its attempts so far, what an answer means, and how it ended.
//!
//! [`Delivery`] is one event for one subscription. [`outcome`] says what happened in an attempt and
//! what that means, [`reason`] why a delivery ended; a dead letter holds both. [`health`] holds
//! what is known of destinations that are not healthy, [`replay`] what a replayed delivery knows of its job. What a delivery does next is decided by
//! `machine`.

mod addresses;
mod deadletter;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
mod delivery;
mod detail;
mod failing;
pub mod health;
mod history;
mod hold;
mod origin;
pub mod outcome;
mod publication;
pub mod reason;
pub mod replay;
mod returned;
mod start;
mod store;
pub mod trace;
mod wait_reason;
mod word;

pub use addresses::Addresses;
pub use delivery::{Batching, DeadLetter, Delivery, DeliveryTarget, RESPONSE_KEPT_BYTES};
pub(crate) use detail::truncated_detail;
pub use failing::FailingDestination;
pub use history::{Entry, HISTORY_FIRST, HISTORY_LAST, History};
pub use hold::Hold;
pub(crate) use hold::is_zero;
pub use origin::{DELIVERY_NAMESPACE, Origin, id_of};
pub use publication::{Onward, Part, Publication, share};
pub use returned::Returned;
pub use start::check_moment;
pub use store::Store;
pub use wait_reason::WaitReason;
pub use word::Word;
