//! Decides what a delivery does next, what follows from it, and where its dead letter is stored.

pub mod answer;
pub mod consent;
pub mod follow_up;
pub mod forward;
pub mod reply;
pub mod step;
pub mod storing;
