//! Reads subscription files: text in, a [`Catalogue`] and findings with positions out.
//!
//! Separate because the rules of delivery apply to native documents and need no foreign formats. A
//! file is YAML or JSON with any number of documents. The outermost fields of a document decide its
//! family of formats. Each foreign family is one module, which translates its documents into native
//! ones.
//!
//! The input passes through these forms (modules in parentheses):
//! - text, unless it belongs to another tool (`foreign`)
//! - documents with positions (`text`)
//! - documents by family (`family`)
//! - targets of references (`destinations`, `access`)
//! - native documents (`references`; `knative`, `eventgrid`, `eventbridge` through `translation`)
//! - subscriptions (`delivery::native`)
//!
//! All modules report through one cursor type. One run finds every problem of every document, each
//! with file, line and column. No field is ignored silently: an unknown field is an error, or a
//! warning in foreign formats. No input causes a panic.
//!
//! The crate does not read files, resolve host names, query a cluster or evaluate templates.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

mod access;
mod blank;
mod deployment;
mod destination_entry;
mod destinations;
mod eventbridge;
mod eventgrid;
mod family;
mod foreign;
mod ignored;
mod knative;
mod references;
mod schema;
mod source;
mod supply;
mod text;
mod translation;

use std::collections::BTreeMap;

pub use delivery::document::findings::{Finding, MissingReference, Needed, ReferenceUse, Severity};
pub use delivery::native::{LeftOut, NamedSecret, Origins};

use delivery::document::findings::Findings;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::native::{Built, Documents, TopicDocument as Topic, Written};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};

pub use blank::blank;
pub use deployment::Deployment;
use destinations::Destinations;
pub use destinations::comparable;
pub use foreign::is_foreign;
use ignored::Ignored;
pub use knative::is_stock_knative;
pub use schema::definitions;
pub use source::Source;
use text::Parsed;
use translation::Translated;

/// The result of reading a set of files.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// All topics and subscriptions without an error.
    pub catalogue: Catalogue,
    /// All findings, in the order of the files and their lines.
    pub findings: Vec<Finding>,
    /// Subscriptions that the files describe but the catalogue does not contain, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Positions of all values that the files state, by subscription of the catalogue.
    pub origins: BTreeMap<SubscriptionName, Origins>,
    /// Positions of all names of secrets in the catalogue's subscriptions.
    pub secrets: Vec<NamedSecret>,
    /// Addresses in the `Destinations` documents, keyed by the reference that names them.
    pub destinations: BTreeMap<String, String>,
}

impl Reading {
    /// Returns the catalogue if the files have no errors. Warnings and notes are allowed.
    ///
    /// # Errors
    /// Returns all findings if one of them is an error.
    pub fn into_result(self) -> Result<Catalogue, Vec<Finding>> {
        let failed = self.findings.iter().any(|finding| finding.severity == Severity::Error);
        if failed { Err(self.findings) } else { Ok(self.catalogue) }
    }
}

/// One parsed file: see [`parse`].
pub struct ParsedFile {
    name: String,
    parsed: Parsed,
}

/// Name that findings show for the deployment's mappings, in place of a file name.
const DEPLOYED: &str = "Destinations of the deployment";

/// Parses one file. This takes most of the time, so a caller with many files may parse several in
/// parallel.
#[must_use]
pub fn parse(file: Source<'_>) -> ParsedFile {
    let Source { name, text } = file;
    let parsed = match foreign::recognised(name, text) {
        Some(message) => Parsed::unreadable(message),
        None => {
            let template = |text: &str| text::parse("", text);
            text::parse(name, text).with_inner(eventbridge::template_body, template)
        }
    };
    ParsedFile { name: name.to_owned(), parsed }
}

/// Reads one set of files. A document may refer to any other document of the set.
#[must_use]
pub fn read(files: &[Source<'_>]) -> Reading {
    read_parsed(&Deployment::default(), files.iter().copied().map(parse).collect())
}

/// Reads parsed files for a deployment. References in the files may use the deployment's mappings,
/// and its secret policy applies to the files.
#[must_use]
pub fn read_parsed(deployment: &Deployment, files: Vec<ParsedFile>) -> Reading {
    let names = files.iter().map(|file| file.name.as_str());
    let findings = Findings::new(names.chain([DEPLOYED]));
    let deployed_at = files.len();
    let files = files.into_iter().enumerate();
    let documents: Vec<Node> =
        files.flat_map(|(index, file)| file.parsed.into_documents(index, &findings)).collect();
    let deployed_entries = destinations::deployed_entries(&deployment.destinations);
    let deployed_entries =
        deployed_entries.as_deref().map(|text| self::text::parse(DEPLOYED, text));
    let deployed_entries =
        deployed_entries.and_then(|parsed| parsed.into_documents(deployed_at, &findings).pop());
    let deployed_entries =
        deployed_entries.as_ref().map(|document| Cursor::root(document, &findings));
    let mut ignored = Ignored::default();
    let roots = documents.iter().map(|document| Cursor::root(document, &findings));
    let families = family::sort(roots, &mut ignored);
    // Read the destinations before the families, because references may point to any file.
    let destinations = Destinations::read(
        &families.destinations,
        &deployment.destinations,
        deployed_entries.as_ref(),
    );
    let resolved = |topic: &Cursor<'_>| references::resolved(topic, &destinations);
    let topics: Vec<(Node, Option<()>)> = families.topics.iter().map(resolved).collect();
    let mut subscriptions: Vec<Written> = families
        .subscriptions
        .iter()
        .map(|subscription| written(subscription, &destinations))
        .collect();
    let described = families.topics.iter().filter_map(topic_name).collect();
    let mut translated = Translated::default();
    eventgrid::translate(&families.event_grid, &destinations, &described, &mut translated);
    knative::translate(&families.knative, &destinations, &mut translated, &mut ignored);
    let of_buses = eventbridge::translate(&families.event_bridge, &mut translated);
    ignored.report();
    subscriptions.extend(translated.subscriptions.into_iter().map(Into::into));
    let topics = topics.into_iter().chain(of_buses.into_iter().map(|topic| (topic, Some(()))));
    let topics: Vec<(Node, Option<()>)> = topics.collect();
    let documents = Documents {
        topics: topics.iter().map(|entry| topic(entry, &findings)).collect(),
        object_topics: translated.topics,
        subscriptions: &subscriptions,
        secret_policies: families.secret_policies,
        notifications: families.notifications,
        are_all: true,
    };
    let built = delivery::native::read(&documents, &findings, &deployment.secrets);
    let Built { catalogue, origins, mut left_out, secrets } = built;
    left_out.extend(translated.left_out);
    let destinations = destinations.texts();
    let findings = findings.into_sorted();
    Reading { catalogue, findings, left_out, origins, secrets, destinations }
}

/// Returns a native Topic with addresses in place of its references.
fn topic<'a>((document, is_usable): &'a (Node, Option<()>), findings: &'a Findings) -> Topic<'a> {
    let document = Cursor::root(document, findings).translated();
    Topic { document, is_usable: is_usable.is_some() }
}

/// Returns a native Subscription with addresses in place of its references.
fn written(document: &Cursor<'_>, destinations: &Destinations<'_>) -> Written {
    let mut copy = None;
    let completed = document.result_or_error(|| {
        let (resolved, completed) = references::resolved(document, destinations);
        copy = Some(resolved);
        completed
    });
    Written::new(copy.unwrap_or_else(|| document.node().clone()), completed.err())
}

fn topic_name(document: &Cursor<'_>) -> Option<TopicName> {
    let [namespace, topic] =
        ["namespace", "name"].map(|field| document.text_at(&format!("metadata.{field}")));
    (!namespace.is_empty() && !topic.is_empty())
        .then(|| TopicName { namespace: namespace.to_owned(), topic: topic.to_owned() })
}

#[cfg(test)]
mod tests;
