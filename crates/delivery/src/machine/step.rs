//! The state machine of a delivery: two functions, no I/O.
//!
//! ```text
//! arrive(delivery, subscription, now)            -> NotDue(wait) | Ended(reason) | Forward(topic) | Attempt
//! settle(delivery, exchange, now, jitter)        -> Done | Retry{wait} | DeadLetter(letter) | ToSink(letter) | Drop(reason)
//! ```
//!
//! Between the two is one HTTP exchange. [`group`] puts deliveries that may be attempted into
//! groups, one request each; a group holds one delivery unless the subscription batches. The same
//! functions are used in production, in the simulation and in explanations.

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

/// What to do with a delivery that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// Its next attempt is not due: it is re-enqueued with the rest of its wait. Not an attempt.
    NotDue {
        /// The rest of the wait.
        wait_ms: u64,
    },
    /// It ends without a request: its subscription is paused, or it has reached a limit.
    Ended(Reason),
    /// It goes on to the subscriptions of this topic, without a request.
    Forward(TopicName),
    /// It is due and may be attempted.
    Attempt,
}

/// What to do with a delivery after an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Delivered.
    Done,
    /// To be retried.
    Retry {
        /// How long to wait first.
        wait_ms: u64,
    },
    /// It ended without success; its dead letter is stored.
    DeadLetter(Box<DeadLetter>),
    /// It ended without success; its dead letter is first sent to its sink, an address or a topic.
    ToSink(Box<DeadLetter>),
    /// It ended without success and is dropped, as the subscription says.
    Drop(Reason),
}

impl End {
    /// The same, whose dead letter says this, too.
    #[must_use]
    pub fn with_detail(self, detail: impl fmt::Display) -> Self {
        match self {
            Self::DeadLetter(letter) => Self::DeadLetter(Box::new(letter.with_detail(detail))),
            Self::ToSink(letter) => Self::ToSink(Box::new(letter.with_detail(detail))),
            Self::Done | Self::Retry { .. } | Self::Drop(_) => self,
        }
    }

    /// The end of the replay that this delivery is, if it is one, once this end is carried out for good. `stored`
    /// says in which container and under which key its dead letter is, if that is known.
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
            Self::Drop(_) => ReplayEnd::of(delivery, ReplayOutcome::Dropped, now_ms),
        }
    }
}

/// The result of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// What the exchange means.
    pub verdict: Verdict,
    /// What to do with the delivery.
    pub end: End,
}

/// Decides whether a delivery may be attempted now.
#[must_use]
pub fn arrive(delivery: &Delivery, subscription: &Subscription, now_ms: u64) -> Arrival {
    // Before it is due, or it would travel until then.
    if subscription.paused {
        return Arrival::Ended(Reason::Paused);
    }
    if now_ms < delivery.due_ms {
        return Arrival::NotDue { wait_ms: delivery.due_ms - now_ms };
    }
    let policy = &subscription.retry;
    // Saturating: the publication is stamped by the clock of SQS, which may be ahead.
    let age_ms = now_ms.saturating_sub(delivery.published_ms);
    if age_ms >= LIFETIME_MAX_MS {
        return Arrival::Ended(Reason::TimeToLiveExceeded);
    }
    // The attempt alone after a refused batch is made whatever the policy's limits are.
    if delivery.batching == Batching::RetryAlone {
        return Arrival::Attempt;
    }
    // The file may have lowered its maximum since the last attempt.
    if delivery.attempts >= policy.max_attempts.min(ATTEMPTS_MAX) {
        return Arrival::Ended(Reason::MaxDeliveryAttemptsExceeded);
    }
    let lived_ms = now_ms.saturating_sub(delivery.starts_ms);
    if policy.time_to_live_ms.is_some_and(|time_to_live_ms| lived_ms >= time_to_live_ms) {
        return Arrival::Ended(Reason::TimeToLiveExceeded);
    }
    delivery.target.topic(subscription).map_or(Arrival::Attempt, Arrival::Forward)
}

/// How much longer a delivery may be attempted, whatever it waits for: after that a wait only delays its
/// dead letter. Never 0 where [`arrive`] says that it may be attempted.
#[must_use]
pub fn left_to_live_ms(delivery: &Delivery, policy: &RetryPolicy, now_ms: u64) -> u64 {
    // The attempt alone after a refused batch is made whatever the policy's limits are.
    let own_ms = policy.time_to_live_ms.filter(|_| delivery.batching != Batching::RetryAlone);
    let own_end_ms = own_ms.map_or(u64::MAX, |own_ms| delivery.starts_ms.saturating_add(own_ms));
    let end_ms = own_end_ms.min(delivery.published_ms.saturating_add(LIFETIME_MAX_MS));
    end_ms.saturating_sub(now_ms)
}

/// Deliveries of one subscription that share a request.
#[derive(Debug)]
pub struct Group<T> {
    /// Their subscription.
    pub subscription: Arc<Subscription>,
    /// The deliveries, or values that hold them.
    pub members: Vec<T>,
}

/// Puts deliveries into groups, one request each.
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

/// How deliveries share requests: where a subscription batches, those that are due share one where they
/// can, up to its number of events and its preferred size.
#[derive(Debug, Default)]
pub struct Grouping {
    open_groups: Vec<Open>,
    count: usize,
}

impl Grouping {
    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The index of the group of the next delivery: an open one, or a new one.
    pub fn place(
        &mut self,
        subscription: &Arc<Subscription>,
        delivery: &Delivery,
        now_ms: u64,
    ) -> usize {
        if let Some((batch, batch_key, bytes)) = batch_key_of(subscription, delivery, now_ms) {
            // An invocation may see two versions of a subscription; they share no request.
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

/// A group that may take another member.
#[derive(Debug)]
struct Open {
    subscription: Arc<Subscription>,
    batch_key: BatchKey,
    /// Its index in the groups.
    group: usize,
    /// The bytes of the elements in its body.
    bytes: u64,
    members: u32,
}

impl Open {
    /// Whether its body has room for this many more bytes; brackets and commas count too.
    fn has_room_for(&self, bytes: u64, batch: Batch) -> bool {
        self.bytes.saturating_add(bytes).saturating_add(u64::from(self.members) + 2)
            <= batch.preferred_bytes
    }
}

/// The batch and key by which a delivery may share a request now.
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

/// Like [`settle`], for a delivery of a batch. An answer that is never retried may be about one
/// event of the batch only: unless the subscription applies it to all, each gets one attempt in a
/// request of its own. So does each event of a batch of which no request could be made: nobody has
/// refused the others.
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

/// Records an exchange in the delivery and decides what to do with it.
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
            // A wait that outlasts the 14 days would only delay the dead letter.
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

/// When the next attempt is due, by the schedule and by what the answer asked for. From the outcome, not from
/// now: work on other deliveries must not lengthen the wait. Where it is due within the time to live, jitter does not
/// move it out of that.
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

/// Adds the detail of the last exchange to the dead letter.
fn with_exchange_detail(end: End, exchange: &Exchange) -> End {
    match (end, &exchange.detail) {
        (End::DeadLetter(letter), Some(detail)) => {
            End::DeadLetter(Box::new(letter.with_detail(detail)))
        }
        (End::ToSink(letter), Some(detail)) => End::ToSink(Box::new(letter.with_detail(detail))),
        (end, _) => end,
    }
}

/// The end of a delivery without success: a dead letter, or none where the subscription drops them.
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
    // Not to its sink again, where it has just failed.
    if let DeliveryTarget::Sink(_) = delivery.target {
        let mut letter = DeadLetter::without_subscription(delivery.clone(), reason, now_ms);
        if let (Some(returned), Sink::Address(url)) = (&mut letter.returned, sink) {
            returned.address = Some(addressed(url, policy.hide_path));
        }
        return End::DeadLetter(Box::new(letter));
    }
    // A closure: one that is dropped needs no letter.
    let letter = || Box::new(DeadLetter::new(delivery.clone(), subscription, reason, now_ms));
    match sink {
        Sink::None => End::Drop(reason),
        Sink::DefaultContainer | Sink::Container(_) | Sink::Queue(_) => End::DeadLetter(letter()),
        Sink::Address(_) | Sink::Topic(_) => End::ToSink(letter()),
    }
}
