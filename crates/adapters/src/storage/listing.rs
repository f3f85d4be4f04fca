//! Lists the files of a folder as keys, in S3's order, one page at a time.
//!
//! Separate because order and paging are subtle.
//!
//! Promises: keys are sorted by their bytes. Each key and folder occurs once over all pages. Only
//! folders under the prefix are read. An empty folder is not listed, because it contains no key. A
//! symbolic link to a folder is not listed either. A link to a parent folder would repeat the
//! listing inside itself. Any other link could lead listings, and the deletes that follow them, out
//! of the root.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::Path;

use super::folder::{etag, modified_ms, unless_missing};
use super::{Entry, ListRequest, PAGE_MAX, Page};

/// Returns the requested page. All keys in this folder begin with `base`; their segments are names
/// that `is_segment` accepts.
///
/// # Errors
/// Fails if a folder cannot be read. A file or folder that is deleted concurrently is omitted.
pub(super) fn page(
    folder: &Path,
    base: &str,
    request: &ListRequest,
    is_segment: impl Fn(&str) -> bool,
) -> io::Result<Page> {
    // As in S3, a page token replaces `start_after`.
    let after = request.page_token.as_deref().or(request.start_after.as_deref());
    let mut walk = Walk {
        prefix: &request.prefix,
        after: after.unwrap_or_default(),
        by_folder: request.by_folder,
        max_keys: request.max_keys.map_or(PAGE_MAX, usize::from).min(PAGE_MAX),
        is_segment,
        page: Page::default(),
    };
    if walk.max_keys > 0 {
        walk.folder(folder, base)?;
    }
    Ok(walk.page)
}

struct Walk<'a, S> {
    prefix: &'a str,
    after: &'a str,
    by_folder: bool,
    max_keys: usize,
    is_segment: S,
    page: Page,
}

impl<S: Fn(&str) -> bool> Walk<'_, S> {
    /// Adds the contents of a folder, whose keys begin with `base`, until the page is full.
    fn folder(&mut self, folder: &Path, base: &str) -> io::Result<()> {
        let mut names = self.names(folder)?.collect::<io::Result<Vec<_>>>()?;
        // Names of folders already end in a slash, so `a-b` and `a.b` sort before `a/`, as keys do.
        names.sort_unstable();
        for name in names {
            let (path, key) = (folder.join(&name), format!("{base}{name}"));
            if !key.starts_with(self.prefix) {
                continue;
            }
            if key.ends_with('/') {
                self.subfolder(&path, key)?;
            } else if key.as_str() > self.after {
                self.file(&path, key)?;
            }
            if self.page.next.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, key: String) -> io::Result<()> {
        if let Some(metadata) = file(path)?
            && self.has_room()
        {
            let modified_ms = modified_ms(&metadata);
            let (bytes, etag) = (metadata.len(), etag(&metadata));
            self.page.entries.push(Entry { key, bytes, modified_ms, etag });
        }
        Ok(())
    }

    fn subfolder(&mut self, folder: &Path, key: String) -> io::Result<()> {
        if self.is_passed(&key) {
            return Ok(());
        }
        if !self.by_folder {
            return self.folder(folder, &key);
        }
        if key != self.after && self.holds_more(folder, &key)? && self.has_room() {
            self.page.folders.push(key);
        }
        Ok(())
    }

    /// True if the folder has a key that sorts after the page's start key. One such key suffices,
    /// so the names are not sorted.
    fn holds_more(&self, folder: &Path, base: &str) -> io::Result<bool> {
        for name in self.names(folder)? {
            let name = name?;
            let (path, key) = (folder.join(&name), format!("{base}{name}"));
            let is_more = if key.ends_with('/') {
                !self.is_passed(&key) && self.holds_more(&path, &key)?
            } else {
                key.as_str() > self.after && file(&path)?.is_some()
            };
            if is_more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if all keys of the folder are before the beginning of the page.
    fn is_passed(&self, folder: &str) -> bool {
        folder <= self.after && !self.after.starts_with(folder)
    }

    /// True if the page has space for one more entry; if it has none, sets the token of the next
    /// page. Called only before another entry is added, so a page that just fits has no next page.
    fn has_room(&mut self) -> bool {
        let Page { entries, folders, next } = &mut self.page;
        let has_room = entries.len() + folders.len() < self.max_keys;
        if !has_room {
            *next = entries.last().map(|entry| &entry.key).max(folders.last()).cloned();
        }
        has_room
    }

    /// Returns the names in a folder that can be part of a key. Names of folders end in `/`.
    fn names(&self, folder: &Path) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        // As in a bucket, a missing folder contains no keys, and is not an error.
        let entries = unless_missing(fs::read_dir(folder))?.into_iter().flatten();
        Ok(entries.filter_map(|entry| self.name(entry).transpose()))
    }

    fn name(&self, entry: io::Result<DirEntry>) -> io::Result<Option<String>> {
        let entry = entry?;
        // A name that is not UTF-8 cannot be in a key.
        let name = entry.file_name().into_string().ok();
        let Some(name) = name.filter(|name| (self.is_segment)(name)) else { return Ok(None) };
        // The type of a link itself, not of its target.
        let is_folder = entry.file_type()?.is_dir();
        Ok(Some(if is_folder { name + "/" } else { name }))
    }
}

/// Returns the metadata of the file at this path; follows links. Returns `None` if nothing exists
/// at the path, or if it leads to a folder, a pipe or a device.
pub(super) fn file(path: &Path) -> io::Result<Option<Metadata>> {
    Ok(unless_missing(fs::metadata(path))?.filter(Metadata::is_file))
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

    /// Returns the keys and folders of all pages of a listing, in one list.
    fn listed(bucket: &Path, mut request: ListRequest) -> Vec<String> {
        let base = request.prefix.rfind('/').map_or("", |slash| &request.prefix[..=slash]);
        let (folder, base) = (bucket.join(base), base.to_owned());
        let mut all = Vec::new();
        loop {
            let page = page(&folder, &base, &request, |_| true).expect("a page");
            let mut found: Vec<String> = page.entries.into_iter().map(|entry| entry.key).collect();
            found.extend(page.folders);
            assert!(found.len() <= usize::from(request.max_keys.expect("it is set")));
            found.sort();
            all.extend(found);
            request.page_token = page.next;
            if request.page_token.is_none() {
                return all;
            }
        }
    }

    fn request(prefix: &str, by_folder: bool, max_keys: u16) -> ListRequest {
        let (prefix, max_keys) = (prefix.to_owned(), Some(max_keys));
        ListRequest { prefix, by_folder, max_keys, ..ListRequest::default() }
    }

    #[test]
    fn keys_come_in_the_order_of_their_bytes_whatever_the_page() {
        let bucket = bucket();
        for limit in 1..=10 {
            assert_eq!(listed(bucket.path(), request("", false, limit)), KEYS, "pages of {limit}");
        }
    }

    #[test]
    fn folders_that_hold_keys_are_listed_once_and_empty_ones_never() {
        let bucket = bucket();
        for limit in 1..=7 {
            let found = listed(bucket.path(), request("", true, limit));
            assert_eq!(found, ["a!", "a.json", "a/", "a0", "b/", "c.json"], "pages of {limit}");
        }
        assert_eq!(listed(bucket.path(), request("a/", true, 1)), ["a/b.json", "a/b/"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_to_folders_are_not_followed() {
        use std::os::unix::fs::symlink;

        let (bucket, outside) = (bucket(), bucket());
        for (to, link) in [(Path::new("."), "a/itself"), (outside.path(), "b/outside")] {
            symlink(to, bucket.path().join(link)).expect("a link");
        }
        assert_eq!(listed(bucket.path(), request("", false, 2)), KEYS);
        fs::remove_file(bucket.path().join("b/x.json")).expect("a file");
        fs::remove_dir_all(bucket.path().join("b/y")).expect("a folder");
        assert_eq!(
            listed(bucket.path(), request("", true, 9)),
            ["a!", "a.json", "a/", "a0", "c.json"]
        );
        symlink("c.json", bucket.path().join("d.json")).expect("a link");
        assert_eq!(listed(bucket.path(), request("d", false, 2)), ["d.json"]);
    }

    #[test]
    fn a_page_of_no_keys_reads_nothing() {
        let bucket = bucket();
        let unread = |_: &str| panic!("a name is read");
        let page = page(bucket.path(), "", &request("", false, 0), unread).expect("a page");
        assert_eq!(page, Page::default());
    }

    #[test]
    fn a_prefix_need_not_end_at_a_slash() {
        let bucket = bucket();
        assert_eq!(
            listed(bucket.path(), request("a/b", false, 2)),
            ["a/b.json", "a/b/c.json", "a/b/d.json"]
        );
        assert_eq!(listed(bucket.path(), request("b/y/z.json", false, 2)), ["b/y/z.json"]);
        assert_eq!(listed(bucket.path(), request("a.json/", false, 2)), [""; 0]);
        assert_eq!(listed(bucket.path(), request("nothing/here", false, 2)), [""; 0]);
    }

    #[test]
    fn a_listing_begins_after_any_key_even_inside_a_folder() {
        let bucket = bucket();
        let after = |after: &str, by_folder| {
            let start_after = Some(after.to_owned());
            ListRequest { start_after, ..request("", by_folder, 9) }
        };
        assert_eq!(
            listed(bucket.path(), after("a/b/c.json", false)),
            ["a/b/d.json", "a0", "b/x.json", "b/y/z.json", "c.json"]
        );
        assert_eq!(listed(bucket.path(), after("a/b.json", true)), ["a/", "a0", "b/", "c.json"]);
        assert_eq!(listed(bucket.path(), after("a/b/d.json", true)), ["a0", "b/", "c.json"]);
        assert_eq!(listed(bucket.path(), after("zzz", false)), [""; 0]);
    }
}
