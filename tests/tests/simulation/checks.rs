//! Checks on every message that is sent.

use delivery::delivery::reason::Reason;
use delivery::delivery::{Batching, DeadLetter, Delivery, Word};
use delivery::ports::{Message, QueueName};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::duration::{DAY_MS, SECOND_MS};
use uuid::Uuid;

use super::faults::Fault;
use super::limits::SKEW_MAX_MS;
use super::probations::{entries_of_attempts, is_deferred};
use super::queued::Carried;
use super::replies::HOPS_MAX;
use super::requests::Base;
use super::rules::Expected;
use super::sinks::Route;
use super::world::{Inner, Touched};

/// Minimum wait of a delivery that got no slot of a rate.
const WITHOUT_SLOT_MS: u64 = 2 * SECOND_MS;

impl Inner {
    /// Checks that a message reports exactly what happened.
    pub(crate) fn check_sent(&mut self, queue: QueueName, message: &Message, carried: &Carried) {
        self.count_send(queue, carried, message.wait_ms);
        let stores = self.invocation().stores;
        match (queue, carried) {
            (_, Carried::Publication(publication)) if !stores => {
                self.check_publication(queue, message, publication);
            }
            (QueueName::Isolation, Carried::Delivery(_)) if !stores => {
                self.check_isolated(message);
            }
            (QueueName::Retry | QueueName::Slow, Carried::Delivery(delivery)) if !stores => {
                // No delivery starts in the slow queue.
                if queue != QueueName::Slow && self.is_fresh(delivery, message.wait_ms) {
                    return self.check_fresh(delivery, message);
                }
                self.check_slow(queue, delivery, message.wait_ms);
                self.check_state(delivery);
                self.check_wait(queue, delivery, message.wait_ms);
            }
            (QueueName::DeadLetter, Carried::DeadLetter(letter))
                if !stores && letter.returned.is_some() =>
            {
                self.check_returned(letter);
            }
            (QueueName::DeadLetter, Carried::DeadLetter(letter)) if !stores => {
                let starts = self.is_fresh(&letter.delivery, 0);
                if starts && letter.reason == Reason::EventTooLargeToResend {
                    return;
                }
                self.check_state(&letter.delivery);
                self.check_reason(letter);
            }
            (QueueName::DeadLetter, Carried::DeadLetter(letter)) => {
                self.check_kept_waiting(letter, message.wait_ms);
            }
            (QueueName::LastResort, Carried::DeadLetter(letter)) if stores => {
                if self.clock_ms() < letter.decided_ms + letter.keep_trying_for_ms {
                    self.record_violation(
                        letter.delivery.id,
                        "moved to the last-resort queue too soon",
                    );
                }
            }
            // The end of a replay is checked when it is stored.
            (QueueName::DeadLetter, Carried::ReplayEnd(_)) => {}
            (_, Carried::Nothing | Carried::Publication(_))
            | (_, Carried::Delivery(_) | Carried::DeadLetter(_) | Carried::ReplayEnd(_)) => {
                self.ledger.record_violation(format!("a message of the wrong kind for {queue:?}"));
            }
        }
    }

    /// Checks that the attempts of a delivery are those in its received message plus the requests
    /// made since.
    pub(crate) fn check_state(&mut self, delivery: &Delivery) {
        let id = delivery.id;
        let bases = self.bases(id);
        let panics = self.invocation().panics;
        let requests = self.invocation().tallies.get(&id).map_or(0, |tally| tally.requests);
        if bases.is_empty() && !self.is_told(id) {
            return self.record_violation(id, "a message about it without a received one");
        }
        if bases.is_empty() {
            return self.check_fresh_reply(delivery);
        }
        if self.ledger.ends_letter(id) {
            let begins = bases.iter().any(|base| base.published_ms == delivery.published_ms);
            if delivery.attempts > 0 || !begins {
                self.record_violation(id, "it does not begin with the record of its dead letter");
            }
            return;
        }
        let routing = self.ledger.known.get(&id).map(|known| (known.hops, known.route, &known.via));
        if routing.is_some_and(|routing| {
            routing != (delivery.hops, Route::new(&delivery.target), &delivery.via)
        }) {
            self.record_violation(id, "its position in a chain of replies or topics has changed");
        }
        // A delivery that follows from a dead letter also has a reply budget.
        if (delivery.hops > 0 || !delivery.via.is_empty()) != delivery.replies_left.is_some() {
            self.record_violation(id, "how many replies may follow from it is lost");
        }
        self.check_start(delivery);
        let published_ms = self.ledger.published_ms(id);
        if published_ms.is_some_and(|published_ms| published_ms != delivery.published_ms) {
            self.record_violation(id, "its age does not begin with its publication");
        }
        let [base] = &bases[..] else { return };
        if self.is_told(id) {
            // The delivery may have started twice, or the same reply was sent twice.
            return;
        }
        let least = base.attempts + requests;
        let published = base.published_ms == delivery.published_ms;
        if !(least..=least + panics).contains(&delivery.attempts) {
            self.record_violation(
                id,
                &format!("{} attempts are recorded, {least} were made", delivery.attempts),
            );
        }
        let (fewest, most) = entries_of_attempts(delivery);
        if !published || !(fewest..=most).contains(&delivery.attempts) {
            self.record_violation(
                id,
                "its publication or its history does not agree with its attempts",
            );
        }
    }

    /// Checks that only due deliveries move to the slow queue, and none from there or from
    /// isolation.
    fn check_slow(&mut self, queue: QueueName, delivery: &Delivery, wait_ms: u64) {
        // If the slow queue refuses a message, the retry queue gets it.
        if queue != QueueName::Slow {
            return;
        }
        let from = self.invocation().taken[0].0;
        if wait_ms > 0 || matches!(from, QueueName::Slow | QueueName::Isolation) {
            self.record_violation(delivery.id, "goes to the slow lane although it has to wait");
        }
    }

    /// Checks that the wait of a message follows from its policy, and that the queue gets this wait
    /// as its delay.
    fn check_wait(&mut self, queue: QueueName, delivery: &Delivery, wait_ms: u64) {
        let id = delivery.id;
        let bases = self.bases(id);
        let Some(number) = self.ledger.known.get(&id).and_then(|known| known.subscription) else {
            return self.record_violation(id, "re-enqueued although it is undeliverable");
        };
        let tally = self.invocation().tallies.get(&id).cloned().unwrap_or_default();
        let split = queue == QueueName::Retry && tally.requests == 0;
        // A delivery without attempts is due at its publication time, by the clock of SQS.
        let slack_ms = if delivery.attempts == 0 { SKEW_MAX_MS } else { 0 };
        if self.clock_ms().saturating_add(wait_ms + slack_ms) < delivery.due_ms {
            self.record_violation(id, "re-enqueued with less than the rest of its wait");
        }
        if self.random.quiet
            && !split
            && !self.waits_for_turn(delivery, wait_ms)
            && !self.is_left_alone(delivery)
            && wait_ms != delivery.due_ms.saturating_sub(self.clock_ms())
        {
            self.record_violation(id, "re-enqueued with another wait than the rest");
        }
        self.note_deferred(delivery, &bases, wait_ms);
        let ([base], 0, false) =
            (&bases[..], self.invocations[self.current].panics, self.is_told(id))
        else {
            return;
        };
        if tally.requests == 0 && queue == QueueName::Retry {
            self.check_unchanged(delivery, base, wait_ms);
        }
        self.check_batching(delivery, base.batching, tally.last);
        // The delivery waits for a permit.
        let shares = self.rules[number].subscription.destination.max_concurrency.is_shared;
        if shares && tally.requests == 0 && delivery.due_ms > base.due_ms {
            return;
        }
        if delivery.due_ms != base.due_ms && self.is_left_alone(delivery) {
            return;
        }
        if waits_for_slot(delivery, base, tally.requests) && delivery.due_ms != base.due_ms {
            return self.check_slot(number, delivery, base.due_ms);
        }
        match tally.last {
            _ if is_deferred(delivery) && delivery.due_ms != base.due_ms => {
                self.check_deferred(number, delivery, base, tally.requests);
            }
            Some((ended_ms, Expected::RetriedAlone)) if delivery.due_ms != ended_ms => {
                self.record_violation(id, "not re-enqueued at once although its batch was refused");
            }
            None if delivery.due_ms != base.due_ms => {
                self.record_violation(id, "a hop changed its due time");
            }
            Some((ended_ms, Expected::Retry(least_ms))) => {
                let first_ms = base.first_ms.or(tally.first_ms).unwrap_or(ended_ms);
                let wait_ms =
                    self.rules[number].wait_ms(delivery.attempts, first_ms, ended_ms, least_ms);
                let due_after_ms = delivery.due_ms.saturating_sub(ended_ms);
                // The retry was due after a wait in place. It needed another slot, and got none.
                let has_no_slot = self.may_need_slot(number)
                    && self.clock_ms() >= ended_ms + wait_ms.0
                    && due_after_ms >= wait_ms.0 + WITHOUT_SLOT_MS;
                if !has_no_slot && !(wait_ms.0..=wait_ms.1).contains(&due_after_ms) {
                    let violation = format!("due after {due_after_ms} ms, not {wait_ms:?}");
                    self.record_violation(id, &violation);
                }
            }
            Some((_, Expected::Delivered | Expected::Final)) => {
                self.record_violation(id, "re-enqueued after its end");
            }
            Some((_, Expected::RetriedAlone)) | None => {}
        }
    }

    /// Checks that the batching state follows from the last response.
    fn check_batching(
        &mut self,
        delivery: &Delivery,
        before: Batching,
        last: Option<(u64, Expected)>,
    ) {
        let batching = match last {
            Some((_, Expected::RetriedAlone)) => Batching::RetryAlone,
            Some(_) if before != Batching::Allowed => Batching::Disabled,
            Some(_) | None => before,
        };
        if delivery.batching != batching {
            self.record_violation(delivery.id, "its batching state is wrong");
        }
    }

    /// Checks a delivery that waits for a slot of a rate: its destination has a rate, and its due
    /// time is not earlier than before.
    fn check_slot(&mut self, number: usize, delivery: &Delivery, due_ms: u64) {
        if !self.may_need_slot(number) || delivery.due_ms < due_ms {
            self.record_violation(delivery.id, "waits for a slot that it does not need");
        }
    }

    /// True if the destination of a subscription has a rate. A recovering destination has one for a
    /// while.
    fn may_need_slot(&self, number: usize) -> bool {
        let destination = &self.rules[number].subscription.destination;
        destination.max_per_second.is_some() || destination.probation
    }

    /// Checks that a dead letter has the delay and the retry period of its policy, and a true
    /// reason.
    pub(crate) fn check_reason(&mut self, letter: &DeadLetter) {
        let delivery = &letter.delivery;
        let number = self.ledger.known.get(&delivery.id).and_then(|known| known.subscription);
        let Some(number) = number else { return };
        let policy = &self.rules[number].subscription.dead_letter;
        let (delay_ms, period_ms) = (policy.delay_ms, policy.keep_trying_for_ms);
        let last_attempt = letter.delivery.history.newest_attempt();
        // Dead letters of paused subscriptions and disabled destinations are stored at once.
        let last_attempt = last_attempt.filter(|_| !letter.is_set_aside());
        let not_before_ms = last_attempt
            .map_or(letter.decided_ms, |last| letter.decided_ms.max(last.at_ms + delay_ms));
        let accounted = letter.reason != Reason::SubscriptionNotFound;
        if accounted
            && (letter.not_before_ms, letter.keep_trying_for_ms) != (not_before_ms, period_ms)
        {
            self.record_violation(
                delivery.id,
                "its dead letter has another delay or retry period than its policy",
            );
        }
        let is_refused = letter.reason == Reason::ReplyLoop && self.is_refused_reply(delivery);
        if is_refused {
            let record = self.ledger.known[&delivery.id].record;
            let message = self.ledger.published[record].0.clone();
            self.ledger.acknowledged.insert(message);
            self.ledger.refused_replies.insert(delivery.id);
        }
        if !is_refused && (letter.reason == Reason::ReplyLoop) != (delivery.hops > HOPS_MAX) {
            self.record_violation(
                delivery.id,
                "its reason does not agree with the length of its chain of replies",
            );
        }
        let age_ms = letter.decided_ms.saturating_sub(delivery.published_ms);
        self.check_limits(delivery.id, number, &letter.reason, delivery.attempts, age_ms);
    }

    /// Checks that a limit was reached if the reason names it.
    pub(crate) fn check_limits(
        &mut self,
        id: Uuid,
        number: usize,
        reason: &Word<Reason>,
        attempts: u32,
        age_ms: u64,
    ) {
        let facts = self.versions.facts(&self.invocations[self.current].versions, number);
        let fewest = facts.iter().flatten().map(|facts| facts.max_attempts).min();
        // A wait that would pass the 14 days is not begun, so a delivery may end one wait earlier.
        let limit_ms = self.rules[number].subscription.retry.time_to_live_ms;
        let limit_ms = limit_ms.map_or(u64::MAX, |own_ms| own_ms + self.delayed_ms(id));
        let limit_ms = limit_ms.min(LIFETIME_MAX_MS - DAY_MS);
        if *reason == Reason::MaxDeliveryAttemptsExceeded && attempts < fewest.unwrap_or(0) {
            self.record_violation(id, "ended by a limit of attempts that it has not reached");
        }
        if *reason == Reason::TimeToLiveExceeded && age_ms < limit_ms {
            self.record_violation(id, "ended by a time to live that has not passed");
        }
        if *reason == Reason::SubscriptionNotFound && facts.iter().all(Option::is_some) {
            self.record_violation(id, "ended for a missing subscription that exists");
        }
    }

    /// Records that the platform killed an invocation.
    pub(crate) fn note_killed(&mut self) {
        if self.invocation().short || self.invocation().slow {
            self.random.count(Fault::Killed);
        } else {
            self.ledger.record_violation(
                "the platform killed an invocation that had enough time".to_owned(),
            );
        }
        self.fork(&Touched::Everything);
    }
}

/// True if a delivery waits for a slot of a rate. It waits without a slot if the table cannot be
/// reached, or if no slot is free in time.
fn waits_for_slot(delivery: &Delivery, base: &Base, requests: u32) -> bool {
    let has_none = requests == 0 && !is_deferred(delivery);
    delivery.hold.slots > 0 || delivery.hold.away > base.hold.away || has_none
}
