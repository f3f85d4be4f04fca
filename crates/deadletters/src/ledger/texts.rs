//! Reads and writes the texts of a ledger: JSON lines. Pure.
//!
//! Separate because the texts are stored, so their version is independent of the program's version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{JobHeader, LedgerEntry, PlannedReplay};

/// The version of the ledger format that this program writes and reads.
pub(crate) const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

pub(crate) fn write_plan(header: &JobHeader, plan: &[PlannedReplay]) -> Vec<u8> {
    let mut text = json_line(header);
    plan.iter().for_each(|planned| text.push_str(&json_line(planned)));
    text.into_bytes()
}

/// Reads the text of a plan.
///
/// # Errors
/// Fails if the plan has a different version, or is incomplete.
pub(crate) fn read_plan(bytes: &[u8]) -> Result<(JobHeader, Vec<PlannedReplay>), String> {
    read_with_header(bytes)
}

pub(crate) fn write_done(header: &JobHeader, entries: &[LedgerEntry]) -> Vec<u8> {
    [json_line(header).into_bytes(), write_entries(entries)].concat()
}

/// Reads the text of `done.ndjson`, which a finished job has.
///
/// # Errors
/// Fails if the text has a different version, or is incomplete.
pub(crate) fn read_done(bytes: &[u8]) -> Result<(JobHeader, Vec<LedgerEntry>), String> {
    read_with_header(bytes)
}

/// Reads a header, and one line for each dead letter that the header counts.
fn read_with_header<T: DeserializeOwned>(bytes: &[u8]) -> Result<(JobHeader, Vec<T>), String> {
    let mut lines = std::str::from_utf8(bytes).map_err(|error| error.to_string())?.lines();
    let header = lines.next().unwrap_or_default();
    // Check the version first: a newer header may have other members.
    let Versioned { v } = serde_json::from_str(header).map_err(|error| error.to_string())?;
    if v != VERSION {
        return Err(format!(
            "the ledger has version {v}, but this program supports only version {VERSION}"
        ));
    }
    let header: JobHeader = serde_json::from_str(header).map_err(|error| error.to_string())?;
    let letters = lines
        .map(serde_json::from_str)
        .collect::<Result<Vec<T>, _>>()
        .map_err(|error| error.to_string())?;
    if letters.len() != header.letters {
        return Err(format!(
            "the ledger has {} dead letters instead of {}",
            letters.len(),
            header.letters
        ));
    }
    Ok((header, letters))
}

pub(crate) fn write_entries<'a>(entries: impl IntoIterator<Item = &'a LedgerEntry>) -> Vec<u8> {
    entries.into_iter().map(json_line).collect::<String>().into_bytes()
}

/// Reads the text of a chunk.
///
/// # Errors
/// Fails if a line is not an entry.
pub(crate) fn read_entries(bytes: &[u8]) -> Result<Vec<LedgerEntry>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    text.lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn json_line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain structs with string keys serialize");
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use delivery::delivery::replay::ReplayOutcome;
    use delivery::time::moment;

    use super::*;
    use crate::ledger::{KnownEnd, ReplayState};
    use crate::samples::{entry, planned};

    #[test]
    fn a_plan_and_its_chunks_are_read_back_and_a_cut_plan_is_refused() {
        let plan = [planned(1), planned(2)];
        let header = JobHeader {
            v: VERSION,
            job: "j".to_owned(),
            at: moment::rfc3339(7),
            to: "subscription".to_owned(),
            queue: None,
            letters: 2,
            results: false,
            rate: "5/m".parse().ok(),
            by: Some("ada".to_owned()),
            note: None,
        };
        let text = write_plan(&header, &plan);
        assert_eq!(read_plan(&text), Ok((header, plan.to_vec())));
        let cut = &text[..text.len() - plan[1].key.len() - 70];
        assert!(read_plan(cut).is_err());
        let newer = read_plan(b"{\"v\":2,\"name\":\"j\"}\n").unwrap_err();
        assert_eq!(newer, "the ledger has version 2, but this program supports only version 1");
        let entries = [
            entry(1, ReplayState::Intent),
            LedgerEntry { problem: Some("no".to_owned()), ..entry(2, ReplayState::Refused) },
        ];
        assert_eq!(read_entries(&write_entries(&entries)), Ok(entries.to_vec()));
        let end = KnownEnd { state: ReplayOutcome::DeadAgain, at: moment::rfc3339(9) };
        let ended = entries.map(|entry| LedgerEntry { end: Some(end.clone()), ..entry });
        let header = read_plan(&text).unwrap().0;
        assert_eq!(read_done(&write_done(&header, &ended)), Ok((header, ended.to_vec())));
    }
}
