//! What the function holds over its invocations, what all work of one invocation shares, and how one
//! piece of it is run.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use adapters::runtime::contained;
use adapters::telemetry::Telemetry;
use adapters::tokens::Tokens;
use delivery::ports::{DispatchPorts, QueueName, Record};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::sink::Container;
use futures::FutureExt as _;

use crate::active_work::ActiveWork;
use crate::deadline::Deadline;
use crate::limits::ConcurrencyLimits;
use crate::memory::adaptive::Adaptive;
use crate::memory::consent_gates::ConsentGates;
use crate::memory::dead_letters::DeadLetterCounts;
use crate::memory::finished::FinishedDeliveries;
use crate::memory::health::Health;
use crate::memory::permits::Permits;
use crate::memory::rates::Rates;
use crate::plan::Work;
use crate::progress::BatchProgress;

/// A wait below this is waited in place instead of as a delayed message.
pub const IN_PLACE_BELOW_MS: u64 = 1_000;
/// How often a delivery waits in place within one invocation.
pub const IN_PLACE_WAITS: u32 = 5;

/// The dispatch function over its ports.
#[derive(Debug)]
pub struct Dispatch<P> {
    pub(crate) ports: P,
    pub(crate) container: Container,
    pub(crate) default_topic: Option<TopicName>,
    pub(crate) health: Health,
    pub(crate) rates: Rates,
    pub(crate) permits: Permits,
    pub(crate) dead_letters: DeadLetterCounts,
    pub(crate) adaptive: Adaptive,
    pub(crate) gates: ConsentGates,
    pub(crate) tokens: Tokens,
    pub(crate) finished: Mutex<FinishedDeliveries>,
    pub(crate) telemetry: Telemetry,
}

/// State that all parts of an invocation use together.
pub(crate) struct Shared<'a> {
    pub(crate) deadline: &'a Deadline,
    /// The number of deliveries that they have taken on.
    pub(crate) deliveries: AtomicUsize,
    limits: ConcurrencyLimits,
    active_work: ActiveWork,
}

impl<'a> Shared<'a> {
    /// The state for so many parts.
    pub(crate) fn of(parts: usize, deadline: &'a Deadline) -> Self {
        // A part that is being read is work too.
        let (limits, active_work) = (ConcurrencyLimits::default(), ActiveWork::of(parts));
        Self { deadline, deliveries: AtomicUsize::new(0), limits, active_work }
    }
}

/// State that all work of a part of an invocation uses together.
pub(crate) struct Invocation<'a> {
    /// The queue that all of its records come from.
    pub(crate) queue: QueueName,
    pub(crate) progress: BatchProgress,
    pub(crate) limits: &'a ConcurrencyLimits,
    pub(crate) active_work: &'a ActiveWork,
    pub(crate) deadline: &'a Deadline,
    /// The newest subscriptions it has seen.
    pub(crate) catalogue: Arc<Catalogue>,
    /// False if none could be read.
    pub(crate) knows_subscriptions: bool,
}

impl<'a> Invocation<'a> {
    /// A part with so much work.
    pub(crate) fn new(
        records: &[Record],
        progress: BatchProgress,
        catalogue: Result<Arc<Catalogue>, String>,
        shared: &'a Shared<'_>,
        work_count: usize,
    ) -> Self {
        let Shared { limits, active_work, deadline, .. } = shared;
        active_work.more(work_count);
        active_work.one_less();
        // A mapping reads one queue.
        let queue = records.first().map_or(QueueName::Events, |record| record.queue);
        let knows_subscriptions = catalogue.is_ok();
        let catalogue = catalogue.unwrap_or_default();
        Self { queue, progress, limits, active_work, deadline, catalogue, knows_subscriptions }
    }
}

impl<P: DispatchPorts> Dispatch<P> {
    /// The function with its ports, the deployment's container of dead letters, and the topic of
    /// records that name none.
    pub fn new(ports: P, container: Container, default_topic: Option<TopicName>) -> Self {
        let (health, rates, permits, dead_letters, adaptive) = Default::default();
        let gates = ConsentGates::shared_by(1);
        let (tokens, finished, telemetry) =
            (Tokens::default(), Mutex::default(), Telemetry::default());
        Self {
            ports,
            container,
            default_topic,
            health,
            rates,
            permits,
            dead_letters,
            adaptive,
            gates,
            tokens,
            finished,
            telemetry,
        }
    }

    /// Sets how many functions may run at once: they share the rates that destinations allow.
    #[must_use]
    pub fn with_max_concurrency(self, functions: u32) -> Self {
        Self { gates: ConsentGates::shared_by(functions), ..self }
    }

    /// Sets the telemetry.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// What it logs and counts with.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The metric lines of what happened since they were read last.
    pub fn metrics(&self) -> Vec<String> {
        self.telemetry.metrics(self.ports.now_ms())
    }

    /// Runs one piece of work. A panic in it is contained; what it did not finish is still in
    /// the progress, and acknowledging re-enqueues it.
    pub(crate) async fn run(&self, work: Work, of: &Invocation<'_>) {
        let running = async {
            match work {
                Work::DeadLetter(item, letter) => self.finish_dead_letter(of, item, &letter).await,
                Work::Forward(item, queue, message) => {
                    let sent = self.send(queue, *message, of.deadline).await;
                    of.progress.set_sent(item, sent);
                }
                Work::Deliver(group) => {
                    if let Some((group, permit)) = self.acquire_permit(group, of).await {
                        // It drops its permit before this work counts as done: whoever gets it is polled
                        // before those who wait for the end of all work.
                        self.deliver(group, permit, of).await;
                        self.return_permits(of).await;
                    }
                }
            }
        };
        // Boxed, so that the futures of the clients below do not add up to one type without end.
        contained("deliver", running.boxed()).await;
        // After a panic as well, or late answers would be waited for as if work were left.
        of.active_work.one_less();
    }
}
