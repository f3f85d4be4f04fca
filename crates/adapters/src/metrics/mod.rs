//! The metrics: counted during invocations, aggregated for half a minute in the process, and
//! written as CloudWatch metric lines, one for each combination of dimension values.
//!
//! Separate from the log because metrics do not depend on the log level, and a line per invocation
//! would cost as much as the invocation. [`tally`] aggregates, [`emf`] formats the embedded metric
//! format, and [`meter`] holds the tally of a function and decides when it is written. All are
//! pure.
//!
//! Promises: every value is written once. Each combination of dimension values is billed, so only
//! configured ones that [`Metric::dimensions`] lists are written, and none contains free text of a
//! publisher. `docs/reference/logs-and-metrics.md` describes each metric; a test compares it with this file.

pub mod emf;
pub mod meter;
pub mod tally;

use delivery::delivery::Word;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;

pub use self::meter::Meter;

/// The CloudWatch namespace of the metrics, unless a deployment sets another.
pub const NAMESPACE: &str = "lastmile";

/// A count or a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Events that match a subscription, once per subscription.
    MatchedEventCount,
    /// Events that match no subscription.
    UnmatchedEventCount,
    /// Successful deliveries.
    DeliverySuccessCount,
    /// Failed attempts.
    DeliveryAttemptFailCount,
    /// Dead letters in storage, except those that [`Metric::SetAsideCount`] counts.
    DeadLetteredCount,
    /// Dead letters of paused subscriptions and disabled destinations in storage.
    SetAsideCount,
    /// Deliveries that failed and, as configured by their subscription, left no dead letter.
    DroppedEventCount,
    /// Dead letters that storage refused for too long.
    FailedDeadLetteredCount,
    /// Attempts after which a retry was scheduled.
    RetryScheduledCount,
    /// Destinations that began to fail persistently.
    DestinationFailingCount,
    /// Destinations that became slow to respond.
    DestinationSlowCount,
    /// Destinations that were disabled because they failed for too long.
    DestinationDisabledCount,
    /// Attempts that were abandoned because their destination is slow.
    AbandonedAttemptCount,
    /// The duration of each attempt that sent a packet.
    DestinationProcessingDurationInMs,
    /// The time from publication to the end of a successful delivery.
    EventAgeAtDeliveryInMs,
    /// The time from publication until a delivery without an attempt was deferred, if that is at
    /// least a minute.
    EventAgeBeforeAttemptInMs,
}

impl Metric {
    /// Every metric, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::MatchedEventCount,
        Self::UnmatchedEventCount,
        Self::DeliverySuccessCount,
        Self::DeliveryAttemptFailCount,
        Self::DeadLetteredCount,
        Self::SetAsideCount,
        Self::DroppedEventCount,
        Self::FailedDeadLetteredCount,
        Self::RetryScheduledCount,
        Self::DestinationFailingCount,
        Self::DestinationSlowCount,
        Self::DestinationDisabledCount,
        Self::AbandonedAttemptCount,
        Self::DestinationProcessingDurationInMs,
        Self::EventAgeAtDeliveryInMs,
        Self::EventAgeBeforeAttemptInMs,
    ];

    /// Returns the name in CloudWatch, which is that of the variant.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Returns the unit in CloudWatch.
    /// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html>
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::MatchedEventCount
            | Self::UnmatchedEventCount
            | Self::DeliverySuccessCount
            | Self::DeliveryAttemptFailCount
            | Self::DeadLetteredCount
            | Self::SetAsideCount
            | Self::DroppedEventCount
            | Self::FailedDeadLetteredCount
            | Self::RetryScheduledCount
            | Self::DestinationFailingCount
            | Self::DestinationSlowCount
            | Self::DestinationDisabledCount
            | Self::AbandonedAttemptCount => "Count",
            Self::DestinationProcessingDurationInMs
            | Self::EventAgeAtDeliveryInMs
            | Self::EventAgeBeforeAttemptInMs => "Milliseconds",
        }
    }

    /// Returns true for metrics that are only written while a destination is unhealthy or an event
    /// is late. They are not split by topic, because several topics may share a destination.
    #[must_use]
    pub const fn is_exceptional(self) -> bool {
        matches!(
            self,
            Self::DestinationFailingCount
                | Self::DestinationSlowCount
                | Self::DestinationDisabledCount
                | Self::AbandonedAttemptCount
                | Self::EventAgeBeforeAttemptInMs
        )
    }

    /// Returns true if the metric can have the dimensions `[topic, subscription]`. An event without
    /// a matching subscription cannot.
    #[must_use]
    pub const fn is_per_subscription(self) -> bool {
        !matches!(self, Self::UnmatchedEventCount) && !self.is_exceptional()
    }

    /// Returns true if the metric is written as soon as its invocation ends, because it is rare and
    /// alarms depend on it.
    #[must_use]
    pub const fn is_urgent(self) -> bool {
        matches!(
            self,
            Self::DeadLetteredCount
                | Self::DroppedEventCount
                | Self::FailedDeadLetteredCount
                | Self::DestinationFailingCount
                | Self::DestinationSlowCount
                | Self::DestinationDisabledCount
        )
    }

    /// Returns the possible dimension sets: none, and those that a deployment may configure.
    /// Excludes `[topic, subscription]`.
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
            | Self::AbandonedAttemptCount
            | Self::EventAgeBeforeAttemptInMs => &[Dimensions::None],
            Self::DeadLetteredCount
            | Self::SetAsideCount
            | Self::DroppedEventCount
            | Self::FailedDeadLetteredCount => {
                &[Dimensions::None, Dimensions::Topic, Dimensions::Reason]
            }
        }
    }
}

/// A set of dimensions that a metric is split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimensions {
    /// No dimensions: the sum over the whole deployment.
    None,
    /// By topic.
    Topic,
    /// By the outcome of the attempt.
    Outcome,
    /// By the reason why the delivery ended.
    Reason,
    /// By topic and subscription.
    Subscription,
}

impl Dimensions {
    /// Returns the names of the dimensions.
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
    /// No further value.
    None,
    /// The outcome of the attempt.
    Outcome(Outcome),
    /// The reason why the delivery ended.
    Reason(Word<Reason>),
}

/// The metrics configuration of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The CloudWatch namespace.
    pub namespace: String,
    /// The configured dimension sets.
    pub splits: Splits,
}

/// The dimension sets that metrics are split by, in addition to their totals. Each combination of
/// values is billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Splits {
    /// By topic.
    pub topic: bool,
    /// By the outcome of an attempt, and by the reason why a delivery ended.
    pub outcome: bool,
    /// By topic and subscription.
    pub subscription: bool,
}

impl Splits {
    /// All dimension sets.
    pub const ALL: Self = Self { topic: true, outcome: true, subscription: true };

    /// Returns true if metrics are written with this set.
    #[must_use]
    pub const fn has(self, dimensions: Dimensions) -> bool {
        match dimensions {
            Dimensions::None => true,
            Dimensions::Topic => self.topic,
            Dimensions::Outcome | Dimensions::Reason => self.outcome,
            Dimensions::Subscription => self.subscription,
        }
    }
}
