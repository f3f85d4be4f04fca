//! The subscriptions as a person writes them: read again at each save, with what is wrong in them.
//!
//! Separate from what the functions read: they keep what was valid, and one error in a file hides all of
//! its findings from them. Promises: a file is read within a second after it was saved, a catalogue when a
//! page asks, at most every ten seconds; while nothing can be read, what was read before stays.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapters::file_text;
use adapters::machine::Machine;
use adapters::subscriptions::Location;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use dialects::{Finding, Reading, Severity, Source};

use super::app::SharedApp;
use crate::deployed::{self, Wanted};
use crate::text;

/// How often a file is looked at.
const FILE_EVERY: Duration = Duration::from_millis(500);
/// A catalogue is not read more often than this: it may be large.
const CATALOGUE_EVERY_MS: u64 = 10 * SECOND_MS;

/// The subscriptions, and where they are.
pub(super) struct Sources {
    /// The file, or the folder of a catalogue.
    pub(super) path: PathBuf,
    state: Mutex<Arc<SourcesRead>>,
}

/// What was read last.
#[derive(Clone)]
pub(super) struct SourcesRead {
    pub(super) reading: Reading,
    /// Why nothing could be read; then the reading is an earlier one.
    pub(super) problem: Option<String>,
    pub(super) at_ms: u64,
    /// The text of the file.
    text: Option<String>,
}

impl Default for SourcesRead {
    fn default() -> Self {
        Self { reading: dialects::read(&[]), problem: None, at_ms: 0, text: None }
    }
}

impl SourcesRead {
    /// The errors among the findings.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.reading.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }
}

impl Sources {
    /// Reads them for the first time.
    pub(super) async fn read(path: &Path) -> Self {
        let sources = Self { path: path.to_owned(), state: Mutex::default() };
        sources.refresh().await;
        sources
    }

    /// What was read last.
    pub(super) fn last(&self) -> Arc<SourcesRead> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is wrong, in one sentence.
    pub(super) fn problem(&self) -> Option<String> {
        let last = self.last();
        if let Some(problem) = &last.problem {
            return Some(text::line(problem));
        }
        let count = last.errors().count();
        let name = text::path(&self.path);
        match count {
            0 => None,
            1 => Some(format!("1 error in {name}: it is not used until that is corrected.")),
            count => {
                Some(format!("{count} errors in {name}: it is not used until they are corrected."))
            }
        }
    }

    /// Looks at the file from time to time, and tells the pages when it has changed. For ever.
    pub(super) async fn watch(app: SharedApp) {
        loop {
            tokio::time::sleep(FILE_EVERY).await;
            if !app.setup.subscriptions.is_dir() && app.sources.refresh().await {
                app.tell();
            }
        }
    }

    /// Reads them again if that is due; whether anything is another than before.
    pub(super) async fn refresh(&self) -> bool {
        let last = self.last();
        let at_ms = Machine.now_ms();
        let read = if self.path.is_dir() {
            if last.at_ms != 0 && at_ms.saturating_sub(last.at_ms) < CATALOGUE_EVERY_MS {
                return false;
            }
            self.catalogue_folder(&last, at_ms).await
        } else {
            match self.file(&last, at_ms).await {
                Some(read) => read,
                None => return false,
            }
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        true
    }

    async fn catalogue_folder(&self, last: &SourcesRead, at_ms: u64) -> SourcesRead {
        // With a slash at its end it is a catalogue.
        let folder = match std::path::absolute(&self.path) {
            Ok(path) => Location::File(path.join("")),
            Err(error) => return unreadable(last, &self.path, &error.into(), at_ms),
        };
        match deployed::read(&folder, Wanted::All).await {
            Ok(deployed) => {
                SourcesRead { reading: deployed.reading, problem: None, at_ms, text: None }
            }
            Err(error) => unreadable(last, &self.path, &error, at_ms),
        }
    }

    /// `None` if it is the same as before.
    async fn file(&self, last: &SourcesRead, at_ms: u64) -> Option<SourcesRead> {
        let bytes = tokio::fs::read(&self.path).await;
        let text = match bytes.and_then(|bytes| Ok(file_text::text_of(bytes)?)) {
            Ok(text) => text,
            Err(error) => {
                let read = unreadable(last, &self.path, &error.into(), at_ms);
                return (read.problem != last.problem).then_some(read);
            }
        };
        if last.text.as_ref() == Some(&text) && last.problem.is_none() {
            return None;
        }
        let name = self.path.display().to_string();
        let source = Source { name: &name, text: &text };
        if let Some(finding) = dialects::blank(source) {
            let problem = Some(format!("{finding}. What was read before stays in use."));
            let is_new = problem != last.problem;
            return is_new.then(|| SourcesRead { problem, at_ms, ..last.clone() });
        }
        let reading = dialects::read(&[source]);
        Some(SourcesRead { reading, problem: None, at_ms, text: Some(text) })
    }
}

fn unreadable(last: &SourcesRead, path: &Path, error: &anyhow::Error, at_ms: u64) -> SourcesRead {
    let problem = Some(format!("{} cannot be read: {error:#}", path.display()));
    SourcesRead { problem, at_ms, ..last.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
        metadata: {namespace: n, topic: t, name: s}\nspec: {destination: {url: 'http://127.0.0.1:1/'}}\n";

    #[tokio::test]
    async fn a_file_is_read_again_when_it_was_saved_and_an_error_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subscriptions.yaml");
        std::fs::write(&path, VALID).unwrap();
        let sources = Sources::read(&path).await;
        assert_eq!(
            (sources.problem(), sources.last().reading.catalogue.subscriptions().count()),
            (None, 1)
        );
        assert!(!sources.refresh().await, "nothing was saved");
        std::fs::write(&path, "").unwrap();
        assert!(sources.refresh().await && !sources.refresh().await);
        assert!(sources.problem().unwrap().contains("the file is empty"));
        assert_eq!(sources.last().reading.catalogue.subscriptions().count(), 1, "as it is in use");
        std::fs::write(&path, VALID.replace("url:", "uri:")).unwrap();
        assert!(sources.refresh().await);
        assert!(sources.problem().unwrap().contains("error"), "{:?}", sources.problem());
        std::fs::remove_file(&path).unwrap();
        assert!(sources.refresh().await && !sources.refresh().await);
        assert!(sources.problem().unwrap().contains("cannot be read"));
        std::fs::write(&path, VALID).unwrap();
        assert!(sources.refresh().await);
        assert_eq!(sources.problem(), None);
    }
}
