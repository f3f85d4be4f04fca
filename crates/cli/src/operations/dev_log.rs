//! Writes the log lines of `lastmile dev` to its data folder, so that `lastmile trace` can trace an
//! event.
//!
//! Separate from the live page of `dev`, which keeps bodies in memory and discards them at exit.
//! The lines are those that deployed functions log: they contain ids, statuses and times, but no
//! bodies or credentials.
//!
//! Promises: two files of at most [`FILE_MAX_BYTES`] each always contain the newest lines. A full
//! disk is reported once, and stops nothing. Requires a single writer, which the lock of the data
//! folder ensures.

use std::fs::{File, OpenOptions, rename};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use adapters::error_words::io_words;
use anyhow::{anyhow, bail};

use crate::terminal::output::note;
use crate::terminal::text;

/// The files of the log: the current file, and the previous one, which is full.
const FILES: [&str; 2] = ["log.ndjson", "log.1.ndjson"];
/// The maximum size of a log file: about 80,000 lines.
const FILE_MAX_BYTES: u64 = 32 * 1_024 * 1_024;

/// The log, open for appending lines.
#[derive(Debug)]
pub(crate) struct DevLog {
    folder: PathBuf,
    file: File,
    bytes: u64,
    is_broken: bool,
}

impl DevLog {
    /// Opens the log in a data folder.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let opened = appended(&folder.join(FILES[0]));
        let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|error| {
            anyhow!("the log in {} cannot be written: {}", text::path(folder), io_words(&error))
        })?;
        Ok(Self { folder: folder.to_owned(), file, bytes, is_broken: false })
    }

    /// Appends a line, which includes its line end.
    pub(crate) fn add(&mut self, line: &str) {
        if let Err(error) = self.try_add(line)
            && !self.is_broken
        {
            self.is_broken = true;
            let folder = text::path(&self.folder);
            let why = io_words(&error);
            note(format_args!(
                "lastmile trace will be incomplete, because the log in {folder} cannot be written: \
                 {why}"
            ));
        }
    }

    fn try_add(&mut self, line: &str) -> io::Result<()> {
        if self.bytes.saturating_add(line.len() as u64) > FILE_MAX_BYTES {
            let [newest, full] = FILES.map(|name| self.folder.join(name));
            rename(&newest, full)?;
            (self.file, self.bytes) = (appended(&newest)?, 0);
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes = self.bytes.saturating_add(line.len() as u64);
        Ok(())
    }
}

/// Reads the lines for which `is_wanted` is true, oldest first.
///
/// # Errors
/// If the folder has no log, or the log cannot be read.
pub(crate) fn lines(
    folder: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<Vec<String>> {
    let [newest, full] = FILES.map(|name| folder.join(name));
    if !newest.exists() {
        bail!(
            "{} contains no log lines of `lastmile dev`: use --data for another folder, or --stack \
             for a deployed stack",
            text::path(folder)
        );
    }
    let mut wanted = Vec::new();
    for path in [full, newest].iter().filter(|path| path.exists()) {
        let file = File::open(path);
        let file = file.map_err(|error| {
            anyhow!("{} cannot be read: {}", text::path(path), io_words(&error))
        })?;
        // A line that is still being written is not yet valid JSON. Stop at a line that is not
        // UTF-8, because another program wrote it.
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        wanted.extend(lines.filter(|line| is_wanted(line)));
    }
    Ok(wanted)
}

fn appended(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_becomes_the_older_one_and_both_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = DevLog::open(folder.path()).unwrap();
        log.add("{\"n\":1}\n");
        log.bytes = FILE_MAX_BYTES;
        log.add("{\"n\":2}\n");
        drop(log);
        DevLog::open(folder.path()).unwrap().add("{\"n\":3}\n");
        let all = lines(folder.path(), |_| true).unwrap();
        assert_eq!(all, ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
        assert_eq!(lines(folder.path(), |line| line.contains('2')).unwrap(), ["{\"n\":2}"]);
    }

    #[test]
    fn a_folder_without_lines_is_an_error_that_says_who_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let error = lines(folder.path(), |_| true).unwrap_err().to_string();
        assert!(error.contains("contains no log lines of `lastmile dev`"), "{error}");
    }
}
