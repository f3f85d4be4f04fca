//! Counts dead letters by reason, subscription, destination and hour. Pure.

use std::collections::BTreeMap;

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::time::duration::HOUR_MS;

use crate::facts::decided_ms;

/// Numbers of dead letters, by several properties.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The total number of dead letters.
    pub count: u64,
    /// Numbers of dead letters by reason.
    pub reasons: BTreeMap<String, u64>,
    /// Numbers of dead letters by subscription, `namespace/topic/name`.
    pub subscriptions: BTreeMap<String, u64>,
    /// Numbers of dead letters by the URL of the destination. The key of dead letters without a
    /// destination is the empty text.
    pub destinations: BTreeMap<String, u64>,
    /// Numbers of dead letters by the hour in which the events became dead letters. The key is the
    /// beginning of the hour in milliseconds since 1970.
    pub hours: BTreeMap<u64, u64>,
}

impl Stats {
    /// Adds a dead letter to all counts.
    pub fn add(&mut self, letter: &StoredDeadLetter) {
        self.count += 1;
        *self.reasons.entry(letter.reason.clone()).or_default() += 1;
        *self.subscriptions.entry(letter.subscription.to_string()).or_default() += 1;
        *self.destinations.entry(letter.destination.clone().unwrap_or_default()).or_default() += 1;
        if let Some(at_ms) = decided_ms(letter) {
            *self.hours.entry(at_ms / HOUR_MS * HOUR_MS).or_default() += 1;
        }
    }
}

/// Returns the counts with their names, the greatest count first.
#[must_use]
pub fn greatest_first(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut sorted: Vec<(&str, u64)> =
        counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::letter;

    #[test]
    fn every_dead_letter_counts_once_in_each_of_the_counts() {
        let mut stats = Stats::default();
        stats.add(&letter(1));
        stats.add(&letter(2));
        stats.add(&StoredDeadLetter {
            reason: "TopicNotFound".to_owned(),
            destination: None,
            ..letter(3)
        });
        assert_eq!(
            greatest_first(&stats.reasons),
            [("MaxDeliveryAttemptsExceeded", 2), ("TopicNotFound", 1)]
        );
        assert_eq!(greatest_first(&stats.subscriptions), [("shop/orders/billing", 3)]);
        assert_eq!(stats.destinations[""], 1);
        assert_eq!((stats.count, stats.hours.values().sum::<u64>()), (3, 3));
        assert!(stats.hours.keys().all(|hour| hour % HOUR_MS == 0));
    }
}
