//! Reads and changes items in the table of destinations, without losing concurrent changes.
//!
//! Functions write the same items at the same time. Therefore, a change reads the newest version of
//! an item, and replaces it only if it is still the newest. If another writer was faster, the
//! change is repeated after a random pause.

use adapters::machine::Machine;
use adapters::table::DynamoTable;
use anyhow::{Context as _, anyhow, bail};
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::{AllNews, NEWS, NEWS_MAX, News};
use delivery::delivery::health::shared::{DestinationState, Document};
use delivery::ports::{Clock as _, JitterSource as _};
use delivery::table::{Expected, ItemKey, Stored, Table as _, TableError};
use futures::stream::{self, StreamExt as _};

use super::deployment::Deployment;
use crate::terminal::advice::chain;

/// The maximum number of attempts to change an item that others change at the same time.
const TRIES: u32 = 8;
/// The maximum pause after the first attempt. The maximum doubles after each further attempt.
const FIRST_PAUSE_MS: u64 = 20;
/// The maximum number of namespaces or items that are read concurrently.
pub(super) const READS_AT_ONCE: usize = 16;

/// The result of changing an item.
#[derive(Debug)]
pub(crate) struct Updated<D> {
    /// The document that is stored after the change.
    pub(crate) document: Option<D>,
    pub(crate) has_changed: bool,
}

/// All destinations that have a stored state or a published change.
#[derive(Debug)]
pub(crate) struct States {
    pub(crate) states: Vec<(DestinationKey, DestinationState)>,
    /// The destinations whose state could not be read, each with the reason.
    pub(crate) problems: Vec<(DestinationKey, String)>,
}

impl Deployment {
    /// Changes the newest version of a stored document. Leaves the document unchanged if `change`
    /// returns `None`.
    pub(crate) async fn update<D: Document>(
        &self,
        item: &ItemKey,
        change: impl Fn(Option<&D>) -> Option<D>,
    ) -> anyhow::Result<Updated<D>> {
        let mut has_changed = false;
        for tried in 0..TRIES {
            let (document, version) = read::<D>(&self.table, item).await?.unzip();
            let Some(changed) = change(document.as_ref()) else {
                // An earlier attempt of this call may have stored the document although its
                // response was lost.
                return Ok(Updated { document, has_changed });
            };
            has_changed = true;
            let expected = version.map_or(Expected::Nothing, Expected::Version);
            let replaced =
                self.table.replace(item, &changed.entry(), expected, Machine.now_ms()).await;
            if replaced.map_err(failure)? {
                return Ok(Updated { document: Some(changed), has_changed });
            }
            // Pause for a random time, so that concurrent writers do not collide again.
            pause(FIRST_PAUSE_MS << tried).await;
        }
        bail!(
            "item {item} was not changed, because other processes changed it repeatedly; repeat \
             the command"
        )
    }

    /// Publishes these changes to all processes of the functions.
    pub(crate) async fn tell(&self, news: &[News]) -> anyhow::Result<()> {
        for change in news {
            let (item, entry, now_ms) = (change.item(), change.entry(), Machine.now_ms());
            let write = self.table.replace(&item, &entry, Expected::Anything, now_ms);
            write.await.map_err(failure)?;
        }
        Ok(())
    }

    /// Reads the published changes, as the functions do.
    pub(crate) async fn news(&self) -> anyhow::Result<AllNews> {
        let news = self.table.newest(NEWS, NEWS_MAX).await.map_err(failure)?;
        Ok(news.iter().filter_map(|item| News::read(item.text.as_bytes()).ok()).collect())
    }

    /// Reads all destinations that have a published change, or a stored state in a namespace of the
    /// deployment.
    pub(crate) async fn states(&self) -> anyhow::Result<States> {
        let mut namespaces = self.namespaces().await;
        let news = self.news().await?;
        namespaces.extend(news.namespaces().map(str::to_owned));
        let read = async |namespace: String| self.table.all(&namespace).await;
        let mut found = States { states: Vec::new(), problems: Vec::new() };
        let mut reads = stream::iter(namespaces).map(read).buffered(READS_AT_ONCE);
        while let Some(items) = reads.next().await {
            for (item, stored) in items.map_err(failure)? {
                let Some(key) = DestinationKey::of_health_item(&item) else { continue };
                if stored.has_expired(Machine.now_ms()) {
                    continue;
                }
                match document(&item, &stored) {
                    Ok(state) => found.states.push((key, state)),
                    Err(error) => found.problems.push((key, chain(&error))),
                }
            }
        }
        Ok(found)
    }
}

/// Reads the state of a destination; `None` if the table has none.
pub(crate) async fn state(
    table: &DynamoTable,
    namespace: &str,
    key: DestinationKey,
) -> anyhow::Result<Option<DestinationState>> {
    Ok(read(table, &key.health_item(namespace)).await?.map(|(state, _)| state))
}

/// Reads the document of an item, and its version.
async fn read<D: Document>(
    table: &DynamoTable,
    item: &ItemKey,
) -> anyhow::Result<Option<(D, u64)>> {
    let stored = table.entry(item, Machine.now_ms()).await.map_err(failure)?;
    stored.map(|stored| Ok((document(item, &stored)?, stored.version))).transpose()
}

fn document<D: Document>(item: &ItemKey, stored: &Stored) -> anyhow::Result<D> {
    D::read(stored.text.as_bytes()).with_context(|| format!("item {item} cannot be used"))
}

/// Converts an error of the table to the error of a command. If access was denied, the message
/// names the necessary permissions.
pub(crate) fn failure(error: TableError) -> anyhow::Error {
    let needed = match error.problem.contains("AccessDenied") {
        true => {
            "; required permissions on the table: dynamodb:GetItem, dynamodb:Query, and \
             dynamodb:UpdateItem for changes"
        }
        false => "",
    };
    anyhow!("{error}{needed}")
}

async fn pause(most_ms: u64) {
    Machine.sleep(u64::from(Machine.next_jitter().0) % most_ms).await;
}
