//! Reads the recipient of replies, as native documents state it.

use serde_json::{Value as Json, json};

use super::address::Endpoint;
use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::subscription::topic_address::{address_of, topic_of};
use crate::subscription::{ReplyTo, display};

/// The field type of the field `reply`: an address, or a topic as `topic:namespace/topic`.
pub struct Replies;

impl Kind for Replies {
    type Value = ReplyTo;

    fn read(&self, at: &Cursor<'_>) -> Option<ReplyTo> {
        let url = Endpoint::OF_EVENTS.read(at)?;
        Some(topic_of(&url).map_or(ReplyTo::Address(url), ReplyTo::Topic))
    }

    fn write(&self, reply: &ReplyTo) -> Json {
        match reply {
            ReplyTo::Address(url) => json!(url.as_str()),
            ReplyTo::Topic(topic) => json!(address_of(topic).as_str()),
        }
    }

    fn schema(&self) -> Json {
        Endpoint::OF_EVENTS.schema()
    }

    /// Returns the recipient. If it is an address, credentials and query are omitted.
    fn shown(&self, reply: &ReplyTo) -> Json {
        match reply {
            ReplyTo::Address(url) => json!(display(url)),
            ReplyTo::Topic(_) => self.write(reply),
        }
    }
}
