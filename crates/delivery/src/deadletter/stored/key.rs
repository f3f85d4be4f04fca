//! Splits the key of a blob into its parts.
//!
//! This module is separate because the subscription and the id are read from the key: the blob may
//! lack or contradict them. The id is available without reading the blob.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use uuid::{Uuid, uuid};

use crate::subscription::name::{SubscriptionName, TopicName};

/// Number of segments in a key after the prefix of the container.
const SEGMENTS: usize = 8;
/// UUIDv5 namespace for ids that are derived from keys without a GUID.
const PLACES: Uuid = uuid!("5b8c1d0e-6f3a-5c27-9d41-2e7a90b3c6f8");

pub(super) struct KeyParts<'a> {
    pub(super) key: &'a str,
    pub(super) subscription: SubscriptionName,
    pub(super) id: Uuid,
}

impl<'a> KeyParts<'a> {
    /// Parses `<prefix>/<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`.
    pub(super) fn read(key: &'a str, prefix: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("{key} is not the key of a dead letter: {why}");
        let prefix = prefix.trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        let path = key.strip_prefix(prefix).and_then(|path| path.strip_prefix(slash));
        let path =
            path.ok_or_else(|| invalid(&format!("the key does not begin with {prefix}/")))?;
        let segments: Vec<&str> = path.split('/').collect();
        let [namespace, topic, name, _, _, _, _, _] = segments[..] else {
            return Err(invalid(
                "expected namespace/topic/subscription/year/month/day/hour/guid.json",
            ));
        };
        let decoded = |segment: &str| {
            let text = percent_decode_str(segment).decode_utf8();
            text.map(Cow::into_owned).map_err(|_| invalid("a name in the key is not UTF-8"))
        };
        let topic = TopicName { namespace: decoded(namespace)?, topic: decoded(topic)? };
        let subscription = SubscriptionName { topic, name: decoded(name)? };
        Ok(Self { key, subscription, id: id_of_key(key) })
    }
}

/// Returns the id of the dead letter with this key: the GUID in its file name. Without a GUID, the
/// id is derived from the key.
#[must_use]
pub fn id_of_key(key: &str) -> Uuid {
    let file = key.rsplit('/').next().and_then(|file| file.strip_suffix(".json"));
    let guid = file.and_then(|guid| guid.parse().ok());
    // A blob that a person has copied may have any name. Its id is derived from the key without the
    // container's prefix.
    guid.unwrap_or_else(|| {
        let slash = key.rmatch_indices('/').nth(SEGMENTS - 1).map(|(slash, _)| slash);
        let path = slash.and_then(|slash| key.get(slash + 1..)).unwrap_or(key);
        Uuid::new_v5(&PLACES, path.as_bytes())
    })
}
