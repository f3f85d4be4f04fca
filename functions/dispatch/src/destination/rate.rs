//! Enforces `maxPerSecond`, the maximum rate of requests of all processes to a destination.
//!
//! Each request takes a slot, a time in the queue of its destination. All deliveries of an
//! invocation that wait for one destination share a request to the table. A slot is used
//! immediately, or after a short wait within the invocation. A delivery with a later slot is
//! re-enqueued until that time. This wait is not an attempt, and does not extend the time to live.
//! While the table is unreachable, each process keeps to its share of the rate.

use std::sync::atomic::{AtomicU32, Ordering};

use delivery::delivery::health::probation::Deferral;
use delivery::delivery::{Delivery, WaitReason};
use delivery::ports::DispatchPorts;
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::table::{
    ItemKey, Line, PLACES_WITHIN_MS, Recovery, Report, SlotQueue, Table as _, TakePlaces,
};
use delivery::time::duration::SECOND_MS;
use delivery::waits::DELAY_MAX_MS;
use futures::FutureExt as _;

use super::answer::Answer;
use super::gates::{longest_wait_ms, same_for_all, unless_open, wait};
use super::passage::Passage;
use super::recovering::{self, TRIES};
use super::slots::{Own, OwnSlots, Wants};
use super::{Destinations, GATHER_MS, can_wait};
use crate::deadline::Deadline;
use crate::invocation::{IN_PLACE_BELOW_MS, Invocation};
use crate::progress::InFlightDelivery;
use crate::table::{UNREACHABLE_MS, Unreachable};

/// Minimum wait of a delivery that got no slot.
const ASK_AGAIN_MS: u64 = 2 * SECOND_MS;
/// Maximum lateness of a delivery for its slot. A later delivery gets another slot, once. After
/// that it is attempted whenever it arrives; otherwise a slow queue could delay it for ever.
const LATE_MS: u64 = 5 * SECOND_MS;

impl<P: DispatchPorts> Destinations<P> {
    /// Delays deliveries until their rate slot. The rate is the lower of `maxPerSecond` and the
    /// rate during a recovery.
    pub(super) async fn ask_rate(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let now_ms = self.now_ms();
        let report = recovering::report(&passage.destination.state(), now_ms);
        let report = report.filter(|_| passage.has_probation());
        let recovers = report.is_some();
        let most = passage.subscription.destination.max_per_second.filter(|_| passage.is_own);
        let rates = most.into_iter().chain(report.map(|report| report.known.rate));
        let per_second = rates.min()?;
        // A slot from before an outage belongs to a faster rate.
        let has_slot =
            !recovers && due.iter().any(|in_flight| has_slot(&in_flight.delivery, now_ms));
        if has_slot || passage.has_slot || passage.is_probe() || !can_wait(due, invocation) {
            return None;
        }
        let latest_ms = latest_ms(due, passage, now_ms);
        let destination = &passage.destination;
        let item = destination.key.limits_item(&destination.namespace);
        let deadline = invocation.deadline;
        let rate = Rate { passage, item, most, per_second, recovers, latest_ms, deadline };
        let (has_slot, answers) = self.slot_of_each(due, rate).boxed().await;
        passage.has_slot = has_slot;
        answers
    }

    /// Takes slots for the deliveries of one request. There are three results:
    /// - `(true, None)`: all deliveries can use one slot now.
    /// - `(true, Some(…))`: all deliveries wait in this invocation for one slot that is soon free.
    /// - `(false, Some(…))`: each delivery is re-enqueued until its slot, or without a slot.
    async fn slot_of_each(
        &self,
        due: &[InFlightDelivery],
        mut rate: Rate<'_>,
    ) -> (bool, Option<Vec<Answer>>) {
        let Taken { slots, missing } = self.next_slots(&mut rate, due.len()).await;
        let now_ms = self.now_ms();
        if slots.first().is_some_and(|slot_ms| *slot_ms <= now_ms.saturating_add(IN_PLACE_BELOW_MS))
        {
            rate.note_back(due);
        }
        match slots.first() {
            Some(slot_ms) if *slot_ms <= now_ms => return (true, None),
            Some(slot_ms) if *slot_ms <= now_ms.saturating_add(IN_PLACE_BELOW_MS) => {
                let until_ms = *slot_ms;
                if rate.recovers {
                    recovering::note_wait(&mut rate.passage.destination.state());
                }
                let wait = Answer::Wait { until_ms, why: WaitReason::Slot };
                return (true, same_for_all(due, wait));
            }
            Some(_) | None => {}
        }
        let no_slot = |wait_ms| wait(wait_ms, WaitReason::NoSlot, now_ms);
        let without_slot = |in_flight: &InFlightDelivery| match missing {
            Missing::Unreachable => {
                let left_ms = rate.latest_ms.saturating_sub(now_ms);
                no_slot(UNREACHABLE_MS.min(left_ms).max(ASK_AGAIN_MS))
            }
            Missing::Soon | Missing::Unknown | Missing::Full if rate.recovers => {
                self.send_away(in_flight, &rate, now_ms)
            }
            Missing::Soon | Missing::Unknown => no_slot(ASK_AGAIN_MS),
            Missing::Full => {
                let left_ms = rate.latest_ms.saturating_sub(now_ms);
                no_slot(left_ms.clamp(ASK_AGAIN_MS, DELAY_MAX_MS))
            }
        };
        let mut slots = slots.into_iter();
        let answers = due.iter().map(|in_flight| match slots.next() {
            Some(until_ms) => Answer::Wait { until_ms, why: WaitReason::Slot },
            None => without_slot(in_flight),
        });
        (false, unless_open(answers))
    }

    /// Defers, by a random time, a delivery that gets no slot. The time depends on the number of
    /// such deliveries.
    fn send_away(&self, in_flight: &InFlightDelivery, rate: &Rate<'_>, now_ms: u64) -> Answer {
        let mut state = rate.passage.destination.state();
        let recovery = recovering::report(&state, now_ms).map(|report| report.known);
        let spread_ms = recovery.map_or(ASK_AGAIN_MS, Recovery::away_ms);
        recovering::note_away(&mut state, in_flight.delivery.hold.away == 0);
        let deferral = Deferral { from_ms: now_ms.saturating_add(SECOND_MS), spread_ms };
        let latest_ms = now_ms.saturating_add(longest_wait_ms(in_flight, rate.passage, now_ms));
        let until_ms = deferral.until_ms(self.ports.next_jitter()).min(latest_ms);
        let until_ms = until_ms.max(now_ms.saturating_add(ASK_AGAIN_MS));
        Answer::Wait { until_ms, why: WaitReason::Away }
    }

    /// Takes the next free slot, which all deliveries share if they can wait for it in place.
    /// Otherwise takes up to `count` slots, because the deliveries return as separate messages.
    async fn next_slots(&self, rate: &mut Rate<'_>, count: usize) -> Taken {
        let of_one = rate.own();
        let wanted = Wants::new(&of_one.wanted, 1);
        let mut own = of_one.own.lock().await;
        let mut taken = Taken::default();
        self.take_slots(rate, &of_one.wanted, &mut own, 1, &mut taken).await;
        drop(wanted);
        let is_soon = |slot_ms: &u64| *slot_ms <= self.now_ms() + IN_PLACE_BELOW_MS;
        if count > 1 && taken.slots.first().is_some_and(|first| !is_soon(first)) {
            let more = u32::try_from(count - 1).unwrap_or(u32::MAX);
            let _wanted = Wants::new(&of_one.wanted, more);
            self.take_slots(rate, &of_one.wanted, &mut own, count, &mut taken).await;
        }
        taken
    }

    /// Takes up to `count` slots of this process, and requests missing ones from the table.
    async fn take_slots(
        &self,
        rate: &mut Rate<'_>,
        wanted: &AtomicU32,
        own: &mut Own,
        count: usize,
        into: &mut Taken,
    ) {
        for tried in 0..=TRIES {
            while into.slots.len() < count {
                let Some(slot_ms) = own.take(self.now_ms()) else { break };
                if slot_ms > rate.latest_ms {
                    into.missing = Missing::Full;
                    return own.put_back(slot_ms);
                }
                into.slots.push(slot_ms);
            }
            let has_answer = tried > 0 && into.missing != Missing::Unknown;
            if into.slots.len() >= count || has_answer || tried == TRIES {
                return;
            }
            if rate.recovers && own.line_until_ms > self.now_ms().saturating_add(PLACES_WITHIN_MS) {
                into.missing = Missing::Full;
                return;
            }
            into.missing = Missing::Soon;
            self.ports.sleep(GATHER_MS).await;
            let now_ms = self.now_ms();
            let destination = &rate.passage.destination;
            let report = recovering::report(&destination.state(), now_ms).filter(|_| rate.recovers);
            if rate.recovers && report.is_none() {
                // The item shows that the recovery is over. Slots of `maxPerSecond` have a separate
                // queue.
                rate.recovers = false;
                let missing = if rate.most.is_none() { count - into.slots.len() } else { 0 };
                return into.slots.extend(std::iter::repeat_n(now_ms, missing));
            }
            rate.learn(report);
            let places = rate.places(wanted, own.line_until_ms, report, now_ms);
            let asked = self.table.port().take_places(&rate.item, rate.queue(), &places, now_ms);
            let answer = self.table.answer(asked, rate.deadline).await;
            if answer.is_ok() {
                own.share_next_ms = 0;
            }
            let answer = answer.map(|places| {
                if let Some(report) = &report {
                    recovering::note_places(&mut destination.state(), report, places);
                }
                places.line
            });
            match answer {
                Ok(Line::Taken { first_us }) => {
                    own.add(places.places_ms(first_us));
                    own.line_until_ms = first_us.saturating_add(places.all_us()) / 1_000;
                }
                Ok(Line::Full { until_ms }) => {
                    (into.missing, own.line_until_ms) = (Missing::Full, until_ms);
                    return;
                }
                Ok(Line::Overtaken) if rate.recovers => into.missing = Missing::Unknown,
                Ok(Line::Overtaken) => return,
                Err(Unreachable) => {
                    into.missing = Missing::Unreachable;
                    let missing = count - into.slots.len();
                    let slots = std::iter::from_fn(|| self.next_of_share(rate, own));
                    return into.slots.extend(slots.take(missing));
                }
            }
        }
    }

    /// Returns the time of this process's next request while the table is unreachable. All
    /// functions then share the rate equally. Returns `None` if the table may be reachable before
    /// that time, or the time is too late for the deliveries.
    fn next_of_share(&self, rate: &Rate<'_>, own: &mut Own) -> Option<u64> {
        let now_ms = self.now_ms();
        let every_ms = u64::from(self.functions) * SECOND_MS / u64::from(rate.per_second.max(1));
        let next_ms = match own.share_next_ms {
            // Randomized, so that all processes do not start at the same time during a recovery.
            0 if rate.recovers => {
                let deferral = Deferral { from_ms: now_ms, spread_ms: every_ms };
                deferral.until_ms(self.ports.next_jitter())
            }
            next_ms => next_ms.max(now_ms),
        };
        own.share_next_ms = next_ms;
        if next_ms > rate.latest_ms.min(now_ms.saturating_add(UNREACHABLE_MS)) {
            return None;
        }
        own.share_next_ms = next_ms.saturating_add(every_ms);
        Some(next_ms)
    }
}

#[derive(Debug, Default)]
struct Taken {
    slots: Vec<u64>,
    missing: Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Missing {
    /// Other processes were faster, or the response came too late. A slot may be free soon.
    #[default]
    Soon,
    /// The table has a newer recovery than this process.
    Unknown,
    /// The table is unreachable, and this process has used up its share.
    Unreachable,
    /// No slot is free within the time to live.
    Full,
}

/// The rate that applies to a request, and the queue in which the request waits.
struct Rate<'a> {
    passage: &'a Passage,
    item: ItemKey,
    /// `maxPerSecond` of the subscription; `None` without a limit.
    most: Option<u32>,
    per_second: u32,
    recovers: bool,
    latest_ms: u64,
    deadline: &'a Deadline,
}

impl<'a> Rate<'a> {
    fn queue(&self) -> SlotQueue {
        if self.recovers { SlotQueue::Recovery } else { SlotQueue::Slots }
    }

    /// Returns the unused slots of this process for this rate.
    fn own(&self) -> &'a OwnSlots {
        let destination = &self.passage.destination;
        if self.recovers { &destination.recovery } else { &destination.slots }
    }

    /// Counts deliveries that had been deferred without a slot and have a slot now.
    fn note_back(&self, due: &[InFlightDelivery]) {
        let count = due.iter().filter(|in_flight| in_flight.delivery.hold.away > 0).count();
        recovering::note_back(&mut self.passage.destination.state(), count);
    }

    /// Adopts the current rate of a recovery.
    fn learn(&mut self, report: Option<Report>) {
        let Some(Report { known, .. }) = report else { return };
        self.per_second = self.most.map_or(known.rate, |most| most.min(known.rate));
    }

    /// Builds a request for one slot per waiting request of this process. During a recovery,
    /// requests only slots that can be awaited in place, because the rate may change soon.
    fn places(
        &self,
        wanted: &AtomicU32,
        line_until_ms: u64,
        report: Option<Report>,
        now_ms: u64,
    ) -> TakePlaces {
        let most = report.map_or(u32::MAX, |_| Recovery::places(self.per_second));
        // `maxPerSecond` limits every second, so unused slots of the past are not granted.
        let has_most = |known: Recovery| self.most.is_some_and(|most| most <= known.rate);
        let recovery = report.map(|report| report.known).filter(|known| !has_most(*known));
        let earliest_ms = recovery.map_or(now_ms, |known| known.places_from_ms(now_ms));
        let within_ms = report.map_or(u64::MAX, |_| now_ms.saturating_add(PLACES_WITHIN_MS));
        TakePlaces {
            count: wanted.load(Ordering::Relaxed).min(most),
            each_us: (SECOND_MS * 1_000 / u64::from(self.per_second.max(1))).max(1),
            others_wait: line_until_ms > earliest_ms,
            earliest_ms,
            latest_ms: self.latest_ms.saturating_add(1).min(within_ms),
            plausible_ms: now_ms.saturating_add(LIFETIME_MAX_MS),
            report,
        }
    }
}

/// Returns the latest slot that all of these deliveries can use. A slot that can be awaited in
/// place is never too late.
fn latest_ms(due: &[InFlightDelivery], passage: &Passage, now_ms: u64) -> u64 {
    let longest_ms = due.iter().map(|in_flight| longest_wait_ms(in_flight, passage, now_ms)).min();
    now_ms.saturating_add(longest_ms.unwrap_or_default().max(IN_PLACE_BELOW_MS))
}

/// True if the delivery may use the slot for which it was re-enqueued. A delivery misses its first
/// slot if it is late by more than [`LATE_MS`]; it cannot miss a later slot.
fn has_slot(delivery: &Delivery, now_ms: u64) -> bool {
    match delivery.hold.slots {
        0 => false,
        1 => now_ms <= delivery.due_ms.saturating_add(LATE_MS),
        // The delivery was late before. It must not be deferred for ever.
        _ => true,
    }
}
