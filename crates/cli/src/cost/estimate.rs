//! An estimate: the steps in order, each from the results of those before it.

use delivery::explain::{Endpoint, explain, explain_jittered};
use delivery::subscription::Subscription;
use delivery::waits::Jitter;

use super::average::{self, AverageDelivery, Wait};
use super::cost_items::{CostItem, Total, alternatives, cost_items};
use super::load::Load;
use super::needs::{Need, needs};
use super::outage::Outage;
use super::pause::Pause;
use super::plan::{Plan, Traffic};

/// Half of the jitter that the policy allows: its average.
pub(super) const HALF_JITTER: Jitter = Jitter(u32::MAX / 2 + 1);
/// All of the jitter.
const FULL_JITTER: Jitter = Jitter(u32::MAX);

/// What the load costs and needs.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// The waits of the policy, each with the probability that a delivery reaches it.
    pub(crate) waits: Vec<Wait>,
    /// One delivery on average.
    pub(crate) average: AverageDelivery,
    /// The work of a day.
    pub(crate) load: Load,
    /// The bill of a day.
    pub(crate) items: Vec<CostItem>,
    /// The sum of the bill.
    pub(crate) total: Total,
    /// The bill of the same traffic through other services.
    pub(crate) alternatives: Vec<CostItem>,
    /// The cost of a million deliveries that wait a day for their destination.
    pub(crate) outage: Option<Outage>,
    /// The cost of a million deliveries that are set aside, and of their replay.
    pub(crate) pause: Pause,
    /// The capacity that is needed, and the limit of each.
    pub(crate) needs: Vec<Need>,
}

/// Estimates a day of this plan under the policy of a subscription.
pub(crate) fn estimate(plan: &Plan, subscription: &Subscription) -> Estimate {
    let Traffic { success, failure, down_ms, down_share, .. } = &plan.traffic;
    let endpoint = Endpoint { always: *failure, retry_after: None };
    let life = explain_jittered(subscription, &endpoint, 0, HALF_JITTER);
    let mut waits = average::waits(
        &explain(subscription, &endpoint, 0),
        &life,
        &explain_jittered(subscription, &endpoint, 0, FULL_JITTER),
    );
    let down = average::share_of_day(*down_ms) * down_share;
    let reached = average::reached(&life, 1.0 - success, *down_ms, down);
    // Without a delay the first attempt needs no wait, and `reached` is one ahead of the waits.
    let ahead = usize::from(!average::starts_later(&life));
    for (wait, reached) in waits.iter_mut().zip(reached.iter().skip(ahead)) {
        wait.reached = *reached;
    }
    let average = AverageDelivery::of(&life, &waits, &reached);
    let load = Load::of(plan, subscription, &average);
    let items = cost_items(plan, &average, &load);
    Estimate {
        total: Total::of(&items, plan.traffic.events),
        outage: Outage::of(plan, subscription, &life, &waits),
        pause: Pause::of(plan, subscription),
        needs: needs(plan, subscription, &life, &average, &load),
        alternatives: alternatives(plan, &average, &waits),
        waits,
        average,
        load,
        items,
    }
}
