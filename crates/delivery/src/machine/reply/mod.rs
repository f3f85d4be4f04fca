//! Delivers or publishes replies, which are responses that contain an event.
//!
//! In Knative a subscriber may respond with a CloudEvent. A reply to an address becomes a delivery
//! with its own attempts. A reply to a topic is published there once. Either is enqueued before the
//! original delivery is done. A plain body is neither a reply nor an error. Two subscriptions could
//! reply to each other forever, so replies are counted. Beyond [`HOPS_MAX`] replies in a chain, or
//! the [`budget`] of one event, a reply becomes a dead letter.
//!
//! A reply is delivered as a whole or becomes a dead letter. The same response to the same attempt
//! yields the same ids.

pub(super) mod budget;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::budget::{HOPS_MAX, unread_topics};
use self::budget::{over_budget, via};
use crate::delivery::outcome::{Content, Exchange};
use crate::delivery::reason::Reason;
use crate::delivery::{
    DeadLetter, Delivery, DeliveryTarget, Origin, RESPONSE_KEPT_BYTES, check_moment, trace,
};
use crate::event::binary::ContentMode;
use crate::event::json::escaped;
use crate::event::{Element, Event, Input, binary, decode_one, is_queue_character};
use crate::machine::follow_up::{FollowUp, send_to_sink};
use crate::machine::forward::{Refused, Source};
use crate::request::REPLY_MAX_BYTES;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::dead_letter_format::Response;
use crate::subscription::name::TopicName;
use crate::subscription::sink::Sink;
use crate::subscription::{ReplyTo, Subscription};

/// Returns the actions that the response to a successful delivery requires. There are none unless
/// the subscription accepts replies and the response is a reply.
#[must_use]
pub fn follow_ups(
    delivery: &Delivery,
    subscription: &Subscription,
    exchange: &Exchange,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Vec<FollowUp> {
    let (DeliveryTarget::Destination, Some(to)) = (&delivery.target, &subscription.reply) else {
        return Vec::new();
    };
    let Some(reply_content) = reply_content(exchange) else { return Vec::new() };
    let answered = Answered { delivery, subscription, catalogue, now_ms };
    let event = match reply_content.possible(now_ms) {
        ReplyContent::Event(event) => event,
        // A reply that is no event is a response too, so `response: none` forbids storing it.
        ReplyContent::Unreadable(_, why) if subscription.dead_letter.response == Response::None => {
            return answered.dead_letter_without_reply(why);
        }
        ReplyContent::Unreadable(text, why) => {
            return answered.dead_letter(text, Reason::MalformedEvent, &why);
        }
        ReplyContent::TooLarge(beginning) => return answered.dead_letter_too_large(beginning),
    };
    match to {
        ReplyTo::Address(_) => answered.deliver(event),
        ReplyTo::Topic(topic) => answered.publish(event, topic),
    }
}

/// A delivery whose response is a reply.
struct Answered<'a> {
    delivery: &'a Delivery,
    subscription: &'a Subscription,
    catalogue: &'a Catalogue,
    now_ms: u64,
}

impl Answered<'_> {
    /// Returns the delivery that sends the reply to the reply address. If that is not possible,
    /// returns a dead letter.
    fn deliver(&self, event: Event) -> Vec<FollowUp> {
        let Answered { delivery, subscription, catalogue, now_ms } = *self;
        let left = budget::left_after(delivery, None, catalogue, 1, now_ms);
        let refused = match left {
            _ if delivery.hops >= HOPS_MAX => {
                format!("the chain of replies is longer than {HOPS_MAX}")
            }
            None => over_budget(delivery, subscription, 1),
            Some(left) => {
                let reply = self.reply(event, DeliveryTarget::Reply);
                let reply = Delivery { replies_left: Some(left), ..reply };
                return vec![FollowUp::Deliver(Box::new(reply))];
            }
        };
        self.refuse(event, (Reason::ReplyLoop, refused))
    }

    /// Returns the message that publishes the reply to a topic. If that is not possible, returns a
    /// dead letter.
    fn publish(&self, event: Event, to: &TopicName) -> Vec<FollowUp> {
        let Answered { delivery, subscription, catalogue, now_ms } = *self;
        let from = Source { delivery, subscription, catalogue, now_ms };
        let origin = Origin::made_by(delivery.id, event.text());
        let message = from.left_after(&event, to, false).and_then(|left| {
            // A reply is a new event, so it has visited no topics.
            from.publish(&event, origin, to, left, via(delivery, Vec::new(), catalogue))
        });
        match message {
            Ok(message) => vec![FollowUp::Publish(Box::new(message))],
            Err(refused) => self.refuse(event, refused),
        }
    }

    /// Returns one dead letter in place of all deliveries of the reply.
    fn refuse(&self, event: Event, (reason, why): Refused) -> Vec<FollowUp> {
        let replies_left = Some(budget::left_before(self.delivery, self.catalogue, self.now_ms));
        let reply = Delivery { replies_left, ..self.reply(event, DeliveryTarget::Reply) };
        self.undeliverable(reply, self.subscription, reason, &why)
    }

    fn dead_letter(&self, text: String, reason: Reason, why: &str) -> Vec<FollowUp> {
        let event = Event::recall(&queueable(&text).into(), Input::Opaque);
        let reply = self.reply(event, DeliveryTarget::Reply);
        let why = format!("the subscriber's reply is not a valid event: {why}");
        self.undeliverable(reply, self.subscription, reason, &why)
    }

    /// Returns a dead letter without any part of the reply. It does not contain the original event
    /// either, because the original event would then seem to be unreadable.
    fn dead_letter_without_reply(&self, why: Cow<'static, str>) -> Vec<FollowUp> {
        // An error text that was composed for this reply may quote the reply.
        let why = match why {
            Cow::Borrowed(why) => why,
            Cow::Owned(_) => "the reply cannot be read",
        };
        let members = self.delivery.event.members();
        let id = members.id().unwrap_or_default();
        let source = members.source().unwrap_or_default();
        let why = format!(
            "{why}; its content is not stored. The reply was to the event {id:?} from {source:?}"
        );
        self.dead_letter(String::new(), Reason::MalformedEvent, &why)
    }

    /// Returns a dead letter for a reply that is too large to store. It contains the event that was
    /// replied to, and goes to the subscription's sink like any other dead letter.
    fn dead_letter_too_large(&self, beginning: &[u8]) -> Vec<FollowUp> {
        let Answered { delivery, subscription, catalogue, now_ms } = *self;
        let (event, target) = (delivery.event.clone(), DeliveryTarget::Destination);
        let last_response = beginning[..beginning.len().min(RESPONSE_KEPT_BYTES)].to_vec();
        let reply = Delivery {
            // The original event keeps its origin, its remaining budget and its visited topics.
            origin: delivery.origin.clone(),
            replies_left: Some(budget::left_before(delivery, catalogue, now_ms)),
            via: via(delivery, delivery.via.clone(), catalogue),
            last_response: Some(last_response),
            ..self.reply(event, target)
        };
        let why =
            format!("the subscriber's reply to this event has more than {REPLY_MAX_BYTES} bytes");
        let reason = Reason::EventTooLargeToResend;
        let letter = DeadLetter::new(reply, subscription, reason, now_ms).with_detail(why);
        send_to_sink(letter, subscription, catalogue, now_ms)
    }

    /// Returns a dead letter of an undeliverable reply. If the sink is an address or a topic, the
    /// dead letter is stored in the deployment's container instead, because the sink might reply to
    /// it again.
    fn undeliverable(
        &self,
        reply: Delivery,
        subscription: &Subscription,
        reason: Reason,
        why: &str,
    ) -> Vec<FollowUp> {
        let letter = DeadLetter::new(reply, subscription, reason, self.now_ms).with_detail(why);
        vec![match subscription.dead_letter.sink {
            Sink::Address(_) | Sink::Topic(_) => FollowUp::DeadLetter(Box::new(
                letter.store_in_default("a reply that cannot be delivered is not sent to a sink"),
            )),
            Sink::DefaultContainer | Sink::Container(_) | Sink::Queue(_) => {
                FollowUp::DeadLetter(Box::new(letter))
            }
            Sink::None => FollowUp::Drop(Box::new(letter)),
        }]
    }

    fn reply(&self, event: Event, target: DeliveryTarget) -> Delivery {
        let origin = Origin::made_by(self.delivery.id, event.text());
        Delivery {
            target,
            hops: self.delivery.hops.saturating_add(1),
            // A reply is a new event, so it has visited no topics.
            via: via(self.delivery, Vec::new(), self.catalogue),
            // A reply without its own trace belongs to the trace of the original event.
            traceparent: trace::of_delivery(self.delivery).map(|trace| trace.parent),
            ..Delivery::new(event, self.subscription.name.clone(), origin, self.now_ms)
        }
    }
}

/// Classifies a response that declares itself a reply.
pub(crate) enum ReplyKind {
    /// The reply is an event, in the body alone or in body and headers.
    Event,
    /// The response cannot be decoded as an event.
    Unreadable,
    /// The body is larger than a reply may be, or was not read completely.
    TooLarge,
}

impl ReplyKind {
    pub(crate) fn from_exchange(exchange: &Exchange) -> Option<Self> {
        reply_content(exchange).map(|content| match content {
            ReplyContent::Event(_) => Self::Event,
            ReplyContent::Unreadable(..) => Self::Unreadable,
            ReplyContent::TooLarge(_) => Self::TooLarge,
        })
    }
}

/// The content of a response that declares itself a CloudEvent.
enum ReplyContent<'a> {
    Event(Event),
    /// The body as text, and the reason why it is not an event.
    Unreadable(String, Cow<'static, str>),
    TooLarge(&'a [u8]),
}

impl ReplyContent<'_> {
    /// Replaces an event with unreadable content if its `deliverat` is too far in the future. Other
    /// content stays unchanged.
    fn possible(self, now_ms: u64) -> Self {
        match self {
            Self::Event(event) => match check_moment(&event, now_ms) {
                Ok(()) => Self::Event(event),
                Err(why) => Self::Unreadable(event.text().to_string(), why.to_string().into()),
            },
            other @ (Self::Unreadable(..) | Self::TooLarge(_)) => other,
        }
    }
}

const MIXED: &str = "the ce-… headers and the body describe different events";

/// True if a response declares itself a reply. Its status must be 2xx except 202, and it must have
/// the content type of an event format or the header `ce-specversion`.
#[must_use]
pub fn declares_reply(status: u16, content_type: Option<&str>, has_version: bool) -> bool {
    let is_event = has_version || ContentMode::from_content_type(content_type) != ContentMode::Data;
    is_event && matches!(status, 200..=299) && status != 202
}

fn reply_content(exchange: &Exchange) -> Option<ReplyContent<'_>> {
    let (status, body) = exchange.answer()?;
    let content = exchange.content.as_ref()?;
    let content_type = content.content_type.as_deref();
    let in_headers = content.attributes.iter().any(|(name, _)| name == "specversion");
    if !declares_reply(status, content_type, in_headers) {
        return None;
    }
    let mode = ContentMode::from_content_type(content_type);
    if !content.whole || body.len() > REPLY_MAX_BYTES {
        return Some(ReplyContent::TooLarge(body));
    }
    let text = match event_text(mode, content, body) {
        Ok(text) => text,
        Err((text, why)) => return Some(ReplyContent::Unreadable(text, why)),
    };
    // An escape has the same meaning in JSON, and SQS refuses some unescaped characters.
    let text: Arc<str> = escaped(&text).into();
    Some(match decode_one(&text, Input::CloudEvents) {
        // Receivers that read the headers would get a different event than receivers that read the
        // body.
        Element::Event(event) if mode != ContentMode::Data && is_other(content, &event) => {
            ReplyContent::Unreadable(text.to_string(), MIXED.into())
        }
        Element::Event(event) => ReplyContent::Event(event),
        Element::Malformed { text, why } => {
            ReplyContent::Unreadable(text.to_string(), why.to_string().into())
        }
    })
}

/// True if `id`, `source` or `type` in a reply's headers differs from that in its body. Headers may
/// repeat attributes of the body (HTTP protocol binding, 3.2).
fn is_other(content: &Content, event: &Event) -> bool {
    let members = event.members();
    let differs = |(name, value): &(String, String)| {
        let named = matches!(name.as_str(), "id" | "source" | "type");
        named && members.text(name).as_deref() != binary::attribute_value(value).as_deref()
    };
    content.attributes.iter().any(differs)
}

/// Returns the event of a response as JSON. The response has declared itself an event. An error
/// contains the response as text, and the reason why it is not an event.
fn event_text(
    mode: ContentMode,
    content: &Content,
    body: &[u8],
) -> Result<String, (String, Cow<'static, str>)> {
    let unreadable =
        |why: &'static str| (String::from_utf8_lossy(body).into_owned(), Cow::Borrowed(why));
    let content_type = content.content_type.as_deref();
    match (mode, std::str::from_utf8(body)) {
        (ContentMode::Structured, Ok(text)) => Ok(text.to_owned()),
        (ContentMode::Structured, Err(_)) => Err(unreadable("the body is not UTF-8")),
        (ContentMode::Batched, _) => Err(unreadable("the reply is a batch, but must be one event")),
        (ContentMode::OtherFormat, _) => {
            Err(unreadable("the only supported event format is application/cloudevents+json"))
        }
        (ContentMode::Data, _) => binary::structured(&content.attributes, content_type, body)
            // A header that cannot be decoded is stored as it was received.
            .map_err(|why| {
                (binary::structured_plain(&content.attributes, content_type, body), why.into())
            }),
    }
}

/// Makes a text acceptable to SQS: replaces each invalid character with U+FFFD, and an empty text
/// with a space.
fn queueable(text: &str) -> String {
    let replaced = |c| if is_queue_character(c) { c } else { char::REPLACEMENT_CHARACTER };
    let text: String = text.chars().map(replaced).collect();
    if text.is_empty() { " ".to_owned() } else { text }
}

#[cfg(test)]
mod tests;
