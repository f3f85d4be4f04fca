//! What has to be there at once, and how far it is to each limit.
//!
//! Separate because money does not tell it: by Little's law, what is somewhere on average is what
//! arrives in a second times how long it stays.

use delivery::explain::Life;
use delivery::time::duration::SECOND_MS;

use super::Plan;
use super::chain::{Average, as_f64};
use super::load::{LETTERS_CONCURRENCY, Load};
use super::queue::{DAY_S, Queue};
use super::report::{count, decimals};

/// Messages of a queue that are received and not deleted.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
const IN_FLIGHT_MAX: f64 = 120_000.0;
/// Invocations at once of an account, unless it has asked for more.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const ACCOUNT_CONCURRENCY: f64 = 1_000.0;
/// Writes in a second below one prefix: here, a subscription's hour.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html>
const WRITES_PER_PREFIX: f64 = 3_500.0;

/// Something that has to be there at once.
#[derive(Debug)]
pub(crate) struct Need {
    /// What.
    pub(crate) what: &'static str,
    /// How much of it, on average.
    pub(crate) amount: f64,
    /// The most there may be, and who says so; `None` where there is no limit.
    pub(crate) limit: Option<(f64, &'static str)>,
    /// How much of the limit that takes, when every batch is as full as it may be.
    pub(crate) share: f64,
    /// Where the amount comes from.
    pub(crate) how: String,
}

impl Need {
    fn free(what: &'static str, amount: f64, how: String) -> Self {
        Self { what, amount, limit: None, share: 0.0, how }
    }

    fn limited(
        what: &'static str,
        amount: f64,
        limit: f64,
        who: &'static str,
        how: String,
    ) -> Self {
        Self { what, amount, limit: Some((limit, who)), share: amount / limit, how }
    }
}

/// All of them. `life` is that of a delivery that always fails.
pub(crate) fn needs(plan: &Plan, life: &Life, average: &Average, load: &Load) -> Vec<Need> {
    let deployment = &plan.deployment;
    let [events, retries, letters] = [&load.events, &load.retries, &load.letters];
    let window_ms = f64::from(deployment.batch_window_s) * 1_000.0;
    let rate = |records: f64| records / DAY_S;
    let attempts = load.deliveries * average.attempts;
    let mut needs = vec![
        Need::free(
            "events a second",
            rate(plan.traffic.events),
            format!("{} ÷ 86,400 s", count(plan.traffic.events)),
        ),
        Need::free("attempts a second", rate(attempts), format!("{} ÷ 86,400 s", count(attempts))),
        concurrency(
            "invocations at once, events",
            events,
            deployment.events_concurrency,
            "EventsConcurrency",
        ),
        concurrency(
            "invocations at once, waits",
            retries,
            deployment.retry_concurrency,
            "RetryConcurrency",
        ),
        concurrency("invocations at once, letters", letters, LETTERS_CONCURRENCY, "the template"),
        account([events, retries, letters]),
        in_flight("in flight, events queue", events, window_ms),
        in_flight("in flight, retry queue", retries, window_ms),
        waiting(average, load),
    ];
    needs.extend(outage(plan, life, load));
    let writes = rate(load.blobs);
    let writes_how = format!("{} ÷ 86,400 s, all of one subscription", count(load.blobs));
    needs.push(Need::limited(
        "dead letters written a second",
        writes,
        WRITES_PER_PREFIX,
        "S3, per prefix",
        writes_how,
    ));
    needs
}

fn concurrency(what: &'static str, queue: &Queue, limit: u32, who: &'static str) -> Need {
    let how = format!(
        "{} invocations × {} ms ÷ 86,400 s; {} with full batches",
        count(queue.invocations),
        count(queue.invocation_ms),
        decimals(queue.concurrency_full)
    );
    let limit = f64::from(limit);
    Need {
        what,
        amount: queue.concurrency,
        limit: Some((limit, who)),
        share: queue.concurrency_full / limit,
        how,
    }
}

fn account(queues: [&Queue; 3]) -> Need {
    let at_once = queues.iter().map(|queue| queue.concurrency).sum();
    let full: f64 = queues.iter().map(|queue| queue.concurrency_full).sum();
    let how = format!("the three above; {} with full batches", decimals(full));
    let need = Need::limited(
        "invocations at once, all",
        at_once,
        ACCOUNT_CONCURRENCY,
        "a new account",
        how,
    );
    Need { share: full / ACCOUNT_CONCURRENCY, ..need }
}

fn in_flight(what: &'static str, queue: &Queue, window_ms: f64) -> Need {
    let each_ms = queue.invocation_ms + window_ms;
    let amount = queue.records / DAY_S * each_ms / 1_000.0;
    let how = format!("{} records ÷ 86,400 s × {} ms", count(queue.records), count(each_ms));
    Need::limited(what, amount, IN_FLIGHT_MAX, "SQS, per queue", how)
}

fn waiting(average: &Average, load: &Load) -> Need {
    let second = as_f64(SECOND_MS);
    let amount = load.deliveries / DAY_S * average.waiting_ms / second;
    let how = format!(
        "{} deliveries ÷ 86,400 s × {} s",
        count(load.deliveries),
        decimals(average.waiting_ms / second)
    );
    Need::free("delayed messages, on average", amount, how)
}

/// What waits when a destination comes back: everything of the outage that has not been given up.
fn outage(plan: &Plan, life: &Life, load: &Load) -> Option<Need> {
    let lost_ms = plan.traffic.down_ms.min(life.ended_ms);
    let amount =
        load.deliveries * plan.traffic.down_share / DAY_S * as_f64(lost_ms) / as_f64(SECOND_MS);
    let how = format!(
        "{} deliveries ÷ 86,400 s × {} s: the outage, or what the policy holds out",
        count(load.deliveries * plan.traffic.down_share),
        count(as_f64(lost_ms) / as_f64(SECOND_MS))
    );
    (lost_ms > 0).then(|| Need::free("delayed messages, outage's end", amount, how))
}

/// The limit that is nearest, with full batches; none where nothing is used.
pub(crate) fn first(needs: &[Need]) -> Option<&Need> {
    let loaded = needs.iter().filter(|need| need.limit.is_some() && need.share > 0.0);
    loaded.max_by(|one, other| one.share.total_cmp(&other.share))
}
