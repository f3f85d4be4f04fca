//! Derives a dead letter from a delivery and its subscription.
//!
//! This module is separate from the type [`DeadLetter`], which is beside [`Delivery`] because each
//! contains the other. The top module `deadletter` writes the blob, and `wire` writes the message
//! attribute.

use std::fmt;

use super::addresses::Addresses;
use super::delivery::{DeadLetter, Delivery, DeliveryTarget};
use super::detail::truncated_detail;
use super::reason::Reason;
use super::returned::Returned;
use super::store::Store;
use super::word::Word;
use crate::event::Shape;
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{ErrorData, Format, Layout, Response};
use crate::subscription::sink::Sink;
use crate::subscription::{DeadLetterPolicy, ReplyTo, Subscription, addressed, shown};
use crate::time::duration::DAY_MS;

impl DeadLetter {
    /// Returns the dead letter of a delivery whose subscription does not exist. It is stored in the
    /// default container, and storing is retried for two days. For a delivery to a sink, returns
    /// the original dead letter with the failure at the sink.
    #[must_use]
    pub fn without_subscription(delivery: Delivery, reason: Reason, decided_ms: u64) -> Self {
        // Completes the original dead letter, because a dead letter never contains another one.
        if let DeliveryTarget::Sink(letter) = delivery.target {
            let Delivery { attempts, history, last_response, .. } = delivery;
            let reason = reason.into();
            let returned =
                Returned { address: None, reason, detail: None, attempts, history, last_response };
            // Prefers the replay of the delivery to the sink over that of the original delivery.
            let replay = delivery.replay.or_else(|| letter.delivery.replay.clone());
            return Self {
                delivery: Delivery { replay, ..letter.delivery },
                decided_ms,
                not_before_ms: decided_ms,
                returned: Some(returned),
                ..*letter
            };
        }
        // These two reasons state only that a limit was reached, so the detail of the last attempt
        // has the cause.
        let is_limit =
            matches!(reason, Reason::TimeToLiveExceeded | Reason::MaxDeliveryAttemptsExceeded);
        Self {
            detail: delivery.last_detail.clone().filter(|_| is_limit),
            delivery,
            reason: reason.into(),
            decided_ms,
            not_before_ms: decided_ms,
            store: Store::DefaultContainer,
            sink_error: None,
            returned: None,
            // Only this format and layout can represent everything, even malformed text.
            format: Format::Namespace,
            layout: Layout::Nested,
            error_data: ErrorData::Text,
            keep_trying_for_ms: 2 * DAY_MS,
            headers: Vec::new(),
            destination: None,
            mapped: None,
            addresses: None,
        }
    }

    /// Returns the dead letter of a delivery, with the settings of its subscription. The caller has
    /// checked that the subscription does not drop dead letters.
    #[must_use]
    pub fn new(
        mut delivery: Delivery,
        subscription: &Subscription,
        reason: Reason,
        decided_ms: u64,
    ) -> Self {
        let (policy, destination) = (&subscription.dead_letter, &subscription.destination);
        // The subscription may have disabled storing responses after the last attempt.
        if policy.response != Response::Beginning {
            (delivery.last_response, delivery.last_headers) = (None, Vec::new());
        }
        let format = policy.format.format(delivery.event.shape(), destination.schema);
        // If the reply is malformed, the subscriber is the cause, so its destination is shown.
        let is_reply = delivery.target == DeliveryTarget::Reply && reason != Reason::MalformedEvent;
        // Resolves headers now, because the function that writes the dead letter has no
        // subscription. Replies are sent without these headers.
        let headers = destination.headers.iter().filter(|_| !is_reply);
        let headers = headers.filter_map(|header| header.shown(&delivery.event));
        let to_reply = subscription.reply.as_ref().and_then(|reply| match reply {
            ReplyTo::Address(url) => Some(shown(url, destination.hide_path)),
            ReplyTo::Topic(_) => None,
        });
        Self {
            store: match &policy.sink {
                Sink::Container(container) => Store::Container(container.clone()),
                Sink::Queue(queue) => Store::Queue(queue.clone()),
                // An address or a topic is tried first; the default container is used if that
                // fails.
                Sink::DefaultContainer | Sink::Address(_) | Sink::Topic(_) | Sink::None => {
                    Store::DefaultContainer
                }
            },
            not_before_ms: not_before_ms(&delivery, policy, decided_ms),
            format,
            layout: policy.layout,
            error_data: policy.error_data,
            keep_trying_for_ms: policy.keep_trying_for_ms,
            headers: headers.collect(),
            destination: if is_reply { to_reply } else { Some(destination.display()) },
            mapped: mapped(&delivery, subscription, format),
            addresses: addresses(&delivery, subscription, format),
            ..Self::without_subscription(delivery, reason, decided_ms)
        }
    }

    /// Returns the dead letter of a delivery whose subscription is paused or whose destination is
    /// disabled. It is stored at once in the default container, whatever the subscription's
    /// settings for dead letters are, so that it can be replayed later.
    #[must_use]
    pub fn set_aside(
        delivery: Delivery,
        subscription: &Subscription,
        reason: Reason,
        decided_ms: u64,
    ) -> Self {
        let is_to_sink = matches!(delivery.target, DeliveryTarget::Sink(_));
        let letter = match is_to_sink {
            true => Self::without_subscription(delivery, reason, decided_ms),
            false => Self::new(delivery, subscription, reason, decided_ms),
        };
        Self { store: Store::DefaultContainer, not_before_ms: decided_ms, ..letter }
    }

    /// Returns true if the delivery did not fail: its subscription was paused, or its destination
    /// was disabled. Such a dead letter can be replayed.
    #[must_use]
    pub fn is_set_aside(&self) -> bool {
        self.newest_reason().known().is_some_and(Reason::sets_aside)
    }

    /// Adds a detail to the newest reason. A long detail is truncated.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        let detail = Some(truncated_detail(&detail.to_string()));
        match &mut self.returned {
            Some(returned) => returned.detail = detail,
            None => self.detail = detail,
        }
        self
    }

    /// Returns the reason why the last delivery ended. The last delivery is the one to the sink if
    /// there was one, otherwise the original delivery.
    #[must_use]
    pub fn newest_reason(&self) -> &Word<Reason> {
        self.returned.as_ref().map_or(&self.reason, |returned| &returned.reason)
    }

    /// Changes the storage to the default container, because the sink cannot accept the dead
    /// letter.
    #[must_use]
    pub fn store_in_default(self, why: impl fmt::Display) -> Self {
        Self {
            store: Store::DefaultContainer,
            sink_error: Some(truncated_detail(&why.to_string())),
            ..self
        }
    }
}

/// Returns the earliest time at which the dead letter may be written. It is the time of the
/// decision, or, if later, the time of the last attempt plus the policy's delay (Event Grid,
/// "message delivery and retry", dead-letter events).
fn not_before_ms(delivery: &Delivery, policy: &DeadLetterPolicy, decided_ms: u64) -> u64 {
    let last = delivery.history.newest_attempt();
    last.map_or(decided_ms, |attempt| attempt.at_ms.saturating_add(policy.delay_ms).max(decided_ms))
}

/// Returns the mapped attributes of a custom event if the format needs them. They are computed now,
/// because the function that writes the dead letter does not have the mapping.
fn mapped(delivery: &Delivery, subscription: &Subscription, format: Format) -> Option<Mapped> {
    let asked_for = match format {
        // The namespace format shows the event as it was published.
        Format::Namespace => false,
        Format::EventGrid | Format::CloudEvents | Format::Custom | Format::Knative => {
            delivery.event.shape() == Shape::Custom
        }
    };
    asked_for.then(|| delivery.mapped(&subscription.mapping))
}

/// Returns the addresses with their queries for the Knative format. Returns `None` for other
/// formats: they do not need queries, which may be confidential.
fn addresses(
    delivery: &Delivery,
    subscription: &Subscription,
    format: Format,
) -> Option<Addresses> {
    match format {
        Format::Knative => {}
        Format::Namespace | Format::EventGrid | Format::CloudEvents | Format::Custom => {
            return None;
        }
    }
    let subscriber = subscription.destination.address();
    let failed = match (&delivery.target, &subscription.reply) {
        (DeliveryTarget::Reply, Some(ReplyTo::Address(url))) => {
            addressed(url, subscription.destination.hide_path)
        }
        (DeliveryTarget::Reply, Some(ReplyTo::Topic(_)) | None)
        | (DeliveryTarget::Destination | DeliveryTarget::Sink(_), _) => subscriber.clone(),
    };
    Some(Addresses { subscriber, failed })
}
