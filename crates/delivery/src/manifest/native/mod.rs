//! Our own format: `lastmile.dev/v1` Topic and Subscription.
//!
//! Separate because it is one family of dialects among others. A Topic may come before or after its
//! Subscriptions and in another file, so all Topics are read first. The delivery settings of both
//! are [`Settings`], in which every field is optional: the Subscription's override the Topic's
//! field by field, then the defaults of the profile are filled in.
//!
//! Does not read `Destinations` documents: every family uses those.

mod batch;
mod consent;
mod dead_letter;
mod destination;
mod filter;
mod mapping;
mod origins;
mod publishers;
mod retry;
mod schedule;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use destination::Scope;
use origins::Stated;
use publishers::LocatedPublisher;
use settings::Settings;

use super::destinations::Destinations;
use super::reader::{Cursor, Fields};
use super::{Described, Draft, batches, names};
use crate::event::Input;
use crate::event::mapping::Mapping;
use crate::subscription::catalogue::Topic;
use crate::subscription::filter::Filter;
use crate::subscription::name::{SubscriptionName, TopicName};

/// The defaults of each topic for its subscriptions; `None` where it has errors, so that they are
/// not used.
type Defaults<'a> = BTreeMap<TopicName, Option<(Settings, Stated<'a>)>>;

/// Reads all native documents into the draft.
pub(super) fn read<'a>(
    topics: &[Cursor<'a>],
    subscriptions: &[Cursor<'a>],
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
) {
    let mut defaults = Defaults::new();
    for document in topics {
        read_topic(document, destinations, draft, &mut defaults);
    }
    for document in subscriptions {
        let read =
            document.without_error(|| read_subscription(document, destinations, draft, &defaults));
        if let Some(described) = read {
            draft.add_subscription(described);
        }
    }
}

fn read_topic<'a>(
    document: &Cursor<'a>,
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
    defaults: &mut Defaults<'a>,
) {
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
            let spec = fields
                .section("spec", |spec| TopicSpec::read(spec, destinations))
                .unwrap_or_default();
            if let Some(name) = &named {
                spec.from
                    .iter()
                    .for_each(|(publisher, at)| draft.name_publisher(publisher, name, at));
                draft.note_delivery(name, spec.delivery_at.as_ref());
            }
            spec
        })
    });
    let Some(name) = named else { return };
    if read.is_none() {
        draft.invalidate_topic(&name);
    }
    let defaults_of_topic = read.map(|TopicSpec { input, from, mapping, delivery, .. }| {
        let from = from.into_iter().map(|(publisher, _)| publisher).collect();
        draft.topics.push(Topic { name: name.clone(), input, mapping: Arc::new(mapping), from });
        delivery
    });
    defaults.insert(name, defaults_of_topic);
}

/// The `spec` of a Topic.
#[derive(Default)]
struct TopicSpec<'a> {
    input: Input,
    from: Vec<LocatedPublisher<'a>>,
    mapping: Mapping,
    /// Where it sets delivery defaults.
    delivery_at: Option<Cursor<'a>>,
    /// Defaults of its subscriptions.
    delivery: (Settings, Stated<'a>),
}

impl<'a> TopicSpec<'a> {
    fn read(spec: &Fields<'a>, destinations: &Destinations<'_>) -> Self {
        let input =
            spec.read("input", |input| input.word(&Input::ALL, Input::as_str)).unwrap_or_default();
        let from = publishers::read(spec);
        publishers::report_unreadable(&from, input);
        let delivery_at = spec.given_key("delivery");
        let mapping = mapping::read(spec, input);
        let delivery = spec.section("delivery", |delivery| {
            (Settings::read(delivery, Scope::Topic, destinations), Stated::of(delivery.parent()))
        });
        Self { input, from, mapping, delivery_at, delivery: delivery.unwrap_or_default() }
    }
}

fn read_subscription<'a>(
    document: &Cursor<'a>,
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
    defaults: &Defaults<'a>,
) -> Option<Described<'a>> {
    document.mapping(|fields| {
        fields.accept(&["apiVersion", "kind"]);
        let name = metadata(fields, |metadata| {
            let [namespace, topic, name] =
                ["namespace", "topic", "name"].map(|field| name(metadata, field));
            let name = SubscriptionName {
                topic: TopicName { namespace: namespace?, topic: topic? },
                name: name?,
            };
            draft.name_subscription(&name, &metadata.get("name")?).then_some(name)
        });
        let spec = fields.required("spec").and_then(|spec| {
            spec.mapping(|spec| {
                let filter = spec
                    .get("filter")
                    .map_or(Some(Filter::EVERYTHING), |filter| filter::read(&filter));
                let settings = Settings::read(spec, Scope::Subscription, destinations);
                (filter, settings, Stated::of(spec.parent()))
            })
        });
        let (name, (filter, settings, stated)) = (name?, spec?);
        let (settings, stated) = match defaults.get(&name.topic) {
            Some(of_topic) => {
                let (base, base_stated) = of_topic.as_ref()?;
                (settings.with_fallback(base), stated.with_fallback(base_stated))
            }
            None => (settings, stated),
        };
        let subscription = settings.complete(name, filter?)?;
        let Stated { origins, schema_at, batch_at, on_refused_at, dead_letters_at, .. } = stated;
        if let (None, Some(at)) = (subscription.batch, on_refused_at) {
            batches::report_without_batch(&at, "batch: {maxEvents: 100} enables batches");
        }
        Some(Described { subscription, origins, schema_at, batch_at, dead_letters_at })
    })?
}

fn metadata<'a, T>(fields: &Fields<'a>, read: impl FnOnce(&Fields<'a>) -> Option<T>) -> Option<T> {
    fields.required("metadata")?.mapping(read)?
}

fn name(metadata: &Fields<'_>, field: &'static str) -> Option<String> {
    names::read(&metadata.required(field)?)
}

#[cfg(test)]
mod tests;
