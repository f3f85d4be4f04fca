//! The state of a delivery: its attempts so far, the meaning of responses, and its end.
//!
//! [`Delivery`] is one event for one subscription. [`outcome`] classifies attempts, and [`reason`]
//! states why a delivery ended; a dead letter has both. [`health`] tracks unhealthy destinations.
//! [`replay`] links replayed deliveries to their jobs. The next step of a delivery is decided in
//! `machine`.

mod addresses;
mod deadletter;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
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
