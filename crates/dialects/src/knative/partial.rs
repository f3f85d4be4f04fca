//! A partly read trigger, subscription or source, and its translation.
//!
//! Separate because all three become a Subscription in the same way: their own settings override
//! the inherited ones.

use serde_json::json;
use url::Url;

use super::super::access::Asked;
use super::super::destinations::Destinations;
use super::super::translation::Translation;
use super::delivery_spec::Delivery;
use super::located::Located;
use super::object::Metadata;
use super::parent::Parent;
use super::stock::StockDefaults;
use delivery::document::kind::Kind as _;
use delivery::document::reader::Cursor;
use delivery::subscription::ReplyTo;
use delivery::subscription::filter::Filter;
use delivery::subscription::kinds::conditions;
use delivery::subscription::kinds::replies::Replies;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::profile::Dialect;
use delivery::subscription::topic_address::topic_of;

/// A subscription that does not have its inherited settings and defaults yet.
pub(super) struct PartialSubscription<'a> {
    pub(super) topic: TopicName,
    /// The broker or channel whose settings the subscription inherits.
    pub(super) parent: Parent<'a>,
    /// The subscription's own delivery settings; `None` if it has none.
    pub(super) delivery: Option<Delivery<'a>>,
    /// The endpoint that receives the subscription's events.
    pub(super) called: Option<Called<'a>>,
    /// The subscription's filter, with its position.
    pub(super) filter: Option<Located<'a, Filter>>,
    /// The target of replies, with its position. The position is `None` if the kind of the object
    /// implies the target.
    pub(super) reply: Option<(ReplyTo, Option<Cursor<'a>>)>,
    /// The key from which the reply address was resolved.
    pub(super) reply_key: Option<String>,
}

/// The endpoint that receives a subscription's events.
pub(super) struct Called<'a> {
    pub(super) url: Url,
    /// Key of the endpoint in a `Destinations` document.
    pub(super) key: String,
    /// All values that the file requests for the endpoint, except its address.
    pub(super) asked: Asked<'a>,
    pub(super) at: Cursor<'a>,
}

impl<'a> PartialSubscription<'a> {
    /// True if the events are forwarded to a topic, which does not reply.
    pub(super) fn goes_on(&self) -> bool {
        self.called.as_ref().is_some_and(|to| topic_of(&to.url).is_some())
    }

    /// Converts this to the native Subscription that replaces `object`.
    pub(super) fn translate(
        self,
        object: &Cursor<'a>,
        (name, named_at): (&SubscriptionName, &Cursor<'a>),
        metadata: Metadata<'a>,
        stock: &StockDefaults<'a>,
        destinations: &Destinations<'_>,
    ) -> Option<Translation> {
        let mut to = Translation::new(object);
        to.name(name, named_at, Dialect::Knative);
        let delivery = self.parent.delivery_of(self.delivery);
        if delivery.retries() {
            let is_stock = delivery.uses_stock_defaults();
            stock.count(metadata.named_at.filter(|_| is_stock));
            // If the files state no retry setting, the note about stock defaults covers the class
            // too.
            if !is_stock || delivery.states_retries() {
                self.parent.report_unstated();
            }
        }
        delivery.translate(self.parent.class, object, &mut to);
        metadata.overrides.with_fallback(&self.parent.overrides).translate(&mut to);
        let Located { value: filter, at } = self.filter?;
        if filter != Filter::EVERYTHING {
            to.set("filter", &conditions::written(&filter), &at);
        }
        match self.reply {
            Some((reply, Some(at))) => {
                let written = Replies.write(&reply);
                let key = self.reply_key.as_deref().zip(written.as_str());
                let key = key.and_then(|(key, address)| destinations.reference(key, address));
                to.set_some("replyReference", key, |key| json!(key), Some(&at));
                to.set("reply", &written, &at);
            }
            Some((reply, None)) => to.imply("reply", &Replies.write(&reply)),
            None => {}
        }
        let Called { url, key, asked, at } = self.called?;
        to.set("destination.url", &json!(url.as_str()), &at);
        destinations.complete(&mut to.document, &asked, (&key, &at))?;
        Some(to)
    }
}
