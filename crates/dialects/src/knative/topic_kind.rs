//! The kinds of objects that are topics.

/// The kind of an object that is a topic. A broker and a channel may have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TopicKind {
    /// A broker, to which triggers subscribe.
    Broker,
    /// A channel, to which Subscriptions subscribe.
    Channel,
}

/// Returns the topic kind for this API version and kind; `None` for other objects.
pub(super) fn topic_kind(api_version: &str, kind: &str) -> Option<TopicKind> {
    match kind {
        "Broker" => Some(TopicKind::Broker),
        _ if kind.ends_with("Channel") && api_version.starts_with("messaging.") => {
            Some(TopicKind::Channel)
        }
        _ => None,
    }
}
