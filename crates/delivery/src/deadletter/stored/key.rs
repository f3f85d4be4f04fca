//! The key of a blob, taken apart.
//!
//! Separate because a key has fields that the blob may lack or contradict: the subscription, and the id. The id is known without
//! the blob being read.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use uuid::{Uuid, uuid};

use crate::subscription::name::{SubscriptionName, TopicName};

/// The segments of a key behind the prefix of the container.
const SEGMENTS: usize = 8;
/// The namespace of the ids that follow from a key (UUIDv5).
const PLACES: Uuid = uuid!("5b8c1d0e-6f3a-5c27-9d41-2e7a90b3c6f8");

/// The parts of a key.
pub(super) struct KeyParts<'a> {
    pub(super) key: &'a str,
    pub(super) subscription: SubscriptionName,
    pub(super) id: Uuid,
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
        let [namespace, topic, name, _, _, _, _, _] = segments[..] else {
            return Err(invalid(
                "namespace/topic/subscription/year/month/day/hour/guid.json is expected",
            ));
        };
        let decoded = |segment: &str| {
            let text = percent_decode_str(segment).decode_utf8();
            text.map(Cow::into_owned).map_err(|_| invalid("a name in it is not UTF-8"))
        };
        let topic = TopicName { namespace: decoded(namespace)?, topic: decoded(topic)? };
        let subscription = SubscriptionName { topic, name: decoded(name)? };
        Ok(Self { key, subscription, id: id_of_key(key) })
    }
}

/// The id of the dead letter of the blob with this key: the GUID that names the blob.
#[must_use]
pub fn id_of_key(key: &str) -> Uuid {
    let file = key.rsplit('/').next().and_then(|file| file.strip_suffix(".json"));
    let guid = file.and_then(|guid| guid.parse().ok());
    // A blob that somebody has copied by hand may have any name. The prefix of the container is left out.
    guid.unwrap_or_else(|| {
        let slash = key.rmatch_indices('/').nth(SEGMENTS - 1).map(|(slash, _)| slash);
        let path = slash.and_then(|slash| key.get(slash + 1..)).unwrap_or(key);
        Uuid::new_v5(&PLACES, path.as_bytes())
    })
}
