//! A version says who changed what and when, and names the version before it; the pointer names the newest.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{FORMAT, Id, damaged, parse};
use crate::error::ReadError;

/// The most changes of a version that are described one by one.
const DESCRIBED_MAX: usize = 20;

/// One state of a namespace, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The id of its object.
    pub id: Id,
    /// 1 for the first version, and one more for each.
    pub number: u64,
    /// The id of the root node; `None` where there are no entries.
    pub root: Option<Id>,
    /// How many entries there are.
    pub entries: u64,
    /// The version before it.
    pub previous: Option<Id>,
    /// When it was written, by the clock of the writer.
    pub time_ms: u64,
    /// Who wrote it.
    pub by: String,
    /// What was changed; at most 21 texts.
    pub what: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    format: u32,
    commit: String,
    number: u64,
    root: Option<Id>,
    entries: u64,
    previous: Option<Id>,
    time_ms: u64,
    by: String,
    what: Vec<String>,
}

impl Version {
    /// The bytes of the object, and their id as [`Version::id`].
    pub(crate) fn write(mut self, commit: &str) -> (Self, Vec<u8>) {
        let Self { id: _, number, root, entries, previous, time_ms, by, what } = self.clone();
        let commit = commit.to_owned();
        let written =
            Written { format: FORMAT, commit, number, root, entries, previous, time_ms, by, what };
        let bytes = serde_json::to_vec(&written).expect("texts and numbers are JSON");
        self.id = Id::of(&bytes);
        (self, bytes)
    }

    /// The version with these bytes.
    pub(crate) fn read(object: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let Written { format: _, commit: _, number, root, entries, previous, time_ms, by, what } =
            parse(object, bytes)?;
        Ok(Self { id: Id::of(bytes), number, root, entries, previous, time_ms, by, what })
    }
}

/// The first twenty changes, and how many more there are.
pub(crate) fn summary(changes: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = changes.len().saturating_sub(DESCRIBED_MAX);
    let rest = (more > 0).then(|| format!("and {more} more"));
    changes.take(DESCRIBED_MAX).chain(rest).collect()
}

/// What the pointer of a namespace says.
pub(crate) struct Pointer {
    pub(crate) version: Id,
    /// The bytes of the root node's object.
    pub(crate) root: Option<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPointer {
    format: u32,
    version: Id,
    root: Option<Box<RawValue>>,
}

impl Pointer {
    /// The bytes of the object.
    pub(crate) fn write(&self) -> Vec<u8> {
        let raw = |bytes: &Vec<u8>| {
            let text = String::from_utf8(bytes.clone()).expect("a node is text");
            RawValue::from_string(text).expect("a node is JSON")
        };
        let root = self.root.as_ref().map(raw);
        let written = WrittenPointer { format: FORMAT, version: self.version, root };
        serde_json::to_vec(&written).expect("texts and numbers are JSON")
    }

    /// The pointer with these bytes.
    pub(crate) fn read(object: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let WrittenPointer { format: _, version, root } = parse(object, bytes)?;
        let root = root.map(|node| node.get().as_bytes().to_vec());
        if root.as_ref().is_some_and(|root| !root.starts_with(b"{")) {
            return Err(damaged(object, "its root is not a node"));
        }
        Ok(Self { version, root })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_written_in_this_form() {
        let version = Version {
            id: Id::of(b""),
            number: 17,
            root: None,
            entries: 0,
            previous: Some(Id::of(b"abc")),
            time_ms: 5,
            by: "ops".to_owned(),
            what: summary((0..22).map(|at| format!("added t/{at}"))),
        };
        let (version, bytes) = version.write("0123456789abcdef");
        let text = String::from_utf8(bytes.clone()).unwrap();
        let begin = r#"{"format":1,"commit":"0123456789abcdef","number":17,"root":null,"entries":0,"previous":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","timeMs":5,"by":"ops","what":["added t/0","#;
        assert!(text.starts_with(begin), "{text}");
        assert!(text.ends_with(r#""added t/19","and 2 more"]}"#), "{text}");
        assert_eq!(Version::read("o", &bytes), Ok(version));
    }
}
