//! Caches objects of a container on disk, so that a second command reads only new objects.
//!
//! Each container has one file, and each object one line: its key, its ETag and its content. The
//! content is the summary of a dead letter, a dismissal, or the ledger of a finished job. These
//! objects rarely change, and the ETag reveals a change. Several processes append complete lines to
//! one file.
//!
//! Promises: returns only content that was read from an object with this key and this ETag. A
//! damaged line costs one request. An unusable file disables the cache; [`DiskCache::problem`] then
//! has the reason. Only the user can read the file. The size of the file is at most
//! [`FILE_MAX_BYTES`]. If stale lines fill more than half of the file, they are removed when the
//! file is opened.

use std::collections::{HashMap, HashSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::{Uuid, uuid};

use crate::cache_line::{line_head, read_line, write_line};

/// Maximum size of the cache file: about 200,000 dead letters. Further objects are read again each
/// time.
const FILE_MAX_BYTES: u64 = 256 << 20;
/// UUIDv5 namespace of the names of cache files. The file names are hashes, because the name of a
/// container may not be a valid file name.
const FILE_NAMESPACE: Uuid = uuid!("7d4c0f0e-53a1-5b0a-9a0b-8f0a3f6b1f57");

pub(crate) struct DiskCache {
    path: PathBuf,
    state: Mutex<State>,
}

/// The state of the cache file. The file is opened on first use, because most commands for a single
/// dead letter do not need it.
enum State {
    Closed,
    Open(CacheFile),
    Unusable(String),
}

/// An open cache file, and the position of each line.
struct CacheFile {
    file: File,
    bytes: u64,
    lines: HashMap<String, LinePlace>,
}

struct LinePlace {
    etag: String,
    offset: u64,
    bytes: usize,
}

impl DiskCache {
    /// Creates the cache of a container. Neither the folder nor the file has to exist.
    pub(crate) fn new(folder: &Path, container: &str) -> Self {
        let name = Uuid::new_v5(&FILE_NAMESPACE, container.as_bytes());
        let path = folder.join(format!("{name}.ndjson"));
        Self { path, state: Mutex::new(State::Closed) }
    }

    /// True if the object with this key and ETag is cached.
    pub(crate) fn has(&self, key: &str, etag: &str) -> bool {
        self.on_file(|file| Ok(file.place(key, etag).is_some())).unwrap_or_default()
    }

    /// Returns the ETag of the cached object with this key.
    pub(crate) fn etag(&self, key: &str) -> Option<String> {
        self.on_file(|file| Ok(file.lines.get(key).map(|place| place.etag.clone()))).flatten()
    }

    /// Returns the cached content of the object with this key and ETag.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str, etag: &str) -> Option<T> {
        let line = self.on_file(|file| file.line(key, etag)).flatten()?;
        read_line(&line, key)
    }

    /// Adds the content of an object to the cache.
    pub(crate) fn put(&self, key: &str, etag: &str, content: &impl Serialize) {
        // Without an ETag, a replaced object could not be detected.
        if !etag.is_empty() {
            let line = write_line(key, etag, content);
            self.on_file(|file| file.append(key, etag, &line));
        }
    }

    /// Removes the objects with these keys from the cache.
    pub(crate) fn forget(&self, keys: &HashSet<&str>) {
        self.on_file(|file| match file.lines.keys().any(|key| keys.contains(key.as_str())) {
            true => file.rewrite(&self.path, |key| !keys.contains(key)),
            false => Ok(()),
        });
    }

    /// Removes all objects for whose key `is_kept` returns false, if they fill more than half of
    /// the file.
    pub(crate) fn forget_missing(&self, is_kept: impl Fn(&str) -> bool) {
        self.on_file(|file| file.shrink(&self.path, is_kept));
    }

    /// Returns the reason why the cache file is unusable, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Unusable(problem) => Some(problem.clone()),
            State::Closed | State::Open(_) => None,
        }
    }

    /// Runs work on the open file, and opens the file if necessary. Returns `None` if the file is
    /// unusable.
    fn on_file<T>(&self, work: impl FnOnce(&mut CacheFile) -> io::Result<T>) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = match &mut *state {
            State::Unusable(_) => return None,
            State::Open(file) => work(file),
            State::Closed => CacheFile::open(&self.path).and_then(|mut file| {
                let done = work(&mut file);
                *state = State::Open(file);
                done
            }),
        };
        done.inspect_err(|error| {
            *state = State::Unusable(format!("{} cannot be used: {error}", self.path.display()));
        })
        .ok()
    }
}

impl CacheFile {
    /// Opens the cache file. Removes stale lines, which have a different version or were replaced,
    /// if they fill more than half of the file.
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = Self::read_places(path)?;
        file.shrink(path, |_| true)?;
        Ok(file)
    }

    fn read_places(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let mut file = private().read(true).append(true).create(true).open(path)?;
        let (mut lines, mut bytes, mut line) = (HashMap::new(), 0, Vec::new());
        let mut reader = BufReader::new(&file);
        while reader.read_until(b'\n', &mut line)? > 0 {
            if let Some((key, etag)) = line_head(&line) {
                let place = LinePlace { etag: etag.into_owned(), offset: bytes, bytes: line.len() };
                lines.insert(key.into_owned(), place);
            }
            bytes += line.len() as u64;
            if !line.ends_with(b"\n") {
                // A killed process left an incomplete line. End it, or the next line would continue
                // it.
                file.write_all(b"\n")?;
                bytes += 1;
                break;
            }
            line.clear();
        }
        Ok(Self { file, bytes, lines })
    }

    fn place(&self, key: &str, etag: &str) -> Option<&LinePlace> {
        self.lines.get(key).filter(|place| place.etag == etag)
    }

    fn line(&mut self, key: &str, etag: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(&LinePlace { offset, bytes, .. }) = self.place(key, etag) else { return Ok(None) };
        self.read(offset, bytes).map(Some)
    }

    fn read(&mut self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut line = vec![0; bytes];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut line)?;
        Ok(line)
    }

    fn append(&mut self, key: &str, etag: &str, line: &[u8]) -> io::Result<()> {
        let bytes = line.len();
        if self.bytes.saturating_add(bytes as u64) > FILE_MAX_BYTES {
            return Ok(());
        }
        self.file.write_all(line)?;
        // Other processes append too, so the offset of this line is only known after the write.
        self.bytes = self.file.stream_position()?;
        let offset = self.bytes.saturating_sub(bytes as u64);
        let place = LinePlace { etag: etag.to_owned(), offset, bytes };
        self.lines.insert(key.to_owned(), place);
        Ok(())
    }

    /// Removes stale lines, and all lines for whose key `is_kept` returns false, if these fill more
    /// than half of the file.
    fn shrink(&mut self, path: &Path, is_kept: impl Fn(&str) -> bool) -> io::Result<()> {
        let kept = self.lines.iter().filter(|(key, _)| is_kept(key));
        let kept_bytes: u64 = kept.map(|(_, place)| place.bytes as u64).sum();
        if kept_bytes < self.bytes / 2 { self.rewrite(path, is_kept) } else { Ok(()) }
    }

    /// Rewrites the file with only the newest line of each key for which `is_kept` returns true.
    /// Lines that other processes append in the meantime are lost.
    fn rewrite(&mut self, path: &Path, is_kept: impl Fn(&str) -> bool) -> io::Result<()> {
        let mut kept: Vec<(u64, usize)> = self
            .lines
            .iter()
            .filter(|(key, _)| is_kept(key))
            .map(|(_, place)| (place.offset, place.bytes))
            .collect();
        kept.sort_unstable();
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut new =
            BufWriter::new(private().write(true).create(true).truncate(true).open(&temporary)?);
        for (offset, bytes) in kept {
            new.write_all(&self.read(offset, bytes)?)?;
        }
        new.into_inner()?;
        std::fs::rename(&temporary, path)?;
        *self = Self::read_places(path)?;
        Ok(())
    }
}

/// Returns options that create a file which only the user can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder that only the user can read, unless the folder exists.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the key of an object. The tests use the key as the content too.
    fn key(number: u32) -> String {
        format!("shop/orders/billing/2026/11/20/7/{number}.json")
    }

    fn put(cache: &DiskCache, numbers: std::ops::Range<u32>) {
        numbers.for_each(|number| cache.put(&key(number), "e", &key(number)));
    }

    fn get(cache: &DiskCache, number: u32, etag: &str) -> Option<String> {
        cache.get(&key(number), etag)
    }

    fn held(cache: &DiskCache) -> Vec<u32> {
        (0..10).filter(|number| get(cache, *number, "e").is_some()).collect()
    }

    fn file_of(folder: &Path) -> PathBuf {
        std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
    }

    #[test]
    fn a_blob_is_found_by_key_and_etag_in_this_process_and_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let caches = folder.path().join("new/caches");
        let cache = DiskCache::new(&caches, "s3://letters");
        put(&cache, 0..2);
        for cache in [&cache, &DiskCache::new(&caches, "s3://letters")] {
            assert!(cache.has(&key(1), "e") && !cache.has(&key(1), "other"));
            assert_eq!(cache.etag(&key(1)).as_deref(), Some("e"));
            assert_eq!((get(cache, 1, "e"), get(cache, 1, "other")), (Some(key(1)), None));
            assert_eq!(held(cache), [0, 1]);
        }
        assert!(held(&DiskCache::new(&caches, "s3://others")).is_empty());
        cache.put(&key(3), "", &key(3));
        assert!(!cache.has(&key(3), ""), "an object without an ETag");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let caches = folder.path().join("caches");
        let cache = DiskCache::new(&caches, "s3://letters");
        put(&cache, 0..2);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&caches), mode(&file_of(&caches))), (0o700, 0o600));
        cache.forget(&[key(0).as_str()].into());
        assert_eq!((held(&cache), mode(&file_of(&caches))), (vec![1], 0o600));
    }

    #[test]
    fn damaged_and_unfinished_lines_hide_no_others() {
        let folder = tempfile::tempdir().unwrap();
        put(&DiskCache::new(folder.path(), "s3://letters"), 0..3);
        let path = file_of(folder.path());
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let (first, second, third) =
            (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
        let unfinished = &third[..third.len() / 2];
        std::fs::write(&path, format!("{first}\nnonsense\n\n{second}\n{unfinished}")).unwrap();
        let cache = DiskCache::new(folder.path(), "s3://letters");
        assert_eq!(held(&cache), [0, 1]);
        put(&cache, 4..5);
        assert_eq!(held(&cache), [0, 1, 4]);
        assert_eq!(held(&DiskCache::new(folder.path(), "s3://letters")), [0, 1, 4]);
    }

    #[test]
    fn several_processes_append_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [(), ()].map(|()| DiskCache::new(folder.path(), "s3://letters"));
        put(&first, 0..1);
        put(&second, 1..2);
        put(&first, 2..3);
        assert_eq!((held(&first), held(&second)), (vec![0, 2], vec![0, 1]));
        assert_eq!(held(&DiskCache::new(folder.path(), "s3://letters")), [0, 1, 2]);
    }

    #[test]
    fn missing_blobs_are_forgotten_once_they_take_more_than_half_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path(), "s3://letters");
        put(&cache, 0..10);
        let forget_after = |count: u32| {
            cache.forget_missing(|kept| (0..count).any(|number| key(number) == kept));
        };
        forget_after(6);
        assert_eq!(held(&cache).len(), 10);
        forget_after(4);
        assert_eq!(held(&cache), [0, 1, 2, 3]);
        let text = std::fs::read_to_string(file_of(folder.path())).unwrap();
        assert_eq!(text.lines().count(), 4);
        put(&cache, 7..8);
        assert_eq!(held(&DiskCache::new(folder.path(), "s3://letters")), [0, 1, 2, 3, 7]);
    }

    #[test]
    fn stale_lines_are_removed_once_they_take_more_than_half_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let cache = || DiskCache::new(folder.path(), "s3://letters");
        put(&cache(), 0..4);
        let path = file_of(folder.path());
        let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
        // Each round appends two lines, which replace earlier ones.
        for (etag, left) in [("f", 6), ("g", 8), ("h", 10), ("i", 6)] {
            let cache = cache();
            (0..2).for_each(|number| cache.put(&key(number), etag, &key(number)));
            assert_eq!(lines(), left, "{etag}");
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"v\":\"", "\"v\":\"earlier-")).unwrap();
        assert_eq!((held(&cache()), lines()), (vec![], 0));
    }

    #[test]
    fn a_full_file_takes_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path(), "s3://letters");
        put(&cache, 0..1);
        let path = file_of(folder.path());
        // Fill the file as another process would. The cache detects this when it appends.
        let file = File::options().append(true).open(&path).unwrap();
        file.set_len(FILE_MAX_BYTES - 1).unwrap();
        (&file).write_all(b"\n").unwrap();
        put(&cache, 1..2);
        let full = std::fs::metadata(&path).unwrap().len();
        put(&cache, 2..3);
        assert_eq!((held(&cache), cache.problem()), (vec![0, 1], None));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), full);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_problem_and_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let cache = DiskCache::new(&file, "s3://letters");
        put(&cache, 0..1);
        assert!(held(&cache).is_empty());
        let problem = cache.problem().unwrap();
        assert!(problem.contains("file") && problem.contains("cannot be used: "), "{problem}");
    }
}
