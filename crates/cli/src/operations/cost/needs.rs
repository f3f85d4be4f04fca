//! Computes the capacity that a load needs, and its share of each limit.
//!
//! Separate from the bill, which does not show limits.

use super::load::Load;
use super::queue::Queue;
use super::{DAY_S, MONTH_DAYS, Plan};
use crate::terminal::numbers::{count, decimals};

/// The maximum number of messages that a queue may have in flight: received but not deleted.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
const IN_FLIGHT_MAX: f64 = 120_000.0;
/// The maximum number of writes per second that S3 accepts below one prefix. The dead letters of
/// one subscription and hour share a prefix.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html>
const WRITES_PER_PREFIX_MAX: f64 = 3_500.0;

/// A capacity that the load needs, compared with its limit.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) name: &'static str,
    /// The average use of the capacity, in the unit of `limit`.
    pub(crate) amount: f64,
    pub(crate) limit: f64,
    /// The party that sets the limit: an AWS service, or a parameter of the stack.
    pub(crate) set_by: &'static str,
    /// The used share of the limit if all batches are full.
    pub(crate) share: f64,
    /// The formula of the amount, for people.
    pub(crate) how: String,
}

pub(super) fn needs(plan: &Plan, load: &Load) -> Vec<Need> {
    let window_ms = f64::from(plan.batch_window_s) * 1_000.0;
    let in_flight_ms = load.events.invocation_ms + window_ms;
    let in_flight = load.events.rate * in_flight_ms / 1_000.0;
    let writes = load.letters.records / (MONTH_DAYS * DAY_S);
    let row = plan.concurrency;
    vec![
        at_once("invocations at once, events", &load.events, row.events, "Concurrency, events"),
        at_once("invocations at once, waits", &load.waits, row.retry, "Concurrency, waits"),
        at_once(
            "invocations at once, letters",
            &load.letters,
            row.dead_letter,
            "Concurrency, letters",
        ),
        Need {
            name: "in flight, events queue",
            amount: in_flight,
            limit: IN_FLIGHT_MAX,
            set_by: "SQS, per queue",
            share: in_flight / IN_FLIGHT_MAX,
            how: format!("{} per second × {} ms", decimals(load.events.rate), count(in_flight_ms)),
        },
        Need {
            name: "dead letters written per second",
            amount: writes,
            limit: WRITES_PER_PREFIX_MAX,
            set_by: "S3, per prefix",
            share: writes / WRITES_PER_PREFIX_MAX,
            how: "all of one subscription".to_owned(),
        },
    ]
}

fn at_once(name: &'static str, queue: &Queue, limit: u32, set_by: &'static str) -> Need {
    let limit = f64::from(limit);
    let how = format!(
        "{} per second ÷ {} × {} ms; {} with full batches",
        decimals(queue.rate),
        queue.fill,
        count(queue.invocation_ms),
        decimals(queue.at_once_full)
    );
    Need { name, amount: queue.at_once, limit, set_by, share: queue.at_once_full / limit, how }
}

/// Returns the capacity that is closest to its limit; `None` without load.
pub(crate) fn tightest(needs: &[Need]) -> Option<&Need> {
    let loaded = needs.iter().filter(|need| need.share > 0.0);
    loaded.max_by(|left, right| left.share.total_cmp(&right.share))
}
