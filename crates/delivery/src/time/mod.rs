//! Durations and moments as whole milliseconds.

pub mod duration;
pub mod moment;
