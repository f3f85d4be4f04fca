//! What a load costs and needs: an estimate whose every step can be checked by hand.
//!
//! Separate from the command because it is arithmetic: a [`plan::Plan`] and the policy of a
//! subscription go in, an [`estimate::Estimate`] comes out. The policy's waits are not computed
//! here: [`delivery::explain`] runs the production state machine over a delivery that always fails,
//! and a wait becomes messages by the delay that `adapters::queues` gives each of them.
//!
//! Promises: the same input gives the same output on every machine. Averages are double precision
//! and use `+ - * /` alone; a quantity is rounded to whole units or thousandths before it is
//! multiplied, and costs are exact whole numbers from there on.
//!
//! Does not model bursts (the load is spread evenly over the day), cold starts, probation outside `outage`, late
//! answers, batches of several events in one request, replies, free tiers and volume discounts.
//!
//! Imports run one way: `report` → `levers` → `estimate` → `needs`, `outage`, `pause` → `cost_items` → `load` → `subscription_reads` →
//! `table_use` → `queue_load` → `average`, `plan`, `prices`, `measured`.

mod average;
mod cost_items;
pub(crate) mod estimate;
mod levers;
mod load;
mod measured;
#[cfg(test)]
mod measuring;
mod needs;
mod outage;
pub(crate) mod pause;
pub(crate) mod plan;
mod prices;
mod queue_load;
pub(crate) mod report;
mod subscription_reads;
mod table_use;
#[cfg(test)]
mod tests;
