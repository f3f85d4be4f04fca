//! A day's outage: what a million deliveries cost that wait all day for a destination that is down.
//!
//! Separate from the bill of a day, because these deliveries wait already: their number does not depend on the
//! load. With probation, messages and deferrals are those that the simulation counts; the few requests to the
//! destination are not counted. Without it, a delivery takes the attempts and waits of its policy that fit into a
//! day.
//!
//! Errs on the high side, see `tests/tests/simulation/outage.rs`.

use delivery::explain::Life;
use delivery::subscription::Subscription;
use delivery::time::duration::DAY_MS;

use super::average::Wait;
use super::cost_items::{
    CostItem, DEAD_LETTER_LINES_BYTES, drained, invoked, log_lines, logs, nat_data, requests,
    running, sqs_requests, stored, storing, subscriptions, surcharge, table,
};
use super::load::{self, DISPATCH, MESSAGE_OVERHEAD_BYTES, failure_ms, mapping_of_dead_letters};
use super::measured::{FAILED_LINE_BYTES, PUT_OFF_LINE_BYTES, WAITING_MESSAGES, WAITING_PUT_OFFS};
use super::plan::Plan;
use super::queue_load::{QueueLoad, QueueWork, REQUEST_ENTRIES, chunks};
use super::subscription_reads::SubscriptionReads;
use super::table_use::{TableUse, Users};
use crate::numbers::{count, decimals};

/// Deliveries that wait.
pub(crate) const DELIVERIES: f64 = 1e6;

/// The cost of an outage.
#[derive(Debug)]
pub(crate) struct Outage {
    /// The day of waiting.
    pub(crate) waiting: Vec<CostItem>,
    /// More, if all deliveries become dead letters at its end.
    pub(crate) dead_letters: Vec<CostItem>,
}

/// The work of one delivery in that day.
struct Work {
    attempts: f64,
    /// Waits after an attempt, each of one or more messages.
    waits: f64,
    messages: f64,
    put_offs: f64,
}

impl Outage {
    /// The cost for deliveries with this policy, life and waits. `None` if none of them waits.
    pub(super) fn of(
        plan: &Plan,
        subscription: &Subscription,
        life: &Life,
        waits: &[Wait],
    ) -> Option<Self> {
        let work = Work::of(subscription, life, waits);
        let waiting = (work.messages > 0.0).then(|| waiting(plan, subscription, &work))?;
        let is_stored = life.stored.is_some();
        let dead_letters = if is_stored { dead_letters(plan) } else { Vec::new() };
        Some(Self { waiting, dead_letters })
    }
}

impl Work {
    const NONE: Self = Self { attempts: 0.0, waits: 0.0, messages: 0.0, put_offs: 0.0 };

    fn of(subscription: &Subscription, life: &Life, waits: &[Wait]) -> Self {
        if subscription.destination.probation {
            let (messages, put_offs) = (WAITING_MESSAGES, WAITING_PUT_OFFS);
            return Self { messages, put_offs, ..Self::NONE };
        }
        let attempts = life.attempts.iter().take_while(|attempt| attempt.at_ms < DAY_MS);
        let attempts = u32::try_from(attempts.count()).unwrap_or(u32::MAX);
        let is_message = |wait: &&Wait| wait.after_attempt <= attempts && wait.messages > 0;
        let messages = waits.iter().filter(is_message).map(|wait| f64::from(wait.messages));
        let attempts = f64::from(attempts);
        Self {
            attempts,
            waits: messages.clone().map(|_| 1.0).sum(),
            messages: messages.sum(),
            ..Self::NONE
        }
    }

    /// The queue of the waits, all day.
    fn queue(&self, plan: &Plan, subscription: &Subscription) -> QueueLoad {
        let Plan { traffic, deployment } = plan;
        let bytes = traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
        let mapping = load::mapping_of_waits(deployment, bytes);
        let work = QueueWork {
            records: DELIVERIES * self.messages,
            attempts_per_record: if self.messages > 0.0 {
                (self.attempts / self.messages).min(1.0)
            } else {
                0.0
            },
            events_per_record: 1.0,
            processor: DISPATCH,
            memory_mb: deployment.memory_mb,
            fails: 1.0,
            sends: 1.0,
            in_place_ms: 0.0,
            answer_ms: traffic.answer_ms,
            failure_ms: failure_ms(traffic, subscription),
            max_concurrency: subscription.destination.max_concurrency.most,
        };
        QueueLoad::of(&work, &mapping, bytes)
    }
}

fn waiting(plan: &Plan, subscription: &Subscription, work: &Work) -> Vec<CostItem> {
    let deployment = &plan.deployment;
    let queue = work.queue(plan, subscription);
    let (sends, sent) = sends(plan, work, &queue);
    let mut items = vec![sqs_requests("waits sent", sends, sent)];
    items.extend(drained(&queue, ["waits received", "waits deleted"]));
    let formula = "sent, received and deleted above";
    items.push(surcharge(sends, &[&queue], formula));
    items.push(invoked("dispatch invoked", queue.invocations, "as received".to_owned()));
    items.push(running("dispatch for waits", &queue, deployment.memory_mb, deployment));
    let lines = [
        (work.put_offs, "put off", PUT_OFF_LINE_BYTES),
        (work.attempts, "failed attempts", FAILED_LINE_BYTES),
    ];
    items.extend(logs([("logs of deliveries", log_lines(deployment, DELIVERIES, &lines))]));
    items.push(requests(plan, DELIVERIES * work.attempts));
    items.extend(shared(plan, subscription, work, &queue));
    let bytes = plan.traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
    let messages = DELIVERIES * work.messages;
    let formula = format!("{} messages × {} B", count(messages), count(bytes));
    items.extend(nat_data(deployment, messages * bytes, formula));
    items.retain(|item| item.thousandths > 0);
    items
}

/// Requests that send the waits. Those after an attempt are sent alone, the others with those of their invocation.
fn sends(plan: &Plan, work: &Work, queue: &QueueLoad) -> (f64, String) {
    let bytes = plan.traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
    let together = f64::from(queue.fill).min(REQUEST_ENTRIES);
    let shared = work.messages - work.waits;
    let requests = work.waits * chunks(bytes) + shared / together * chunks(together * bytes);
    let formula = format!(
        "{} deliveries × ({} after attempts + {} others, {} a request)",
        count(DELIVERIES),
        decimals(work.waits),
        decimals(shared),
        count(together),
    );
    (DELIVERIES * requests, formula)
}

/// The requests that every process makes, whatever it does.
fn shared(
    plan: &Plan,
    subscription: &Subscription,
    work: &Work,
    queue: &QueueLoad,
) -> Vec<CostItem> {
    let idle = Work::NONE.queue(plan, subscription);
    let mut plan = plan.clone();
    plan.traffic.failing = f64::from(u8::from(subscription.destination.probation));
    let users = Users {
        queues: [&idle, queue],
        attempts: DELIVERIES * work.attempts,
        failure_ms: failure_ms(&plan.traffic, subscription),
        rate_limited: plan.traffic.rate_limited(subscription),
        concurrency_limited: plan.traffic.concurrency_limited(subscription),
    };
    let reads = subscriptions(&SubscriptionReads::of(&plan.deployment, users.queues));
    reads.into_iter().chain(table(&TableUse::of(&plan, &users))).collect()
}

fn dead_letters(plan: &Plan) -> Vec<CostItem> {
    let deployment = &plan.deployment;
    let bytes = plan.traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
    let queue =
        QueueLoad::of(&load::stored(DELIVERIES), &mapping_of_dead_letters(deployment), bytes);
    let sends = DELIVERIES * chunks(bytes);
    let sent = format!("{} dead letters", count(DELIVERIES));
    let mut items = vec![sqs_requests("dead letters sent", sends, sent)];
    items.extend(drained(&queue, ["dead letters received", "dead letters deleted"]));
    let formula = "sent, received and deleted above";
    items.push(surcharge(sends, &[&queue], formula));
    items.extend(storing(&queue, deployment));
    let lines = [(1.0, "dead letters", DEAD_LETTER_LINES_BYTES)];
    items.extend(logs([("logs of deliveries", log_lines(deployment, DELIVERIES, &lines))]));
    items.extend(stored(plan, DELIVERIES));
    items.retain(|item| item.thousandths > 0);
    items
}
