//! Whose turn it is, where a destination takes so many requests a second or so many at once, from all
//! processes together, or has too much to do.

mod adaptive;
mod permits;
mod rate;

use delivery::ports::{DispatchPorts, QueueName};
use delivery::subscription::Subscription;

use crate::dispatch::{Dispatch, Invocation};
use crate::memory::health::are_to_destination;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

/// Before the table is asked, the other deliveries of the invocation may come to the same
/// question: then it is asked once for all.
const GATHER_MS: u64 = 5;

impl<P: DispatchPorts> Dispatch<P> {
    /// True for deliveries that the limits of their destination may make wait as messages. One request more than
    /// allowed is better than what [`can_wait`] avoids.
    fn is_limited(
        &self,
        due: &[InFlightDelivery],
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> bool {
        self.is_counted(due, subscription) && can_wait(due, of)
    }

    /// True if the limits of their destination count a request for these deliveries. A probe is made in any case.
    fn is_counted(&self, due: &[InFlightDelivery], subscription: &Subscription) -> bool {
        // Replies and sinks have other addresses.
        !due.is_empty() && are_to_destination(due) && !self.health.is_probe(subscription, due)
    }
}

/// Whether deliveries may be re-enqueued instead of attempted. What does not fit a message would be a dead
/// letter. What is in isolation has to be attempted there: moved on before it crashes us again, it would
/// never use up its receives.
fn can_wait(due: &[InFlightDelivery], of: &Invocation<'_>) -> bool {
    of.queue != QueueName::Isolation && due.iter().all(|one| fits_a_message(&one.delivery))
}
