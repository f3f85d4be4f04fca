//! A subscription: the type that documents of every dialect are read into.
//!
//! A [`Subscription`] is complete: every default has been filled in, every range checked, every
//! address parsed. Nothing that uses it needs the file it came from. A
//! [`Catalogue`](crate::subscription::catalogue::Catalogue) holds all subscriptions of a set of
//! files.

use std::sync::Arc;

use url::Url;

use crate::document::kind::{Duration, Flag, Merged};
use crate::document::record::{Or, Required};
use crate::event::mapping::Mapping;
use crate::subscription::batch::Batch;
use crate::subscription::bounds::DELIVERY_DELAY_MAX_MS;
use crate::subscription::dead_letter_policy::{DeadLetterPolicy, DeadLetters};
use crate::subscription::destination::Destination;
use crate::subscription::filter::Filter;
use crate::subscription::kinds::batches::Batches;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::{Dialect, Profile, RetryPolicy};
use crate::subscription::sink::Sink;

/// Where replies of a destination go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyTo {
    /// To this address.
    Address(Url),
    /// To the subscriptions of this topic.
    Topic(TopicName),
}

/// Which events of a topic go where, and how their delivery is retried.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Its full name.
    pub name: SubscriptionName,
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// Where its events go.
    pub destination: Destination,
    /// Which fields of its topic's custom events are its attributes.
    pub mapping: Arc<Mapping>,
    /// Which events it delivers.
    pub filter: Filter,
    /// How deliveries are retried.
    pub retry: RetryPolicy,
    /// How events are batched; `None` means one event per request.
    pub batch: Option<Batch>,
    /// What happens to failed deliveries.
    pub dead_letter: DeadLetterPolicy,
    /// No attempt is made before this long after publication.
    pub delay_ms: u64,
    /// Deliveries become dead letters at once and are not attempted.
    pub paused: bool,
    /// Where replies of the destination go; `None` ignores them.
    pub reply: Option<ReplyTo>,
    /// The key of a Destinations document that `reply` was resolved from.
    pub reply_reference: Option<String>,
    /// From this time on it matches no new events.
    pub expires_ms: Option<u64>,
}

record! {
    /// How events of a topic are delivered: the fields that a Subscription and the `delivery` of its Topic have in common.
    #[derive(Debug, Clone, PartialEq)]
    pub struct DeliverySettings {
        /// How deliveries are retried.
        "retry" => pub retry: RetryPolicy = Required(Merged::<RetryPolicy>::KIND),
        /// Where requests go and what they carry.
        "destination" => pub destination: Destination = Required(Merged::<Destination>::KIND),
        /// Events that travel in one request; maxEvents or preferredKilobytes asks for it.
        "batch" => pub batch: Option<Batch> = Batches,
        /// What happens to an event that cannot be delivered: none drops it.
        "deadLetter" => pub dead_letter: DeadLetterPolicy = Required(DeadLetters),
        /// No attempt is made before this long after publication; up to P7D. An event may state a later moment as its attribute deliverat.
        "delay" => pub delay_ms: u64 = Or(Duration(0..=DELIVERY_DELAY_MAX_MS), 0_u64),
        /// true makes the events dead letters, to be replayed after the pause.
        "paused" => pub paused: bool = Or(Flag, false),
    }
}

impl DeliverySettings {
    /// The defaults of a dialect, for an address.
    #[must_use]
    pub fn of(dialect: Dialect, url: Url) -> Self {
        let profile = Profile::of(dialect);
        Self {
            destination: Destination {
                plain_json: profile.plain_json,
                notification_headers: profile.notification_headers,
                late_window_ms: profile.late_window_ms,
                probation: profile.probation,
                ..Destination::new(url, profile.response_timeout_ms)
            },
            dead_letter: DeadLetterPolicy::of(&profile),
            retry: profile.retry,
            batch: None,
            delay_ms: 0,
            paused: false,
        }
    }
}

impl From<&Subscription> for DeliverySettings {
    fn from(subscription: &Subscription) -> Self {
        Self {
            destination: subscription.destination.clone(),
            retry: subscription.retry.clone(),
            batch: subscription.batch,
            dead_letter: subscription.dead_letter.clone(),
            delay_ms: subscription.delay_ms,
            paused: subscription.paused,
        }
    }
}

impl Subscription {
    /// The other topics that its deliveries may lead to: as their destination, by replies, and by dead letters.
    pub fn other_topics(&self) -> impl Iterator<Item = TopicName> {
        let of_reply = match &self.reply {
            Some(ReplyTo::Topic(topic)) => Some(topic),
            Some(ReplyTo::Address(_)) | None => None,
        };
        let of_sink = match &self.dead_letter.sink {
            Sink::Topic(topic) => Some(topic),
            Sink::DefaultContainer
            | Sink::Container(_)
            | Sink::Queue(_)
            | Sink::Address(_)
            | Sink::None => None,
        };
        of_reply.into_iter().chain(of_sink).cloned().chain(self.destination.topic())
    }

    /// A subscription to every event of its topic with these settings.
    #[must_use]
    pub fn with_settings(
        name: SubscriptionName,
        dialect: Dialect,
        settings: DeliverySettings,
    ) -> Self {
        let DeliverySettings { destination, retry, batch, dead_letter, delay_ms, paused } =
            settings;
        Self {
            name,
            dialect,
            destination: destination.without_parts_of_urls(),
            mapping: Arc::default(),
            filter: Filter::EVERYTHING,
            retry,
            batch,
            dead_letter,
            delay_ms,
            paused,
            reply: None,
            reply_reference: None,
            expires_ms: None,
        }
    }

    /// A subscription with its dialect's defaults, except that dead letters are written at once.
    #[must_use]
    pub fn new(name: SubscriptionName, dialect: Dialect, url: Url) -> Self {
        let mut new = Self::with_settings(name, dialect, DeliverySettings::of(dialect, url));
        new.dead_letter.delay_ms = 0;
        new
    }
}
