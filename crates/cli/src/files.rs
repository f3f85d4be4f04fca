//! Subscription files as arguments: read, and what is wrong with them told.
//!
//! Separate because checking, explaining and applying begin alike: text into memory,
//! [`manifest::read`] over all of it, findings for people. A file that cannot be read is wrong
//! usage, exit code 2.

use std::path::PathBuf;
use std::process::ExitCode;

use delivery::manifest;
use delivery::manifest::{Finding, Reading, Severity, Source};

/// The exit code of wrong usage.
const USAGE: u8 = 2;

/// Files in memory: each its name and its text.
pub(crate) struct Files(Vec<(String, String)>);

impl Files {
    /// Reads the files, or says which cannot be read.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let read = |path: &PathBuf| match std::fs::read_to_string(path) {
            Ok(text) => Ok((path.display().to_string(), text)),
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        };
        paths.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The name of the first.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", |(name, _)| name)
    }

    /// What they say together.
    pub(crate) fn reading(&self) -> Reading {
        let sources: Vec<Source<'_>> =
            self.0.iter().map(|(name, text)| Source { name, text }).collect();
        manifest::read(&sources)
    }

    /// One text of many documents: a single file as it is, several one after the other.
    pub(crate) fn joined(&self) -> String {
        if let [(_, text)] = self.0.as_slice() {
            return text.clone();
        }
        let mut joined = String::new();
        for (_, text) in &self.0 {
            let text = text.trim_start_matches('\u{feff}').trim_end();
            let text = text.strip_suffix("\n---").unwrap_or(text);
            joined.push_str("---\n");
            joined.push_str(text.strip_prefix("---\n").unwrap_or(text).trim_end());
            joined.push('\n');
        }
        joined
    }
}

/// Whether one of the findings is an error.
pub(crate) fn have_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Tells what is wrong on standard error, one line each.
pub(crate) fn tell(findings: &[Finding]) {
    findings.iter().for_each(|finding| eprintln!("{finding}"));
}

/// Tells what was wrong about the call and gives its exit code.
pub(crate) fn usage(problem: &str) -> ExitCode {
    eprintln!("lastmile: {problem}");
    ExitCode::from(USAGE)
}
