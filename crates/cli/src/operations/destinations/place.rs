//! Finds the location of a deployment's subscriptions, and the table with the state of its
//! destinations.
//!
//! Separate because options name both together: a stack, a folder of `lastmile dev`, or a bucket
//! with a table.
//!
//! Promises: unreadable subscriptions are a problem in the result, not an error, because the state
//! can still be shown.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use adapters::live_topics::{Location, SETTINGS};
use adapters::table::DynamoTable;
use delivery::subscription::catalogue::Catalogue;
use local::aws::{TABLE, local_clients};

use crate::operations::data_lock;
use crate::operations::files::have_errors;
use crate::operations::stack::{self, Stack};
use crate::operations::store;
use crate::operations::topics::{self, Topics, Wanted};
use crate::terminal::advice::chain;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The name of the folder with subscriptions, in the template and in `lastmile dev`.
const SUBSCRIPTIONS: &str = "subscriptions";
/// The number of topics up to which all subscriptions of a deployment are read, so that the result
/// is complete.
const FEW_TOPICS: usize = 100;
/// The default data folder of `lastmile dev`.
const DATA: &str = ".lastmile";

/// The options that name a deployment.
#[derive(Debug, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Deployed CloudFormation stack; its outputs name its subscriptions and its table
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) stack: Option<String>,
    /// Location of the subscriptions: the config bucket as s3://BUCKET or s3://BUCKET/PREFIX/,
    /// which requires --table, or the folder in which `lastmile dev` runs
    #[arg(long = "to", alias = "config", value_name = "LOCATION", default_value = ".")]
    pub(crate) config: String,
    /// DynamoDB table of the deployment with --to s3://BUCKET: the stack's output TableName
    #[arg(long, value_name = "NAME", conflicts_with = "stack")]
    pub(crate) table: Option<String>,
}

/// The table of a deployment, and the location of its subscriptions.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) table: DynamoTable,
    location: Location,
}

/// The subscriptions of a deployment, as far as they can be read.
pub(crate) struct Subscriptions {
    pub(crate) catalogue: Catalogue,
    /// The bucket or folder that contains the subscriptions, for messages.
    pub(crate) source: String,
    /// The reason why some subscriptions could not be read.
    pub(crate) problem: Option<String>,
    /// False if only the subscriptions of some topics were read.
    pub(crate) is_whole: bool,
}

impl PlaceArgs {
    pub(crate) async fn open(&self) -> anyhow::Result<Place> {
        if let Some(name) = &self.stack {
            let stack = Stack::describe(name).await?;
            let table =
                DynamoTable::new(&stack::aws().await, stack.output("TableName")?.to_owned());
            return Ok(Place { table, location: stack.subscriptions()? });
        }
        let Some(bucket) = self.config.strip_prefix("s3://") else {
            if self.table.is_some() {
                return Err(usage_error(
                    "--table needs --to s3://BUCKET; leave it out for the `lastmile dev` that runs in a folder",
                ));
            }
            return self.folder();
        };
        let Some(table) = &self.table else {
            return Err(usage_error(
                "--table is missing: with s3://BUCKET, it names the table of the deployment; --stack knows it",
            ));
        };
        let bucket = bucket.trim_end_matches('/');
        let uri = match bucket.split_once('/') {
            Some((bucket, prefix)) => format!("s3://{bucket}/{prefix}/"),
            None => format!("s3://{bucket}/{SUBSCRIPTIONS}/"),
        };
        let location = Location::parse(&uri).map_err(usage_error)?;
        Ok(Place { table: DynamoTable::new(&stack::aws().await, table.clone()), location })
    }

    /// Finds the table and the subscriptions of the `lastmile dev` that runs in this folder. The
    /// subscriptions are in the folder itself, in its folder `subscriptions`, or in the data
    /// folder.
    fn folder(&self) -> anyhow::Result<Place> {
        let path = Path::new(self.config.strip_prefix("file://").unwrap_or(&self.config));
        // A missing folder must be an error: a new, empty one would look like a healthy deployment.
        if !path.is_dir() {
            return Err(usage_error(format!("{} is no folder", text::path(path))));
        }
        let of_dev = path.join(DATA);
        let (data, subscriptions) = if path.join(SETTINGS).is_file() {
            let path = path.canonicalize()?;
            (path.parent().unwrap_or(&path).to_owned(), path)
        } else if of_dev.join(SUBSCRIPTIONS).is_dir() {
            let subscriptions = of_dev.join(SUBSCRIPTIONS);
            (of_dev, subscriptions)
        } else {
            (path.to_owned(), path.join(SUBSCRIPTIONS))
        };
        let endpoint = data_lock::aws_endpoint(&data)?;
        Ok(Place::local(&endpoint, subscriptions))
    }
}

impl Place {
    /// Creates the location of a `lastmile dev` from its AWS endpoint and its folder of
    /// subscriptions.
    pub(crate) fn local(aws_endpoint: &str, subscriptions: PathBuf) -> Self {
        let table = DynamoTable::new(&local_clients(aws_endpoint), TABLE.to_owned());
        Self { table, location: Location::Folder(subscriptions) }
    }

    /// Returns the namespaces of the deployment's topics; empty if the topics cannot be listed.
    pub(crate) async fn namespaces(&self) -> BTreeSet<String> {
        let names = Topics::at(&self.location).await.names().await;
        names.unwrap_or_default().into_iter().map(|name| name.namespace).collect()
    }

    /// Returns true if the topics can be listed, and there are any.
    pub(crate) async fn has_topics(&self) -> bool {
        let names = Topics::at(&self.location).await.names().await;
        names.is_ok_and(|names| !names.is_empty())
    }

    /// Reads the wanted subscriptions. In a small deployment, reads all, so that the result is
    /// complete.
    pub(crate) async fn subscriptions(&self, wanted: Wanted) -> Subscriptions {
        let names = Topics::at(&self.location).await.names().await;
        let are_few = names.is_ok_and(|names| names.len() <= FEW_TOPICS);
        let wanted = if are_few { Wanted::All } else { wanted };
        let source = store::object(&self.location).await.to_string();
        let is_whole = match &wanted {
            Wanted::All => true,
            // Without wanted topics, no subscription has to be read.
            Wanted::Topics(topics) => topics.is_empty(),
        };
        let (catalogue, problem) = match topics::read(&self.location, wanted).await {
            Ok(deployed) => {
                let problem = have_errors(&deployed.reading.findings).then(|| left_out(&source));
                (deployed.reading.catalogue, problem)
            }
            Err(error) => (Catalogue::default(), Some(chain(&error))),
        };
        Subscriptions { catalogue, source, problem, is_whole }
    }
}

/// Opens the table that one of these options names: by the name of a stack, by the folder of a
/// `lastmile dev`, or by its own name.
pub(crate) async fn table_of(
    stack: Option<String>,
    folder: Option<String>,
    table: Option<String>,
) -> anyhow::Result<Option<DynamoTable>> {
    if let Some(name) = table {
        return Ok(Some(DynamoTable::new(&stack::aws().await, name)));
    }
    if stack.is_none() && folder.is_none() {
        return Ok(None);
    }
    let place = PlaceArgs { stack, config: folder.unwrap_or_default(), table: None };
    let place = if place.stack.is_none() { place.folder() } else { place.open().await };
    Ok(Some(place?.table))
}

fn left_out(source: &str) -> String {
    format!(
        "{source} has errors, and subscriptions with an error are left out; `lastmile check --to` reports them"
    )
}
