//! Declares the `metadata` of native documents, which contains their names.

use crate::document::record::Required;
use crate::subscription::kinds::names::Name;
use crate::subscription::name::{SubscriptionName, TopicName};

record! {
    /// Namespace and name of a Topic.
    pub(crate) struct TopicMetadata {
        /// Namespace of the topic.
        "namespace" => pub(crate) namespace: String = Required(Name),
        /// Name of the topic within its namespace.
        "name" => pub(crate) name: String = Required(Name),
    }
}

record! {
    /// Namespace, topic and name of a Subscription.
    pub(crate) struct SubscriptionMetadata {
        /// Namespace of the topic.
        "namespace" => pub(crate) namespace: String = Required(Name),
        /// Topic whose events the subscription receives.
        "topic" => pub(crate) topic: String = Required(Name),
        /// Name of the subscription within its topic.
        "name" => pub(crate) name: String = Required(Name),
    }
}

impl From<TopicMetadata> for TopicName {
    fn from(TopicMetadata { namespace, name }: TopicMetadata) -> Self {
        Self { namespace, topic: name }
    }
}

impl From<&TopicName> for TopicMetadata {
    fn from(TopicName { namespace, topic }: &TopicName) -> Self {
        Self { namespace: namespace.clone(), name: topic.clone() }
    }
}

impl From<SubscriptionMetadata> for SubscriptionName {
    fn from(SubscriptionMetadata { namespace, topic, name }: SubscriptionMetadata) -> Self {
        Self { topic: TopicName { namespace, topic }, name }
    }
}

impl From<&SubscriptionName> for SubscriptionMetadata {
    fn from(SubscriptionName { topic, name }: &SubscriptionName) -> Self {
        let TopicName { namespace, topic } = topic.clone();
        Self { namespace, topic, name: name.clone() }
    }
}
