//! Unwritten counts of the dead letters of this process, if a subscription wants notices of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::delivery::health::dead_letters::{Causes, Minute};
use delivery::delivery::{DeadLetter, Delivery};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::time::duration::SECOND_MS;

/// Pause after a write. Later counts are written by a later invocation, and lost without one.
const WRITTEN_EVERY_MS: u64 = 5 * SECOND_MS;
/// Pause after a failed write.
const PAUSE_MS: u64 = 10 * SECOND_MS;

/// Counts that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct DeadLetterCounts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    causes: Causes,
    /// The minute that a message on its way announces.
    announced: Option<Minute>,
    /// Earliest time of the next write.
    next_ms: u64,
}

impl DeadLetterCounts {
    /// Counts a dead letter if a subscription wants notices of it. Dead letters of notices, and those that followed from them,
    /// are not counted: that would be an endless loop.
    pub(crate) fn note(&self, letter: &DeadLetter, catalogue: &Catalogue) {
        let Some(topic) = catalogue.topic_of_notices() else { return };
        let Delivery { id, subscription, via, .. } = &letter.delivery;
        if subscription.topic == *topic || via.contains(topic) {
            return;
        }
        let (reason, name) = (letter.newest_reason(), name_of(subscription, catalogue));
        self.lock().causes.note(&reason.to_string(), &name.to_string(), *id);
    }

    /// Removes and returns the counts, if they are to be written now.
    pub(crate) fn take(&self, now_ms: u64) -> Option<Causes> {
        let mut counted = self.lock();
        if counted.causes.is_empty() || now_ms < counted.next_ms {
            return None;
        }
        counted.next_ms = now_ms.saturating_add(WRITTEN_EVERY_MS);
        Some(std::mem::take(&mut counted.causes))
    }

    /// Keeps counts after a failed write. They count for a later minute.
    pub(crate) fn keep(&self, unwritten: &Causes) {
        self.lock().causes.add_all(unwritten);
    }

    /// Pauses writes after a failed one.
    pub(crate) fn pause(&self, now_ms: u64) {
        self.lock().next_ms = now_ms.saturating_add(PAUSE_MS);
    }

    /// True if this process has sent a message that announces the minute.
    pub(crate) fn is_announced(&self, minute: Minute) -> bool {
        self.lock().announced == Some(minute)
    }

    pub(crate) fn note_announced(&self, minute: Minute) {
        self.lock().announced = Some(minute);
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name for the counts. The topic of an event without subscription may be free text of a publisher.
fn name_of(subscription: &SubscriptionName, catalogue: &Catalogue) -> SubscriptionName {
    let is_placeholder =
        matches!(subscription.name.as_str(), MALFORMED | UNKNOWN_TOPIC | UNPROCESSED);
    match is_placeholder && catalogue.topic(&subscription.topic).is_none() {
        true => SubscriptionName { topic: TopicName::nameless(), name: subscription.name.clone() },
        false => subscription.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_no_subscription_and_no_known_topic_is_counted_without_its_topic() {
        let catalogue = Catalogue::default();
        let counted = |name: &str| {
            let topic = "shop/orders".parse().expect("a topic");
            name_of(&SubscriptionName { topic, name: name.to_owned() }, &catalogue).to_string()
        };
        assert_eq!(counted("billing"), "shop/orders/billing");
        assert!(!counted(UNKNOWN_TOPIC).contains("shop"), "{}", counted(UNKNOWN_TOPIC));
    }
}
