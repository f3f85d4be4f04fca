//! Filters: conditions that select the events of a subscription.
//!
//! Filters compare the top-level members of the event as the publisher wrote them. A comparison
//! fails if the member is missing, or if it is not a string, number or boolean. The operators are:
//! - those of the CloudEvents Subscriptions API: exact, prefix, suffix, all, any, not;
//! - the conditions of Event Grid ([`advanced`]), which can also compare data and have rules of
//!   their own;
//! - expressions of CloudEvents SQL ([`cesql`]), which have rules of their own too.

pub mod advanced;
pub mod cesql;
pub mod explanation;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod filter;
pub mod fold;
pub mod key;

pub use self::filter::Filter;
pub use crate::document::number;
