//! What is kept of an answer, and the credentials that are hidden in it before.
//!
//! Separate because answers differ: nothing is kept of a success, the beginning of the body of a
//! failure, and the whole body of a reply. A reply is an event, so only those credentials are hidden
//! in it that no event has by chance.
//!
//! Promises: an answer of which nothing is kept costs nothing.

use crate::delivery::outcome::{Exchange, Outcome};
use crate::delivery::{Delivery, DeliveryTarget, RESPONSE_KEPT_BYTES};
use crate::machine::reply::ReplyKind;
use crate::subscription::credentials::Credentials;
use crate::subscription::secret::Keyring;
use crate::subscription::sink::Sink;
use crate::subscription::{ReplyTo, Subscription};

/// So much of the answer to a failed attempt is searched: what is kept, and as much again, so that a
/// credential across the limit is recognised by more than its beginning.
const SEARCHED_BYTES: usize = 2 * RESPONSE_KEPT_BYTES;

/// Whether anything of an exchange may be kept: a detail, the body of a failure, a reply.
#[must_use]
pub fn is_kept(exchange: &Exchange, subscription: &Subscription) -> bool {
    let has_body = exchange.answer().is_some_and(|(_, body)| !body.is_empty());
    let is_success = || exchange.outcome(&subscription.retry) == Outcome::Success;
    let has_attributes = exchange.content.as_ref().is_some_and(|of| !of.attributes.is_empty());
    let may_reply = subscription.reply.is_some() && (has_body || has_attributes);
    exchange.detail.is_some() || may_reply || (has_body && !is_success())
}

/// What one request sends as credentials.
#[derive(Debug)]
pub struct SentCredentials {
    all: Credentials,
    /// Those that are hidden even in events.
    certain: Credentials,
    /// Whether an answer may be a reply.
    takes_reply: bool,
}

impl SentCredentials {
    /// Those of the request of these deliveries.
    #[must_use]
    pub fn of(subscription: &Subscription, deliveries: &[&Delivery], keyring: &Keyring) -> Self {
        let (destination, first) = (&subscription.destination, deliveries.first());
        let other = match first.map(|delivery| &delivery.target) {
            None | Some(DeliveryTarget::Destination) => {
                let event = first.map(|delivery| &delivery.event);
                return Self {
                    all: destination.credentials(keyring, event),
                    certain: destination.certain_credentials(keyring),
                    takes_reply: subscription.reply.is_some(),
                };
            }
            Some(DeliveryTarget::Reply) => match &subscription.reply {
                Some(ReplyTo::Address(url)) => Some((url, destination.hide_path)),
                Some(ReplyTo::Topic(_)) | None => None,
            },
            Some(DeliveryTarget::Sink(_)) => match &subscription.dead_letter.sink {
                Sink::Address(url) => Some((url, subscription.dead_letter.hide_path)),
                Sink::DefaultContainer
                | Sink::Container(_)
                | Sink::Queue(_)
                | Sink::Topic(_)
                | Sink::None => None,
            },
        };
        let mut all = Credentials::default();
        if let Some((url, hide_path)) = other {
            all.add_url(url);
            if hide_path {
                all.add_path(url);
            }
        }
        Self { all, certain: Credentials::default(), takes_reply: false }
    }

    /// Hides them in what is kept of the answer.
    #[must_use]
    pub fn hide_in(&self, exchange: Exchange) -> Exchange {
        match ReplyKind::of(&exchange).filter(|_| self.takes_reply) {
            Some(ReplyKind::Event) => exchange.redact(&self.certain, usize::MAX),
            // It is stored whole, in place of the event that it should have been.
            Some(ReplyKind::Unreadable) => exchange.redact(&self.all, usize::MAX),
            Some(ReplyKind::TooLarge) | None => exchange.redact(&self.all, SEARCHED_BYTES),
        }
    }
}
