//! Dead letters as plain files, as the local S3 of `lastmile dev` keeps them: the key is the path.
//!
//! Blocking work runs on the threads for it. Content is written to a temporary file and then moved,
//! so that a reader sees a blob whole or not at all.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use super::{Blob, ListRequest, PAGE, Page, Storage, StorageFuture};

/// The beginning of the names of temporary files; no key begins like this.
const TEMPORARY: &str = ".lastmile-";

/// A folder of blobs.
pub(super) struct Folder {
    files: Arc<Files>,
}

/// Its blocking part.
struct Files {
    root: PathBuf,
    written: AtomicU64,
}

impl Folder {
    pub(super) fn new(root: &Path) -> Self {
        Self { files: Arc::new(Files { root: root.to_path_buf(), written: AtomicU64::new(0) }) }
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T> + Send + 'static,
    ) -> StorageFuture<'static, T> {
        let files = Arc::clone(&self.files);
        Box::pin(async move { Ok(tokio::task::spawn_blocking(move || work(&files)).await??) })
    }
}

impl Storage for Folder {
    fn list<'a>(&'a self, request: &'a ListRequest) -> StorageFuture<'a, Page> {
        let request = request.clone();
        self.spawn(move |files| files.page(&request))
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<Vec<u8>>> {
        let key = key.to_owned();
        self.spawn(move |files| match std::fs::read(files.path(&key)?) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> StorageFuture<'a, ()> {
        let key = key.to_owned();
        self.spawn(move |files| {
            files.write(&key, &bytes, |temporary, path| std::fs::rename(temporary, path))
        })
    }

    fn put_new<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> StorageFuture<'a, ()> {
        let key = key.to_owned();
        self.spawn(move |files| {
            // A link, unlike a move, fails when there is a file already: the first write wins.
            let linked = files.write(&key, &bytes, |temporary, path| {
                let linked = std::fs::hard_link(temporary, path);
                std::fs::remove_file(temporary).and(linked)
            });
            match linked {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        })
    }

    fn delete<'a>(&'a self, keys: &'a [String]) -> StorageFuture<'a, ()> {
        let keys = keys.to_vec();
        self.spawn(move |files| keys.iter().try_for_each(|key| files.delete(key)))
    }
}

impl Files {
    /// The file of a key. It is inside the folder whatever the key is.
    fn path(&self, key: &str) -> Result<PathBuf> {
        let mut path = self.root.clone();
        for segment in key.trim_end_matches('/').split('/') {
            if matches!(segment, "" | "." | "..") || segment.contains(std::path::MAIN_SEPARATOR) {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("{key:?} is not the key of a blob"),
                ));
            }
            path.push(segment);
        }
        Ok(path)
    }

    fn page(&self, request: &ListRequest) -> Result<Page> {
        let folder =
            if request.prefix.is_empty() { self.root.clone() } else { self.path(&request.prefix)? };
        let mut names = Vec::new();
        collect(&folder, &request.prefix, request.by_folder, &mut names)?;
        names.sort_unstable();
        let first = request
            .continuation
            .as_ref()
            .or(request.start_after.as_ref())
            .map_or(0, |after| names.partition_point(|name| name <= after));
        let last = names.len().min(first + PAGE);
        let mut page =
            Page { next: (last < names.len()).then(|| names[last - 1].clone()), ..Page::default() };
        for name in names.drain(first..last) {
            if name.ends_with('/') {
                page.folders.push(name);
            } else if let Some(modified_ms) = unless_missing(self.modified_ms(&name))? {
                page.blobs.push(Blob { key: name, modified_ms });
            }
        }
        Ok(page)
    }

    fn modified_ms(&self, key: &str) -> Result<u64> {
        let modified = std::fs::metadata(self.path(key)?)?.modified()?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Writes a temporary file, and moves it to the path of the key.
    fn write(
        &self,
        key: &str,
        bytes: &[u8],
        move_to: impl Fn(&Path, &Path) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(key)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = self.root.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
        std::fs::write(&temporary, bytes)?;
        move_to(&temporary, &path)
    }

    /// Removes a file, and the folders that are empty then.
    fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        unless_missing(std::fs::remove_file(&path))?;
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != self.root) {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// The keys below a folder; with `by_folder` only its own entries, folders with a slash.
fn collect(folder: &Path, base: &str, by_folder: bool, names: &mut Vec<String>) -> Result<()> {
    for entry in unless_missing(std::fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry?;
        let Some(name) = entry
            .file_name()
            .to_str()
            .map(str::to_owned)
            .filter(|name| !name.starts_with(TEMPORARY))
        else {
            continue;
        };
        match (entry.file_type()?.is_dir(), by_folder) {
            (true, true) => names.push(format!("{base}{name}/")),
            (true, false) => collect(&entry.path(), &format!("{base}{name}/"), false, names)?,
            (false, _) => names.push(format!("{base}{name}")),
        }
    }
    Ok(())
}

/// Whether there is no such file: nothing there, a folder, or a file in the place of a folder.
fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn unless_missing<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
