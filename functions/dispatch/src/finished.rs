//! Remembers finished deliveries of records that SQS redelivers. Pure.
//!
//! A record is redelivered because some of its messages could not be sent. If the same process
//! receives the record again, even from the isolation queue, it does not repeat the finished
//! deliveries. This is best effort: the memory is small, belongs to one process and is lost with
//! it.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

/// Maximum number of remembered records. The record that was updated least recently is dropped
/// first.
const RECORDS_MAX: usize = 1_000;
/// Maximum number of remembered deliveries of all records together; one record may have thousands.
/// They use about 4 MB.
const DELIVERIES_MAX: usize = 100_000;

/// Ids of finished deliveries, by the id of the published message.
#[derive(Debug, Default)]
pub(crate) struct FinishedDeliveries {
    by_message: HashMap<String, HashSet<Uuid>>,
    /// Message ids, least recently updated first.
    order: VecDeque<String>,
    count: usize,
}

impl FinishedDeliveries {
    /// Adds finished deliveries of the published message `message`.
    pub(crate) fn note(&mut self, message: &str, deliveries: impl IntoIterator<Item = Uuid>) {
        let mut finished = self.forget(message);
        finished.extend(deliveries);
        self.count += finished.len();
        self.order.push_back(message.to_owned());
        self.by_message.insert(message.to_owned(), finished);
        while self.order.len() > RECORDS_MAX || self.count > DELIVERIES_MAX {
            let Some(oldest) = self.order.front().cloned() else { return };
            self.forget(&oldest);
        }
    }

    pub(crate) fn contains(&self, message: &str, delivery: Uuid) -> bool {
        self.by_message.get(message).is_some_and(|finished| finished.contains(&delivery))
    }

    fn forget(&mut self, message: &str) -> HashSet<Uuid> {
        let Some(finished) = self.by_message.remove(message) else { return HashSet::new() };
        self.count -= finished.len();
        self.order.retain(|other| other != message);
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: std::ops::Range<usize>) -> impl Iterator<Item = Uuid> {
        numbers.map(|number| Uuid::from_u128(number as u128))
    }

    fn knows(finished: &FinishedDeliveries, message: &str, number: u128) -> bool {
        finished.contains(message, Uuid::from_u128(number))
    }

    #[test]
    fn what_was_noted_is_known_for_its_own_message_alone() {
        let mut finished = FinishedDeliveries::default();
        finished.note("a", ids(0..2));
        finished.note("a", ids(2..3));
        assert!((0..3).all(|number| knows(&finished, "a", number)));
        assert!(!knows(&finished, "a", 3) && !knows(&finished, "b", 0));
    }

    #[test]
    fn beyond_a_thousand_records_the_one_noted_longest_ago_is_forgotten() {
        let mut finished = FinishedDeliveries::default();
        for record in 0..RECORDS_MAX {
            finished.note(&record.to_string(), ids(0..1));
        }
        // Noted again, so it is not the oldest any more.
        finished.note("0", ids(1..2));
        finished.note("one more", ids(0..1));
        assert!(knows(&finished, "0", 0) && knows(&finished, "0", 1));
        assert!(!knows(&finished, "1", 0) && knows(&finished, "2", 0));
        assert_eq!((finished.by_message.len(), finished.order.len()), (RECORDS_MAX, RECORDS_MAX));
    }

    #[test]
    fn records_with_many_deliveries_are_forgotten_sooner() {
        let mut finished = FinishedDeliveries::default();
        for message in ["a", "b", "c"] {
            finished.note(message, ids(0..DELIVERIES_MAX / 2));
        }
        assert!(!knows(&finished, "a", 0) && knows(&finished, "b", 0) && knows(&finished, "c", 0));
        finished.note("huge", ids(0..DELIVERIES_MAX + 1));
        assert!(!knows(&finished, "huge", 0) && !knows(&finished, "c", 0));
        assert_eq!((finished.count, finished.order.len()), (0, 0));
    }
}
