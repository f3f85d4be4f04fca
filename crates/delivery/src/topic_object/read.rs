//! Reads the stored object of a topic as a topic with its subscriptions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::limits::{CONDITIONS_MAX, memory_bytes};
use super::text::{ObjectError, TopicObject, check_length};
use crate::document::findings::Findings;
use crate::document::node::Node;
use crate::document::reader::Cursor;
use crate::native::{self, Built, Documents, Origins, TopicDocument, Written};
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Topic, TopicSubscriptions};
use crate::subscription::name::{TopicName, is_name};
use crate::subscription::secret_policy::SecretPolicy;

/// Maximum number of subscriptions that are parsed into trees at the same time. A tree needs many
/// times the memory of its text.
const AT_ONCE: usize = 64;
/// Size limit for the texts that are parsed into trees at the same time. Once their total size in
/// bytes reaches this limit, no further text is added.
const AT_ONCE_BYTES: usize = 64 * 1_024;

/// Reads the stored topic with this name. The secret policy in the settings applies to its
/// subscriptions.
///
/// # Errors
/// [`ObjectError`] if its filters are too large, or its settings are invalid. A topic with invalid
/// settings is unusable, because the input format of its events is unknown.
pub fn read(
    name: &TopicName,
    object: &TopicObject<'_>,
    secrets: &SecretPolicy,
) -> Result<TopicSubscriptions, ObjectError> {
    read_within(usize::MAX, name, object, secrets)
}

/// Reads the stored topic with this name, if its estimated memory is at most `most_bytes`.
///
/// # Errors
/// The errors of [`read`], and [`ObjectError::NoMemory`].
pub fn read_within(
    most_bytes: usize,
    name: &TopicName,
    object: &TopicObject<'_>,
    secrets: &SecretPolicy,
) -> Result<TopicSubscriptions, ObjectError> {
    let topic = topic_document(name, object.topic.as_deref()).map_err(ObjectError::Settings)?;
    let reader = Reader { name, topic, secrets };
    let mut topic = TopicSubscriptions::new(reader.topic()?);
    let mut unusable = BTreeMap::new();
    let mut entries = object.subscriptions.iter().peekable();
    let (mut bytes, mut subscriptions, mut conditions) = (0, 0, 0);
    while entries.peek().is_some() {
        let chunk = chunk(&mut entries);
        bytes += chunk.iter().map(|(_, entry)| entry.len()).sum::<usize>();
        for subscription in reader.read(chunk, &mut unusable) {
            subscriptions += 1;
            conditions += subscription.filter.size();
            topic.add(subscription);
        }
        if conditions > CONDITIONS_MAX {
            return Err(ObjectError::TooManyConditions);
        }
        if memory_bytes(bytes, subscriptions, conditions) > most_bytes {
            return Err(ObjectError::NoMemory);
        }
    }
    Ok(topic.with_unusable(unusable))
}

/// Returns the next entries that are parsed at the same time.
fn chunk<'e>(entries: &mut impl Iterator<Item = Entry<'e>>) -> Vec<Entry<'e>> {
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    while chunk.len() < AT_ONCE && bytes < AT_ONCE_BYTES {
        let Some((name, entry)) = entries.next() else { break };
        bytes += entry.len();
        chunk.push((name, entry));
    }
    chunk
}

/// The name and the stored text of a subscription.
type Entry<'e> = (&'e String, &'e Cow<'e, str>);

/// Reads the settings and the subscriptions of one topic.
struct Reader<'r> {
    name: &'r TopicName,
    topic: Node,
    secrets: &'r SecretPolicy,
}

impl Reader<'_> {
    /// Reads the settings of the topic.
    fn topic(&self) -> Result<Topic, ObjectError> {
        let findings = self.findings();
        let built = self.built(&[], &findings);
        let topic = built.catalogue.topic(self.name).filter(|_| findings.errors() == 0);
        let why = || findings.error_after(0).map(|finding| finding.problem()).unwrap_or_default();
        topic.cloned().ok_or_else(|| ObjectError::Settings(why()))
    }

    /// Reads these subscriptions. Adds the name of each unusable subscription to `unusable`, with
    /// the reason.
    fn read(
        &self,
        entries: Vec<Entry<'_>>,
        unusable: &mut BTreeMap<String, String>,
    ) -> Vec<Subscription> {
        let mut written = Vec::new();
        for (name, entry) in entries {
            match subscription_document(self.name, name, entry) {
                // The values count as checked, because `apply` has validated the entry and printed
                // its warnings.
                Ok(document) => written.push(Written::translated(document, Origins::new())),
                Err(why) => drop(unusable.insert(name.clone(), why)),
            }
        }
        let findings = self.findings();
        let Built { mut catalogue, left_out, .. } = self.built(&written, &findings);
        unusable.extend(left_out.into_iter().map(|entry| {
            let name =
                entry.name.rsplit_once('/').map_or(&*entry.name, |(_, name)| name).to_owned();
            (name, entry.reason)
        }));
        catalogue.take_subscriptions(self.name)
    }

    fn findings(&self) -> Findings {
        Findings::new(std::iter::once(self.name.to_string().as_str()))
    }

    fn built(&self, subscriptions: &[Written], findings: &Findings) -> Built {
        let document = Cursor::root(&self.topic, findings).errors_only();
        let documents = Documents {
            topics: vec![TopicDocument { document, is_usable: true }],
            object_topics: Vec::new(),
            subscriptions,
            secret_policies: Vec::new(),
            notifications: Vec::new(),
            are_all: false,
        };
        native::read(&documents, findings, self.secrets)
    }
}

/// Returns the stored settings of a topic as a native document.
fn topic_document(name: &TopicName, entry: Option<&str>) -> Result<Node, String> {
    let TopicName { namespace, topic } = name;
    document(entry.unwrap_or("{}"), json!({ "namespace": namespace, "name": topic }))
}

/// Returns a stored subscription as a native document.
fn subscription_document(topic: &TopicName, name: &str, entry: &str) -> Result<Node, String> {
    if !is_name(name) {
        return Err("its name is not a valid name of a subscription".to_owned());
    }
    let TopicName { namespace, topic } = topic;
    document(entry, json!({ "namespace": namespace, "topic": topic, "name": name }))
}

fn document(entry: &str, metadata: Json) -> Result<Node, String> {
    let mut fields = fields(entry)?;
    fields.remove(OWNER);
    if fields.contains_key(METADATA) {
        return Err(
            "unknown field \"metadata\": remove it; the key of the object determines the names"
                .to_owned(),
        );
    }
    fields.insert(METADATA.to_owned(), metadata);
    Ok(Node::of_json(&Json::Object(fields)))
}

/// Name of the field with the owner of an entry.
pub(super) const OWNER: &str = "owner";
/// Name of the field with the namespace and the name of a native document. Stored entries do not
/// have this field.
pub(super) const METADATA: &str = "metadata";

fn fields(entry: &str) -> Result<Map<String, Json>, String> {
    check_length(entry)?;
    let problem = |error: serde_json::Error| format!("not a JSON object: {error}");
    serde_json::from_str(entry).map_err(problem)
}

/// Returns the owner of an entry; `None` if the entry has no owner.
#[must_use]
pub fn owner_of(entry: &str) -> Option<String> {
    let owner = fields(entry).ok()?.remove(OWNER)?;
    owner.as_str().map(str::to_owned)
}
