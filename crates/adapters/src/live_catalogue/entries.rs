//! What the entries of a catalogue say: subscriptions and topics of a namespace, and the settings of the
//! deployment. Pure.
//!
//! A value is `{"owner":"…","is":{…}}`: who applied it, and the text of a subscription, topic or setting.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use catalogue::Entry;
use delivery::event::envelope::Publisher;
use delivery::subscription::catalogue::{Catalogue, Settings, Topic, TopicSubscriptions};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::wire::stored::{read_subscription, read_topic, write_subscription, write_topic};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

/// The namespace of what belongs to the deployment and to no namespace of its own: no document can have
/// this name.
pub const DEPLOYMENT: &str = "_deployment";
/// The topic of the settings within it.
pub const SETTINGS: &str = "settings";
/// The setting that says where notices are published.
const NOTICES: &str = "notices";

/// The key of a topic's own entry.
#[must_use]
pub fn topic_key(topic: &str) -> String {
    format!("{topic}/")
}

/// The key of a subscription's entry.
#[must_use]
pub fn subscription_key(name: &SubscriptionName) -> String {
    format!("{}/{}", name.topic.topic, name.name)
}

/// The value of an entry.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value<'a> {
    #[serde(borrow)]
    owner: Cow<'a, str>,
    #[serde(borrow)]
    is: &'a RawValue,
}

fn value(owner: &str, text: &str) -> String {
    let is: &RawValue = serde_json::from_str(text).expect("our own writer writes JSON");
    let value = Value { owner: owner.into(), is };
    serde_json::to_string(&value).expect("a text and JSON are JSON")
}

/// The entries of a namespace, by key.
pub type Entries = BTreeMap<String, String>;

/// The entries of each namespace that this owner applies with these subscriptions and settings.
#[must_use]
pub fn entries_of(owner: &str, catalogue: &Catalogue) -> BTreeMap<String, Entries> {
    let mut all: BTreeMap<String, Entries> = BTreeMap::new();
    let mut add = |namespace: &str, key: String, text: String| {
        all.entry(namespace.to_owned()).or_default().insert(key, value(owner, &text));
    };
    // One without settings of its own is there as long as it has subscriptions, whoever applied them.
    let has_own = |topic: &&Topic| {
        let is_plain = **topic == Topic::new(topic.name.clone());
        !is_plain || catalogue.topic_subscriptions(&topic.name).is_none_or(|of| of.is_empty())
    };
    for topic in catalogue.topics().filter(has_own) {
        add(&topic.name.namespace, topic_key(&topic.name.topic), write_topic(topic));
    }
    for subscription in catalogue.subscriptions() {
        let name = &subscription.name;
        add(&name.topic.namespace, subscription_key(name), write_subscription(subscription));
    }
    for (key, setting) in settings_texts(catalogue.settings()) {
        add(DEPLOYMENT, key, setting);
    }
    all
}

/// Who applied an entry; `None` if its value is not one.
#[must_use]
pub fn owner_of(value: &str) -> Option<String> {
    let value: Value<'_> = serde_json::from_str(value).ok()?;
    Some(value.owner.into_owned())
}

/// The entry of a topic that this owner applies with default settings, although it needs none.
#[must_use]
pub fn plain_topic(owner: &str, topic: &Topic) -> (String, String) {
    (topic_key(&topic.name.topic), value(owner, &write_topic(topic)))
}

/// Whether this owner applied an entry.
#[must_use]
pub fn is_owned_by(entry: &Entry, owner: &str) -> bool {
    owner_of(&entry.value).as_deref() == Some(owner)
}

/// The topics of a namespace with their subscriptions, from all of its entries in the order of their keys; of
/// one that cannot be read which entry it is, and why.
pub fn topics_of(namespace: &str, entries: &[Entry]) -> Vec<Result<TopicSubscriptions, String>> {
    let topic = |entry: &Entry| entry.key.split_once('/').map(|(topic, _)| topic.to_owned());
    let of_one = |entries: &[Entry]| {
        let topic = entries.first().and_then(topic).unwrap_or_default();
        let name = TopicName { namespace: namespace.to_owned(), topic };
        topic_of(&name, entries)
    };
    let topics = entries.chunk_by(|a, b| topic(a) == topic(b)).map(of_one);
    topics.filter_map(Result::transpose).collect()
}

/// The topic with its subscriptions that these entries are, in the order of their keys; `None` if there
/// are none.
///
/// # Errors
/// Which entry cannot be read, and why.
pub fn topic_of(name: &TopicName, entries: &[Entry]) -> Result<Option<TopicSubscriptions>, String> {
    let (own, subscriptions) = match entries.split_first() {
        None => return Ok(None),
        Some((first, rest)) if *first.key == topic_key(&name.topic) => (Some(first), rest),
        // Of a topic that nobody described.
        Some(_) => (None, entries),
    };
    let topic = match own {
        Some(entry) => read(entry, |text| read_topic(name.clone(), text))?,
        None => Topic::new(name.clone()),
    };
    let mapping = Arc::clone(&topic.mapping);
    let mut all = TopicSubscriptions::new(topic);
    for entry in subscriptions {
        let of_topic = entry.key.rsplit_once('/').map_or(&*entry.key, |(_, name)| name);
        let name = SubscriptionName { topic: name.clone(), name: of_topic.to_owned() };
        all.add(read(entry, |text| read_subscription(name, &mapping, text))?);
    }
    Ok(Some(all))
}

fn read<T, E: Display>(entry: &Entry, of: impl FnOnce(&str) -> Result<T, E>) -> Result<T, String> {
    let problem = |why: String| format!("the entry {} cannot be read: {why}", entry.key);
    let value: Value<'_> =
        serde_json::from_str(&entry.value).map_err(|error| problem(error.to_string()))?;
    of(value.is.get()).map_err(|error| problem(error.to_string()))
}

/// The entry that every catalogue has, and its value. It belongs to nobody: without it there is no catalogue
/// yet, or it is somewhere else.
#[must_use]
pub fn mark() -> (String, String) {
    (format!("{SETTINGS}/catalogue"), value("", r#"{"catalogue":{}}"#))
}

/// One setting of the deployment.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Setting {
    /// There is a catalogue.
    Catalogue {},
    /// Where notices are published.
    Notices { topic: String },
    /// The topic of an SNS topic, by its ARN.
    SnsTopic { arn: String, topic: String },
    /// The topic of a source of EventBridge.
    EventSource { name: String, topic: String },
    /// The topic of a bucket's notifications.
    Bucket { name: String, topic: String },
}

/// The key and the text of each of these settings.
fn settings_texts(settings: &Settings) -> impl Iterator<Item = (String, String)> {
    let of_publisher = |(publisher, topic): (&Publisher, &TopicName)| {
        // Its name may be too long for a key, or have a slash.
        let key = Uuid::new_v5(&Uuid::NAMESPACE_OID, publisher.to_string().as_bytes()).to_string();
        let topic = topic.to_string();
        let setting = match publisher.clone() {
            Publisher::SnsTopic(arn) => Setting::SnsTopic { arn, topic },
            Publisher::EventSource(name) => Setting::EventSource { name, topic },
            Publisher::Bucket(name) => Setting::Bucket { name, topic },
        };
        (key, setting)
    };
    let notices = settings.notices.iter();
    let notices = notices.map(|topic| Setting::Notices { topic: topic.to_string() });
    let notices = notices.map(|setting| (NOTICES.to_owned(), setting));
    settings.publishers.iter().map(of_publisher).chain(notices).map(|(key, setting)| {
        let text = serde_json::to_string(&setting).expect("a setting is JSON");
        (format!("{SETTINGS}/{key}"), text)
    })
}

/// The settings that these entries are.
///
/// # Errors
/// Which entry cannot be read, and why.
pub fn settings_of(entries: &[Entry]) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for entry in entries {
        let problem = |why: String| format!("the entry {} cannot be read: {why}", entry.key);
        let setting = read(entry, |text| serde_json::from_str::<Setting>(text))?;
        let (publisher, topic) = match setting {
            Setting::Catalogue {} => continue,
            Setting::Notices { topic } => {
                settings.notices = Some(topic.parse().map_err(problem)?);
                continue;
            }
            Setting::SnsTopic { arn, topic } => (Publisher::SnsTopic(arn), topic),
            Setting::EventSource { name, topic } => (Publisher::EventSource(name), topic),
            Setting::Bucket { name, topic } => (Publisher::Bucket(name), topic),
        };
        settings.publishers.insert(publisher, topic.parse().map_err(problem)?);
    }
    Ok(settings)
}
