//! Stored objects that apply to a whole deployment.
//!
//! `_settings.json` has the policies, and its existence marks the deployment as set up.
//! `_publishers.json` assigns publishers that name no topic to topics. It is a separate object, so
//! that write access to other objects does not allow anyone to reroute the events of these
//! publishers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::limits::OBJECT_MAX_BYTES;
use crate::document::findings::Findings;
use crate::document::node::Node;
use crate::document::reader::Cursor;
use crate::native::{self, Documents, TopicDocument};
use crate::subscription::catalogue::Settings;
use crate::subscription::name::TopicName;
use crate::subscription::secret_policy::SecretPolicy;

/// Format version of `_settings.json` and the other objects of a deployment.
pub(super) const VERSION: u64 = 1;

/// The stored object `_settings.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsObject {
    v: u64,
    /// The `spec` of each owner's SecretPolicy document. The rules of all owners apply together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_policies: BTreeMap<String, Json>,
    /// The topic of notices about destinations; `None` if there are no notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationsEntry>,
}

/// The topic of notices about destinations, and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotificationsEntry {
    /// The owner whose files contain the Notifications document.
    pub owner: String,
    /// The `spec` of the Notifications document that the owner applied.
    pub spec: Json,
}

/// The stored object `_publishers.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishersObject {
    v: u64,
    /// The publishers of each topic. Topics without publishers are omitted.
    #[serde(default)]
    pub topics: BTreeMap<TopicName, PublishersEntry>,
}

/// The publishers of a topic, and their owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishersEntry {
    /// The owner whose files contain the topic.
    pub owner: String,
    /// The publishers, as the field `from` of a Topic states them.
    pub from: Json,
}

/// An object that applies to the whole deployment. Every process reads it completely.
pub trait DeploymentObject: Sized + Default + Serialize + for<'de> Deserialize<'de> {
    /// Returns the format version that the object states.
    fn version(&self) -> u64;

    /// Parses the text of an object.
    ///
    /// # Errors
    /// The reason why the object is unusable.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > OBJECT_MAX_BYTES {
            return Err(format!(
                "the object has {} bytes; the limit is {OBJECT_MAX_BYTES} bytes",
                bytes.len()
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "the object is not UTF-8".to_owned())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Serde would accept a list of the same values as a struct.
        if !text.trim_start().starts_with('{') {
            return Err("expected a JSON object".to_owned());
        }
        let object: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match object.version() {
            VERSION => Ok(object),
            other => Err(format!(
                "the object has version {other}, but this program supports only version \
                 {VERSION}: use a newer program"
            )),
        }
    }

    /// Returns the object as JSON with one value per line, so that line-based tools can compare
    /// objects.
    fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("maps of texts are JSON");
        text.push('\n');
        text
    }
}

impl DeploymentObject for SettingsObject {
    fn version(&self) -> u64 {
        self.v
    }
}

impl DeploymentObject for PublishersObject {
    fn version(&self) -> u64 {
        self.v
    }
}

impl Default for SettingsObject {
    fn default() -> Self {
        Self { v: VERSION, secret_policies: BTreeMap::new(), notifications: None }
    }
}

impl Default for PublishersObject {
    fn default() -> Self {
        Self { v: VERSION, topics: BTreeMap::new() }
    }
}

/// Combines these objects into the settings of the deployment.
///
/// # Errors
///
/// Fails if a value is unusable. The error names the value and the reason.
pub fn settings(
    object: &SettingsObject,
    publishers: &PublishersObject,
) -> Result<Settings, String> {
    let document = |value: Json| Node::of_json(&value);
    let policies: Vec<Node> =
        object.secret_policies.values().map(|spec| document(json!({ "spec": spec }))).collect();
    let notifications: Vec<Node> =
        object.notifications.iter().map(|entry| document(json!({ "spec": entry.spec }))).collect();
    let topics: Vec<Node> = publishers
        .topics
        .iter()
        .map(|(TopicName { namespace, topic }, entry)| {
            let metadata = json!({ "namespace": namespace, "name": topic });
            document(json!({ "metadata": metadata, "spec": { "from": entry.from } }))
        })
        .collect();
    let findings = Findings::new(std::iter::once(""));
    let cursor = |node| Cursor::root(node, &findings).errors_only();
    let documents = Documents {
        topics: topics
            .iter()
            .map(|topic| TopicDocument { document: cursor(topic), is_usable: true })
            .collect(),
        object_topics: Vec::new(),
        subscriptions: &[],
        secret_policies: policies.iter().map(cursor).collect(),
        notifications: notifications.iter().map(cursor).collect(),
        are_all: false,
    };
    let built = native::read(&documents, &findings, &SecretPolicy::default());
    match findings.error_after(0) {
        Some(error) => Err(error.problem()),
        None => Ok(built.catalogue.settings().clone()),
    }
}
