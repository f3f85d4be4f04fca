//! Finds objects of unsupported kinds, and the subscriptions that change without them.
//!
//! Separate because a file for a cluster has many objects that change no delivery. Those are only
//! counted, so that a warning always means that a delivery differs from the cluster. The warning
//! names the subscriptions. An object changes a subscription if one of them refers to the other,
//! directly or through other unsupported objects.
//!
//! Problems that have a finding of their own are not reported here, such as a reference without an
//! address.

use std::collections::{BTreeMap, BTreeSet};

use super::super::ignored::Ignored;
use super::cluster::{self, ClusterDefault};
use super::object::Object;
use super::role::Role;
use super::sketch::{Reference, Sketch};
use super::topic_kind::{TopicKind, topic_kind};
use super::topics::Topics;
use delivery::document::findings::{Message, shortened};
use delivery::document::reader::Cursor;
use delivery::native::LeftOut;
use delivery::subscription::name::{SubscriptionName, TopicName};

/// Maximum number of subscriptions that a warning names.
const NAMED_MAX: usize = 100;
/// Kind of objects that limit who may publish.
const POLICY: &str = "EventPolicy";

/// Reports unsupported objects that change a subscription, and counts the others.
pub(super) fn report<'a>(
    objects: &[(Role, Object<'a>)],
    topics: &Topics,
    left_out: &mut Vec<LeftOut>,
    ignored: &mut Ignored<'a>,
) {
    let unread = objects.iter().filter(|(role, _)| *role == Role::Unread);
    let unread: Vec<&Object<'a>> = unread.map(|(_, object)| object).collect();
    let sketches = if unread.is_empty() { Vec::new() } else { Sketch::all(objects, topics) };
    let index = Index::new(&sketches, &unread);
    for object in unread {
        let mut affected = index.affected(object);
        if let Some(source) = source_without_sink(object) {
            let name = [&source.topic.namespace, &source.topic.topic, &source.name];
            let name = name.map(String::as_str);
            left_out.push(LeftOut::because(&object.document, &name, "spec.sink is missing"));
            affected.insert(source.to_string(), "sink");
        }
        if affected.is_empty() {
            ignored.count(&object.document);
        } else {
            warn(object, &affected);
        }
    }
}

/// Returns the subscription of an event source without a sink.
fn source_without_sink(object: &Object<'_>) -> Option<SubscriptionName> {
    let is_source = object.kind.ends_with("Source") || object.kind == "SinkBinding";
    let name = &object.name;
    is_source.then(|| SubscriptionName { topic: name.clone(), name: name.topic.clone() })
}

/// Adds a warning for an object, with the subscriptions that the object changes and the fields of
/// the references.
fn warn(object: &Object<'_>, affected: &BTreeMap<String, &'static str>) {
    let named = affected.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named.map(|(name, field)| format!("{name} ({field})")).collect();
    if affected.len() > NAMED_MAX {
        named.push(format!("{} more", affected.len() - NAMED_MAX));
    }
    let message = format!(
        "the {} {} is not supported; this affects deliveries of {}",
        shortened(object.kind),
        object.name,
        named.join(", ")
    );
    let at = object.document.peek("kind").unwrap_or_else(|| object.document.clone());
    at.warn(Message::new(message).help(help(object)));
}

/// Returns the help text: how to keep the deliveries without the object.
fn help(object: &Object<'_>) -> String {
    let other = || match object.kind {
        POLICY => "restrict the senders of the events queue, or the keys of the HTTP ingress",
        _ if source_without_sink(object).is_some() => "add spec.sink",
        _ => {
            "replace the object by an HTTP service, and add its address to a Destinations document"
        }
    };
    cluster::help(object).unwrap_or_else(|| other().to_owned())
}

/// A subscription or an object that refers to another object.
enum Referrer<'s> {
    /// A subscription, with the field of the reference.
    Subscription(&'s Sketch, &'static str),
    /// An object of an unsupported kind.
    Unread(Reference),
}

/// All references, by the object to which they refer.
struct Index<'s> {
    sketches: &'s [Sketch],
    referrers: BTreeMap<Reference, Vec<Referrer<'s>>>,
    of_parent: BTreeMap<&'s (TopicKind, TopicName), Vec<&'s Sketch>>,
}

impl<'s> Index<'s> {
    fn new(sketches: &'s [Sketch], unread: &[&Object<'_>]) -> Self {
        let mut index = Self { sketches, referrers: BTreeMap::new(), of_parent: BTreeMap::new() };
        for sketch in sketches {
            for (field, reference) in &sketch.references {
                let referrers = index.referrers.entry(reference.clone()).or_default();
                referrers.push(Referrer::Subscription(sketch, field));
            }
            if let Some(parent) = &sketch.parent {
                index.of_parent.entry(parent).or_default().push(sketch);
            }
        }
        for object in unread {
            for (reference, _) in references_of(object) {
                let referrers = index.referrers.entry(reference).or_default();
                referrers.push(Referrer::Unread(Reference::to(object)));
            }
        }
        index
    }

    /// Returns the subscriptions that an object changes, each with the field of the reference.
    fn affected(&self, object: &Object<'_>) -> BTreeMap<String, &'static str> {
        let mut affected = BTreeMap::new();
        let mut add = |sketch: &Sketch, field: &'static str| {
            affected.entry(sketch.name.to_string()).or_insert(field);
        };
        let (mut open, mut seen) = (vec![Reference::to(object)], BTreeSet::new());
        while let Some(reference) = open.pop() {
            for referrer in self.referrers.get(&reference).into_iter().flatten() {
                match referrer {
                    Referrer::Subscription(sketch, field) => add(sketch, field),
                    Referrer::Unread(from) if !seen.contains(from) => open.push(from.clone()),
                    Referrer::Unread(_) => {}
                }
            }
            seen.insert(reference);
        }
        for parent in references_of(object).into_iter().filter_map(|(_, parent)| parent) {
            let field = match parent.0 {
                TopicKind::Broker => "broker",
                TopicKind::Channel => "channel",
            };
            self.of_parent.get(&parent).into_iter().flatten().for_each(|sketch| add(sketch, field));
        }
        self.of_whole_cluster(object).into_iter().for_each(|(sketch, field)| add(sketch, field));
        affected
    }

    /// Returns the subscriptions that an object changes although it does not refer to them, with
    /// the reason: `policy` or `cluster defaults`.
    fn of_whole_cluster(&self, object: &Object<'_>) -> Vec<(&'s Sketch, &'static str)> {
        let sketches = self.sketches.iter();
        if object.kind == POLICY {
            let selected = |sketch: &&Sketch| is_selected(object, sketch);
            return sketches.filter(selected).map(|sketch| (sketch, "policy")).collect();
        }
        let set = ClusterDefault::set_by(object);
        let is_left =
            |sketch: &&Sketch| sketch.left_to_cluster.iter().any(|default| set.contains(default));
        sketches.filter(is_left).map(|sketch| (sketch, "cluster defaults")).collect()
    }
}

/// True if a policy applies to the broker or channel of a subscription although it does not name
/// the object. Such a policy applies to a whole namespace, or selects all objects of a kind.
fn is_selected(policy: &Object<'_>, sketch: &Sketch) -> bool {
    let Some((kind, TopicName { namespace, .. })) = &sketch.parent else { return false };
    let to = policy.document.peek("spec.to").filter(|to| !to.is_empty());
    let Some(to) = to else { return *namespace == policy.name.namespace };
    let targets = if to.is_list() { to.list().unwrap_or_default() } else { Vec::new() };
    let selects = |target: &Cursor<'_>| {
        let selector = target.peek("selector")?;
        topic_kind(selector.text_at("apiVersion"), selector.text_at("kind"))
    };
    *namespace == policy.name.namespace
        && targets.iter().any(|target| selects(target).as_ref() == Some(kind))
}

/// Returns all references in a `spec`. A reference to a broker or channel also has its topic kind
/// and name. For an EventPolicy, returns only those in `spec.to`.
fn references_of(object: &Object<'_>) -> Vec<(Reference, Option<(TopicKind, TopicName)>)> {
    let mut found = Vec::new();
    let path = if object.kind == POLICY { "spec.to" } else { "spec" };
    if let Some(at) = object.document.peek(path) {
        collect(&at, &object.name.namespace, &mut found);
    }
    found
}

/// Adds the references in a value. The recursion ends because the nesting of documents is limited.
fn collect(
    at: &Cursor<'_>,
    namespace: &str,
    found: &mut Vec<(Reference, Option<(TopicKind, TopicName)>)>,
) {
    if at.is_mapping() {
        if let Some(reference) = Reference::at(at, namespace) {
            let kind = topic_kind(at.text_at("apiVersion"), &reference.kind);
            let parent = kind.map(|kind| (kind, reference.name.clone()));
            found.push((reference, parent));
        }
        let entries = at.entries().unwrap_or_default();
        entries.iter().for_each(|entry| collect(&entry.value, namespace, found));
    } else if at.is_list() {
        at.list().unwrap_or_default().iter().for_each(|element| collect(element, namespace, found));
    }
}
