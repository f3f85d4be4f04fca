//! Where a deployment keeps its subscriptions, and beside them what it knows of destinations.

use std::path::Path;

use adapters::storage::{Storage, StoredObject};
use adapters::subscriptions::Location;
use anyhow::bail;
use delivery::manifest::{self, Source};
use delivery::subscription::catalogue::Catalogue;

use super::failure::{Doing, failure};
use crate::files::{have_errors, usage_error};
use crate::stack::Stack;
use crate::store;

/// The subscriptions, unless the location names others: as the template and `lastmile dev` have them.
const SUBSCRIPTIONS: &str = "subscriptions.yaml";

/// Where that is, as options.
#[derive(Debug, clap::Args)]
pub(super) struct PlaceArgs {
    /// The deployed CloudFormation stack, whose outputs say where its subscriptions are
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(super) stack: Option<String>,
    /// The config bucket as s3://BUCKET, or the folder of the subscriptions file, by default the
    /// working folder, as for `lastmile dev`; s3://BUCKET/KEY or a file, if the subscriptions are not
    /// in subscriptions.yaml
    #[arg(long, value_name = "LOCATION", default_value = ".")]
    pub(super) config: String,
}

/// The config bucket of a deployment, or the folder of its subscriptions file.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) storage: Storage,
    subscriptions: String,
}

/// The subscriptions of a deployment, as far as they can be read.
pub(super) struct Subscriptions {
    pub(super) catalogue: Catalogue,
    /// Where they were read.
    pub(super) source: String,
    /// Why not all of them could be read.
    pub(super) problem: Option<String>,
}

impl PlaceArgs {
    pub(super) async fn open(&self) -> anyhow::Result<Place> {
        if let Some(name) = &self.stack {
            let subscriptions = Stack::describe(name).await?.subscriptions()?;
            let StoredObject { storage, key } = subscriptions.object(store::client().await);
            return Ok(Place { storage, subscriptions: key });
        }
        let Some(bucket) = self.config.strip_prefix("s3://") else { return self.folder() };
        let is_file = bucket.trim_end_matches('/').contains('/');
        let uri = match is_file {
            true => self.config.clone(),
            false => format!("s3://{}/{SUBSCRIPTIONS}", bucket.trim_end_matches('/')),
        };
        let Ok(location @ Location::S3 { .. }) = Location::parse(&uri) else {
            let expected = "s3://BUCKET or s3://BUCKET/KEY is expected";
            return Err(usage_error(format!("{} is no place of S3: {expected}", self.config)));
        };
        let StoredObject { storage, key } = location.object(store::client().await);
        Ok(Place { storage, subscriptions: key })
    }

    fn folder(&self) -> anyhow::Result<Place> {
        let path = Path::new(self.config.strip_prefix("file://").unwrap_or(&self.config));
        if path.is_dir() {
            let storage = Storage::folder(path);
            return Ok(Place { storage, subscriptions: SUBSCRIPTIONS.to_owned() });
        }
        // A new folder would be one in which all is well.
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file());
        let Some(name) = name else { bail!("{} is no folder and no file", path.display()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let storage = Storage::folder(folder.unwrap_or(Path::new(".")));
        Ok(Place { storage, subscriptions: name.to_owned() })
    }
}

impl Place {
    /// The object of this key, as people name it.
    pub(super) fn object(&self, key: &str) -> StoredObject {
        StoredObject { storage: self.storage.clone(), key: key.to_owned() }
    }

    /// The subscriptions.
    pub(super) async fn subscriptions(&self) -> Subscriptions {
        let object = self.object(&self.subscriptions);
        let source = object.to_string();
        let (catalogue, problem) = match self.storage.get(&self.subscriptions).await {
            Ok(Some(bytes)) => read(&source, bytes),
            Ok(None) => (Catalogue::default(), Some(format!("{source} does not exist"))),
            Err(error) => {
                let problem = failure(Doing::Read, &object, &error);
                (Catalogue::default(), Some(problem.to_string()))
            }
        };
        Subscriptions { catalogue, source, problem }
    }
}

/// The subscriptions without an error, and whether there are others.
fn read(source: &str, bytes: Vec<u8>) -> (Catalogue, Option<String>) {
    let Ok(text) = String::from_utf8(bytes) else {
        return (Catalogue::default(), Some(format!("{source} is not UTF-8 text")));
    };
    let reading = manifest::read(&[Source { name: source, text: &text }]);
    let problem = have_errors(&reading.findings).then(|| {
        format!("{source} has errors, and subscriptions with an error are left out; `lastmile check` reports them")
    });
    (reading.catalogue, problem)
}
