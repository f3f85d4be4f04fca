//! Determines the role of an object, and which versions and kinds are supported.
//!
//! Separate because only this module lists all kinds. Other modules read their fields.

use super::class::{GOOGLE, GOOGLE_EVENTING};
use super::object::Object;
use super::topic_kind::TopicKind;
use delivery::document::findings::{Message, quoted};
use delivery::document::hint::hint;

/// Supported API versions.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// Supported kinds, which are suggested for a misspelt kind.
const KINDS: [&str; 7] = [
    "Subscription",
    "Channel",
    "InMemoryChannel",
    "KafkaChannel",
    "NatssChannel",
    "Broker",
    "Trigger",
];
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Topic(TopicKind),
    /// A channel of a different kind that backs the Channel with the same name. Both are one topic.
    BackingChannel,
    Trigger,
    Subscription,
    /// An event source: any object with a sink.
    Source,
    /// The settings of a broker's messaging system, which is not used here.
    BrokerConfig,
    /// A known object without an effect here.
    Ignored,
    /// An object of an unsupported kind, to which other objects may refer.
    Unread,
    /// An object without a kind, or with a misspelt one.
    Unknown,
}

impl Role {
    /// Returns the role of an object, from its API group, its kind and its sink.
    pub(super) fn from_object(object: &Object<'_>) -> Self {
        let has_sink = object.document.peek("spec.sink").is_some();
        match (object.group(), object.kind) {
            ("eventing.knative.dev" | GOOGLE_EVENTING, "Broker") => Self::Topic(TopicKind::Broker),
            ("eventing.knative.dev" | GOOGLE_EVENTING, "Trigger") => Self::Trigger,
            ("messaging.knative.dev", "Subscription") => Self::Subscription,
            ("messaging.knative.dev", kind) if kind.ends_with("Channel") => {
                Self::Topic(TopicKind::Channel)
            }
            (GOOGLE, "Channel") => Self::Topic(TopicKind::Channel),
            ("eventing.knative.dev", "RabbitmqBrokerConfig") => Self::BrokerConfig,
            // Objects of the core groups with a sink accept events themselves, such as an
            // EventTransform.
            (group, _) if has_sink && !is_core(group) => Self::Source,
            ("serving.knative.dev", _) | ("eventing.knative.dev", "EventType") => Self::Ignored,
            (group, kind) if kind.is_empty() || is_misspelt(group, kind) => Self::Unknown,
            (_, _) => Self::Unread,
        }
    }
}

/// True if a kind is nearly the name of a supported kind.
fn is_misspelt(group: &str, kind: &str) -> bool {
    is_core(group) && hint(kind, &KINDS).starts_with("did you mean")
}

/// True if objects of this API group are never event sources.
fn is_core(group: &str) -> bool {
    ["eventing.knative.dev", "messaging.knative.dev", "flows.knative.dev"].contains(&group)
}

/// Reports an unsupported API version.
pub(super) fn report_version(object: &Object<'_>) {
    let version = object.api_version.split_once('/').map_or("", |(_, version)| version);
    if let Some(at) = object.document.peek("apiVersion").filter(|_| !VERSIONS.contains(&version)) {
        let message = format!("the version {} is not supported", quoted(version));
        at.error(Message::new(message).help(format!("expected one of {}", VERSIONS.join(", "))));
    }
}

/// Reports an object without a kind, or with a misspelt kind, as an error. Otherwise its deliveries
/// would be missing without notice.
pub(super) fn report_unknown(object: &Object<'_>) {
    let Some(kind) = object.document.peek("kind") else {
        let message = Message::new("kind is missing");
        return object
            .document
            .error(message.help(format!("expected one of {}", KINDS.join(", "))));
    };
    if let Some(text) = kind.text() {
        let message = format!("{} has no kind {}", object.api_version, quoted(text));
        kind.error(Message::new(message).help(hint(text, &KINDS)));
    }
}

/// Reports unknown fields in the settings of a broker's messaging system. The settings are not
/// used.
pub(super) fn read_broker_config(object: &Object<'_>) {
    object.read(|_, spec| {
        if let Some(spec) = spec {
            spec.accept(&["rabbitmqClusterReference", "queueType", "vhost"]);
        }
    });
}
