//! Objects as plain files: reading, writing and deleting them. A bucket is a folder.
//!
//! It is separate from the protocol so that the file operations can be read alone. It promises that
//! a reader never sees a partial file, and that exactly one of several concurrent put-if-absent
//! writers succeeds, also between processes: content is written to a temporary file and then linked
//! to its path. It does not flush to the disk, and every call blocks.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use md5::{Digest as _, Md5};
use s3s::{S3Error, s3_error};

use super::super::Error;
use super::key;
use super::listing::{self, Page, Query};

/// The folder of temporary files. No bucket can have this name, because of the dot.
const UPLOADS: &str = ".uploads";

/// How often a write is tried when a concurrent delete removes its folder because it is empty.
const WRITE_ATTEMPTS_LIMIT: u32 = 16;

/// A folder with the buckets.
#[derive(Debug)]
pub(in super::super) struct Folder {
    root: PathBuf,
    uploads: AtomicU64,
}

/// An object that was read.
#[derive(Debug)]
pub(super) struct Object {
    /// Its bytes.
    pub(super) content: Vec<u8>,
    /// When it was written.
    pub(super) modified: SystemTime,
}

/// What a write does with an existing object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// Replaces it.
    Replace,
    /// Keeps it and fails.
    Keep,
}

impl Folder {
    /// Creates the folder and its first buckets.
    pub(in super::super) fn create(root: &Path, buckets: &[String]) -> Result<Self, Error> {
        let folders = [UPLOADS].into_iter().chain(buckets.iter().map(String::as_str));
        for folder in folders.map(|name| root.join(name)) {
            let failure = |source| Error::Bucket { folder: folder.display().to_string(), source };
            fs::create_dir_all(&folder).map_err(failure)?;
        }
        Ok(Self { root: root.to_path_buf(), uploads: AtomicU64::new(0) })
    }

    /// The buckets sorted by name, with their modification times.
    pub(super) fn buckets(&self) -> Result<Vec<(String, SystemTime)>, S3Error> {
        let mut buckets = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(io_failure)? {
            let entry = entry.map_err(io_failure)?;
            let metadata = entry.metadata().map_err(io_failure)?;
            if let Some(name) = entry
                .file_name()
                .to_str()
                .filter(|name| metadata.is_dir() && !name.starts_with('.'))
            {
                buckets.push((name.to_owned(), metadata.modified().map_err(io_failure)?));
            }
        }
        buckets.sort();
        Ok(buckets)
    }

    /// Creates a bucket; an existing one is kept, because every bucket here has the same owner.
    pub(super) fn create_bucket(&self, bucket: &str) -> Result<(), S3Error> {
        fs::create_dir_all(self.root.join(bucket)).map_err(io_failure)
    }

    /// The folder of a bucket that exists.
    pub(super) fn bucket(&self, bucket: &str) -> Result<PathBuf, S3Error> {
        let folder = self.root.join(bucket);
        if key::is_segment(bucket) && !bucket.starts_with('.') && folder.is_dir() {
            Ok(folder)
        } else {
            Err(s3_error!(NoSuchBucket, "there is no bucket {bucket:?}"))
        }
    }

    /// Lists one page of the keys of a bucket.
    pub(super) fn list(&self, bucket: &str, query: &Query) -> Result<Page, S3Error> {
        listing::page(&self.bucket(bucket)?, query).map_err(io_failure)
    }

    /// Reads an object.
    pub(super) fn get(&self, bucket: &str, key: &str) -> Result<Object, S3Error> {
        let path = key::path(&self.bucket(bucket)?, key)?;
        read(&path).map_err(|error| {
            if is_absence(&error) {
                s3_error!(NoSuchKey, "there is no object {key:?} in {bucket:?}")
            } else {
                io_failure(error)
            }
        })
    }

    /// Writes an object and returns its entity tag.
    pub(super) fn put(
        &self,
        bucket: &str,
        key: &str,
        content: &[u8],
        existing: Existing,
    ) -> Result<String, S3Error> {
        let path = key::path(&self.bucket(bucket)?, key)?;
        // Below the same root: neither a rename nor a link works across file systems.
        let upload = self.upload();
        fs::write(&upload, content).map_err(io_failure)?;
        let moved = move_into_place(&upload, &path, existing);
        // A rename has moved the temporary file away; after a hard link or an error it is still there.
        let _ = fs::remove_file(&upload);
        moved.map(|()| tag(content)).map_err(|error| write_error(error, key, &path))
    }

    /// Deletes an object; deleting one that does not exist succeeds, as in S3.
    pub(super) fn delete(&self, bucket: &str, key: &str) -> Result<(), S3Error> {
        let bucket = self.bucket(bucket)?;
        let path = key::path(&bucket, key)?;
        match fs::remove_file(&path) {
            Ok(()) => remove_empty_folders(&bucket, &path),
            // Unlinking a folder is EISDIR on Linux and EPERM elsewhere.
            Err(error) if is_absence(&error) || path.is_dir() => {}
            Err(error) => return Err(io_failure(error)),
        }
        Ok(())
    }

    /// The path of a temporary file that no other writer uses.
    fn upload(&self) -> PathBuf {
        let number = self.uploads.fetch_add(1, Ordering::Relaxed);
        self.root.join(UPLOADS).join(format!("{}-{number}", std::process::id()))
    }
}

/// The entity tag of an object, as S3 computes it without multipart upload: the MD5 of the content,
/// in hexadecimal.
pub(super) fn tag(content: &[u8]) -> String {
    hex::encode(Md5::digest(content))
}

/// Whether the error means that there is no file at the path: nothing, a folder, or a file in the
/// place of a parent folder.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn read(path: &Path) -> io::Result<Object> {
    let mut file = fs::File::open(path)?;
    // Of the open file: the path may be replaced meanwhile.
    let modified = file.metadata()?.modified()?;
    let mut content = Vec::new();
    io::Read::read_to_end(&mut file, &mut content)?;
    Ok(Object { content, modified })
}

/// Moves a temporary file to its path; creates the folder again if it was removed meanwhile.
fn move_into_place(upload: &Path, path: &Path, existing: Existing) -> io::Result<()> {
    let mut attempts = 1;
    loop {
        match try_move(upload, path, existing) {
            Err(error)
                if error.kind() == ErrorKind::NotFound && attempts < WRITE_ATTEMPTS_LIMIT =>
            {
                attempts += 1;
            }
            moved => return moved,
        }
    }
}

fn try_move(upload: &Path, path: &Path, existing: Existing) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match existing {
        Existing::Replace => fs::rename(upload, path),
        // Unlike a rename, a hard link fails if the path exists: this makes put-if-absent atomic.
        Existing::Keep => fs::hard_link(upload, path),
    }
}

/// The error of a write that could not be moved to its path.
fn write_error(error: io::Error, key: &str, path: &Path) -> S3Error {
    if error.kind() == ErrorKind::AlreadyExists && path.is_file() {
        return s3_error!(PreconditionFailed, "the object {key:?} exists already");
    }
    let in_the_way = path.is_dir() || path.ancestors().skip(1).any(Path::is_file);
    if in_the_way {
        return s3_error!(
            InvalidArgument,
            "the key {key:?} cannot be a file: one of two keys is the folder of the other"
        );
    }
    io_failure(error)
}

/// Removes the folders that are empty after a delete, so that they are not listed as prefixes.
fn remove_empty_folders(bucket: &Path, path: &Path) {
    let folders = path.ancestors().skip(1).take_while(|folder| *folder != bucket);
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

fn io_failure(error: io::Error) -> S3Error {
    s3_error!(InternalError, "the folder of the local S3 cannot be used: {error}")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    const WRITERS: u64 = 8;
    const ROUNDS: u64 = 300;

    #[test]
    fn of_writers_that_begin_together_exactly_one_finds_the_key_absent() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::create(root.path(), &["bucket".to_owned()]).expect("a bucket");
        let start = Barrier::new(WRITERS as usize);
        let wins: Vec<Vec<bool>> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (folder, start) = (&folder, &start);
                    scope.spawn(move || wins(folder, start, writer))
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
        });
        for round in 0..ROUNDS {
            let winners = wins.iter().filter(|wins| wins[round as usize]).count();
            assert_eq!(winners, 1, "in round {round}");
        }
    }

    /// The rounds that a writer won. Each round has its own key, and temporary files are written
    /// before the barrier, so that the links race.
    fn wins(folder: &Folder, start: &Barrier, writer: u64) -> Vec<bool> {
        let rounds = 0..ROUNDS;
        let wins = rounds.map(|round| {
            let (upload, path) = (folder.upload(), folder.root.join(format!("bucket/{round}")));
            fs::write(&upload, writer.to_string()).expect("a file");
            start.wait();
            move_into_place(&upload, &path, Existing::Keep).is_ok()
        });
        wins.collect()
    }
}
