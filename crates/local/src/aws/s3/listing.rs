//! Lists the keys of a bucket in S3's order, one page at a time.
//!
//! It is separate because order and paging are subtle. It promises keys sorted by their bytes, each
//! key and common prefix once over all pages, and that only folders under the prefix are read. It
//! supports the delimiter `/` only, and it computes no entity tags, because that would read every
//! file.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

use super::key;

/// A listing request.
#[derive(Debug, Default, Clone)]
pub(super) struct Query {
    /// Keys begin with this.
    pub(super) prefix: String,
    /// Keys are greater than this one.
    pub(super) after: String,
    /// Whether keys in a folder are listed as that folder (the delimiter `/`).
    pub(super) by_folder: bool,
    /// The maximum of keys and folders on a page.
    pub(super) limit: usize,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The objects, in the order of their keys.
    pub(super) objects: Vec<ListedObject>,
    /// The folders, each ending in `/`.
    pub(super) folders: Vec<String>,
    /// The `after` of the next page, if there is one.
    pub(super) next: Option<String>,
}

/// An object in a listing.
#[derive(Debug)]
pub(super) struct ListedObject {
    /// Its key.
    pub(super) key: String,
    /// Its size in bytes.
    pub(super) size_bytes: u64,
    /// When it was written.
    pub(super) modified: SystemTime,
}

/// A file or folder. The name of a folder ends in `/`, so that names sort like keys.
struct Entry {
    name: String,
    metadata: fs::Metadata,
}

/// Whether the page has room for more entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    More,
    Full,
}

/// Lists a page of a bucket.
///
/// # Errors
/// When a folder cannot be read. A file or folder that is deleted meanwhile is left out.
pub(super) fn page(bucket: &Path, query: &Query) -> io::Result<Page> {
    let base = query.prefix.rfind('/').map_or("", |slash| &query.prefix[..=slash]);
    let folder =
        base.strip_suffix('/').map_or(Ok(bucket.to_path_buf()), |base| key::path(bucket, base));
    let mut walk = Walk { query, page: Page::default(), last: String::new() };
    // A prefix that is no valid key (such as `../`) cannot be the prefix of any key.
    if let Ok(folder) = folder
        && query.limit > 0
    {
        walk.folder(&folder, base)?;
    }
    Ok(walk.page)
}

struct Walk<'a> {
    query: &'a Query,
    page: Page,
    last: String,
}

impl Walk<'_> {
    /// Lists the entries of a folder, whose keys begin with `base`.
    fn folder(&mut self, folder: &Path, base: &str) -> io::Result<Progress> {
        for entry in entries(folder)? {
            let key = format!("{base}{}", entry.name);
            if !key.starts_with(&self.query.prefix) {
                continue;
            }
            let progress = if entry.metadata.is_dir() {
                self.subfolder(&folder.join(&entry.name), key)?
            } else {
                self.file(key, &entry.metadata)?
            };
            if progress == Progress::Full {
                return Ok(Progress::Full);
            }
        }
        Ok(Progress::More)
    }

    fn file(&mut self, key: String, metadata: &fs::Metadata) -> io::Result<Progress> {
        if key <= self.query.after {
            return Ok(Progress::More);
        }
        // Asked when there is one more entry: a page that just fits has no next one.
        if self.is_full() {
            return Ok(self.finish_page());
        }
        self.last.clone_from(&key);
        self.page.objects.push(ListedObject {
            key,
            size_bytes: metadata.len(),
            modified: metadata.modified()?,
        });
        Ok(Progress::More)
    }

    fn subfolder(&mut self, folder: &Path, key: String) -> io::Result<Progress> {
        let after = &self.query.after;
        // A folder is left out only if the page begins behind all of it.
        if key <= *after && !after.starts_with(&key) {
            return Ok(Progress::More);
        }
        if !self.query.by_folder {
            return self.folder(folder, &key);
        }
        if key == *after || !holds_key_after(folder, &key, after)? {
            return Ok(Progress::More);
        }
        if self.is_full() {
            return Ok(self.finish_page());
        }
        self.last.clone_from(&key);
        self.page.folders.push(key);
        Ok(Progress::More)
    }

    fn is_full(&self) -> bool {
        self.page.objects.len() + self.page.folders.len() >= self.query.limit
    }

    fn finish_page(&mut self) -> Progress {
        self.page.next = Some(std::mem::take(&mut self.last));
        Progress::Full
    }
}

/// Whether a folder holds a key greater than `after`; an empty folder is not a common prefix.
fn holds_key_after(folder: &Path, base: &str, after: &str) -> io::Result<bool> {
    let query = Query { after: after.to_owned(), limit: 1, ..Query::default() };
    let mut walk = Walk { query: &query, page: Page::default(), last: String::new() };
    walk.folder(folder, base)?;
    Ok(!walk.page.objects.is_empty())
}

/// The entries of a folder in the order of their keys, without those whose names are not valid in a
/// key.
fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in unless_gone(fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry?;
        let Some(mut name) =
            entry.file_name().to_str().map(str::to_owned).filter(|name| key::is_segment(name))
        else {
            continue;
        };
        if let Some(metadata) = unless_gone(fs::metadata(entry.path()))? {
            if metadata.is_dir() {
                name.push('/');
            }
            entries.push(Entry { name, metadata });
        }
    }
    // Folders have their slash by now: `a-b` and `a.b` come before `a/`, as keys do.
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 9] = [
        "a!",
        "a.json",
        "a/b.json",
        "a/b/c.json",
        "a/b/d.json",
        "a0",
        "b/x.json",
        "b/y/z.json",
        "c.json",
    ];

    fn bucket() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for key in KEYS {
            let path = folder.path().join(key);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, key).expect("a file");
        }
        fs::create_dir_all(folder.path().join("empty/inside")).expect("a folder");
        folder
    }

    /// Every page of a listing, its keys and folders in one list.
    fn listed(bucket: &Path, mut query: Query) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let page = page(bucket, &query).expect("a page");
            let mut found: Vec<String> =
                page.objects.into_iter().map(|object| object.key).collect();
            found.extend(page.folders);
            assert!(found.len() <= query.limit);
            found.sort();
            all.extend(found);
            let Some(next) = page.next else { return all };
            query.after = next;
        }
    }

    fn query(prefix: &str, by_folder: bool, limit: usize) -> Query {
        Query { prefix: prefix.to_owned(), by_folder, limit, ..Query::default() }
    }

    #[test]
    fn keys_come_in_the_order_of_their_bytes_whatever_the_page() {
        let bucket = bucket();
        for limit in 1..=KEYS.len() + 1 {
            assert_eq!(listed(bucket.path(), query("", false, limit)), KEYS, "pages of {limit}");
        }
    }

    #[test]
    fn folders_that_hold_keys_are_listed_once_and_empty_ones_never() {
        let bucket = bucket();
        for limit in 1..=7 {
            let found = listed(bucket.path(), query("", true, limit));
            assert_eq!(found, ["a!", "a.json", "a/", "a0", "b/", "c.json"], "pages of {limit}");
        }
        assert_eq!(listed(bucket.path(), query("a/", true, 1)), ["a/b.json", "a/b/"]);
    }

    #[test]
    fn a_prefix_need_not_end_at_a_slash() {
        let bucket = bucket();
        assert_eq!(
            listed(bucket.path(), query("a/b", false, 2)),
            ["a/b.json", "a/b/c.json", "a/b/d.json"]
        );
        assert_eq!(listed(bucket.path(), query("b/y/z.json", false, 2)), ["b/y/z.json"]);
        assert_eq!(listed(bucket.path(), query("a.json/", false, 2)), [""; 0]);
        assert_eq!(listed(bucket.path(), query("nothing/here", false, 2)), [""; 0]);
    }

    #[test]
    fn a_prefix_that_would_leave_the_bucket_lists_nothing() {
        let bucket = bucket();
        let inside = bucket.path().join("a");
        assert_eq!(listed(&inside, query("../", false, 9)), [""; 0]);
        assert_eq!(listed(&inside, query("b/../../", false, 9)), [""; 0]);
    }

    #[test]
    fn a_listing_begins_after_any_key_even_inside_a_folder() {
        let bucket = bucket();
        let after =
            |after: &str, by_folder| Query { after: after.to_owned(), ..query("", by_folder, 9) };
        assert_eq!(
            listed(bucket.path(), after("a/b/c.json", false)),
            ["a/b/d.json", "a0", "b/x.json", "b/y/z.json", "c.json"]
        );
        assert_eq!(listed(bucket.path(), after("a/b.json", true)), ["a/", "a0", "b/", "c.json"]);
        assert_eq!(listed(bucket.path(), after("a/b/d.json", true)), ["a0", "b/", "c.json"]);
        assert_eq!(listed(bucket.path(), after("zzz", false)), [""; 0]);
    }
}
