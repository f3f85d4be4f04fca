//! Compiles subscription files to the objects that dispatch reads, for `dev` and `demo`.
//!
//! The objects are written to the data folder, so nothing is written beside the files. An object is
//! removed if the files no longer have its subscriptions.

use std::path::{Path, PathBuf};

use adapters::live_topics::Location;
use anyhow::Context as _;
use dialects::Reading;

use crate::operations::change_record::ChangeRecord;
use crate::operations::topics::{Plan, Topics};

/// The name of the folder with the objects, in a data folder.
const FOLDER: &str = "subscriptions";
/// The owner of all compiled objects.
const OWNER: &str = "files";

/// The compiled objects in a data folder, which dispatch reads.
pub(crate) struct Compiled {
    pub(crate) folder: PathBuf,
    topics: Topics,
}

impl Compiled {
    /// Opens the folder of compiled objects in this data folder.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub(crate) async fn below(data: &Path) -> anyhow::Result<Self> {
        let folder = data.join(FOLDER);
        let made = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
        let folder = made.with_context(|| format!("{} cannot be created", folder.display()))?;
        let topics = Topics::at(&Location::Folder(folder.clone())).await;
        Ok(Self { folder, topics })
    }

    /// Writes the subscriptions of these files as objects.
    ///
    /// # Errors
    /// If an object cannot be read or written.
    pub(crate) async fn write(&self, reading: &Reading) -> anyhow::Result<()> {
        let beside = self.topics.beside().await?;
        let plan = Plan::prepare(&self.topics, beside, OWNER, reading, true).await?;
        plan.make(&ChangeRecord::default(), |_, _| Ok(())).await
    }
}
