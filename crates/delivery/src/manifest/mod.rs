//! Subscription files → [`Catalogue`]: text in, complete subscriptions and findings with positions
//! out.
//!
//! Separate because everything behind this border is valid: a [`Subscription`] has all its
//! defaults, every range is checked and every address parsed. A file is YAML or JSON with many
//! documents; each document belongs to a family of dialects by its `apiVersion`, and each family is
//! one module with one `read`.
//!
//! Steps: text, unless it is of another tool (`foreign`) → documents with positions (`node`) → by family (`family`) → what references resolve
//! to (`destinations`) → subscriptions (`native`, `eventgrid`, `knative`), checked against their
//! topics (`conversion`), the topics that their dead letters go to (`sinks`) and the hosts that may have
//! their secrets (`secret_policy`). All of them report through one cursor (`reader`, `findings`).
//!
//! Promises: one run finds every problem of every document, each with file, line and column; no
//! field is ignored silently, so an unknown field is an error, or a warning in the formats of
//! others; no input panics. A subscription with an error, or whose topic has one, is not in the
//! catalogue.
//!
//! Does not read files, resolve host names or check whether a container exists.

mod access;
mod blank;
mod canonical;
mod circles;
mod combined;
mod conversion;
mod deployment;
mod destinations;
mod eventgrid;
mod family;
mod foreign;
mod ignored;
mod knative;
mod left_out;
mod named_secrets;
mod native;
mod notifications;
mod origins;
mod schema;
mod secret_policy;
mod sinks;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) use crate::document::{findings, hint, node, reader};
pub(crate) use crate::subscription::kinds::{
    batches, conditions, headers, limits, names, statuses,
};

pub use blank::blank;
pub use canonical::documents;
pub use combined::{mismatches, problems};
pub use deployment::Deployment;
use destinations::Destinations;
pub use findings::{Finding, MissingReference, Needed, ReferenceUse, Severity};
use findings::{Findings, Message};
pub use foreign::is_foreign;
use ignored::Ignored;
pub use knative::is_stock_knative;
pub use left_out::LeftOut;
pub use named_secrets::NamedSecret;
use node::Document;
pub use origins::Origins;
use reader::Cursor;
pub use schema::definitions;
use sinks::{DeadLettersAt, Routes, UnusedSettings};

use crate::event::envelope::Publisher;
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Catalogue, REPLIES_MAX, Topic};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::secret_policy::SecretPolicy;

/// One file: its name, for findings, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What findings call it; usually the path.
    pub name: &'a str,
    /// YAML or JSON.
    pub text: &'a str,
}

/// The content of a set of files, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Every topic and subscription without an error.
    pub catalogue: Catalogue,
    /// All findings, in the order of the files and their lines.
    pub findings: Vec<Finding>,
    /// The subscriptions that the files describe and the catalogue does not have.
    pub left_out: Vec<LeftOut>,
    /// Where the documents state each value, for every subscription of the catalogue.
    pub origins: BTreeMap<SubscriptionName, Origins>,
    /// The positions at which the documents name secrets, for every subscription of the catalogue.
    pub secrets: Vec<NamedSecret>,
    /// The addresses of the `Destinations` documents, by reference.
    pub destinations: BTreeMap<String, String>,
}

impl Reading {
    /// The catalogue, if the files have no errors; warnings and notes are allowed.
    ///
    /// # Errors
    /// All findings, when one of them is an error.
    pub fn into_result(self) -> Result<Catalogue, Vec<Finding>> {
        let failed = self.findings.iter().any(|finding| finding.severity == Severity::Error);
        if failed { Err(self.findings) } else { Ok(self.catalogue) }
    }
}

/// One file as a tree of values: see [`parse`].
pub struct ParsedFile {
    name: String,
    parsed: node::Parsed,
}

/// What findings call the entries of a deployment.
const DEPLOYED: &str = "Destinations of the deployment";

/// Parses one file. That takes most of the time, so a caller with many files may parse some at once.
#[must_use]
pub fn parse(file: Source<'_>) -> ParsedFile {
    let Source { name, text } = file;
    let parsed = match foreign::recognised(name, text) {
        Some(message) => node::Parsed::unreadable(message),
        None => node::Parsed::new(name, text),
    };
    ParsedFile { name: name.to_owned(), parsed }
}

/// Reads one set of files; a document may refer to documents before or after it, in any of them.
#[must_use]
pub fn read(files: &[Source<'_>]) -> Reading {
    read_parsed(&Deployment::default(), files.iter().copied().map(parse).collect())
}

/// The same of files that are parsed, for a deployment: the files may use its mappings, and its policy of
/// secrets binds them too.
#[must_use]
pub fn read_parsed(deployment: &Deployment, files: Vec<ParsedFile>) -> Reading {
    let names = files.iter().map(|file| file.name.as_str());
    let findings = Findings::new(names.chain([DEPLOYED]));
    let deployed_at = files.len();
    let files = files.into_iter().enumerate();
    let documents: Vec<Document> =
        files.flat_map(|(file, of)| of.parsed.into_documents(file, &findings)).collect();
    let deployed_entries = destinations::deployed_entries(&deployment.destinations);
    let deployed_entries =
        deployed_entries.as_deref().map(|text| node::Parsed::new(DEPLOYED, text));
    let deployed_entries =
        deployed_entries.and_then(|of| of.into_documents(deployed_at, &findings).pop());
    let deployed_entries = deployed_entries.as_ref().map(|of| Cursor::root(of, &findings));
    let mut ignored = Ignored::default();
    let roots = documents.iter().map(|document| Cursor::root(document, &findings));
    let families = family::sort(roots, &mut ignored);
    // Before the families, since references may point to any file.
    let destinations = Destinations::read(
        &families.destinations,
        &deployment.destinations,
        deployed_entries.as_ref(),
    );
    let defaults = native::defaults();
    let topics = native::resolved(&families.topics, &destinations);
    let subscriptions = native::resolved(&families.subscriptions, &destinations);
    let topics: Vec<Cursor<'_>> =
        topics.iter().map(|(_, document)| Cursor::root(document, &findings)).collect();
    let subscriptions: Vec<_> = subscriptions
        .iter()
        .map(|(written, document)| (written.clone(), Cursor::root(document, &findings)))
        .collect();
    let mut draft = Draft::default();
    native::read(&topics, &subscriptions, &defaults, &destinations, &mut draft);
    eventgrid::read(&families.event_grid, &destinations, &mut draft);
    knative::read(&families.knative, &destinations, &mut draft, &mut ignored);
    ignored.report();
    let policy = secret_policy::read(&families.secret_policies);
    let built = draft.into_catalogue(&deployment.secrets.clone().with(&policy));
    let Built { mut catalogue, origins, left_out, secrets } = built;
    catalogue.restrict_secrets(policy);
    notifications::read(&families.notifications, &mut catalogue);
    let destinations = destinations.texts();
    let findings = findings.into_sorted();
    Reading { catalogue, findings, left_out, origins, secrets, destinations }
}

/// The result of a draft.
#[derive(Default)]
struct Built {
    catalogue: Catalogue,
    origins: BTreeMap<SubscriptionName, Origins>,
    left_out: Vec<LeftOut>,
    secrets: Vec<NamedSecret>,
}

/// The catalogue while it is built: names are unique, whatever the family of the document.
#[derive(Default)]
struct Draft<'a> {
    /// Topics of native documents.
    described_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics defined by objects of other families; a native document may describe one as well.
    object_topics: BTreeMap<TopicName, Cursor<'a>>,
    /// Where native documents have delivery defaults for a topic.
    deliveries: BTreeMap<TopicName, Cursor<'a>>,
    /// Topics with an error in the document that describes them.
    broken_topics: BTreeSet<TopicName>,
    publishers: HashMap<Publisher, (TopicName, Cursor<'a>)>,
    named_subscriptions: BTreeMap<SubscriptionName, Cursor<'a>>,
    topics: Vec<Topic>,
    subscriptions: Vec<Described<'a>>,
    left_out: Vec<LeftOut>,
}

/// A subscription as its documents describe it.
struct Described<'a> {
    subscription: Subscription,
    /// Where they state each value.
    origins: Origins,
    /// Where they state the schema.
    schema_at: Option<Cursor<'a>>,
    /// Where they enable batches.
    batch_at: Option<Cursor<'a>>,
    /// Where they state dead-letter options that not every sink and format uses.
    dead_letters_at: DeadLettersAt<'a>,
    /// Where they name secrets.
    secrets_at: Vec<Cursor<'a>>,
}

impl<'a> Draft<'a> {
    /// Registers the name of a topic that a native document describes; `at` is where it is written.
    /// A duplicate is reported and returns false.
    fn name_topic(&mut self, name: &TopicName, at: &Cursor<'a>) -> bool {
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

    /// Adds the topic that an object of another family defines, unless a native document describes
    /// it; with the number of replies that the object states, and where.
    fn add_object_topic(&mut self, name: &TopicName, max_replies: Option<(u32, &Cursor<'_>)>) {
        match (self.described_topics.get(name), max_replies) {
            (None, stated) => {
                let max_replies = stated.map_or(REPLIES_MAX, |(number, _)| number);
                self.topics.push(Topic { max_replies, ..Topic::new(name.clone()) });
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
    fn name_publisher(&mut self, publisher: &Publisher, topic: &TopicName, at: &Cursor<'a>) {
        if let Some((first, first_at)) = self.publishers.get(publisher) {
            let first_location = first_at.location();
            let message = format!(
                "the publisher {publisher} is defined twice; the first is at {first_location}, for the topic {first}"
            );
            at.error(
                Message::new(message).help(
                    "a publisher has one topic; several subscriptions may receive its events",
                ),
            );
            return;
        }
        self.publishers.insert(publisher.clone(), (topic.clone(), at.clone()));
    }

    /// Registers the name of a subscription; `at` is where it is written. A duplicate is reported
    /// and returns false.
    fn name_subscription(&mut self, name: &SubscriptionName, at: &Cursor<'a>) -> bool {
        take(&mut self.named_subscriptions, name, at, "subscription")
    }

    /// Adds a subscription.
    fn add_subscription(&mut self, mut described: Described<'a>) {
        origins::note_overridden_statuses(&mut described.origins, &described.subscription);
        debug_assert!(origins::are_known(&described.origins, &described.subscription));
        self.subscriptions.push(described);
    }

    /// The finished catalogue; a subscription with a schema that its topic's events cannot be
    /// converted into, or with a secret that its destination may not have, is reported and left out.
    fn into_catalogue(mut self, secret_policy: &SecretPolicy) -> Built {
        let mut built = Built { left_out: std::mem::take(&mut self.left_out), ..Built::default() };
        let catalogue = &mut built.catalogue;
        // Many subscriptions inherit a value of their topic: a problem with it is reported once.
        let mut reported_at = BTreeSet::new();
        let routes = self.routes();
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
            let has_route = has_dead_letter_route(&described, &routes, &mut reported_at);
            unused_settings.check(described.dead_letters_at, &described.subscription.dead_letter);
            let conditions = [
                (fits_topic, "the events of its topic do not fit its schema or its batches"),
                (may_have_secrets, "its destination may not have its secrets"),
                (has_route, "the topic of its dead letters does not exist"),
                (!self.broken_topics.contains(&name.topic), "its topic has an error"),
            ];
            if let Some((_, reason)) = conditions.into_iter().find(|(holds, _)| !holds) {
                let (name, reason) = (name.to_string(), reason.to_owned());
                let at = named_at.map(Cursor::location).unwrap_or_default();
                built.left_out.push(LeftOut { name, at, reason });
                continue;
            }
            let (of, origins) = (&described.subscription, &described.origins);
            let secrets = named_secrets::of(of, origins, &described.secrets_at, named_at);
            built.secrets.extend(secrets);
            built.origins.insert(name.clone(), described.origins);
            catalogue.add_subscription(described.subscription);
        }
        unused_settings.report();
        circles::report(catalogue, &self.named_subscriptions);
        built
    }

    /// Where dead letters go from topic to topic.
    fn routes(&self) -> Routes {
        let topics = self.described_topics.keys().chain(self.object_topics.keys());
        let subscriptions = self.subscriptions.iter().map(|described| &described.subscription);
        Routes::new(topics, &self.topics, self.named_subscriptions.keys(), subscriptions)
    }
}

/// Whether the topic that a subscription's dead letters go to exists; warns about routes that
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

/// Whether a topic's events can be delivered in the schema of a subscription. Reported where the
/// schema is stated, else at the subscription's name, once for each position.
fn fits_topic_input<'a>(
    described: &Described<'a>,
    topic: Option<&Topic>,
    named_at: Option<&Cursor<'a>>,
    reported_at: &mut BTreeSet<String>,
) -> bool {
    let Described { subscription, schema_at, batch_at, .. } = described;
    let mut report_once = |at: &Option<Cursor<'a>>, message, report: fn(&Cursor<'a>, Message)| {
        if let Some(at) = at.as_ref().or(named_at).filter(|at| reported_at.insert(at.location())) {
            report(at, message);
        }
    };
    if let Some(problem) = topic.and_then(|topic| conversion::impossible(subscription, topic)) {
        report_once(schema_at, problem, Cursor::error);
        return false;
    }
    if let Some(problem) = conversion::never_batched(subscription) {
        report_once(batch_at, problem, Cursor::error);
        return false;
    }
    if let Some(warning) = topic.and_then(|topic| conversion::travels_alone(subscription, topic)) {
        report_once(batch_at, warning, Cursor::warn);
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
            format!("the {what} {name} is defined twice; the first is at {}", first.location());
        at.error(Message::new(message).help("remove one of them, or give it another name"));
        return false;
    }
    taken.insert(name.clone(), at.clone());
    true
}

#[cfg(test)]
mod tests;
