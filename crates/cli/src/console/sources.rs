//! Reads the subscriptions that the pages show, from files or from a deployment.
//!
//! Promises:
//!
//! - A saved file is read within a second.
//! - A deployment is read at most every half minute.
//! - If a reading fails, the result of the previous one stays in use.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use dialects::{Finding, Reading, Severity};

use crate::operations::destinations::deployment::Deployment;
use crate::operations::files::Files;
use crate::operations::topics::Wanted;
use crate::terminal::text;

/// The interval at which files are checked for changes.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The maximum age of the cached subscriptions of a deployment.
const DEPLOYED_MAX_AGE_MS: u64 = 30 * SECOND_MS;

/// The source from which the console reads subscriptions.
pub(crate) enum Sources {
    /// Files on this machine.
    Files(FileSources),
    /// A deployment, for example a stack.
    Deployed(DeployedSources),
    /// No source: the console shows only a container of dead letters.
    Unknown,
}

/// A source that reads subscriptions from files.
pub(crate) struct FileSources {
    /// The paths of files, and of folders with files.
    files: Vec<PathBuf>,
    state: Mutex<Arc<SourcesRead>>,
}

/// A source that reads the subscriptions of a deployment.
pub(crate) struct DeployedSources {
    deployment: Deployment,
    /// The result of the last reading; `None` before the first one.
    last: tokio::sync::Mutex<Option<Arc<SourcesRead>>>,
}

/// The last subscriptions that could be read, and the problem if a later reading failed.
#[derive(Clone)]
pub(crate) struct SourcesRead {
    pub(super) reading: Reading,
    /// The reason why the latest reading failed. If that reading returned no subscriptions,
    /// `reading` contains those of an earlier one.
    pub(super) problem: Option<String>,
    pub(super) at_ms: u64,
    /// The names of the files, or the address of the deployment, for display.
    pub(super) names: String,
    /// The texts of the files, which are compared to detect changes.
    texts: Option<String>,
}

impl Default for SourcesRead {
    fn default() -> Self {
        Self {
            reading: dialects::read(&[]),
            problem: None,
            at_ms: 0,
            names: String::new(),
            texts: None,
        }
    }
}

impl SourcesRead {
    /// Returns the findings that are errors.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.reading.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }
}

impl Sources {
    /// Creates a source from files, and reads them for the first time.
    pub(crate) fn files(files: Vec<PathBuf>) -> Self {
        Self::Files(FileSources::read(files))
    }

    /// Creates a source from a deployment, which is read when the subscriptions are first needed.
    pub(crate) fn deployed(deployment: Deployment) -> Self {
        Self::Deployed(DeployedSources { deployment, last: tokio::sync::Mutex::default() })
    }

    /// Returns the current subscriptions. Reads a deployment again if the last result is too old.
    pub(super) async fn read(&self) -> Arc<SourcesRead> {
        match self {
            Self::Files(files) => files.last(),
            Self::Deployed(deployed) => deployed.read().await,
            Self::Unknown => Arc::default(),
        }
    }

    /// Returns the result of the last reading of files; empty for other sources.
    pub(super) fn last(&self) -> Arc<SourcesRead> {
        match self {
            Self::Files(files) => files.last(),
            Self::Deployed(_) | Self::Unknown => Arc::default(),
        }
    }

    /// Describes the problem with the files in one sentence; `None` without a problem.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Files(files) => files.problem(),
            Self::Deployed(_) | Self::Unknown => None,
        }
    }

    /// Reads the files again. Returns true if anything has changed.
    pub(super) fn refresh(&self) -> bool {
        match self {
            Self::Files(files) => files.refresh(),
            Self::Deployed(_) | Self::Unknown => false,
        }
    }
}

impl DeployedSources {
    async fn read(&self) -> Arc<SourcesRead> {
        let mut last = self.last.lock().await;
        let oldest_ms = Machine.now_ms().saturating_sub(DEPLOYED_MAX_AGE_MS);
        if let Some(last) = last.as_ref().filter(|last| last.at_ms >= oldest_ms) {
            return Arc::clone(last);
        }
        let read = self.deployment.subscriptions(Wanted::All).await;
        let (at_ms, before) = (Machine.now_ms(), last.clone().unwrap_or_default());
        let is_lost = read.problem.is_some() && read.catalogue.topics().next().is_none();
        let reading = if is_lost {
            before.reading.clone()
        } else {
            Reading { catalogue: read.catalogue, ..dialects::read(&[]) }
        };
        let names = read.source;
        let new =
            Arc::new(SourcesRead { reading, problem: read.problem, at_ms, names, texts: None });
        *last = Some(Arc::clone(&new));
        new
    }
}

impl FileSources {
    /// Creates a source from files, and reads them for the first time.
    fn read(files: Vec<PathBuf>) -> Self {
        let sources = Self { files, state: Mutex::default() };
        sources.refresh();
        sources
    }

    /// Returns the result of the last reading.
    fn last(&self) -> Arc<SourcesRead> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Formats the names of the files for display.
    fn names(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|path| text::path(path)).collect();
        names.join(", ")
    }

    /// Describes the problem with the files, or the number of errors in them, in one sentence.
    /// Returns `None` if the files have neither.
    fn problem(&self) -> Option<String> {
        let last = self.last();
        if let Some(problem) = &last.problem {
            return Some(text::line(problem));
        }
        let count = last.errors().count();
        let name = self.names();
        match count {
            0 => None,
            1 => {
                Some(format!("1 error in {name}; the files are not applied until it is corrected."))
            }
            count => Some(format!(
                "{count} errors in {name}; the files are not applied until they are corrected."
            )),
        }
    }

    /// Reads the files again. Returns true if anything has changed.
    fn refresh(&self) -> bool {
        let last = self.last();
        let Some(read) = self.read_again(&last) else { return false };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        true
    }

    /// Reads the files; `None` if nothing has changed.
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
            return stays(format!("{finding}. The previous version stays in use."));
        }
        let reading = files.reading();
        Some(SourcesRead { reading, problem: None, at_ms, names: self.names(), texts: Some(texts) })
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
        let sources = FileSources::read(vec![path.clone()]);
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
