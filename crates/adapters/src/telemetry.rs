//! The log, and what it counts: JSON lines, one per attempt and one per end, and a metric where
//! something happens.
//!
//! Lines carry names, numbers and reasons, never bodies, credentials or query strings. `error`
//! means that a person should act. The words are those of `delivery`, so that a line, a metric and
//! a dead letter say the same; which line has which fields is told in `docs/observability.md`.
//!
//! What is also counted is a method of [`Telemetry`], so that it cannot be told in one place and
//! forgotten in the other. Metrics do not depend on the log's level, and below its level a line
//! costs nothing but a comparison.

use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::delivery::probation::Change;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget, Returned, trace};
use delivery::event::Event;
use delivery::machine::consent::Answer;
use delivery::machine::step::{End, Settled};
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use tracing::{Level, enabled, error, event, info, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::json_log::{Lines, flush, hold};
use crate::metrics::{Label, Meter, Metric, MetricsSettings};

/// No more of a publisher's word stands in a line: what CloudWatch takes of one is limited.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
const WORD_MAX_BYTES: usize = 512;

/// A line about a delivery: whose it is and which event it carries, then what the line is about.
/// The event is read for it only if the line is written.
macro_rules! line {
    ($level:expr, $delivery:expr, $($fields:tt)+) => {
        if enabled!($level) {
            let delivery: &Delivery = $delivery;
            let members = delivery.event.members();
            event!(
                $level,
                event_id = members.id().as_deref().map(short),
                source = members.source().as_deref().map(short),
                "type" = members.event_type().as_deref().map(short),
                subscription = %delivery.subscription,
                delivery_id = %delivery.id,
                trace_id = trace::id_of(delivery, &members).as_deref(),
                $($fields)+
            );
        }
    };
}

/// Writes the log to standard output as JSON lines; [`crate::runtime`] says when. `RUST_LOG`
/// chooses the level, `info` without it: a level for all, or `target=level` in a list. Filters by
/// span or field are not understood; they would bring regular expressions.
pub fn log_json() {
    let asked = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let levels = asked.unwrap_or_else(|| Targets::new().with_default(Level::INFO));
    tracing_subscriber::registry().with(levels).with(Lines::to(hold)).init();
    // The usual report quotes what broke us, which may be an event.
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(|at| format!("{}:{}", at.file(), at.line()));
        error!(at, "panic.raised");
        // Perhaps this is the end.
        flush();
    }));
}

/// A publisher's word in a line: the beginning of a long one.
fn short(word: &str) -> &str {
    &word[..word.floor_char_boundary(WORD_MAX_BYTES)]
}

/// Writes lines of metrics to standard output, where CloudWatch finds them, and every line of the
/// log before them.
pub fn write(lines: &[String]) {
    lines.iter().for_each(|line| hold(Level::INFO, &format!("{line}\n")));
    flush();
}

/// Why a delivery is held without an attempt, and without counting one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Its subscription is paused.
    Paused,
    /// Its destination has not consented yet.
    Consent,
    /// It is over the rate that its destination allows.
    Rate,
}

impl Held {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Consent => "consent",
            Self::Rate => "rate",
        }
    }
}

/// What a function tells and counts.
#[derive(Debug, Default)]
pub struct Telemetry {
    meter: Meter,
}

impl Telemetry {
    /// One that counts; the default one only tells.
    #[must_use]
    pub fn new(settings: MetricsSettings) -> Self {
        Self { meter: Meter::new(settings) }
    }

    /// The metric lines about what happened since they were read last.
    #[must_use]
    pub fn metrics(&self, now_ms: u64) -> Vec<String> {
        self.meter.read(now_ms)
    }

    /// A published event that a subscription wants, once its record is done.
    pub fn matched(&self, subscription: &SubscriptionName) {
        self.meter.count(Metric::MatchedEventCount, subscription, Label::None);
    }

    /// The line of an event that no subscription wants; `place` stands for the subscription it has
    /// not.
    pub fn unmatched(&self, message: &str, place: &SubscriptionName, event: &Event) {
        self.meter.count(Metric::UnmatchedEventCount, place, Label::None);
        if enabled!(Level::INFO) {
            let members = event.members();
            info!(
                event_id = members.id().as_deref().map(short),
                source = members.source().as_deref().map(short),
                "type" = members.event_type().as_deref().map(short),
                topic = %place.topic,
                trace_id = trace::of_event(event).as_ref().and_then(trace::Trace::id),
                message_id = message,
                "event.unmatched"
            );
        }
    }

    /// The line of an attempt.
    pub fn attempted(
        &self,
        delivery: &Delivery,
        subscription: &Subscription,
        exchange: &Exchange,
        settled: &Settled,
    ) {
        let outcome = exchange.outcome(&subscription.retry);
        let wait_ms = match settled.end {
            End::Retry { wait_ms } => Some(wait_ms),
            End::Done | End::DeadLetter(_) | End::ToSink(_) | End::Drop(_) => None,
        };
        self.count_attempt(delivery, exchange, outcome, wait_ms.is_some());
        line!(
            Level::INFO,
            delivery,
            leg = delivery.target.as_str(),
            attempt = delivery.attempts,
            outcome = outcome.as_str(),
            status = exchange.status(),
            verdict = settled.verdict.as_str(),
            wait_ms,
            duration_ms = exchange.duration_ms,
            "delivery.attempted"
        );
        if exchange.status() == Some(410)
            && outcome != Outcome::Success
            && delivery.target == DeliveryTarget::Destination
        {
            let destination = subscription.destination.display();
            warn!(subscription = %delivery.subscription, destination, "destination.retired");
        }
    }

    fn count_attempt(
        &self,
        delivery: &Delivery,
        exchange: &Exchange,
        outcome: Outcome,
        comes_again: bool,
    ) {
        let subscription = &delivery.subscription;
        // Of the others no packet left.
        if !matches!(outcome, Outcome::Blocked | Outcome::Aborted) {
            self.meter.measure(
                Metric::DestinationProcessingDurationInMs,
                subscription,
                exchange.duration_ms,
            );
        }
        if outcome != Outcome::Success {
            self.meter.count(
                Metric::DeliveryAttemptFailCount,
                subscription,
                Label::Outcome(outcome),
            );
        }
        if comes_again {
            self.meter.count(Metric::RetryScheduledCount, subscription, Label::Outcome(outcome));
        }
    }

    /// The line of a delivery that was taken: by its destination, by a reply address, or a dead
    /// letter by its sink.
    pub fn delivered(&self, delivery: &Delivery, now_ms: u64) {
        if let DeliveryTarget::Sink(letter) = &delivery.target {
            self.dead_lettered(letter);
            let sink = "address";
            return line!(Level::INFO, &letter.delivery, reason = %letter.reason, sink, "deadletter.handed_over");
        }
        let age_ms = now_ms.saturating_sub(delivery.published_ms);
        self.meter.count(Metric::DeliverySuccessCount, &delivery.subscription, Label::None);
        self.meter.measure(Metric::EventAgeAtDeliveryInMs, &delivery.subscription, age_ms);
        line!(
            Level::INFO,
            delivery,
            attempts = delivery.attempts,
            end = "Delivered",
            age_ms,
            "delivery.ended"
        );
    }

    /// The line of a delivery that ends without success and without a dead letter, because its
    /// subscription says so.
    pub fn dropped(&self, delivery: &Delivery, reason: Reason) {
        self.meter.count(Metric::DroppedEventCount, &delivery.subscription, Label::Reason(reason));
        line!(
            Level::WARN,
            delivery,
            attempts = delivery.attempts,
            end = "Dropped",
            reason = %reason,
            "delivery.ended"
        );
    }

    /// The line of a delivery that ended without success and whose dead letter is on its way to its
    /// sink: an address, which may refuse it yet, or a topic, whose subscriptions take it from
    /// here.
    pub fn left_for_sink(&self, letter: &DeadLetter, target: &DeliveryTarget) {
        match target {
            DeliveryTarget::Sink(_) => {}
            DeliveryTarget::Destination | DeliveryTarget::Reply => self.dead_lettered(letter),
        }
        dead_letter_sent(letter);
    }

    /// Counts a dead letter that is in storage; its line is [`stored`], written where its key is
    /// known.
    pub fn dead_lettered(&self, letter: &DeadLetter) {
        let subscription = &letter.delivery.subscription;
        self.meter.count(Metric::DeadLetteredCount, subscription, Label::Reason(letter.reason));
    }

    /// The line of a dead letter that storage refused for too long: a person has to rescue it from
    /// the last-resort queue, where it is now.
    pub fn last_resort(&self, letter: &DeadLetter, problem: &str) {
        let DeadLetter { delivery, reason, .. } = letter;
        self.meter.count(
            Metric::FailedDeadLetteredCount,
            &delivery.subscription,
            Label::Reason(*reason),
        );
        line!(Level::ERROR, delivery, reason = %reason, problem, "deadletter.last_resort");
    }
}

/// The line of a delivery that ended without success and whose dead letter has left: to its queue,
/// or to storage.
pub fn dead_letter_sent(letter: &DeadLetter) {
    let DeadLetter { delivery, reason, detail, .. } = letter;
    line!(
        Level::INFO,
        delivery,
        attempts = delivery.attempts,
        end = "DeadLettered",
        reason = %reason,
        detail = detail.as_deref(),
        "delivery.ended"
    );
}

/// The line of an answer that came after the response timeout and still counts.
pub fn late(delivery: &Delivery, exchange: &Exchange) {
    line!(
        Level::INFO,
        delivery,
        attempt = delivery.attempts,
        status = exchange.status(),
        duration_ms = exchange.duration_ms,
        "delivery.answered_late"
    );
}

/// The line of a delivery that is put off because its destination is on probation.
pub fn put_off(delivery: &Delivery, wait_ms: u64) {
    line!(
        Level::INFO,
        delivery,
        attempts = delivery.attempts,
        outcome = Outcome::Probation.as_str(),
        wait_ms,
        "delivery.put_off"
    );
}

/// The line of a delivery that may not be attempted yet, for a reason that is not its own.
pub fn held(delivery: &Delivery, why: Held, wait_ms: u64) {
    line!(
        Level::INFO,
        delivery,
        attempts = delivery.attempts,
        why = why.as_str(),
        wait_ms,
        "delivery.held"
    );
}

/// The lines of a destination whose probation began, went on or ended.
pub fn probation(subscription: &Subscription, outcome: Outcome, change: Change) {
    let (name, destination) = (&subscription.name, subscription.destination.display());
    let outcome = outcome.as_str();
    match change {
        Change::Began { lasts_ms } => {
            warn!(subscription = %name, destination, outcome, lasts_ms, "probation.began")
        }
        Change::Extended { lasts_ms } => {
            warn!(subscription = %name, destination, outcome, lasts_ms, "probation.goes_on")
        }
        Change::Ended => info!(subscription = %name, destination, "probation.ended"),
    }
}

/// The line of a destination that was asked whether it wants events.
pub fn asked(subscription: &Subscription, answer: &Answer) {
    let destination = subscription.destination.display();
    match answer {
        Answer::Granted(rate) => {
            info!(subscription = %subscription.name, destination, allowed_rate = %rate, "consent.granted");
        }
        Answer::Pending => warn!(subscription = %subscription.name, destination, "consent.pending"),
        Answer::Refused(why) => {
            warn!(subscription = %subscription.name, destination, why, "consent.refused")
        }
    }
}

/// The line of consents that could not be looked up or kept: deliveries wait, or others have to ask
/// again.
pub fn consent_unknown(subscription: &Subscription, problem: &str) {
    warn!(subscription = %subscription.name, problem, "consent.unknown");
}

/// The line of a message that neither queue nor storage took; its record comes again.
pub fn unsent(subscription: &str, problem: &str) {
    warn!(subscription, problem, "message.unsent");
}

/// The line of a record that goes back to its queue.
pub fn returned_to_queue(message: &str, why: &str) {
    warn!(message_id = message, why, "record.given_back");
}

/// The line of a panic that was contained: a fault of ours.
pub fn panicked(what: &str) {
    error!(what, "panic.contained");
}

/// The line of a dead letter in storage.
pub fn stored(delivery: &Delivery, reason: Reason, container: &str, key: &str) {
    line!(Level::INFO, delivery, reason = %reason, container, key, "deadletter.stored");
}

/// The line of a dead letter in a queue of somebody else's.
pub fn handed_over(delivery: &Delivery, reason: Reason, queue: &str) {
    line!(Level::INFO, delivery, reason = %reason, sink = queue, "deadletter.handed_over");
}

/// The line of a dead letter that its sink did not take; it goes to storage.
pub fn returned(letter: &DeadLetter, returned: &Returned) {
    let Returned { reason, attempts, .. } = returned;
    line!(Level::WARN, &letter.delivery, reason = %reason, attempts, "deadletter.returned");
}

/// The line of a dead letter that storage refused; it is tried again.
pub fn refused(delivery: &Delivery, problem: &str, wait_ms: u64) {
    line!(Level::WARN, delivery, problem, wait_ms, "deadletter.refused");
}
