//! Reads the subscription files named by arguments, and prints findings.
//!
//! Separate because `check`, `explain`, `apply` and `try` begin in the same way: they read texts
//! into memory, parse all of them with [`dialects::read`], and print findings. An unreadable file
//! is a usage error, exit code 2.
//!
//! Promises: findings from all sources are sorted by file (in the order given), line and column.

use std::collections::HashMap;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use adapters::error_words::io_words;
use adapters::file_text;
use dialects::{Deployment, Finding, ParsedFile, Reading, Severity, Source};

use crate::terminal::output::note;
use crate::terminal::progress;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// Subscription files in memory: the name and the text of each.
pub(crate) struct Files(Vec<(String, String)>);

impl Files {
    /// Reads files. In a folder, reads all files below it that end in `.yaml`, `.yml` or `.json`,
    /// sorted by name. If a folder has none, reads files of other tools instead, so that findings
    /// can name the next step.
    ///
    /// # Errors
    /// A usage error with the name of a file that is unreadable, or of a folder without files.
    pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let found = files.len();
            for is_read in [is_of_subscriptions, is_foreign] {
                if files.len() == found {
                    read_into(path, is_read, &mut files).map_err(|(path, error)| {
                        let why = io_words(&error);
                        usage_error(format!("{} cannot be read: {why}", text::path(&path)))
                    })?;
                }
            }
            if files.len() == found {
                let expected = "expected a file that ends with .yaml, .yml or .json";
                return Err(usage_error(format!(
                    "{} contains no usable file: {expected}",
                    text::path(path)
                )));
            }
        }
        Ok(Self(files))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns a finding for each file without a document. The findings are errors if no file has a
    /// document, otherwise warnings. Files without any document are more likely a mistake than the
    /// wish to have no subscriptions: `dev` would remove all of them when such a file is saved.
    pub(crate) fn blank(&self) -> Vec<Finding> {
        let blank = self.0.iter().filter_map(|(name, text)| dialects::blank(Source { name, text }));
        let mut blank: Vec<Finding> = blank.collect();
        if blank.len() < self.0.len() {
            blank.iter_mut().for_each(|finding| finding.severity = Severity::Warning);
        }
        blank
    }

    /// Parses all files together into a catalogue and findings.
    pub(crate) fn reading(&self) -> Reading {
        self.reading_for(&Deployment::default())
    }

    /// Parses the files against a deployment, whose settings and addresses complete those in the
    /// files.
    pub(crate) fn reading_for(&self, deployment: &Deployment) -> Reading {
        dialects::read_parsed(deployment, self.parsed())
    }

    /// Parses each file, on as many threads as there are processors.
    fn parsed(&self) -> Vec<ParsedFile> {
        let bar = progress::bar(self.0.len() as u64, "files");
        let next = AtomicUsize::new(0);
        let parse = || {
            let mut parsed = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((name, text)) = self.0.get(at) else { return parsed };
                parsed.push((at, dialects::parse(Source { name, text })));
                bar.inc(1);
            }
        };
        let workers = available_parallelism().map_or(1, NonZero::get).min(self.0.len());
        let mut parsed = thread::scope(|scope| {
            let others: Vec<_> = (1..workers).map(|_| scope.spawn(parse)).collect();
            let mut parsed = parse();
            let others = others.into_iter().map(|worker| worker.join().expect("no text panics"));
            parsed.extend(others.flatten());
            parsed
        });
        bar.finish_and_clear();
        parsed.sort_by_key(|(at, _)| *at);
        parsed.into_iter().map(|(_, file)| file).collect()
    }

    /// Parses the files, and adds findings about files without a document.
    pub(crate) fn reading_with_blank(&self) -> Reading {
        let mut reading = self.reading();
        reading.findings.extend(self.blank());
        sort_findings(self.names(), &mut reading.findings);
        reading
    }

    /// Parses the files and prints the findings. Returns `None` if one of the findings is an error.
    pub(crate) fn valid_reading(&self) -> Option<Reading> {
        let reading = self.reading_with_blank();
        print_findings(&reading.findings);
        (!have_errors(&reading.findings)).then_some(reading)
    }

    /// Joins all files into one text. A single file is returned unchanged; several are separated by
    /// `---`.
    pub(crate) fn joined(&self) -> String {
        if let [(_, text)] = self.0.as_slice() {
            return text.clone();
        }
        let mut joined = String::new();
        for (_, text) in &self.0 {
            // YAML allows a byte order mark only at the beginning of a file.
            let text = text.trim_start_matches('\u{feff}').trim_end();
            // A separator at the end of one file and another at the beginning of the next would
            // create an empty document.
            let text = text.strip_suffix("\n---").unwrap_or(text);
            joined.push_str("---\n");
            joined.push_str(text.strip_prefix("---\n").unwrap_or(text).trim_end());
            joined.push('\n');
        }
        joined
    }
}

/// Returns true if the path has the extension of a subscription file: `.yaml`, `.yml` or `.json`.
pub(crate) fn is_of_subscriptions(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

fn is_foreign(path: &Path) -> bool {
    path.to_str().is_some_and(dialects::is_foreign)
}

/// Adds the file; for a folder, adds the files below it that `is_read` accepts.
fn read_into(
    path: &Path,
    is_read: fn(&Path) -> bool,
    files: &mut Vec<(String, String)>,
) -> Result<(), (PathBuf, io::Error)> {
    let failed = |error| (path.to_owned(), error);
    if !path.is_dir() {
        let text = file_text::read(path).map_err(failed)?;
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
    // Skip links to folders, because a link to a parent would cause an endless loop.
    let is_entered = |path: &Path| path.is_dir() && !path.is_symlink();
    below
        .iter()
        .filter(|path| !is_hidden(path) && (is_entered(path) || is_read(path)))
        .try_for_each(|path| read_into(path, is_read, files))
}

/// Returns true if one of the findings is an error.
pub(crate) fn have_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Sorts findings by file (in the order of these names), line and column. Findings about anything
/// else, such as a stack, come last. Findings at the same position keep their order.
pub(crate) fn sort_findings<'a>(names: impl Iterator<Item = &'a str>, findings: &mut [Finding]) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, name) in names.enumerate() {
        places.entry(name).or_insert(place);
    }
    findings.sort_by_key(|finding| {
        let place = places.get(finding.file.as_str()).copied().unwrap_or(usize::MAX);
        (place, finding.line, finding.column)
    });
}

/// Prints findings on standard error, one line each.
pub(crate) fn print_findings(findings: &[Finding]) {
    findings.iter().for_each(|finding| note(text::line(&finding.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_in_the_order_of_the_files_as_given_and_then_by_line_and_column() {
        let finding = |severity, file: &str, line, column, field: &str| Finding {
            severity,
            file: file.to_owned(),
            line,
            column,
            field: field.to_owned(),
            message: String::new(),
            help: None,
            reference: None,
        };
        let mut findings = [
            finding(Severity::Error, "stack", 1, 1, "of no file"),
            finding(Severity::Note, "b.yaml", 3, 1, "1"),
            finding(Severity::Error, "a.yaml", 1, 1, "5"),
            finding(Severity::Error, "b.yaml", 20, 1, "4"),
            finding(Severity::Warning, "b.yaml", 3, 7, "2"),
            finding(Severity::Error, "b.yaml", 3, 7, "3"),
        ];
        sort_findings(["b.yaml", "a.yaml", "b.yaml"].into_iter(), &mut findings);
        assert_eq!(findings.map(|finding| finding.field), ["1", "2", "3", "4", "5", "of no file"]);
    }
}
