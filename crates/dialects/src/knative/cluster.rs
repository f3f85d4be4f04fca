//! Settings that a Broker or Channel may leave to its cluster, and the objects with the defaults of
//! a cluster.
//!
//! Separate because the objects with defaults are not read. Instead, a warning names the affected
//! subscriptions, and the setting to write into the Broker or Channel. Knative finds the ConfigMaps
//! with defaults by their names, which are the same in all clusters.

use super::class::{ANNOTATION, CHANNEL_BASED, Class, GOOGLE_EVENTING};
use super::object::Object;
use super::topic_kind::TopicKind;
use super::topics::{PLAIN, Topics};

/// Kind of the objects with defaults, and of the object in which a Broker may configure its
/// channels.
pub(super) const CONFIG_MAP: &str = "ConfigMap";
/// Kind of the Knative operator's object, from which the operator writes the ConfigMaps with
/// defaults.
const OPERATOR: &str = "KnativeEventing";
/// Field of a KnativeEventing with the class of Brokers that state no class.
const OPERATOR_CLASS: &str = "spec.defaultBrokerClass";

/// A setting of a Broker or Channel for which a cluster has a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClusterDefault {
    /// The class and the delivery settings of a Broker.
    Broker,
    /// The channels of an MTChannelBasedBroker.
    BrokerChannel,
    /// The channel behind a plain Channel.
    Channel,
}

struct DefaultsMap {
    name: &'static str,
    /// Keys of the ConfigMap with defaults. Knative reads the first key that exists.
    keys: &'static [&'static str],
    sets: &'static [ClusterDefault],
}

const DEFAULTS_MAPS: [DefaultsMap; 3] = [
    DefaultsMap {
        name: "config-br-defaults",
        keys: &["default-br-config"],
        sets: &[ClusterDefault::Broker, ClusterDefault::BrokerChannel],
    },
    DefaultsMap {
        name: "config-br-default-channel",
        keys: &["channel-template-spec", "channelTemplateSpec"],
        sets: &[ClusterDefault::BrokerChannel],
    },
    DefaultsMap {
        name: "default-ch-webhook",
        keys: &["default-ch-config"],
        sets: &[ClusterDefault::Channel],
    },
];

/// Help text for a ConfigMap that is the `config` of one Broker, not a default of the cluster.
const OF_ONE_BROKER: &str = "for an MTChannelBasedBroker, copy knative.dev/channelKind from \
                             kubectl get broker -o yaml to spec.channelTemplateSpec.kind; for \
                             other classes, remove the ConfigMap";

impl ClusterDefault {
    /// Returns the cluster defaults that this object sets.
    pub(super) fn set_by(object: &Object<'_>) -> Vec<Self> {
        let has = |path: &str| object.document.peek(path).is_some();
        let is_set = |map: &&DefaultsMap| {
            map.keys.iter().any(|key| match object.kind {
                CONFIG_MAP => object.name.topic == map.name && has(&format!("data.{key}")),
                OPERATOR => {
                    operator_names(map.name).any(|name| has(&format!("spec.config.{name}.{key}")))
                }
                _ => false,
            })
        };
        let of_maps = DEFAULTS_MAPS.iter().filter(is_set).flat_map(|map| map.sets);
        let mut set: Vec<Self> = of_maps.copied().collect();
        if object.kind == OPERATOR && has(OPERATOR_CLASS) && !set.contains(&Self::Broker) {
            set.push(Self::Broker);
        }
        set
    }

    /// Returns the settings that a Trigger or Subscription leaves to the cluster. `parent` is its
    /// broker or channel, if a file contains it.
    pub(super) fn left_by(
        subscription: &Object<'_>,
        topic_kind: TopicKind,
        parent: Option<&Object<'_>>,
        topics: &Topics,
    ) -> Vec<Self> {
        match (topic_kind, parent) {
            (TopicKind::Broker, Some(broker)) => left_by_broker(broker),
            (TopicKind::Broker, None) => vec![Self::Broker],
            (TopicKind::Channel, Some(channel)) => left_by_channel(channel, topics),
            (TopicKind::Channel, None) => {
                let [api_version, kind] = ["spec.channel.apiVersion", "spec.channel.kind"]
                    .map(|path| subscription.document.text_at(path));
                is_generic(api_version, kind).then_some(Self::Channel).into_iter().collect()
            }
        }
    }

    /// Returns the help text: the setting to write into the files in place of the default.
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Broker => {
                "copy the annotation eventing.knative.dev/broker.class and spec.delivery from \
                 kubectl get broker -o yaml to each Broker"
            }
            Self::BrokerChannel => {
                "copy knative.dev/channelKind from kubectl get broker -o yaml to \
                 spec.channelTemplateSpec.kind of each MTChannelBasedBroker"
            }
            Self::Channel => {
                "copy spec.channelTemplate from kubectl get channel -o yaml to each Channel"
            }
        }
    }
}

/// Returns the help text for an object that is not read; `None` if it does not configure Brokers or
/// Channels.
pub(super) fn help(object: &Object<'_>) -> Option<String> {
    let set = ClusterDefault::set_by(object);
    if set.is_empty() {
        return (object.kind == CONFIG_MAP).then(|| OF_ONE_BROKER.to_owned());
    }
    Some(set.into_iter().map(ClusterDefault::help).collect::<Vec<_>>().join("; "))
}

/// Returns the names that a ConfigMap may have in a KnativeEventing, where the prefix `config-` is
/// optional.
fn operator_names(name: &str) -> impl Iterator<Item = &str> {
    [Some(name), name.strip_prefix("config-")].into_iter().flatten()
}

fn left_by_broker(broker: &Object<'_>) -> Vec<ClusterDefault> {
    let class = class_of(broker);
    let is_complete = class.is_some() && broker.states("spec.delivery");
    let has_channels = class != Some(CHANNEL_BASED)
        || broker.states("spec.channelTemplateSpec")
        || broker.states("spec.config");
    let broker_left = (!is_complete).then_some(ClusterDefault::Broker);
    let channels_left = (!has_channels).then_some(ClusterDefault::BrokerChannel);
    broker_left.into_iter().chain(channels_left).collect()
}

fn left_by_channel(channel: &Object<'_>, topics: &Topics) -> Vec<ClusterDefault> {
    let has_template =
        channel.states("spec.channelTemplate") || topics.class_of_backing(&channel.name).is_some();
    let is_left = is_generic(channel.api_version, channel.kind) && !has_template;
    is_left.then_some(ClusterDefault::Channel).into_iter().collect()
}

/// True if the object is a Channel whose template determines its kind.
fn is_generic(api_version: &str, kind: &str) -> bool {
    kind == PLAIN && Class::of_channel(api_version, kind).is_none()
}

/// Returns the class of a Broker, from its annotation or its API group.
fn class_of<'a>(broker: &Object<'a>) -> Option<&'a str> {
    let of_group = (broker.group() == GOOGLE_EVENTING).then_some(Class::GOOGLE_BROKER.name);
    broker.annotation(ANNOTATION).and_then(|at| at.peek_text()).or(of_group)
}
