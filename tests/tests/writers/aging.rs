//! Makes what is no longer needed so old that it is garbage, while writing goes on: nobody waits for 30 days.
//!
//! Only objects that a version replaced since. What a commit has written and not named yet must stay young.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use catalogue::Id;
use lastmile_tests::writers::{Ledger, NAMESPACE, Place, READABLE, Reader};
use serde_json::Value;

/// Longer than 30 days.
const AGE: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// The objects of the namespace, as files.
pub(crate) struct Aging {
    reader: Reader,
    folder: PathBuf,
}

impl Aging {
    pub(crate) fn of(place: &Place, root: &Path) -> Self {
        let folder = root.join("catalogue/namespaces").join(NAMESPACE).join("objects");
        Self { reader: Reader::of(&place.folder), folder }
    }

    /// Ages what only versions need that were replaced long ago.
    pub(crate) async fn age_replaced(&self, ledger: &Ledger) {
        let versions = self.reader.history(ledger).await;
        let (young, old) = versions.split_at(versions.len().min(READABLE as usize));
        let young = self.needed(young.iter().map(|version| version.id));
        for object in self.needed(old.iter().map(|version| version.id)).difference(&young) {
            self.age(object);
        }
    }

    pub(crate) fn age_all(&self) {
        self.objects().iter().for_each(|object| self.age(object));
    }

    fn age(&self, object: &str) {
        // It may have been removed with an earlier version.
        let Ok(file) = File::options().write(true).open(self.folder.join(object)) else { return };
        let modified = file.metadata().and_then(|file| file.modified()).expect("a time");
        file.set_modified(modified - AGE).expect("a time");
    }

    /// All objects.
    pub(crate) fn objects(&self) -> BTreeSet<String> {
        let files = fs::read_dir(&self.folder).expect("a folder");
        files.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned()).collect()
    }

    /// What these versions need, by what is in the files.
    pub(crate) fn needed(&self, versions: impl Iterator<Item = Id>) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        let mut next: Vec<String> = versions.map(|id| id.to_string()).collect();
        while let Some(id) = next.pop() {
            let Ok(bytes) = fs::read(self.folder.join(&id)) else { continue };
            let object: Value = serde_json::from_slice(&bytes).expect("an object is JSON");
            if needed.insert(id) {
                let children = object["children"].as_array().into_iter().flatten();
                let below = children.map(|child| &child[1]).chain([&object["root"]]);
                next.extend(below.filter_map(|id| Some(id.as_str()?.to_owned())));
            }
        }
        needed
    }
}
