//! The catalogue while it is built from documents.
//!
//! Separate because it needs all of them: names are unique, topics and subscriptions have to suit each other, and dead
//! letters need a way to their sinks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::circles;
use super::conversion;
use super::described::Described;
use super::left_out::LeftOut;
use super::named_secrets::{NamedSecret, named_secrets};
use super::origins::{self, Origins};
use super::secret_policy;
use super::sinks::{Routes, UnusedSettings};
use crate::document::findings::Message;
use crate::document::reader::Cursor;
use crate::event::envelope::Publisher;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::secret_policy::SecretPolicy;
use crate::subscription::topic_settings::{REPLIES_MAX, TopicSettings};

/// The result of reading a set of documents.
#[derive(Default)]
pub struct Built {
    /// Every topic and subscription without an error.
    pub catalogue: Catalogue,
    /// Where the documents state each value, for every subscription of the catalogue.
    pub origins: BTreeMap<SubscriptionName, Origins>,
    /// The subscriptions that the documents describe and the catalogue does not have.
    pub left_out: Vec<LeftOut>,
    /// The positions at which the documents name secrets, for every subscription of the catalogue.
    pub secrets: Vec<NamedSecret>,
}

/// A topic that an object of another format defines.
pub struct ObjectTopic<'a> {
    /// The name that the object has in files.
    pub name: TopicName,
    /// The position of the name.
    pub at: Cursor<'a>,
    /// The limit of deliveries that replies lead to, and its position.
    pub max_replies: Option<(u32, Cursor<'a>)>,
}

/// The catalogue while it is built: names are unique, whatever the family of the document.
#[derive(Default)]
pub(super) struct Draft<'a> {
    /// Whether every topic of the deployment is among the documents.
    pub(super) are_all: bool,
    /// Topics of native documents.
    pub(super) described_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics defined by objects of other families; a native document may describe one as well.
    pub(super) object_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// The positions of `delivery` in native documents, by topic.
    pub(super) deliveries: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics with an error in the document that describes them.
    pub(super) broken_topics: BTreeSet<TopicName>,
    publishers: HashMap<Publisher, TopicName>,
    named_subscriptions: BTreeMap<SubscriptionName, Cursor<'a>>,
    /// The topics so far.
    pub(super) topics: Vec<Topic>,
    subscriptions: Vec<Described<'a>>,
    /// The subscriptions that have an error.
    pub(super) left_out: Vec<LeftOut>,
}

impl<'a> Draft<'a> {
    /// Registers the name of a topic that a native document describes; `at` is where it is written.
    /// A duplicate is reported and returns false.
    pub(super) fn name_topic(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        take(&mut self.described_topics, name, at, "topic")
    }

    /// Registers the name of a topic that an object of another family defines. A native document of
    /// that name may set its input, but not delivery defaults: the object sets those.
    fn name_object(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        if let Some(delivery) = self.deliveries.remove(name) {
            let message =
                format!("the delivery of {name} is configured by the object at {}", at.location());
            delivery.error(Message::new(message).help("remove delivery here, and set it there"));
        }
        take(&mut self.object_topics, name, at, "topic")
    }

    /// Adds the topics that objects of other families define.
    pub(super) fn add_object_topics(&mut self, topics: &[ObjectTopic<'a>]) {
        for ObjectTopic { name, at, max_replies } in topics {
            if at.without_error(|| self.name_object(name, at).then_some(())).is_none() {
                // Its subscriptions are left out as well.
                self.broken_topics.insert(name.clone());
            } else {
                let max_replies = max_replies.as_ref().map(|(number, at)| (*number, at));
                self.add_object_topic(name, max_replies);
            }
        }
    }

    /// Adds the topic that an object of another family defines, unless a native document describes
    /// it; with the number of replies that the object states, and where.
    fn add_object_topic(&mut self, name: &TopicName, max_replies: Option<(u32, &Cursor<'_>)>) {
        match (self.described_topics.get(name), max_replies) {
            (None, stated) => {
                let max_replies = stated.map_or(REPLIES_MAX, |(number, _)| number);
                let settings = TopicSettings { max_replies, ..TopicSettings::default() };
                self.topics.push(Topic { name: name.clone(), settings });
            }
            (Some(described), Some((_, at))) => {
                let described = described.location();
                let message = format!("no effect: {name} is described by the Topic at {described}");
                at.warn(Message::new(message).help("set maxReplies there"));
            }
            (Some(_), None) => {}
        }
    }

    /// Registers a publisher for a topic; `at` is where it is written. A duplicate is reported.
    pub(super) fn name_publisher(
        &mut self,
        publisher: &Publisher,
        topic: &TopicName,
        at: &Cursor<'a>,
    ) {
        if let Some(first) = self.publishers.get(publisher) {
            let message =
                format!("the publisher {publisher} is defined twice: for {first} and for {topic}");
            at.error(
                Message::new(message).help(
                    "a publisher has one topic; several subscriptions may receive its events",
                ),
            );
            return;
        }
        self.publishers.insert(publisher.clone(), topic.clone());
    }

    /// Registers the name of a subscription; `at` is where it is written. A duplicate is reported
    /// and returns false.
    pub(super) fn name_subscription(&mut self, name: &SubscriptionName, at: &Cursor<'a>) -> bool {
        take(&mut self.named_subscriptions, name, at, "subscription")
    }

    /// Adds a subscription.
    pub(super) fn add_subscription(&mut self, mut described: Described<'a>) {
        origins::note_overridden_statuses(&mut described.origins, &described.subscription);
        debug_assert!(origins::are_known(&described.origins, &described.subscription));
        self.subscriptions.push(described);
    }

    /// The finished catalogue; a subscription with a schema that its topic's events cannot be
    /// converted into, or with a secret that its destination may not have, is reported and left out.
    pub(super) fn into_catalogue(mut self, secret_policy: &SecretPolicy) -> Built {
        let mut built = Built { left_out: std::mem::take(&mut self.left_out), ..Built::default() };
        let catalogue = &mut built.catalogue;
        // Many subscriptions inherit a value of their topic: a problem with it is reported once.
        let mut reported_at = BTreeSet::new();
        let (are_all, routes) = (self.are_all, self.routes());
        let mut unused_settings = UnusedSettings::default();
        self.topics.into_iter().for_each(|topic| catalogue.add_topic(topic));
        for described in self.subscriptions {
            let name = &described.subscription.name;
            let named_at = self.named_subscriptions.get(name);
            let fits_topic = fits_topic_input(
                &described,
                catalogue.topic(&name.topic),
                named_at,
                &mut reported_at,
            );
            let may_have_secrets = secret_policy::may_have_secrets(
                &described,
                secret_policy,
                named_at,
                &mut reported_at,
            );
            let has_route =
                !are_all || has_dead_letter_route(&described, &routes, &mut reported_at);
            unused_settings.check(described.dead_letters_at, &described.subscription.dead_letter);
            let holds = |holds: bool, reason: &str| holds.then_some(()).ok_or(reason.to_owned());
            let has_route = holds(has_route, "the topic of its dead letters does not exist");
            let has_topic = !self.broken_topics.contains(&name.topic);
            let has_topic = holds(has_topic, "its topic has an error");
            if let Err(reason) = fits_topic.and(may_have_secrets).and(has_route).and(has_topic) {
                let name = name.to_string();
                let at = named_at.map(Cursor::location).unwrap_or_default();
                built.left_out.push(LeftOut { name, at, reason });
                continue;
            }
            let (of, origins) = (&described.subscription, &described.origins);
            let secrets = named_secrets(of, origins, &described.secrets_at, named_at);
            built.secrets.extend(secrets);
            built.origins.insert(name.clone(), described.origins);
            catalogue.add_subscription(described.subscription);
        }
        unused_settings.report();
        if are_all {
            circles::report(catalogue, &self.named_subscriptions);
        }
        built
    }

    /// The routes of dead letters from topic to topic.
    fn routes(&self) -> Routes {
        let topics = self.described_topics.keys().chain(self.object_topics.keys());
        let subscriptions = self.subscriptions.iter().map(|described| &described.subscription);
        Routes::new(topics, &self.topics, self.named_subscriptions.keys(), subscriptions)
    }
}

/// Returns true if the topic that a subscription's dead letters go to exists; warns about routes that
/// cannot work, once for each position.
fn has_dead_letter_route(
    described: &Described<'_>,
    routes: &Routes,
    reported_at: &mut BTreeSet<String>,
) -> bool {
    let Described { subscription, dead_letters_at, .. } = described;
    let Some(at) = &dead_letters_at.sink else { return true };
    if let Some(topic) = routes.unknown(subscription) {
        if reported_at.insert(at.location()) {
            at.error(routes.suggestion(topic));
        }
        return false;
    }
    if let Some(warning) =
        routes.routing_warning(subscription).filter(|_| reported_at.insert(at.location()))
    {
        at.warn(warning);
    }
    true
}

/// Returns true if a topic's events can be delivered in the schema of a subscription. Reported where the
/// schema is stated, else at the subscription's name, once for each position.
fn fits_topic_input<'a>(
    described: &Described<'a>,
    topic: Option<&Topic>,
    named_at: Option<&Cursor<'a>>,
    reported_at: &mut BTreeSet<String>,
) -> Result<(), String> {
    let Described { subscription, schema_at, batch_at, .. } = described;
    let mut report_once = |at: &Option<Cursor<'a>>, message, report: fn(&Cursor<'a>, Message)| {
        if let Some(at) = at.as_ref().or(named_at).filter(|at| reported_at.insert(at.location())) {
            report(at, message);
        }
    };
    if let Some(problem) = topic.and_then(|topic| conversion::impossible(subscription, topic)) {
        let reason = problem.to_string();
        report_once(schema_at, problem, Cursor::error);
        return Err(reason);
    }
    if let Some(problem) = conversion::never_batched(subscription) {
        let reason = problem.to_string();
        report_once(batch_at, problem, Cursor::error);
        return Err(reason);
    }
    if let Some(warning) = topic.and_then(|topic| conversion::travels_alone(subscription, topic)) {
        report_once(batch_at, warning, Cursor::warn);
    }
    Ok(())
}

fn take<'a, N: Ord + Clone + std::fmt::Display>(
    taken: &mut BTreeMap<N, Cursor<'a>>,
    name: &N,
    at: &Cursor<'a>,
    what: &str,
) -> bool {
    if let Some(first) = taken.get(name) {
        let message =
            format!("the {what} {name} is defined twice; the first is at {}", first.location());
        at.error(Message::new(message).help("remove one of them, or give it another name"));
        return false;
    }
    taken.insert(name.clone(), at.clone());
    true
}
