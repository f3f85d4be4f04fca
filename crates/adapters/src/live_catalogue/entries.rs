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
use delivery::event::mapping::Mapping;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::{Catalogue, Settings, Topic, TopicSubscriptions};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::secret_policy::{NamePattern, SecretPolicy, SecretRule};
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

pub(super) fn value(owner: &str, text: &str) -> String {
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
    for (key, setting) in settings_texts(owner, catalogue.settings()) {
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
    if entries.is_empty() {
        return Ok(None);
    }
    let (topic, subscriptions) = own_of(name, entries)?;
    let subscriptions = subscriptions_of(name, &topic.settings.mapping, subscriptions)?;
    Ok(Some(TopicSubscriptions::new(topic).replaced([], subscriptions)))
}

/// What its own entry says of a topic, or what holds without one, and the other entries.
///
/// # Errors
/// Which entry cannot be read, and why.
pub fn own_of<'a>(name: &TopicName, entries: &'a [Entry]) -> Result<(Topic, &'a [Entry]), String> {
    match entries.split_first() {
        Some((own, others)) if *own.key == topic_key(&name.topic) => {
            Ok((read(own, |text| read_topic(name.clone(), text))?, others))
        }
        // Of a topic that nobody described.
        Some(_) | None => Ok((Topic::new(name.clone()), entries)),
    }
}

/// The subscriptions of a topic with this mapping that these entries are.
///
/// # Errors
/// Which entry cannot be read, and why.
pub fn subscriptions_of(
    topic: &TopicName,
    mapping: &Arc<Mapping>,
    entries: &[Entry],
) -> Result<Vec<Subscription>, String> {
    let subscription = |entry: &Entry| {
        let name = entry.key.rsplit_once('/').map_or(&*entry.key, |(_, name)| name).to_owned();
        let name = SubscriptionName { topic: topic.clone(), name };
        read(entry, |text| read_subscription(name, mapping, text))
    };
    entries.iter().map(subscription).collect()
}

pub(super) fn read<T, E: Display>(
    entry: &Entry,
    of: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, String> {
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
    /// The hosts that may have the secrets of this name or beginning.
    Secret { name: String, hosts: Vec<String> },
    /// A policy of secrets that lists none.
    NoSecret {},
}

/// A name within a key for any text, which may be too long for a key, or have a slash.
pub(super) fn hashed(text: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}

/// The key and the text of each of these settings.
fn settings_texts(owner: &str, settings: &Settings) -> impl Iterator<Item = (String, String)> {
    let of_publisher = |(publisher, topic): (&Publisher, &TopicName)| {
        let key = hashed(&publisher.to_string());
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
    let others = notices.chain(secrets_settings(owner, &settings.secrets));
    settings.publishers.iter().map(of_publisher).chain(others).map(|(key, setting)| {
        let text = serde_json::to_string(&setting).expect("a setting is JSON");
        (format!("{SETTINGS}/{key}"), text)
    })
}

/// The policy's rules, each of its owner: what several owners say of one name adds up, as in files.
fn secrets_settings(owner: &str, policy: &SecretPolicy) -> Vec<(String, Setting)> {
    let key = |name: &str| hashed(&format!("{owner}\n{name}"));
    let of_rule = |rule: &SecretRule| {
        let name = rule.name.to_string();
        let hosts = rule.hosts.iter().map(ToString::to_string).collect();
        (key(&name), Setting::Secret { name, hosts })
    };
    match policy.rules() {
        None => Vec::new(),
        Some([]) => vec![(key(""), Setting::NoSecret {})],
        Some(rules) => rules.iter().map(of_rule).collect(),
    }
}

/// The settings among these entries of the deployment.
///
/// # Errors
/// Which entry cannot be read, and why.
pub fn settings_of(entries: &[Entry]) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for entry in entries.iter().filter(|entry| is_of_topic(entry, SETTINGS)) {
        let problem = |why: String| format!("the entry {} cannot be read: {why}", entry.key);
        let setting = read(entry, |text| serde_json::from_str::<Setting>(text))?;
        let (publisher, topic) = match setting {
            Setting::Catalogue {} => continue,
            Setting::Notices { topic } => {
                settings.notices = Some(topic.parse().map_err(problem)?);
                continue;
            }
            Setting::Secret { name, hosts } => {
                settings.secrets.add(secret_rule(&name, &hosts).map_err(problem)?);
                continue;
            }
            Setting::NoSecret {} => {
                settings.secrets.begin();
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

fn secret_rule(name: &str, hosts: &[String]) -> Result<SecretRule, String> {
    let name: NamePattern = name.parse()?;
    let hosts = hosts.iter().map(|host| host.parse()).collect::<Result<_, String>>()?;
    Ok(SecretRule { name, hosts })
}

/// Whether an entry belongs to this topic.
#[must_use]
pub fn is_of_topic(entry: &Entry, topic: &str) -> bool {
    entry.key.split_once('/').is_some_and(|(of, _)| of == topic)
}

#[cfg(test)]
mod tests {
    use dialects::Source;

    use super::*;

    fn deployed(owner: &str, catalogue: &Catalogue) -> Vec<Entry> {
        let entries = entries_of(owner, catalogue).remove(DEPLOYMENT).unwrap_or_default();
        let entry = |(key, value): (String, String)| Entry { key: key.into(), value: value.into() };
        entries.into_iter().map(entry).collect()
    }

    fn catalogue(rules: &[(&str, &[&str])]) -> Catalogue {
        let mut policy = SecretPolicy::default();
        policy.begin();
        for (name, hosts) in rules {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            policy.add(secret_rule(name, &hosts).expect("a rule"));
        }
        let mut catalogue = Catalogue::default();
        catalogue.restrict_secrets(policy);
        catalogue
    }

    fn sorted(policy: &SecretPolicy) -> Option<Vec<SecretRule>> {
        let mut rules = policy.rules()?.to_vec();
        rules.sort_by(|a, b| a.name.cmp(&b.name));
        Some(rules)
    }

    #[test]
    fn the_topics_of_a_namespace_are_read_one_by_one_and_a_broken_one_is_named() {
        let subscription = |topic: &str, name: &str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                 metadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
                 spec: {{destination: {{url: 'https://{name}.example.com/'}}}}\n"
            )
        };
        let text =
            [("a", "x"), ("a", "y"), ("b", "x")].map(|(topic, name)| subscription(topic, name));
        let text = text.join("---\n");
        let read = dialects::read(&[Source { name: "test", text: &text }]).into_result().unwrap();
        let entries = entries_of("one", &read).remove("shop").unwrap_or_default().into_iter();
        let mut entries: Vec<Entry> =
            entries.map(|(key, value)| Entry { key: key.into(), value: value.into() }).collect();
        let sizes = |entries: &[Entry]| {
            let all = topics_of("shop", entries).into_iter();
            let size =
                |of: TopicSubscriptions| (of.topic().name.to_string(), of.subscriptions().count());
            all.map(|of| of.map(size)).collect::<Vec<_>>()
        };
        let [a, b] = [("shop/a".to_owned(), 2), ("shop/b".to_owned(), 1)].map(Ok);
        assert_eq!(sizes(&entries), [a.clone(), b]);
        entries[2].value = "broken".into();
        let [first, Err(problem)] = &sizes(&entries)[..] else { panic!("{entries:?}") };
        assert!(*first == a && problem.contains("b/x"), "{problem}");
    }

    #[test]
    fn a_topic_without_settings_of_its_own_can_have_an_entry_that_says_who_applied_it() {
        let topic = Topic::new("shop/orders".parse().unwrap());
        let (key, value) = plain_topic("one", &topic);
        let entry = Entry { key: key.into(), value: value.into() };
        assert_eq!(["one", "other"].map(|owner| is_owned_by(&entry, owner)), [true, false]);
        let read = topic_of(&topic.name, &[entry]).unwrap().expect("a topic");
        assert_eq!((read.topic(), read.subscriptions().count()), (&topic, 0));
    }

    #[test]
    fn a_policy_is_read_back_and_what_two_owners_apply_adds_up() {
        let [one, other] = [
            catalogue(&[("env:A", &["a.test", "*.b.test"]), ("ssm:/billing/*", &[])]),
            catalogue(&[("env:A", &["c.test"])]),
        ];
        let mut entries = deployed("one", &one);
        assert_eq!(entries.len(), 2);
        let [read, expected] = [settings_of(&entries), Ok(one.settings().clone())]
            .map(|of| of.map(|settings| sorted(&settings.secrets)));
        assert_eq!(read, expected);
        entries.extend(deployed("other", &other));
        let both = one.settings().secrets.clone().with(&other.settings().secrets);
        let read = settings_of(&entries).map(|settings| sorted(&settings.secrets));
        assert_eq!((entries.len(), read), (3, Ok(sorted(&both))));
        // One that lists nothing is a policy, too.
        let empty = deployed("one", &catalogue(&[]));
        assert_eq!(settings_of(&empty).map(|it| it.secrets.rules().map(<[_]>::len)), Ok(Some(0)));
        assert_eq!(settings_of(&[]).map(|it| it.secrets.rules().map(<[_]>::len)), Ok(None));
    }

    #[test]
    fn a_rule_that_cannot_be_read_makes_all_settings_unreadable() {
        for is in [
            r#"{"secret":{"name":"env:*A","hosts":[]}}"#,
            r#"{"secret":{"name":"env:A","hosts":["https://a.test/"]}}"#,
            r#"{"secret":{"name":"env:A","hosts":["a.test"],"ports":[443]}}"#,
            r#"{"secret":{"name":"env:A"}}"#,
        ] {
            let key = format!("{SETTINGS}/x").into();
            let entry = Entry { key, value: value("one", is).into() };
            let problem = settings_of(&[entry]).expect_err(is);
            assert!(problem.contains("the entry settings/x cannot be read"), "{problem}");
        }
    }
}
