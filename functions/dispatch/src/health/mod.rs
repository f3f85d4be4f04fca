//! What this process knows of destinations that are not healthy: those that keep failing, and those
//! that are slow to answer. Lives as long as the process, over many invocations.

mod probation;
mod slow;

pub(crate) use probation::Probations;
pub(crate) use slow::KnownSlow;
