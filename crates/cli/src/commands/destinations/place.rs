//! Where a deployment keeps its subscriptions, and beside them what it knows of destinations.

use std::path::Path;

use adapters::live_topics::{Location, SETTINGS};
use adapters::storage::{Storage, StoredObject};
use delivery::subscription::catalogue::Catalogue;

use crate::files::{have_errors, usage_error};
use crate::stack::Stack;
use crate::topics::{self, Topics, Wanted};
use crate::{store, text};

/// The folder of the subscriptions, as the template and `lastmile dev` have it.
const SUBSCRIPTIONS: &str = "subscriptions";
/// A deployment with at most so many topics is read as a whole.
const FEW_TOPICS: usize = 100;
/// The data folder of `lastmile dev`.
const DATA: &str = ".lastmile";

/// Where that is, as options.
#[derive(Debug, clap::Args)]
pub(crate) struct PlaceArgs {
    /// The deployed CloudFormation stack, whose outputs say where its subscriptions are
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) stack: Option<String>,
    /// Where its subscriptions are: the config bucket as s3://BUCKET, s3://BUCKET/PREFIX/, or the folder in which
    /// `lastmile dev` runs, by default the working folder
    #[arg(long = "to", alias = "config", value_name = "LOCATION", default_value = ".")]
    pub(crate) config: String,
}

/// The config bucket of a deployment, or the folder that its subscriptions are in.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) storage: Storage,
    subscriptions: String,
    location: Location,
}

/// The subscriptions of a deployment, as far as they can be read.
pub(super) struct Subscriptions {
    pub(super) catalogue: Catalogue,
    /// Where they were read.
    pub(super) source: String,
    /// Why not all of them could be read.
    pub(super) problem: Option<String>,
    /// Whether they are all, or those of some topics.
    pub(super) is_whole: bool,
}

impl PlaceArgs {
    pub(crate) async fn open(&self) -> anyhow::Result<Place> {
        let location = self.location().await?;
        let StoredObject { storage, key } = store::object(&location).await;
        Ok(Place { storage, subscriptions: key, location })
    }

    async fn location(&self) -> anyhow::Result<Location> {
        if let Some(name) = &self.stack {
            return Stack::describe(name).await?.subscriptions();
        }
        let Some(bucket) = self.config.strip_prefix("s3://") else { return self.folder() };
        let bucket = bucket.trim_end_matches('/');
        let uri = match bucket.split_once('/') {
            Some((bucket, prefix)) => format!("s3://{bucket}/{prefix}/"),
            None => format!("s3://{bucket}/{SUBSCRIPTIONS}/"),
        };
        Location::parse(&uri).map_err(usage_error)
    }

    /// The folder of the subscriptions, which is this folder itself, in it, or in its data folder.
    fn folder(&self) -> anyhow::Result<Location> {
        let path = Path::new(self.config.strip_prefix("file://").unwrap_or(&self.config));
        // A new folder would be one in which all is well.
        if !path.is_dir() {
            return Err(usage_error(format!("{} is no folder", text::path(path))));
        }
        if path.join(SETTINGS).is_file() {
            // With its name, since the documents are beside it.
            return Ok(Location::Folder(path.canonicalize()?));
        }
        let of_dev = path.join(DATA).join(SUBSCRIPTIONS);
        Ok(Location::Folder(if of_dev.is_dir() { of_dev } else { path.join(SUBSCRIPTIONS) }))
    }
}

impl Place {
    /// The object of this key, as people name it.
    pub(super) fn object(&self, key: &str) -> StoredObject {
        StoredObject { storage: self.storage.clone(), key: key.to_owned() }
    }

    /// Whether there is any topic, as far as they can be listed.
    pub(super) async fn has_topics(&self) -> bool {
        let names = Topics::at(&self.location).await.names().await;
        names.is_ok_and(|names| !names.is_empty())
    }

    /// The subscriptions that are wanted, or all if they are few: then the answer is complete.
    pub(super) async fn subscriptions(&self, wanted: Wanted) -> Subscriptions {
        let names = Topics::at(&self.location).await.names().await;
        let are_few = names.is_ok_and(|names| names.len() <= FEW_TOPICS);
        let wanted = if are_few { Wanted::All } else { wanted };
        let source = self.object(&self.subscriptions).to_string();
        let is_whole = match &wanted {
            Wanted::All => true,
            // Then nobody asks for any.
            Wanted::Topics(topics) => topics.is_empty(),
        };
        let (catalogue, problem) = match topics::read(&self.location, wanted).await {
            Ok(deployed) => {
                let problem = have_errors(&deployed.reading.findings).then(|| left_out(&source));
                (deployed.reading.catalogue, problem)
            }
            Err(error) => (Catalogue::default(), Some(format!("{error:#}"))),
        };
        Subscriptions { catalogue, source, problem, is_whole }
    }
}

fn left_out(source: &str) -> String {
    format!(
        "{source} has errors, and subscriptions with an error are left out; `lastmile check --to` reports them"
    )
}
