//! Reads the subscriptions of a deployment, for commands that do not change them.
//!
//! Promises: reads only the wanted topics. An unreadable or invalid part becomes a finding, and the
//! rest is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adapters::live_topics::{Location, PUBLISHERS, SETTINGS};
use adapters::storage::Fetched;
use anyhow::{Context as _, bail};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::{Catalogue, Settings, TopicSubscriptions};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{self, Content, PublishersObject, SettingsObject, owner_of};
use dialects::{Finding, Reading, Severity};
use futures::{StreamExt as _, stream};

use super::Topics;
use crate::terminal::advice::chain;
use crate::terminal::progress;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The maximum number of topics that are read concurrently.
const TOPICS_AT_ONCE: usize = 16;

/// Selects which subscriptions of a deployment a command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    /// Only the subscriptions of these topics.
    Topics(BTreeSet<TopicName>),
}

impl Wanted {
    /// Selects the topics of these subscriptions.
    pub(crate) fn topics_of<'a>(names: impl IntoIterator<Item = &'a SubscriptionName>) -> Self {
        Self::Topics(names.into_iter().map(|name| name.topic.clone()).collect())
    }
}

/// The valid subscriptions of a deployment.
pub(crate) struct Deployed {
    /// The valid subscriptions, and a finding about each invalid one.
    pub(crate) reading: Reading,
    /// The address of the deployment, for messages.
    pub(crate) source: String,
    /// The owner of each subscription.
    pub(crate) owners: BTreeMap<SubscriptionName, Arc<str>>,
    /// The owner of each topic that has settings of its own.
    pub(crate) topic_owners: BTreeMap<TopicName, String>,
}

#[derive(Default)]
struct ReadTopic {
    topic: Option<TopicSubscriptions>,
    topic_owner: Option<String>,
    owners: Vec<(SubscriptionName, String)>,
    findings: Vec<Finding>,
}

impl Deployed {
    /// Returns the subscription with this name.
    ///
    /// # Errors
    /// A usage error that names the deployment, if it has no such subscription.
    pub(crate) fn subscription(
        &self,
        name: &SubscriptionName,
    ) -> anyhow::Result<&Arc<Subscription>> {
        let found = self.reading.catalogue.subscription(name);
        found.ok_or_else(|| {
            usage_error(format!("there is no subscription {name} in {}", self.source))
        })
    }
}

/// Reads the wanted subscriptions of a deployment.
///
/// # Errors
/// If the deployment is not set up, or storage does not respond.
pub(crate) async fn read(location: &Location, wanted: Wanted) -> anyhow::Result<Deployed> {
    let topics = Topics::at(location).await;
    let settings = topics.settings().await?;
    let names: Vec<TopicName> = match wanted {
        Wanted::All => topics.names().await?,
        Wanted::Topics(names) => names.into_iter().collect(),
    };
    let bar = progress::count("topics");
    let mut reads = Vec::with_capacity(names.len());
    for name in &names {
        reads.push(async {
            let read = topics.read(name, &settings.secrets).await;
            bar.inc(1);
            read
        });
    }
    let read: Vec<ReadTopic> = stream::iter(reads).buffered(TOPICS_AT_ONCE).collect().await;
    bar.finish_and_clear();
    let (mut catalogue, mut findings) = (Catalogue::default(), Vec::new());
    let (mut owners, mut topic_owners) = (BTreeMap::new(), BTreeMap::new());
    // Share the texts of owner names, because many subscriptions have the same owner.
    let mut known: BTreeSet<Arc<str>> = BTreeSet::new();
    for (read_topic, name) in read.into_iter().zip(names) {
        topic_owners.extend(read_topic.topic_owner.map(|owner| (name, owner)));
        read_topic.topic.into_iter().for_each(|topic| catalogue.add_whole_topic(topic));
        findings.extend(read_topic.findings);
        for (subscription, owner) in read_topic.owners {
            let owner = known.get(owner.as_str()).cloned().unwrap_or_else(|| Arc::from(owner));
            known.insert(Arc::clone(&owner));
            owners.insert(subscription, owner);
        }
    }
    catalogue.set_settings(settings);
    let (left_out, secrets, origins, destinations) = Default::default();
    let reading = Reading { catalogue, findings, left_out, origins, secrets, destinations };
    Ok(Deployed { reading, source: topics.objects.to_string(), owners, topic_owners })
}

impl Topics {
    /// Reads the settings of the deployment.
    ///
    /// # Errors
    /// If the settings do not exist yet, or are invalid.
    pub(crate) async fn settings(&self) -> anyhow::Result<Settings> {
        let (settings, _) = self.deployment::<SettingsObject>(SETTINGS).await?;
        let Some(settings) = settings else {
            bail!("{} does not exist yet; create it with lastmile apply", self.objects);
        };
        let (publishers, _) = self.deployment::<PublishersObject>(PUBLISHERS).await?;
        let settings = topic_object::settings(&settings, &publishers.unwrap_or_default());
        let problem = || format!("the settings of {} cannot be used", self.objects);
        settings.map_err(anyhow::Error::msg).with_context(problem)
    }

    /// Reads the settings that one owner has applied.
    ///
    /// # Errors
    /// If the settings cannot be read, or are invalid.
    pub(crate) async fn settings_of(&self, owner: &str) -> anyhow::Result<Settings> {
        let (settings, _) = self.deployment::<SettingsObject>(SETTINGS).await?;
        let mut settings = settings.unwrap_or_default();
        settings.secret_policies.retain(|name, _| name == owner);
        settings.notifications =
            settings.notifications.filter(|notifications| notifications.owner == owner);
        let settings = topic_object::settings(&settings, &PublishersObject::default());
        settings.map_err(anyhow::Error::msg)
    }

    /// Reads a topic. An unreadable or invalid part of the topic becomes a finding.
    async fn read(&self, name: &TopicName, secrets: &SecretPolicy) -> ReadTopic {
        let mut read = ReadTopic::default();
        if let Err(error) = self.try_read(name, secrets, &mut read).await {
            let message = format!("the topic cannot be read: {}", chain(&error));
            read.findings.push(unusable(name.to_string(), &message));
        }
        read
    }

    async fn try_read(
        &self,
        name: &TopicName,
        secrets: &SecretPolicy,
        read: &mut ReadTopic,
    ) -> anyhow::Result<()> {
        let fetched = self.objects.get(&self.objects.key_of(name), None).await?;
        let Fetched::Changed { bytes, .. } = fetched else { return Ok(()) };
        let Content::Topic(object) = Content::parse(&bytes)? else { return Ok(()) };
        let topic = topic_object::read(name, &object, secrets)?;
        let subscription_name = |name: &TopicName, subscription: &str| SubscriptionName {
            topic: name.clone(),
            name: subscription.to_owned(),
        };
        read.findings.extend(topic.unusable().iter().map(|(subscription, why)| {
            unusable(subscription_name(name, subscription).to_string(), why)
        }));
        let owners = object.subscriptions.iter();
        read.owners.extend(owners.filter_map(|(subscription, entry)| {
            Some((subscription_name(name, subscription), owner_of(entry)?))
        }));
        read.topic_owner = object.topic.as_deref().and_then(owner_of);
        read.topic = Some(topic);
        Ok(())
    }
}

/// Creates an error finding about a whole topic or subscription.
fn unusable(name: String, message: &str) -> Finding {
    let (field, help) = (String::new(), None);
    Finding {
        severity: Severity::Error,
        file: name,
        line: 1,
        column: 1,
        field,
        message: text::line(message),
        help,
        reference: None,
    }
}
