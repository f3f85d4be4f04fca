//! Explains which subscriptions of a topic match an event, and why.
//!
//! This module is separate from the attempts of a delivery, because no delivery exists yet.
//! [`Catalogue::matching`] decides which subscriptions match, both here and when deliveries are
//! created.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::delivery::{Delivery, Origin};
use crate::event::Event;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::credentials::is_credential;
use crate::subscription::filter::explanation::Explanation;
use crate::subscription::header::{Sendable, Value, of_event};
use crate::subscription::name::{ALL_NAMES, SubscriptionName, TopicName};

/// The result for one subscription and one event: whether it matches, and why.
#[derive(Debug, Clone)]
pub struct EventMatch {
    /// A subscription of the topic, even if it does not match the event.
    pub subscription: Arc<Subscription>,
    /// True if the subscription matches the event, so that it gets a delivery.
    pub matches: bool,
    /// True if the subscription has expired, so that it gets no events.
    pub is_expired: bool,
    /// The result of the subscription's filter.
    pub filter: Explanation,
    /// Earliest time of an attempt if the event were published now, in milliseconds since 1970;
    /// `None` if the delivery would be due immediately.
    pub starts_ms: Option<u64>,
    /// Headers whose values in the request differ from those in the event.
    pub changed_headers: Vec<ChangedHeader>,
}

/// A header whose value in the event has to be changed before it can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedHeader {
    /// Name of the header, as the document spells it.
    pub name: String,
    /// The value in the request, and how it was changed.
    pub sent: Sendable,
}

fn changed_headers(subscription: &Subscription, event: &Event) -> Vec<ChangedHeader> {
    // Credentials are not shown.
    let headers =
        subscription.destination.headers.iter().filter(|header| !is_credential(&header.name));
    let changed = headers.filter_map(|header| match &header.value {
        Value::Path(path) => {
            let sent = of_event(path, event).filter(|sent| !sent.changes.is_empty())?;
            Some(ChangedHeader { name: header.name.clone(), sent })
        }
        Value::Static(_) | Value::Concealed(_) | Value::Secret(_) | Value::Template(_) => None,
    });
    changed.collect()
}

fn starts_ms(subscription: &Subscription, event: &Event, now_ms: u64) -> Option<u64> {
    let origin = Origin { message: "explain".to_owned(), index: 0 };
    let delivery = Delivery::new(event.clone(), subscription.name.clone(), origin, now_ms);
    let starts_ms = delivery.delayed(subscription.delay_ms).starts_ms;
    (starts_ms > now_ms).then_some(starts_ms)
}

/// Evaluates an event against each subscription of a topic. Returns one result for each, sorted by
/// subscription name.
#[must_use]
pub fn event_matches(
    catalogue: &Catalogue,
    topic: &TopicName,
    event: &Event,
    now_ms: u64,
) -> Vec<EventMatch> {
    let matching = catalogue.matching(topic, &ALL_NAMES, event, now_ms);
    let matching: BTreeSet<&SubscriptionName> =
        matching.map(|subscription| &subscription.name).collect();
    let members = event.members();
    let explained = |subscription: &Arc<Subscription>| EventMatch {
        matches: matching.contains(&subscription.name),
        is_expired: subscription.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms),
        filter: subscription.filter.explain(&members),
        starts_ms: starts_ms(subscription, event, now_ms),
        changed_headers: changed_headers(subscription, event),
        subscription: Arc::clone(subscription),
    };
    let topic = catalogue.topic_subscriptions(topic);
    topic.into_iter().flat_map(|topic| topic.subscriptions()).map(explained).collect()
}
