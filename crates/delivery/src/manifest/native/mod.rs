//! Our own format: `lastmile.dev/v1` Topic and Subscription.
//!
//! Separate because it is one family of dialects among others. A Topic may come before or after its
//! Subscriptions and in another file, so all Topics are read first. The delivery settings of both
//! are [`Settings`]: where the Subscription states nothing, the Topic's `delivery` is read, field by
//! field, and then the profile fills in its defaults.
//!
//! Does not read `Destinations` documents: every family uses those.

mod auth;
mod consent;
mod dead_letter;
mod destination;
mod filter;
mod mapping;
mod oauth2;
mod origins;
mod publishers;
mod retry;
mod schedule;
mod settings;

use std::sync::Arc;

pub(super) use auth::{Supplied, can_be_shown, supplied, tls};
use destination::Scope;
pub(super) use oauth2::Client;
pub(super) use origins::Stated;
use publishers::LocatedPublisher;
use settings::Settings;

use super::destinations::Destinations;
use super::reader::{Cursor, Fields};
use super::{Described, Draft, LeftOut, batches, limits, names};
use crate::event::Input;
use crate::event::mapping::Mapping;
use crate::subscription::Subscription;
use crate::subscription::catalogue::{REPLIES_MAX, Topic};
use crate::subscription::filter::Filter;
use crate::subscription::name::{SubscriptionName, TopicName};

/// Reads all native documents into the draft.
pub(super) fn read<'a>(
    topics: &[Cursor<'a>],
    subscriptions: &[Cursor<'a>],
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
) {
    for document in topics {
        read_topic(document, destinations, draft);
    }
    for document in subscriptions {
        match document.result_or_error(|| read_subscription(document, destinations, draft)) {
            Ok(described) => draft.add_subscription(described),
            Err(error) => {
                let name = ["metadata.namespace", "metadata.topic", "metadata.name"];
                let name = name.map(|field| document.text_at(field));
                draft.left_out.push(LeftOut::at(document, &name, error));
            }
        }
    }
}

/// A subscription of another family before its own settings: what its topic's `delivery` states, over the
/// values of its dialect; and where that is written.
pub(super) fn over_dialect<'a>(
    delivery: &Cursor<'a>,
    of_dialect: Subscription,
    destinations: &Destinations<'_>,
) -> (Subscription, Stated<'a>) {
    let base = of_dialect.clone();
    // It was read before, with its Topic.
    let read = delivery.clone().silent().mapping(|of| Settings::over(of, base, destinations));
    (read.unwrap_or(of_dialect), Stated::of(delivery, None))
}

fn read_topic<'a>(document: &Cursor<'a>, destinations: &Destinations<'_>, draft: &mut Draft<'a>) {
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
    fn read(spec: &Fields<'a>, destinations: &Destinations<'_>) -> Self {
        let input =
            spec.read("input", |input| input.word(&Input::ALL, Input::as_str)).unwrap_or_default();
        let from = publishers::read(spec);
        publishers::report_unreadable(&from, input);
        let delivery_at = spec.given_key("delivery");
        let mapping = mapping::read(spec, input);
        let max_replies = spec.read("maxReplies", |at| at.integer(limits::REPLIES));
        // For its findings alone: each of its subscriptions reads it again, below its own settings.
        spec.section("delivery", |of| Settings::read(of, Scope::Topic, destinations));
        Self { input, from, mapping, max_replies, delivery_at }
    }
}

fn read_subscription<'a>(
    document: &Cursor<'a>,
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
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
        let delivery = name.as_ref().and_then(|name| draft.deliveries.get(&name.topic));
        let of_topic = |topic: &&Topic| name.as_ref().is_some_and(|of| of.topic == topic.name);
        let input = || draft.topics.iter().find(of_topic).map_or(Input::default(), |of| of.input);
        let spec = fields.required("spec").and_then(|spec| {
            spec.mapping_over(delivery.cloned().map(Cursor::silent), |spec| {
                let filter = spec
                    .get("filter")
                    .map_or(Some(Filter::EVERYTHING), |filter| filter::read(&filter, input()));
                let settings = Settings::read(spec, Scope::Subscription, destinations);
                (filter, settings, Stated::of(spec.parent(), delivery))
            })
        });
        let (name, (filter, settings, stated)) = (name?, spec?);
        if draft.broken_topics.contains(&name.topic) {
            return None;
        }
        let subscription = settings.complete(name, filter?)?;
        let Stated { mut origins, schema_at, batch_at, on_refused_at, dead_letters_at, secrets_at } =
            stated;
        if let Some(destination) = document.peek("spec.destination") {
            let asked = destination::asked(&destination);
            destinations.note_access(&asked, destination.text_at("url"), &mut origins);
        }
        if let (None, Some(at)) = (subscription.batch, on_refused_at) {
            batches::report_without_batch(&at, "batch: {maxEvents: 100} enables batches");
        }
        Some(Described { subscription, origins, schema_at, batch_at, dead_letters_at, secrets_at })
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
