//! Writes the log and counts metrics. Each attempt and each end of a delivery has a JSON line; a
//! successful attempt has one line for both.
//!
//! Lines contain names, numbers and reasons, never bodies, credentials or query strings. The level
//! `error` means that a person should act. Lines, metrics and dead letters use the terms of
//! `delivery`. `docs/reference/logs.md` lists the fields of each line.
//!
//! Each fact that is both logged and counted has one method of [`Telemetry`], so neither can be
//! forgotten. Metrics do not depend on the log level. A line below the level costs one comparison.

use delivery::delivery::health::Finding;
use delivery::delivery::health::notice::Transition;
use delivery::delivery::health::shared::DestinationState;
use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::delivery::reason::Reason;
use delivery::delivery::replay::ReplayEnd;
use delivery::delivery::{
    DeadLetter, Delivery, DeliveryTarget, Entry, Returned, WaitReason, Word, trace,
};
use delivery::event::Event;
use delivery::machine::consent::Answer;
use delivery::machine::step::{End, Settled};
use delivery::ports::{Clock as _, PublishingError, QueueName, SecretError};
use delivery::subscription::Subscription;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::time::duration::MINUTE_MS;
use tracing::{Level, enabled, error, event, info, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::json_log::{JsonLayer, flush, write_line};
use crate::machine::Machine;
use crate::metrics::{Label, Meter, Metric, MetricsSettings};

/// Maximum length of a logged value that a publisher chose, because CloudWatch limits the size of a
/// line. <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
const VALUE_MAX_BYTES: usize = 512;

/// Writes a log line about a delivery: its subscription and event, then the given fields. Parses
/// the event only if the level is enabled.
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

/// Sets up the log as JSON lines on standard output; [`crate::runtime`] decides when buffered lines
/// are written. `RUST_LOG` sets one level for all lines, or is a list of `target=level`. The
/// default is `info`. Filters by span or field are not supported, because they require a regular
/// expression crate.
pub fn log_json() {
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let levels = wanted.unwrap_or_else(|| Targets::new().with_default(Level::INFO));
    tracing_subscriber::registry().with(levels).with(JsonLayer(write_line)).init();
    // The default hook prints the panic message, which may quote an event.
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(|at| format!("{}:{}", at.file(), at.line()));
        error!(at, "panic.raised");
        // Flush, because the process may end now.
        flush();
    }));
}

/// Shortens a value from a publisher to at most [`VALUE_MAX_BYTES`] bytes.
fn short(value: &str) -> &str {
    value.get(..value.floor_char_boundary(VALUE_MAX_BYTES)).unwrap_or(value)
}

/// Writes all buffered log lines to standard output, and then the metric lines. CloudWatch reads
/// the metrics from there.
fn write(lines: &[String]) {
    lines.iter().for_each(|line| write_line(Level::INFO, &format!("{line}\n")));
    flush();
}

/// Logs an HTTP request that was published: its message is in the events queue.
pub fn request_published(topic: &TopicName, message: &str, events: usize, bytes: usize) {
    info!(topic = %topic, message_id = message, events, bytes, "request.published");
}

/// Logs a refused HTTP request. Omits the reason, because it may quote the request.
pub fn request_refused(status: u16) {
    info!(status, "request.refused");
}

/// Logs an HTTP request whose message the events queue refused. The client may repeat the request.
pub fn request_unpublished(topic: &TopicName, error: &PublishingError) {
    warn!(topic = %topic, problem = %error, "request.unpublished");
}

/// Logs a publisher key that cannot be read. Nobody can publish over HTTP with this key.
pub fn key_unreadable(error: &SecretError) {
    error!(problem = %error, "request.keys_unreadable");
}

/// Selects the deliveries that are logged. All deliveries are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogDeliveries {
    /// Log all deliveries.
    #[default]
    All,
    /// Log all deliveries except those that succeed at their first attempt.
    Failures,
}

/// Writes the log lines and counts the metrics of one function.
#[derive(Debug, Default)]
pub struct Telemetry {
    meter: Meter,
    log_deliveries: LogDeliveries,
}

impl Telemetry {
    /// Creates a value that logs and counts metrics. The default value only logs.
    #[must_use]
    pub fn new(settings: MetricsSettings) -> Self {
        Self { meter: Meter::new(settings), log_deliveries: LogDeliveries::default() }
    }

    /// Sets which deliveries are logged.
    #[must_use]
    pub fn with_log_deliveries(self, log_deliveries: LogDeliveries) -> Self {
        Self { log_deliveries, ..self }
    }

    /// Returns the lines of all metrics that are not written yet.
    #[must_use]
    pub fn metrics(&self, now_ms: u64) -> Vec<String> {
        self.meter.rest(now_ms)
    }

    /// Writes the metrics that are due when an invocation begins.
    pub fn invocation_begins(&self) {
        write(&self.meter.due_at_begin(Machine.now_ms()));
    }

    /// Writes all buffered log lines, and then the metrics that are due when an invocation ends.
    pub fn invocation_ends(&self) {
        write(&self.meter.due_at_end(Machine.now_ms()));
    }

    /// Writes all remaining metrics before the process ends.
    pub fn process_ends(&self) {
        write(&self.meter.rest(Machine.now_ms()));
    }

    /// Counts an event that matches a subscription. Called when the record of the event is done.
    pub fn matched(&self, subscription: &SubscriptionName) {
        self.meter.count(Metric::MatchedEventCount, subscription, Label::None);
    }

    /// Logs and counts an event that matches no subscription. `placeholder` replaces the name of
    /// the subscription.
    pub fn unmatched(&self, message: &str, placeholder: &SubscriptionName, event: &Event) {
        self.meter.count(Metric::UnmatchedEventCount, placeholder, Label::None);
        if enabled!(Level::INFO) {
            let members = event.members();
            info!(
                event_id = members.id().as_deref().map(short),
                source = members.source().as_deref().map(short),
                "type" = members.event_type().as_deref().map(short),
                topic = %placeholder.topic,
                trace_id = trace::of_event(event).as_ref().and_then(trace::Trace::id),
                message_id = message,
                "event.unmatched"
            );
        }
    }

    /// Logs a deferred delivery. Before the first attempt, also measures the age of the event.
    pub fn held(&self, delivery: &Delivery, why: WaitReason, wait_ms: u64, now_ms: u64) {
        if delivery.attempts == 0 {
            self.waited(delivery.starts_ms, now_ms);
        }
        if why == WaitReason::Probation {
            return put_off(delivery, wait_ms);
        }
        line!(
            Level::INFO,
            delivery,
            attempts = delivery.attempts,
            why = why.as_str(),
            wait_ms,
            "delivery.held"
        );
    }

    /// Measures the age of an event that waits for its first attempt, if the age is at least a
    /// minute. SQS cannot report this age, because a re-enqueued message counts as new.
    pub fn waited(&self, since_ms: u64, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(since_ms);
        if age_ms >= MINUTE_MS {
            self.meter.measure_alone(Metric::EventAgeBeforeAttemptInMs, age_ms);
        }
    }

    /// Logs the beginning of an attempt, at the level `debug`. By default, only the end is logged.
    pub fn attempting(&self, delivery: &Delivery) {
        line!(
            Level::DEBUG,
            delivery,
            leg = delivery.target.as_str(),
            attempt = delivery.attempts.saturating_add(1),
            "delivery.attempting"
        );
    }

    /// Counts an attempt. Also logs the attempt, unless it delivered its event: then
    /// [`Telemetry::delivered`] logs the attempt and the end in one line.
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
        let is_logged_with_its_end =
            settled.end == End::Done && !matches!(delivery.target, DeliveryTarget::Sink(_));
        if !is_logged_with_its_end {
            // Omit the detail of a response, because the endpoint wrote it.
            let why = exchange.detail.as_deref().filter(|_| exchange.status().is_none());
            attempt(delivery, settled.verdict.as_str(), wait_ms, why);
        }
        // Status 410 of a reply address or a sink does not concern the destination.
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
        is_retried: bool,
    ) {
        let subscription = &delivery.subscription;
        let count = |metric| self.meter.count(metric, subscription, Label::Outcome(outcome));
        // Blocked and aborted attempts sent no packet.
        if !matches!(outcome, Outcome::Blocked | Outcome::Aborted) {
            let metric = Metric::DestinationProcessingDurationInMs;
            self.meter.measure(metric, subscription, exchange.duration_ms);
        }
        if outcome != Outcome::Success {
            count(Metric::DeliveryAttemptFailCount);
        }
        if is_retried {
            count(Metric::RetryScheduledCount);
        }
    }

    /// Logs and counts a successful delivery: to its destination, to a reply address, or to the
    /// sink of a dead letter.
    pub fn delivered(&self, delivery: &Delivery, now_ms: u64) {
        if let DeliveryTarget::Sink(dead_letter) = &delivery.target {
            self.dead_lettered(dead_letter);
            return handed_over(&dead_letter.delivery, &dead_letter.reason, "address");
        }
        let age_ms = now_ms.saturating_sub(delivery.published_ms);
        self.meter.count(Metric::DeliverySuccessCount, &delivery.subscription, Label::None);
        // The age excludes a wait that the event or the subscription requests.
        let since_start_ms = now_ms.saturating_sub(delivery.starts_ms);
        let metric = Metric::EventAgeAtDeliveryInMs;
        self.meter.measure(metric, &delivery.subscription, since_start_ms);
        let at_first = delivery.attempts <= 1
            && !delivery.abandoned
            && delivery.history.newest_attempt().is_none_or(is_success);
        if self.log_deliveries == LogDeliveries::All || !at_first {
            delivered(delivery, age_ms);
        }
    }

    /// Logs and counts an attempt that was abandoned after `slow_after_ms` without a response. An
    /// abandoned attempt has no other effect.
    pub fn abandoned(&self, delivery: &Delivery, slow_after_ms: u64) {
        self.meter.count_alone(Metric::AbandonedAttemptCount);
        line!(
            Level::INFO,
            delivery,
            attempts = delivery.attempts,
            slow_after_ms,
            "delivery.abandoned"
        );
    }

    /// Counts a destination that became failing, slow or disabled. Also logs one that was disabled;
    /// each process logs failing and slow destinations itself. Only the process that stored the
    /// change calls this method, so each change is counted once.
    pub fn destination_changed(&self, state: &DestinationState, change: Transition) {
        let count = |metric| self.meter.count_alone(metric);
        match change {
            Transition::Failing => count(Metric::DestinationFailingCount),
            Transition::Slow => count(Metric::DestinationSlowCount),
            Transition::Disabled => {
                count(Metric::DestinationDisabledCount);
                let DestinationState { subscription, destination, .. } = state;
                warn!(subscription, destination, "destination.disabled");
            }
            Transition::Recovered | Transition::Enabled => {}
        }
    }

    /// Logs and counts a failed delivery that has no dead letter, because its subscription is
    /// configured to drop failed deliveries.
    pub fn dropped(&self, delivery: &Delivery, reason: &Word<Reason>) {
        self.count_end(Metric::DroppedEventCount, delivery, reason);
        line!(
            Level::WARN,
            delivery,
            attempts = delivery.attempts,
            end = "Dropped",
            reason = %reason,
            "delivery.ended"
        );
    }

    /// Logs a failed delivery whose dead letter is queued for its sink. Also counts the dead letter
    /// if the sink is a topic.
    pub fn sent_to_sink(&self, dead_letter: &DeadLetter, target: &DeliveryTarget) {
        match target {
            // The sink's address may still refuse the dead letter. It is counted when the address
            // accepts it.
            DeliveryTarget::Sink(_) => {}
            // A topic's subscriptions are responsible from here on, so count the dead letter now.
            DeliveryTarget::Destination | DeliveryTarget::Reply => self.dead_lettered(dead_letter),
        }
        dead_letter_sent(dead_letter);
    }

    /// Counts a stored dead letter. [`stored`] logs it, because its caller has the key.
    pub fn dead_lettered(&self, dead_letter: &DeadLetter) {
        let metric = match dead_letter.is_set_aside() {
            true => Metric::SetAsideCount,
            false => Metric::DeadLetteredCount,
        };
        self.count_end(metric, &dead_letter.delivery, &dead_letter.reason);
    }

    /// Logs and counts a dead letter that storage refused for too long. The dead letter is now in
    /// the last-resort queue, from which a person has to rescue it.
    pub fn last_resort(&self, dead_letter: &DeadLetter, problem: &str) {
        let DeadLetter { delivery, reason, .. } = dead_letter;
        self.count_end(Metric::FailedDeadLetteredCount, delivery, reason);
        line!(Level::ERROR, delivery, reason = %reason, problem, "deadletter.last_resort");
    }

    fn count_end(&self, metric: Metric, delivery: &Delivery, reason: &Word<Reason>) {
        self.meter.count(metric, &delivery.subscription, Label::Reason(reason.clone()));
    }
}

fn is_success(attempt: &Entry) -> bool {
    attempt.outcome == Outcome::Success
}

/// Logs an attempt that did not end its delivery successfully.
fn attempt(delivery: &Delivery, verdict: &str, wait_ms: Option<u64>, why: Option<&str>) {
    let Some(attempt) = delivery.history.newest_attempt() else { return };
    line!(
        Level::INFO,
        delivery,
        leg = delivery.target.as_str(),
        attempt = delivery.attempts,
        outcome = %attempt.outcome,
        status = attempt.status,
        verdict,
        wait_ms,
        duration_ms = attempt.duration_ms,
        why = why.map(short),
        "delivery.attempted"
    );
}

/// Logs a successful delivery, and its successful attempt if there is one. There is none for a late
/// response, or for an event that is forwarded to a different topic.
fn delivered(delivery: &Delivery, age_ms: u64) {
    let attempt = delivery.history.newest_attempt().filter(|attempt| is_success(attempt));
    let leg = delivery.target.as_str();
    line!(
        Level::INFO,
        delivery,
        // Most deliveries go to a destination, so `leg` is omitted for them.
        leg = (delivery.target != DeliveryTarget::Destination).then_some(leg),
        attempt = delivery.attempts,
        status = attempt.and_then(|attempt| attempt.status),
        duration_ms = attempt.map(|attempt| attempt.duration_ms),
        age_ms,
        "delivery.delivered"
    );
}

/// Logs a successful attempt whose delivery has not ended: the messages that follow from the
/// response could not be sent, so the attempt will be repeated.
pub fn repeated(delivery: &Delivery) {
    if delivery.history.newest_attempt().is_some_and(is_success) {
        attempt(delivery, "delivered", None, None);
    }
}

/// Logs the end of a failed delivery. Its dead letter is queued, or stored directly because it
/// could not be queued.
pub fn dead_letter_sent(dead_letter: &DeadLetter) {
    let DeadLetter { delivery, reason, detail, .. } = dead_letter;
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

/// Logs a response that came after the response timeout and still counts.
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

/// Logs a delivery that is deferred because its destination is on probation.
fn put_off(delivery: &Delivery, wait_ms: u64) {
    line!(
        Level::INFO,
        delivery,
        attempts = delivery.attempts,
        outcome = Outcome::Probation.as_str(),
        wait_ms,
        "delivery.put_off"
    );
}

/// Logs that the probation of an address began, continues or ended.
pub fn probation(name: &SubscriptionName, destination: &str, outcome: Outcome, found: Finding) {
    let outcome = outcome.as_str();
    match found {
        Finding::Began { lasts_ms } => {
            warn!(subscription = %name, destination, outcome, lasts_ms, "probation.began");
        }
        Finding::GoesOn { lasts_ms } => {
            warn!(subscription = %name, destination, outcome, lasts_ms, "probation.goes_on");
        }
        Finding::Ended => info!(subscription = %name, destination, "probation.ended"),
    }
}

/// Logs that a destination became slow to respond, or is no longer slow.
pub fn slow_destination(name: &SubscriptionName, destination: &str, found: Finding) {
    match found {
        Finding::Began { lasts_ms } | Finding::GoesOn { lasts_ms } => {
            warn!(subscription = %name, destination, lasts_ms, "destination.slow");
        }
        Finding::Ended => {
            info!(subscription = %name, destination, "destination.recovered");
        }
    }
}

/// Logs that the table cannot be read or written. Until it is reachable again, each process decides
/// by itself.
pub fn table_unreachable(problem: &str) {
    warn!(problem, "table.unreachable");
}

/// Logs the response of a destination to a request for consent.
pub fn consent_answered(subscription: &Subscription, answer: &Answer) {
    let destination = subscription.destination.display();
    match answer {
        Answer::Granted(rate) => {
            info!(subscription = %subscription.name, destination, allowed_rate = %rate, "consent.granted");
        }
        Answer::Pending => warn!(subscription = %subscription.name, destination, "consent.pending"),
        Answer::Refused(why) => {
            warn!(subscription = %subscription.name, destination, why, "consent.refused");
        }
    }
}

/// Logs that a consent could not be read or stored. If reading failed, deliveries wait. If storing
/// failed, the consent applies only once, and is then requested again.
pub fn consent_unknown(subscription: &Subscription, problem: &str) {
    warn!(subscription = %subscription.name, problem, "consent.unknown");
}

/// Logs a message that its queue refused. The message is then sent to the substitute queue; a dead
/// letter is stored directly.
pub fn rerouted(subscription: &str, queue: QueueName, problem: &str) {
    warn!(subscription, ?queue, problem, "message.rerouted");
}

/// Logs a message that neither a queue nor storage accepted. SQS redelivers its record.
pub fn unsent(subscription: &str, problem: &str) {
    warn!(subscription, problem, "message.unsent");
}

/// Logs a record that returns to its queue.
pub fn returned_to_queue(message: &str, why: &str) {
    warn!(message_id = message, why, "record.given_back");
}

/// Logs a record that is re-enqueued, because it cannot be read at present.
pub fn record_held(message: &str, why: &str, wait_ms: u64) {
    warn!(message_id = message, why, wait_ms, "record.held");
}

/// Logs a record of a newer version that has waited an hour for a program that can read it.
pub fn unreadable_for_long(message: &str, why: &str) {
    error!(message_id = message, why, "record.unreadable");
}

/// Logs that a record moves to the isolation queue after it was received `receives` times.
pub fn isolated(message: &str, receives: u32) {
    warn!(message_id = message, receives, "record.isolated");
}

/// Logs a record that is divided into parts, because it has too much work for one invocation.
pub fn divided(message: &str, parts: usize) {
    info!(message_id = message, parts, "record.divided");
}

/// Logs that this process will not receive SIGTERM, and will lose unwritten metrics when it ends.
pub fn stop_unannounced(problem: &str) {
    warn!(problem, "stop.unannounced");
}

/// Logs that the clock of this machine is wrong. `offset_ms` is the correction from now on; 0 if
/// the clock is right again.
pub fn clock_corrected(offset_ms: i64) {
    warn!(offset_ms, "clock.corrected");
}

/// Logs a contained panic, which is a bug of lastmile.
pub fn panicked(task: &str) {
    error!(what = task, "panic.contained");
}

/// Logs a dead letter that is stored in a container.
pub fn stored(delivery: &Delivery, reason: &Word<Reason>, container: &str, key: &str) {
    line!(Level::INFO, delivery, reason = %reason, container, key, "deadletter.stored");
}

/// Logs a dead letter that its sink (an external queue or an address) accepted.
pub fn handed_over(delivery: &Delivery, reason: &Word<Reason>, sink: &str) {
    line!(Level::INFO, delivery, reason = %reason, sink, "deadletter.handed_over");
}

/// Logs a dead letter that its sink refused. The dead letter is then stored in a container.
pub fn returned(dead_letter: &DeadLetter, returned: &Returned) {
    let Returned { reason, attempts, .. } = returned;
    line!(Level::WARN, &dead_letter.delivery, reason = %reason, attempts, "deadletter.returned");
}

/// Logs that the result of a replayed delivery was recorded.
pub fn replay_ended(end: &ReplayEnd) {
    let (job, outcome) = (end.replay.job(), end.outcome.as_str());
    let (letter, delivery) = (end.replay.letter.to_string(), end.delivery.to_string());
    info!(job, letter, delivery, outcome, "replay.ended");
}

/// Logs that storage refused the result of a replayed delivery. Recording is retried.
pub fn replay_end_refused(end: &ReplayEnd, problem: &str, wait_ms: u64) {
    let (job, letter) = (end.replay.job(), end.replay.letter.to_string());
    warn!(job, letter, problem, wait_ms, "replay.end_refused");
}

/// Logs that the result of a replayed delivery could not be recorded, so that the job never receives
/// it. `message` is the id of the message with the result.
pub fn replay_end_lost(message: &str, problem: &str) {
    warn!(message_id = message, problem, "replay.end_lost");
}

/// Logs that the result of a replayed delivery could not be sent. The job never receives it.
pub fn replay_end_unsent(end: &ReplayEnd, problem: &str) {
    let (job, outcome) = (end.replay.job(), end.outcome.as_str());
    let (letter, delivery) = (end.replay.letter.to_string(), end.delivery.to_string());
    warn!(job, letter, delivery, outcome, problem, "replay.end_lost");
}

/// Logs a dead letter that storage refused. Storing is retried.
pub fn refused(delivery: &Delivery, problem: &str, wait_ms: u64) {
    line!(Level::WARN, delivery, problem, wait_ms, "deadletter.refused");
}
