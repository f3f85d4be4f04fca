//! The key of a blob, taken apart.
//!
//! Separate because a key has fields that the blob may lack: the subscription, and the id of a single dead letter.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use uuid::Uuid;

use crate::subscription::name::{SubscriptionName, TopicName};

/// The parts of a key.
pub(super) struct KeyParts<'a> {
    pub(super) key: &'a str,
    pub(super) subscription: SubscriptionName,
    /// The GUID of the blob; with a single dead letter, its id.
    pub(super) guid: Option<Uuid>,
}

impl<'a> KeyParts<'a> {
    /// Reads `<prefix>/<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`.
    pub(super) fn read(key: &'a str, prefix: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("{key}: not the key of a dead letter: {why}");
        let prefix = prefix.trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        let path = key.strip_prefix(prefix).and_then(|path| path.strip_prefix(slash));
        let path = path.ok_or_else(|| invalid(&format!("it does not begin with {prefix}/")))?;
        let segments: Vec<&str> = path.split('/').collect();
        let [namespace, topic, name, _, _, _, _, file] = segments[..] else {
            return Err(invalid(
                "namespace/topic/subscription/year/month/day/hour/guid.json is expected",
            ));
        };
        let decoded = |segment: &str| {
            let text = percent_decode_str(segment).decode_utf8();
            text.map(Cow::into_owned).map_err(|_| invalid("a name in it is not UTF-8"))
        };
        let topic = TopicName { namespace: decoded(namespace)?, topic: decoded(topic)? };
        // Not required: the letters may hold their ids themselves.
        let guid = file.strip_suffix(".json").and_then(|guid| guid.parse().ok());
        Ok(Self { key, subscription: SubscriptionName { topic, name: decoded(name)? }, guid })
    }
}
