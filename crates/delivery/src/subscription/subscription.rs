//! [`Subscription`]: the type into which documents of every dialect are converted.
//!
//! A subscription is complete: all defaults are filled in, all ranges checked, and all addresses
//! parsed. Code that uses a subscription does not need its documents. A
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

/// The recipient of a destination's replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyTo {
    /// Replies are sent to an HTTP endpoint.
    Address(Url),
    /// Replies are published to a topic, whose subscriptions receive them.
    Topic(TopicName),
}

/// A subscription: it selects events of a topic, and states where and how they are delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// The full name of the subscription, `namespace/topic/name`.
    pub name: SubscriptionName,
    /// The dialect whose defaults and rules apply.
    pub dialect: Dialect,
    /// The address and the contents of requests.
    pub destination: Destination,
    /// The mapping of the topic's custom events. It states which of their fields are attributes.
    pub mapping: Arc<Mapping>,
    /// The condition that events must satisfy to be delivered.
    pub filter: Filter,
    /// The attempts, their schedule and the meaning of statuses.
    pub retry: RetryPolicy,
    /// The settings of batches; `None` if each event has a request of its own.
    pub batch: Option<Batch>,
    /// The sink and the format of dead letters.
    pub dead_letter: DeadLetterPolicy,
    /// Minimum time in milliseconds from publication to the first attempt.
    pub delay_ms: u64,
    /// True if deliveries become dead letters immediately, without an attempt.
    pub paused: bool,
    /// The recipient of replies; `None` if replies are ignored.
    pub reply: Option<ReplyTo>,
    /// The key in a Destinations document from which `reply` was resolved; `None` if the document
    /// states the recipient itself.
    pub reply_reference: Option<String>,
    /// The time from which new events no longer match, in milliseconds since 1970; `None` if the
    /// subscription does not expire.
    pub expires_ms: Option<u64>,
}

record! {
    /// Delivery settings that a Subscription and the `delivery` of its Topic have in common.
    #[derive(Debug, Clone, PartialEq)]
    pub struct DeliverySettings {
        /// The retry policy: attempts, waits and the meaning of statuses.
        "retry" => pub retry: RetryPolicy = Required(Merged::<RetryPolicy>::KIND),
        /// The address and the contents of requests.
        "destination" => pub destination: Destination = Required(Merged::<Destination>::KIND),
        /// Several events in one request. Set `maxEvents` or `preferredKilobytes` to enable
        /// batches.
        "batch" => pub batch: Option<Batch> = Batches,
        /// Storage of events that cannot be delivered; `none` drops them.
        "deadLetter" => pub dead_letter: DeadLetterPolicy = Required(DeadLetters),
        /// Minimum time between publication and the first attempt; at most P7D. An event can set a
        /// later time in its attribute `deliverat`.
        "delay" => pub delay_ms: u64 = Or(Duration(0..=DELIVERY_DELAY_MAX_MS), 0_u64),
        /// If `true`, all events are stored as dead letters, which can be replayed after the pause.
        "paused" => pub paused: bool = Or(Flag, false),
    }
}

impl DeliverySettings {
    /// Returns the default settings of a dialect for a destination with this URL.
    #[must_use]
    pub fn new(dialect: Dialect, url: Url) -> Self {
        let profile = Profile::for_dialect(dialect);
        Self {
            destination: Destination {
                plain_json: profile.plain_json,
                notification_headers: profile.notification_headers,
                late_window_ms: profile.late_window_ms,
                probation: profile.probation,
                ..Destination::new(url, profile.response_timeout_ms)
            },
            dead_letter: DeadLetterPolicy::for_profile(&profile),
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
    /// Lists the topics to which the subscription may publish: as its destination, as the recipient
    /// of replies, or as the sink of dead letters.
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

    /// Returns a subscription with this name and these settings. Every event of the topic matches.
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

    /// Returns a subscription with the defaults of a dialect, except that dead letters are written
    /// without delay.
    #[must_use]
    pub fn new(name: SubscriptionName, dialect: Dialect, url: Url) -> Self {
        let mut new = Self::with_settings(name, dialect, DeliverySettings::new(dialect, url));
        new.dead_letter.delay_ms = 0;
        new
    }
}
