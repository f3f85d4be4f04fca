//! Locks a data folder for one `lastmile dev`, because two processes would write the same files.
//!
//! The operating system locks a file in the folder until the process ends, even if it crashes. The
//! file contains the addresses of the running `dev` and of its local AWS. A second `dev` prints the
//! first address in its error. Commands use the second address to read the table.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use adapters::error_words::io_words;
use anyhow::{Context as _, anyhow};

use crate::terminal::output::note;
use crate::terminal::text;

/// The name of the lock file in the data folder.
const NAME: &str = "dev.lock";
/// The maximum number of bytes that are read from the lock file. Two addresses need fewer.
const ADDRESS_MAX_BYTES: u64 = 256;

/// The lock on a data folder. Dropping this value releases the lock.
#[derive(Debug)]
pub(crate) struct DataLock(File);

impl DataLock {
    /// Locks a data folder. Creates the folder if it is missing.
    ///
    /// # Errors
    /// If the folder cannot be written, or another `lastmile dev` uses it. In the latter case, the
    /// message contains the address of that `dev`, and advice.
    pub(crate) fn take(data: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("the data folder {} cannot be written", text::path(data));
        std::fs::create_dir_all(data).with_context(cannot)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(data.join(NAME)).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut address = String::new();
                // Some systems do not allow other processes to read a locked file.
                let read = file.take(ADDRESS_MAX_BYTES).read_to_string(&mut address);
                let at = match (read, address.lines().next()) {
                    (Ok(_), Some(address)) => format!(", at {address}"),
                    _ => String::new(),
                };
                anyhow::bail!(
                    "another lastmile dev uses the data folder {}{at}; stop it, or choose another \
                     folder with --data DIR",
                    text::path(data)
                );
            }
            // Some network file systems have no locks. Another user of the folder cannot be
            // detected there.
            Err(TryLockError::Error(error)) => note(format_args!(
                "the lock of the data folder {} cannot be checked, so another lastmile dev may use \
                 it: {}",
                text::path(data),
                io_words(&error)
            )),
        }
        Ok(Self(file))
    }

    /// Replaces the addresses in the lock file. The first is the address of `dev`. The second is
    /// the address of its local AWS, once that server listens.
    pub(crate) fn says(&mut self, addresses: &[&str]) {
        // Ignore errors, because this `dev` does not need the addresses. Without them, a second
        // `dev` cannot print the address, and other commands cannot find the table.
        let _ = self.write(addresses);
    }

    fn write(&mut self, addresses: &[&str]) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        addresses.iter().try_for_each(|address| writeln!(self.0, "{address}"))
    }
}

/// Returns true if a `lastmile dev` uses this data folder, or has used it.
pub(crate) fn is_in(data: &Path) -> bool {
    data.join(NAME).is_file()
}

/// Returns the endpoint of the local AWS of the `lastmile dev` that uses this data folder.
///
/// # Errors
/// If no `lastmile dev` uses the folder.
pub(crate) fn aws_endpoint(data: &Path) -> anyhow::Result<String> {
    let nobody = || {
        anyhow!(
            "no `lastmile dev` runs with the data folder {}; the local queues and states exist only \
             while it runs",
            text::path(data)
        )
    };
    let file = File::open(data.join(NAME)).map_err(|_| nobody())?;
    if file.try_lock_shared().is_ok() {
        return Err(nobody());
    }
    let mut addresses = String::new();
    let read = file.take(ADDRESS_MAX_BYTES).read_to_string(&mut addresses);
    read.with_context(|| format!("{NAME} of {} cannot be read", text::path(data)))?;
    addresses.lines().nth(1).map(str::to_owned).ok_or_else(nobody)
}

/// Waits until the lock is released, and returns the error. Another test may start a process, which
/// inherits the lock until it runs its program.
#[cfg(test)]
pub(crate) fn error_after_end(data: &Path) -> anyhow::Error {
    const TRIES: usize = 1_000;
    let mut results = std::iter::repeat_with(|| aws_endpoint(data)).take(TRIES);
    let error = results.find_map(|result| {
        result.map(|_| std::thread::sleep(std::time::Duration::from_millis(10))).err()
    });
    error.expect("the lock is released within ten seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_and_what_it_left_behind_locks_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let mut first = DataLock::take(&data).expect("nobody uses it");
        let refused = || DataLock::take(&data).expect_err("it is used").to_string();
        assert!(refused().ends_with("/data; stop it, or choose another folder with --data DIR"));
        first.says(&["http://127.0.0.1:8080"]);
        first.says(&["http://127.0.0.1:80", "http://127.0.0.1:4566"]);
        assert!(refused().contains("/data, at http://127.0.0.1:80; stop it"), "{}", refused());
        assert_eq!(aws_endpoint(&data).ok().as_deref(), Some("http://127.0.0.1:4566"));
        drop(first);
        assert!(data.join(NAME).exists());
        let ended = error_after_end(&data).to_string();
        assert!(ended.starts_with("no `lastmile dev` runs with the data folder "), "{ended}");
        DataLock::take(&data).expect("its holder has ended");
    }
}
