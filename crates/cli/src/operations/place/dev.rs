//! Finds the `lastmile dev` of a folder: its subscriptions, and the endpoint of its local AWS.
//!
//! The endpoint is in the lock file of the data folder. It is valid only while `lastmile dev` runs.

use std::path::{Path, PathBuf};

use adapters::live_topics::Location;

use crate::operations::data_lock;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The default data folder of `lastmile dev`.
const DATA: &str = ".lastmile";
/// The folder with the compiled subscriptions, in the data folder.
const SUBSCRIPTIONS: &str = "subscriptions";
/// The endpoint of the local AWS if `lastmile dev` uses the default port.
pub(crate) const DEFAULT_AWS_ENDPOINT: &str = "http://127.0.0.1:4566";

/// The data folder of a `lastmile dev` process, which may have ended.
pub(super) struct Dev {
    data: PathBuf,
}

impl Dev {
    /// Finds the `lastmile dev` process that was started in this folder, or that uses this folder
    /// as its data folder.
    ///
    /// # Errors
    /// A usage error if the folder does not exist. An error if no `lastmile dev` has run there.
    pub(super) fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        if !folder.is_dir() {
            return Err(usage_error(format!(
                "{} is not a folder: expected s3://bucket/prefix/, file:///folder/ or the folder in which `lastmile \
                 dev` runs",
                text::path(folder)
            )));
        }
        let all = [folder.join(DATA), folder.to_owned()];
        // A folder without the lock file must be an error. Otherwise, an empty folder would look
        // like a healthy deployment.
        let used = all.into_iter().find(|data| data_lock::is_in(data));
        let data = used.ok_or_else(|| {
            anyhow::anyhow!(
                "no `lastmile dev` runs in the folder {}: use --to for another folder, or --stack for a deployed stack",
                text::path(folder)
            )
        })?;
        Ok(Self { data })
    }

    /// Finds the `lastmile dev` process that was started in the working folder.
    pub(super) fn here() -> anyhow::Result<Self> {
        Self::in_folder(Path::new("."))
    }

    /// Returns the location of the subscriptions that this `lastmile dev` compiled.
    pub(super) fn subscriptions(&self) -> Location {
        Location::Folder(self.data.join(SUBSCRIPTIONS))
    }

    /// Returns the endpoint of the local AWS that this `lastmile dev` runs.
    ///
    /// # Errors
    /// If this `lastmile dev` does not run.
    pub(super) fn aws_endpoint(&self) -> anyhow::Result<String> {
        data_lock::aws_endpoint(&self.data)
    }
}

/// Returns the endpoint of the local AWS that commands use by default. If a `lastmile dev` runs in
/// the working folder, returns its endpoint; otherwise, the endpoint on the default port.
pub(crate) fn default_aws_endpoint() -> String {
    let here = Dev::here().and_then(|dev| dev.aws_endpoint());
    here.unwrap_or_else(|_| DEFAULT_AWS_ENDPOINT.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::data_lock::DataLock;

    #[test]
    fn a_dev_is_found_by_its_working_folder_and_by_its_data_folder_while_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join(DATA);
        assert!(Dev::in_folder(folder.path()).is_err());
        assert!(Dev::in_folder(&data).is_err());
        let mut lock = DataLock::take(&data).expect("nobody uses it");
        lock.says(&["http://127.0.0.1:8080", "http://127.0.0.1:5000"]);
        for named in [folder.path(), &data] {
            let dev = Dev::in_folder(named).expect("it has run there");
            assert_eq!(dev.subscriptions(), Location::Folder(data.join(SUBSCRIPTIONS)));
            assert_eq!(dev.aws_endpoint().ok().as_deref(), Some("http://127.0.0.1:5000"));
        }
        drop(lock);
        data_lock::error_after_end(&data);
        let ended = Dev::in_folder(folder.path()).expect("it has run there");
        assert!(ended.aws_endpoint().is_err());
    }
}
