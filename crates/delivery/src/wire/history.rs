//! The wire form of the history and the last response, which deliveries and dead letters share.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::version::WireError;
use crate::delivery::{Entry, History, Word};

/// Length in bytes below which a response that is UTF-8 is always written as text, so that people
/// can read it in a queue.
const SHORT_BYTES: usize = 512;

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum EntryV1 {
    Attempt {
        at_ms: u64,
        outcome: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        duration_ms: u64,
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
    },
    Omitted {
        omitted: u32,
    },
}

/// The beginning of the last response body, as text or as base64. It is base64 if it is not UTF-8.
/// It is also base64 if it has at least [`SHORT_BYTES`] and base64 is shorter than the JSON text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LastV1 {
    Response(String),
    ResponseBase64(String),
}

pub(super) fn history_v1(history: &History) -> Vec<EntryV1> {
    let attempt = |entry: &Entry| EntryV1::Attempt {
        at_ms: entry.at_ms,
        outcome: entry.outcome.to_string(),
        status: entry.status,
        duration_ms: entry.duration_ms,
        more: entry.more.clone(),
    };
    let omitted =
        (history.omitted() > 0).then_some(EntryV1::Omitted { omitted: history.omitted() });
    history.first().iter().map(attempt).chain(omitted).chain(history.last().map(attempt)).collect()
}

pub(super) fn history_of(wire: Vec<EntryV1>) -> Result<History, WireError> {
    let mut entries = Vec::with_capacity(wire.len());
    let mut left_out = 0;
    for entry in wire {
        match entry {
            EntryV1::Attempt { at_ms, outcome, status, duration_ms, more } => {
                let outcome = Word::read(&outcome, outcome.parse().ok());
                let outcome = outcome.map_err(WireError::Unreadable)?;
                entries.push(Entry { at_ms, outcome, status, duration_ms, more });
            }
            EntryV1::Omitted { omitted } => left_out = omitted,
        }
    }
    Ok(History::restore(entries, left_out))
}

pub(super) fn last_v1(last_response: Option<&[u8]>) -> Option<LastV1> {
    last_response.map(|bytes| {
        let base64 = STANDARD.encode(bytes);
        match std::str::from_utf8(bytes) {
            // A control character takes six bytes in a JSON string.
            Ok(text) if json_bytes(text) <= base64.len() + 2 || bytes.len() < SHORT_BYTES => {
                LastV1::Response(text.to_owned())
            }
            _ => LastV1::ResponseBase64(base64),
        }
    })
}

pub(super) fn last_of(wire: Option<LastV1>) -> Result<Option<Vec<u8>>, WireError> {
    Ok(match wire {
        None => None,
        Some(LastV1::Response(text)) => Some(text.into_bytes()),
        Some(LastV1::ResponseBase64(text)) => {
            Some(STANDARD.decode(text).map_err(|error| WireError::Unreadable(error.to_string()))?)
        }
    })
}

/// Returns the length in bytes of a text that is written as a JSON string.
fn json_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
}
