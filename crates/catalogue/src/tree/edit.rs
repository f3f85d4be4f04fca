//! What a caller wants to change, and what that changes in one leaf.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::format::Entry;

/// What to change, and which entries have to be as the caller knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    edits: BTreeMap<Arc<str>, Edit>,
}

/// What is said about one entry. The inner `None` is no entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) expected: Option<Option<Arc<str>>>,
    pub(crate) set: Option<Option<Arc<str>>>,
}

impl Changes {
    /// Gives an entry this value.
    pub fn put(&mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> &mut Self {
        self.edit(key).set = Some(Some(value.into()));
        self
    }

    /// Removes an entry; one that does not exist counts as removed.
    pub fn remove(&mut self, key: impl Into<Arc<str>>) -> &mut Self {
        self.edit(key).set = Some(None);
        self
    }

    /// Changes nothing at all unless this entry has this value; `None`: unless there is no such entry.
    pub fn expect(&mut self, key: impl Into<Arc<str>>, value: Option<&str>) -> &mut Self {
        self.edit(key).expected = Some(value.map(Arc::from));
        self
    }

    /// In the order of the keys.
    pub(crate) fn into_edits(self) -> Vec<(Arc<str>, Edit)> {
        self.edits.into_iter().collect()
    }

    fn edit(&mut self, key: impl Into<Arc<str>>) -> &mut Edit {
        self.edits.entry(key.into()).or_default()
    }
}

/// An entry that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) key: Arc<str>,
    pub(crate) current: Option<Arc<str>>,
}

/// An entry that a change added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) key: Arc<str>,
    pub(crate) kind: Kind,
}

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Added,
    Changed,
    Removed,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Added => "added",
            Kind::Changed => "changed",
            Kind::Removed => "removed",
        };
        write!(f, "{kind} {}", self.key)
    }
}

/// The entries of a leaf after these edits, `None` if they stay as they are. What differs is added to `differences`.
pub(crate) fn apply_to_leaf(
    entries: &[Entry],
    edits: &[(Arc<str>, Edit)],
    differences: &mut Vec<Difference>,
) -> Result<Option<Vec<Entry>>, Violation> {
    let pair = |entry: &Entry| (entry.key.clone(), entry.value.clone());
    let mut values: BTreeMap<Arc<str>, Arc<str>> = entries.iter().map(pair).collect();
    let before = differences.len();
    for (key, Edit { expected, set }) in edits {
        let current = values.get(key).cloned();
        if expected.as_ref().is_some_and(|expected| *expected != current) {
            return Err(Violation { key: key.clone(), current });
        }
        let kind = match (&current, set) {
            (None, Some(Some(_))) => Kind::Added,
            (Some(value), Some(Some(new))) if value != new => Kind::Changed,
            (Some(_), Some(None)) => Kind::Removed,
            (_, None) | (None, Some(None)) | (Some(_), Some(Some(_))) => continue,
        };
        differences.push(Difference { key: key.clone(), kind });
        match set.clone().flatten() {
            Some(value) => values.insert(key.clone(), value),
            None => values.remove(key),
        };
    }
    let is_changed = differences.len() > before;
    Ok(is_changed.then(|| values.into_iter().map(|(key, value)| Entry { key, value }).collect()))
}
