//! Reads `Notifications` documents, which name the topic of notices about destinations.
//!
//! This module is separate because this document belongs to the deployment, not to a dialect.

use crate::document::findings::Message;
use crate::document::reader::Cursor;
use crate::document::record::{Record as _, Required};
use crate::subscription::catalogue::Catalogue;
use crate::subscription::kinds::names::FullName;
use crate::subscription::name::TopicName;

record! {
    /// The topic for notices about destinations.
    pub(crate) struct NotificationsSpec {
        /// Topic for notices, as namespace/topic. The subscriptions of this topic receive a
        /// CloudEvent when a destination becomes slow, keeps failing, recovers, is disabled or is
        /// enabled.
        "topic" => pub(crate) topic: TopicName = Required(FullName),
    }
}

/// Reads the document into the catalogue. A second document is an error.
pub(super) fn read(documents: &[Cursor<'_>], catalogue: &mut Catalogue) {
    let [first, others @ ..] = documents else { return };
    for other in others {
        let message =
            format!("Notifications is defined twice; the first is at {}", first.location());
        other.error(Message::new(message).help("keep one; a deployment has one topic for notices"));
    }
    let read = first.mapping(|fields| {
        fields.accept(&["apiVersion", "kind"]);
        let spec = fields.required("spec")?.mapping(NotificationsSpec::read)??;
        Some((spec.topic, fields.parent().clone()))
    });
    let Some(Some((topic, at))) = read else { return };
    if !catalogue.subscriptions().any(|subscription| subscription.name.topic == topic) {
        at.warn(format!("nobody receives the notices: the topic {topic} has no subscription"));
    }
    catalogue.notices_go_to(topic);
}
