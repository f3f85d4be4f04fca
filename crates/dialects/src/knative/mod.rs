//! Reads Knative manifests, which need no changes: brokers and triggers, channels and
//! subscriptions, event sources with a sink.
//!
//! Separate because Knative is one of several foreign families. An object may refer to objects that
//! follow it or are in another file. Brokers and channels are read first, because their triggers
//! and subscriptions override their delivery settings field by field. Then the defaults of the
//! profile are filled in.
//!
//! An unknown field causes a warning with a suggestion, because a newer version may define it.
//! Settings that Knative does not support for a class, or that are not supported here, are reported
//! at their positions.
//!
//! The module does not query a cluster: a `Destinations` document gives the address of a `ref`. It
//! does not run event sources.

mod address;
mod annotations;
mod class;
mod cluster;
mod delivery_spec;
mod filter;
mod located;
mod object;
mod old;
mod owned;
mod parent;
mod partial;
mod role;
mod sketch;
mod source;
mod stock;
mod subscribers;
mod topic_kind;
mod topics;
mod unread;

use std::collections::{BTreeMap, BTreeSet};

use address::{Addresses, ResolvedAddress};
use class::Class;
use cluster::CONFIG_MAP;
use delivery_spec::Delivery;
use located::Located;
use object::Object;
use parent::Parent;
use partial::{Called, PartialSubscription};
use role::Role;
use sketch::BROKER;
use stock::StockDefaults;
pub use stock::is_stock_knative;
use topic_kind::TopicKind;
use topics::{PLAIN, Topics};

use super::destinations::Destinations;
use super::ignored::Ignored;
use super::translation::Translated;
use delivery::document::findings::{Finding, Message, quoted};
use delivery::document::reader::{Cursor, Fields};
use delivery::native::LeftOut;
use delivery::native::ObjectTopic;
use delivery::subscription::ReplyTo;
use delivery::subscription::filter::Filter;
use delivery::subscription::kinds::names;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::topic_address::topic_of;

struct Reader<'a, 'd> {
    addresses: Addresses<'d>,
    /// Names of all ConfigMaps in the files. Their contents are not read: which of them applies
    /// depends on the cluster (first the namespace, then the class), and the settings are a YAML text
    /// inside a value. A ConfigMap that would change a delivery is reported by its name.
    config_maps: BTreeSet<TopicName>,
    /// Number of Subscriptions of each channel in the files.
    subscribed: BTreeMap<TopicName, usize>,
    /// Brokers and channels by topic; `None` for a broker or channel with errors. Subscriptions of
    /// such a broker or channel are not deployed.
    parents: BTreeMap<TopicName, Option<Parent<'a>>>,
    stock: StockDefaults<'a>,
}

/// Translates all Knative documents.
pub(super) fn translate<'a>(
    documents: &[Cursor<'a>],
    destinations: &Destinations<'_>,
    translated: &mut Translated<'a>,
    ignored: &mut Ignored<'a>,
) {
    let objects = documents.iter().map(|document| Object::new(document.clone()));
    let objects = owned::without_owned(objects).into_iter();
    let mut objects: Vec<(Role, Object<'a>)> =
        objects.map(|object| (Role::from_object(&object), object)).collect();
    let topics = Topics::collect(&mut objects);
    let config_maps = objects.iter().filter(|(_, object)| object.kind == CONFIG_MAP);
    let config_maps = config_maps.map(|(_, object)| object.name.clone()).collect();
    let mut subscribed = BTreeMap::new();
    for (role, object) in objects.iter().filter(|(role, _)| *role == Role::Subscription) {
        if let Some(name) = sketch::name_of(*role, object, &topics) {
            *subscribed.entry(name.topic).or_default() += 1;
        }
    }
    let mut reader = Reader {
        addresses: Addresses { destinations, topics },
        config_maps,
        subscribed,
        parents: BTreeMap::new(),
        stock: StockDefaults::default(),
    };
    for (role, object) in &objects {
        if let Role::Topic(topic_kind) = role {
            reader.read_topic(*topic_kind, object, translated);
        }
    }
    for (role, object) in &objects {
        reader.read_object(*role, object, translated, ignored);
    }
    unread::report(&objects, &reader.addresses.topics, &mut translated.left_out, ignored);
    reader.stock.report();
}

/// A function that reads the `spec` of one kind of object.
type ReadSpec<'a, R> = fn(&R, &Fields<'a>, &Object<'a>) -> Option<PartialSubscription<'a>>;

impl<'a> Reader<'a, '_> {
    fn read_topic(
        &mut self,
        topic_kind: TopicKind,
        object: &Object<'a>,
        translated: &mut Translated<'a>,
    ) {
        let read = object.document.without_error(|| {
            role::report_version(object);
            parent::read(topic_kind, object, &self.addresses, &self.config_maps)
        });
        let parent = read.and_then(|(metadata, parent)| {
            let max_replies = metadata.max_replies.map(|stated| (stated.value, stated.at));
            let (name, at) = (object.topic.clone(), metadata.named_at?);
            translated.topics.push(ObjectTopic { name, at, max_replies });
            Some(parent)
        });
        self.parents.entry(object.topic.clone()).or_insert(parent);
    }

    fn read_object(
        &self,
        role: Role,
        object: &Object<'a>,
        translated: &mut Translated<'a>,
        ignored: &mut Ignored<'a>,
    ) {
        let read_spec: ReadSpec<'a, Self> = match role {
            Role::Trigger => Self::trigger,
            Role::Subscription => Self::subscription,
            Role::Source => Self::source,
            Role::Ignored => return ignored.count(&object.document),
            Role::BrokerConfig => return role::read_broker_config(object),
            Role::Unknown => return role::report_unknown(object),
            Role::Topic(TopicKind::Channel) => return self.read_subscribers(object, translated),
            Role::Topic(TopicKind::Broker) | Role::BackingChannel | Role::Unread => return,
        };
        let read = object.document.result_or_error(|| {
            if role != Role::Source {
                role::report_version(object);
            }
            let (metadata, partial) = object.read(|_, spec| match spec {
                Some(spec) => read_spec(self, spec, object),
                None => object.document.refuse("spec is missing"),
            })?;
            if let Some(stated) = &metadata.max_replies {
                stated.at.warn("no effect: set it on a Broker or a Channel");
            }
            let (partial, at) = (partial?, metadata.named_at.clone()?);
            let name =
                SubscriptionName { topic: partial.topic.clone(), name: object.name.topic.clone() };
            let topic = (role == Role::Source).then(|| ObjectTopic {
                name: name.topic.clone(),
                at: at.clone(),
                max_replies: None,
            });
            let destinations = self.addresses.destinations;
            let translation = partial.translate(
                &object.document,
                (&name, &at),
                metadata,
                &self.stock,
                destinations,
            )?;
            Some((topic, translation))
        });
        match read {
            Ok((topic, subscription)) => {
                translated.topics.extend(topic);
                translated.subscriptions.push(subscription);
            }
            Err(error) => self.leave_out(role, object, error, translated),
        }
    }

    /// Records a subscription that is not deployed. Does nothing if the object is a source and
    /// `error` is `None`: such a source publishes directly to its sink and is not a subscription.
    fn leave_out(
        &self,
        role: Role,
        object: &Object<'a>,
        error: Option<Box<Finding>>,
        translated: &mut Translated<'a>,
    ) {
        if role == Role::Source && error.is_none() {
            return;
        }
        if let Some(name) = sketch::name_of(role, object, &self.addresses.topics) {
            let parts = [&name.topic.namespace, &name.topic.topic, &name.name];
            let parts = parts.map(String::as_str);
            translated.left_out.push(LeftOut::at(&object.document, &parts, error));
        }
    }

    fn trigger(&self, spec: &Fields<'a>, object: &Object<'a>) -> Option<PartialSubscription<'a>> {
        let reference = spec.section("brokerRef", |fields| {
            fields.accept(&["apiVersion", "kind"]);
            (object::namespace(fields).and_then(|at| names::read(&at)), fields.required("name"))
        });
        let reference_is_given = reference.is_some();
        let (namespace, broker) = reference.unwrap_or_default();
        if let Some(key) = spec.given_key("brokerRef").filter(|_| spec.given("broker").is_some()) {
            key.warn("no effect: broker is also set");
        }
        let broker = spec.given("broker").or(broker);
        if broker.is_none() && !reference_is_given {
            let message = format!("the broker is missing; using {}", quoted(BROKER));
            spec.parent().warn(Message::new(message).help(format!("broker: {BROKER}")));
        }
        let namespace = namespace.unwrap_or_else(|| object.name.namespace.clone());
        let topic_and_parent =
            broker.as_ref().map_or_else(|| Some(BROKER.to_owned()), names::read).and_then(|name| {
                let name = TopicName { namespace, topic: name };
                self.broker(name, broker.as_ref().unwrap_or(spec.parent()))
            });
        let class = topic_and_parent.as_ref().map_or(Class::LITERAL, |(_, parent)| parent.class);
        let filter_at = ["filters", "filter"].into_iter().find_map(|field| spec.given(field));
        let at = filter_at.unwrap_or_else(|| spec.parent().clone());
        let filter = filter::read(spec, class).map(|value| Located { value, at });
        let subscriber = self.destination(spec, "subscriber", object);
        let partial = self.partial(spec, subscriber, object, topic_and_parent)?;
        // Replies of a Trigger's subscriber are published to its broker. A destination topic does
        // not reply.
        let reply = (!partial.goes_on()).then(|| (ReplyTo::Topic(partial.topic.clone()), None));
        Some(PartialSubscription { filter, reply, ..partial })
    }

    /// Returns the topic and the settings of a broker. Reports a missing broker at the cursor.
    fn broker(&self, name: TopicName, at: &Cursor<'_>) -> Option<(TopicName, Parent<'a>)> {
        if let Some(topic) = self.addresses.topics.find(TopicKind::Broker, "Broker", &name) {
            return Some((topic.clone(), self.parents.get(topic)?.clone()?));
        }
        let message =
            format!("no file contains the broker {name}, so its class and delivery are unknown");
        at.warn(Message::new(message).help(
            "lastmile numbers its retries from one, and uses the default delivery of stock Knative",
        ));
        Some((name, Parent::absent_broker()))
    }

    fn subscription(
        &self,
        spec: &Fields<'a>,
        object: &Object<'a>,
    ) -> Option<PartialSubscription<'a>> {
        let namespace = &object.name.namespace;
        let channel = spec.required("channel");
        let topic_and_parent = channel
            .and_then(|channel| channel.mapping(|fields| self.channel(fields, namespace)))
            .flatten();
        let reply = spec.given("reply").filter(|reply| !reply.is_empty());
        if let Some(reply) = reply.as_ref().filter(|_| spec.given("subscriber").is_none()) {
            // Without a subscriber, the events themselves are sent to the reply target.
            let to = self.addresses.read(reply, namespace);
            return self.partial(spec, to, object, topic_and_parent);
        }
        let reply = reply.and_then(|reply| self.addresses.read(&reply, namespace));
        let reply_at = reply.as_ref().map(|resolved| resolved.at.clone());
        let reply_key = reply.as_ref().map(|resolved| resolved.key.clone());
        let reply = reply.and_then(|reply| reply.reply(self.addresses.destinations));
        let reply = reply.map(|reply| (reply, reply_at.clone()));
        let subscriber = self.destination(spec, "subscriber", object);
        let partial = self.partial(spec, subscriber, object, topic_and_parent)?;
        if let Some(at) = reply_at.as_ref().filter(|_| partial.goes_on()) {
            at.warn("no effect: the subscriber is a topic, which does not reply");
            return Some(partial);
        }
        Some(PartialSubscription { reply, reply_key, ..partial })
    }

    /// Returns the topic and the settings of a Subscription's channel. If no file contains the
    /// channel, its class follows from its kind.
    fn channel(&self, fields: &Fields<'a>, namespace: &str) -> Option<(TopicName, Parent<'a>)> {
        let (api_version, kind) = (fields.required("apiVersion"), fields.required("kind"));
        let name = fields.required("name").and_then(|name| names::read(&name));
        let namespace = object::namespace(fields)
            .map_or_else(|| Some(namespace.to_owned()), |at| names::read(&at));
        let kind = kind?;
        let (api_version, kind_name) = (api_version?.text()?, kind.text()?);
        let topic = TopicName { namespace: namespace?, topic: name? };
        if let Some(topic) = self.addresses.topics.find(TopicKind::Channel, kind_name, &topic) {
            return Some((topic.clone(), self.parents.get(topic)?.clone()?));
        }
        let message = format!("no file contains the channel {topic}, so its delivery is unknown");
        fields.parent().note(Message::new(message).help("add the Channel to the files"));
        let class = if kind_name == PLAIN {
            Class::of_channel(api_version, kind_name).unwrap_or(Class::LITERAL)
        } else {
            Class::of_channel_at(api_version, &kind)
        };
        Some((topic, Parent::absent(class)))
    }

    /// Reads the destination in this field, which is required.
    fn destination(
        &self,
        spec: &Fields<'a>,
        name: &'static str,
        object: &Object<'a>,
    ) -> Option<ResolvedAddress<'a>> {
        spec.required(name).and_then(|at| self.addresses.read(&at, &object.name.namespace))
    }

    /// Reads the fields that all subscriptions share. `topic_and_parent` is the topic, and the
    /// broker or channel whose settings are inherited.
    fn partial(
        &self,
        spec: &Fields<'a>,
        destination: Option<ResolvedAddress<'a>>,
        object: &Object<'a>,
        topic_and_parent: Option<(TopicName, Parent<'a>)>,
    ) -> Option<PartialSubscription<'a>> {
        let namespace = &object.name.namespace;
        let class = topic_and_parent.as_ref().map_or(Class::LITERAL, |(_, parent)| parent.class);
        let delivery = spec.section("delivery", |delivery| {
            Delivery::read(delivery, class, &self.addresses, namespace)
        });
        let called = destination.and_then(|resolved| self.called(resolved));
        let (topic, parent) = topic_and_parent?;
        if let Some(Called { url, at, .. }) = &called
            && topic_of(url).as_ref() == Some(&topic)
        {
            at.error(format!("{topic} would receive each of its events again, in an endless loop"));
        }
        let filter = Some(Located { value: Filter::EVERYTHING, at: spec.parent().clone() });
        let (reply, reply_key) = (None, None);
        Some(PartialSubscription { topic, parent, delivery, called, filter, reply, reply_key })
    }

    /// Returns the endpoint that receives events.
    fn called(&self, resolved: ResolvedAddress<'a>) -> Option<Called<'a>> {
        let (key, asked, at) = (resolved.key.clone(), resolved.asked.clone(), resolved.at.clone());
        let Some(url) = resolved.endpoint() else {
            self.addresses.destinations.warn_missing_token(&asked, &key);
            return None;
        };
        Some(Called { url, key, asked, at })
    }
}

#[cfg(test)]
mod tests;
