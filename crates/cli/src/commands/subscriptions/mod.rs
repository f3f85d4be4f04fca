//! `lastmile subscriptions`: single subscriptions of a catalogue, listed, read, written and removed, and what it
//! no longer needs.
//!
//! A change is made in the newest version of its namespace: if somebody else is faster, it is made again in
//! theirs, so no change is lost. Each verb is a file; what they share is here.

mod change;
mod gc;
pub(crate) mod history;
mod list;

use std::convert::Infallible;
use std::future::ready;
use std::process::ExitCode;

use adapters::live_catalogue::entries::{self, DEPLOYMENT};
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::machine::Machine;
use adapters::storage::StoredObject;
use adapters::subscriptions::Location;
use catalogue::{Changes, Namespace, NodeCache};
use clap::Subcommand;

use crate::output::{goes_on_unread, is_closed};
use crate::store::{self, Target};
use crate::text;

/// The nodes on the way to a subscription.
const NODES_KEPT_BYTES: usize = 1_024 * 1_024;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists the subscriptions of a namespace or a topic
    List(list::Arguments),
    /// Prints a subscription as it is stored
    Get(list::GetArgs),
    /// Adds the subscriptions and topics of a file, or replaces those of the same names
    Put(change::PutArgs),
    /// Removes a subscription
    Delete(change::DeleteArgs),
    /// Lists who changed a namespace, when, and what
    History(history::Arguments),
    /// Removes what no version of the last 30 days needs
    Gc(gc::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if matches!(arguments.verb, Verb::Put(_) | Verb::Delete(_) | Verb::Gc(_)) {
        goes_on_unread();
    }
    let done = match arguments.verb {
        Verb::List(arguments) => list::run(arguments).await,
        Verb::Get(arguments) => list::get(arguments).await,
        Verb::Put(arguments) => change::put(arguments).await,
        Verb::Delete(arguments) => change::delete(arguments).await,
        Verb::History(arguments) => history::run(arguments).await,
        Verb::Gc(arguments) => gc::run(arguments).await,
    };
    done.or_else(|error| if is_closed(&error) { Ok(ExitCode::SUCCESS) } else { Err(error) })
}

/// The catalogue of a deployment.
pub(crate) struct OpenCatalogue {
    pub(crate) folder: StoredObject,
    pub(crate) objects: CatalogueObjects,
    nodes: NodeCache,
}

impl OpenCatalogue {
    async fn of(target: &Target) -> anyhow::Result<Self> {
        Self::at(&target.location().await?).await
    }

    /// The one at this address.
    pub(crate) async fn at(location: &Location) -> anyhow::Result<Self> {
        let folder = store::object(location).await;
        if !location.is_catalogue() {
            anyhow::bail!(
                "{folder} is a file: change it with lastmile apply; the address of a catalogue ends with a slash"
            );
        }
        let objects = CatalogueObjects::below(&folder);
        Ok(Self { folder, objects, nodes: NodeCache::new(NODES_KEPT_BYTES) })
    }

    /// Makes it a catalogue, if it is none yet.
    async fn mark(&self) -> anyhow::Result<()> {
        let namespace = self.namespace(DEPLOYMENT);
        let loaded = namespace.load_to_change().await?;
        // Without its pointer nobody else sees the settings.
        if loaded.is_none_or(|(snapshot, _)| snapshot.is_without_pointer()) {
            let (key, value) = entries::mark();
            let mut changes = Changes::default();
            changes.put(key, value);
            let change = |_| ready(Ok::<_, Infallible>(changes.clone()));
            namespace.commit(&Machine, "lastmile", change).await?;
        }
        Ok(())
    }

    /// Why nothing of a namespace is found.
    pub(crate) fn nothing_in_use(&self, name: &str) -> String {
        format!(
            "{}: nothing of a namespace {} is in use: lastmile check says whether its pointer is missing",
            self.folder,
            text::line(name)
        )
    }

    pub(crate) fn namespace(&self, name: &str) -> Namespace<'_, CatalogueObjects> {
        Namespace::new(&self.objects, &self.nodes, name)
    }
}
