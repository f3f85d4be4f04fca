//! Subscription files as arguments: reads them and prints findings.
//!
//! Separate because `check`, `explain`, `apply`, `cost` and `validate` start alike: text into
//! memory, [`manifest::read`] over all of it, findings for people. A file that cannot be read is a
//! usage error, exit code 2.

use std::io;
use std::path::{Path, PathBuf};

use delivery::manifest::{self, Finding, Reading, Severity, Source};

use crate::output::note;
use crate::text;

/// What the person who runs a command did wrong: its exit code is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// A usage error, as the error of a command.
pub(crate) fn usage_error(problem: impl Into<String>) -> anyhow::Error {
    UsageError(problem.into()).into()
}

/// Files in memory: each with its name and its text.
pub(crate) struct Files(Vec<(String, String)>);

impl Files {
    /// Reads the files; of a folder all below it whose names end with `.yaml`, `.yml` or `.json`, in the order
    /// of their names.
    ///
    /// # Errors
    /// A usage error when one cannot be read, or when a folder has none; names it.
    pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let found = files.len();
            read_into(path, &mut files).map_err(|(path, error)| {
                usage_error(format!("{} cannot be read: {error}", path.display()))
            })?;
            if files.len() == found {
                let expected = "one that ends with .yaml, .yml or .json is expected";
                return Err(usage_error(format!("{} has no file: {expected}", path.display())));
            }
        }
        Ok(Self(files))
    }

    /// The name of the first file.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", |(name, _)| name)
    }

    /// The catalogue and the findings of all files together.
    pub(crate) fn reading(&self) -> Reading {
        let sources: Vec<Source<'_>> =
            self.0.iter().map(|(name, text)| Source { name, text }).collect();
        manifest::read(&sources)
    }

    /// The same, with the findings printed; `None` when one of them is an error.
    pub(crate) fn valid_reading(&self) -> Option<Reading> {
        let reading = self.reading();
        print_findings(&reading.findings);
        (!have_errors(&reading.findings)).then_some(reading)
    }

    /// One text with all documents: a single file unchanged, several files joined by `---`.
    pub(crate) fn joined(&self) -> String {
        if let [(_, text)] = self.0.as_slice() {
            return text.clone();
        }
        let mut joined = String::new();
        for (_, text) in &self.0 {
            // A byte order mark is allowed only at the beginning of a file.
            let text = text.trim_start_matches('\u{feff}').trim_end();
            // A separator at the end of one and the beginning of the next: an empty document.
            let text = text.strip_suffix("\n---").unwrap_or(text);
            joined.push_str("---\n");
            joined.push_str(text.strip_prefix("---\n").unwrap_or(text).trim_end());
            joined.push('\n');
        }
        joined
    }
}

/// Adds the file, or the files below the folder.
fn read_into(path: &Path, files: &mut Vec<(String, String)>) -> Result<(), (PathBuf, io::Error)> {
    let failed = |error| (path.to_owned(), error);
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).map_err(failed)?;
        files.push((path.display().to_string(), text));
        return Ok(());
    }
    let below = std::fs::read_dir(path).map_err(failed)?;
    let below = below.map(|entry| entry.map(|entry| entry.path()));
    let mut below = below.collect::<Result<Vec<PathBuf>, _>>().map_err(failed)?;
    below.sort();
    let is_hidden = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    // A link to a folder above would lead in a circle.
    let is_read = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        (path.is_dir() && !path.is_symlink()) || matches!(extension, Some("yaml" | "yml" | "json"))
    };
    below
        .iter()
        .filter(|path| !is_hidden(path) && is_read(path))
        .try_for_each(|path| read_into(path, files))
}

/// Whether one of the findings is an error.
pub(crate) fn have_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Prints findings on standard error, one line each.
pub(crate) fn print_findings(findings: &[Finding]) {
    findings.iter().for_each(|finding| note(text::line(&finding.to_string())));
}
