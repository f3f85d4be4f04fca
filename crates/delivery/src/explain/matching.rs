//! Explains which subscriptions of a topic get an event, and why.
//!
//! Separate from the life of a delivery, which does not exist yet. The result for each subscription
//! equals [`Catalogue::matching`], from which deliveries are made.

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

/// The result of one subscription for an event.
#[derive(Debug, Clone)]
pub struct EventMatch {
    /// The subscription, which may not get the event.
    pub subscription: Arc<Subscription>,
    /// True if the subscription gets the event.
    pub matches: bool,
    /// True if the subscription has expired and gets no events.
    pub is_expired: bool,
    /// The result of its filter.
    pub filter: Explanation,
    /// Earliest time of an attempt if the event were published now; `None` if it is due at once.
    pub starts_ms: Option<u64>,
    /// Headers whose values differ from those in the event.
    pub changed_headers: Vec<ChangedHeader>,
}

/// A header with a value from the event, changed so that it can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedHeader {
    /// Name of the header, as the file spells it.
    pub name: String,
    /// The value in the request, with its changes.
    pub sent: Sendable,
}

fn changed_headers(subscription: &Subscription, event: &Event) -> Vec<ChangedHeader> {
    // Credentials are not shown.
    let headers = subscription.destination.headers.iter().filter(|of| !is_credential(&of.name));
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

/// Returns the result of every subscription of a topic for an event, by name.
#[must_use]
pub fn event_matches(
    catalogue: &Catalogue,
    topic: &TopicName,
    event: &Event,
    now_ms: u64,
) -> Vec<EventMatch> {
    let matching = catalogue.matching(topic, &ALL_NAMES, event, now_ms);
    let matching: BTreeSet<&SubscriptionName> = matching.map(|of| &of.name).collect();
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
    topic.into_iter().flat_map(|of| of.subscriptions()).map(explained).collect()
}
