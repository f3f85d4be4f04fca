//! An answer that carries an event, and what becomes of it.
//!
//! Knative: a subscriber may answer with a CloudEvent, which goes on to the subscription's reply
//! address, or to a topic. It is a delivery of its own, with a budget of its own, and leaves before
//! the delivery it answers is done. A plain body is no reply and no error. Replies to replies are
//! counted, because two subscriptions can answer each other for ever: past [`HOPS_MAX`] they become
//! dead letters.
//!
//! Promises: a reply is an event as a whole or a dead letter, never a part of one. The same answer
//! to the same attempt yields the same ids.

use std::sync::Arc;

use uuid::Uuid;

use crate::delivery::outcome::{Content, Exchange, TransportResult};
use crate::delivery::reason::Reason;
use crate::delivery::{
    DELIVERY_NAMESPACE, DeadLetter, Delivery, DeliveryTarget, RESPONSE_KEPT_BYTES, trace,
};
use crate::event::json::escaped;
use crate::event::{Element, Event, Input, binary, decode_one};
use crate::machine::follow_up::FollowUp;
use crate::request::REPLY_MAX_BYTES;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::SubscriptionName;
use crate::subscription::sink::Sink;
use crate::subscription::{ReplyTo, Subscription};

/// A chain of replies is at most this long.
pub const HOPS_MAX: u32 = 10;

/// What follows from the answer to a delivery that was taken: nothing, unless its subscription
/// wants replies and the answer is one.
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
    let Some(carried) = carried(exchange) else { return Vec::new() };
    let answered = Answered { delivery, subscription, now_ms };
    let event = match carried {
        Carried::Event(event) => event,
        Carried::Unreadable(text, why) => {
            return answered.dead_letter(text, Reason::MalformedEvent, &why);
        }
        Carried::TooLarge(beginning) => return answered.dead_letter_too_large(beginning),
    };
    match to {
        ReplyTo::Address(_) => {
            answered.pass_on(event, &subscription.name, DeliveryTarget::Reply, subscription)
        }
        ReplyTo::Topic(topic) => {
            let matching = catalogue.matching(topic, &event, now_ms);
            matching
                .flat_map(|next| {
                    answered.pass_on(event.clone(), &next.name, DeliveryTarget::Destination, next)
                })
                .collect()
        }
    }
}

/// A delivery that was answered with a reply.
struct Answered<'a> {
    delivery: &'a Delivery,
    subscription: &'a Subscription,
    now_ms: u64,
}

impl Answered<'_> {
    fn pass_on(
        &self,
        event: Event,
        to: &SubscriptionName,
        target: DeliveryTarget,
        subscription: &Subscription,
    ) -> Vec<FollowUp> {
        let reply = self.reply(event, to, target);
        if reply.hops <= HOPS_MAX {
            return vec![FollowUp::Deliver(Box::new(reply))];
        }
        let detail = format!("a chain of more than {HOPS_MAX} replies");
        self.keep(reply, subscription, Reason::ReplyLoop, &detail)
    }

    fn dead_letter(&self, text: String, reason: Reason, why: &str) -> Vec<FollowUp> {
        let event = Event::recall(&queueable(&text).into(), Input::Opaque);
        let reply = self.reply(event, &self.subscription.name, DeliveryTarget::Reply);
        let why = format!("the subscriber's reply: {why}");
        self.keep(reply, self.subscription, reason, &why)
    }

    /// The event that was answered stands for a reply too large to be kept whole.
    fn dead_letter_too_large(&self, beginning: &[u8]) -> Vec<FollowUp> {
        let mut reply =
            self.reply(self.delivery.event.clone(), &self.subscription.name, DeliveryTarget::Reply);
        reply.last_response = Some(beginning[..beginning.len().min(RESPONSE_KEPT_BYTES)].to_vec());
        let why =
            format!("the subscriber's reply to this event has more than {REPLY_MAX_BYTES} bytes");
        self.keep(reply, self.subscription, Reason::EventTooLargeToResend, &why)
    }

    /// A reply that nobody can deliver is offered to no address and no topic, which might answer it
    /// again: it is kept here and says so.
    fn keep(
        &self,
        reply: Delivery,
        subscription: &Subscription,
        reason: Reason,
        why: &str,
    ) -> Vec<FollowUp> {
        let letter = DeadLetter::new(reply, subscription, reason, self.now_ms).with_detail(why);
        vec![match subscription.dead_letter.sink {
            Sink::Address(_) | Sink::Topic(_) => FollowUp::DeadLetter(Box::new(
                letter.store_in_default("a reply that nobody can deliver goes to no sink"),
            )),
            Sink::DefaultContainer | Sink::Container(_) | Sink::Queue(_) => {
                FollowUp::DeadLetter(Box::new(letter))
            }
            Sink::None => FollowUp::Drop(Box::new(letter)),
        }]
    }

    fn reply(&self, event: Event, to: &SubscriptionName, target: DeliveryTarget) -> Delivery {
        let name = format!("{}\nreply\n{to}", self.delivery.id);
        Delivery {
            id: Uuid::new_v5(&DELIVERY_NAMESPACE, name.as_bytes()),
            target,
            hops: self.delivery.hops.saturating_add(1),
            // A reply that says nothing else goes on in the trace of what it answers.
            traceparent: trace::of_delivery(self.delivery).map(|trace| trace.parent),
            ..Delivery::new(event, to.clone(), self.delivery.origin.clone(), self.now_ms)
        }
    }
}

/// What an answer carries that says it is a CloudEvent.
enum Carried<'a> {
    Event(Event),
    Unreadable(String, String),
    TooLarge(&'a [u8]),
}

fn carried(exchange: &Exchange) -> Option<Carried<'_>> {
    let TransportResult::Answered { status, body, .. } = &exchange.result else { return None };
    let content =
        exchange.content.as_ref().filter(|_| matches!(status, 200..=299) && *status != 202)?;
    let structured = content.content_type.as_deref().is_some_and(is_structured);
    let in_headers = content.attributes.iter().any(|(name, _)| name == "specversion");
    if !(structured || in_headers) {
        return None;
    }
    if !content.whole || body.len() > REPLY_MAX_BYTES {
        return Some(Carried::TooLarge(body));
    }
    let text = match (structured, std::str::from_utf8(body)) {
        (false, _) => in_one(content, body),
        (true, Ok(text)) => text.to_owned(),
        (true, Err(_)) => {
            let text = String::from_utf8_lossy(body).into_owned();
            return Some(Carried::Unreadable(text, "it is not UTF-8".to_owned()));
        }
    };
    let text: Arc<str> = escaped(&text).into();
    Some(match decode_one(&text, Input::CloudEvents) {
        Element::Event(event) => Carried::Event(event),
        Element::Malformed { text, why } => Carried::Unreadable(text.to_string(), why.to_string()),
    })
}

/// A binary-mode answer as one document.
fn in_one(content: &Content, body: &[u8]) -> String {
    binary::structured(&content.attributes, content.content_type.as_deref(), body)
}

fn is_structured(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/cloudevents+json")
}

/// Text with a sign in the place of each character that no queue takes (those that XML 1.0 does not
/// know).
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn queueable(text: &str) -> String {
    let taken = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let text: String =
        text.chars().map(|c| if taken(c) { c } else { char::REPLACEMENT_CHARACTER }).collect();
    if text.is_empty() { " ".to_owned() } else { text }
}

#[cfg(test)]
mod tests;
