//! The metrics: counted while an invocation runs, and written at its end as one CloudWatch metric
//! line per combination of dimension values.
//!
//! Separate from the log because it does not depend on the log level, and because a line per event
//! would cost as much as the event's delivery. [`tally`] adds the values up and [`emf`] writes them
//! in CloudWatch's embedded metric format; both are pure. [`Meter`] holds the tally of a function.
//!
//! Promises: a metric is written at most once per invocation and combination of dimension values.
//! Combinations are only those that [`Metric::dimensions`] names, and none contains free text of a
//! publisher, because each combination is billed. `docs/observability.md` describes what each metric
//! counts; a test compares it with this file.

pub mod emf;
pub mod tally;

use std::sync::{Mutex, PoisonError};

use delivery::delivery::Word;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::subscription::name::SubscriptionName;

use self::tally::Tally;

/// The CloudWatch namespace of the metrics, unless a deployment sets another.
pub const NAMESPACE: &str = "lastmile";

/// What is counted or measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Events that match a subscription; once per subscription.
    MatchedEventCount,
    /// Events that match no subscription.
    UnmatchedEventCount,
    /// Successful deliveries.
    DeliverySuccessCount,
    /// Failed attempts.
    DeliveryAttemptFailCount,
    /// Dead letters in storage.
    DeadLetteredCount,
    /// Deliveries without success and, as their subscription asks, without a dead letter.
    DroppedEventCount,
    /// Dead letters that storage refused for too long.
    FailedDeadLetteredCount,
    /// Attempts after which a retry was scheduled.
    RetryScheduledCount,
    /// Destinations that began to keep failing.
    DestinationFailingCount,
    /// Destinations that became slow to answer.
    DestinationSlowCount,
    /// Destinations that were disabled because they failed for too long.
    DestinationDisabledCount,
    /// Attempts that were given up because their destination is slow.
    AbandonedAttemptCount,
    /// How long a destination took, per attempt that sent a packet.
    DestinationProcessingDurationInMs,
    /// From publication to the end of a successful delivery.
    EventAgeAtDeliveryInMs,
}

impl Metric {
    /// Every metric, in the order of the documentation.
    pub const ALL: [Self; 14] = [
        Self::MatchedEventCount,
        Self::UnmatchedEventCount,
        Self::DeliverySuccessCount,
        Self::DeliveryAttemptFailCount,
        Self::DeadLetteredCount,
        Self::DroppedEventCount,
        Self::FailedDeadLetteredCount,
        Self::RetryScheduledCount,
        Self::DestinationFailingCount,
        Self::DestinationSlowCount,
        Self::DestinationDisabledCount,
        Self::AbandonedAttemptCount,
        Self::DestinationProcessingDurationInMs,
        Self::EventAgeAtDeliveryInMs,
    ];

    /// Its name in CloudWatch, which is that of the variant.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Its unit in CloudWatch.
    /// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html>
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::MatchedEventCount
            | Self::UnmatchedEventCount
            | Self::DeliverySuccessCount
            | Self::DeliveryAttemptFailCount
            | Self::DeadLetteredCount
            | Self::DroppedEventCount
            | Self::FailedDeadLetteredCount
            | Self::RetryScheduledCount
            | Self::DestinationFailingCount
            | Self::DestinationSlowCount
            | Self::DestinationDisabledCount
            | Self::AbandonedAttemptCount => "Count",
            Self::DestinationProcessingDurationInMs | Self::EventAgeAtDeliveryInMs => {
                "Milliseconds"
            }
        }
    }

    /// Whether it is about a destination that is not healthy: its address may be that of several
    /// topics, so there is only the sum.
    #[must_use]
    pub const fn is_of_unhealthy(self) -> bool {
        matches!(
            self,
            Self::DestinationFailingCount
                | Self::DestinationSlowCount
                | Self::DestinationDisabledCount
                | Self::AbandonedAttemptCount
        )
    }

    /// Whether it can have the set `[topic, subscription]`: an event that matches no subscription
    /// has none.
    #[must_use]
    pub const fn is_per_subscription(self) -> bool {
        !matches!(self, Self::UnmatchedEventCount) && !self.is_of_unhealthy()
    }

    /// The dimension sets it has in every deployment; `[topic, subscription]` is added where a
    /// deployment asks for it.
    #[must_use]
    pub const fn dimensions(self) -> &'static [Dimensions] {
        match self {
            Self::MatchedEventCount
            | Self::UnmatchedEventCount
            | Self::DeliverySuccessCount
            | Self::DestinationProcessingDurationInMs
            | Self::EventAgeAtDeliveryInMs => &[Dimensions::None, Dimensions::Topic],
            Self::DeliveryAttemptFailCount | Self::RetryScheduledCount => {
                &[Dimensions::None, Dimensions::Topic, Dimensions::Outcome]
            }
            Self::DestinationFailingCount
            | Self::DestinationSlowCount
            | Self::DestinationDisabledCount
            | Self::AbandonedAttemptCount => &[Dimensions::None],
            Self::DeadLetteredCount | Self::DroppedEventCount | Self::FailedDeadLetteredCount => {
                &[Dimensions::None, Dimensions::Topic, Dimensions::Reason]
            }
        }
    }
}

/// A set of dimensions that a metric is split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimensions {
    /// None: the sum over the whole deployment.
    None,
    /// By topic.
    Topic,
    /// By what happened in the attempt.
    Outcome,
    /// By why the delivery ended.
    Reason,
    /// By topic and subscription.
    Subscription,
}

impl Dimensions {
    /// The names of the dimensions.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Topic => &["topic"],
            Self::Outcome => &["outcome"],
            Self::Reason => &["reason"],
            Self::Subscription => &["topic", "subscription"],
        }
    }
}

/// A further dimension value of one count, besides its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// Nothing.
    None,
    /// What happened in the attempt.
    Outcome(Outcome),
    /// Why the delivery ended.
    Reason(Word<Reason>),
}

/// How a deployment configures its metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The CloudWatch namespace.
    pub namespace: String,
    /// Whether each subscription has metrics of its own; each combination is billed.
    pub per_subscription: bool,
}

/// Holds the tally of a function between two readings. One without settings counts nothing: a tally
/// that nobody reads would only grow.
#[derive(Debug, Default)]
pub struct Meter {
    settings: Option<MetricsSettings>,
    tally: Mutex<Tally>,
}

impl Meter {
    /// A meter that counts.
    #[must_use]
    pub fn new(settings: MetricsSettings) -> Self {
        Self { tally: Mutex::new(Tally::new(settings.per_subscription)), settings: Some(settings) }
    }

    /// Counts one.
    pub fn count(&self, metric: Metric, subscription: &SubscriptionName, label: Label) {
        self.with(|tally| tally.count(metric, subscription, label));
    }

    /// Counts one of the whole deployment.
    pub fn count_alone(&self, metric: Metric) {
        self.with(|tally| tally.count_alone(metric));
    }

    /// Adds a measured value.
    pub fn measure(&self, metric: Metric, subscription: &SubscriptionName, value: u64) {
        self.with(|tally| tally.measure(metric, subscription, value));
    }

    /// The lines for everything since the last reading.
    pub fn read(&self, now_ms: u64) -> Vec<String> {
        let Some(settings) = &self.settings else { return Vec::new() };
        // Taken out, so that the lines are formatted without the lock.
        let tally = std::mem::replace(&mut *self.lock(), Tally::new(settings.per_subscription));
        emf::lines(&tally, &settings.namespace, now_ms)
    }

    fn with(&self, act: impl FnOnce(&mut Tally)) {
        if self.settings.is_some() {
            act(&mut self.lock());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
