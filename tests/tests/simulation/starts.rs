//! When deliveries start, by the documentation: not before the moment of the event, and not before the delay of the subscription.
//!
//! Implemented a second time, like the other rules. Only published events have a start of their own: a dead letter for a sink and a reply
//! for an address are sent at once.

use delivery::delivery::Delivery;
use uuid::Uuid;

use super::sinks::Route;
use super::world::Inner;

impl Inner {
    /// Time from the publication of a delivery to its start.
    pub(crate) fn delayed_ms(&self, id: Uuid) -> u64 {
        let known = self.ledger.known.get(&id);
        let known = known.filter(|known| known.route == Route::Event && known.from.is_none());
        let Some(known) = known else { return 0 };
        let published = &self.ledger.published[known.record].1;
        let until_moment_ms =
            published.deliver_at_ms.map_or(0, |at_ms| at_ms.saturating_sub(published.at_ms));
        let number = known.subscription;
        let delay_ms = number.map_or(0, |number| self.rules[number].subscription.delay_ms);
        delay_ms.max(until_moment_ms)
    }

    /// A message says when its delivery starts.
    pub(crate) fn check_start(&mut self, delivery: &Delivery) {
        let published_ms = self.ledger.published_ms(delivery.id);
        let starts_ms = published_ms.map(|from_ms| from_ms + self.delayed_ms(delivery.id));
        if starts_ms.is_some_and(|starts_ms| starts_ms != delivery.starts_ms) {
            self.record_violation(
                delivery.id,
                "it says another start than its event and its subscription",
            );
        }
    }
}
