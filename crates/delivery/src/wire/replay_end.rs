//! Reads and writes the result of a replayed delivery, as the `deadletter` attribute of a small
//! message.
//!
//! The attribute has version 2, so that older code does not parse such a message as a dead letter.
//! A message of an unknown version waits for newer code. New fields are optional, and no field is
//! renamed.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ascii::ascii_json;
use super::convert::{replay_of, replay_v1};
use super::v1::ReplayV1;
use super::version::{WireError, unreadable};
use crate::delivery::replay::{ReplayEnd, ReplayOutcome};

/// Version of attributes with the result of a replayed delivery.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct MessageV2 {
    v: u32,
    replay_end: ReplayEndV2,
}

#[derive(Serialize, Deserialize)]
struct ReplayEndV2 {
    replay: ReplayV1,
    delivery: Uuid,
    outcome: ReplayOutcome,
    at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stored: Option<(String, String)>,
}

/// True if a `deadletter` attribute contains the result of a replayed delivery, even an invalid
/// one.
#[must_use]
pub fn is_replay_end(attribute: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        v: u32,
        #[serde(rename = "replay_end")]
        _replay_end: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Kind>(attribute).is_ok_and(|kind| kind.v == VERSION)
}

/// Serializes the `deadletter` attribute with the result of a replayed delivery.
#[must_use]
pub fn write_replay_end(end: &ReplayEnd) -> String {
    let ReplayEnd { replay, delivery, outcome, at_ms, stored } = end;
    let replay_end = ReplayEndV2 {
        replay: replay_v1(replay),
        delivery: *delivery,
        outcome: *outcome,
        at_ms: *at_ms,
        stored: stored.clone(),
    };
    ascii_json(&MessageV2 { v: VERSION, replay_end })
}

/// Parses the `deadletter` attribute with the result of a replayed delivery.
///
/// # Errors
/// [`WireError`] if the attribute is invalid or has an unknown version.
pub fn read_replay_end(attribute: &str) -> Result<ReplayEnd, WireError> {
    let MessageV2 { v, replay_end } = serde_json::from_str(attribute).map_err(unreadable)?;
    if v != VERSION {
        return Err(WireError::UnknownVersion(v));
    }
    let ReplayEndV2 { replay, delivery, outcome, at_ms, stored } = replay_end;
    let replay = replay_of(&replay)
        .ok_or_else(|| WireError::Unreadable("the job name is not valid".to_owned()))?;
    Ok(ReplayEnd { replay, delivery, outcome, at_ms, stored })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::replay::Replay;
    use crate::wire::read_dead_letter;

    fn end(outcome: ReplayOutcome) -> ReplayEnd {
        let replay = Replay::new("after-repair", Uuid::from_u128(1)).unwrap();
        let stored = Some(("bücket".to_owned(), "a/b/c/2026/1/2/3/x.json".to_owned()));
        ReplayEnd { replay, delivery: Uuid::from_u128(2), outcome, at_ms: 7, stored }
    }

    #[test]
    fn an_end_is_read_back_and_is_ascii() {
        for outcome in [ReplayOutcome::Delivered, ReplayOutcome::DeadAgain, ReplayOutcome::Dropped]
        {
            let text = write_replay_end(&end(outcome));
            assert!(text.is_ascii() && is_replay_end(&text), "{text}");
            assert_eq!(read_replay_end(&text).unwrap(), end(outcome));
        }
    }

    #[test]
    fn a_program_that_knows_dead_letters_only_lets_it_wait() {
        let text = write_replay_end(&end(ReplayOutcome::Delivered));
        let read = read_dead_letter(&text, &"{}".into());
        assert!(matches!(read, Err(WireError::UnknownVersion(2))), "{read:?}");
        let dead_letter = include_str!("../../fixtures/wire/v1/deadletter-bare.json");
        assert!(!is_replay_end(dead_letter));
    }

    #[test]
    fn a_name_that_would_lead_out_of_the_ledger_is_refused() {
        let text = write_replay_end(&end(ReplayOutcome::Delivered));
        let bad = text.replace("after-repair", "../after");
        assert!(is_replay_end(&bad));
        assert!(matches!(read_replay_end(&bad), Err(WireError::Unreadable(_))));
    }
}
