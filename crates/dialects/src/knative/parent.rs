//! Reads brokers and channels: the settings that their triggers and subscriptions inherit.
//!
//! Separate because files state the class in different places. A broker has an annotation, or a
//! template if it behaves like its channel. A plain Channel has a template, and for any other
//! channel the kind is the class. An object without a class follows the specification literally,
//! with a warning if the class makes a difference.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::address::Addresses;
use super::annotations::Overrides;
use super::class::{self, Class, Inheritance};
use super::cluster::{CONFIG_MAP, ClusterDefault};
use super::delivery_spec::Delivery;
use super::object::{Metadata, Object};
use super::topic_kind::TopicKind;
use super::topics::PLAIN;
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::name::TopicName;

/// Help text that shows how files state a class.
const CLASS_STATED: &str = "copy the value from the cluster: for a Broker, the annotation \
                            eventing.knative.dev/broker.class from kubectl get broker -o yaml; \
                            for a Channel, spec.channelTemplate from kubectl get channel -o yaml";

/// Namespace and name of the ConfigMap that stock Knative sets in each channel-based Broker.
const STOCK_CHANNELS: (&str, &str) = ("knative-eventing", "config-br-default-channel");

/// The settings of a broker or channel that its triggers or subscriptions inherit.
#[derive(Clone)]
pub(super) struct Parent<'a> {
    /// The class of the broker or channel; [`Class::LITERAL`] if no file states the class.
    pub(super) class: Class,
    /// The delivery settings; `None` if the broker or channel has none.
    pub(super) delivery: Option<Delivery<'a>>,
    pub(super) overrides: Overrides<'a>,
    /// Position at which to report that no file states the class; empty after the report.
    unstated_at: Rc<Cell<Option<Cursor<'a>>>>,
}

impl<'a> Parent<'a> {
    /// Returns the delivery settings of a trigger or subscription, whose own settings are `own`.
    pub(super) fn delivery_of(&self, own: Option<Delivery<'a>>) -> Delivery<'a> {
        let Some(own) = own else { return self.delivery.clone().unwrap_or_default() };
        let Some(base) = &self.delivery else { return own };
        // The class determines what is inherited.
        self.report_unstated();
        match self.class.inheritance {
            Inheritance::FieldByField => own.with_fallback(base),
            Inheritance::Sink => own.with_sink_of(base),
        }
    }

    /// Reports that no file states the class: once, and only if the class makes a difference.
    pub(super) fn report_unstated(&self) {
        if let Some(at) = self.unstated_at.take() {
            let message = "no file states the class of this object, so the default of the cluster \
                           is unknown: retries are numbered from one, and a delivery inherits each \
                           field separately";
            at.warn(Message::new(message).help(CLASS_STATED));
        }
    }

    /// Creates the settings of a broker or channel that no file contains. Only its class is known.
    pub(super) fn absent(class: Class) -> Self {
        Self { class, delivery: None, overrides: Overrides::default(), unstated_at: Rc::default() }
    }

    /// Creates the settings of a broker that no file contains: those of a broker without
    /// `delivery`.
    pub(super) fn absent_broker() -> Self {
        Self { delivery: Some(Delivery::stock()), ..Self::absent(Class::LITERAL) }
    }
}

/// The class that the files state, and the delivery settings of a channel template.
type Stated<'a> = Option<(Class, Option<Delivery<'a>>)>;

/// Reads a broker or channel. Its `spec` may be missing, because no field in it is required.
/// `config_maps` are the names of the ConfigMaps in the files.
pub(super) fn read<'a>(
    topic_kind: TopicKind,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
    config_maps: &BTreeSet<TopicName>,
) -> Option<(Metadata<'a>, Parent<'a>)> {
    let read_spec = |metadata: &Metadata<'a>, spec: Option<&Fields<'a>>| {
        let stated = match topic_kind {
            TopicKind::Broker => of_broker(spec, object, addresses, config_maps),
            TopicKind::Channel => of_channel(spec, object, addresses),
        };
        let unstated_at = metadata.named_at.clone().filter(|_| stated.is_none());
        let (class, base) = stated.unwrap_or((Class::LITERAL, None));
        let own = spec.and_then(|spec| {
            let namespace = &object.name.namespace;
            spec.section("delivery", |delivery| {
                Delivery::read(delivery, class, addresses, namespace)
            })
        });
        let default = || (topic_kind == TopicKind::Broker).then(Delivery::stock);
        Parent {
            class,
            delivery: own.or(base).or_else(default),
            overrides: metadata.overrides.clone(),
            unstated_at: Rc::new(Cell::new(unstated_at)),
        }
    };
    object.read(read_spec)
}

fn of_broker<'a>(
    spec: Option<&Fields<'a>>,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
    config_maps: &BTreeSet<TopicName>,
) -> Stated<'a> {
    let template_at = spec.and_then(|spec| spec.given("channelTemplateSpec"));
    let channels = template_at.and_then(|at| template(&at, addresses, &object.name.namespace));
    let config = spec.and_then(|spec| config_map(spec, object));
    let Some(at) = object.annotation(class::ANNOTATION) else {
        let is_google = object.group() == class::GOOGLE_EVENTING;
        return is_google.then_some((Class::GOOGLE_BROKER, None));
    };
    let name = at.text()?;
    if name != class::CHANNEL_BASED {
        return Some((Class::of_broker(name, &at, None), None));
    }
    let absent = config.filter(|(map, _)| channels.is_none() && !config_maps.contains(map));
    if let Some((map, map_at)) = absent {
        let message = format!(
            "the ConfigMap {map} of this Broker's channels is not read: retries are numbered from \
             zero, as for InMemoryChannel"
        );
        let message = Message::new(message).help(ClusterDefault::BrokerChannel.help());
        // Only a note for the stock ConfigMap: it configures an InMemoryChannel, and the output of
        // `kubectl` for the broker does not contain it.
        match (map.namespace.as_str(), map.topic.as_str()) == STOCK_CHANNELS {
            true => map_at.note(message),
            false => map_at.warn(message),
        }
    }
    let (channel_class, delivery) = channels.unzip();
    Some((Class::of_broker(name, &at, channel_class), delivery.flatten()))
}

/// Returns the ConfigMap that a broker names, with its position. Returns `None` for any other kind
/// of `config`. Accepts the `config` of a RabbitMQ broker without a warning, because it has no
/// settings for deliveries.
fn config_map<'a>(spec: &Fields<'a>, object: &Object<'a>) -> Option<(TopicName, Cursor<'a>)> {
    let config = spec.section("config", |fields| {
        fields.accept(&["apiVersion"]);
        let kind = fields.given("kind");
        let of_kind = kind.as_ref().and_then(Cursor::peek_text);
        let is_map = kind.is_none() || of_kind == Some(CONFIG_MAP);
        let (name, namespace) = (fields.get("name")?, fields.given("namespace"));
        let namespace = namespace.map_or(Some(object.name.namespace.as_str()), |at| at.text())?;
        let of_rabbitmq = of_kind.is_some_and(|kind| kind.starts_with("Rabbitmq"));
        if let Some(kind) = kind.filter(|_| !is_map && !of_rabbitmq) {
            kind.warn(
                "ignored: the config of a Broker must be a ConfigMap or a RabbitmqBrokerConfig",
            );
        }
        let topic = name.text()?.to_owned();
        is_map.then_some((TopicName { namespace: namespace.to_owned(), topic }, name))
    });
    config.flatten()
}

fn of_channel<'a>(
    spec: Option<&Fields<'a>>,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
) -> Stated<'a> {
    // Settings of the messaging system have no effect here, and `subscribers` reads the
    // subscribers.
    if let Some(spec) = spec {
        spec.accept(&[
            "numPartitions",
            "replicationFactor",
            "retentionDuration",
            "subscribable",
            "subscribers",
        ]);
    }
    if object.kind != PLAIN {
        let kind = object.document.peek("kind")?;
        return Some((Class::of_channel_at(object.api_version, &kind), None));
    }
    if let Some(at) = spec.and_then(|spec| spec.given("channelTemplate")) {
        return template(&at, addresses, &object.name.namespace);
    }
    let of_backing = || addresses.topics.class_of_backing(&object.name);
    let class = Class::of_channel(object.api_version, object.kind).or_else(of_backing);
    class.map(|class| (class, None))
}

/// Returns the class and the delivery settings of the channels that a template describes.
fn template<'a>(at: &Cursor<'a>, addresses: &Addresses<'_>, namespace: &str) -> Stated<'a> {
    at.mapping(|fields| {
        fields.accept(&["metadata"]);
        let api_version = fields.get("apiVersion").and_then(|at| at.text()).unwrap_or_default();
        let class = Class::of_channel_at(api_version, &fields.required("kind")?);
        let delivery = fields.section("spec", |spec| {
            // All other fields configure the messaging system.
            spec.accept_rest();
            spec.section("delivery", |delivery| {
                Delivery::read(delivery, class, addresses, namespace)
            })
        });
        Some((class, delivery.flatten()))
    })?
}
