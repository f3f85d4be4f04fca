//! Builds the catalogue from documents.
//!
//! This module is separate because some checks need all documents: names must be unique, topics and
//! subscriptions must fit each other, and dead letters need a route to their sinks.

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
    /// All topics and subscriptions without an error.
    pub catalogue: Catalogue,
    /// Positions of all stated values, by name of the subscription.
    pub origins: BTreeMap<SubscriptionName, Origins>,
    /// Subscriptions that the documents describe but the catalogue does not contain.
    pub left_out: Vec<LeftOut>,
    /// Positions of all secret names in the catalogue's subscriptions.
    pub secrets: Vec<NamedSecret>,
}

/// A topic that an object of another format defines, such as a Knative Broker.
pub struct ObjectTopic<'a> {
    /// Name of the topic in native documents.
    pub name: TopicName,
    /// Position at which the object states the name.
    pub at: Cursor<'a>,
    /// Maximum number of deliveries that follow from replies, and the position of this number.
    pub max_replies: Option<(u32, Cursor<'a>)>,
}

/// The catalogue while documents are added. Names are unique across all dialects.
#[derive(Default)]
pub(super) struct Draft<'a> {
    /// True if the documents include every topic of the deployment.
    pub(super) are_all: bool,
    pub(super) described_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Positions of topics that objects of other dialects define. A native document may describe
    /// the same topic.
    pub(super) object_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Positions of the field `delivery` in native Topics, by topic.
    pub(super) deliveries: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics whose document has an error, so that their subscriptions are left out.
    pub(super) broken_topics: BTreeSet<TopicName>,
    publishers: HashMap<Publisher, TopicName>,
    named_subscriptions: BTreeMap<SubscriptionName, Cursor<'a>>,
    pub(super) topics: Vec<Topic>,
    subscriptions: Vec<Described<'a>>,
    /// Subscriptions that are left out because of an error.
    pub(super) left_out: Vec<LeftOut>,
}

impl<'a> Draft<'a> {
    /// Registers the name of a native document's topic. If it is a duplicate, reports this at `at`
    /// and returns false.
    pub(super) fn name_topic(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        take(&mut self.described_topics, name, at, "topic")
    }

    /// Registers the name of a topic that an object of another dialect defines. If it is a
    /// duplicate, reports this at `at` and returns false. A native document with the same name may
    /// set the input, but not `delivery`, because the object configures the delivery.
    fn name_object(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        if let Some(delivery) = self.deliveries.remove(name) {
            let message =
                format!("the delivery of {name} is configured by the object at {}", at.location());
            delivery
                .error(Message::new(message).help("remove delivery here, and configure it there"));
        }
        take(&mut self.object_topics, name, at, "topic")
    }

    /// Adds the topics that objects of other dialects define.
    pub(super) fn add_object_topics(&mut self, topics: &[ObjectTopic<'a>]) {
        for ObjectTopic { name, at, max_replies } in topics {
            if at.without_error(|| self.name_object(name, at).then_some(())).is_none() {
                // The subscriptions of a broken topic are left out too.
                self.broken_topics.insert(name.clone());
            } else {
                let max_replies = max_replies.as_ref().map(|(number, at)| (*number, at));
                self.add_object_topic(name, max_replies);
            }
        }
    }

    /// Adds the topic of an object of another dialect, unless a native document describes it.
    /// `max_replies` is the number that the object states, with its position.
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

    /// Registers a publisher of a topic. If it is a duplicate, reports this at `at`.
    pub(super) fn name_publisher(
        &mut self,
        publisher: &Publisher,
        topic: &TopicName,
        at: &Cursor<'a>,
    ) {
        if let Some(first) = self.publishers.get(publisher) {
            let message =
                format!("the publisher {publisher} is defined twice: for {first} and for {topic}");
            at.error(Message::new(message).help(
                "assign the publisher to one topic; several subscriptions may receive its events",
            ));
            return;
        }
        self.publishers.insert(publisher.clone(), topic.clone());
    }

    /// Registers the name of a subscription. If it is a duplicate, reports this at `at` and returns
    /// false.
    pub(super) fn name_subscription(&mut self, name: &SubscriptionName, at: &Cursor<'a>) -> bool {
        take(&mut self.named_subscriptions, name, at, "subscription")
    }

    pub(super) fn add_subscription(&mut self, mut described: Described<'a>) {
        origins::note_overridden_statuses(&mut described.origins, &described.subscription);
        debug_assert!(origins::are_known(&described.origins, &described.subscription));
        self.subscriptions.push(described);
    }

    /// Returns the finished catalogue. A subscription is reported and left out if it does not fit
    /// its topic, or has a secret that its destination must not receive.
    pub(super) fn into_catalogue(mut self, secret_policy: &SecretPolicy) -> Built {
        let mut built = Built { left_out: std::mem::take(&mut self.left_out), ..Built::default() };
        let catalogue = &mut built.catalogue;
        // Many subscriptions inherit a value of their topic. A problem with it is reported once.
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
            let (subscription, origins) = (&described.subscription, &described.origins);
            let secrets = named_secrets(subscription, origins, &described.secrets_at, named_at);
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

    /// Collects the routes of dead letters between topics.
    fn routes(&self) -> Routes {
        let topics = self.described_topics.keys().chain(self.object_topics.keys());
        let subscriptions = self.subscriptions.iter().map(|described| &described.subscription);
        Routes::new(topics, &self.topics, self.named_subscriptions.keys(), subscriptions)
    }
}

/// Reports an error and returns false if the sink of a subscription is a topic that no document
/// defines. Reports a warning and returns true if dead letters would go to the default container
/// instead. Each finding is reported once for each position.
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

/// Checks that a topic's events can be delivered in the schema of a subscription. A problem is
/// reported once per position: at the schema if it is stated, otherwise at the subscription's name.
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
    kind: &str,
) -> bool {
    if let Some(first) = taken.get(name) {
        let message =
            format!("the {kind} {name} is defined twice; the first is at {}", first.location());
        at.error(Message::new(message).help("remove or rename one of them"));
        return false;
    }
    taken.insert(name.clone(), at.clone());
    true
}
