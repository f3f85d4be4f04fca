//! Estimates the monthly cost of a load and the capacity that it needs. The estimate depends only
//! on the load, the prices, and the resources of `template.yaml`.
//!
//! Separate from the command because the estimate is a pure function from a [`Plan`] to an
//! [`Estimate`]. [`delivery::explain`] runs the production state machine to compute the waits of a
//! failing delivery. The maximum delay of a message determines the number of messages of a wait.
//!
//! Promises: the same input gives the same output on every machine, because averages only use the
//! operators `+`, `-`, `*` and `/`. A test compares [`template`] with the template, and fails if
//! the template has a new type of resource.
//!
//! The estimate assumes an even load. It does not model cold starts, destinations that hang or
//! respond late, or replies. Nor does it model batches of several events in one request, event
//! pollers, NAT gateways, metrics of a topic or a subscription, free tiers or volume discounts.
//! docs/reference/scale.md has a price for most of these.
//!
//! Imports run one way: `beside`, `lines`, `needs` → `load` → `queue` → `template`, `measured`;
//! `lines` → `prices`.

pub(crate) mod beside;
mod lines;
mod load;
mod measured;
#[cfg(test)]
mod measuring;
mod needs;
mod prices;
mod queue;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use self::lines::{Line, sum};
pub(crate) use self::load::Average;
use self::load::Load;
pub(crate) use self::needs::{Need, tightest};
pub(crate) use self::prices::PRICES_FROM;
use crate::operations::queues::Shares;

pub(crate) const MONTH_DAYS: f64 = 30.0;
pub(crate) const DAY_S: f64 = 86_400.0;

/// A load, and the settings of a deployment that determine its cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of events published per month, evenly distributed.
    pub(crate) events: f64,
    /// The success probability of an attempt, independent of earlier attempts.
    pub(crate) success: f64,
    /// The average number of matching subscriptions per event.
    pub(crate) fan_out: f64,
    pub(crate) event_bytes: f64,
    /// The number of events that a publisher puts into one message.
    pub(crate) events_per_message: f64,
    /// The number of messages that a publisher sends in one request.
    pub(crate) publish_batch: f64,
    /// The response time of destinations, in milliseconds.
    pub(crate) answer_ms: f64,
    /// The template parameter `DispatchBatchWindow`.
    pub(crate) batch_window_s: u32,
    /// The row of `Shares` for the parameter `Concurrency`.
    pub(crate) concurrency: Shares,
    /// True if `LogLevel` is `info`, which also logs deliveries that succeed at the first attempt.
    pub(crate) logs_all: bool,
}

/// The estimated cost of a load, and the capacity that it needs.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// The average delivery: its attempts, its messages, and its probability of becoming a dead
    /// letter.
    pub(crate) average: Average,
    /// The number of deliveries per month.
    pub(crate) deliveries: f64,
    /// The lines of the bill for a month.
    pub(crate) lines: Vec<Line>,
    pub(crate) needs: Vec<Need>,
    /// The maximum number of deliveries that may wait for an unavailable destination without
    /// delaying attempts.
    pub(crate) waiting_max: f64,
}

/// Estimates the cost and the capacity for a month of this load.
pub(crate) fn estimate(plan: &Plan) -> Estimate {
    let load = Load::new(plan);
    Estimate {
        lines: lines::lines(plan, &load),
        needs: needs::needs(plan, &load),
        waiting_max: beside::waiting_max(plan),
        deliveries: load.deliveries,
        average: load.average,
    }
}
