//! A trigger, subscription or source while it is read, and what it becomes.
//!
//! Separate because all of them end as a subscription in the same way: settings of their own, those that they
//! inherit, and the defaults of the profile.

use super::super::Described;
use super::super::origins::{Origins, note};
use super::super::reader::Cursor;
use super::super::sinks::DeadLettersAt;
use super::delivery::Delivery;
use super::object::Metadata;
use super::parent::Parent;
use super::stock::StockDefaults;
use crate::subscription::filter::Filter;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::{Dialect, Profile};
use crate::subscription::topic_address::topic_of;
use crate::subscription::{DeadLetterPolicy, Destination, ReplyTo, Subscription};

/// A subscription that is not complete yet.
pub(super) struct PartialSubscription<'a> {
    /// Its topic.
    pub(super) topic: TopicName,
    /// The broker or channel whose settings it inherits.
    pub(super) parent: Parent<'a>,
    /// Its own settings, if it has any.
    pub(super) delivery: Option<Delivery<'a>>,
    /// What its events are sent to.
    pub(super) destination: Option<Destination>,
    /// Where documents state that.
    pub(super) origins: Origins,
    /// Which events it delivers.
    pub(super) filter: Option<Filter>,
    /// Where replies go.
    pub(super) reply: Option<ReplyTo>,
    /// Where that is written.
    pub(super) reply_at: Option<Cursor<'a>>,
}

impl<'a> PartialSubscription<'a> {
    /// Whether its events go on to a topic, which does not reply.
    pub(super) fn goes_on(&self) -> bool {
        self.destination.as_ref().is_some_and(|to| topic_of(&to.url).is_some())
    }

    /// The subscription with defaults filled in, and where the documents state its values.
    pub(super) fn complete(
        self,
        name: SubscriptionName,
        metadata: Metadata<'a>,
        stock: &StockDefaults<'a>,
    ) -> Option<Described<'a>> {
        let profile = Profile::of(Dialect::Knative);
        let delivery = self.parent.delivery_of(self.delivery);
        let overrides = metadata.overrides.with_fallback(&self.parent.overrides);
        let mut retry = delivery.retry_policy(self.parent.class, &profile);
        if retry.max_attempts > 1 {
            let is_stock = delivery.uses_stock_defaults();
            stock.count(metadata.named_at.filter(|_| is_stock));
            // Without any settings in the files, that note stands for the class too.
            if !is_stock || delivery.states_retries() {
                self.parent.report_unstated();
            }
        }
        overrides.apply(&mut retry);
        let mut origins = delivery.origins(self.parent.class);
        overrides.note(&mut origins);
        origins.extend(self.origins);
        note(&mut origins, "reply", self.reply_at.as_ref().filter(|_| self.reply.is_some()));
        let schema = delivery.schema();
        let dead_letters_at =
            DeadLettersAt { sink: delivery.sink_at(), ..DeadLettersAt::default() };
        let destination = self.destination?;
        let new = Subscription::new(name, profile.dialect, destination.url);
        let subscription = Subscription {
            destination: Destination {
                schema: schema.map(|located| located.value),
                response_timeout_ms: delivery.timeout_ms(&profile),
                max_per_second: overrides.max_per_second(),
                hide_path: overrides.hide_path(),
                auth: destination.auth,
                tls: destination.tls,
                ..new.destination
            },
            filter: self.filter?,
            retry,
            dead_letter: DeadLetterPolicy {
                response: overrides.response(),
                hide_path: overrides.hide_path(),
                ..delivery.dead_letter_policy(&profile)
            },
            reply: self.reply,
            ..new
        };
        let schema_at = schema.map(|located| located.at.clone());
        Some(Described {
            subscription,
            origins,
            schema_at,
            batch_at: None,
            dead_letters_at,
            secrets_at: Vec::new(),
        })
    }
}
