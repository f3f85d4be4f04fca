//! Locks the files of one folder against other threads and processes.
//!
//! Separate because a conditional replacement takes two steps, and no process may write or remove
//! the file in between. The lock is a file beside the others. The first conditional replacement
//! creates the lock file. It is never removed: otherwise two processes could hold two locks of the
//! same name. The lock file is not a key and is not listed, but keeps its folder from being
//! removed.
//!
//! Promises: at most one holder at a time. A process that ends releases its lock. `Lock::date`
//! never gives two files the same modification time, whatever the clock does.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::folder::unless_missing;

/// Name of the lock file. It is a temporary name, and therefore not a key. No process uses this
/// name, because no process has the id 0.
const NAME: &str = ".lastmile-0-0";
/// Maximum exponent n of the step between two modification times, which is 10^n nanoseconds. File
/// systems have resolutions of up to two seconds.
const LATER_MAX: u32 = 10;

/// The lock of a folder, held until the value is dropped. The modification time of the lock file is
/// the latest time that `date` assigned.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Waits for the lock of an existing folder. Creates the lock file if it is missing.
    pub(super) fn hold(folder: &Path) -> io::Result<Self> {
        Self::wait(OpenOptions::new().create(true), folder)
    }

    /// Waits for the lock of a folder; returns `None` if the folder has no lock file.
    pub(super) fn hold_if_made(folder: &Path) -> io::Result<Option<Self>> {
        unless_missing(Self::wait(&mut OpenOptions::new(), folder))
    }

    fn wait(options: &mut OpenOptions, folder: &Path) -> io::Result<Self> {
        let file = options.read(true).write(true).open(folder.join(NAME))?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Sets the modification time of a new file. The time is later than that of the file that it
    /// will replace, and later than all times assigned in this folder. The clock alone is not
    /// sufficient: it may stand still for milliseconds, or be set back.
    pub(super) fn date(&self, new: &Path, replaced: &Path) -> io::Result<Metadata> {
        let mut last = self.0.metadata()?.modified()?;
        if let Some(replaced) = unless_missing(std::fs::metadata(replaced))? {
            last = last.max(replaced.modified()?);
        }
        let new = OpenOptions::new().write(true).open(new)?;
        for power in 0..=LATER_MAX {
            let modified = new.metadata()?.modified()?;
            if modified > last {
                self.0.set_modified(modified)?;
                return new.metadata();
            }
            new.set_modified(last + Duration::from_nanos(10_u64.pow(power)))?;
        }
        Err(io::Error::other("the file system does not accept a later modification time"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::TryLockError;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn one_holds_it_until_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Lock::hold_if_made(folder.path()).expect("an answer").is_none());
        let held = Lock::hold(folder.path()).expect("the lock");
        let other = File::open(folder.path().join(NAME)).expect("its file");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        other.try_lock().expect("it is free");
        drop(other);
        assert!(Lock::hold_if_made(folder.path()).expect("an answer").is_some());
    }

    #[test]
    fn files_are_dated_one_after_the_other_while_the_clock_stands_still() {
        let folder = tempfile::tempdir().expect("a folder");
        let (new, replaced) = (folder.path().join("new"), folder.path().join("replaced"));
        let written_at = |path: &Path, seconds| {
            let file = File::create(path).expect("a file");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
        };
        let lock = Lock::hold(folder.path()).expect("the lock");
        // The replaced file is dated in the future, and the clock that dates new files stands in
        // the past.
        written_at(&replaced, 2_000_000_000);
        let mut last =
            std::fs::metadata(&replaced).and_then(|metadata| metadata.modified()).expect("a time");
        for _ in 0..10 {
            written_at(&new, 1_000_000_000);
            let dated = lock
                .date(&new, &replaced)
                .and_then(|metadata| metadata.modified())
                .expect("a time");
            assert!(dated > last, "{dated:?} is not after {last:?}");
            last = dated;
            // A new file may have exactly the time of the last one.
            File::open(&new).and_then(|new| new.set_modified(last)).expect("a time");
            let dated = lock
                .date(&new, &replaced)
                .and_then(|metadata| metadata.modified())
                .expect("a time");
            assert!(dated > last, "{dated:?} is not after {last:?}");
            last = dated;
            // In later rounds the replaced file is missing, but the lock file still has the latest
            // time.
            let _ = std::fs::remove_file(&replaced);
        }
    }
}
