//! Publishes notices about destinations to the topic of notices. From there, notices are delivered
//! like any event.

use std::sync::Arc;

use delivery::delivery::Publication;
use delivery::delivery::health::shared::{DestinationState, Findings};
use delivery::ports::{Attribute, DispatchPorts, Message, MessageGroup, QueueName};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::table::ItemKey;
use delivery::wire::write_publication;
use uuid::Uuid;

use super::Notices;
use crate::invocation::Invocation;

/// True if a topic receives notices about these findings. Notices about destinations of that topic
/// itself are not sent, because they would cause an endless loop.
pub(crate) fn are_wanted(findings: &Findings, catalogue: &Catalogue) -> bool {
    let of_itself = |topic: &TopicName| {
        let name = findings.subscription.parse::<SubscriptionName>();
        name.is_ok_and(|name| name.topic == *topic)
    };
    catalogue.topic_of_notices().is_some_and(|topic| !of_itself(topic))
}

impl<P: DispatchPorts> Notices<P> {
    /// Sends the notices about one destination; returns true if all were sent. A notice stays in
    /// the item of the destination until it is sent. A notice that is sent again has the same id.
    pub(crate) async fn send_about_destination(
        &self,
        item: &ItemKey,
        state: &DestinationState,
        invocation: &Invocation<'_>,
    ) -> bool {
        let Some(topic) = invocation.catalogue.topic_of_notices() else { return true };
        let mut sent = Vec::new();
        for notice in &state.notices {
            let message = published(notice.id, notice.at_ms, notice.event(state), topic);
            if self.sending.send(QueueName::Retry, message, invocation.deadline).await {
                sent.push(notice.clone());
            }
        }
        let forget = |stored: Option<DestinationState>| {
            (stored.unwrap_or_else(|| state.clone()).without_notices(&sent), ())
        };
        if !sent.is_empty() {
            let _ = self.table.update(item, forget, invocation.deadline).await;
        }
        sent.len() == state.notices.len()
    }
}

/// Writes a notice as the message of a published event.
fn published(id: Uuid, at_ms: u64, event: String, topic: &TopicName) -> Message {
    let publication = Publication {
        message: id.to_string(),
        published_ms: at_ms,
        topic: Some(topic.to_string()),
        group: None,
        traceparent: None,
        hold: Default::default(),
        part: None,
        onward: None,
    };
    Message {
        body: Arc::from(event),
        topic: Some(topic.clone()),
        attribute: Attribute::Publication(write_publication(&publication)),
        group: MessageGroup::Received(None),
        receives: 0,
        unread: 0,
        wait_ms: 0,
    }
}
