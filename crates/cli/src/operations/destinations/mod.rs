//! Reads and changes destinations for the command line: their health, their limits, and the
//! subscriptions that deliver to them.
//!
//! The commands of `lastmile destinations` and the console use this module. [`deployment`]
//! opens a deployment. [`entries`] reads and changes its items. [`known`] combines items and
//! subscriptions. [`state`] and [`limits`] describe destinations as text.

pub(crate) mod deployment;
pub(crate) mod entries;
pub(crate) mod health;
pub(crate) mod json;
pub(crate) mod known;
pub(crate) mod limits;
pub(crate) mod name;
mod now;
pub(crate) mod state;
mod stopped;
#[cfg(feature = "aws")]
mod unhealthy;

pub(crate) use now::{Now, states_now};
pub(crate) use stopped::{stopped, stopped_at};
#[cfg(feature = "aws")]
pub(crate) use unhealthy::unhealthy;
