//! Declares the fields that only a Subscription has, such as its filter, its replies and its
//! expiration.

use serde_json::{Value as Json, json};

use crate::document::findings::Message;
use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::document::record::{Optional, Or};
use crate::subscription::filter::Filter;
use crate::subscription::kinds::filter::Filters;
use crate::subscription::kinds::references::KeyOf;
use crate::subscription::kinds::replies::Replies;
use crate::subscription::{ReplyTo, Subscription};
use crate::time::moment;

record! {
    /// The fields that only a Subscription has.
    pub(crate) struct Selection {
        /// Condition for delivering an event. If several fields are set, all must match.
        "filter" => pub(crate) filter: Filter = Or(Filters, Filter::EVERYTHING),
        /// Recipient of responses that are events: an address, or topic:namespace/topic. Without a
        /// recipient, such responses are ignored.
        "reply" => pub(crate) reply: Option<ReplyTo> = Optional(Replies, "none"),
        /// The key in a Destinations document from which `reply` was resolved. If a document maps
        /// the key, `reply` is resolved again.
        "replyReference" => pub(crate) reply_reference: Option<String> = KeyOf("reply"),
        /// Time from which the subscription receives no new events, such as 2026-12-01T00:00:00Z.
        "expires" => pub(crate) expires_ms: Option<u64> = Optional(Time, "never"),
    }
}

impl From<&Subscription> for Selection {
    fn from(subscription: &Subscription) -> Self {
        let Subscription { filter, reply, reply_reference, expires_ms, .. } = subscription.clone();
        Self { filter, reply, reply_reference, expires_ms }
    }
}

/// The field type of times in RFC 3339, stored in milliseconds since 1970.
pub(crate) struct Time;

impl Kind for Time {
    type Value = u64;

    fn read(&self, at: &Cursor<'_>) -> Option<u64> {
        let ms = moment::read(at.text()?);
        ms.or_else(|| {
            at.refuse(Message::new("not a valid time").help("such as 2026-12-01T00:00:00Z"))
        })
    }

    fn write(&self, value: &u64) -> Json {
        json!(moment::written(*value))
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}
