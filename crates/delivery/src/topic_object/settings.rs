//! The objects beside the topics: what holds for a whole deployment.
//!
//! `_settings.json` has the policies, and says by being there that the deployment is set up. `_publishers.json` says which
//! publisher belongs to which topic; only who may write it can route the events of a publisher that names no topic.

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

/// The version of these forms.
pub(super) const VERSION: u64 = 1;

/// `_settings.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsObject {
    v: u64,
    /// The `spec` of each owner's SecretPolicy: what several say adds up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_policies: BTreeMap<String, Json>,
    /// The topic of notices about destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationsEntry>,
}

/// The topic of notices, and the owner who applied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotificationsEntry {
    /// The owner who applied it.
    pub owner: String,
    /// The `spec` of Notifications.
    pub spec: Json,
}

/// `_publishers.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishersObject {
    v: u64,
    /// The publishers of each topic, as the `from` of a Topic lists them.
    #[serde(default)]
    pub topics: BTreeMap<TopicName, PublishersEntry>,
}

/// The publishers of a topic, and the owner who applied them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishersEntry {
    /// The owner who applied it.
    pub owner: String,
    /// The publishers.
    pub from: Json,
}

/// An object of a deployment that every process reads whole.
pub trait DeploymentObject: Sized + Default + Serialize + for<'de> Deserialize<'de> {
    /// The version that it states.
    fn version(&self) -> u64;

    /// Reads the text of an object.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > OBJECT_MAX_BYTES {
            return Err(format!(
                "it has {} bytes; at most {OBJECT_MAX_BYTES} are read",
                bytes.len()
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Serde would take a list of the same values for it.
        if !text.trim_start().starts_with('{') {
            return Err("a JSON object is expected".to_owned());
        }
        let object: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match object.version() {
            VERSION => Ok(object),
            other => {
                Err(format!("it has version {other}, and this lastmile knows version {VERSION}"))
            }
        }
    }

    /// The text of the object, by line so that two can be compared.
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

/// The settings that these objects state.
///
/// # Errors
/// Which value cannot be used, and why.
pub fn settings(of: &SettingsObject, publishers: &PublishersObject) -> Result<Settings, String> {
    let document = |of: Json| Node::of_json(&of);
    let policies: Vec<Node> =
        of.secret_policies.values().map(|spec| document(json!({ "spec": spec }))).collect();
    let notifications: Vec<Node> =
        of.notifications.iter().map(|of| document(json!({ "spec": of.spec }))).collect();
    let topics: Vec<Node> = publishers
        .topics
        .iter()
        .map(|(TopicName { namespace, topic }, of)| {
            let metadata = json!({ "namespace": namespace, "name": topic });
            document(json!({ "metadata": metadata, "spec": { "from": of.from } }))
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
