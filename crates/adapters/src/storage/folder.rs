//! Stores objects as files in a folder; the key is the path.
//!
//! Blocking work runs on separate threads. A file is written under a temporary name and then moved
//! into place, so a reader sees it whole or not at all.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use crate::error_words::io_words;

use super::lock::Lock;
use super::{
    Fetched, ListRequest, Page, PutOutcome, Replaced, StorageError, StoredVersion, Version, listing,
};

/// Prefix of temporary names, followed by the process id and a number. No segment of a key may be
/// such a name.
const TEMPORARY: &str = ".lastmile-";
/// Maximum number of tries of a write while concurrent deletes remove its folder, or other
/// processes use its temporary names. Concurrent deletes can remove the folder many times in a row,
/// so a few tries are not enough.
const TRIES_MAX: u32 = 1_000;
/// Id of a file's only version.
const CURRENT: &str = "current";

/// Number of writes by this process, which makes temporary names unique.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A folder on this machine in which each object is a file.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Path of the folder, which may be missing before the first write.
    pub(super) root: Arc<Path>,
    /// Returns true if a name may be a segment of a key. A name must also satisfy the general
    /// rules.
    pub(super) is_name: fn(&str) -> bool,
}

impl Folder {
    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let path = self.path(key)?;
        blocking(move || unless_missing(std::fs::read(path))).await
    }

    pub(super) async fn get_at_most(
        &self,
        max_bytes: u64,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        let (path, known_etag) = (self.path(key)?, known_etag.map(str::to_owned));
        let found = move || unless_missing(read(&path, known_etag, max_bytes));
        match blocking(found).await? {
            None => Ok(Fetched::Missing),
            Some(Ok(fetched)) => Ok(fetched),
            Some(Err(bytes)) => Err(StorageError::TooLarge { bytes, max_bytes }),
        }
    }

    pub(super) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        let path = self.path(key)?;
        blocking(move || replace(&path, &bytes)).await
    }

    pub(super) async fn put_if_absent(
        &self,
        key: &str,
        bytes: Vec<u8>,
        _tag: Option<&str>,
    ) -> Result<PutOutcome, StorageError> {
        let path = self.path(key)?;
        blocking(move || {
            write(&path, &bytes, |temporary| {
                let _held = dated(temporary, &path)?;
                link(temporary, &path)
            })
        })
        .await
    }

    pub(super) async fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
    ) -> Result<Replaced, StorageError> {
        let (path, known_etag) = (self.path(key)?, known_etag.map(str::to_owned));
        blocking(move || replace_known(&path, &bytes, known_etag.as_deref())).await
    }

    pub(super) async fn versions(&self, key: &str) -> Result<Vec<Version>, StorageError> {
        let path = self.path(key)?;
        blocking(move || {
            let current = listing::file(&path)?.map(|metadata| Version {
                id: CURRENT.to_owned(),
                modified_ms: modified_ms(&metadata),
                description: path.display().to_string(),
                is_current: true,
            });
            Ok(current.into_iter().collect())
        })
        .await
    }

    pub(super) async fn get_version(
        &self,
        max_bytes: u64,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredVersion>, StorageError> {
        if id != CURRENT {
            return Ok(None);
        }
        Ok(match self.get_at_most(max_bytes, key, None).await? {
            Fetched::Changed { bytes, .. } => {
                Some(StoredVersion { bytes, metadata: super::Metadata::new() })
            }
            Fetched::Missing | Fetched::Unchanged => None,
        })
    }

    pub(super) async fn list_page(&self, request: &ListRequest) -> Result<Page, StorageError> {
        // A prefix need not end in a slash. The part up to its last slash is a folder.
        let base = request.prefix.rfind('/').and_then(|slash| request.prefix.get(..=slash));
        let base = base.unwrap_or_default();
        let folder = match base.strip_suffix('/') {
            Some(folder) => self.path(folder)?,
            None => self.root.to_path_buf(),
        };
        let (own, base, request) = (self.clone(), base.to_owned(), request.clone());
        blocking(move || listing::page(&folder, &base, &request, |name| own.is_segment(name))).await
    }

    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), StorageError> {
        // Check all keys before removing the first file.
        let paths = keys.iter().map(|key| self.path(key)).collect::<Result<Vec<_>, _>>()?;
        let root = Arc::clone(&self.root);
        blocking(move || paths.iter().try_for_each(|path| remove(&root, path))).await
    }

    /// Returns the path of the file for a key, which is always inside the folder.
    fn path(&self, key: &str) -> Result<PathBuf, StorageError> {
        let mut path = self.root.to_path_buf();
        for segment in key.split('/') {
            if !self.is_segment(segment) {
                return Err(StorageError::InvalidKey(key.to_owned()));
            }
            path.push(segment);
        }
        Ok(path)
    }

    /// True if a name can be the part of a key between two slashes.
    fn is_segment(&self, name: &str) -> bool {
        // On Windows a backslash separates folders as well.
        let is_path = matches!(name, "" | "." | "..") || name.contains(MAIN_SEPARATOR);
        !is_path && !name.contains('\0') && !is_temporary(name) && (self.is_name)(name)
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.display().fmt(f)
    }
}

/// Runs blocking work on another thread, because the function's only thread must not wait for a
/// disk.
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
    let text = io_words(error);
    if is_refused { StorageError::Refused(text) } else { StorageError::Unavailable(text) }
}

/// Turns the error for a missing file into `None`. Does the same if the path has a folder where a
/// file is expected, or a file where a folder is expected.
pub(super) fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
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

/// Reads a file, or returns its size if the file exceeds the limit.
fn read(
    path: &Path,
    known_etag: Option<String>,
    max_bytes: u64,
) -> io::Result<Result<Fetched, u64>> {
    // Read the metadata from the open file, because a different file may be moved into its place
    // meanwhile.
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let etag = etag(&metadata);
    if known_etag.as_ref() == Some(&etag) {
        return Ok(Ok(Fetched::Unchanged));
    }
    if metadata.len() > max_bytes {
        return Ok(Err(metadata.len()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Ok(Fetched::Changed { bytes, etag, modified_ms: modified_ms(&metadata) }))
}

/// Returns the ETag of a file. The ETag contains the length, because two quick writes without a
/// lock may have the same modification time.
pub(super) fn etag(metadata: &Metadata) -> String {
    format!("{:?} {}", metadata.modified().ok(), metadata.len())
}

/// Returns the modification time; 0 if the file system has none.
pub(super) fn modified_ms(metadata: &Metadata) -> u64 {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, |temporary| {
        let _held = dated(temporary, path)?;
        std::fs::rename(temporary, path)
    })
}

/// Replaces a file if it still has the ETag `known_etag`; `None` means that no file may exist. A
/// lock prevents other writes and deletes between comparison and replacement.
fn replace_known(path: &Path, bytes: &[u8], known_etag: Option<&str>) -> io::Result<Replaced> {
    let is_known =
        || Ok::<_, io::Error>(listing::file(path)?.as_ref().map(etag).as_deref() == known_etag);
    // Check before locking too, so that no folder is created if nothing will be written.
    if !is_known()? {
        return Ok(Replaced::Changed);
    }
    let lock = in_folder(path, Lock::hold)?;
    if !is_known()? {
        return Ok(Replaced::Changed);
    }
    write(path, bytes, |temporary| {
        let etag = etag(&lock.date(temporary, path)?);
        let outcome = match known_etag {
            Some(_) => std::fs::rename(temporary, path).map(|()| PutOutcome::Written),
            None => link(temporary, path),
        };
        Ok(match outcome? {
            PutOutcome::Written => Replaced::Written { etag },
            PutOutcome::AlreadyExists => Replaced::Changed,
        })
    })
}

/// Moves the temporary file into place by a hard link. Unlike a rename, a link fails if the file
/// exists, so the first writer wins.
fn link(temporary: &Path, path: &Path) -> io::Result<PutOutcome> {
    match std::fs::hard_link(temporary, path) {
        Ok(()) => Ok(PutOutcome::Written),
        // A folder in its place is an error, not an existing object.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_file() => {
            Ok(PutOutcome::AlreadyExists)
        }
        Err(error) => Err(error),
    }
}

/// Makes the modification time of a temporary file later than that of the file in `path`. Returns
/// the lock that prevents replacements until the temporary file is moved to `path`. In a folder
/// without a lock file, returns `None`, because no file there is replaced conditionally.
fn dated(temporary: &Path, path: &Path) -> io::Result<Option<Lock>> {
    let lock = Lock::hold_if_made(folder_of(path))?;
    lock.as_ref().map(|lock| lock.date(temporary, path)).transpose()?;
    Ok(lock)
}

/// Writes a temporary file in the folder of `path`, on the same file system, and passes its path to
/// `put_in_place`.
fn write<T>(
    path: &Path,
    bytes: &[u8],
    put_in_place: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let temporary = in_folder(path, temporary)?;
    let written = std::fs::write(&temporary, bytes).and_then(|()| put_in_place(&temporary));
    // A rename has moved the temporary file; a link or a failure leaves it.
    let _ = std::fs::remove_file(&temporary);
    written
}

/// Creates a new empty file with a temporary name, and never opens an existing one. A killed
/// process with the same id may have left a file of that name as a second link to an object, which
/// a write would change. A process with the same id in another container may be writing the file.
fn temporary(folder: &Path) -> io::Result<PathBuf> {
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
    File::create_new(&path).map(|_| path)
}

/// Creates a file in the folder of `path`, and creates the folder if it is missing.
fn in_folder<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = folder_of(path);
    let begin = || std::fs::create_dir_all(folder).and_then(|()| make(folder));
    let mut begun = begin();
    for _ in 1..TRIES_MAX {
        // Concurrent deletes remove empty folders, so this folder may disappear before the file
        // exists. A file may also have the name of the folder.
        let raced = [ErrorKind::NotFound, ErrorKind::AlreadyExists];
        if !matches!(&begun, Err(error) if raced.contains(&error.kind())) {
            break;
        }
        begun = begin();
    }
    begun
}

fn folder_of(path: &Path) -> &Path {
    path.parent().expect("a key has at least one segment")
}

fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix(TEMPORARY).and_then(|numbers| numbers.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes a file, and the folders that become empty.
fn remove(root: &Path, path: &Path) -> io::Result<()> {
    let held = Lock::hold_if_made(folder_of(path))?;
    let removed = std::fs::remove_file(path);
    drop(held);
    match removed {
        // Unlinking a folder fails with EISDIR on Linux, and with EPERM elsewhere.
        Err(error) if !is_missing(&error) && !path.is_dir() => return Err(error),
        Ok(()) | Err(_) => {}
    }
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != root) {
        // A folder that is not empty cannot be removed, and neither can its parents.
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use super::super::Storage;
    use super::*;

    const WRITERS: u64 = 8;
    const ROUNDS: u64 = 300;

    #[test]
    fn of_writers_that_begin_together_exactly_one_finds_the_key_absent() {
        let root = tempfile::tempdir().expect("a folder");
        let (root, start) = (root.path(), &Barrier::new(WRITERS as usize));
        let wins: Vec<Vec<bool>> = thread::scope(|scope| {
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || wins(root, start, writer))).collect();
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
        });
        for round in 0..ROUNDS {
            let winners = wins.iter().filter(|wins| wins[round as usize]).count();
            assert_eq!(winners, 1, "in round {round}");
        }
    }

    /// The rounds that a writer won. Each round has its own key, and temporary files are written
    /// before the barrier, so that the links race.
    fn wins(root: &Path, start: &Barrier, writer: u64) -> Vec<bool> {
        let rounds = 0..ROUNDS;
        let wins = rounds.map(|round| {
            let path = root.join(format!("bucket/{round}"));
            let link = |temporary: &Path| {
                start.wait();
                std::fs::hard_link(temporary, &path)
            };
            write(&path, writer.to_string().as_bytes(), link).is_ok()
        });
        wins.collect()
    }

    fn path(key: &str) -> Result<PathBuf, StorageError> {
        Folder { root: Path::new("/data/bucket").into(), is_name: |_| true }.path(key)
    }

    #[test]
    fn a_key_lies_inside_its_folder() {
        let path = path("ns/a%2F..%2Fb/2026/.hidden.json");
        assert_eq!(path, Ok("/data/bucket/ns/a%2F..%2Fb/2026/.hidden.json".into()));
    }

    #[test]
    fn a_key_that_would_leave_its_folder_is_refused() {
        for key in
            ["../x", "a/../../x", "..", "/etc/passwd", "a//b", "a/", ".", "a/./b", "", "a/\0b"]
        {
            assert!(path(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn a_write_succeeds_while_deletes_empty_its_folder() {
        let root = tempfile::tempdir().expect("a folder");
        let (root, path) = (root.path(), &root.path().join("bucket/folder/file"));
        let is_done = &AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    remove(root, path).expect("a delete");
                    // Without a pause, a busy machine might never run a write between two deletes.
                    thread::sleep(Duration::from_micros(50));
                }
            });
            let writes: Vec<_> = (0..ROUNDS * 10).map(|_| replace(path, b"x")).collect();
            is_done.store(true, Ordering::Relaxed);
            let failed = writes.into_iter().find_map(Result::err);
            assert!(failed.is_none(), "{failed:?}");
        });
    }

    #[tokio::test]
    async fn beside_a_lock_no_write_brings_an_etag_back_though_the_clock_is_set_back() {
        let root = tempfile::tempdir().expect("a folder");
        let storage = Storage::folder(root.path());
        replace_with_digit(&storage, None).await;
        let file = File::options().write(true).open(root.path().join("a")).expect("the file");
        let modified = file.metadata().and_then(|file| file.modified()).expect("a time");
        file.set_modified(modified + Duration::from_secs(3_600)).expect("a time");
        let mut times = vec![read_time(&storage).await];
        for write in ["replace", "put", "put", "create", "put if absent", "replace", "put"] {
            let known = times.last().map(|(_, etag)| etag.as_str());
            if matches!(write, "create" | "put if absent") {
                storage.delete(&["a".to_owned()]).await.expect("a delete");
            }
            match write {
                "replace" => replace_with_digit(&storage, known).await,
                "create" => replace_with_digit(&storage, None).await,
                "put" => storage.put("a", b"1".to_vec()).await.expect("a put"),
                _ => {
                    let put = storage.put_if_absent("a", b"1".to_vec(), None).await;
                    assert_eq!(put, Ok(PutOutcome::Written));
                }
            }
            times.push(read_time(&storage).await);
        }
        assert!(times.iter().all(|(modified_ms, _)| *modified_ms >= times[0].0), "{times:?}");
        let etags: BTreeSet<&String> = times.iter().map(|(_, etag)| etag).collect();
        assert_eq!(etags.len(), times.len(), "{times:?}");
    }

    async fn replace_with_digit(storage: &Storage, known_etag: Option<&str>) {
        let replaced = storage.replace("a", b"1".to_vec(), known_etag).await;
        assert!(matches!(replaced, Ok(Replaced::Written { .. })), "{replaced:?}");
    }

    async fn read_time(storage: &Storage) -> (u64, String) {
        match storage.get_if_changed("a", None).await {
            Ok(Fetched::Changed { modified_ms, etag, .. }) => (modified_ms, etag),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_killed_process_of_the_same_id_left_is_not_written_to() {
        let root = tempfile::tempdir().expect("a folder");
        let (object, other) = (root.path().join("object"), root.path().join("other"));
        replace(&object, b"content").expect("a write");
        // Simulates a process that was killed between the link and the removal, at any of the next
        // writes.
        let next = WRITES.load(Ordering::Relaxed);
        let left = |number| root.path().join(format!("{TEMPORARY}{}-{number}", std::process::id()));
        for number in next..next + 200 {
            std::fs::hard_link(&object, left(number)).expect("a link");
        }
        replace(&other, b"other content").expect("a write");
        assert_eq!(std::fs::read(&object).expect("a file"), b"content");
        assert_eq!(std::fs::read(&other).expect("a file"), b"other content");
    }

    #[tokio::test]
    async fn any_name_of_a_file_can_be_a_key() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("a")).expect("a folder");
        std::fs::write(root.path().join("a/tab\tbed.json"), "x").expect("a file");
        let storage = Storage::folder(root.path());
        let page = storage.list_page(&ListRequest::default()).await.expect("a page");
        assert_eq!(page.entries[0].key, "a/tab\tbed.json");
        assert_eq!(storage.get("a/tab\tbed.json").await, Ok(Some(b"x".to_vec())));
    }

    #[test]
    fn a_temporary_file_has_the_numbers_of_a_process_and_of_a_write() {
        let is_one = |numbers: &str| is_temporary(&format!("{TEMPORARY}{numbers}"));
        assert!(is_one("12-3"));
        for numbers in ["", "12", "-", "12-", "-3", "12-a", "a-3", "12-3-4"] {
            assert!(!is_one(numbers), "{numbers:?}");
        }
        assert!(!is_temporary("12-3"));
    }

    #[test]
    fn a_folder_in_the_place_of_an_object_is_no_object() {
        let root = tempfile::tempdir().expect("a folder");
        let (file, folder) = (root.path().join("file"), root.path().join("folder"));
        std::fs::write(&file, "text").expect("a file");
        std::fs::create_dir(&folder).expect("a folder");
        assert!(link(&file, &folder).is_err());
        let other = root.path().join("other");
        assert!(matches!(link(&file, &other), Ok(PutOutcome::Written)));
        assert!(matches!(link(&file, &other), Ok(PutOutcome::AlreadyExists)));
        let missing = root.path().join("missing");
        assert!(link(&missing, &root.path().join("new")).is_err());
        assert!(link(&missing, &file).is_err());
        // Removing a missing object is not a failure.
        assert!(remove(root.path(), &folder).is_ok() && folder.is_dir());
        assert!(remove(root.path(), &missing).is_ok());
    }
}
