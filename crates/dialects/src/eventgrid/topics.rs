//! Assigns topics to the sources of event subscriptions, across all files.
//!
//! Separate because Azure ignores case in names, and because the name of a topic has two parts,
//! while an id has more. Sources with different ids may therefore share a topic. A warning reports
//! each such source.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::source::{Source, id_of_source};
use delivery::document::findings::Message;
use delivery::document::reader::Cursor;
use delivery::subscription::name::TopicName;

/// The topics assigned to sources so far, by their names in lower case.
#[derive(Default)]
pub(super) struct SourceTopics {
    known: RefCell<BTreeMap<String, Known>>,
}

/// A topic of a native document or of a source. The first spelling of its name counts.
struct Known {
    name: TopicName,
    sources: Vec<KnownSource>,
}

/// A source of a topic. The parts that are compared are in lower case.
struct KnownSource {
    kind: String,
    place: [Option<String>; 2],
    /// Position at which the source is named.
    location: String,
    /// The id of the source at that position.
    id: String,
}

/// Returns the type of a source with `topics` in place of `domaintopics`, so that both spellings of
/// one type are equal.
pub(super) fn one_kind(kind: &str) -> String {
    kind.replace("domaintopics", "topics")
}

impl SourceTopics {
    /// Creates the collection with the topics of native documents, whose spelling takes precedence.
    pub(super) fn new<'n>(described: impl Iterator<Item = &'n TopicName>) -> Self {
        let known = |name: &TopicName| {
            let known = Known { name: name.clone(), sources: Vec::new() };
            (name.to_string().to_lowercase(), known)
        };
        Self { known: RefCell::new(described.map(known).collect()) }
    }

    /// Returns the topic with this name, in the spelling that occurred first. Reports each further
    /// source of the topic once.
    pub(super) fn spelled(
        &self,
        name: TopicName,
        source: &Source<'_>,
        at: &Cursor<'_>,
    ) -> TopicName {
        let mut known = self.known.borrow_mut();
        let known = known
            .entry(name.to_string().to_lowercase())
            .or_insert_with(|| Known { name, sources: Vec::new() });
        let source = KnownSource::new(source, at);
        if known.sources.iter().any(|other| other.is(&source)) {
            return known.name.clone();
        }
        if let Some(first) = known.sources.first() {
            let message = format!(
                "{} and {} at {} share the topic {}: each subscription of the topic receives the \
                 events of both",
                source.id, first.id, first.location, known.name
            );
            let help = "add \"lastmile\": {\"topic\": \"namespace/topic\"} next to properties to \
                        assign another topic to one of them";
            at.warn(Message::new(message).help(help));
        }
        known.sources.push(source);
        known.name.clone()
    }
}

impl KnownSource {
    fn new(source: &Source<'_>, at: &Cursor<'_>) -> Self {
        let kind = one_kind(&source.kind);
        let of_names = || format!("{} {}", source.kind, source.topic);
        Self {
            kind,
            place: source.place.map(|part| part.map(str::to_lowercase)),
            location: at.location(),
            id: at.peek_text().map_or_else(of_names, id_of_source),
        }
    }

    /// True if both are the same source. Compares Azure subscriptions and resource groups only if
    /// both sources name them.
    fn is(&self, other: &Self) -> bool {
        let is_same = |(own, other): (&Option<String>, &Option<String>)| {
            own.is_none() || other.is_none() || own == other
        };
        self.kind == other.kind && self.place.iter().zip(&other.place).all(is_same)
    }
}
