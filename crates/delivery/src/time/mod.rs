//! Durations and timestamps in whole milliseconds.

pub mod duration;
pub mod moment;
