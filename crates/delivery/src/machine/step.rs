//! The state machine of a delivery: two functions, no I/O.
//!
//! ```text
//! arrive(delivery, subscription, now)            -> NotDue(wait) | Ended(reason) | Forward(topic) | Attempt
//! settle(delivery, exchange, now, jitter)        -> Done | Retry{wait} | DeadLetter(letter) | ToSink(letter) | Drop(reason)
//! ```
//!
//! One HTTP exchange happens between the two calls. [`group`] puts due deliveries into groups, and
//! each group becomes one request. A group has one delivery unless the subscription batches.
//! Production, the simulation and explanations use the same functions.

use std::fmt;
use std::sync::Arc;

use crate::delivery::outcome::{Exchange, TransportResult, Verdict, judge};
use crate::delivery::reason::Reason;
use crate::delivery::replay::{ReplayEnd, ReplayOutcome};
use crate::delivery::{Batching, DeadLetter, Delivery, DeliveryTarget};
use crate::request::{BatchKey, batch_key};
use crate::subscription::name::TopicName;
use crate::subscription::profile::{ATTEMPTS_MAX, LIFETIME_MAX_MS, RetryPolicy};
use crate::subscription::sink::Sink;
use crate::subscription::{Batch, OnRefused, Subscription, addressed};
use crate::waits::{self, Jitter, Moments, Spread};

/// The next step of a delivery that dispatch has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// The next attempt is not due. The delivery is re-enqueued for the remaining wait. This does
    /// not count as an attempt.
    NotDue {
        /// Remaining wait in milliseconds.
        wait_ms: u64,
    },
    /// The delivery ends without a request: its subscription is paused, or a limit is reached.
    Ended(Reason),
    /// The event is forwarded to this topic, and no request is sent.
    Forward(TopicName),
    /// The next attempt is due and may be made.
    Attempt,
}

/// The next step of a delivery after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The delivery was successful, so it has ended.
    Done,
    /// The attempt failed, and the delivery is retried.
    Retry {
        /// Wait before the retry in milliseconds.
        wait_ms: u64,
    },
    /// The delivery ended without success, and its dead letter is stored.
    DeadLetter(Box<DeadLetter>),
    /// The delivery ended without success, and its dead letter is first sent to its sink, an
    /// address or a topic.
    ToSink(Box<DeadLetter>),
    /// The delivery ended without success, and no dead letter is kept, as the subscription
    /// specifies.
    Drop(Reason),
}

impl End {
    /// Adds a detail to the dead letter, if the delivery ended with one.
    #[must_use]
    pub fn with_detail(self, detail: impl fmt::Display) -> Self {
        match self {
            Self::DeadLetter(letter) => Self::DeadLetter(Box::new(letter.with_detail(detail))),
            Self::ToSink(letter) => Self::ToSink(Box::new(letter.with_detail(detail))),
            Self::Done | Self::Retry { .. } | Self::Drop(_) => self,
        }
    }

    /// Returns the result of a replay, if the delivery is a replay and its result is final.
    /// `stored` contains the container and key of the dead letter, if they are known.
    #[must_use]
    pub fn of_replay(
        &self,
        delivery: &Delivery,
        stored: Option<(String, String)>,
        now_ms: u64,
    ) -> Option<ReplayEnd> {
        match self {
            Self::Retry { .. } => None,
            Self::Done => ReplayEnd::of_success(delivery, now_ms),
            Self::DeadLetter(letter) | Self::ToSink(letter) => {
                ReplayEnd::of_dead_letter(letter, stored, now_ms)
            }
            Self::Drop(_) => ReplayEnd::new(delivery, ReplayOutcome::Dropped, now_ms),
        }
    }
}

/// The result of an attempt for one of its deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The meaning of the exchange for the delivery.
    pub verdict: Verdict,
    /// The next step of the delivery.
    pub end: End,
}

/// Decides whether a delivery may be attempted now.
#[must_use]
pub fn arrive(delivery: &Delivery, subscription: &Subscription, now_ms: u64) -> Arrival {
    // A paused subscription is checked before the due time. Otherwise the delivery would be
    // re-enqueued until it is due. It does not wait for the end of the pause either: SQS delays a
    // message for at most 15 minutes, so every delivery would be sent again every 15 minutes. A
    // stored dead letter costs almost nothing, and can be replayed after the pause.
    if subscription.paused {
        return Arrival::Ended(Reason::Paused);
    }
    if now_ms < delivery.due_ms {
        return Arrival::NotDue { wait_ms: delivery.due_ms - now_ms };
    }
    let policy = &subscription.retry;
    // The subtraction saturates: SQS stamps the publication, and its clock may be ahead.
    let age_ms = now_ms.saturating_sub(delivery.published_ms);
    if age_ms >= LIFETIME_MAX_MS {
        return Arrival::Ended(Reason::TimeToLiveExceeded);
    }
    // The single attempt after a refused batch ignores the limits of the retry policy.
    if delivery.batching == Batching::RetryAlone {
        return Arrival::Attempt;
    }
    // The maximum number of attempts may have been lowered since the last attempt.
    if delivery.attempts >= policy.max_attempts.min(ATTEMPTS_MAX) {
        return Arrival::Ended(Reason::MaxDeliveryAttemptsExceeded);
    }
    let lived_ms = now_ms.saturating_sub(delivery.starts_ms);
    if policy.time_to_live_ms.is_some_and(|time_to_live_ms| lived_ms >= time_to_live_ms) {
        return Arrival::Ended(Reason::TimeToLiveExceeded);
    }
    delivery.target.topic(subscription).map_or(Arrival::Attempt, Arrival::Forward)
}

/// Returns the time in milliseconds during which a delivery may still be attempted. A longer wait
/// would only delay its dead letter. The result is never 0 if [`arrive`] allows an attempt.
#[must_use]
pub fn left_to_live_ms(delivery: &Delivery, policy: &RetryPolicy, now_ms: u64) -> u64 {
    // The single attempt after a refused batch ignores the limits of the retry policy.
    let own_ms = policy.time_to_live_ms.filter(|_| delivery.batching != Batching::RetryAlone);
    let own_end_ms = own_ms.map_or(u64::MAX, |own_ms| delivery.starts_ms.saturating_add(own_ms));
    let end_ms = own_end_ms.min(delivery.published_ms.saturating_add(LIFETIME_MAX_MS));
    end_ms.saturating_sub(now_ms)
}

/// Deliveries of one subscription that share a request.
#[derive(Debug)]
pub struct Group<T> {
    /// The subscription of all members.
    pub subscription: Arc<Subscription>,
    /// The deliveries, or values that contain them.
    pub members: Vec<T>,
}

/// Groups deliveries that share a request. The result has one group for each request.
#[must_use]
pub fn group<T: AsRef<Delivery>>(
    deliveries: Vec<(Arc<Subscription>, T)>,
    now_ms: u64,
) -> Vec<Group<T>> {
    let (mut grouping, mut groups) = (Grouping::default(), Vec::<Group<T>>::new());
    for (subscription, member) in deliveries {
        let index = grouping.place(&subscription, member.as_ref(), now_ms);
        match groups.get_mut(index) {
            Some(group) => group.members.push(member),
            None => groups.push(Group { subscription, members: vec![member] }),
        }
    }
    groups
}

/// Decides which deliveries share a request. If a subscription batches, its due deliveries share
/// requests up to its maximum number of events and its preferred size.
#[derive(Debug, Default)]
pub struct Grouping {
    open_groups: Vec<Open>,
    count: usize,
}

impl Grouping {
    /// Returns the number of groups.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the index of the group of the next delivery: an open group, or a new one.
    pub fn place(
        &mut self,
        subscription: &Arc<Subscription>,
        delivery: &Delivery,
        now_ms: u64,
    ) -> usize {
        if let Some((batch, batch_key, bytes)) = batch_key_of(subscription, delivery, now_ms) {
            // An invocation may have two versions of a subscription, whose deliveries do not share
            // a request.
            let matches = |open: &&mut Open| {
                open.batch_key == batch_key && Arc::ptr_eq(&open.subscription, subscription)
            };
            let open = self.open_groups.iter_mut().find(matches);
            match open {
                Some(open)
                    if open.members < batch.max_events && open.has_room_for(bytes, batch) =>
                {
                    open.bytes = open.bytes.saturating_add(bytes);
                    open.members += 1;
                    return open.group;
                }
                Some(open) => (open.group, open.bytes, open.members) = (self.count, bytes, 1),
                None => self.open_groups.push(Open {
                    subscription: Arc::clone(subscription),
                    batch_key,
                    group: self.count,
                    bytes,
                    members: 1,
                }),
            }
        }
        let group = self.count;
        self.count += 1;
        group
    }
}

/// A group to which a member can still be added.
#[derive(Debug)]
struct Open {
    subscription: Arc<Subscription>,
    batch_key: BatchKey,
    /// Index of the group in the result.
    group: usize,
    /// Total size in bytes of the elements in the body.
    bytes: u64,
    members: u32,
}

impl Open {
    /// True if an element of this size still fits into the body, including brackets and commas.
    fn has_room_for(&self, bytes: u64, batch: Batch) -> bool {
        self.bytes.saturating_add(bytes).saturating_add(u64::from(self.members) + 2)
            <= batch.preferred_bytes
    }
}

/// Returns the batch settings, the key and the element size with which a delivery may share a
/// request; `None` if it may not.
fn batch_key_of(
    subscription: &Subscription,
    delivery: &Delivery,
    now_ms: u64,
) -> Option<(Batch, BatchKey, u64)> {
    let batch = subscription.batch?;
    let may_share = delivery.batching == Batching::Allowed
        && delivery.target == DeliveryTarget::Destination
        && delivery.due_ms <= now_ms;
    let (batch_key, bytes) = batch_key(subscription, delivery).filter(|_| may_share)?;
    Some((batch, batch_key, bytes))
}

/// Settles a delivery that shared its request. A response that is never retried may be about only
/// one event of the batch. Each event therefore gets one attempt in a request of its own, unless
/// the subscription applies the response to all events. If the request could not be built, each
/// event always gets such an attempt, because no endpoint has refused it.
#[must_use]
pub fn settle_batched(
    delivery: &mut Delivery,
    subscription: &Subscription,
    exchange: &Exchange,
    now_ms: u64,
    jitter: Jitter,
) -> Settled {
    let verdict = judge(&subscription.retry, exchange);
    let splits = subscription.batch.is_some_and(|batch| batch.on_refused == OnRefused::Split);
    let is_unsendable = exchange.result == TransportResult::Unsendable;
    let is_refused = is_unsendable || (splits && exchange.status().is_some());
    if !(is_refused && matches!(verdict, Verdict::Undeliverable(_))) {
        return settle(delivery, subscription, exchange, now_ms, jitter);
    }
    delivery.record(exchange, subscription);
    delivery.batching = Batching::RetryAlone.into();
    delivery.due_ms = exchange.ended_ms();
    Settled { verdict, end: End::Retry { wait_ms: 0 } }
}

/// Records an attempt in the delivery and decides the next step.
#[must_use]
pub fn settle(
    delivery: &mut Delivery,
    subscription: &Subscription,
    exchange: &Exchange,
    now_ms: u64,
    jitter: Jitter,
) -> Settled {
    let policy = &subscription.retry;
    delivery.record(exchange, subscription);
    if delivery.batching == Batching::RetryAlone {
        delivery.batching = Batching::Disabled.into();
    }
    let exhausted = delivery.attempts >= policy.max_attempts.min(ATTEMPTS_MAX);
    let verdict = judge(policy, exchange);
    let ended = |reason| end_without_success(delivery, subscription, reason, now_ms);
    let end = match &verdict {
        Verdict::Delivered => End::Done,
        Verdict::Undeliverable(_) if exhausted && policy.last_attempt_names_the_limit => {
            ended(Reason::MaxDeliveryAttemptsExceeded)
        }
        Verdict::Undeliverable(reason) => ended(*reason),
        Verdict::Retry { .. } if exhausted => ended(Reason::MaxDeliveryAttemptsExceeded),
        Verdict::Retry { least_wait_ms } => {
            let due_ms = next_due_ms(delivery, policy, exchange, *least_wait_ms, jitter);
            // A wait beyond the maximum lifetime of 14 days would only delay the dead letter.
            if due_ms.saturating_sub(delivery.published_ms) >= LIFETIME_MAX_MS {
                ended(Reason::TimeToLiveExceeded)
            } else {
                delivery.due_ms = due_ms;
                End::Retry { wait_ms: due_ms.saturating_sub(now_ms) }
            }
        }
    };
    Settled { verdict, end: with_exchange_detail(end, exchange) }
}

/// Returns the time at which the next attempt is due, by the schedule and the response. The wait
/// counts from the outcome and not from now, because work on other deliveries must not lengthen it.
/// Jitter never moves an attempt beyond the time to live.
fn next_due_ms(
    delivery: &Delivery,
    policy: &RetryPolicy,
    exchange: &Exchange,
    least_wait_ms: u64,
    jitter: Jitter,
) -> u64 {
    let outcome_ms = exchange.ended_ms();
    let first_attempt_ms =
        delivery.history.first_attempt().map_or(exchange.started_ms, |first| first.at_ms);
    let moments = Moments { first_attempt_ms, outcome_ms };
    let scheduled_ms = policy.schedule.wait_ms(delivery.attempts, moments);
    let spread = Spread { percent: policy.jitter_percent, jitter };
    let left_ms = left_to_live_ms(delivery, policy, outcome_ms);
    outcome_ms.saturating_add(waits::retry_ms(scheduled_ms, least_wait_ms, spread, left_ms))
}

/// Adds the detail of the last exchange to the dead letter, if the delivery ended with a dead
/// letter and the exchange has a detail.
fn with_exchange_detail(end: End, exchange: &Exchange) -> End {
    match (end, &exchange.detail) {
        (End::DeadLetter(letter), Some(detail)) => {
            End::DeadLetter(Box::new(letter.with_detail(detail)))
        }
        (End::ToSink(letter), Some(detail)) => End::ToSink(Box::new(letter.with_detail(detail))),
        (end, _) => end,
    }
}

/// Returns the next step of a delivery that ended without success. The delivery becomes a dead
/// letter, unless its subscription drops dead letters. A set-aside delivery is never dropped.
#[must_use]
pub fn end_without_success(
    delivery: &Delivery,
    subscription: &Subscription,
    reason: Reason,
    now_ms: u64,
) -> End {
    let policy = &subscription.dead_letter;
    let sink = &policy.sink;
    if reason.sets_aside() {
        return End::DeadLetter(Box::new(DeadLetter::set_aside(
            delivery.clone(),
            subscription,
            reason,
            now_ms,
        )));
    }
    // The dead letter is not sent to its sink again, because the delivery to the sink has just
    // failed.
    if let DeliveryTarget::Sink(_) = delivery.target {
        let mut letter = DeadLetter::without_subscription(delivery.clone(), reason, now_ms);
        if let (Some(returned), Sink::Address(url)) = (&mut letter.returned, sink) {
            returned.address = Some(addressed(url, policy.hide_path));
        }
        return End::DeadLetter(Box::new(letter));
    }
    // This is a closure, because a dropped delivery needs no dead letter.
    let letter = || Box::new(DeadLetter::new(delivery.clone(), subscription, reason, now_ms));
    match sink {
        Sink::None => End::Drop(reason),
        Sink::DefaultContainer | Sink::Container(_) | Sink::Queue(_) => End::DeadLetter(letter()),
        Sink::Address(_) | Sink::Topic(_) => End::ToSink(letter()),
    }
}
