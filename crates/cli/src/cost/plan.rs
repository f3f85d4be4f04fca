//! The input of an estimate: a load, and the deployment that carries it.

use delivery::explain::Always;

/// The published events, and how destinations behave.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    /// Events published in a day, evenly.
    pub(crate) events: f64,
    /// Matching subscriptions per event, on average.
    pub(crate) fan_out: f64,
    /// The probability that an attempt succeeds while its destination is up, independent of earlier
    /// attempts.
    pub(crate) success: f64,
    /// The outcome of an attempt that fails.
    pub(crate) failure: Always,
    /// How long destinations are down on this day.
    pub(crate) down_ms: u64,
    /// The share of the deliveries whose destination is down during that time.
    pub(crate) down_share: f64,
    /// The size of an event.
    pub(crate) event_bytes: f64,
    /// Events that a publisher sends in one request.
    pub(crate) publish_batch: f64,
    /// The response time of destinations.
    pub(crate) answer_ms: f64,
}

/// The template parameters that matter here, and what is logged and stored.
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
    /// Whether `LogLevel` includes the log lines of attempts and ends.
    pub(crate) logs_attempts: bool,
    /// Topics with traffic.
    pub(crate) topics: f64,
    /// Subscriptions with traffic.
    pub(crate) subscriptions: f64,
    /// `MetricsPerSubscription`.
    pub(crate) metrics_per_subscription: bool,
    /// How long dead letters are kept.
    pub(crate) dead_letters_kept_ms: u64,
}

/// This load, on this deployment.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) traffic: Traffic,
    pub(crate) deployment: Deployment,
}
