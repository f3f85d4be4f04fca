//! What a load costs in a month and what it needs: one formula, from the load and from what `template.yaml` makes.
//!
//! Separate from the command because it is arithmetic: a [`Plan`] goes in, an [`Estimate`] comes out. The waits of a delivery
//! that fails are not computed here: [`delivery::explain`] runs the production state machine. Each wait is as many messages as
//! the longest delay of a message requires.
//!
//! Promises: the same input gives the same output on every machine, because averages use `+ - * /` alone. A test compares
//! [`template`] with the template, and fails when the template has a type of resource that nobody has looked at.
//!
//! Does not model bursts (the load is even), cold starts, hanging destinations, late responses, replies, batches of several
//! events in one request, event pollers, NAT gateways, metrics of a topic or a subscription, free tiers and volume discounts.
//! docs/scale.md has a price for most of these.
//!
//! Imports run one way: `beside`, `lines`, `needs` → `load` → `queue` → `template`, `measured`; `lines` → `prices`.

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

/// The days of a month.
pub(crate) const MONTH_DAYS: f64 = 30.0;
/// The seconds of a day.
pub(crate) const DAY_S: f64 = 86_400.0;

/// A load, and the settings of a deployment that change what it costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Events published in a month, evenly.
    pub(crate) events: f64,
    /// The probability that an attempt succeeds, independent of earlier attempts.
    pub(crate) success: f64,
    /// Matching subscriptions per event, on average.
    pub(crate) fan_out: f64,
    pub(crate) event_bytes: f64,
    /// Events that a publisher puts into one message.
    pub(crate) events_per_message: f64,
    /// Messages that a publisher sends in one request.
    pub(crate) publish_batch: f64,
    /// The response time of destinations.
    pub(crate) answer_ms: f64,
    /// `DispatchBatchWindow`.
    pub(crate) batch_window_s: u32,
    /// `Concurrency`.
    pub(crate) concurrency: Shares,
    /// `LogLevel` info: a log line also for deliveries that succeed at once.
    pub(crate) logs_all: bool,
}

/// What a load costs and needs.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// One delivery on average.
    pub(crate) average: Average,
    /// Deliveries in a month.
    pub(crate) deliveries: f64,
    /// The bill of a month.
    pub(crate) lines: Vec<Line>,
    pub(crate) needs: Vec<Need>,
    /// Deliveries that may wait for a destination that is down, so that none is attempted late.
    pub(crate) waiting_max: f64,
}

/// Estimates a month of this plan.
pub(crate) fn estimate(plan: &Plan) -> Estimate {
    let load = Load::of(plan);
    Estimate {
        lines: lines::lines(plan, &load),
        needs: needs::needs(plan, &load),
        waiting_max: beside::waiting_max(plan),
        deliveries: load.deliveries,
        average: load.average,
    }
}
