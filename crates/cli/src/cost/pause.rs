//! A pause: what a million deliveries cost that are set aside as dead letters, and their replay.
//!
//! Separate from an outage, in which deliveries wait in queues: what is set aside waits in the container, and costs
//! nothing while nobody looks at it but its storage.

use delivery::subscription::Subscription;

use super::cost_items::{
    CostItem, DEAD_LETTER_LINES_BYTES, drained, invoked, log_lines, logs, requests, running,
    sqs_requests, stored, storing,
};
use super::load::{self, DISPATCH, MESSAGE_OVERHEAD_BYTES, failure_ms};
use super::measured::DELIVERED_LINE_BYTES;
use super::plan::Plan;
use super::prices::{GET, PUT};
use super::queue_load::{QueueLoad, QueueWork, REQUEST_ENTRIES, chunks};
use crate::numbers::count;

/// Deliveries that are set aside.
pub(crate) const DELIVERIES: f64 = 1e6;
/// The costs of a replay of [`DELIVERIES`] with the defaults of `lastmile cost`, in whole dollars. A test computes it.
pub(crate) const REPLAY_DOLLARS: u64 = 3;
/// S3 lists so many keys in one request.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
const LISTED_KEYS: f64 = 1_000.0;
/// A dead letter is read for the count, and again to be sent.
const READS: f64 = 2.0;
/// The ledger is written before and after each chunk.
const LEDGER_WRITES: f64 = 2.0;
/// About what the message of an end holds. Assumed.
const END_BYTES: f64 = 400.0;

/// The cost of a pause.
#[derive(Debug)]
pub(crate) struct Pause {
    /// Storing the dead letters, and keeping them for a month.
    pub(crate) set_aside: Vec<CostItem>,
    /// Replaying all of them.
    pub(crate) replay: Vec<CostItem>,
}

impl Pause {
    /// The cost for deliveries of this subscription.
    pub(super) fn of(plan: &Plan, subscription: &Subscription) -> Self {
        let [mut set_aside, mut replay] = [set_aside(plan), replay(plan, subscription)];
        [&mut set_aside, &mut replay]
            .into_iter()
            .for_each(|items| items.retain(|item| item.thousandths > 0));
        Self { set_aside, replay }
    }
}

/// A dead letter each.
fn set_aside(plan: &Plan) -> Vec<CostItem> {
    let bytes = plan.traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
    // They come as evenly as the events.
    let work = load::stored(DELIVERIES);
    let queue = QueueLoad::of(&work, &load::mapping_of_dead_letters(&plan.deployment), bytes);
    let mut items = carried(plan, "dead letters sent", (&queue, bytes), DEAD_LETTER_LINES_BYTES);
    items.extend(stored(plan, DELIVERIES));
    items
}

fn replay(plan: &Plan, subscription: &Subscription) -> Vec<CostItem> {
    let deployment = &plan.deployment;
    let bytes = plan.traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
    let queue = replay_queue(plan, subscription);
    let all = count(DELIVERIES);
    let sends = DELIVERIES / REQUEST_ENTRIES * chunks(REQUEST_ENTRIES * bytes);
    let read = format!("{all} dead letters, for the count and to be sent");
    let ledger = format!("{all} dead letters ÷ {REQUEST_ENTRIES}, before and after sending");
    let mut items = vec![
        CostItem::new("dead letters read", READS * DELIVERIES, &GET, read),
        // S3 lists at the price of a write.
        CostItem::new(
            "dead letters listed",
            DELIVERIES / LISTED_KEYS,
            &PUT,
            "1,000 keys a page".into(),
        ),
        CostItem::new("ledger written", LEDGER_WRITES * DELIVERIES / REQUEST_ENTRIES, &PUT, ledger),
        sqs_requests("deliveries sent", sends, format!("{all} dead letters, 10 a request")),
    ];
    items.extend(drained(&queue, ["deliveries received", "deliveries deleted"]));
    items.push(invoked("dispatch invoked", queue.invocations, "as received".to_owned()));
    items.push(running("dispatch for replays", &queue, deployment.memory_mb, deployment));
    let lines = [(1.0, "delivered", DELIVERED_LINE_BYTES)];
    items.extend(logs([("logs of deliveries", log_lines(deployment, DELIVERIES, &lines))]));
    items.push(requests(plan, DELIVERIES));
    let ends = load::stored(DELIVERIES);
    let ends = QueueLoad::at_once(&ends, &load::mapping_of_dead_letters(deployment), END_BYTES);
    items.extend(carried(plan, "ends sent", (&ends, END_BYTES), 0.0));
    let together =
        format!("{all} ends ÷ {REQUEST_ENTRIES}: those of one invocation share an object");
    items.push(CostItem::new("ends written", DELIVERIES / REQUEST_ENTRIES, &PUT, together));
    items
}

/// Carries a million messages of this size through the dead-letter queue, with a log line of these bytes each.
/// Messages of one invocation share requests.
fn carried(
    plan: &Plan,
    sent: &'static str,
    (queue, bytes): (&QueueLoad, f64),
    line_bytes: f64,
) -> Vec<CostItem> {
    let deployment = &plan.deployment;
    let sends = DELIVERIES / REQUEST_ENTRIES * chunks(REQUEST_ENTRIES * bytes);
    let how = format!("{} deliveries, 10 a request", count(DELIVERIES));
    let mut items = vec![sqs_requests(sent, sends, how)];
    items.extend(drained(queue, ["messages received", "messages deleted"]));
    items.extend(storing(queue, deployment));
    let lines = [(f64::from(u8::from(line_bytes > 0.0)), "dead letters", line_bytes)];
    items.extend(logs([("logs of dead letters", log_lines(deployment, DELIVERIES, &lines))]));
    items
}

/// The retry queue while everything is replayed.
fn replay_queue(plan: &Plan, subscription: &Subscription) -> QueueLoad {
    let Plan { traffic, deployment } = plan;
    let bytes = traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
    let mapping = load::mapping_of_waits(deployment, bytes);
    let work = QueueWork {
        records: DELIVERIES,
        attempts_per_record: 1.0,
        events_per_record: 1.0,
        processor: DISPATCH,
        memory_mb: deployment.memory_mb,
        fails: 0.0,
        sends: 1.0,
        in_place_ms: 0.0,
        answer_ms: traffic.answer_ms,
        failure_ms: failure_ms(traffic, subscription),
        max_concurrency: subscription.destination.max_concurrency.most,
    };
    QueueLoad::at_once(&work, &mapping, bytes)
}
