//! Subscription files → [`Catalogue`]: text in, complete subscriptions out, and findings that say where.
//!
//! Separate because everything behind this border is certain: a [`Subscription`]
//! has all its defaults, every range is checked and every address parsed. A file is YAML or JSON with many documents;
//! each document belongs to a family of dialects by its `apiVersion`, and each family is one module with one `read`.
//!
//! Reading goes in steps: text → documents with places (`node`) → by family (`family`) → what references mean here
//! (`destinations`) → subscriptions (`native`, `eventgrid`, `knative`), held against their topics (`conversion`). All of
//! them report through one cursor (`reader`, `findings`).
//!
//! Promises: every problem of every document is found in one go, each with file, line and column; nothing that a file
//! says is passed over in silence, so a field this version does not know is an error, in a format that is not ours a
//! warning; no input panics.
//! A subscription with an error, or whose topic has one, is not in the catalogue.
//!
//! Does not read files, resolve host names or look whether a container exists.

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
mod statuses;

use std::collections::{BTreeMap, BTreeSet};

use crate::subscription::{Catalogue, Subscription, SubscriptionName, Topic, TopicName};

pub use findings::{Finding, Severity};
pub use origins::{FIELDS, Origins};

use destinations::Destinations;
use findings::{Findings, Message};
use reader::Cursor;

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
    named_topics: BTreeMap<TopicName, Cursor<'a>>,
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
}

impl<'a> Draft<'a> {
    /// Takes the name of a topic; `at` is where it is written. False, and reported, when it is taken already.
    fn name_topic(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
        take(&mut self.named_topics, name, at, "topic")
    }

    /// Takes the name of a subscription; `at` is where it is written. False, and reported, when it is taken already.
    fn name_subscription(&mut self, name: &SubscriptionName, at: &Cursor<'a>) -> bool {
        take(&mut self.named_subscriptions, name, at, "subscription")
    }

    /// Adds a subscription.
    fn add_subscription(&mut self, mut described: Described<'a>) {
        origins::note_overridden_statuses(&mut described.origins, &described.subscription);
        self.subscriptions.push(described);
    }

    /// All of it; a subscription that asks for what its topic's events cannot become is reported and left out.
    fn into_catalogue(self) -> (Catalogue, BTreeMap<SubscriptionName, Origins>) {
        let mut catalogue = Catalogue::default();
        let mut origins = BTreeMap::new();
        // A topic's schema is that of many subscriptions: what is wrong with it is said once.
        let mut reported = BTreeSet::new();
        self.topics.into_iter().for_each(|topic| catalogue.add_topic(topic));
        for Described { subscription, origins: of_subscription, schema_at } in self.subscriptions {
            let name = &subscription.name;
            let topic = catalogue.topic(&name.topic);
            if let Some(problem) = topic.and_then(|topic| conversion::impossible(&subscription, topic)) {
                let at = schema_at.as_ref().or_else(|| self.named_subscriptions.get(name));
                if let Some(at) = at.filter(|at| reported.insert(at.location())) {
                    at.error(problem);
                }
                continue;
            }
            origins.insert(name.clone(), of_subscription);
            catalogue.add_subscription(subscription);
        }
        (catalogue, origins)
    }
}

fn take<'a, N: Ord + Clone + std::fmt::Display>(
    taken: &mut BTreeMap<N, Cursor<'a>>,
    name: &N,
    at: &Cursor<'a>,
    what: &str,
) -> bool {
    if let Some(first) = taken.get(name) {
        let message = format!("the {what} {name} stands twice; the first is at {}", first.location());
        at.error(Message::new(message).help("remove one of them, or give it another name"));
        return false;
    }
    taken.insert(name.clone(), at.clone());
    true
}

#[cfg(test)]
mod tests;
