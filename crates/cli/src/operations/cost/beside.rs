//! Costs beside those of the load: deliveries that wait for a destination that is down, dead letters, and their replay. Each is
//! priced for a million, because their number does not depend on the load.
//!
//! With probation a delivery that waits makes no attempts: its messages and deferrals are those that the simulation counts
//! (`tests/tests/simulation/outage.rs`).

use super::lines::{self, Line, fair, logged, received, sum};
use super::load::{letters, message_bytes, work};
use super::measured::{
    DELIVERED_LINE_BYTES, PUT_OFF_LINE_BYTES, WAITING_MESSAGES, WAITING_PUT_OFFS,
};
use super::prices::{READ, SQS_REQUEST, WRITE};
use super::queue::{Queue, REQUEST_ENTRIES, Work, chunks};
use super::{DAY_S, Plan};

/// So many deliveries or dead letters.
pub(crate) const DELIVERIES: f64 = 1e6;
/// The costs of a replay of [`DELIVERIES`] with the defaults of `lastmile cost`, in whole dollars. A test computes it.
pub(crate) const REPLAY_DOLLARS: u64 = 3;
/// A dead letter is read for the count, and again to be sent.
const READS: f64 = 2.0;
/// The ledger is written before and after each chunk.
const LEDGER_WRITES: f64 = 2.0;
/// S3 lists so many keys in one request, at the price of a write.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
const LISTED_KEYS: f64 = 1_000.0;
/// About what the message of an end holds. Assumed.
const END_BYTES: f64 = 400.0;

/// The price of a million, in dollars.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Deliveries that wait a day for a destination that is down.
    pub(crate) waiting_day: f64,
    /// Dead letters that are stored and kept for a month.
    pub(crate) letters: f64,
    /// The replay of dead letters.
    pub(crate) replay: f64,
}

impl Beside {
    pub(crate) fn of(plan: &Plan) -> Self {
        let stored = letters(plan, DELIVERIES).queue();
        Self {
            waiting_day: sum(&waiting_day(plan)),
            letters: sum(&lines::letters(plan, &stored)),
            replay: sum(&replay(plan)),
        }
    }
}

/// Messages of so many deliveries that wait for a day.
fn waiting(plan: &Plan, deliveries: f64) -> Work {
    let records = deliveries * WAITING_MESSAGES;
    Work { attempts_per_record: 0.0, sends: 1.0, seconds: DAY_S, ..work(plan, records) }
}

/// Deliveries that may wait until their messages take the whole share of `Concurrency`.
pub(super) fn waiting_max(plan: &Plan) -> f64 {
    let of_one = waiting(plan, 1.0).queue_at_once().at_once_full;
    f64::from(plan.concurrency.retry) / of_one
}

fn waiting_day(plan: &Plan) -> Vec<Line> {
    let queue = waiting(plan, DELIVERIES).queue();
    let sends = sends_together(plan, &queue);
    let put_off = [(DELIVERIES * WAITING_PUT_OFFS, "put off", PUT_OFF_LINE_BYTES)];
    let mut lines = carried(&queue, sends);
    lines.push(fair(sends, &queue));
    lines.extend(lines::dispatched(&[("for waits", &queue)]));
    lines.extend(logged("logs of deliveries", &put_off));
    lines
}

/// Requests that send as many messages as a queue has: those of an invocation share requests.
fn sends_together(plan: &Plan, queue: &Queue) -> f64 {
    let together = f64::from(queue.fill).min(REQUEST_ENTRIES);
    queue.records / together * chunks(together * message_bytes(plan))
}

/// So many requests that send, and those that empty the queue.
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
        // The ends that one invocation receives share an object.
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
