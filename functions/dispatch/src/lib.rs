//! dispatch: from a queue to an HTTP endpoint.
//!
//! This file is the flow of a batch of records, top to bottom: **decode → match → group → arrive →
//! attempt → settle → acknowledge**. Each decision in it is a call of a pure function ([`open`],
//! and `delivery::machine::step`); what is left here is the order of things, and I/O through the ports.
//!
//! The promise that shapes it: a record is acknowledged last, when each of its deliveries has its
//! end or has left as its own message. It is given back only while nothing of it was attempted. A
//! crash at any point duplicates and never loses.

mod acknowledge;
mod consent;
mod deadline;
mod finish;
mod late;
mod limits;
mod open;
mod probation;
mod progress;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use adapters::records::Record;
use adapters::telemetry::{self, Held, Telemetry};
use delivery::delivery::outcome::{Exchange, Unsendable};
use delivery::delivery::{Batching, DeadLetter, Delivery};
use delivery::machine::reply::follow_ups;
use delivery::machine::step::{
    Arrival, End, Group, arrive, end_without_success, group, settle, settle_batched,
};
use delivery::ports::{DispatchPorts, Late, QueueName};
use delivery::request::{AttemptContext, compose, secrets};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::SecretName;
use delivery::subscription::sink::Container;
use futures::stream::StreamExt as _;
use futures::{FutureExt as _, stream};

use crate::consent::ConsentGates;
use crate::late::{ActiveWork, Unfinished};
use crate::limits::{ConcurrencyLimits, Permit};
use crate::open::{Opened, WorkItem, open};
use crate::probation::Probations;
use crate::progress::{BatchProgress, InFlightDelivery, ItemId, Stage};

pub use crate::deadline::Deadline;

/// Records that are acknowledged at a time.
const AT_ONCE: usize = 100;
/// Deliveries of one record that run in place; a record with more is split into one message each.
/// An event too large to travel beside its state runs in place even so: otherwise it would become a
/// dead letter without one attempt.
pub const DELIVERIES_IN_PLACE: usize = 10;
/// A wait below this is waited here instead of as a message.
pub const IN_PLACE_BELOW_MS: u64 = 1_000;
/// How often a delivery waits here within one invocation.
pub const IN_PLACE_WAITS: u32 = 5;
/// Without usable subscriptions, records come again after this.
const NO_SUBSCRIPTIONS_SECONDS: u32 = 300;

/// The dispatch function over its ports.
#[derive(Debug)]
pub struct Dispatch<P> {
    ports: P,
    container: Container,
    default_topic: Option<TopicName>,
    probations: Probations,
    gates: ConsentGates,
    telemetry: Telemetry,
}

/// What all work of one invocation shares.
struct Invocation<'a> {
    book: BatchProgress,
    limits: ConcurrencyLimits,
    busy: ActiveWork,
    deadline: &'a Deadline,
    /// The newest subscriptions it has seen.
    catalogue: Arc<Catalogue>,
}

/// Deliveries that have arrived.
#[derive(Default)]
struct Sorted {
    /// To be attempted now.
    due: Vec<InFlightDelivery>,
    /// To be attempted here after a short wait.
    soon: Vec<InFlightDelivery>,
}

/// What an exchange led to.
#[derive(Default)]
struct Settlement {
    /// To be attempted here again after a short wait.
    again: Vec<InFlightDelivery>,
    /// Without success.
    unfinished: Vec<Unfinished>,
}

/// One thing to do, apart from all others.
enum Work {
    /// A dead letter goes to its queue.
    DeadLetter(ItemId, Box<DeadLetter>),
    /// A delivery of a large record becomes a message of its own.
    Split(InFlightDelivery),
    /// A group of deliveries is attempted.
    Deliver(Group<InFlightDelivery>),
}

impl<P: DispatchPorts> Dispatch<P> {
    /// The function with its ports, the deployment's container of dead letters, and the topic of
    /// records without one.
    pub fn new(ports: P, container: Container, default_topic: Option<TopicName>) -> Self {
        let (probations, gates) = (Probations::default(), ConsentGates::shared_by(1));
        Self { ports, container, default_topic, probations, gates, telemetry: Telemetry::default() }
    }

    /// The same, one of so many that may run at once: they share the rates that destinations allow.
    #[must_use]
    pub fn with_max_concurrency(self, functions: u32) -> Self {
        Self { gates: ConsentGates::shared_by(functions), ..self }
    }

    /// The same, which counts what it does as this wants it.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// The metric lines about what it did since they were read last.
    pub fn metrics(&self) -> Vec<String> {
        self.telemetry.metrics(self.ports.now_ms())
    }

    /// Handles a batch and names the records, by message id, that have to come again.
    pub async fn handle(&self, records: &[Record], deadline: &Deadline) -> Vec<String> {
        let mut catalogue = match self.ports.current().await {
            Ok(catalogue) => catalogue,
            Err(problem) => {
                return self.return_all_to_queue(records, &problem, NO_SUBSCRIPTIONS_SECONDS).await;
            }
        };
        let book = BatchProgress::default();
        let mut returned_to_queue = Vec::new();
        let mut work = Vec::new();
        let mut deliveries = Vec::new();
        for (index, record) in records.iter().enumerate() {
            let Some(pieces) = self.decode_and_match(record, &mut catalogue).await else {
                returned_to_queue.push(record.message.clone());
                continue;
            };
            let split = pieces.len() > DELIVERIES_IN_PLACE;
            for piece in pieces {
                let place = book.enter(index, &piece);
                match piece {
                    WorkItem::DeadLetter(letter) => work.push(Work::DeadLetter(place, letter)),
                    WorkItem::Deliver(subscription, delivery) => {
                        let ticket = InFlightDelivery {
                            place,
                            subscription: Arc::clone(&subscription),
                            delivery,
                        };
                        let leaves = split && finish::can_travel(&ticket.delivery);
                        if leaves {
                            work.push(Work::Split(ticket))
                        } else {
                            deliveries.push((subscription, ticket))
                        }
                    }
                }
            }
        }
        work.extend(group(deliveries, self.ports.now_ms()).into_iter().map(Work::Deliver));
        let busy = ActiveWork::with(work.len());
        let invocation =
            Invocation { book, limits: ConcurrencyLimits::default(), busy, deadline, catalogue };
        stream::iter(work)
            .for_each_concurrent(None, |work| self.contained(work, &invocation))
            .await;
        returned_to_queue.extend(self.acknowledge(records, &invocation).await);
        returned_to_queue
    }

    /// Reads a record; `None` when it is given back. A name counts as missing only after a look at
    /// the newest subscriptions; while nobody can say what those are, the record waits.
    async fn decode_and_match(
        &self,
        record: &Record,
        catalogue: &mut Arc<Catalogue>,
    ) -> Option<Vec<WorkItem>> {
        let mut opened = self.open(record, catalogue)?;
        if opened.pieces.iter().any(WorkItem::is_missing_a_name) {
            match self.ports.reread().await {
                Ok(newest) => *catalogue = newest,
                Err(problem) => {
                    self.return_to_queue(record, &problem, NO_SUBSCRIPTIONS_SECONDS).await;
                    return None;
                }
            }
            opened = self.open(record, catalogue)?;
        }
        opened
            .unwanted
            .iter()
            .for_each(|(place, event)| self.telemetry.unmatched(&record.message, place, event));
        Some(opened.pieces)
    }

    fn open(&self, record: &Record, catalogue: &Catalogue) -> Option<Opened> {
        let now_ms = self.ports.now_ms();
        let opened = std::panic::catch_unwind(AssertUnwindSafe(|| {
            open(record, catalogue, self.default_topic.as_ref(), now_ms)
        }));
        match opened {
            Ok(Ok(opened)) => return Some(opened),
            Ok(Err(error)) => telemetry::returned_to_queue(&record.message, &error.to_string()),
            Err(_) => telemetry::panicked("decode"),
        }
        None
    }

    /// One piece of work; a panic in it is its own and nobody else's. What it left undone stands in
    /// the book.
    async fn contained(&self, work: Work, of: &Invocation<'_>) {
        let work = async {
            match work {
                Work::DeadLetter(place, letter) => {
                    self.finish_dead_letter(&of.book, place, &letter).await
                }
                Work::Split(ticket) => self.requeue(&of.book, &ticket, QueueName::Events, 0).await,
                Work::Deliver(group) => {
                    let turn = of.limits.turn(&group.subscription).await;
                    self.deliver(group, turn, of).await;
                }
            }
        };
        // Boxed, so that the futures of the clients below do not add up to one type without end.
        if AssertUnwindSafe(work.boxed()).catch_unwind().await.is_err() {
            telemetry::panicked("deliver");
        }
        of.busy.one_less();
    }

    /// A group from its arrival to its end here: done, gone as messages, or out of time.
    async fn deliver(&self, group: Group<InFlightDelivery>, lane: Permit, of: &Invocation<'_>) {
        let Group { subscription, members: mut tickets } = group;
        for turn in 0..=IN_PLACE_WAITS {
            let in_place_ms = if turn < IN_PLACE_WAITS { IN_PLACE_BELOW_MS } else { 0 };
            let Sorted { due, mut soon } =
                self.arrive(tickets, &subscription, in_place_ms, of).await;
            if !due.is_empty() {
                let Some((exchange, late)) = self.attempt(&subscription, &due, of).await else {
                    return;
                };
                let settled = self.settle(
                    due,
                    &subscription,
                    &exchange,
                    late.as_ref().map_or(in_place_ms, |_| 0),
                    of,
                );
                let Settlement { again, unfinished } = settled.await;
                match late {
                    Some(late) => {
                        drop(lane);
                        return self.finish_late(unfinished, &subscription, late, of).boxed().await;
                    }
                    None => self.finish_all(of, unfinished).await,
                }
                soon.extend(again);
            }
            let Some(due_ms) = soon.iter().map(|ticket| ticket.delivery.due_ms).max() else {
                return;
            };
            self.ports.sleep(due_ms.saturating_sub(self.ports.now_ms())).await;
            tickets = soon;
        }
    }

    /// Says of each delivery whether it may be attempted now; what is neither due nor due soon
    /// leaves.
    async fn arrive(
        &self,
        tickets: Vec<InFlightDelivery>,
        subscription: &Subscription,
        in_place_ms: u64,
        of: &Invocation<'_>,
    ) -> Sorted {
        let (mut sorted, mut leaving) = (Sorted::default(), Vec::new());
        for mut ticket in tickets {
            let now_ms = self.ports.now_ms();
            let end = match arrive(&ticket.delivery, subscription, now_ms) {
                Arrival::Attempt => {
                    match self.probations.put_off(&mut ticket.delivery, subscription, now_ms) {
                        Some(wait_ms) => End::Retry { wait_ms },
                        None => {
                            sorted.due.push(ticket);
                            continue;
                        }
                    }
                }
                Arrival::NotDue { wait_ms } if wait_ms < in_place_ms => {
                    sorted.soon.push(ticket);
                    continue;
                }
                Arrival::NotDue { wait_ms } => End::Retry { wait_ms },
                Arrival::Paused { wait_ms } => {
                    telemetry::held(&ticket.delivery, Held::Paused, wait_ms);
                    End::Retry { wait_ms }
                }
                Arrival::Expired(reason) => {
                    end_without_success(&ticket.delivery, subscription, reason, now_ms)
                }
            };
            leaving.push(Unfinished { ticket, end });
        }
        self.finish_all(of, leaving).await;
        sorted.due = self.check_consent(sorted.due, subscription, of).await;
        sorted
    }

    /// One exchange for all of them; `None` when the invocation has no time left for it.
    async fn attempt(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        of: &Invocation<'_>,
    ) -> Option<(Exchange, Option<Late>)> {
        let destination = &subscription.destination;
        // Before the time of the attempt is granted: looking secrets up takes time of its own.
        let deliveries: Vec<&Delivery> = due.iter().map(AsRef::as_ref).collect();
        let names: Vec<&SecretName> = secrets(subscription, &deliveries).collect();
        let keyring = self.ports.keyring(&names).await;
        let now_ms = self.ports.now_ms();
        let Some(timeout_ms) = of.deadline.begin(now_ms, destination.response_timeout_ms) else {
            self.probations.release(subscription, due);
            return None;
        };
        due.iter().for_each(|ticket| of.book.note(ticket.place, Stage::Attempting));
        let request = match &keyring {
            Ok(keyring) => {
                compose(subscription, &deliveries, AttemptContext { keyring, now_ms, timeout_ms })
            }
            Err(error) => Err(Unsendable::Unready(error.to_string())),
        };
        let (exchange, late) = match request {
            Ok(request) if destination.late_window_ms > 0 => {
                self.ports.exchange_or_late(&request).await
            }
            Ok(request) => (self.ports.exchange(&request).await, None),
            Err(problem) => (problem.exchange(now_ms), None),
        };
        self.probations.note(subscription, due, &exchange);
        let keyring = keyring.unwrap_or_default();
        let hidden: Vec<&str> = destination.hidden_values(&keyring).collect();
        Some((exchange.redact(&hidden), late))
    }

    /// What the exchange means for each of them. Ends without success are told, and carried out by
    /// the caller.
    async fn settle(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        exchange: &Exchange,
        in_place_ms: u64,
        of: &Invocation<'_>,
    ) -> Settlement {
        let settle = if due.len() > 1 { settle_batched } else { settle };
        let mut settlement = Settlement::default();
        for mut ticket in due {
            let (now_ms, jitter) = (self.ports.now_ms(), self.ports.next_jitter());
            let settled = settle(&mut ticket.delivery, subscription, exchange, now_ms, jitter);
            self.telemetry.attempted(&ticket.delivery, subscription, exchange, &settled);
            match settled.end {
                End::Retry { wait_ms }
                    if wait_ms < in_place_ms
                        && ticket.delivery.batching != Batching::RetryAlone =>
                {
                    of.book.keep(&ticket, Stage::Waiting);
                    settlement.again.push(ticket);
                }
                End::Done => {
                    let follow_ups =
                        follow_ups(&ticket.delivery, subscription, exchange, &of.catalogue, now_ms);
                    self.finish_with(of, &ticket, follow_ups).await;
                }
                end @ (End::Retry { .. } | End::DeadLetter(_) | End::ToSink(_) | End::Drop(_)) => {
                    settlement.unfinished.push(Unfinished { ticket, end });
                }
            }
        }
        settlement
    }
}
