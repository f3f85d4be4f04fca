//! The table in which the processes of a deployment store shared state.
//!
//! This module defines the contents of items and their changes. A port changes items, each change
//! in one atomic request. An adapter implements the port on DynamoDB, and the simulation in memory.
//! `delivery::health` and `machine::consent` define the items.

mod entry;
mod item;
mod line;
mod permits;
mod port;
mod recovery;

pub use self::entry::{Entry, Expected};
pub use self::item::ItemKey;
pub use self::line::{Line, Places, SlotQueue, TakePlaces};
pub use self::permits::{PERMITS_MAX, Permit, PermitAnswer, Refusal, Shares, TakePermits};
pub use self::port::{Stored, Table, TableError};
pub use self::recovery::{
    Change, FIRST_RATE, LAST_RATE, PLACES_WITHIN_MS, RECOVERS_MAX_MS, Recovery, Report, Results,
};
