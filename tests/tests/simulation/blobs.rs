//! Blobs as a reader sees them, checked against what the world recorded.

use std::collections::BTreeMap;

use delivery::delivery::outcome::TransportResult;
use delivery::delivery::{HISTORY_FIRST, HISTORY_LAST};
use delivery::time::moment::rfc3339;
use serde_json::Value;
use uuid::Uuid;

use super::ledger::Seen;
use super::replayed::is_of_replay;
use super::sinks::{properties, sink_delivery_of};
use super::world::Inner;

/// A parsed blob.
pub(crate) struct Blob {
    pub(crate) bucket: String,
    pub(crate) key: String,
    text: String,
    pub(crate) properties: Value,
}

impl Blob {
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.properties[name].as_u64().unwrap_or(u64::MAX)
    }

    pub(crate) fn reason(&self) -> &str {
        self.properties["deadletterreasoncode"].as_str().unwrap_or("")
    }
}

/// Parses all blobs, and groups them by the id of their delivery.
pub(crate) fn read_blobs(world: &Inner, broken: &mut Vec<String>) -> BTreeMap<Uuid, Vec<Blob>> {
    let mut blobs: BTreeMap<Uuid, Vec<Blob>> = BTreeMap::new();
    let letters = world.storage.blobs.iter().filter(|((_, key), _)| !is_of_replay(key));
    for ((bucket, key), bytes) in letters {
        let parsed: Result<Value, _> = serde_json::from_slice(bytes);
        let properties = parsed.map(|blob| properties(&blob)).unwrap_or_default();
        let id = properties["deadletterid"].as_str().and_then(|id| id.parse::<Uuid>().ok());
        match id {
            Some(id) if key.ends_with(&format!("/{id}.json")) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                blobs.entry(id).or_default().push(Blob {
                    bucket: bucket.clone(),
                    key: key.clone(),
                    text,
                    properties,
                });
            }
            _ => broken.push(format!("the blob {key} cannot be read or has another id")),
        }
    }
    blobs
}

/// Removes the prefix of the container from a key.
pub(crate) fn guid_path(key: &str) -> &str {
    key.find("shop/").map_or(key, |at| &key[at..])
}

/// Compares a blob with the records of the world; returns the first difference.
pub(crate) fn mismatch(world: &Inner, id: Uuid, blob: &Blob) -> Option<String> {
    let ledger = &world.ledger;
    let sink = blob.properties.get("sink");
    let result_seen = history_agrees(world, id, &blob.properties)
        .or_else(|| sink.and_then(|sink| history_agrees(world, sink_delivery_of(id), sink)));
    if result_seen.is_some() {
        return result_seen;
    }
    let is_whole = |text: &&str| {
        blob.text.contains(*text)
            || blob.text.contains(&serde_json::to_string(text).unwrap_or_default())
    };
    if !ledger.known.contains_key(&id) {
        return None;
    }
    let texts = ledger.texts(id);
    // A CloudEvents format adds members to the event. An event that was too large to send has no
    // recorded text to compare with.
    let by_mark = texts.is_empty() || !blob.text.contains("deadletterProperties");
    let whole =
        if by_mark { blob.text.contains(&ledger.mark(id)) } else { texts.iter().any(is_whole) };
    (!whole).then(|| "its blob has other bytes than the event".to_owned())
}

/// Compares the attempts that a blob reports with the requests that the endpoint received.
fn history_agrees(world: &Inner, id: Uuid, result_seen: &Value) -> Option<String> {
    let ledger = &world.ledger;
    let attempts = result_seen["deliveryattempts"].as_u64().unwrap_or(u64::MAX);
    let history = result_seen["history"].as_array().cloned().unwrap_or_default();
    let omitted: u64 = history.iter().filter_map(|entry| entry["omitted"].as_u64()).sum();
    let entries: Vec<&Value> = history.iter().filter(|entry| entry["omitted"].is_null()).collect();
    let attempted = entries.iter().filter(|entry| entry["outcome"] != "Probation").count() as u64;
    let adds_up = (attempted..=attempted + omitted).contains(&attempts);
    if !adds_up || (omitted > 0 && entries.len() != HISTORY_FIRST + HISTORY_LAST) {
        return Some(format!("its history does not add up to {attempts} attempts"));
    }
    let seen = ledger.seen.get(&id).map_or(&[][..], Vec::as_slice);
    let agrees = |entry: &Value, seen: &Seen| {
        let status = if let TransportResult::Answered { status, .. } = &seen.result_seen {
            Some(u64::from(*status))
        } else {
            None
        };
        entry["at"] == rfc3339(seen.at_ms) && entry["status"].as_u64() == status
    };
    let made = |entry: &&&Value| entry["outcome"] != "Aborted" && entry["outcome"] != "Probation";
    for entry in entries.iter().filter(made) {
        if !seen.iter().any(|seen| agrees(entry, seen)) {
            return Some(format!("its history reports an attempt that was not made: {entry}"));
        }
    }
    if ledger.chains_allowed(id) == 1 && seen.len() as u64 != attempts {
        return Some(format!(
            "it reports {attempts} attempts, the endpoint received {}",
            seen.len()
        ));
    }
    None
}
