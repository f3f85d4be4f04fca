//! Estimates costs that do not depend on the load: those of deliveries that wait for an unavailable
//! destination, of stored dead letters, and of replays. Each cost is per million deliveries or dead
//! letters.
//!
//! During probation, a waiting delivery makes no attempts. The numbers of its messages and
//! deferrals come from a simulation (`tests/tests/simulation/outage.rs`).

use super::lines::{self, Line, fair, logged, received, sum};
use super::load::{letters, message_bytes, work};
use super::measured::{
    DELIVERED_LINE_BYTES, PUT_OFF_LINE_BYTES, WAITING_MESSAGES, WAITING_PUT_OFFS,
};
use super::prices::{READ, SQS_REQUEST, WRITE};
use super::queue::{Queue, REQUEST_ENTRIES, Work, chunks};
use super::{DAY_S, Plan};

/// The number of deliveries or dead letters to which each cost here applies.
pub(crate) const DELIVERIES: f64 = 1e6;
/// The cost of a replay of [`DELIVERIES`] dead letters, in whole dollars, with the defaults of
/// `lastmile cost`. A test computes the value.
pub(crate) const REPLAY_DOLLARS: u64 = 3;
/// The number of times that a replay reads each dead letter: once to count it, once to send it.
const READS: f64 = 2.0;
/// The number of times that a replay writes its ledger for each chunk: before and after sending.
const LEDGER_WRITES: f64 = 2.0;
/// The number of keys that S3 lists in one request. A list request costs as much as a write.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
const LISTED_KEYS: f64 = 1_000.0;
/// The assumed size of the message that reports the outcome of a replayed delivery.
const END_BYTES: f64 = 400.0;

/// Costs per million deliveries or dead letters, in dollars.
#[derive(Debug)]
pub(crate) struct Beside {
    /// The cost of deliveries that wait for an unavailable destination for a day.
    pub(crate) waiting_day: f64,
    /// The cost of writing dead letters and storing them for a month.
    pub(crate) letters: f64,
    /// The cost of replaying dead letters.
    pub(crate) replay: f64,
}

impl Beside {
    pub(crate) fn new(plan: &Plan) -> Self {
        let stored = letters(plan, DELIVERIES).queue();
        Self {
            waiting_day: sum(&waiting_day(plan)),
            letters: sum(&lines::letters(plan, &stored)),
            replay: sum(&replay(plan)),
        }
    }
}

/// Estimates the messages of this many deliveries that wait for a day.
fn waiting(plan: &Plan, deliveries: f64) -> Work {
    let records = deliveries * WAITING_MESSAGES;
    Work { attempts_per_record: 0.0, sends: 1.0, seconds: DAY_S, ..work(plan, records) }
}

/// Returns the number of waiting deliveries whose messages use the whole share of `Concurrency`
/// that the retry queue has. If more deliveries wait, their attempts are late.
pub(super) fn waiting_max(plan: &Plan) -> f64 {
    let of_one = waiting(plan, 1.0).queue_at_once().at_once_full;
    f64::from(plan.concurrency.retry) / of_one
}

fn waiting_day(plan: &Plan) -> Vec<Line> {
    let queue = waiting(plan, DELIVERIES).queue();
    let sends = sends_together(plan, &queue);
    let put_off = [(DELIVERIES * WAITING_PUT_OFFS, "deferred", PUT_OFF_LINE_BYTES)];
    let mut lines = carried(&queue, sends);
    lines.push(fair(sends, &queue));
    lines.extend(lines::dispatched(&[("for waits", &queue)]));
    lines.extend(logged("logs of deliveries", &put_off));
    lines
}

/// Returns the number of billed send requests if each record of the queue causes one message.
/// Messages of one invocation share requests.
fn sends_together(plan: &Plan, queue: &Queue) -> f64 {
    let together = f64::from(queue.fill).min(REQUEST_ENTRIES);
    queue.records / together * chunks(together * message_bytes(plan))
}

/// Returns the cost of these send requests, and of the requests that receive and delete the
/// messages.
fn carried(queue: &Queue, sends: f64) -> Vec<Line> {
    let sent = Line::new("messages sent", sends, &SQS_REQUEST, "");
    vec![sent, received("messages received, deleted", queue)]
}

fn replay(plan: &Plan) -> Vec<Line> {
    let deliveries = Work { sends: 1.0, ..work(plan, DELIVERIES) }.queue_at_once();
    let ends = Work { bytes: END_BYTES, ..letters(plan, DELIVERIES) }.queue_at_once();
    let chunked = DELIVERIES / REQUEST_ENTRIES;
    let mut lines = vec![
        Line::new("dead letters read", READS * DELIVERIES, &READ, ""),
        Line::new("dead letters listed", DELIVERIES / LISTED_KEYS, &WRITE, ""),
        Line::new("ledger written", LEDGER_WRITES * chunked, &WRITE, ""),
        // The outcomes that one invocation receives are stored in one object.
        Line::new("ends written", chunked, &WRITE, ""),
        lines::requests(plan, DELIVERIES),
    ];
    lines.extend(carried(&deliveries, sends_together(plan, &deliveries)));
    lines.extend(lines::dispatched(&[("for replays", &deliveries)]));
    lines.extend(logged("logs", &[(DELIVERIES, "delivered", DELIVERED_LINE_BYTES)]));
    lines.extend(carried(&ends, chunked));
    lines.extend(lines::stored(&ends));
    lines
}
