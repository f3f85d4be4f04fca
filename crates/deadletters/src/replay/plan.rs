//! The plan of a replay: selects and orders dead letters. Pure.
//!
//! Separate from the job, which sends the dead letters and keeps the ledger.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::subscription::name::NAMELESS;
use uuid::Uuid;

use super::sender::ReplayTarget;
use crate::facts::decided_ms;
use crate::ledger::PlannedReplay;
use crate::state::LetterStates;

/// The dead letters that a replay would send, with exact counts.
#[derive(Debug, Default)]
pub struct ReplayPlan {
    letters: Vec<PlanEntry>,
    /// The ids of the planned dead letters.
    planned: HashSet<Uuid>,
    /// Numbers of dead letters without a subscription. The key is a reserved name in place of the
    /// subscription, such as `shop/orders/_malformed`.
    pub without_subscription: BTreeMap<String, u64>,
    /// Number of dead letters that are malformed replies, which are not events and cannot be sent
    /// as replies.
    pub malformed_replies: u64,
    /// Number of blobs that were ignored because another blob has the same id.
    pub copies: u64,
    /// Numbers of planned dead letters by subscription.
    pub subscriptions: BTreeMap<String, u64>,
}

/// True if the name belongs to a subscription. False for a reserved name in place of a
/// subscription, such as `shop/ordrs/_unknown`.
#[must_use]
pub fn is_subscription(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    ![MALFORMED, UNKNOWN_TOPIC, UNPROCESSED, NAMELESS].contains(&last)
}

#[derive(Debug)]
struct PlanEntry {
    decided_ms: Option<u64>,
    id: Uuid,
    key: String,
    subscription: String,
    /// The earlier dead letter whose failed replay became this dead letter, if any.
    replay_of: Option<Uuid>,
    is_set_aside: bool,
}

impl ReplayPlan {
    /// Adds a dead letter to the plan. If the target is [`ReplayTarget::Subscription`], dead
    /// letters without a subscription and malformed replies are counted, but not planned.
    pub fn add(&mut self, letter: &StoredDeadLetter, target: &ReplayTarget) {
        let name = letter.subscription.to_string();
        if matches!(target, ReplayTarget::Subscription) {
            if !is_subscription(&name) {
                *self.without_subscription.entry(name).or_default() += 1;
                return;
            }
            if letter.is_malformed_reply() {
                self.malformed_replies += 1;
                return;
            }
        }
        // The ledger identifies dead letters by their ids.
        if !self.planned.insert(letter.id) {
            self.copies += 1;
            return;
        }
        *self.subscriptions.entry(name.clone()).or_default() += 1;
        self.letters.push(PlanEntry {
            decided_ms: decided_ms(letter),
            id: letter.id,
            key: letter.key.clone(),
            subscription: name,
            replay_of: letter.replay.as_ref().map(|replay| replay.letter),
            is_set_aside: letter.is_set_aside(),
        });
    }

    /// Returns the subscriptions of dead letters that were set aside because a person had stopped
    /// the deliveries.
    #[must_use]
    pub fn set_aside(&self) -> BTreeSet<&str> {
        let set_aside = self.letters.iter().filter(|entry| entry.is_set_aside);
        set_aside.map(|entry| entry.subscription.as_str()).collect()
    }

    /// Removes dead letters that were set aside, if their subscriptions are still stopped. Returns
    /// the number removed.
    pub fn leave_out_stopped(&mut self, is_stopped: impl Fn(&str) -> bool) -> u64 {
        self.retain(|entry| !(entry.is_set_aside && is_stopped(&entry.subscription)))
    }

    /// True if every planned dead letter is itself a failed replay.
    #[must_use]
    pub fn are_all_back(&self) -> bool {
        self.letters.iter().all(|entry| entry.replay_of.is_some())
    }

    /// Removes a dead letter if the plan also has its failed replay, because both have the same
    /// event. A blob that claims to be a replay only counts if the ledger of a job shows that the
    /// older dead letter was sent. Otherwise, whoever can write to a namespace could keep a dead
    /// letter out of a replay. Returns the number removed.
    pub fn leave_out_older(&mut self, states: &LetterStates) -> u64 {
        let was_sent = |letter: &Uuid| states.replay_of(*letter).is_some();
        let older = self.letters.iter().filter_map(|entry| entry.replay_of).filter(was_sent);
        let older: HashSet<Uuid> = older.collect();
        self.retain(|entry| !older.contains(&entry.id))
    }

    fn retain(&mut self, is_kept: impl Fn(&PlanEntry) -> bool) -> u64 {
        let before = self.letters.len();
        self.letters.retain(is_kept);
        self.subscriptions.clear();
        for entry in &self.letters {
            *self.subscriptions.entry(entry.subscription.clone()).or_default() += 1;
        }
        (before - self.letters.len()) as u64
    }

    /// Returns the key of an arbitrary planned dead letter; `None` if the plan is empty.
    #[must_use]
    pub fn any_key(&self) -> Option<&str> {
        self.letters.first().map(|entry| entry.key.as_str())
    }

    /// Returns the number of planned dead letters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// True if no dead letter is planned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Returns the ids of the planned dead letters.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        self.letters.iter().map(|entry| entry.id).collect()
    }

    /// Counts the planned dead letters that another job has sent.
    #[must_use]
    pub fn sent_before(&self, states: &LetterStates) -> u64 {
        let is_sent = |entry: &&PlanEntry| {
            states.replay_of(entry.id).is_some_and(|record| !record.is_uncertain())
        };
        self.letters.iter().filter(is_sent).count() as u64
    }

    /// Returns the dead letters in the order of sending: oldest first, by the time at which they
    /// became dead letters.
    pub(super) fn ordered(mut self) -> Vec<PlannedReplay> {
        self.letters.sort_by_key(|entry| (entry.decided_ms, entry.id));
        self.letters.into_iter().map(|entry| PlannedReplay { key: entry.key }).collect()
    }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::replay::Replay;

    use super::*;
    use crate::dismissed::Dismissals;
    use crate::ledger::{Ending, LedgerEntry, ReplayRecord, ReplayState};
    use crate::replay::Replayed;
    use crate::samples::letter;

    /// Returns the states of dead letters after a job has sent these.
    fn sent(letters: &[u128]) -> LetterStates {
        let record = |number: &u128| {
            let letter = Uuid::from_u128(*number);
            let (state, at) = (ReplayState::Sent, "2026-11-20T07:00:00.0000000Z".to_owned());
            let entry =
                LedgerEntry { letter, delivery: letter, state, at, problem: None, end: None };
            (letter, ReplayRecord { job: "j".to_owned(), entry, ending: Ending::Recorded })
        };
        let records = letters.iter().map(record).collect();
        let replayed = Replayed { records, ..Replayed::default() };
        LetterStates::new(replayed, Dismissals::default(), 0)
    }

    #[test]
    fn a_plan_is_ordered_from_the_oldest_to_the_newest_and_counts_what_has_no_subscription() {
        let mut plan = ReplayPlan::default();
        for number in [3, 1, 2] {
            plan.add(&letter(number), &ReplayTarget::Subscription);
        }
        let without_subscription = StoredDeadLetter {
            subscription: "shop/orders/_malformed".parse().unwrap(),
            ..letter(4)
        };
        plan.add(&without_subscription, &ReplayTarget::Subscription);
        assert_eq!((plan.len(), plan.without_subscription["shop/orders/_malformed"]), (3, 1));
        plan.add(&without_subscription, &ReplayTarget::Topic("a/b".parse().unwrap()));
        let order: Vec<u128> =
            plan.ordered().iter().map(|planned| planned.letter().as_u128()).collect();
        assert_eq!(order, [1, 2, 3, 4]);
    }

    #[test]
    fn of_a_letter_and_its_replay_only_the_newer_is_sent() {
        let again = |number, older| StoredDeadLetter {
            replay: Replay::new("j", Uuid::from_u128(older)),
            ..letter(number)
        };
        let mut plan = ReplayPlan::default();
        for letter in [letter(1), letter(2), again(3, 1), again(4, 3)] {
            plan.add(&letter, &ReplayTarget::Subscription);
        }
        assert_eq!(plan.leave_out_older(&LetterStates::default()), 0, "no job has sent them");
        assert_eq!(plan.leave_out_older(&sent(&[1, 3])), 2);
        assert_eq!(plan.ids(), [Uuid::from_u128(2), Uuid::from_u128(4)]);
        assert_eq!(plan.subscriptions["shop/orders/billing"], 2);
    }

    #[test]
    fn what_was_set_aside_is_sent_unless_its_subscription_is_still_stopped() {
        let mut back = letter(2);
        back.reason = "DestinationDisabled".to_owned();
        back.replay = Replay::new("j", Uuid::from_u128(1));
        let mut plan = ReplayPlan::default();
        plan.add(&back, &ReplayTarget::Subscription);
        assert!(plan.are_all_back());
        plan.add(&letter(3), &ReplayTarget::Subscription);
        assert!(!plan.are_all_back());
        assert_eq!(plan.set_aside(), BTreeSet::from(["shop/orders/billing"]));
        assert_eq!(plan.leave_out_stopped(|_| false), 0);
        assert_eq!(plan.leave_out_stopped(|name| name == "shop/orders/billing"), 1);
        assert_eq!(plan.ids(), [letter(3).id]);
    }
}
