//! Objects as plain files: reading, writing and removing them, one bucket a folder.
//!
//! It is separate from the protocol so that what happens on disk can be read alone. It promises
//! that a file is seen whole or not at all, and that of many writers who want a key to be absent
//! exactly one wins, also between processes: content is written aside and then linked into place.
//! It does not flush to the disk, and every call blocks.

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

/// Where content is written before it is linked into place; a name no bucket can have.
const UPLOADS: &str = ".uploads";

/// How often a write begins anew when its folder is removed under it because it was empty.
const WRITE_ATTEMPTS_LIMIT: u32 = 16;

/// The buckets under one folder.
#[derive(Debug)]
pub(in super::super) struct Folder {
    root: PathBuf,
    uploads: AtomicU64,
}

/// An object as it is read.
#[derive(Debug)]
pub(super) struct Object {
    /// Its bytes.
    pub(super) content: Vec<u8>,
    /// When it was written.
    pub(super) modified: SystemTime,
}

/// What is to happen with an object that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// It is replaced.
    Replace,
    /// It stays, and the write is refused.
    Keep,
}

impl Folder {
    /// Makes the folder and its first buckets.
    pub(in super::super) fn create(root: &Path, buckets: &[String]) -> Result<Self, Error> {
        let folders = [UPLOADS].into_iter().chain(buckets.iter().map(String::as_str));
        for folder in folders.map(|name| root.join(name)) {
            let named = |source| Error::Bucket { folder: folder.display().to_string(), source };
            fs::create_dir_all(&folder).map_err(named)?;
        }
        Ok(Self { root: root.to_path_buf(), uploads: AtomicU64::new(0) })
    }

    /// The buckets by name, and when each was last changed.
    pub(super) fn buckets(&self) -> Result<Vec<(String, SystemTime)>, S3Error> {
        let mut buckets = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let metadata = entry.metadata().map_err(broken)?;
            if let Some(name) = entry
                .file_name()
                .to_str()
                .filter(|name| metadata.is_dir() && !name.starts_with('.'))
            {
                buckets.push((name.to_owned(), metadata.modified().map_err(broken)?));
            }
        }
        buckets.sort();
        Ok(buckets)
    }

    /// Makes a bucket; one that is there already is ours, and stays.
    pub(super) fn create_bucket(&self, bucket: &str) -> Result<(), S3Error> {
        fs::create_dir_all(self.root.join(bucket)).map_err(broken)
    }

    /// The folder of a bucket, if the bucket is there.
    pub(super) fn bucket(&self, bucket: &str) -> Result<PathBuf, S3Error> {
        let folder = self.root.join(bucket);
        if key::is_segment(bucket) && !bucket.starts_with('.') && folder.is_dir() {
            Ok(folder)
        } else {
            Err(s3_error!(NoSuchBucket, "there is no bucket {bucket:?}"))
        }
    }

    /// One page of the keys of a bucket.
    pub(super) fn list(&self, bucket: &str, query: &Query) -> Result<Page, S3Error> {
        listing::page(&self.bucket(bucket)?, query).map_err(broken)
    }

    /// Reads an object.
    pub(super) fn get(&self, bucket: &str, key: &str) -> Result<Object, S3Error> {
        let path = key::path(&self.bucket(bucket)?, key)?;
        read(&path).map_err(|error| {
            if is_absence(&error) {
                s3_error!(NoSuchKey, "there is no object {key:?} in {bucket:?}")
            } else {
                broken(error)
            }
        })
    }

    /// Writes an object and gives its entity tag.
    pub(super) fn put(
        &self,
        bucket: &str,
        key: &str,
        content: &[u8],
        existing: Existing,
    ) -> Result<String, S3Error> {
        let path = key::path(&self.bucket(bucket)?, key)?;
        let upload = self.upload();
        fs::write(&upload, content).map_err(broken)?;
        let placed = place(&upload, &path, existing);
        // A replacing write has moved the file away, any other left it.
        let _ = fs::remove_file(&upload);
        placed.map(|()| tag(content)).map_err(|error| refused(error, key, &path))
    }

    /// Removes an object; one that is not there is removed already.
    pub(super) fn delete(&self, bucket: &str, key: &str) -> Result<(), S3Error> {
        let bucket = self.bucket(bucket)?;
        let path = key::path(&bucket, key)?;
        match fs::remove_file(&path) {
            Ok(()) => remove_empty_folders(&bucket, &path),
            Err(error) if is_absence(&error) || path.is_dir() => {}
            Err(error) => return Err(broken(error)),
        }
        Ok(())
    }

    /// A file nobody else writes to.
    fn upload(&self) -> PathBuf {
        let number = self.uploads.fetch_add(1, Ordering::Relaxed);
        self.root.join(UPLOADS).join(format!("{}-{number}", std::process::id()))
    }
}

/// The entity tag of some content, as S3 computes it for an object written at once: its MD5, in
/// hex.
pub(super) fn tag(content: &[u8]) -> String {
    Md5::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether there is no file at a path: nothing, a folder, or a file where a folder would have to
/// be.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn read(path: &Path) -> io::Result<Object> {
    let mut file = fs::File::open(path)?;
    let modified = file.metadata()?.modified()?;
    let mut content = Vec::new();
    io::Read::read_to_end(&mut file, &mut content)?;
    Ok(Object { content, modified })
}

/// Brings written content to its place; a folder that was removed meanwhile is made again.
fn place(upload: &Path, path: &Path, existing: Existing) -> io::Result<()> {
    let mut attempts = 1;
    loop {
        match place_once(upload, path, existing) {
            Err(error)
                if error.kind() == ErrorKind::NotFound && attempts < WRITE_ATTEMPTS_LIMIT =>
            {
                attempts += 1
            }
            placed => return placed,
        }
    }
}

fn place_once(upload: &Path, path: &Path, existing: Existing) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match existing {
        Existing::Replace => fs::rename(upload, path),
        Existing::Keep => fs::hard_link(upload, path),
    }
}

/// What a write that found something in its place is told.
fn refused(error: io::Error, key: &str, path: &Path) -> S3Error {
    if error.kind() == ErrorKind::AlreadyExists && path.is_file() {
        return s3_error!(PreconditionFailed, "the object {key:?} is already there");
    }
    let in_the_way = path.is_dir() || path.ancestors().skip(1).any(Path::is_file);
    if in_the_way {
        return s3_error!(
            InvalidArgument,
            "the key {key:?} cannot be a file: one of two keys is the folder of the other"
        );
    }
    broken(error)
}

/// Removes the folders a removed file leaves empty, so that they are no common prefix any more.
fn remove_empty_folders(bucket: &Path, path: &Path) {
    let folders = path.ancestors().skip(1).take_while(|folder| *folder != bucket);
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

fn broken(error: io::Error) -> S3Error {
    s3_error!(InternalError, "the folder of the local S3 does not work: {error}")
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

    /// In which rounds a writer won; a round has its own key, and content already written aside.
    fn wins(folder: &Folder, start: &Barrier, writer: u64) -> Vec<bool> {
        let rounds = 0..ROUNDS;
        let wins = rounds.map(|round| {
            let (upload, path) = (folder.upload(), folder.root.join(format!("bucket/{round}")));
            fs::write(&upload, writer.to_string()).expect("a file");
            start.wait();
            place(&upload, &path, Existing::Keep).is_ok()
        });
        wins.collect()
    }
}
