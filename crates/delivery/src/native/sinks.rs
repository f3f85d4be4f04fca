//! Checks whether dead letters can reach the sinks of subscriptions, and whether all options for
//! dead letters are used.
//!
//! This module is separate because the checks need all documents. Any of them may define a topic.
//! Some topics cannot read every format of dead letters, and the sinks of a topic's subscriptions
//! may be other topics. An option of a Topic may be intended for only one of its subscriptions.
//!
//! In production, a dead letter is stored in the default container if its sink cannot receive it.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::findings::Message;
use crate::document::hint::hint;
use crate::document::reader::Cursor;
use crate::event::{Input, Shape};
use crate::subscription::catalogue::Topic;
use crate::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Format, Layout};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::sink::Sink;
use crate::subscription::{DeadLetterPolicy, Subscription};

/// Positions of dead-letter options that only some sinks and formats use.
#[derive(Default)]
pub(super) struct DeadLettersAt<'a> {
    pub(super) sink: Option<Cursor<'a>>,
    pub(super) layout: Option<Cursor<'a>>,
    /// Position of the option `errorData`, if it is stated.
    pub(super) error_data: Option<Cursor<'a>>,
}

/// The topics to which dead letters of other topics are sent.
pub(super) struct Routes {
    /// All topics that documents define, and whether they have subscriptions.
    has_subscribers: BTreeMap<TopicName, bool>,
    /// For each topic, the topics that are sinks of its subscriptions.
    sink_topics: BTreeMap<TopicName, BTreeSet<TopicName>>,
    /// Input formats of topics that documents describe.
    inputs: BTreeMap<TopicName, Input>,
}

impl Routes {
    /// Collects the routes between these topics from the sinks of these subscriptions. The topics
    /// of `names` count as topics with subscriptions.
    pub(super) fn new<'s>(
        topics: impl Iterator<Item = &'s TopicName>,
        described: &[Topic],
        names: impl Iterator<Item = &'s SubscriptionName>,
        subscriptions: impl Iterator<Item = &'s Subscription>,
    ) -> Self {
        let mut routes = Self {
            has_subscribers: topics.map(|topic| (topic.clone(), false)).collect(),
            sink_topics: BTreeMap::new(),
            inputs: described
                .iter()
                .map(|topic| (topic.name.clone(), topic.settings.input))
                .collect(),
        };
        routes.has_subscribers.extend(names.map(|name| (name.topic.clone(), true)));
        for subscription in subscriptions {
            if let Sink::Topic(sink) = &subscription.dead_letter.sink {
                let sink_topics =
                    routes.sink_topics.entry(subscription.name.topic.clone()).or_default();
                sink_topics.insert(sink.clone());
            }
        }
        routes
    }

    /// Returns the topic that is the sink of a subscription, if no document defines the topic.
    pub(super) fn unknown<'s>(&self, subscription: &'s Subscription) -> Option<&'s TopicName> {
        topic_of(&subscription.dead_letter.sink)
            .filter(|topic| !self.has_subscribers.contains_key(*topic))
    }

    /// Returns the message about an undefined topic, which suggests the most similar name.
    pub(super) fn suggestion(&self, topic: &TopicName) -> Message {
        let known: Vec<String> = self.has_subscribers.keys().map(ToString::to_string).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let help = hint(&topic.to_string(), &known);
        Message::new(format!("the topic {topic} is not in any of the files")).help(help)
    }

    /// Returns the reason why dead letters for a topic would be stored in the default container;
    /// `None` if the topic can receive them.
    pub(super) fn routing_warning(&self, subscription: &Subscription) -> Option<Message> {
        let topic = topic_of(&subscription.dead_letter.sink)?;
        let own = &subscription.name.topic;
        let input = self.inputs.get(topic).copied().unwrap_or_default();
        let problem = if topic == own {
            format!(
                "{topic} is the subscription's own topic: dead letters go to the default container"
            )
        } else if self.has_subscribers.get(topic) == Some(&false) {
            format!("{topic} has no subscription: dead letters go to the default container")
        } else if self.reaches(topic, own) {
            format!(
                "the sinks of {topic} lead back to {own}: dead letters in a loop go to the default \
                 container"
            )
        } else {
            return unreadable(subscription, topic, input);
        };
        Some(Message::new(problem))
    }

    /// True if dead letters of `from` can reach `to`, through any number of sinks.
    fn reaches(&self, from: &TopicName, to: &TopicName) -> bool {
        // Each topic is visited once, so that the search ends even if sinks form a loop.
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(topic) = open.pop() {
            let fresh: Vec<&TopicName> = self
                .sink_topics
                .get(topic)
                .into_iter()
                .flatten()
                .filter(|next| seen.insert(next))
                .collect();
            open.extend(fresh);
        }
        seen.contains(to)
    }
}

/// Returns the dead-letter formats that a topic with this input can read, and the one to suggest.
/// Returns `None` if the topic can read all formats.
fn readable_formats(input: Input) -> Option<(&'static [Format], Format)> {
    match input {
        Input::Auto | Input::Custom | Input::Opaque => None,
        // Topics with these inputs read a dead letter as a CloudEvent.
        Input::CloudEvents | Input::Sns | Input::SnsWhole | Input::EventBridge | Input::S3 => {
            Some((&[Format::CloudEvents, Format::Knative], Format::CloudEvents))
        }
        Input::EventGrid => Some((&[Format::EventGrid, Format::Custom], Format::EventGrid)),
    }
}

/// Returns the reason why a topic with this input cannot read a subscription's dead letters; `None`
/// if it can.
fn unreadable(subscription: &Subscription, topic: &TopicName, input: Input) -> Option<Message> {
    let (formats, right) = readable_formats(input)?;
    let (policy, schema) = (&subscription.dead_letter, subscription.destination.schema);
    let format = match (policy.format, schema) {
        (DeadLetterFormat::Fixed(format), _) => format,
        (of_schema @ DeadLetterFormat::ByDeliverySchema, Some(_)) => {
            of_schema.format(Shape::Opaque, schema)
        }
        // The format depends on each event, so it is unknown here.
        (DeadLetterFormat::ByDeliverySchema, None) => return None,
    };
    // The flat layout keeps the members of an Event Grid event.
    let is_readable =
        input == Input::EventGrid && format == Format::Namespace && policy.layout == Layout::Flat;
    let problem = format!(
        "{topic} has input {} and cannot read the format {}: dead letters go to the default container",
        input.as_str(),
        format.as_str()
    );
    let message = || Message::new(problem).help(format!("format: {}", right.as_str()));
    (!formats.contains(&format) && !is_readable).then(message)
}

fn topic_of(sink: &Sink) -> Option<&TopicName> {
    let Sink::Topic(topic) = sink else { return None };
    Some(topic)
}

/// Dead-letter options by position, each with the reason why it is unused; `None` if a subscription
/// uses it.
///
/// An option of a Topic is reported once, and only if none of its subscriptions uses it. An
/// explicit default counts as used.
#[derive(Default)]
pub(super) struct UnusedSettings<'a>(BTreeMap<String, (Cursor<'a>, Option<Message>)>);

impl<'a> UnusedSettings<'a> {
    /// Records which of the stated options one subscription uses.
    pub(super) fn check(&mut self, at: DeadLettersAt<'a>, policy: &DeadLetterPolicy) {
        let DeadLettersAt { sink: _, layout, error_data } = at;
        self.note(layout, || unused_layout(policy));
        self.note(error_data, || unused_error_data(policy));
    }

    fn note(&mut self, at: Option<Cursor<'a>>, unused: impl FnOnce() -> Option<Message>) {
        let Some(at) = at else { return };
        let (_, message) = self.0.entry(at.location()).or_insert_with(|| (at, Some("".into())));
        *message = message.take().and_then(|_| unused());
    }

    pub(super) fn report(self) {
        for (at, unused) in self.0.into_values() {
            if let Some(unused) = unused {
                at.warn(unused);
            }
        }
    }
}

fn unused_layout(policy: &DeadLetterPolicy) -> Option<Message> {
    let DeadLetterFormat::Fixed(format) = policy.format else { return None };
    if policy.layout == Layout::Nested || format == Format::Namespace {
        return None;
    }
    let unused = format!("no effect: the format {} has only one layout", format.as_str());
    Some(Message::new(unused).help("format: namespace"))
}

fn unused_error_data(policy: &DeadLetterPolicy) -> Option<Message> {
    let is_knative = policy.format == DeadLetterFormat::Fixed(Format::Knative);
    if policy.error_data == ErrorData::Text || is_knative {
        return None;
    }
    let format = policy.format.name_for(None);
    let unused = format!("no effect: the format {format} has no knativeerrordata");
    Some(Message::new(unused).help("format: knative"))
}
