//! The kinds of objects that are topics.

/// The kind of object that is a topic; a broker and a channel may have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TopicKind {
    /// A broker, whose triggers are its subscriptions.
    Broker,
    /// A channel.
    Channel,
}

/// The kind of topic of an object with this API and kind, if it is a broker or a channel.
pub(super) fn topic_kind(api_version: &str, kind: &str) -> Option<TopicKind> {
    match kind {
        "Broker" => Some(TopicKind::Broker),
        _ if kind.ends_with("Channel") && api_version.starts_with("messaging.") => {
            Some(TopicKind::Channel)
        }
        _ => None,
    }
}
