//! The key of a blob, taken apart.
//!
//! Separate because a key has fields that the blob may lack or contradict: the subscription, and the id.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use uuid::{Uuid, uuid};

use crate::subscription::name::{SubscriptionName, TopicName};

/// The namespace of the ids that follow from a key (UUIDv5).
const PLACES: Uuid = uuid!("5b8c1d0e-6f3a-5c27-9d41-2e7a90b3c6f8");

/// The parts of a key.
pub(super) struct KeyParts<'a> {
    pub(super) key: &'a str,
    pub(super) subscription: SubscriptionName,
    /// The GUID of the blob: the id of its dead letter, if it has only one.
    pub(super) guid: Uuid,
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
        let guid = file.strip_suffix(".json").and_then(|guid| guid.parse().ok());
        // A blob that somebody has copied by hand may have any name.
        let guid = guid.unwrap_or_else(|| Uuid::new_v5(&PLACES, path.as_bytes()));
        Ok(Self { key, subscription: SubscriptionName { topic, name: decoded(name)? }, guid })
    }

    /// The id of the dead letter at this place of a shared blob, from 0.
    pub(super) fn id_at(&self, place: usize) -> Uuid {
        Uuid::new_v5(&self.guid, place.to_string().as_bytes())
    }
}
