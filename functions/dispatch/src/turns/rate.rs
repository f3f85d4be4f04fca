//! A destination that takes so many requests a second (`maxPerSecond`) gets no more, from all processes
//! together.
//!
//! Each request takes a slot, a place in the line of its destination. All deliveries of an invocation that wait for one
//! destination ask the table once. A slot is used at once, or after a short wait in place. A delivery whose slot is later is
//! re-enqueued until then. That is not an attempt, and its time to live continues. While the table cannot
//! be reached, each process keeps to its share of the rate.

use std::sync::atomic::{AtomicU32, Ordering};

use adapters::telemetry::{self, HoldReason};
use delivery::delivery::Delivery;
use delivery::delivery::health::DestinationKey;
use delivery::machine::step::{End, PAUSED_WAIT_MS};
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::table::{ItemKey, Line, LineName, Table as _, TakePlaces};
use delivery::time::duration::SECOND_MS;
use futures::FutureExt as _;

use super::GATHER_MS;
use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, IN_PLACE_BELOW_MS, Invocation};
use crate::memory::health::{UNREACHABLE_MS, key_of};
use crate::memory::rates::{Own, Wants};
use crate::progress::{InFlightDelivery, Unfinished};
use crate::sharing::Unreachable;

/// A delivery that got no slot asks again after this long, if not later.
const ASK_AGAIN_MS: u64 = 2 * SECOND_MS;
/// How late a delivery may come for the slot it waited for. Beyond that it gets another one, once: then
/// it is attempted whenever it comes, or a queue that is slow would keep it from ever being attempted.
const LATE_MS: u64 = 5 * SECOND_MS;

impl<P: DispatchPorts> Dispatch<P> {
    /// Those that may be sent in one request now: all of them, or none, and then each was re-enqueued
    /// until its slot.
    pub(crate) async fn take_slot(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let Some(per_second) = subscription.destination.max_per_second else { return due };
        let now_ms = self.ports.now_ms();
        let has_slot = due.iter().any(|one| has_slot(&one.delivery, now_ms));
        if has_slot || !self.is_limited(&due, subscription, of) {
            return due;
        }
        self.wait_for_slot(due, subscription, per_second, of).boxed().await
    }

    async fn wait_for_slot(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        per_second: u32,
        of: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let latest_ms = latest_ms(&due, subscription);
        let key = key_of(subscription);
        let item = key.limits_item(&subscription.name.topic.namespace);
        let rate = Rate { key, item, per_second, latest_ms, deadline: of.deadline };
        let Taken { slots, missing } = self.next_slots(&rate, due.len()).await;
        let now_ms = self.ports.now_ms();
        let first_wait_ms = slots.first().map(|first_ms| first_ms.saturating_sub(now_ms));
        if let Some(wait_ms) = first_wait_ms.filter(|wait_ms| *wait_ms <= IN_PLACE_BELOW_MS) {
            self.ports.sleep(wait_ms).await;
            return due;
        }
        let mut slots = slots.into_iter();
        let wait = |mut in_flight: InFlightDelivery| {
            let wait_ms = match slots.next() {
                Some(slot_ms) => {
                    in_flight.delivery.wait_for_slot(slot_ms);
                    slot_ms.saturating_sub(now_ms)
                }
                None => match missing {
                    Missing::Soon => ASK_AGAIN_MS,
                    Missing::Unreachable => UNREACHABLE_MS,
                    Missing::Full => {
                        latest_ms.saturating_sub(now_ms).clamp(ASK_AGAIN_MS, PAUSED_WAIT_MS)
                    }
                },
            };
            telemetry::held(&in_flight.delivery, HoldReason::Rate, wait_ms);
            Unfinished { in_flight, end: End::Retry { wait_ms } }
        };
        let leaving = due.into_iter().map(wait).collect();
        self.finish_all(of, leaving).await;
        Vec::new()
    }

    /// The next slots that nobody else has: one if that is soon, else so many, as they may come back
    /// apart. Fewer where no more are free in time.
    async fn next_slots(&self, rate: &Rate<'_>, count: usize) -> Taken {
        let of_one = self.rates.of(rate.key);
        let wanted = Wants::of(&of_one.wanted, 1);
        let mut own = of_one.own.lock().await;
        let mut taken = Taken::default();
        self.take_slots(rate, &of_one.wanted, &mut own, 1, &mut taken).await;
        drop(wanted);
        let is_soon = |slot_ms: &u64| *slot_ms <= self.ports.now_ms() + IN_PLACE_BELOW_MS;
        if count > 1 && taken.slots.first().is_some_and(|first| !is_soon(first)) {
            let more = u32::try_from(count - 1).unwrap_or(u32::MAX);
            let _wanted = Wants::of(&of_one.wanted, more);
            self.take_slots(rate, &of_one.wanted, &mut own, count, &mut taken).await;
        }
        taken
    }

    /// Takes slots until there are so many; asks for what is missing, once.
    async fn take_slots(
        &self,
        rate: &Rate<'_>,
        wanted: &AtomicU32,
        own: &mut Own,
        count: usize,
        into: &mut Taken,
    ) {
        for has_asked in [false, true] {
            while into.slots.len() < count {
                let Some(slot_ms) = own.take(self.ports.now_ms()) else { break };
                if slot_ms > rate.latest_ms {
                    into.missing = Missing::Full;
                    return own.put_back(slot_ms);
                }
                into.slots.push(slot_ms);
            }
            if into.slots.len() >= count || has_asked {
                return;
            }
            self.ports.sleep(GATHER_MS).await;
            let now_ms = self.ports.now_ms();
            let places = rate.places(wanted, own.line_until_ms > now_ms, now_ms);
            let asked =
                self.ports.table().take_places(&rate.item, LineName::Slots, &places, now_ms);
            let answer = self.table_answer(asked, rate.deadline).await;
            if answer.is_ok() {
                own.share_next_ms = 0;
            }
            match answer {
                Ok(Line::Taken { first_us }) => {
                    own.add(places.places_ms(first_us));
                    own.line_until_ms = first_us.saturating_add(places.all_us()) / 1_000;
                }
                Ok(Line::Full { until_ms }) => {
                    (into.missing, own.line_until_ms) = (Missing::Full, until_ms);
                    return;
                }
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

    /// When this process may make its next request, if all that may run share the rate. `None` if the table is asked
    /// again before.
    fn next_of_share(&self, rate: &Rate<'_>, own: &mut Own) -> Option<u64> {
        let now_ms = self.ports.now_ms();
        let next_ms = own.share_next_ms.max(now_ms);
        if next_ms > rate.latest_ms.min(now_ms.saturating_add(UNREACHABLE_MS)) {
            return None;
        }
        let every_ms = u64::from(self.gates.functions) * SECOND_MS / u64::from(rate.per_second);
        own.share_next_ms = next_ms.saturating_add(every_ms);
        Some(next_ms)
    }
}

/// The slots that deliveries got.
#[derive(Debug, Default)]
struct Taken {
    slots: Vec<u64>,
    missing: Missing,
}

/// The reason why deliveries got no slot.
#[derive(Debug, Clone, Copy, Default)]
enum Missing {
    /// Others were faster, or the answer came too late: there may be slots soon.
    #[default]
    Soon,
    /// The table cannot be reached, and this process has used up its share.
    Unreachable,
    /// No slot is free in their time.
    Full,
}

/// What slots are asked for.
struct Rate<'a> {
    key: DestinationKey,
    item: ItemKey,
    per_second: u32,
    latest_ms: u64,
    deadline: &'a Deadline,
}

impl Rate<'_> {
    /// A place for each request that somebody of this process wants to make.
    fn places(&self, wanted: &AtomicU32, others_wait: bool, now_ms: u64) -> TakePlaces {
        TakePlaces {
            count: wanted.load(Ordering::Relaxed),
            each_us: (SECOND_MS * 1_000 / u64::from(self.per_second.max(1))).max(1),
            others_wait,
            latest_ms: self.latest_ms.saturating_add(1),
            plausible_ms: now_ms.saturating_add(LIFETIME_MAX_MS),
        }
    }
}

/// The last moment at which one of these may be attempted: a slot beyond it would be lost.
fn latest_ms(due: &[InFlightDelivery], subscription: &Subscription) -> u64 {
    let of_policy = |delivery: &Delivery| {
        let lives_ms = subscription.retry.time_to_live_ms?;
        Some(delivery.published_ms.saturating_add(lives_ms).saturating_add(delivery.held_ms))
    };
    let latest = |one: &InFlightDelivery| {
        let longest_ms = one.delivery.published_ms.saturating_add(LIFETIME_MAX_MS);
        of_policy(&one.delivery).map_or(longest_ms, |latest_ms| latest_ms.min(longest_ms))
    };
    due.iter().map(latest).min().unwrap_or_default().saturating_sub(1)
}

/// Whether a delivery comes for the slot that it has waited for.
fn has_slot(delivery: &Delivery, now_ms: u64) -> bool {
    match delivery.hold.slots {
        0 => false,
        1 => now_ms <= delivery.due_ms.saturating_add(LATE_MS),
        // It came too late before: it is not sent round for ever.
        _ => true,
    }
}
