//! The metrics: counted during invocations, aggregated for half a minute in the process, and
//! written as CloudWatch metric lines, one for each combination of dimension values.
//!
//! Separate from the log because metrics do not depend on the log level, and a line per invocation
//! would cost as much as the invocation. [`tally`] aggregates, [`emf`] formats the embedded metric
//! format, and [`meter`] collects the metrics of a function and decides when they are written. All
//! three are pure.
//!
//! Promises: no value is written twice. Each combination of dimension values is billed. Therefore
//! only configured combinations that [`Metric::dimensions`] lists are written, and none contains
//! free text of a publisher. `docs/reference/metrics.md` describes each metric; a test
//! compares it with this file.

pub mod emf;
pub mod meter;
pub mod tally;

use delivery::delivery::Word;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;

pub use self::meter::Meter;

/// The CloudWatch namespace of the metrics, unless a deployment sets a different one.
pub const NAMESPACE: &str = "lastmile";

/// A metric in CloudWatch: a count or a measured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Events that match a subscription, counted once per subscription.
    MatchedEventCount,
    /// Events that match no subscription.
    UnmatchedEventCount,
    /// Deliveries that succeeded.
    DeliverySuccessCount,
    /// Attempts that failed.
    DeliveryAttemptFailCount,
    /// Dead letters that were stored, except those that [`Metric::SetAsideCount`] counts.
    DeadLetteredCount,
    /// Stored dead letters of paused subscriptions and disabled destinations.
    SetAsideCount,
    /// Deliveries that failed without a dead letter, because of `deadLetter: none` in their
    /// subscription.
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
    /// Attempts that were abandoned because their destination was slow.
    AbandonedAttemptCount,
    /// Duration of each attempt that sent a packet.
    DestinationProcessingDurationInMs,
    /// Time from publication to the successful delivery of an event.
    EventAgeAtDeliveryInMs,
    /// Age of an event whose delivery was deferred before its first attempt. An age below one
    /// minute is not recorded.
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

    /// Returns the name of the metric in CloudWatch, which is the name of the variant.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Returns the unit of the metric in CloudWatch.
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

    /// True if the metric is only written while a destination is unhealthy or an event is late.
    /// Such a metric is not split by topic, because several topics may share a destination.
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

    /// True if the metric can have the dimensions `[topic, subscription]`. The count of events that
    /// match no subscription cannot, nor can an [exceptional](Self::is_exceptional) metric.
    #[must_use]
    pub const fn is_per_subscription(self) -> bool {
        !matches!(self, Self::UnmatchedEventCount) && !self.is_exceptional()
    }

    /// True if the metric is written as soon as its invocation ends, because it is rare and alarms
    /// depend on it.
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

    /// Returns the dimension sets that the metric can have: the empty set, and the sets that a
    /// deployment may configure. Topic and subscription together are missing here, because
    /// [`Self::is_per_subscription`] decides about that set.
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

/// A set of dimensions by which a metric is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimensions {
    /// No dimensions: the sum over the whole deployment.
    None,
    /// Split by topic.
    Topic,
    /// Split by the outcome of the attempt.
    Outcome,
    /// Split by the reason why the delivery ended.
    Reason,
    /// Split by topic and subscription.
    Subscription,
}

impl Dimensions {
    /// Returns the names of the dimensions, as CloudWatch shows them.
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

/// The dimension value of a count, in addition to its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// No additional value.
    None,
    /// The outcome of the attempt.
    Outcome(Outcome),
    /// The reason why the delivery ended.
    Reason(Word<Reason>),
}

/// The metrics configuration of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The CloudWatch namespace of all metrics.
    pub namespace: String,
    /// The dimension sets by which metrics are split.
    pub splits: Splits,
}

/// The dimension sets by which metrics are split, in addition to their totals. Each combination of
/// values is billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Splits {
    /// True if metrics are also split by topic.
    pub topic: bool,
    /// True if metrics are also split by the outcome of an attempt, and by the reason why a
    /// delivery ended.
    pub outcome: bool,
    /// True if metrics are also split by topic and subscription.
    pub subscription: bool,
}

impl Splits {
    /// Splits metrics by all dimension sets.
    pub const ALL: Self = Self { topic: true, outcome: true, subscription: true };

    /// True if metrics are split by `dimensions`.
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
