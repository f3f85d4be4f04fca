//! Our own format: `lastmile.dev/v1` Topic and Subscription.
//!
//! Separate because it is one family of dialects among others. A Topic may come before or after its
//! Subscriptions and in another file, so all Topics are read first. The delivery settings of both
//! are [`Settings`]: where the Subscription states nothing, the Topic's `delivery` is read, field by
//! field, and then the profile fills in its defaults.
//!
//! Does not read `Destinations` documents: every family uses those.

mod mapping;
mod origins;
mod publishers;
mod references;

use std::sync::Arc;

use origins::Stated;
use publishers::LocatedPublisher;
use serde_json::json;

use super::canonical::{NO_ADDRESS, written_defaults};
use super::destinations::Destinations;
use super::origins::Origins;
use super::translation::Translation;
use super::{Described, Draft, LeftOut};
use crate::document::findings::{Finding, Findings, Message};
use crate::document::node::Node;
use crate::document::reader::{Cursor, Fields};
use crate::document::record::Record as _;
use crate::event::Input;
use crate::event::mapping::Mapping;
use crate::subscription::catalogue::{REPLIES_MAX, Topic};
use crate::subscription::filter::Filter;
use crate::subscription::kinds::{batches, filter, limits, names, replies};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::Dialect;
use crate::subscription::{DeliverySettings, Subscription};
use crate::time::moment;

/// A Subscription in the native form: as it is written, or translated.
pub(super) struct Written {
    /// The document.
    document: Node,
    /// Where values come from, if no position says it.
    origins: Origins,
    /// Its values were checked when they were translated.
    is_checked: bool,
    /// Why it cannot be used, whatever the rest says.
    error: Option<Option<Box<Finding>>>,
}

impl From<Translation> for Written {
    fn from(Translation { document, origins }: Translation) -> Self {
        Self { document, origins, is_checked: true, error: None }
    }
}

impl Written {
    /// A native document, with addresses in place of its references.
    pub(super) fn resolved(document: &Cursor<'_>, destinations: &Destinations<'_>) -> Self {
        let mut copy = None;
        let completed = document.result_or_error(|| {
            let (resolved, completed) = references::resolved(document, destinations);
            copy = Some(resolved);
            completed
        });
        let document = copy.unwrap_or_else(|| document.to_node());
        Self { document, origins: Origins::new(), is_checked: false, error: completed.err() }
    }

    /// Its document.
    pub(super) fn document(&self) -> &Node {
        &self.document
    }
}

/// The defaults of the native profile, as a document.
pub(super) fn defaults() -> Node {
    Node::of_json(&written_defaults(Dialect::Native))
}

/// Reads all Topics into the draft.
pub(super) fn read_topics<'a>(topics: &[Cursor<'a>], defaults: &Node, draft: &mut Draft<'a>) {
    topics.iter().for_each(|document| read_topic(document, defaults, draft));
}

/// Reads all Subscriptions into the draft, after all topics.
pub(super) fn read<'a>(
    subscriptions: &'a [Written],
    findings: &'a Findings,
    defaults: &Node,
    draft: &mut Draft<'a>,
) {
    for written in subscriptions {
        let document = Cursor::root(&written.document, findings).translated();
        let read =
            document.result_or_error(|| read_subscription(written, &document, defaults, draft));
        let error = match (written.error.clone(), read) {
            (None, Ok(described)) => {
                draft.add_subscription(described);
                continue;
            }
            (Some(error), _) | (None, Err(error)) => error,
        };
        let name = ["metadata.namespace", "metadata.topic", "metadata.name"];
        let name = name.map(|field| document.text_at(field));
        draft.left_out.push(LeftOut::at(&document, &name, error));
    }
}

fn read_topic<'a>(document: &Cursor<'a>, defaults: &Node, draft: &mut Draft<'a>) {
    let mut named = None;
    let read = document.without_error(|| {
        document.mapping(|fields| {
            fields.accept(&["apiVersion", "kind"]);
            named = metadata(fields, |metadata| {
                let name = TopicName {
                    namespace: name(metadata, "namespace")?,
                    topic: name(metadata, "name")?,
                };
                draft.name_topic(&name, &metadata.get("name")?).then_some(name)
            });
            let spec =
                fields.section("spec", |spec| TopicSpec::read(spec, defaults)).unwrap_or_default();
            if let Some(name) = &named {
                spec.from
                    .iter()
                    .for_each(|(publisher, at)| draft.name_publisher(publisher, name, at));
                draft.deliveries.extend(spec.delivery_at.clone().map(|at| (name.clone(), at)));
            }
            spec
        })
    });
    let Some(name) = named else { return };
    let Some(TopicSpec { input, from, mapping, max_replies, .. }) = read else {
        // Its subscriptions are left out as well, since its input is not known.
        draft.broken_topics.insert(name);
        return;
    };
    let max_replies = max_replies.unwrap_or(REPLIES_MAX);
    let from = from.into_iter().map(|(publisher, _)| publisher).collect();
    draft.topics.push(Topic { name, input, mapping: Arc::new(mapping), from, max_replies });
}

/// The `spec` of a Topic.
#[derive(Default)]
struct TopicSpec<'a> {
    input: Input,
    from: Vec<LocatedPublisher<'a>>,
    mapping: Mapping,
    max_replies: Option<u32>,
    /// Where it sets delivery defaults.
    delivery_at: Option<Cursor<'a>>,
}

impl<'a> TopicSpec<'a> {
    fn read(spec: &Fields<'a>, defaults: &Node) -> Self {
        let input =
            spec.read("input", |input| input.word(&Input::ALL, Input::as_str)).unwrap_or_default();
        let from = publishers::read(spec);
        publishers::report_unreadable(&from, input);
        let delivery_at = spec.given_key("delivery");
        let mapping = mapping::read(spec, input);
        let max_replies = spec.read("maxReplies", |at| at.integer(limits::REPLIES));
        // For its findings alone: each of its subscriptions reads it again, below its own settings.
        spec.given("delivery").iter().for_each(|delivery| check_defaults(delivery, defaults));
        Self { input, from, mapping, max_replies, delivery_at }
    }
}

/// Reads the `delivery` of a Topic as if a subscription had nothing but an address.
fn check_defaults(delivery: &Cursor<'_>, defaults: &Node) {
    let address = Node::of_json(&json!({ "destination": { "url": NO_ADDRESS } }));
    let bases = [&address, defaults].map(|node| delivery.beside(node));
    delivery.mapping_over(&bases, |fields| {
        let destination = delivery.peek("destination").filter(Cursor::is_mapping);
        let entries = destination.and_then(|of| of.entries()).unwrap_or_default();
        for url in entries.iter().filter(|entry| entry.name == "url") {
            url.key.error(Message::new("a topic has no url").help("set it in each Subscription"));
        }
        DeliverySettings::read(fields)
    });
}

/// The defaults of a profile, with those that a document states beside its `spec` in their place.
fn profile_defaults(dialect: Dialect, own: Option<&Cursor<'_>>, native: &Node) -> Node {
    let of_profile = Node::of_json(&written_defaults(dialect));
    let Some(own) = own else { return of_profile };
    check_defaults(own, native);
    if own.is_mapping() { own.laid_over(of_profile) } else { of_profile }
}

fn read_subscription<'a>(
    written: &Written,
    document: &Cursor<'a>,
    defaults: &Node,
    draft: &mut Draft<'a>,
) -> Option<Described<'a>> {
    let reported =
        if written.is_checked { document.clone().errors_only() } else { document.clone() };
    reported.mapping(|fields| {
        fields.accept(&["apiVersion", "kind"]);
        let name = metadata(fields, |metadata| {
            let [namespace, topic, name] =
                ["namespace", "topic", "name"].map(|field| name(metadata, field));
            let name = SubscriptionName {
                topic: TopicName { namespace: namespace?, topic: topic? },
                name: name?,
            };
            draft.name_subscription(&name, &document.peek("metadata.name")?).then_some(name)
        });
        let delivery = name.as_ref().and_then(|name| draft.deliveries.get(&name.topic));
        let of_topic = |topic: &&Topic| name.as_ref().is_some_and(|of| of.topic == topic.name);
        let input = || draft.topics.iter().find(of_topic).map_or(Input::default(), |of| of.input);
        let profile = fields.read("profile", |at| at.choice(&Dialect::PROFILES));
        let dialect = profile.unwrap_or(Dialect::Native);
        let own_defaults = fields.given("defaults");
        let of_profile = profile_defaults(dialect, own_defaults.as_ref(), defaults);
        let spec = fields.required("spec").and_then(|spec| {
            let delivery = delivery.cloned().map(Cursor::silent);
            let of_profile = spec.beside(&of_profile);
            let bases: Vec<Cursor<'_>> = delivery.into_iter().chain([of_profile]).collect();
            spec.mapping_over(&bases, |fields| {
                let filter = fields
                    .get("filter")
                    .map_or(Some(Filter::EVERYTHING), |filter| filter::read(&filter, input()));
                // A missing one would be that of the defaults, which has no address.
                let own = fields.own("destination").filter(|at| !at.is_null());
                let destination = own.or_else(|| fields.report_missing("destination"));
                let settings = DeliverySettings::read(fields).filter(|_| destination.is_some());
                let reply = fields.given("reply").map(|at| replies::read(&at));
                let expires_ms = fields.given("expires").map(|at| expiration(&at));
                (filter, settings, reply, expires_ms)
            })
        });
        let (name, (filter, settings, reply, expires_ms)) = (name?, spec?);
        let spec = document.peek("spec")?;
        if draft.broken_topics.contains(&name.topic) {
            return None;
        }
        let stated = Stated::of(&spec, delivery, own_defaults.as_ref());
        let subscription = Subscription {
            filter: filter?,
            reply: reply.map_or(Some(None), |reply| reply.map(Some))?,
            expires_ms: expires_ms.map_or(Some(None), |ms| ms.map(Some))?,
            ..Subscription::with_settings(name, dialect, settings?)
        };
        let Stated { mut origins, schema_at, batch_at, on_refused_at, dead_letters_at, secrets_at } =
            stated;
        origins.extend(written.origins.clone());
        if let (None, Some(at)) = (subscription.batch, on_refused_at) {
            batches::report_without_batch(&at, "batch: {maxEvents: 100} enables batches");
        }
        Some(Described { subscription, origins, schema_at, batch_at, dead_letters_at, secrets_at })
    })?
}

/// The time from which on it takes no new events.
fn expiration(at: &Cursor<'_>) -> Option<u64> {
    let ms = moment::read(at.text()?);
    ms.or_else(|| at.refuse(Message::new("not a time").help("such as 2026-12-01T00:00:00Z")))
}

fn metadata<'a, T>(fields: &Fields<'a>, read: impl FnOnce(&Fields<'a>) -> Option<T>) -> Option<T> {
    fields.required("metadata")?.mapping(read)?
}

fn name(metadata: &Fields<'_>, field: &'static str) -> Option<String> {
    names::read(&metadata.required(field)?)
}

#[cfg(test)]
mod tests;
