//! Brokers and channels: the settings that their triggers and subscriptions inherit.
//!
//! Separate because the class is written in different places: for a broker in an annotation and,
//! where that means "like its channel", in a template in the broker or in a ConfigMap; for a plain
//! channel in its template; for any other channel it is the kind. What an object does not say, the defaults of
//! the cluster may.

use super::super::reader::Fields;
use super::address::{Addresses, TopicKind};
use super::class::{self, Class, Inheritance};
use super::config_map::{ConfigMaps, known_template};
use super::delivery::Delivery;
use super::object::{Metadata, Object, Overrides};
use crate::subscription::name::TopicName;

/// A broker or channel.
#[derive(Clone)]
pub(super) struct Parent<'a> {
    /// Its class.
    pub(super) class: Class,
    /// Its delivery settings.
    pub(super) delivery: Delivery<'a>,
    /// Its statuses with another meaning.
    pub(super) overrides: Overrides<'a>,
}

impl<'a> Parent<'a> {
    /// The delivery settings of a trigger or subscription with these of its own.
    pub(super) fn delivery_of(&self, own: Option<Delivery<'a>>) -> Delivery<'a> {
        let Some(own) = own else { return self.delivery.clone() };
        match self.class.inheritance {
            Inheritance::FieldByField => own.with_fallback(&self.delivery),
            Inheritance::Sink => own.with_sink_of(&self.delivery),
            Inheritance::Nothing => own,
        }
    }

    /// One that is in no file: only its class is known.
    pub(super) fn absent(class: Class) -> Self {
        Self { class, delivery: Delivery::default(), overrides: Overrides::default() }
    }
}

/// The class of a broker or channel, and the settings that it has if it states none.
type Basis<'a> = (Class, Option<Delivery<'a>>);

/// Reads a broker or channel. Its `spec` may be missing: nothing in it is required.
pub(super) fn read<'a>(
    topic_kind: TopicKind,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
    maps: &ConfigMaps<'a>,
) -> Option<(Metadata<'a>, Parent<'a>)> {
    let read_spec = |metadata: &Metadata<'a>, spec: Option<&Fields<'a>>| {
        let (class, base) = match topic_kind {
            TopicKind::Broker => of_broker(metadata, spec, object, addresses, maps),
            TopicKind::Channel => of_channel(spec, object, addresses, maps),
        };
        let namespace = &object.name.namespace;
        let own = spec.and_then(|spec| {
            spec.section("delivery", |of| Delivery::read(of, class, addresses, namespace))
        });
        let overrides = metadata.overrides.clone();
        Parent { class, delivery: own.or(base).unwrap_or_default(), overrides }
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
    let (template, of_channels) = match inline {
        Some((class, delivery)) => (Some(class), delivery),
        None => {
            let found = config.and_then(|name| maps.template(&name, addresses, namespace));
            found.map_or((None, None), |found| (found.class, found.delivery))
        }
    };
    match annotation.or(defaults.class) {
        _ if metadata.class.is_none() && object.group() == class::GOOGLE_EVENTING => {
            (Class::GOOGLE_BROKER, defaults.delivery)
        }
        Some((name, at)) => {
            let of_channels = of_channels.filter(|_| name == class::CHANNEL_BASED);
            (Class::of_broker(&name, &at, template), defaults.delivery.or(of_channels))
        }
        None => (Class::LITERAL, defaults.delivery),
    }
}

/// The ConfigMap that a broker names.
fn config_map(spec: &Fields<'_>, object: &Object<'_>) -> Option<TopicName> {
    let config = spec.section("config", |fields| {
        fields.accept(&["apiVersion"]);
        let is_map = fields.given("kind").is_none_or(|kind| kind.peek_text() == Some("ConfigMap"));
        let name = fields.get("name")?.text()?;
        let namespace = fields
            .given("namespace")
            .map_or(Some(object.name.namespace.as_str()), |at| at.text())?;
        let name = TopicName { namespace: namespace.to_owned(), topic: name.to_owned() };
        is_map.then_some(name)
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
    let literal = (Class::LITERAL, None);
    if object.kind != "Channel" {
        let kind = object.document.peek("kind");
        return kind
            .map_or(literal, |kind| (Class::of_channel_at(object.api_version, &kind), None));
    }
    if let Some(of) = spec.and_then(|spec| spec.given("channelTemplate")) {
        return known_template(&of, &of, addresses, namespace).unwrap_or(literal);
    }
    match Class::of_channel(object.api_version, object.kind) {
        Some(class) => (class, None),
        None => maps.channel_defaults(addresses, namespace).unwrap_or(literal),
    }
}
