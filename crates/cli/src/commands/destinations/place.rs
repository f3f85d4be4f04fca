//! Where a deployment keeps its subscriptions, and beside them what it knows of destinations.

use std::path::Path;

use adapters::file_text;
use adapters::storage::{Storage, StoredObject};
use adapters::subscriptions::Location;
use delivery::subscription::catalogue::Catalogue;
use dialects::Source;

use super::failure::{Doing, failure};
use crate::deployed::{self, Wanted};
use crate::files::{have_errors, usage_error};
use crate::stack::Stack;
use crate::{store, text};

/// The subscriptions, unless the location names others: as the template and `lastmile dev` have them.
const SUBSCRIPTIONS: &str = "subscriptions.yaml";
/// The folder that a catalogue has.
const NAMESPACES: &str = "namespaces";

/// Where that is, as options.
#[derive(Debug, clap::Args)]
pub(super) struct PlaceArgs {
    /// The deployed CloudFormation stack, whose outputs say where its subscriptions are
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(super) stack: Option<String>,
    /// Where its subscriptions are: the config bucket as s3://BUCKET, or the folder of the subscriptions file, by default the
    /// working folder, as for `lastmile dev`; s3://BUCKET/KEY or a file, if the subscriptions are not
    /// in subscriptions.yaml; s3://BUCKET/catalogue/ or the folder of a catalogue
    #[arg(long = "to", alias = "config", value_name = "LOCATION", default_value = ".")]
    pub(super) config: String,
}

/// The config bucket of a deployment, or the folder that its subscriptions are in.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) storage: Storage,
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
    pub(super) async fn open(&self) -> anyhow::Result<Place> {
        let location = self.location().await?;
        let StoredObject { storage, key } = store::object(&location).await;
        Ok(Place { storage, subscriptions: key, location })
    }

    async fn location(&self) -> anyhow::Result<Location> {
        if let Some(name) = &self.stack {
            return Stack::describe(name).await?.subscriptions();
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
        Ok(location)
    }

    fn folder(&self) -> anyhow::Result<Location> {
        let path = Path::new(self.config.strip_prefix("file://").unwrap_or(&self.config));
        let file = path.join(SUBSCRIPTIONS);
        if path.join(NAMESPACES).is_dir() && !file.exists() {
            // It may be the working folder. With a slash at its end it is a catalogue.
            return Ok(Location::File(path.canonicalize()?.join("")));
        }
        if path.is_dir() {
            return Ok(Location::File(file));
        }
        // A new folder would be one in which all is well.
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file());
        let Some(name) = name else {
            return Err(usage_error(format!("{} is no folder and no file", text::path(path))));
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Location::File(folder.unwrap_or(Path::new(".")).join(name)))
    }
}

impl Place {
    /// Whether its subscriptions are in a catalogue.
    pub(super) fn is_catalogue(&self) -> bool {
        self.location.is_catalogue()
    }

    /// The object of this key, as people name it.
    pub(super) fn object(&self, key: &str) -> StoredObject {
        StoredObject { storage: self.storage.clone(), key: key.to_owned() }
    }

    /// The subscriptions; of a catalogue those that are wanted.
    pub(super) async fn subscriptions(&self, wanted: Wanted) -> Subscriptions {
        let object = self.object(&self.subscriptions);
        let source = object.to_string();
        if self.location.is_catalogue() {
            return self.of_catalogue(source, wanted).await;
        }
        let (catalogue, problem) = match self.storage.get(&self.subscriptions).await {
            Ok(Some(bytes)) => read(&source, bytes),
            Ok(None) => (Catalogue::default(), Some(format!("{source} does not exist"))),
            Err(error) => {
                let problem = failure(Doing::Read, &object, &error);
                (Catalogue::default(), Some(problem.to_string()))
            }
        };
        Subscriptions { catalogue, source, problem, is_whole: true }
    }

    async fn of_catalogue(&self, source: String, wanted: Wanted) -> Subscriptions {
        let is_whole = match &wanted {
            Wanted::All => true,
            // Then nobody asks for any.
            Wanted::Topics(topics) => topics.is_empty(),
        };
        let (catalogue, problem) = match deployed::read(&self.location, wanted).await {
            Ok(deployed) => {
                let problem =
                    have_errors(&deployed.reading.findings).then(|| left_out(&source, " --to"));
                (deployed.reading.catalogue, problem)
            }
            Err(error) => (Catalogue::default(), Some(format!("{error:#}"))),
        };
        Subscriptions { catalogue, source, problem, is_whole }
    }
}

/// The subscriptions without an error, and whether there are others.
fn read(source: &str, bytes: Vec<u8>) -> (Catalogue, Option<String>) {
    let text = match file_text::text_of(bytes) {
        Ok(text) => text,
        Err(why) => return (Catalogue::default(), Some(format!("{source} cannot be read: {why}"))),
    };
    let reading = dialects::read(&[Source { name: source, text: &text }]);
    let problem = have_errors(&reading.findings).then(|| left_out(source, ""));
    (reading.catalogue, problem)
}

fn left_out(source: &str, option: &str) -> String {
    format!(
        "{source} has errors, and subscriptions with an error are left out; `lastmile check{option}` reports them"
    )
}
