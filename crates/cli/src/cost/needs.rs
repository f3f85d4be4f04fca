//! The capacity that a load needs, and how close each need is to its limit.
//!
//! Separate because a bill does not show it. By Little's law, the average number of items in a
//! system is their arrival rate times the time that each stays.

use delivery::explain::Life;
use delivery::subscription::Subscription;
use delivery::time::duration::SECOND_MS;

use super::average::{AverageDelivery, as_f64};
use super::load::{Load, failure_ms};
use super::plan::{Deployment, Plan, Pollers};
use super::queue_load::{DAY_S, QueueLoad};
use crate::numbers::{count, decimals};

/// The most messages of a queue that are received and not yet deleted.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
const IN_FLIGHT: Limit = (120_000.0, "SQS, per queue");
/// The concurrency quota of a new account: it is raised on request.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const NEW_ACCOUNT_CONCURRENCY: u32 = 10;
/// The most writes per second below one prefix: here, an hour of a subscription.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html>
const WRITES_PER_PREFIX: Limit = (3_500.0, "S3, per prefix");

/// A limit and who sets it.
type Limit = (f64, &'static str);

/// A capacity that the load needs.
#[derive(Debug)]
pub(crate) struct Need {
    /// What is needed.
    pub(crate) what: &'static str,
    /// How much of it, on average.
    pub(crate) amount: f64,
    /// `None` where there is no limit.
    pub(crate) limit: Option<Limit>,
    /// The share of the limit that is used with full batches.
    pub(crate) share: f64,
    /// The formula of the amount, for people.
    pub(crate) formula: String,
}

impl Need {
    fn unlimited(what: &'static str, amount: f64, formula: String) -> Self {
        Self { what, amount, limit: None, share: 0.0, formula }
    }

    fn limited(what: &'static str, amount: f64, limit: Limit, formula: String) -> Self {
        Self { what, amount, limit: Some(limit), share: amount / limit.0, formula }
    }
}

/// All needs. `life` is that of a delivery that always fails.
pub(crate) fn needs(
    plan: &Plan,
    subscription: &Subscription,
    life: &Life,
    average: &AverageDelivery,
    load: &Load,
) -> Vec<Need> {
    let deployment = &plan.deployment;
    let [events, retries, dead_letters] = [&load.events, &load.retries, &load.dead_letters];
    let window_ms = f64::from(deployment.batch_window_s) * 1_000.0;
    let per_second = |what, a_day: f64| {
        Need::unlimited(what, a_day / DAY_S, format!("{} ÷ 86,400 s", count(a_day)))
    };
    let attempts = load.deliveries * average.attempts;
    let events_limit = match deployment.events_pollers {
        Some(_) => "10 × EventsPollers",
        None => "Concurrency, events",
    };
    let events_limit = (f64::from(deployment.events_at_once()), events_limit);
    let retries_limit = (f64::from(deployment.concurrency.retry), "Concurrency, waits");
    let dead_letters_limit =
        (f64::from(deployment.concurrency.dead_letter), "Concurrency, letters");
    let mut needs = vec![
        per_second("events a second", plan.traffic.events),
        per_second("attempts a second", attempts),
        concurrency("invocations at once, events", events, events_limit),
        concurrency("invocations at once, waits", retries, retries_limit),
        concurrency("invocations at once, letters", dead_letters, dead_letters_limit),
        account(deployment, [events, retries, dead_letters]),
        in_flight("in flight, events queue", events, window_ms),
        in_flight("in flight, retry queue", retries, window_ms),
        waiting(average, load),
    ];
    needs.extend(of_destinations(plan, subscription, average, attempts));
    needs.extend(deployment.events_pollers.map(|pollers| event_pollers(pollers, events)));
    needs.extend(outage(plan, life, load));
    let writes = load.blobs / DAY_S;
    let formula = format!("{} ÷ 86,400 s, all of one subscription", count(load.blobs));
    needs.push(Need::limited("dead letters written a second", writes, WRITES_PER_PREFIX, formula));
    needs
}

fn concurrency(what: &'static str, queue: &QueueLoad, limit: Limit) -> Need {
    let formula = format!(
        "{} invocations × {} ms ÷ 86,400 s; {} with full batches",
        count(queue.invocations),
        count(queue.invocation_ms),
        decimals(queue.concurrency_full)
    );
    let need = Need::limited(what, queue.concurrency, limit, formula);
    Need { share: queue.concurrency_full / limit.0, ..need }
}

/// Provisioned event pollers of the events queue: each has a limit of its own for invocations, bytes and polls.
fn event_pollers(pollers: Pollers, events: &QueueLoad) -> Need {
    let formula = format!(
        "the most of invocations at once ÷ 10, MB a second, polls a second ÷ 10; {} with full batches",
        decimals(events.pollers_full)
    );
    let limit = (f64::from(pollers.maximum), "EventsPollers");
    let need = Need::limited("event pollers, events", events.pollers, limit, formula);
    Need { share: events.pollers_full / limit.0, ..need }
}

fn account(deployment: &Deployment, queues: [&QueueLoad; 3]) -> Need {
    let at_once = queues.iter().map(|queue| queue.concurrency).sum();
    let full: f64 = queues.iter().map(|queue| queue.concurrency_full).sum();
    let formula = format!("the three above; {} with full batches", decimals(full));
    let is_new = deployment.account_concurrency <= NEW_ACCOUNT_CONCURRENCY;
    let who = if is_new { "a new account" } else { "the account" };
    let limit = (f64::from(deployment.account_concurrency), who);
    let need = Need::limited("invocations at once, all", at_once, limit, formula);
    Need { share: full / limit.0, ..need }
}

/// The limits of the subscription: all destinations that have one together.
fn of_destinations(
    plan: &Plan,
    subscription: &Subscription,
    average: &AverageDelivery,
    attempts: f64,
) -> Vec<Need> {
    let (traffic, destination) = (&plan.traffic, &subscription.destination);
    let (rated, limited) =
        (traffic.rate_limited(subscription), traffic.concurrency_limited(subscription));
    let mut needs = Vec::new();
    if let Some(most) = destination.max_per_second.filter(|_| rated > 0.0) {
        let limit = (f64::from(most) * rated, "maxPerSecond");
        let formula = format!("{} ÷ 86,400 s", count(attempts));
        needs.push(Need::limited("requests a second", attempts / DAY_S, limit, formula));
    }
    if destination.max_concurrency.is_shared && limited > 0.0 {
        let failed = average.failures / average.attempts;
        let attempt_ms =
            traffic.answer_ms * (1.0 - failed) + failure_ms(traffic, subscription) * failed;
        let limit = (f64::from(destination.max_concurrency.most) * limited, "maxConcurrency");
        let formula = format!("{} ÷ 86,400 s × {} ms", count(attempts), count(attempt_ms));
        let amount = attempts / DAY_S * attempt_ms / as_f64(SECOND_MS);
        needs.push(Need::limited("requests at once", amount, limit, formula));
    }
    needs
}

fn in_flight(what: &'static str, queue: &QueueLoad, window_ms: f64) -> Need {
    let each_ms = queue.invocation_ms + window_ms;
    let amount = queue.records / DAY_S * each_ms / 1_000.0;
    let formula = format!("{} records ÷ 86,400 s × {} ms", count(queue.records), count(each_ms));
    Need::limited(what, amount, IN_FLIGHT, formula)
}

fn waiting(average: &AverageDelivery, load: &Load) -> Need {
    let second = as_f64(SECOND_MS);
    let amount = load.deliveries / DAY_S * average.waiting_ms / second;
    let formula = format!(
        "{} deliveries ÷ 86,400 s × {} s",
        count(load.deliveries),
        decimals(average.waiting_ms / second)
    );
    Need::unlimited("delayed messages, on average", amount, formula)
}

/// Messages that wait when a destination is up again: all of the outage that were not dead-lettered.
fn outage(plan: &Plan, life: &Life, load: &Load) -> Option<Need> {
    let lost_ms = plan.traffic.down_ms.min(life.ended_ms);
    let amount =
        load.deliveries * plan.traffic.down_share / DAY_S * as_f64(lost_ms) / as_f64(SECOND_MS);
    let formula = format!(
        "{} deliveries ÷ 86,400 s × {} s: the outage, or how long the policy retries",
        count(load.deliveries * plan.traffic.down_share),
        count(as_f64(lost_ms) / as_f64(SECOND_MS))
    );
    (lost_ms > 0).then(|| Need::unlimited("delayed messages, outage's end", amount, formula))
}

/// The need that is closest to its limit with full batches; `None` without load.
pub(crate) fn tightest(needs: &[Need]) -> Option<&Need> {
    let loaded = needs.iter().filter(|need| need.limit.is_some() && need.share > 0.0);
    loaded.max_by(|one, other| one.share.total_cmp(&other.share))
}
