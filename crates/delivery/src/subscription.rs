//! Which events go where, and how hard to try: what every dialect is read into.
//!
//! A [`Subscription`] is complete: every default has been filled in, every range checked, every address parsed. The
//! engine asks it questions and never looks at the file it came from. A [`Catalogue`] is all that one set of files says.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use url::Url;

use crate::deadletter::{Container, Format, Layout};
use crate::event::{Event, Input};
use crate::filter::Filter;
use crate::profile::{Dialect, RetryPolicy};

/// Where events are published: `namespace/topic`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicName {
    /// The namespace.
    pub namespace: String,
    /// The topic within it.
    pub topic: String,
}

/// A subscription's full name: `namespace/topic/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionName {
    /// The topic it subscribes to.
    pub topic: TopicName,
    /// Its name within the topic.
    pub name: String,
}

/// The longest name, percent-encoded as in the keys of dead letters: three of them, an hour and a GUID stay below
/// S3's 1,024 bytes for a key, and each is a file name.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
pub const NAME_MAX_BYTES: usize = 255;

/// What a name has to be, for error messages.
pub const NAME_RULE: &str = "a name is 1 to 255 bytes once percent-encoded, without / and control characters";

/// Whether a text can be one part of a topic's or subscription's name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = !text.is_empty() && crate::blob::segment(text).len() <= NAME_MAX_BYTES;
    fits && !text.chars().any(|c| c == '/' || c.is_control())
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.topic)
    }
}

impl fmt::Display for SubscriptionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.name)
    }
}

impl FromStr for TopicName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, topic)) if is_name(namespace) && is_name(topic) => {
                Ok(Self { namespace: namespace.to_owned(), topic: topic.to_owned() })
            }
            _ => Err(format!("\"{text}\" is no topic: namespace/topic is expected, and {NAME_RULE}")),
        }
    }
}

impl FromStr for SubscriptionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("\"{text}\" is no subscription: namespace/topic/name is expected, and {NAME_RULE}");
        let (topic, name) = text.rsplit_once('/').ok_or_else(expected)?;
        if !is_name(name) {
            return Err(expected());
        }
        Ok(Self { topic: topic.parse().map_err(|_| expected())?, name: name.to_owned() })
    }
}

/// The HTTP endpoint and what is sent to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Where requests go.
    pub url: Url,
    /// How long to wait for a whole answer.
    pub response_timeout_ms: u64,
    /// Headers of every request, spelled as written.
    pub headers: Vec<(String, String)>,
}

impl Destination {
    /// The address for people: without credentials and without the query, which may hold secrets.
    #[must_use]
    pub fn display(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        // Neither call can fail: a destination is http or https and has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.into()
    }
}

/// Where dead letters of a subscription go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// The container of the deployment.
    DefaultContainer,
    /// A container of its own.
    Container(Container),
    /// Dropped, counted, warned about.
    None,
}

/// What becomes of a delivery that ends without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterPolicy {
    /// Where it goes.
    pub sink: Sink,
    /// How it is written.
    pub format: Format,
    /// How the format is laid out.
    pub layout: Layout,
    /// Written at the later of the decision and this long after the last attempt; at once where there was none
    /// (Event Grid, "message delivery and retry", dead-letter events).
    pub delay_ms: u64,
    /// When storage refuses, keep trying this long after the decision.
    pub keep_trying_for_ms: u64,
}

/// Which events of a topic go where, and how hard to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Its full name.
    pub name: SubscriptionName,
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// Where its events go.
    pub destination: Destination,
    /// Which events it wants.
    pub filter: Filter,
    /// How hard to try.
    pub retry: RetryPolicy,
    /// What becomes of failures.
    pub dead_letter: DeadLetterPolicy,
    /// Held, not attempted.
    pub paused: bool,
    /// Where replies of the destination go.
    pub reply: Option<Url>,
    /// From this moment on it takes no new events.
    pub expires_ms: Option<u64>,
}

/// A topic that some document names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: TopicName,
    /// How its records are read.
    pub input: Input,
}

/// All topics and subscriptions of one set of files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    topics: BTreeMap<TopicName, Topic>,
    subscriptions: BTreeMap<SubscriptionName, Arc<Subscription>>,
}

impl Catalogue {
    /// Adds a topic; a second mention replaces the first. Uniqueness is checked where the file's lines are known.
    pub fn add_topic(&mut self, topic: Topic) {
        self.topics.insert(topic.name.clone(), topic);
    }

    /// Adds a subscription, and its topic with automatic input when no document describes that.
    pub fn add_subscription(&mut self, subscription: Subscription) {
        let topic = &subscription.name.topic;
        if !self.topics.contains_key(topic) {
            self.add_topic(Topic { name: topic.clone(), input: Input::Auto });
        }
        self.subscriptions.insert(subscription.name.clone(), Arc::new(subscription));
    }

    /// The topic of this name, if any document names it.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// The subscription of this name.
    #[must_use]
    pub fn subscription(&self, name: &SubscriptionName) -> Option<&Arc<Subscription>> {
        self.subscriptions.get(name)
    }

    /// Every subscription, by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.subscriptions.values()
    }

    /// Every topic, by name.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values()
    }

    /// The subscriptions of a topic that have not expired and whose filter takes the event.
    pub fn matching(&self, topic: &TopicName, event: &Event, now_ms: u64) -> impl Iterator<Item = &Arc<Subscription>> {
        let first = SubscriptionName { topic: topic.clone(), name: String::new() };
        let of_topic = self.subscriptions.range(first..).map(|(_, subscription)| subscription);
        let members = event.members();
        of_topic
            .take_while(move |subscription| subscription.name.topic == *topic)
            .filter(move |subscription| subscription.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms))
            .filter(move |subscription| subscription.filter.takes(&members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_bad_ones_are_explained() {
        for text in ["shop/orders/billing", "a b/ö/日本"] {
            assert_eq!(text.parse::<SubscriptionName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "shop", "shop/orders", "shop//billing", "a/b/c/d", "a/b/", "a/b/\u{7}"] {
            let error = text.parse::<SubscriptionName>().expect_err(text);
            assert!(error.contains("namespace/topic/name"), "{error}");
        }
    }

    #[test]
    fn a_destination_is_shown_without_query_and_credentials() {
        let destination = Destination {
            url: Url::parse("https://user:secret@example.com/in?code=secret#f").unwrap(),
            response_timeout_ms: 1,
            headers: vec![],
        };
        assert_eq!(destination.display(), "https://example.com/in");
    }
}
