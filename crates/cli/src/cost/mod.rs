//! What a load costs and needs: an estimate on paper, every step of which can be followed.
//!
//! Separate from the verb because it is arithmetic: a [`Plan`] and the policy of a subscription go
//! in, an [`Estimate`] comes out. The policy's waits are not computed here. The life of a delivery
//! that always fails is asked from [`delivery::explain`], which drives the machine of production; a
//! wait becomes messages by the delay that `adapters::queues` gives each of them.
//!
//! Promises: the same input gives the same output on every machine. Averages are double precision,
//! made of `+ - * /` alone; a quantity is rounded to whole units or thousandths before it is
//! multiplied, and money is exact whole numbers from there on, so that each printed line can be
//! checked by hand.
//!
//! Does not know: bursts (everything is spread evenly over the day), cold starts, probation, late
//! answers, batches of several events in one request, replies, what the free tiers and volume
//! discounts take off.

mod chain;
mod lines;
mod load;
mod needs;
mod prices;
mod queue;
pub(crate) mod report;
#[cfg(test)]
mod tests;

pub(crate) use chain::{Average, Outage, Wait};
use delivery::explain::{Always, Endpoint, explain, explain_jittered};
use delivery::subscription::Subscription;
use delivery::subscription::schedule::Jitter;
use delivery::time::duration::DAY_MS;
pub(crate) use lines::{Line, Total, lines, others};
pub(crate) use load::Load;
pub(crate) use needs::{Need, needs};
pub(crate) use prices::{PRICES_FROM, dollars};

/// The middle of what the dice may show: half of the jitter that the policy allows.
const MIDDLE: Jitter = Jitter(u32::MAX / 2 + 1);
/// All of the jitter.
const MOST: Jitter = Jitter(u32::MAX);

/// What comes in, and how destinations behave.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    /// Events published in a day, evenly.
    pub(crate) events: f64,
    /// Subscriptions that want an event, on average.
    pub(crate) fan_out: f64,
    /// The probability that an attempt succeeds while its destination is up, whatever happened
    /// before.
    pub(crate) success: f64,
    /// How an attempt ends that does not succeed.
    pub(crate) failure: Always,
    /// How long a destination is down on this day.
    pub(crate) down_ms: u64,
    /// The part of the deliveries whose destination is down then.
    pub(crate) down_share: f64,
    /// The size of an event.
    pub(crate) event_bytes: f64,
    /// Events that a publisher sends in one request.
    pub(crate) publish_batch: f64,
    /// How long an answer takes.
    pub(crate) answer_ms: f64,
}

/// The parameters of the template that matter here, and what is told and kept.
#[derive(Debug, Clone)]
pub(crate) struct Deployment {
    /// `DispatchBatchSize`.
    pub(crate) batch_size: u32,
    /// `DispatchBatchWindow`.
    pub(crate) batch_window_s: u32,
    /// `EventsConcurrency`.
    pub(crate) events_concurrency: u32,
    /// `RetryConcurrency`.
    pub(crate) retry_concurrency: u32,
    /// `MemorySize` of dispatch.
    pub(crate) memory_mb: u32,
    /// `Architecture` is arm64, else x86_64.
    pub(crate) arm64: bool,
    /// `FairQueues`.
    pub(crate) fair_queues: bool,
    /// `LogLevel` shows a line per attempt and per end.
    pub(crate) logs_attempts: bool,
    /// Topics with traffic.
    pub(crate) topics: f64,
    /// Subscriptions with traffic.
    pub(crate) subscriptions: f64,
    /// `MetricsPerSubscription`.
    pub(crate) metrics_per_subscription: bool,
    /// How long dead letters are kept.
    pub(crate) letters_kept_ms: u64,
}

/// A question: this load, on this deployment.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) traffic: Traffic,
    pub(crate) deployment: Deployment,
}

/// The answer.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// The waits of the policy, and the probability that a delivery comes to each.
    pub(crate) waits: Vec<Wait>,
    /// One delivery on average.
    pub(crate) average: Average,
    /// What the parts of the deployment have to do in a day.
    pub(crate) load: Load,
    /// The bill of a day.
    pub(crate) lines: Vec<Line>,
    /// What it comes to.
    pub(crate) total: Total,
    /// What else would ask for the same.
    pub(crate) others: Vec<Line>,
    /// What has to be there, and how far it is to the limits.
    pub(crate) needs: Vec<Need>,
}

/// Estimates a day of this plan under the policy of a subscription.
pub(crate) fn estimate(plan: &Plan, subscription: &Subscription) -> Estimate {
    let Traffic { success, failure, down_ms, down_share, .. } = &plan.traffic;
    let endpoint = Endpoint { always: *failure, retry_after: None };
    let mut waits = chain::waits(
        &explain(subscription, &endpoint, 0),
        &explain_jittered(subscription, &endpoint, 0, MIDDLE),
        &explain_jittered(subscription, &endpoint, 0, MOST),
    );
    let life = explain_jittered(subscription, &endpoint, 0, MIDDLE);
    let outage = Outage { lasts_ms: *down_ms, day_ms: DAY_MS };
    let down = outage.share_of_day() * down_share;
    let reached = chain::reached(&life, 1.0 - success, &outage, down);
    for (wait, reached) in waits.iter_mut().zip(reached.iter().skip(1)) {
        wait.reached = *reached;
    }
    let average = Average::of(&life, &waits, &reached);
    let load = Load::of(plan, subscription, &average);
    let lines = lines(plan, &average, &load);
    let total = Total::of(&lines, plan.traffic.events);
    let needs = needs(plan, &life, &average, &load);
    Estimate { others: others(plan, &average, &waits), waits, average, load, lines, total, needs }
}
