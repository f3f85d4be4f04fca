//! Parses and formats durations and timestamps, in whole milliseconds.

pub mod brief;
pub mod duration;
pub mod moment;
