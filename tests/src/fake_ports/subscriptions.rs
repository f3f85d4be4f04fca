//! Fake subscriptions. A topic is read when a record needs it.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::ports::SubscriptionSource;
use delivery::subscription::catalogue::{Catalogue, Found};
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;

use super::FakePorts;

/// The error if subscriptions cannot be read.
const BROKEN: &str = "the settings cannot be read: broken";

#[derive(Default)]
pub(super) struct Subscriptions {
    /// `None` if the subscriptions cannot be read.
    catalogue: Option<Arc<Catalogue>>,
    newer: Option<Arc<Catalogue>>,
    is_reload_failing: bool,
    unreadable_topic: Option<TopicName>,
    /// A topic, and the duration of a read of it.
    slow_topic: Option<(TopicName, u64)>,
    /// The policy that every read of the settings after the first finds.
    later_policy: Option<SecretPolicy>,
    was_read: bool,
    topics_read: Vec<BTreeSet<TopicName>>,
}

impl Subscriptions {
    pub(super) fn set(&mut self, catalogue: Catalogue) {
        self.catalogue = Some(Arc::new(catalogue));
    }
}

impl FakePorts {
    /// Provides newer subscriptions, as if somebody had applied them. A reread finds them.
    #[must_use]
    pub fn with_newer_catalogue(self, catalogue: Catalogue) -> Self {
        self.state().subscriptions.newer = Some(Arc::new(catalogue));
        self
    }

    /// Provides a newer policy of secrets, as if somebody had applied it during an invocation.
    #[must_use]
    pub fn with_later_policy(self, policy: SecretPolicy) -> Self {
        self.state().subscriptions.later_policy = Some(policy);
        self
    }

    /// Makes rereads fail: the last good subscriptions are loaded, but the newest cannot be read.
    #[must_use]
    pub fn with_failing_reload(self) -> Self {
        self.state().subscriptions.is_reload_failing = true;
        self
    }

    /// Makes reads of this topic fail.
    #[must_use]
    pub fn with_unreadable_topic(self, topic: &str) -> Self {
        self.state().subscriptions.unreadable_topic = Some(topic.parse().expect("a topic"));
        self
    }

    /// Makes reads of this topic take this long.
    #[must_use]
    pub fn with_slow_topic(self, topic: &str, takes_ms: u64) -> Self {
        self.state().subscriptions.slow_topic = Some((topic.parse().expect("a topic"), takes_ms));
        self
    }

    /// The topics of each read.
    #[must_use]
    pub fn topics_read(&self) -> Vec<Vec<String>> {
        let names = |topics: &BTreeSet<TopicName>| topics.iter().map(ToString::to_string).collect();
        self.state().subscriptions.topics_read.iter().map(names).collect()
    }
}

/// Adds these topics of `whole` to the known catalogue.
fn read_topics<'a>(
    mut known: Catalogue,
    whole: &Catalogue,
    topics: impl IntoIterator<Item = &'a TopicName>,
) -> Catalogue {
    for topic in topics {
        match (whole.topic_subscriptions(topic), whole.found(topic)) {
            (Some(subscriptions), _) => known.add_found(topic.clone(), Arc::clone(subscriptions)),
            (None, found) => {
                known.add_missing(topic.clone(), found.cloned().unwrap_or(Found::Removed));
            }
        }
    }
    known
}

impl SubscriptionSource for FakePorts {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let subscriptions = &mut self.state().subscriptions;
        let whole = subscriptions.catalogue.as_deref().ok_or(BROKEN)?;
        let mut current = Catalogue::by_need(whole.settings().clone());
        let is_later = std::mem::replace(&mut subscriptions.was_read, true);
        if let Some(policy) = subscriptions.later_policy.as_ref().filter(|_| is_later) {
            current.restrict_secrets(policy.clone());
        }
        Ok(Arc::new(current))
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Arc<Catalogue> {
        self.state().subscriptions.topics_read.push(topics.clone());
        let slow_topic = self.state().subscriptions.slow_topic.clone();
        if let Some((_, takes_ms)) = slow_topic.filter(|(topic, _)| topics.contains(topic)) {
            self.clock.sleep(takes_ms).await;
        }
        let subscriptions = &self.state().subscriptions;
        let whole = subscriptions.catalogue.as_deref().expect("the settings were read");
        let mut read = read_topics((*known).clone(), whole, topics);
        let unreadable = subscriptions.unreadable_topic.as_ref();
        if let Some(topic) = unreadable.filter(|topic| topics.contains(topic)) {
            read.add_missing(topic.clone(), Found::Unreadable(BROKEN.to_owned()));
        }
        Arc::new(read)
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let subscriptions = &self.state().subscriptions;
        let newest = subscriptions.newer.as_deref().or(subscriptions.catalogue.as_deref());
        let newest = newest.filter(|_| !subscriptions.is_reload_failing).ok_or(BROKEN)?;
        let known = known.with_settings(newest.settings().clone());
        Ok(Arc::new(read_topics(known, newest, topics)))
    }
}
