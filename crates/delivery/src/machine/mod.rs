//! Decides what a delivery does next, and which further deliveries follow from it.

pub mod consent;
pub mod follow_up;
pub mod reply;
pub mod step;
