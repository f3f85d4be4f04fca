//! Whose turn it is, where a destination takes so many requests a second or so many at once, from all
//! processes together, or has too much to do.

mod adaptive;
mod leases;
mod rate;

use delivery::ports::{DispatchPorts, QueueName};
use delivery::subscription::Subscription;

use crate::dispatch::{Dispatch, Invocation};
use crate::memory::health::are_to_destination;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

/// Before a shared document is asked, the other deliveries of the invocation may come to the same
/// question: then it is asked once for all.
const GATHER_MS: u64 = 5;

impl<P: DispatchPorts> Dispatch<P> {
    /// Whether the limits of their destination hold for these deliveries. One request more than allowed is
    /// better than no probe, or what [`can_wait`] avoids.
    fn is_limited(
        &self,
        due: &[InFlightDelivery],
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> bool {
        !due.is_empty()
            // Replies and sinks have other addresses.
            && are_to_destination(due)
            && can_wait(due, of)
            && !self.health.is_probe(subscription, due)
    }
}

/// Whether deliveries may be re-enqueued instead of attempted. What does not fit a message would be a dead
/// letter. What is in isolation has to be attempted there: moved on before it crashes us again, it would
/// never use up its receives.
fn can_wait(due: &[InFlightDelivery], of: &Invocation<'_>) -> bool {
    of.queue != QueueName::Isolation && due.iter().all(|one| fits_a_message(&one.delivery))
}
