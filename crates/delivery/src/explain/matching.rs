//! Which subscriptions of a topic get an event, and why.
//!
//! Separate from the life of a delivery: here there is none yet. Promises: a subscription gets the event if and only
//! if [`Catalogue::matching`] says so, which is what deliveries are made by.

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

/// What one subscription makes of an event.
#[derive(Debug, Clone)]
pub struct EventMatch {
    /// The subscription.
    pub subscription: Arc<Subscription>,
    /// Whether it gets the event.
    pub matches: bool,
    /// Whether it has expired, and gets none.
    pub is_expired: bool,
    /// What its filter says.
    pub filter: Explanation,
    /// The moment before which no attempt is made, if it were published now; `None` for an event that is due at once.
    pub starts_ms: Option<u64>,
    /// The headers whose values are not sent as the event has them.
    pub changed_headers: Vec<ChangedHeader>,
}

/// A header with a value of the event, which is changed so that it can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedHeader {
    /// The spelling of the file.
    pub name: String,
    /// The value in the request, with its changes.
    pub sent: Sendable,
}

fn changed_headers(subscription: &Subscription, event: &Event) -> Vec<ChangedHeader> {
    // A credential is not shown.
    let headers = subscription.destination.headers.iter().filter(|of| !is_credential(&of.name));
    let changed = headers.filter_map(|header| match &header.value {
        Value::Path(path) => {
            let sent = of_event(path, event).filter(|sent| !sent.changes.is_empty())?;
            Some(ChangedHeader { name: header.name.clone(), sent })
        }
        Value::Static(_) | Value::Concealed(_) | Value::Secret(_) => None,
    });
    changed.collect()
}

fn starts_ms(subscription: &Subscription, event: &Event, now_ms: u64) -> Option<u64> {
    let origin = Origin { message: "explain".to_owned(), index: 0 };
    let delivery = Delivery::new(event.clone(), subscription.name.clone(), origin, now_ms);
    let starts_ms = delivery.delayed(subscription.delay_ms).starts_ms;
    (starts_ms > now_ms).then_some(starts_ms)
}

/// What every subscription of a topic makes of an event, by name.
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
