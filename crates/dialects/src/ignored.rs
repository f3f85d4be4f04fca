//! Counts Kubernetes objects that have nothing to do with events, by kind.
//!
//! Separate because files for a cluster have hundreds of such objects. One note per kind keeps the
//! warnings readable.

use std::collections::{BTreeMap, BTreeSet};

use delivery::document::findings::shortened;
use delivery::document::reader::Cursor;

/// The ignored objects, by API group and kind.
#[derive(Default)]
pub(super) struct Ignored<'a>(BTreeMap<(&'a str, &'a str), Counted<'a>>);

struct Counted<'a> {
    number: usize,
    versions: BTreeSet<&'a str>,
    first: Cursor<'a>,
}

impl<'a> Ignored<'a> {
    pub(super) fn count(&mut self, document: &Cursor<'a>) {
        let [api_version, kind] = ["apiVersion", "kind"].map(|field| document.text_at(field));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let new = || Counted { number: 0, versions: BTreeSet::new(), first: document.clone() };
        let counted = self.0.entry((group, kind)).or_insert_with(new);
        counted.number += 1;
        counted.versions.insert(api_version);
    }

    /// Reports each kind once, at the first object of the kind.
    pub(super) fn report(self) {
        for ((_, kind), Counted { number, versions, first }) in self.0 {
            let versions: Vec<&str> = versions.into_iter().collect();
            let (kind, versions) = (shortened(kind), shortened(&versions.join(", ")));
            let state = if number == 1 { "it contains" } else { "they contain" };
            first.note(format!(
                "ignored {number} {kind} ({versions}): {state} no delivery settings"
            ));
        }
    }
}
