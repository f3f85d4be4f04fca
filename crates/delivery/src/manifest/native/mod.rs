//! Our own format: `lastmile.dev/v1` Topic and Subscription.
//!
//! Separate because it is one family of dialects among others. A Topic may stand before or after its Subscriptions
//! and in another file: all Topics are read first. What a Topic says about delivery and what a Subscription says are
//! [`Settings`], in which every field is optional; the Subscription's go over the Topic's field by field, and only
//! then are the defaults of the profile filled in.
//!
//! Does not read `Destinations` documents: every family uses those.

mod dead_letter;
mod destination;
mod filter;
mod mapping;
mod origins;
mod retry;
mod schedule;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Input;
use crate::filter::Filter;
use crate::mapping::Mapping;
use crate::subscription::{SubscriptionName, Topic, TopicName};

use super::destinations::Destinations;
use super::names;
use super::reader::{Cursor, Fields};
use super::{Described, Draft};
use origins::Stated;
use settings::{Scope, Settings};

/// How the records of a topic may be read; those without a value are known, but not to this version.
const INPUTS: [(&str, Option<Input>); 8] = [
    ("auto", Some(Input::Auto)),
    ("cloudevents", Some(Input::CloudEvents)),
    ("eventgrid", Some(Input::EventGrid)),
    ("custom", Some(Input::Custom)),
    ("opaque", Some(Input::Opaque)),
    ("sns", None),
    ("eventbridge", None),
    ("s3", None),
];

/// What each topic says about its subscriptions; `None` where it has errors, so that they would not be as meant.
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
        let read = document.without_error(|| read_subscription(document, destinations, draft, &defaults));
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
                let name = TopicName { namespace: name(metadata, "namespace")?, topic: name(metadata, "name")? };
                draft.name_topic(&name, &metadata.get("name")?).then_some(name)
            });
            fields.section("spec", |spec| TopicSpec::read(spec, destinations)).unwrap_or_default()
        })
    });
    let Some(name) = named else { return };
    let defaults_of_topic = read.map(|TopicSpec { input, mapping, delivery }| {
        draft.topics.push(Topic { input, mapping: Arc::new(mapping), ..Topic::new(name.clone()) });
        delivery
    });
    defaults.insert(name, defaults_of_topic);
}

/// What the `spec` of a Topic says.
#[derive(Default)]
struct TopicSpec<'a> {
    input: Input,
    mapping: Mapping,
    /// Defaults of its subscriptions.
    delivery: (Settings, Stated<'a>),
}

impl<'a> TopicSpec<'a> {
    fn read(spec: &Fields<'a>, destinations: &Destinations<'_>) -> Self {
        let input = spec.get("input").and_then(|input| input.choice("input", &INPUTS)).unwrap_or_default();
        if let Some(from) = spec.get("from")
            && from.list().is_some_and(|publishers| !publishers.is_empty())
        {
            from.unsupported("from");
        }
        let mapping = mapping::read(spec, input);
        let delivery = spec.section("delivery", |delivery| {
            (Settings::read(delivery, Scope::Topic, destinations), Stated::of(delivery.parent()))
        });
        Self { input, mapping, delivery: delivery.unwrap_or_default() }
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
            let [namespace, topic, name] = ["namespace", "topic", "name"].map(|field| name(metadata, field));
            let name = SubscriptionName { topic: TopicName { namespace: namespace?, topic: topic? }, name: name? };
            draft.name_subscription(&name, &metadata.get("name")?).then_some(name)
        });
        let spec = fields.required("spec").and_then(|spec| {
            spec.mapping(|spec| {
                let filter = spec.get("filter").map_or(Some(Filter::EVERYTHING), |filter| filter::read(&filter));
                let settings = Settings::read(spec, Scope::Subscription, destinations);
                (filter, settings, Stated::of(spec.parent()))
            })
        });
        let (name, (filter, settings, stated)) = (name?, spec?);
        let (settings, stated) = match defaults.get(&name.topic) {
            Some(of_topic) => {
                let (base, base_stated) = of_topic.as_ref()?;
                (settings.over(base), stated.over(base_stated))
            }
            None => (settings, stated),
        };
        let Stated { origins, schema_at, .. } = stated;
        Some(Described { subscription: settings.complete(name, filter?)?, origins, schema_at })
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
