//! Files below a folder: the key is the path.
//!
//! Blocking work runs on threads of its own. A file is written beside its place and then moved
//! into it, so a reader sees it whole or not at all.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use super::{Entry, Fetched, ListRequest, PAGE_MAX, Page, PutOutcome, StorageError, Version};

/// What the names of files begin with that are being written: the id of the process and a number
/// follow. No segment of a key is such a name.
const TEMPORARY: &str = ".lastmile-";
/// The id of the version that a file has now.
const CURRENT: &str = "current";
/// The id of the one earlier version of a file, and the extension that is added to its name.
const PREVIOUS: &str = "previous";

/// How many files this process has begun to write: no two have the same temporary name.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A folder of files.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Arc<Path>,
}

impl Folder {
    /// The files below this folder, which need not exist before the first write.
    #[must_use]
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self { root: root.as_ref().into() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let path = self.path(key)?;
        blocking(move || unless_missing(std::fs::read(path))).await
    }

    pub(super) async fn get_if_changed(
        &self,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        let (path, known_etag) = (self.path(key)?, known_etag.map(str::to_owned));
        blocking(move || Ok(unless_missing(read(&path, known_etag))?.unwrap_or(Fetched::Missing)))
            .await
    }

    pub(super) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        let path = self.path(key)?;
        blocking(move || replace(&path, &bytes)).await
    }

    pub(super) async fn put_if_absent(
        &self,
        key: &str,
        bytes: Vec<u8>,
    ) -> Result<PutOutcome, StorageError> {
        let path = self.path(key)?;
        blocking(move || {
            // Unlike a rename, a hard link fails where there is a file: the first one wins.
            match write(&path, &bytes, |temporary| std::fs::hard_link(temporary, &path)) {
                Ok(()) => Ok(PutOutcome::Written),
                // A folder in its place is a failure, not an object that is there.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_file() => {
                    Ok(PutOutcome::AlreadyExists)
                }
                Err(error) => Err(error),
            }
        })
        .await
    }

    pub(super) async fn put_version(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        let path = self.path(key)?;
        blocking(move || {
            // A folder that does not exist is more likely a mistyped path than a new one.
            path.parent().map_or(Ok(()), |folder| std::fs::metadata(folder).map(drop))?;
            if let Some(old) = unless_missing(std::fs::read(&path))? {
                // The copy first: if this fails, the current file is as it was.
                replace(&previous(&path), &old)?;
            }
            replace(&path, &bytes)
        })
        .await
    }

    pub(super) async fn versions(&self, key: &str) -> Result<Vec<Version>, StorageError> {
        let path = self.path(key)?;
        blocking(move || {
            let versions = [(CURRENT, path.clone()), (PREVIOUS, previous(&path))];
            let existing = versions.into_iter().filter(|(_, path)| path.is_file());
            let version = |(id, path): (&str, PathBuf)| Version {
                id: id.to_owned(),
                description: path.display().to_string(),
                is_current: id == CURRENT,
            };
            Ok(existing.map(version).collect())
        })
        .await
    }

    pub(super) async fn get_version(
        &self,
        key: &str,
        id: &str,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let path = match (id, self.path(key)?) {
            (CURRENT, path) => path,
            (PREVIOUS, path) => previous(&path),
            _ => return Ok(None),
        };
        blocking(move || unless_missing(std::fs::read(path))).await
    }

    pub(super) async fn list_page(&self, request: &ListRequest) -> Result<Page, StorageError> {
        // A prefix need not end in a slash; the part before its last one is a folder.
        let base = request.prefix.rfind('/').map_or("", |slash| &request.prefix[..=slash]);
        let folder = match base {
            "" => self.root.to_path_buf(),
            base => self.path(&base[..base.len() - 1])?,
        };
        let (base, root, request) = (base.to_owned(), Arc::clone(&self.root), request.clone());
        blocking(move || {
            let mut names = Vec::new();
            collect_names(&folder, &base, request.by_folder, &mut names)?;
            names.retain(|name| name.starts_with(&request.prefix));
            page(&root, names, &request)
        })
        .await
    }

    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), StorageError> {
        // All keys are checked before anything is removed.
        let paths = keys.iter().map(|key| self.path(key)).collect::<Result<Vec<_>, _>>()?;
        let root = Arc::clone(&self.root);
        blocking(move || paths.iter().try_for_each(|path| remove(&root, path))).await
    }

    /// The file of a key. It always lies inside the folder.
    fn path(&self, key: &str) -> Result<PathBuf, StorageError> {
        let mut path = self.root.to_path_buf();
        for segment in key.split('/') {
            // On Windows a backslash would lead into a folder as well.
            let is_path = matches!(segment, "" | "." | "..") || segment.contains(MAIN_SEPARATOR);
            if is_path || segment.contains('\0') || is_temporary(segment) {
                return Err(StorageError::InvalidKey(key.to_owned()));
            }
            path.push(segment);
        }
        Ok(path)
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.display().fmt(f)
    }
}

/// Runs blocking work on a thread of its own: the function's one thread must not wait for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StorageError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| failure(&error)),
        Err(error) => Err(StorageError::Unavailable(error.to_string())),
    }
}

fn failure(error: &io::Error) -> StorageError {
    let is_refused =
        matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    let text = error.to_string();
    if is_refused { StorageError::Refused(text) } else { StorageError::Unavailable(text) }
}

/// `None` for nothing, and for a folder where a file would have to be or the other way round.
fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    use ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

fn read(path: &Path, known_etag: Option<String>) -> io::Result<Fetched> {
    // Looked at before the content: a file that changes in between is read once more, not missed.
    let metadata = std::fs::metadata(path)?;
    // The length too: two quick writes may have one modification time.
    let etag = format!("{:?} {}", metadata.modified().ok(), metadata.len());
    if known_etag.as_ref() == Some(&etag) {
        return Ok(Fetched::Unchanged);
    }
    Ok(Fetched::Changed { bytes: std::fs::read(path)?, etag })
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, |temporary| std::fs::rename(temporary, path))
}

/// Writes a temporary file beside the path, on the same file system, and lets it be put in place.
fn write(
    path: &Path,
    bytes: &[u8],
    put_in_place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().expect("a key has at least one segment");
    std::fs::create_dir_all(folder)?;
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
    let written = std::fs::write(&temporary, bytes).and_then(|()| put_in_place(&temporary));
    // A rename has moved it away; a link, or a failure, has left it.
    let _ = std::fs::remove_file(&temporary);
    written
}

fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix(TEMPORARY).and_then(|numbers| numbers.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

fn previous(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(PREVIOUS);
    name.into()
}

/// Removes a file, and the folders that it leaves empty.
fn remove(root: &Path, path: &Path) -> io::Result<()> {
    unless_missing(std::fs::remove_file(path))?;
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != root) {
        // A folder that is not empty is refused, and so are all above it.
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

/// The keys below a folder; with `by_folder` its own entries alone, folders with a slash.
fn collect_names(
    folder: &Path,
    base: &str,
    by_folder: bool,
    names: &mut Vec<String>,
) -> io::Result<()> {
    // A folder that does not exist holds no keys: no error, as in a bucket.
    for entry in unless_missing(std::fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry?;
        // A name that is not UTF-8 cannot be a key.
        let name = entry.file_name().to_str().map(str::to_owned);
        let Some(name) = name.filter(|name| !is_temporary(name)) else { continue };
        match (entry.file_type()?.is_dir(), by_folder) {
            (true, true) => names.push(format!("{base}{name}/")),
            (true, false) => {
                collect_names(&entry.path(), &format!("{base}{name}/"), false, names)?;
            }
            (false, _) => names.push(format!("{base}{name}")),
        }
    }
    Ok(())
}

/// The page of these names that a request asks for.
fn page(root: &Path, mut names: Vec<String>, request: &ListRequest) -> io::Result<Page> {
    // Keys are unique, so an unstable sort gives S3's order, that of bytes.
    names.sort_unstable();
    // As S3 does: a token takes the place of where the listing began.
    let after = request.page_token.as_ref().or(request.start_after.as_ref());
    let first = after.map_or(0, |after| names.partition_point(|name| name <= after));
    let last = names.len().min(first + PAGE_MAX);
    let next = (last < names.len()).then(|| names[last - 1].clone());
    let mut page = Page { next, ..Page::default() };
    for name in names.drain(first..last) {
        if name.ends_with('/') {
            page.folders.push(name);
        } else if let Some(metadata) = unless_missing(std::fs::metadata(root.join(&name)))? {
            // A file that was removed after it was found is left out.
            let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let modified_ms = u64::try_from(modified.as_millis()).unwrap_or(u64::MAX);
            page.entries.push(Entry { key: name, bytes: metadata.len(), modified_ms });
        }
    }
    Ok(page)
}
