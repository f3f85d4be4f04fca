//! The machine: what a delivery does next. Two functions, no I/O.
//!
//! ```text
//! arrive(delivery, subscription, now)            -> NotDue(wait) | Paused(wait) | Expired(reason) | Attempt
//! settle(delivery, exchange, now, jitter)        -> Done | Retry{wait} | DeadLetter(letter) | Drop(reason)
//! ```
//!
//! Between the two stands one HTTP exchange. Deliveries that may be attempted are put into groups (one request each)
//! by [`group`]; groups are of one until a subscription asks for batches. The same functions answer in production, in
//! the simulation and in explanations.

use std::sync::Arc;

use crate::deadletter::{Letter, Reason};
use crate::delivery::Delivery;
use crate::duration::SECOND_MS;
use crate::outcome::{Exchange, Verdict, judge};
use crate::profile::{ATTEMPTS_MAX, LIFETIME_MAX_MS};
use crate::schedule::{Jitter, Moments, next_wait_ms};
use crate::subscription::{Sink, Subscription};

/// How long a paused delivery is held before it is looked at again: the longest delay of one SQS message.
pub const PAUSED_WAIT_MS: u64 = 900 * SECOND_MS;

/// What a delivery that has just arrived may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Its next attempt is not due: it comes again after the rest of its wait. Counts nothing.
    NotDue {
        /// The rest of the wait.
        wait_ms: u64,
    },
    /// Its subscription is paused: it is held. Counts nothing; time to live goes on.
    Paused {
        /// How long until it is looked at again.
        wait_ms: u64,
    },
    /// It has reached a limit and ends without a request.
    Expired(Reason),
    /// It may be attempted now.
    Attempt,
}

/// What becomes of a delivery after an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Delivered.
    Done,
    /// To be attempted again.
    Retry {
        /// How long to wait first.
        wait_ms: u64,
    },
    /// It ended without success and is kept.
    DeadLetter(Box<Letter>),
    /// It ended without success and the subscription asks for it to be dropped.
    Drop(Reason),
}

/// What an exchange led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// What the exchange meant.
    pub verdict: Verdict,
    /// What becomes of the delivery.
    pub end: End,
    /// Further deliveries that follow from it: replies, sinks.
    pub and: Vec<Delivery>,
}

/// Says what a delivery may do now.
#[must_use]
pub fn arrive(delivery: &Delivery, subscription: &Subscription, now_ms: u64) -> Arrival {
    if now_ms < delivery.due_ms {
        return Arrival::NotDue { wait_ms: delivery.due_ms - now_ms };
    }
    let policy = &subscription.retry;
    let age_ms = now_ms.saturating_sub(delivery.published_ms);
    if age_ms >= LIFETIME_MAX_MS {
        return Arrival::Expired(Reason::TimeToLiveExceeded);
    }
    if subscription.paused {
        return Arrival::Paused { wait_ms: PAUSED_WAIT_MS };
    }
    if delivery.attempts >= policy.max_attempts.min(ATTEMPTS_MAX) {
        return Arrival::Expired(Reason::MaxDeliveryAttemptsExceeded);
    }
    if policy.time_to_live_ms.is_some_and(|time_to_live_ms| age_ms >= time_to_live_ms) {
        return Arrival::Expired(Reason::TimeToLiveExceeded);
    }
    Arrival::Attempt
}

/// Deliveries that travel in one request to one subscription.
#[derive(Debug)]
pub struct Group<T> {
    /// Whom they are for.
    pub subscription: Arc<Subscription>,
    /// The deliveries, or what stands for them.
    pub members: Vec<T>,
}

/// Puts deliveries that may be attempted into groups, one request each.
#[must_use]
pub fn group<T>(deliveries: impl IntoIterator<Item = (Arc<Subscription>, T)>) -> Vec<Group<T>> {
    deliveries.into_iter().map(|(subscription, member)| Group { subscription, members: vec![member] }).collect()
}

/// Records an exchange in the delivery and says what becomes of it.
#[must_use]
pub fn settle(
    delivery: &mut Delivery,
    subscription: &Subscription,
    exchange: &Exchange,
    now_ms: u64,
    jitter: Jitter,
) -> Settled {
    let policy = &subscription.retry;
    delivery.record(exchange, policy);
    let exhausted = delivery.attempts >= policy.max_attempts.min(ATTEMPTS_MAX);
    let verdict = judge(policy, exchange);
    let end = match &verdict {
        Verdict::Delivered => End::Done,
        Verdict::Undeliverable(_) if exhausted && policy.last_attempt_names_the_limit => {
            end_without_success(delivery, subscription, Reason::MaxDeliveryAttemptsExceeded, now_ms)
        }
        Verdict::Undeliverable(reason) => end_without_success(delivery, subscription, *reason, now_ms),
        Verdict::Retry { .. } if exhausted => {
            end_without_success(delivery, subscription, Reason::MaxDeliveryAttemptsExceeded, now_ms)
        }
        Verdict::Retry { least_wait_ms } => {
            let outcome_ms = exchange.ended_ms();
            let moments = Moments { first_attempt_ms: delivery.first_ms.unwrap_or(exchange.started_ms), outcome_ms };
            let percent = policy.jitter_percent;
            let wait_ms = next_wait_ms(&policy.schedule, delivery.attempts, moments, *least_wait_ms, percent, jitter);
            delivery.due_ms = outcome_ms.saturating_add(wait_ms);
            End::Retry { wait_ms: delivery.due_ms.saturating_sub(now_ms) }
        }
    };
    Settled { verdict, end, and: Vec::new() }
}

/// The end of a delivery that reached no success: a dead letter, or nothing when the subscription says so.
#[must_use]
pub fn end_without_success(delivery: &Delivery, subscription: &Subscription, reason: Reason, now_ms: u64) -> End {
    match subscription.dead_letter.sink {
        Sink::None => End::Drop(reason),
        Sink::DefaultContainer | Sink::Container(_) => {
            End::DeadLetter(Box::new(Letter::new(delivery.clone(), subscription, reason, now_ms)))
        }
    }
}
