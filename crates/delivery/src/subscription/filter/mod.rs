//! Which events a subscription delivers.
//!
//! Filters compare the top-level members of the event as the publisher wrote them. A member that is
//! missing, or is not a string, number or boolean, fails every comparison. The vocabulary is that
//! of the CloudEvents Subscriptions API: exact, prefix, suffix, all, any, not; and the conditions
//! of Event Grid ([`advanced`]), which can also compare data and have rules of their own, as have
//! expressions of CloudEvents SQL ([`cesql`]).

pub mod advanced;
pub mod cesql;
pub mod explanation;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
mod filter;
pub mod fold;
pub mod key;

pub use self::filter::Filter;
pub use crate::document::number;
