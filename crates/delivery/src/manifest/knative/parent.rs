//! Brokers and channels: the settings that their triggers and subscriptions inherit.
//!
//! Separate because the class is written in different places: for a broker in an annotation and,
//! where that means "like its channel", in a template in the broker or in a ConfigMap; for a plain
//! channel in its template; for any other channel it is the kind. What an object does not say, the defaults of
//! the cluster may.

use std::cell::Cell;
use std::rc::Rc;

use super::super::findings::Message;
use super::super::reader::{Cursor, Fields};
use super::address::{Addresses, TopicKind};
use super::class::{self, Class, Inheritance};
use super::config_map::{ConfigMaps, known_template};
use super::delivery::Delivery;
use super::object::{Metadata, Object, Overrides};
use crate::subscription::name::TopicName;

/// How files state a class.
const CLASS_STATED: &str = "a broker has the annotation eventing.knative.dev/broker.class, a channel its \
                            channelTemplate; or add the cluster's ConfigMaps config-br-defaults and default-ch-webhook";

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

/// The class of a broker or channel, if it is stated, and the settings that it has if it states none.
type Basis<'a> = (Option<Class>, Option<Delivery<'a>>);

/// Reads a broker or channel. Its `spec` may be missing: nothing in it is required.
pub(super) fn read<'a>(
    topic_kind: TopicKind,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
    maps: &ConfigMaps<'a>,
) -> Option<(Metadata<'a>, Parent<'a>)> {
    let read_spec = |metadata: &Metadata<'a>, spec: Option<&Fields<'a>>| {
        let (stated, base) = match topic_kind {
            TopicKind::Broker => of_broker(metadata, spec, object, addresses, maps),
            TopicKind::Channel => of_channel(spec, object, addresses, maps),
        };
        let class = stated.unwrap_or(Class::LITERAL);
        let namespace = &object.name.namespace;
        let own = spec.and_then(|spec| {
            spec.section("delivery", |of| Delivery::read(of, class, addresses, namespace))
        });
        let default = || (topic_kind == TopicKind::Broker).then(Delivery::stock);
        let overrides = metadata.overrides.clone();
        let unstated_at = metadata.named_at.clone().filter(|_| stated.is_none());
        Parent {
            class,
            delivery: own.or(base).or_else(default),
            overrides,
            unstated_at: Rc::new(Cell::new(unstated_at)),
        }
    };
    object.read(read_spec)
}

fn of_broker<'a>(
    metadata: &Metadata<'a>,
    spec: Option<&Fields<'a>>,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
    maps: &ConfigMaps<'a>,
) -> Basis<'a> {
    let namespace = &object.name.namespace;
    let annotation =
        metadata.class.as_ref().and_then(|at| Some((at.text()?.to_owned(), at.clone())));
    let class_name = annotation.as_ref().map(|(name, _)| name.as_str());
    let defaults = maps.broker_defaults(class_name, addresses, namespace);
    let inline = spec.and_then(|spec| spec.given("channelTemplateSpec"));
    let inline = inline.and_then(|of| known_template(&of, &of, addresses, namespace));
    let config = spec.and_then(|spec| config_map(spec, object)).or(defaults.config);
    let stated = annotation.or(defaults.class);
    let is_channel_based = stated.as_ref().is_some_and(|(name, _)| name == class::CHANNEL_BASED);
    let (template, of_channels) = match (inline, config) {
        (Some((class, delivery)), _) => (Some(class), delivery),
        (None, Some((name, at))) if is_channel_based => {
            let found = maps.template(&name, &at, addresses, namespace);
            found.map_or((None, None), |found| (found.class, found.delivery))
        }
        (None, _) => (None, None),
    };
    match stated {
        _ if metadata.class.is_none() && object.group() == class::GOOGLE_EVENTING => {
            (Some(Class::GOOGLE_BROKER), defaults.delivery)
        }
        Some((name, at)) => {
            let of_channels = of_channels.filter(|_| is_channel_based);
            let class = Class::of_broker(&name, &at, template);
            (Some(class), defaults.delivery.or(of_channels))
        }
        None => (None, defaults.delivery),
    }
}

/// The ConfigMap that a broker names, and where. A `config` of RabbitMQ has nothing for a delivery.
fn config_map<'a>(spec: &Fields<'a>, object: &Object<'a>) -> Option<(TopicName, Cursor<'a>)> {
    let config = spec.section("config", |fields| {
        fields.accept(&["apiVersion"]);
        let kind = fields.given("kind");
        let of_kind = kind.as_ref().and_then(Cursor::peek_text);
        let is_map = kind.is_none() || of_kind == Some("ConfigMap");
        let (name, namespace) = (fields.get("name")?, fields.given("namespace"));
        let namespace = namespace.map_or(Some(object.name.namespace.as_str()), |at| at.text())?;
        let of_rabbitmq = of_kind.is_some_and(|kind| kind.starts_with("Rabbitmq"));
        if let Some(kind) = kind.filter(|_| !is_map && !of_rabbitmq) {
            kind.warn(
                "not read: the config of a broker is a ConfigMap here, or a RabbitmqBrokerConfig",
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
    maps: &ConfigMaps<'a>,
) -> Basis<'a> {
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
    let namespace = &object.name.namespace;
    let known = |(class, delivery)| (Some(class), delivery);
    if object.kind != "Channel" {
        let kind = object.document.peek("kind");
        return (kind.map(|kind| Class::of_channel_at(object.api_version, &kind)), None);
    }
    if let Some(of) = spec.and_then(|spec| spec.given("channelTemplate")) {
        return known_template(&of, &of, addresses, namespace).map_or((None, None), known);
    }
    let of_backing = addresses.topics.class_of_backing(&object.name);
    match Class::of_channel(object.api_version, object.kind).or(of_backing) {
        Some(class) => (Some(class), None),
        None => maps.channel_defaults(addresses, namespace).map_or((None, None), known),
    }
}
