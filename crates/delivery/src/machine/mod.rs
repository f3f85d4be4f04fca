//! What decides: what a delivery does next, and what follows from it.

pub mod consent;
pub mod follow_up;
pub mod reply;
pub mod step;
