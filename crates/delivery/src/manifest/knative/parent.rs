//! Brokers and channels: the settings that their triggers and subscriptions inherit.
//!
//! Separate because the class is written in different places: for a broker in an annotation and,
//! where that means "like its channel", in a template in the broker or in a ConfigMap; for a plain
//! channel in its template; for any other channel it is the kind.

use std::collections::BTreeMap;

use super::super::findings::Findings;
use super::super::node;
use super::super::reader::{Cursor, Fields};
use super::address::{Addresses, TopicKind};
use super::class::{self, Class, Inheritance};
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

/// Reads a broker or channel. Its `spec` may be missing: nothing in it is required.
pub(super) fn read<'a>(
    topic_kind: TopicKind,
    object: &Object<'a>,
    addresses: &Addresses<'_>,
    templates: &Templates,
) -> Option<(Metadata<'a>, Parent<'a>)> {
    let read_spec = |metadata: &Metadata<'a>, spec: Option<&Fields<'a>>| {
        let class = match topic_kind {
            TopicKind::Broker => {
                let template = spec.and_then(|spec| broker_template(spec, object, templates));
                match &metadata.class {
                    None if object.group() == class::GOOGLE_EVENTING => Class::GOOGLE_BROKER,
                    annotation => Class::of_broker(annotation.as_ref(), template),
                }
            }
            TopicKind::Channel => channel_class(spec, object),
        };
        let namespace = &object.name.namespace;
        let delivery = spec.and_then(|spec| {
            spec.section("delivery", |of| Delivery::read(of, class, addresses, namespace))
        });
        let overrides = metadata.overrides.clone();
        Parent { class, delivery: delivery.unwrap_or_default(), overrides }
    };
    object.read(read_spec)
}

/// The class of a broker's channels, where the files have it.
fn broker_template(spec: &Fields<'_>, object: &Object<'_>, templates: &Templates) -> Option<Class> {
    let inline = spec.given("channelTemplateSpec").and_then(|template| template_class(&template));
    let config = spec.section("config", |fields| {
        fields.accept(&["apiVersion", "kind"]);
        let name = fields.get("name")?.text()?;
        let namespace = fields
            .given("namespace")
            .map_or(Some(object.name.namespace.as_str()), |at| at.text())?;
        Some(TopicName { namespace: namespace.to_owned(), topic: name.to_owned() })
    });
    inline.or_else(|| templates.0.get(&config.flatten()?).copied())
}

fn channel_class(spec: Option<&Fields<'_>>, object: &Object<'_>) -> Class {
    // Settings of the messaging system, and fields that controllers write; they have no effect
    // here.
    if let Some(spec) = spec {
        spec.accept(&[
            "numPartitions",
            "replicationFactor",
            "retentionDuration",
            "subscribable",
            "subscribers",
        ]);
    }
    let kind = object.document.peek("kind");
    match (object.kind, spec.and_then(|spec| spec.given("channelTemplate")), kind) {
        ("Channel", Some(template), _) => template_class(&template).unwrap_or(Class::LITERAL),
        ("Channel", None, _) => {
            Class::of_channel(object.api_version, object.kind).unwrap_or(Class::LITERAL)
        }
        (_, _, Some(kind)) => Class::of_channel_at(object.api_version, &kind),
        (_, _, None) => Class::LITERAL,
    }
}

fn template_class(template: &Cursor<'_>) -> Option<Class> {
    template.mapping(|fields| {
        fields.accept(&["spec", "metadata"]);
        let api_version = fields.get("apiVersion").and_then(|at| at.text()).unwrap_or_default();
        fields.required("kind").map(|kind| Class::of_channel_at(api_version, &kind))
    })?
}

/// The channel templates of ConfigMaps, by namespace and name.
pub(super) struct Templates(BTreeMap<TopicName, Class>);

/// The keys of a ConfigMap under which the template is, as text; both are in use.
const KEYS: [&str; 2] = ["channel-template-spec", "channelTemplateSpec"];

impl Templates {
    /// Reads the ConfigMaps; one without a template is reported, since it has no effect.
    pub(super) fn read<'o, 'a: 'o>(config_maps: impl Iterator<Item = &'o Object<'a>>) -> Self {
        let mut templates = BTreeMap::new();
        for object in config_maps {
            let data = object.document.peek("data");
            let text = KEYS.iter().find_map(|key| data.as_ref()?.peek(key));
            match text.as_ref().and_then(|at| Some((at, at.peek_text()?))) {
                Some((at, text)) => {
                    if let Some(class) = class_of_text(text, at) {
                        templates.insert(object.name.clone(), class);
                    }
                }
                None => {
                    object.document.warn("a ConfigMap without a channel template has no effect");
                }
            }
        }
        Self(templates)
    }
}

/// The class that the text of a template names. Its lines are not those of the file, so findings
/// have the position of the text.
fn class_of_text(text: &str, at: &Cursor<'_>) -> Option<Class> {
    let findings = Findings::new(["template"].into_iter());
    let documents = node::Parsed::new(text).into_documents(0, &findings);
    let root = documents.first().map(|document| Cursor::root(document, &findings));
    let named = |field: &str| root.as_ref()?.peek(field)?.peek_text();
    let class = named("kind")
        .and_then(|kind| Class::of_channel(named("apiVersion").unwrap_or_default(), kind));
    if class.is_none() {
        at.warn(
            "not a known channel kind; retries of a broker that names this are numbered from zero",
        );
    }
    class
}
