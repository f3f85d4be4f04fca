//! ConfigMaps: the channels of a broker, and the defaults of a cluster for brokers and channels.
//!
//! Separate because they hold documents as text. The lines of such a text are not those of the file, so what is
//! wrong with it is reported at the text. `config-br-defaults` and `default-ch-webhook` are known by their names,
//! in any namespace; each has a default for the cluster, and others for namespaces, which replace it as a whole.
//!
//! Does not say which classes exist, nor how the settings are inherited.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::super::findings::{Finding, Findings, Message, MissingReference, Severity};
use super::super::node;
use super::super::reader::{Cursor, Fields};
use super::address::Addresses;
use super::class::Class;
use super::delivery::Delivery;
use super::object::Object;
use crate::subscription::name::TopicName;

/// The keys under which the template of a broker's channels is; both are in use.
const TEMPLATES: [&str; 2] = ["channel-template-spec", "channelTemplateSpec"];
/// The name and the key of the defaults for brokers.
const BROKERS: (&str, &str) = ("config-br-defaults", "default-br-config");
/// The namespace and the name of the channels of brokers that name no other: the defaults of stock Knative name it.
const CHANNELS_OF_BROKERS: (&str, &str) = ("knative-eventing", "config-br-default-channel");
/// The name and the key of the defaults for channels.
const CHANNELS: (&str, &str) = ("default-ch-webhook", "default-ch-config");

/// What a template says of channels.
#[derive(Clone)]
pub(super) struct Template<'a> {
    /// Their class; `None` if their kind is not known.
    pub(super) class: Option<Class>,
    /// Their delivery settings.
    pub(super) delivery: Option<Delivery<'a>>,
}

/// What the defaults say of a broker.
#[derive(Default)]
pub(super) struct BrokerDefaults<'a> {
    /// The class of one without an annotation, and where it is written.
    pub(super) class: Option<(String, Cursor<'a>)>,
    /// The ConfigMap of its channels, and where it is named.
    pub(super) config: Option<(TopicName, Cursor<'a>)>,
    /// Its delivery settings.
    pub(super) delivery: Option<Delivery<'a>>,
}

/// A text in a ConfigMap, and where it is.
type Text<'a> = (&'a str, Cursor<'a>);

/// The ConfigMaps of all files.
#[derive(Default)]
pub(super) struct ConfigMaps<'a> {
    names: BTreeSet<TopicName>,
    /// The names with settings for brokers or channels.
    read: BTreeSet<TopicName>,
    templates: BTreeMap<TopicName, Text<'a>>,
    brokers: Option<Text<'a>>,
    channels: Option<Text<'a>>,
    /// What has been reported: a text is read for each object that it concerns.
    reported: RefCell<BTreeSet<String>>,
}

impl<'a> ConfigMaps<'a> {
    /// Inspects them.
    pub(super) fn of<'o>(objects: impl Iterator<Item = &'o Object<'a>>) -> Self
    where
        'a: 'o,
    {
        let mut maps = Self::default();
        for object in objects {
            let data = object.document.peek("data");
            let text = |key: &str| {
                let at = data.as_ref()?.peek(key)?;
                Some((at.peek_text()?, at))
            };
            let default = |(name, key): (&str, &str)| {
                if object.name.topic == name { text(key) } else { None }
            };
            let (brokers, channels) = (default(BROKERS), default(CHANNELS));
            let template = TEMPLATES.iter().find_map(|key| text(key));
            if brokers.is_some() || channels.is_some() || template.is_some() {
                maps.read.insert(object.name.clone());
            }
            keep_first(&mut maps.brokers, brokers);
            keep_first(&mut maps.channels, channels);
            let mut named = maps.templates.remove(&object.name);
            keep_first(&mut named, template);
            maps.templates.extend(named.map(|named| (object.name.clone(), named)));
            maps.names.insert(object.name.clone());
        }
        maps
    }

    /// True if this ConfigMap has settings for brokers or channels.
    pub(super) fn reads(&self, object: &Object<'_>) -> bool {
        self.read.contains(&object.name)
    }

    /// The template in the ConfigMap of this name. References in it are relative to the namespace of the broker.
    /// One that no file has is reported where it is named.
    pub(super) fn template(
        &self,
        name: &TopicName,
        named_at: &Cursor<'_>,
        addresses: &Addresses<'_>,
        namespace: &str,
    ) -> Option<Template<'a>> {
        if !self.names.contains(name) {
            self.report_absent(name, named_at);
        }
        let (text, at) = self.templates.get(name)?;
        let read = |root: &Cursor<'_>| {
            let found = template(root, at, addresses, namespace)?;
            if found.class.is_none() {
                root.warn(
                    "not a known channel kind; retries of a broker that names this are numbered from zero",
                );
            }
            Some(found)
        };
        self.document(text, at, read).flatten()
    }

    fn report_absent(&self, name: &TopicName, named_at: &Cursor<'_>) {
        let message = format!(
            "the ConfigMap {name} is not in any of the files: the channels of the broker are taken for InMemoryChannels"
        );
        if self.reported.borrow_mut().insert(format!("{} {message}", named_at.location())) {
            let message = Message::new(message).help("their retries are numbered from zero");
            // Its stock content is an InMemoryChannel, and an export of brokers always lacks it.
            match (name.namespace.as_str(), name.topic.as_str()) == CHANNELS_OF_BROKERS {
                true => named_at.note(message),
                false => named_at.warn(message),
            }
        }
    }

    /// The template of a plain channel in this namespace that has none.
    pub(super) fn channel_defaults(
        &self,
        addresses: &Addresses<'_>,
        namespace: &str,
    ) -> Option<(Class, Option<Delivery<'a>>)> {
        let (text, at) = self.channels.as_ref()?;
        let read = |root: &Cursor<'_>| {
            let of = defaults_for(root, namespace).into_iter().next()?;
            known_template(&of, at, addresses, namespace)
        };
        self.document(text, at, read).flatten()
    }

    /// What holds for a broker of this namespace and class.
    pub(super) fn broker_defaults(
        &self,
        class: Option<&str>,
        addresses: &Addresses<'_>,
        namespace: &str,
    ) -> BrokerDefaults<'a> {
        let Some((text, at)) = &self.brokers else { return self.stock_defaults() };
        let read = |root: &Cursor<'_>| {
            let of_scopes = defaults_for(root, namespace);
            let default_class = of_scopes.iter().find_map(class_name);
            let settings = broker_config(root, namespace, class);
            let (config, delivery) = settings
                .map(|of| broker_settings(&of, at, addresses, namespace))
                .unwrap_or_default();
            BrokerDefaults {
                class: default_class.map(|name| (name.to_owned(), at.clone())),
                config: config.map(|name| (name, at.clone())),
                delivery,
            }
        };
        self.document(text, at, read).unwrap_or_default()
    }

    /// The defaults of a broker if no file has them: the ConfigMap that stock Knative names, if a file has that one.
    fn stock_defaults(&self) -> BrokerDefaults<'a> {
        let (namespace, topic) = CHANNELS_OF_BROKERS;
        let name = TopicName { namespace: namespace.to_owned(), topic: topic.to_owned() };
        let named_at = self.templates.get(&name).map(|(_, at)| at.clone());
        BrokerDefaults { config: named_at.map(|at| (name, at)), ..BrokerDefaults::default() }
    }

    /// The document in a text, with its findings at the text: each once, however often it is read.
    fn document<T>(
        &self,
        text: &str,
        at: &Cursor<'a>,
        read: impl FnOnce(&Cursor<'_>) -> T,
    ) -> Option<T> {
        let findings = Findings::new([""].into_iter());
        let documents = node::Parsed::new("", text).into_documents(0, &findings);
        let root = documents.first().map(|document| Cursor::root(document, &findings).lenient());
        let value = root.filter(Cursor::is_mapping).map(|root| read(&root));
        if value.is_none() && self.reported.borrow_mut().insert(at.location()) {
            at.warn("not used: this text is no mapping");
        }
        for finding in findings.into_sorted() {
            if self.reported.borrow_mut().insert(format!("{} {finding}", at.location())) {
                report(finding, at);
            }
        }
        value
    }
}

/// Keeps the text that is there; a further one is reported.
fn keep_first<'a>(kept: &mut Option<Text<'a>>, further: Option<Text<'a>>) {
    let Some((text, at)) = further else { return };
    match kept {
        Some((_, first)) => {
            let message = format!("not used: the one at {} holds", first.location());
            at.warn(Message::new(message).help("remove one of them"));
        }
        None => *kept = Some((text, at)),
    }
}

/// Reports what is wrong with a text where it is.
fn report(finding: Finding, at: &Cursor<'_>) {
    let Finding { severity, line, field, message, help, reference, .. } = finding;
    let colon = if field.is_empty() { "" } else { ": " };
    let mut message = Message::new(format!("in line {line} of the text: {field}{colon}{message}"));
    if let Some(help) = help {
        message = message.help(help);
    }
    if let Some(MissingReference { key, used_for, needs }) = reference {
        message = message.about(&key, used_for).needs(needs);
    }
    match severity {
        Severity::Error => at.error(message),
        Severity::Warning => at.warn(message),
        Severity::Note => at.note(message),
    }
}

/// The defaults of a namespace and those of the cluster, as far as there are any.
fn defaults_for<'x>(root: &Cursor<'x>, namespace: &str) -> Vec<Cursor<'x>> {
    let of_namespace = root.peek("namespaceDefaults").and_then(|of| of.peek(namespace));
    [of_namespace, root.peek("clusterDefault")].into_iter().flatten().collect()
}

/// The class of brokers that name none.
fn class_name<'x>(of: &Cursor<'x>) -> Option<&'x str> {
    of.peek("brokerClass")?.peek_text()
}

/// The settings of brokers that name this class, as Knative finds them: in the namespace those of the class that is the
/// default there, else those under its own name; in the cluster the same, and the default ones for any other class.
/// Those of the cluster count only where it has default ones.
fn broker_config<'x>(
    root: &Cursor<'x>,
    namespace: &str,
    class: Option<&str>,
) -> Option<Cursor<'x>> {
    let of_namespace = root.peek("namespaceDefaults").and_then(|of| of.peek(namespace));
    let class = class.or_else(|| of_namespace.as_ref().and_then(class_name));
    let of_class = |of: &Cursor<'x>| of.peek("brokerClasses")?.peek(class?);
    let in_namespace = of_namespace.and_then(|of| match class_name(&of) {
        name if name.is_some() && name == class => Some(of).filter(has_settings),
        _ => of_class(&of),
    });
    let in_cluster = || {
        let of = root.peek("clusterDefault").filter(has_settings)?;
        let of_other = if class_name(&of) == class { None } else { of_class(&of) };
        Some(of_other.unwrap_or(of))
    };
    in_namespace.or_else(in_cluster)
}

/// Whether defaults have settings of their own, beside those of classes.
fn has_settings(of: &Cursor<'_>) -> bool {
    let fields = ["apiVersion", "kind", "namespace", "name", "delivery"];
    fields.iter().any(|field| of.peek(field).is_some())
}

fn broker_settings<'a>(
    of: &Cursor<'_>,
    at: &Cursor<'a>,
    addresses: &Addresses<'_>,
    namespace: &str,
) -> (Option<TopicName>, Option<Delivery<'a>>) {
    let read = |fields: &Fields<'_>| {
        fields.accept(&[
            "apiVersion",
            "kind",
            "brokerClass",
            "brokerClasses",
            "disallowDifferentNamespaceConfig",
        ]);
        let name = fields.given("name").and_then(|name| name.text());
        let of_config = fields.given("namespace").and_then(|name| name.text());
        let config = name.map(|name| TopicName {
            namespace: of_config.unwrap_or(namespace).to_owned(),
            topic: name.to_owned(),
        });
        (config, delivery(fields, at, addresses, namespace, Class::LITERAL))
    };
    of.mapping(read).unwrap_or_default()
}

/// What a template says, with its class; of an unknown kind that is the literal one, and it is reported.
pub(super) fn known_template<'a>(
    of: &Cursor<'_>,
    at: &Cursor<'a>,
    addresses: &Addresses<'_>,
    namespace: &str,
) -> Option<(Class, Option<Delivery<'a>>)> {
    let Template { class, delivery } = template(of, at, addresses, namespace)?;
    let reported = || Class::of_channel_at(of.text_at("apiVersion"), &of.peek("kind")?).into();
    Some((class.or_else(reported)?, delivery))
}

/// What a template says, wherever it is written.
fn template<'a>(
    of: &Cursor<'_>,
    at: &Cursor<'a>,
    addresses: &Addresses<'_>,
    namespace: &str,
) -> Option<Template<'a>> {
    of.mapping(|fields| {
        fields.accept(&["metadata"]);
        let api_version = fields.get("apiVersion").and_then(|at| at.text()).unwrap_or_default();
        let class = Class::of_channel(api_version, fields.required("kind")?.text()?);
        let delivery = fields.section("spec", |spec| {
            // The others are those of the messaging system.
            spec.accept_rest();
            delivery(spec, at, addresses, namespace, class.unwrap_or(Class::LITERAL))
        });
        Some(Template { class, delivery: delivery.flatten() })
    })?
}

/// The settings in a field `delivery`; they count as written where the text is.
fn delivery<'a>(
    fields: &Fields<'_>,
    at: &Cursor<'a>,
    addresses: &Addresses<'_>,
    namespace: &str,
    class: Class,
) -> Option<Delivery<'a>> {
    let read = |of: &Fields<'_>| Delivery::read(of, class, addresses, namespace).located_at(at);
    fields.section("delivery", read)
}
