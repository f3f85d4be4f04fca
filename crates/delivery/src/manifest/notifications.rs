//! `Notifications`: the topic to which notices about destinations are published.
//!
//! Separate because it belongs to the deployment, and to no family of dialects.

use super::findings::Message;
use super::names;
use super::reader::{Cursor, Fields};
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::TopicName;

/// Reads the documents into the catalogue; there may be one of them.
pub(super) fn read(documents: &[Cursor<'_>], catalogue: &mut Catalogue) {
    let [first, others @ ..] = documents else { return };
    for other in others {
        let message =
            format!("Notifications is defined twice; the first is at {}", first.location());
        other.error(Message::new(message).help("a deployment has one topic of notices"));
    }
    let read = first.mapping(|fields| {
        fields.accept(&["apiVersion", "kind"]);
        let topic = fields.required("spec")?.mapping(|spec| topic_of(spec))??;
        Some((topic, fields.parent().clone()))
    });
    let Some(Some((topic, at))) = read else { return };
    if !catalogue.subscriptions().any(|subscription| subscription.name.topic == topic) {
        at.warn(format!("no subscription gets the notices: none is for the topic {topic}"));
    }
    catalogue.notices_go_to(topic);
}

fn topic_of(spec: &Fields<'_>) -> Option<TopicName> {
    let at = spec.required("topic")?;
    names::topic(&at)
}
