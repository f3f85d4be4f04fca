//! The two kinds of objects that become topics: brokers and channels.

/// The type of an object that becomes a topic. A broker and a channel may have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TopicKind {
    /// A broker, to which triggers subscribe.
    Broker,
    /// A channel, to which Subscriptions subscribe.
    Channel,
}

/// Returns the topic kind of an object with this API version and kind; `None` if the object does
/// not become a topic.
pub(super) fn topic_kind(api_version: &str, kind: &str) -> Option<TopicKind> {
    match kind {
        "Broker" => Some(TopicKind::Broker),
        _ if kind.ends_with("Channel") && api_version.starts_with("messaging.") => {
            Some(TopicKind::Channel)
        }
        _ => None,
    }
}
