//! The hint: one object that says which namespaces changed lately.
//!
//! A reader of many namespaces asks for it in place of all their pointers. It decides nothing: whatever it says, a reader
//! believes pointers only. So it may be lost, late or forged, and a reader still looks at each pointer now and then.
//!
//! Promises: of what two hints of one reader say about a namespace, the later differs if its pointer was
//! replaced and announced in between, also where several announce at once, and whoever is late.

use std::collections::HashSet;

use delivery::ports::{Clock, JitterSource};
use delivery::subscription::schedule::Jitter;
use serde::{Deserialize, Serialize};

use crate::error::ReadError;
use crate::format::{FORMAT, parse};
use crate::objects::{Fetched, Objects, StoreError};
use crate::wait::wait;

/// Its key.
const KEY: &str = "hint";
/// So many namespaces are named at most, those that changed last.
const NAMESPACES_MAX: usize = 200;
/// A hint that cannot be read so often is replaced.
const UNREADABLE_AFTER: u32 = 2;
/// How often an announcement is tried while others are faster.
const TRIES_MAX: u32 = 10;

/// Which namespaces changed lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    changes: Vec<(String, String)>,
    etag: String,
}

/// Which namespaces changed from one hint to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// These.
    Namespaces(Vec<String>),
    /// More than a hint can name.
    Unknown,
}

/// The object.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    /// The names of namespaces, the one announced last first, and a random text of each announcement.
    changes: Vec<(String, String)>,
}

impl Hint {
    /// The hint as it is now; `None` if there is none. `known` is the one that the caller has: if it is still the
    /// same, storage sends no content.
    ///
    /// # Errors
    /// [`ReadError`] when it cannot be read.
    pub async fn load(
        objects: &impl Objects,
        known: Option<&Self>,
    ) -> Result<Option<Self>, ReadError> {
        let (bytes, etag) = match objects.get(KEY, known.map(|known| &*known.etag)).await? {
            Fetched::Missing => return Ok(None),
            Fetched::Unchanged => return Ok(known.cloned()),
            Fetched::Changed { bytes, etag } => (bytes, etag),
        };
        let Written { changes, .. } = parse(KEY, &bytes)?;
        Ok(Some(Self { changes, etag }))
    }

    /// What was announced since an earlier hint; without one, all that this one says.
    #[must_use]
    pub fn changed_since(&self, earlier: Option<&Self>) -> Changed {
        let earlier: HashSet<&(String, String)> =
            earlier.into_iter().flat_map(|earlier| &earlier.changes).collect();
        let is_new = |change: &&(String, String)| !earlier.contains(change);
        let new: Vec<String> =
            self.changes.iter().filter(is_new).map(|(name, _)| name.clone()).collect();
        // The oldest was announced since: others may have been as well, and have been left out.
        let is_full = self.changes.len() >= NAMESPACES_MAX;
        if is_full && new.len() == self.changes.len() {
            Changed::Unknown
        } else {
            Changed::Namespaces(new)
        }
    }
}

/// Tells readers that a namespace has a new version.
///
/// Each try writes another random text: the client of a bucket repeats a request whose answer was lost, and may
/// be told that somebody else was faster although it was this very call. Then readers have seen the first
/// text already, perhaps before a later version, and the same text would tell them nothing.
///
/// # Errors
/// Why they are not told.
pub(crate) async fn announce(
    objects: &impl Objects,
    machine: &(impl Clock + JitterSource),
    namespace: &str,
) -> Result<(), StoreError> {
    for tries in 0..TRIES_MAX {
        if tries > 0 {
            wait(machine, tries).await;
        }
        let [Jitter(high), Jitter(low)] = [(); 2].map(|()| machine.next_jitter());
        let change = (namespace.to_owned(), format!("{high:08x}{low:08x}"));
        let (bytes, etag) = match objects.get(KEY, None).await {
            Ok(Fetched::Changed { bytes, etag }) => (bytes, Some(etag)),
            Ok(Fetched::Missing | Fetched::Unchanged) => (Vec::new(), None),
            Err(_) if tries < UNREADABLE_AFTER => continue,
            // It is too large, which no reader reads: then this one is better.
            Err(_) => return objects.put(KEY, written(vec![change])).await,
        };
        let mut changes = match parse::<Written>(KEY, &bytes) {
            Ok(Written { changes, .. }) => changes,
            Err(error @ ReadError::NewerFormat { .. }) => {
                return Err(StoreError(error.to_string()));
            }
            // There is none, or it is damaged.
            Err(_) => Vec::new(),
        };
        changes.retain(|(name, _)| name != namespace);
        changes.insert(0, change);
        changes.truncate(NAMESPACES_MAX);
        if objects.replace(KEY, written(changes), etag.as_deref()).await? {
            return Ok(());
        }
    }
    Err(StoreError(format!("others announced changes during each of {TRIES_MAX} tries")))
}

fn written(changes: Vec<(String, String)>) -> Vec<u8> {
    let written = Written { format: FORMAT, changes };
    serde_json::to_vec(&written).expect("texts are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(changes: impl IntoIterator<Item = (String, &'static str)>) -> Hint {
        let changes = changes.into_iter().map(|(name, text)| (name, text.to_owned()));
        Hint { changes: changes.collect(), etag: String::new() }
    }

    fn named(names: &[&str]) -> Changed {
        Changed::Namespaces(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn what_differs_has_changed() {
        let [a, b] = ["a", "b"].map(str::to_owned);
        let earlier = hint([(a.clone(), "1"), (b.clone(), "1")]);
        let later = hint([(b, "2"), (a, "1")]);
        assert_eq!(later.changed_since(None), named(&["b", "a"]));
        assert_eq!(later.changed_since(Some(&earlier)), named(&["b"]));
        assert_eq!(later.changed_since(Some(&later)), named(&[]));
    }

    #[test]
    fn more_changes_than_a_hint_can_name_are_unknown() {
        let names = |from: usize, to: usize| (from..to).map(|number| number.to_string());
        let of = |from, to, text| hint(names(from, to).map(move |name| (name, text)));
        let full = of(0, NAMESPACES_MAX, "1");
        assert_eq!(full.changed_since(None), Changed::Unknown);
        assert_eq!(full.changed_since(Some(&full)), named(&[]));
        let others = of(1, NAMESPACES_MAX + 1, "1");
        assert_eq!(others.changed_since(Some(&full)), named(&[&NAMESPACES_MAX.to_string()]));
        assert_eq!(
            of(NAMESPACES_MAX, 2 * NAMESPACES_MAX, "1").changed_since(Some(&full)),
            Changed::Unknown
        );
        assert_eq!(of(0, NAMESPACES_MAX, "2").changed_since(Some(&full)), Changed::Unknown);
    }
}
