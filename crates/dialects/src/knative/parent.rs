//! Brokers and channels: the settings that their triggers and subscriptions inherit.
//!
//! Separate because the class is written in different places: for a broker in an annotation and,
//! where that means "like its channel", in a template; for a plain channel in its template; for any
//! other channel it is the kind. An object that states no class is read literally, with a warning where
//! the class makes a difference.

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

/// How files state a class.
const CLASS_STATED: &str = "copy what the cluster has: for a Broker, the annotation eventing.knative.dev/broker.class that \
                            kubectl get broker -o yaml shows; for a Channel, the spec.channelTemplate that kubectl get \
                            channel -o yaml shows";

/// The namespace and the name of the ConfigMap that stock Knative names in each Broker of channels.
const STOCK_CHANNELS: (&str, &str) = ("knative-eventing", "config-br-default-channel");

/// A broker or channel.
#[derive(Clone)]
pub(super) struct Parent<'a> {
    /// Its class; where no file states it, it is read literally.
    pub(super) class: Class,
    /// Its delivery settings; `None` if it has none.
    pub(super) delivery: Option<Delivery<'a>>,
    /// Its statuses with another meaning.
    pub(super) overrides: Overrides<'a>,
    /// Where to report that no file states the class; empty once it is reported.
    unstated_at: Rc<Cell<Option<Cursor<'a>>>>,
}

impl<'a> Parent<'a> {
    /// The delivery settings of a trigger or subscription with these of its own.
    pub(super) fn delivery_of(&self, own: Option<Delivery<'a>>) -> Delivery<'a> {
        let Some(own) = own else { return self.delivery.clone().unwrap_or_default() };
        let Some(base) = &self.delivery else { return own };
        // What is inherited depends on the class.
        self.report_unstated();
        match self.class.inheritance {
            Inheritance::FieldByField => own.with_fallback(base),
            Inheritance::Sink => own.with_sink_of(base),
        }
    }

    /// Reports that no file states the class: once, and only where it makes a difference.
    pub(super) fn report_unstated(&self) {
        if let Some(at) = self.unstated_at.take() {
            let message = "no file states its class, for which a cluster has a default: here retries are numbered from \
                           one, and a delivery inherits field by field";
            at.warn(Message::new(message).help(CLASS_STATED));
        }
    }

    /// One that is in no file: only its class is known.
    pub(super) fn absent(class: Class) -> Self {
        Self { class, delivery: None, overrides: Overrides::default(), unstated_at: Rc::default() }
    }

    /// A broker that is in no file: it is read as one without `delivery`.
    pub(super) fn absent_broker() -> Self {
        Self { delivery: Some(Delivery::stock()), ..Self::absent(Class::LITERAL) }
    }
}

/// The class that the files state, and the settings of a broker or channel without `delivery`.
type Stated<'a> = Option<(Class, Option<Delivery<'a>>)>;

/// Reads a broker or channel. Its `spec` may be missing: nothing in it is required. `config_maps` are the names of those
/// in the files.
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
            spec.section("delivery", |of| Delivery::read(of, class, addresses, namespace))
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
            "the ConfigMap {map}, which configures the channels of this Broker, is not read: retries are numbered from \
             zero, as for InMemoryChannel"
        );
        let message = Message::new(message).help(ClusterDefault::BrokerChannel.help());
        // Its stock content is an InMemoryChannel, and the brokers that kubectl prints come without it.
        match (map.namespace.as_str(), map.topic.as_str()) == STOCK_CHANNELS {
            true => map_at.note(message),
            false => map_at.warn(message),
        }
    }
    let (channel_class, delivery) = channels.unzip();
    Some((Class::of_broker(name, &at, channel_class), delivery.flatten()))
}

/// The ConfigMap that a broker names, and where. A `config` of RabbitMQ has nothing for a delivery.
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
            kind.warn("not read: the config of a Broker is a ConfigMap or a RabbitmqBrokerConfig");
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
    // Settings of the messaging system have no effect here; subscribers are read elsewhere.
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

/// The class and the settings of the channels that a template describes.
fn template<'a>(at: &Cursor<'a>, addresses: &Addresses<'_>, namespace: &str) -> Stated<'a> {
    at.mapping(|fields| {
        fields.accept(&["metadata"]);
        let api_version = fields.get("apiVersion").and_then(|at| at.text()).unwrap_or_default();
        let class = Class::of_channel_at(api_version, &fields.required("kind")?);
        let delivery = fields.section("spec", |spec| {
            // The others are those of the messaging system.
            spec.accept_rest();
            spec.section("delivery", |of| Delivery::read(of, class, addresses, namespace))
        });
        Some((class, delivery.flatten()))
    })?
}
