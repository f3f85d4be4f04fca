//! Walks the hours of a container from the newest to the oldest, without listing everything.
//!
//! A listing runs forwards only, in the order of bytes. But the folders are a calendar: one listing
//! each of a year, a month and a day says what is in it, and the newest is opened first. Folders of
//! older time stay pending, and most are never opened. A subscription that fits into one page costs
//! one request.
//!
//! Promises: hours come newest first, and blobs of one hour together, also across subscriptions.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

use adapters::storage::{Entry, ListRequest};
use futures::future::try_join_all;

use crate::container::DeadLetterContainer;
use crate::filter::Filter;
use crate::key::{KEY_FOLDERS, NAME_FOLDERS, RESERVED_FOLDERS, hour_of_key, time_range};

/// Listings under way at a time.
const LISTINGS_AT_ONCE: usize = 16;

/// How many folders the walk opens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAhead {
    /// Opens only what may hold the newest: few requests.
    NewestOnly,
    /// Opens many at once, for callers who want everything; hours come roughly in order.
    Everything,
}

/// A walk under way.
pub(crate) struct Walk {
    container: DeadLetterContainer,
    filter: Filter,
    read_ahead: ReadAhead,
    pending: BinaryHeap<PendingFolder>,
}

/// A folder that has not been opened.
#[derive(Debug, PartialEq, Eq)]
struct PendingFolder {
    /// The time range of the dead letters in it.
    range: Range<u64>,
    /// How many folders there are from the root to it: [`KEY_FOLDERS`] is an hour.
    depth: usize,
    prefix: String,
    /// The blobs of an hour, if they are known already.
    blobs: Option<Vec<Entry>>,
    /// The first page of its subscription, if there are more pages.
    first_page: Option<Arc<[Entry]>>,
}

impl Ord for PendingFolder {
    /// The greatest may hold the newest dead letters. Of the same time, folders further up come
    /// first: their hours are not known before they are opened.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = self.range.end.cmp(&other.range.end);
        by_time.then(other.depth.cmp(&self.depth)).then_with(|| other.prefix.cmp(&self.prefix))
    }
}

impl PartialOrd for PendingFolder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Walk {
    /// A walk over what may match the filter.
    pub(crate) fn new(
        container: &DeadLetterContainer,
        filter: &Filter,
        read_ahead: ReadAhead,
    ) -> Self {
        let root = PendingFolder {
            range: 0..u64::MAX,
            depth: 0,
            prefix: container.root(),
            blobs: None,
            first_page: None,
        };
        Self {
            container: container.clone(),
            filter: filter.clone(),
            read_ahead,
            pending: BinaryHeap::from([root]),
        }
    }

    /// The blobs of the next hour, last written first; of several hours with
    /// [`ReadAhead::Everything`].
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Vec<Entry>>> {
        loop {
            let folders = self.next_folders();
            if folders.is_empty() {
                return Ok(None);
            }
            let (hours, others): (Vec<_>, Vec<_>) =
                folders.into_iter().partition(|folder| folder.depth == KEY_FOLDERS);
            let opened = try_join_all(others.into_iter().map(|folder| self.open(folder))).await?;
            let blobs = try_join_all(hours.into_iter().map(|hour| self.blobs(hour))).await?;
            self.pending.extend(opened.into_iter().flatten());
            let mut blobs: Vec<(u64, Entry)> = blobs.into_iter().flatten().collect();
            blobs.retain(|(_, blob)| self.filter.may_match_key(&blob.key));
            if !blobs.is_empty() {
                // The key breaks ties, so that two walks give the same order.
                blobs.sort_by_cached_key(|(hour, blob)| {
                    (Reverse((*hour, blob.modified_ms)), blob.key.clone())
                });
                return Ok(Some(blobs.into_iter().map(|(_, blob)| blob).collect()));
            }
        }
    }

    /// Takes the folders that are opened next.
    fn next_folders(&mut self) -> Vec<PendingFolder> {
        let Some(first) = self.pending.pop() else { return Vec::new() };
        let (end, is_hour) = (first.range.end, first.depth == KEY_FOLDERS);
        let mut folders = vec![first];
        while let Some(next) = self.pending.peek() {
            let is_taken = match self.read_ahead {
                ReadAhead::NewestOnly => {
                    next.range.end == end && (next.depth == KEY_FOLDERS) == is_hour
                }
                ReadAhead::Everything => folders.len() < LISTINGS_AT_ONCE,
            };
            if !is_taken {
                break;
            }
            folders.extend(self.pending.pop());
        }
        folders
    }

    /// The blobs of an hour, each with the end of the hour.
    async fn blobs(&self, hour: PendingFolder) -> anyhow::Result<Vec<(u64, Entry)>> {
        let blobs = match (hour.blobs, hour.first_page.as_deref()) {
            (Some(blobs), _) => blobs,
            (None, Some(first_page)) => self.list_rest(&hour.prefix, first_page).await?,
            (None, None) => self.list_rest(&hour.prefix, &[]).await?,
        };
        Ok(blobs.into_iter().map(|blob| (hour.range.end, blob)).collect())
    }

    /// The blobs of an hour, some of which the first page of the subscription may have listed
    /// already.
    async fn list_rest(&self, prefix: &str, first_page: &[Entry]) -> anyhow::Result<Vec<Entry>> {
        let mut blobs: Vec<Entry> =
            first_page.iter().filter(|blob| blob.key.starts_with(prefix)).cloned().collect();
        let listed_up_to = first_page.last().map_or("", |blob| blob.key.as_str());
        let is_inside = listed_up_to.starts_with(prefix);
        // A first page that ends after this hour has listed all of it.
        if is_inside || listed_up_to < prefix {
            let start_after = is_inside.then(|| listed_up_to.to_owned());
            let request =
                ListRequest { prefix: prefix.to_owned(), start_after, ..ListRequest::default() };
            blobs.extend(self.container.pages(request).await?.entries);
        }
        Ok(blobs)
    }

    /// The folders in a folder that may hold a match.
    async fn open(&self, folder: PendingFolder) -> anyhow::Result<Vec<PendingFolder>> {
        // The name is known: this level need not be listed.
        if let Some(name) = self.filter.segment_at(folder.depth) {
            let prefix = format!("{}{name}/", folder.prefix);
            return Ok(vec![PendingFolder { depth: folder.depth + 1, prefix, ..folder }]);
        }
        let mut folder = folder;
        if folder.depth == NAME_FOLDERS {
            match self.try_one_page(&folder).await? {
                Ok(hours) => return Ok(hours),
                Err(first_page) => folder.first_page = Some(first_page),
            }
        }
        let prefix = folder.prefix.clone();
        let request = ListRequest { prefix, by_folder: true, ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        Ok(page.folders.into_iter().filter_map(|prefix| self.child(&folder, prefix)).collect())
    }

    /// The hours of a subscription whose blobs fit into one page; else that page.
    async fn try_one_page(
        &self,
        subscription: &PendingFolder,
    ) -> anyhow::Result<Result<Vec<PendingFolder>, Arc<[Entry]>>> {
        let prefix = subscription.prefix.clone();
        let page = self.container.page(&ListRequest { prefix, ..ListRequest::default() }).await?;
        // The page is kept, so that its hours do not list again what it holds.
        if page.next.is_some() {
            return Ok(Err(page.entries.into()));
        }
        let root = self.container.root();
        let mut hours: BTreeMap<u64, PendingFolder> = BTreeMap::new();
        for blob in page.entries {
            let Some(range) =
                hour_of_key(&blob.key, &root).filter(|range| self.filter.may_match_within(range))
            else {
                continue;
            };
            let prefix = subscription.prefix.clone();
            let hour = PendingFolder {
                range: range.clone(),
                depth: KEY_FOLDERS,
                prefix,
                blobs: Some(Vec::new()),
                first_page: None,
            };
            hours.entry(range.start).or_insert(hour).blobs.get_or_insert_default().push(blob);
        }
        Ok(Ok(hours.into_values().collect()))
    }

    fn child(&self, parent: &PendingFolder, prefix: String) -> Option<PendingFolder> {
        let depth = parent.depth + 1;
        let path = prefix.strip_prefix(&self.container.root())?.trim_end_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        if segments.first().is_some_and(|first| RESERVED_FOLDERS.contains(first)) {
            return None;
        }
        let range = if depth <= NAME_FOLDERS {
            // Names say nothing about time; only the calendar below them does.
            parent.range.clone()
        } else {
            time_range(segments.get(NAME_FOLDERS..)?)?
        };
        self.filter.may_match_within(&range).then(|| PendingFolder {
            range,
            depth,
            prefix,
            blobs: None,
            first_page: parent.first_page.clone(),
        })
    }
}
