//! The subscriptions as a person writes them: read again at each save, with what is wrong in them.
//!
//! Separate from what the functions read: they have what was valid, and one error in a file hides all of its findings from
//! them. Promises: files are read within a second after one was saved; while nothing can be read, what was read before
//! stays.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use dialects::{Finding, Reading, Severity};

use super::app::SharedApp;
use crate::files::Files;
use crate::text;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The subscriptions, and the files that have them.
pub(super) struct Sources {
    /// The files, and folders of them.
    pub(super) files: Vec<PathBuf>,
    state: Mutex<Arc<SourcesRead>>,
}

/// What was read last.
#[derive(Clone)]
pub(super) struct SourcesRead {
    pub(super) reading: Reading,
    /// Why nothing could be read; then the reading is an earlier one.
    pub(super) problem: Option<String>,
    pub(super) at_ms: u64,
    /// The texts of the files.
    texts: Option<String>,
}

impl Default for SourcesRead {
    fn default() -> Self {
        Self { reading: dialects::read(&[]), problem: None, at_ms: 0, texts: None }
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
    pub(super) fn read(files: Vec<PathBuf>) -> Self {
        let sources = Self { files, state: Mutex::default() };
        sources.refresh();
        sources
    }

    /// What was read last.
    pub(super) fn last(&self) -> Arc<SourcesRead> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The files, as people name them.
    pub(super) fn names(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|path| text::path(path)).collect();
        names.join(", ")
    }

    /// What is wrong, in one sentence.
    pub(super) fn problem(&self) -> Option<String> {
        let last = self.last();
        if let Some(problem) = &last.problem {
            return Some(text::line(problem));
        }
        let count = last.errors().count();
        let name = self.names();
        match count {
            0 => None,
            1 => Some(format!("1 error in {name}: it is not used until that is corrected.")),
            count => {
                Some(format!("{count} errors in {name}: it is not used until they are corrected."))
            }
        }
    }

    /// Looks at the files from time to time, and tells the pages when they have changed. For ever.
    pub(super) async fn watch(app: SharedApp) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if app.sources.refresh() {
                app.tell();
            }
        }
    }

    /// Reads them again; whether anything is another than before.
    pub(super) fn refresh(&self) -> bool {
        let last = self.last();
        let Some(read) = self.read_again(&last) else { return false };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        true
    }

    /// `None` if they are the same as before.
    fn read_again(&self, last: &SourcesRead) -> Option<SourcesRead> {
        let at_ms = Machine.now_ms();
        let stays = |problem: String| {
            let problem = Some(problem);
            let is_new = problem != last.problem;
            is_new.then(|| SourcesRead { problem, at_ms, ..last.clone() })
        };
        let files = match Files::read(&self.files) {
            Ok(files) => files,
            Err(error) => return stays(error.to_string()),
        };
        let texts = files.joined();
        if last.texts.as_ref() == Some(&texts) && last.problem.is_none() {
            return None;
        }
        let blank = files.blank();
        if let Some(finding) = blank.iter().find(|finding| finding.severity == Severity::Error) {
            return stays(format!("{finding}. What was read before stays in use."));
        }
        let reading = files.reading();
        Some(SourcesRead { reading, problem: None, at_ms, texts: Some(texts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
        metadata: {namespace: n, topic: t, name: s}\nspec: {destination: {url: 'http://127.0.0.1:1/'}}\n";

    #[test]
    fn a_file_is_read_again_when_it_was_saved_and_an_error_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subscriptions.yaml");
        std::fs::write(&path, VALID).unwrap();
        let sources = Sources::read(vec![path.clone()]);
        assert_eq!(
            (sources.problem(), sources.last().reading.catalogue.subscriptions().count()),
            (None, 1)
        );
        assert!(!sources.refresh(), "nothing was saved");
        std::fs::write(&path, "").unwrap();
        assert!(sources.refresh() && !sources.refresh());
        assert!(sources.problem().unwrap().contains("the file is empty"));
        assert_eq!(sources.last().reading.catalogue.subscriptions().count(), 1, "as it is in use");
        std::fs::write(&path, VALID.replace("url:", "uri:")).unwrap();
        assert!(sources.refresh());
        assert!(sources.problem().unwrap().contains("error"), "{:?}", sources.problem());
        std::fs::remove_file(&path).unwrap();
        assert!(sources.refresh() && !sources.refresh());
        assert!(sources.problem().unwrap().contains("cannot be read"));
        std::fs::write(&path, VALID).unwrap();
        assert!(sources.refresh());
        assert_eq!(sources.problem(), None);
    }
}
