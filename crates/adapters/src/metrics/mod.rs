//! The metrics: counted while invocations run, added up over half a minute in the process, and written as
//! CloudWatch metric lines, one per combination of dimension values.
//!
//! Separate from the log because it does not depend on the log level, and because a line per invocation
//! would cost as much as the invocation. [`tally`] adds the values up and [`emf`] writes them
//! in CloudWatch's embedded metric format; [`meter`] holds the tally of a function and says when it is
//! written. All are pure.
//!
//! Promises: every value is written once. Combinations are only those that a deployment asks for and
//! [`Metric::dimensions`] names, and none contains free text of a publisher, because each combination is
//! billed. `docs/observability.md` describes what each metric counts; a test compares it with this file.

pub mod emf;
pub mod meter;
pub mod tally;

use delivery::delivery::Word;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;

pub use self::meter::Meter;

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
    /// Dead letters in storage, without the next ones.
    DeadLetteredCount,
    /// Dead letters of paused subscriptions and disabled destinations in storage.
    SetAsideCount,
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
    /// From publication to when a delivery without an attempt was put off, if that is a minute or more.
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

    /// Whether it is written only while a destination is not healthy, or an event is late. The address of a destination
    /// may be that of several topics, so there is only the sum.
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

    /// Whether it can have the set `[topic, subscription]`: an event that matches no subscription
    /// has none.
    #[must_use]
    pub const fn is_per_subscription(self) -> bool {
        !matches!(self, Self::UnmatchedEventCount) && !self.is_exceptional()
    }

    /// Whether it is written when the invocation ends that counted it, and not with others: alarms wait for
    /// it, and it is rare.
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

    /// The dimension sets it can have: none, and where a deployment asks for them, the others.
    /// `[topic, subscription]` is not named here.
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
    /// What they are split by.
    pub splits: Splits,
}

/// What metrics are split by besides their totals. Each combination of values is billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Splits {
    /// By topic.
    pub topic: bool,
    /// By what happened in an attempt, and by why a delivery ended.
    pub outcome: bool,
    /// By topic and subscription.
    pub subscription: bool,
}

impl Splits {
    /// Everything.
    pub const ALL: Self = Self { topic: true, outcome: true, subscription: true };

    /// Whether metrics are written with this set.
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
