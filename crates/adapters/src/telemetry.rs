//! The log: JSON, one line per attempt and one per end.
//!
//! Lines carry names, numbers and reasons, never bodies, credentials or query strings. `error` means that a person
//! should act. The words are those of `delivery`, so that a line, a metric and a dead letter say the same.

use delivery::consent::Answer;
use delivery::deadletter::Reason;
use delivery::delivery::Delivery;
use delivery::outcome::{Exchange, Outcome};
use delivery::step::{End, Settled};
use delivery::subscription::Subscription;
use tracing::{Level, error, info, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes the log to standard output as JSON lines; `RUST_LOG` chooses the level, `info` without it: a level for all,
/// or `target=level` in a list. Filters by span or field are not understood; they would bring regular expressions.
pub fn log_json() {
    let asked = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let levels = asked.unwrap_or_else(|| Targets::new().with_default(Level::INFO));
    let lines = fmt::layer().json().flatten_event(true).with_target(false);
    tracing_subscriber::registry().with(levels).with(lines).init();
}

/// The line of an attempt.
pub fn attempted(delivery: &Delivery, subscription: &Subscription, exchange: &Exchange, settled: &Settled) {
    let members = delivery.event.members();
    let outcome = exchange.outcome(&subscription.retry);
    let wait_ms = match settled.end {
        End::Retry { wait_ms } => Some(wait_ms),
        End::Done | End::DeadLetter(_) | End::Drop(_) => None,
    };
    info!(
        event_id = members.id().as_deref(),
        source = members.source().as_deref(),
        r#type = members.event_type().as_deref(),
        subscription = %delivery.subscription,
        delivery_id = %delivery.id,
        attempt = delivery.attempts,
        outcome = outcome.as_str(),
        status = exchange.status(),
        verdict = settled.verdict.as_str(),
        wait_ms,
        duration_ms = exchange.duration_ms,
        "delivery.attempted"
    );
    if exchange.status() == Some(410) && outcome != Outcome::Success {
        let destination = subscription.destination.display();
        warn!(subscription = %delivery.subscription, destination, "destination.retired");
    }
}

/// The line of an answer that came after the response timeout and still counts.
pub fn late(delivery: &Delivery, exchange: &Exchange) {
    info!(
        event_id = delivery.event.members().id().as_deref(),
        subscription = %delivery.subscription,
        delivery_id = %delivery.id,
        attempt = delivery.attempts,
        status = exchange.status(),
        duration_ms = exchange.duration_ms,
        "delivery.answered_late"
    );
}

/// The line of a delivery that is put off because its destination is on probation.
pub fn put_off(delivery: &Delivery, wait_ms: u64) {
    info!(
        event_id = delivery.event.members().id().as_deref(),
        subscription = %delivery.subscription,
        delivery_id = %delivery.id,
        attempts = delivery.attempts,
        outcome = Outcome::Probation.as_str(),
        wait_ms,
        "delivery.put_off"
    );
}

/// The line of a delivery that ends without success and without a dead letter, because its subscription says so.
pub fn dropped(delivery: &Delivery, reason: Reason) {
    warn!(
        event_id = delivery.event.members().id().as_deref(),
        subscription = %delivery.subscription,
        delivery_id = %delivery.id,
        attempts = delivery.attempts,
        end = "Dropped",
        reason = %reason,
        "delivery.ended"
    );
}

/// The line of an end: delivered, or why not.
pub fn ended(delivery: &Delivery, end: &str, reason: Option<Reason>) {
    let members = delivery.event.members();
    info!(
        event_id = members.id().as_deref(),
        subscription = %delivery.subscription,
        delivery_id = %delivery.id,
        attempts = delivery.attempts,
        end,
        reason = reason.map(|reason| reason.to_string()),
        "delivery.ended"
    );
}

/// The line of a destination that was asked whether it wants events.
pub fn asked(subscription: &Subscription, answer: &Answer) {
    let destination = subscription.destination.display();
    match answer {
        Answer::Granted(rate) => {
            info!(subscription = %subscription.name, destination, allowed_rate = %rate, "consent.granted");
        }
        Answer::Pending => warn!(subscription = %subscription.name, destination, "consent.pending"),
        Answer::Refused(why) => warn!(subscription = %subscription.name, destination, why, "consent.refused"),
    }
}

/// The line of consents that could not be looked up or kept: deliveries wait, or others have to ask again.
pub fn consent_unknown(subscription: &Subscription, problem: &str) {
    warn!(subscription = %subscription.name, problem, "consent.unknown");
}

/// The line of a message that neither queue nor storage took; its record comes again.
pub fn unsent(subscription: &str, problem: &str) {
    warn!(subscription, problem, "message.unsent");
}

/// The line of a record that no subscription wants.
pub fn unmatched(message: &str) {
    info!(message_id = message, "record.unmatched");
}

/// The line of a record that goes back to its queue.
pub fn given_back(message: &str, why: &str) {
    warn!(message_id = message, why, "record.given_back");
}

/// The line of a panic that was contained: a fault of ours.
pub fn panicked(what: &str) {
    error!(what, "panic.contained");
}

/// The line of a dead letter in storage.
pub fn stored(delivery: &Delivery, reason: Reason, container: &str, key: &str) {
    info!(subscription = %delivery.subscription, delivery_id = %delivery.id, reason = %reason, container, key, "deadletter.stored");
}

/// The line of a dead letter that storage refused; it is tried again.
pub fn refused(delivery: &Delivery, problem: &str, wait_ms: u64) {
    warn!(subscription = %delivery.subscription, delivery_id = %delivery.id, problem, wait_ms, "deadletter.refused");
}

/// The line of a dead letter that storage refused for too long: a person has to rescue it from the last-resort queue.
pub fn last_resort(delivery: &Delivery, problem: &str) {
    error!(subscription = %delivery.subscription, delivery_id = %delivery.id, problem, "deadletter.last_resort");
}
