//! Opens a deployment: the location of its subscriptions, and the table with the state of its
//! destinations.
//!
//! Both are opened together, because a description of a destination needs its state and its
//! subscriptions.
//!
//! Promises: unreadable subscriptions are a problem in the result, not an error, because the state
//! can still be shown.

use std::collections::BTreeSet;
use std::path::PathBuf;

use adapters::live_topics::Location;
use adapters::table::DynamoTable;
use delivery::subscription::catalogue::Catalogue;
use local::aws::{TABLE, local_clients};

use crate::operations::files::have_errors;
use crate::operations::place::Place;
use crate::operations::stack::Stack;
use crate::operations::store;
use crate::operations::topics::{self, Topics, Wanted};
use crate::terminal::advice::chain;

/// The number of topics up to which all subscriptions of a deployment are read, so that the result
/// is complete.
const FEW_TOPICS: usize = 100;

/// The table of a deployment, and the location of its subscriptions.
#[derive(Debug, Clone)]
pub(crate) struct Deployment {
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

impl Deployment {
    /// Opens the deployment that the options of a command name.
    ///
    /// # Errors
    /// If the options name only a part of a deployment, or no `lastmile dev` runs.
    pub(crate) async fn open(place: &Place) -> anyhow::Result<Self> {
        // Open the table first, because its errors name the combination of options.
        let table = place.table().await?;
        Ok(Self { table, location: place.subscriptions().await? })
    }

    /// Opens the deployment of a stack.
    ///
    /// # Errors
    /// If the stack has no table or no bucket of subscriptions.
    pub(crate) async fn of_stack(stack: &Stack) -> anyhow::Result<Self> {
        Ok(Self { location: stack.subscriptions()?, table: stack.table().await? })
    }

    /// Creates the deployment of a `lastmile dev` from its AWS endpoint and its folder of
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

fn left_out(source: &str) -> String {
    format!(
        "{source} has errors, and its subscriptions with errors are ignored; `lastmile check --to` reports the errors"
    )
}
