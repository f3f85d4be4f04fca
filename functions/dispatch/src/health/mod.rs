//! What this process knows of destinations that are not healthy: those that keep failing, and those
//! that are slow to answer. Lives as long as the process, over many invocations.

mod probation;
mod slow;

pub(crate) use probation::Probations;
pub(crate) use slow::KnownSlow;

use delivery::delivery::DeliveryTarget;

use crate::progress::InFlightDelivery;

/// Whether an attempt of these deliveries says something about the destination: replies and sinks have
/// other addresses.
fn are_to_destination(due: &[InFlightDelivery]) -> bool {
    due.iter().all(|one| one.delivery.target == DeliveryTarget::Destination)
}
