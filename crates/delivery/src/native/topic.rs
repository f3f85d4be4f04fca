//! Reads Topics: their input, and the settings that their Subscriptions inherit.

use serde_json::json;

use super::defaults::NO_ADDRESS;
use super::draft::Draft;
use super::metadata::TopicMetadata;
use crate::document::findings::Message;
use crate::document::node::Node;
use crate::document::reader::{Cursor, Fields};
use crate::document::record::Record as _;
use crate::event::Input;
use crate::subscription::DeliverySettings;
use crate::subscription::catalogue::Topic;
use crate::subscription::kinds::publishers;
use crate::subscription::name::TopicName;
use crate::subscription::topic_settings::TopicSettings;

/// A Topic document, as it was written or translated.
pub struct TopicDocument<'a> {
    /// Cursor at the root of the document.
    pub document: Cursor<'a>,
    /// False if the document refers to something unusable. That problem was already reported.
    pub is_usable: bool,
}

pub(super) fn read<'a>(topics: &[TopicDocument<'a>], defaults: &Node, draft: &mut Draft<'a>) {
    topics.iter().for_each(|topic| read_topic(topic, defaults, draft));
}

fn read_topic<'a>(topic: &TopicDocument<'a>, defaults: &Node, draft: &mut Draft<'a>) {
    let TopicDocument { document, is_usable } = topic;
    let mut named = None;
    let settings = document.without_error(|| {
        document.mapping(|fields| {
            fields.accept(&["apiVersion", "kind"]);
            let metadata = fields.required("metadata");
            let name = metadata.and_then(|at| at.mapping(TopicMetadata::read).flatten());
            named = name.map(TopicName::from).filter(|name| {
                let at = document.peek("metadata.name");
                at.is_some_and(|at| draft.name_topic(name, &at))
            });
            match fields.given("spec") {
                Some(spec) => {
                    spec.mapping(|spec| read_spec(spec, named.as_ref(), defaults, draft))?
                }
                None => Some(TopicSettings::default()),
            }
        })?
    });
    let Some(name) = named else { return };
    match settings.filter(|_| *is_usable) {
        Some(settings) => draft.topics.push(Topic { name, settings }),
        // The subscriptions of the topic are left out too, because its input is unknown.
        None => {
            draft.broken_topics.insert(name);
        }
    }
}

fn read_spec<'a>(
    spec: &Fields<'a>,
    name: Option<&TopicName>,
    defaults: &Node,
    draft: &mut Draft<'a>,
) -> Option<TopicSettings> {
    // Reads `delivery` only to report findings. Each Subscription reads `delivery` again, as
    // defaults for its own settings.
    spec.given("delivery")
        .iter()
        .for_each(|delivery| check_defaults(delivery, "a Topic cannot have", defaults));
    let settings = TopicSettings::read(spec)?;
    let from = publishers::located(spec.given("from").as_ref(), &settings.from);
    publishers::report_unreadable(&from, settings.input);
    if let Some(key) = spec.given_key("mapping") {
        report_unused_mapping(&key, settings.input);
    }
    if let Some(name) = name {
        from.iter().for_each(|(publisher, at)| draft.name_publisher(publisher, name, at));
        draft.deliveries.extend(spec.given_key("delivery").map(|at| (name.clone(), at)));
    }
    Some(settings)
}

/// Adds a warning that the topic's mapping has no effect, if events with this input format are not
/// mapped.
fn report_unused_mapping(key: &Cursor<'_>, input: Input) {
    if matches!(input, Input::Auto | Input::Custom) {
        return;
    }
    let message = Message::new(format!(
        "no effect: the input of this topic is {}, and only custom events are mapped",
        input.as_str()
    ));
    key.warn(message.help("input: custom or auto"));
}

/// Beginning of messages about the `defaults` of a Subscription.
pub(super) const DEFAULTS_HAVE: &str = "defaults cannot have";

/// Checks the `delivery` of a Topic, or the `defaults` of a Subscription. They must be valid
/// settings of a subscription once an address is added.
pub(super) fn check_defaults(delivery: &Cursor<'_>, whose: &str, defaults: &Node) {
    let address = Node::of_json(&json!({ "destination": { "url": NO_ADDRESS } }));
    if let Some(at) = delivery.peek("deadLetter").filter(|_| whose == DEFAULTS_HAVE)
        && at.peek_text().is_some()
    {
        return at.error(Message::new(format!("{whose} this value")).help("state it in spec"));
    }
    let bases = [&address, defaults].map(|node| delivery.beside(node));
    delivery.mapping_over(&bases, |fields| {
        let destination = delivery.peek("destination").filter(Cursor::is_mapping);
        let entries = destination.and_then(|mapping| mapping.entries()).unwrap_or_default();
        for entry in
            entries.iter().filter(|entry| matches!(entry.name, "url" | "aws" | "reference"))
        {
            let message = Message::new(format!("{whose} {}", entry.name));
            entry.key.error(message.help("set it in the spec of each Subscription"));
        }
        DeliverySettings::read(fields);
    });
}
