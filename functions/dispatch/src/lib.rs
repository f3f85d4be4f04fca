//! dispatch: delivers the events of queue records to HTTP endpoints.
//!
//! This file is the flow of a batch, top to bottom: **decode → match → group → ask → attempt →
//! settle → acknowledge**. Pure functions decide ([`decode`], [`plan`], `delivery::machine`), and
//! the other files execute the decisions. Each record is acknowledged last, after all its
//! deliveries have ended or were re-enqueued. A crash therefore may duplicate events, but never
//! loses any.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

mod acknowledge;
mod active_work;
mod attempt;
mod carry_out;
mod credentials;
mod deadline;
mod decode;
mod destination;
mod dispatch;
mod endings;
mod finished;
mod intake;
mod invocation;
mod late;
mod message;
mod news;
mod notices;
mod plan;
mod progress;
mod sending;
mod settlement;
mod slow_lane;
mod table;
mod waiting;

use std::sync::Arc;

use delivery::delivery::outcome::Exchange;
use delivery::machine::step::Group;
use delivery::ports::{DispatchPorts, Late, Record, SubscriptionSource as _};
use futures::future::{join, join_all};
use futures::{FutureExt as _, StreamExt as _, stream};

pub use crate::deadline::{Deadline, RESPONSE_MARGIN_MS};
pub use crate::decode::{PARTS_MAX, REQUESTS_IN_PLACE};
use crate::destination::{Asked, Passage};
pub use crate::dispatch::Dispatch;
use crate::intake::Part;
pub use crate::invocation::{IN_PLACE_BELOW_MS, IN_PLACE_WAITS};
use crate::invocation::{Invocation, Shared};
pub use crate::news::READ_EVERY_MS;
use crate::plan::BatchPlan;
use crate::progress::InFlightDelivery;
use crate::settlement::Settlement;

impl<P: DispatchPorts> Dispatch<P> {
    /// Handles a batch. Returns the message ids of the records that SQS must redeliver.
    pub async fn handle(&self, records: &[Record], deadline: &Deadline) -> Vec<String> {
        let (known, ()) =
            join(self.ports.subscriptions().current(), self.news.learn(deadline)).await;
        let parts = self.records.parts(records, known);
        let shared = Shared::new(parts.len(), deadline);
        let handled = parts.into_iter().map(|part| self.handle_part(part, &shared));
        join_all(handled).await.concat()
    }

    /// Handles the records of one part.
    async fn handle_part(&self, part: Part<'_>, shared: &Shared<'_>) -> Vec<String> {
        let Part { records, mut catalogue } = part;
        let mut plan = BatchPlan::new(&shared.deliveries);
        let (deadline, until_ms) = (shared.deadline, self.records.reads_until_ms(shared.deadline));
        for record in records.iter() {
            match self.records.read_record(record, &mut catalogue, deadline, until_ms).await {
                Some(items) => {
                    plan.add(record, items, |item| self.records.is_finished(record, item));
                }
                None => plan.add_returned(record),
            }
        }
        let (work, progress, mut redeliver) = plan.into_work(self.ports.now_ms());
        let invocation = Invocation::new(&records, progress, catalogue, shared, work.len());
        stream::iter(work).for_each_concurrent(None, |work| self.run(work, &invocation)).await;
        redeliver.extend(self.records.acknowledge(&records, &invocation).await);
        self.news.share_health(&invocation).await;
        redeliver
    }

    /// Delivers a group until each member has ended, was re-enqueued, or ran out of time.
    pub(crate) async fn deliver(
        &self,
        group: Group<InFlightDelivery>,
        invocation: &Invocation<'_>,
    ) {
        let Group { subscription, members: mut waiting } = group;
        let mut passage = self.destinations.passage(&subscription, &waiting);
        for wait in 0..=IN_PLACE_WAITS {
            let in_place_ms = if wait < IN_PLACE_WAITS { IN_PLACE_BELOW_MS } else { 0 };
            let Asked { due, refused } =
                self.destinations.ask(waiting, &mut passage, invocation).await;
            waiting = self.carry_out(refused, &passage, in_place_ms, invocation).await;
            if passage.leads_to_a_topic() {
                self.forward_all(due, invocation).await;
            } else if !due.is_empty() {
                let attempted = self.attempt(&due, &mut passage, invocation).await;
                let Some((exchange, late)) = attempted else { return };
                // Waiting for a late response replaces the wait in place.
                let limit_ms = if late.is_some() { 0 } else { in_place_ms };
                let Settlement { delivered, retry_in_place, ended } =
                    self.endings.settle_group(due, &subscription, &exchange, limit_ms, invocation);
                self.endings.finish_delivered(delivered, invocation).await;
                if let Some(late) = late {
                    passage.give_back_room();
                    let finished = self.endings.finish_late(ended, &subscription, late, invocation);
                    return finished.boxed().await;
                }
                passage.end_attempt();
                self.endings.finish_all(invocation, ended).await;
                waiting.extend(retry_in_place);
            }
            let Some(due_ms) = waiting.iter().map(|in_flight| in_flight.delivery.due_ms).max()
            else {
                return;
            };
            self.ports.sleep(due_ms.saturating_sub(self.ports.now_ms())).await;
        }
    }

    /// Makes one attempt for the deliveries of a group. Returns `None` in two cases:
    /// - The invocation or the permit has no time left. Acknowledging then re-enqueues the
    ///   deliveries, or returns their records to the queue.
    /// - The attempt was abandoned. The deliveries are then in the slow lane, and the attempt does
    ///   not count.
    async fn attempt(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<(Exchange, Option<Late>)> {
        let attempt = self.attempts.begin(due, passage, invocation)?;
        let request = attempt.compose();
        let made = self.attempts.exchange(attempt, request, invocation).await?;
        let subscription = Arc::clone(&passage.subscription);
        let (exchange, late) = made.without_secrets(&subscription);
        let is_urgent = passage.record_result(due, &exchange);
        if is_urgent {
            self.news.share_health(invocation).boxed().await;
        }
        self.destinations.report_results(passage, invocation).await;
        Some((exchange, late))
    }
}
