//! Subscription files → [`Catalogue`]: text in, complete subscriptions out, and findings that say
//! where.
//!
//! Separate because everything behind this border is certain: a [`Subscription`] has all its
//! defaults, every range is checked and every address parsed. A file is YAML or JSON with many
//! documents; each document belongs to a family of dialects by its `apiVersion`, and each family is
//! one module with one `read`.
//!
//! Reading goes in steps: text → documents with places (`node`) → by family (`family`) → what
//! references mean here (`destinations`) → subscriptions (`native`, `eventgrid`, `knative`), held
//! against their topics (`conversion`) and the topics that their dead letters go to (`sinks`). All
//! of them report through one cursor (`reader`, `findings`).
//!
//! Promises: every problem of every document is found in one go, each with file, line and column;
//! nothing that a file says is passed over in silence, so a field this version does not know is an
//! error, in a format that is not ours a warning; no input panics. A subscription with an error, or
//! whose topic has one, is not in the catalogue.
//!
//! Does not read files, resolve host names or look whether a container exists.

mod batches;
mod conversion;
mod destinations;
mod eventgrid;
mod family;
mod findings;
mod headers;
mod hint;
mod knative;
mod names;
mod native;
mod node;
mod origins;
mod reader;
mod sinks;
mod statuses;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use destinations::Destinations;
pub use findings::{Finding, Severity};
use findings::{Findings, Message};
pub use origins::{FIELDS, Origins};
use reader::Cursor;
use sinks::{DeadLettersAt, Routes, Unfollowed};

use crate::event::envelope::Publisher;
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::name::{SubscriptionName, TopicName};

/// One file: its name, for findings, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What findings call it; usually the path.
    pub name: &'a str,
    /// YAML or JSON.
    pub text: &'a str,
}

/// What a set of files says, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Every topic and subscription without an error.
    pub catalogue: Catalogue,
    /// All findings, in the order of the files and their lines.
    pub findings: Vec<Finding>,
    /// Where the documents state what they state, for every subscription of the catalogue.
    pub origins: BTreeMap<SubscriptionName, Origins>,
}

impl Reading {
    /// The catalogue of files without errors; warnings are no hindrance.
    ///
    /// # Errors
    /// All findings, when one of them is an error.
    pub fn into_result(self) -> Result<Catalogue, Vec<Finding>> {
        let failed = self.findings.iter().any(|finding| finding.severity == Severity::Error);
        if failed { Err(self.findings) } else { Ok(self.catalogue) }
    }
}

/// Reads one set of files; a document may refer to documents before or after it, in any of them.
#[must_use]
pub fn read(files: &[Source<'_>]) -> Reading {
    let findings = Findings::new(files.iter().map(|file| file.name));
    let mut documents = Vec::new();
    for (file, source) in files.iter().enumerate() {
        documents.extend(node::documents(file, source.text, &findings));
    }
    let families = family::sort(documents.iter().map(|document| Cursor::root(document, &findings)));
    let destinations = Destinations::read(&families.destinations);
    let mut draft = Draft::default();
    native::read(&families.topics, &families.subscriptions, &destinations, &mut draft);
    eventgrid::read(&families.event_grid, &destinations, &mut draft);
    knative::read(&families.knative, &destinations, &mut draft);
    let (catalogue, origins) = draft.into_catalogue();
    Reading { catalogue, findings: findings.into_sorted(), origins }
}

/// The catalogue while it is written: names are taken once, whatever the family of the document.
#[derive(Default)]
struct Draft<'a> {
    /// Topics of native documents.
    described_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics that objects of other families are: a native document may describe one as well.
    object_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Where native documents say something about the delivery of a topic.
    deliveries: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics with an error in the document that describes them.
    broken_topics: BTreeSet<TopicName>,
    publishers: HashMap<Publisher, (TopicName, Cursor<'a>)>,
    named_subscriptions: BTreeMap<SubscriptionName, Cursor<'a>>,
    topics: Vec<Topic>,
    subscriptions: Vec<Described<'a>>,
}

/// A subscription as its documents describe it.
struct Described<'a> {
    subscription: Subscription,
    /// Where they state what they state.
    origins: Origins,
    /// Where they say in which schema events are delivered.
    schema_at: Option<Cursor<'a>>,
    /// Where they ask for batches.
    batch_at: Option<Cursor<'a>>,
    /// Where they say what not every dead letter follows.
    letters_at: DeadLettersAt<'a>,
}

impl<'a> Draft<'a> {
    /// Takes the name of a topic that a native document describes; `at` is where it is written.
    /// False, and reported, when it is taken already.
    fn name_topic(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        take(&mut self.described_topics, name, at, "topic")
    }

    /// Takes the name of a topic that an object of another family is. A native document of that
    /// name may say how its records are read, but not how they are delivered: the object says that.
    fn name_object(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        if let Some(delivery) = self.deliveries.remove(name) {
            let message = format!(
                "how events of {name} are delivered is said by the object at {}",
                at.location()
            );
            delivery.error(Message::new(message).help("leave delivery out here, and say it there"));
        }
        take(&mut self.object_topics, name, at, "topic")
    }

    /// Adds the topic that an object of another family is, unless a native document describes it.
    fn add_object_topic(&mut self, name: &TopicName) {
        if !self.described_topics.contains_key(name) {
            self.topics.push(Topic::new(name.clone()));
        }
    }

    /// Notes that a native document says something about the delivery of a topic.
    fn note_delivery(&mut self, name: &TopicName, at: Option<&Cursor<'a>>) {
        self.deliveries.extend(at.map(|at| (name.clone(), at.clone())));
    }

    /// Leaves out all subscriptions of a topic: it is not known how its events are read.
    fn break_topic(&mut self, name: &TopicName) {
        self.broken_topics.insert(name.clone());
    }

    /// Takes a publisher for a topic; `at` is where it is written. Reported when it is taken
    /// already.
    fn name_publisher(&mut self, publisher: &Publisher, topic: &TopicName, at: &Cursor<'a>) {
        if let Some((first, first_at)) = self.publishers.get(publisher) {
            let place = first_at.location();
            let message = format!(
                "the publisher {publisher} stands twice; the first is at {place}, for the topic {first}"
            );
            at.error(
                Message::new(message)
                    .help("a publisher has one topic; several subscriptions may take its events"),
            );
            return;
        }
        self.publishers.insert(publisher.clone(), (topic.clone(), at.clone()));
    }

    /// Takes the name of a subscription; `at` is where it is written. False, and reported, when it
    /// is taken already.
    fn name_subscription(&mut self, name: &SubscriptionName, at: &Cursor<'a>) -> bool {
        take(&mut self.named_subscriptions, name, at, "subscription")
    }

    /// Adds a subscription.
    fn add_subscription(&mut self, mut described: Described<'a>) {
        origins::note_overridden_statuses(&mut described.origins, &described.subscription);
        self.subscriptions.push(described);
    }

    /// All of it; a subscription that asks for what its topic's events cannot become is reported
    /// and left out.
    fn into_catalogue(self) -> (Catalogue, BTreeMap<SubscriptionName, Origins>) {
        let mut catalogue = Catalogue::default();
        let mut origins = BTreeMap::new();
        // What a topic says is said by many subscriptions: what is wrong with it is told once.
        let mut told = BTreeSet::new();
        let routes = self.routes();
        let mut unfollowed = Unfollowed::default();
        self.topics.into_iter().for_each(|topic| catalogue.add_topic(topic));
        for described in self.subscriptions {
            let name = &described.subscription.name;
            let named_at = self.named_subscriptions.get(name);
            let fits_topic =
                hold_against_topic(&described, catalogue.topic(&name.topic), named_at, &mut told);
            let has_sink = hold_against_routes(&described, &routes, &mut told);
            unfollowed.look(described.letters_at, &described.subscription.dead_letter);
            if fits_topic && has_sink && !self.broken_topics.contains(&name.topic) {
                origins.insert(name.clone(), described.origins);
                catalogue.add_subscription(described.subscription);
            }
        }
        unfollowed.report();
        (catalogue, origins)
    }

    /// Where dead letters go from topic to topic.
    fn routes(&self) -> Routes {
        let topics = self.described_topics.keys().chain(self.object_topics.keys());
        let subscriptions = self.subscriptions.iter().map(|described| &described.subscription);
        Routes::new(topics, &self.topics, self.named_subscriptions.keys(), subscriptions)
    }
}

/// Whether the topic that a subscription's dead letters go to is there; what is odd about it is
/// told too, each place once.
fn hold_against_routes(
    described: &Described<'_>,
    routes: &Routes,
    told: &mut BTreeSet<String>,
) -> bool {
    let Described { subscription, letters_at, .. } = described;
    let Some(at) = &letters_at.sink else { return true };
    if let Some(topic) = routes.unknown(subscription) {
        if told.insert(at.location()) {
            at.error(routes.suggestion(topic));
        }
        return false;
    }
    if let Some(oddity) = routes.astray(subscription).filter(|_| told.insert(at.location())) {
        at.warn(oddity);
    }
    true
}

/// Whether a topic's events can become what a subscription asks for. Reported where it is asked
/// for, else where the subscription is named, and at no place twice.
fn hold_against_topic<'a>(
    described: &Described<'a>,
    topic: Option<&Topic>,
    named_at: Option<&Cursor<'a>>,
    told: &mut BTreeSet<String>,
) -> bool {
    let Described { subscription, schema_at, batch_at, .. } = described;
    let mut tell = |at: &Option<Cursor<'a>>, message, report: fn(&Cursor<'a>, Message)| {
        if let Some(at) = at.as_ref().or(named_at).filter(|at| told.insert(at.location())) {
            report(at, message);
        }
    };
    if let Some(problem) = topic.and_then(|topic| conversion::impossible(subscription, topic)) {
        tell(schema_at, problem, Cursor::error);
        return false;
    }
    if let Some(problem) = conversion::never_batched(subscription) {
        tell(batch_at, problem, Cursor::error);
        return false;
    }
    if let Some(oddity) = topic.and_then(|topic| conversion::travels_alone(subscription, topic)) {
        tell(batch_at, oddity, Cursor::warn);
    }
    true
}

fn take<'a, N: Ord + Clone + std::fmt::Display>(
    taken: &mut BTreeMap<N, Cursor<'a>>,
    name: &N,
    at: &Cursor<'a>,
    what: &str,
) -> bool {
    if let Some(first) = taken.get(name) {
        let message =
            format!("the {what} {name} stands twice; the first is at {}", first.location());
        at.error(Message::new(message).help("remove one of them, or give it another name"));
        return false;
    }
    taken.insert(name.clone(), at.clone());
    true
}

#[cfg(test)]
mod tests;
