//! The subscriptions of a deployment, wherever they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::ports::{Clock, SubscriptionSource};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;

use super::LiveCatalogue;
use super::objects::CatalogueObjects;
use crate::machine::Machine;
use crate::storage::StoredObject;
use crate::subscriptions::{LOCAL_FILE_EVERY_MS, LiveSubscriptions, Location};

/// The subscriptions of a deployment, from a file or a catalogue.
#[derive(Debug)]
pub enum Subscriptions<C = Machine> {
    /// One file or object, read whole.
    Whole(Box<LiveSubscriptions<C>>),
    /// A catalogue, read by need.
    ByNeed(Box<LiveCatalogue<C>>),
}

impl Subscriptions {
    /// Those at this location, which is this object.
    #[must_use]
    pub fn new(location: &Location, object: StoredObject) -> Self {
        match location.is_catalogue() {
            true => {
                let objects = CatalogueObjects::below(&object);
                Self::ByNeed(Box::new(LiveCatalogue::new(objects, Machine)))
            }
            false => {
                let source = LiveSubscriptions::new(object, Machine);
                Self::Whole(Box::new(match location {
                    Location::File(_) => source.checked_every(LOCAL_FILE_EVERY_MS).refusing_blank(),
                    Location::S3 { .. } => source,
                }))
            }
        }
    }
}

impl<C: Clock + Send + Sync> SubscriptionSource for Subscriptions<C> {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        match self {
            Self::Whole(source) => source.current().await,
            Self::ByNeed(source) => source.current().await,
        }
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        match self {
            Self::Whole(source) => source.with_topics(known, topics).await,
            Self::ByNeed(source) => source.with_topics(known, topics).await,
        }
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        match self {
            Self::Whole(source) => source.reread(known, topics).await,
            Self::ByNeed(source) => source.reread(known, topics).await,
        }
    }
}
