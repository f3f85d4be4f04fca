//! Walks the hours of a container from the newest to the oldest, without listing everything.
//!
//! A listing runs forwards only, by bytes. The folders are a calendar, though: of a year, a month
//! and a day one listing each says what is in it, and the newest is looked into first. What stands
//! for older time waits, and mostly is never looked into. A subscription that fits into one page
//! costs one request.
//!
//! Promises: hours come newest first, those of one hour together; of subscriptions that are walked
//! side by side too.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

use futures::future::try_join_all;

use super::filter::Filter;
use super::place::{FOLDERS, LEDGERS, NAMES, hour_of, moments};
use super::storage::{Ask, Blob, Place};

/// Listings under way at a time.
const AT_ONCE: usize = 16;

/// How far the walk runs ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Looks into nothing but what may hold the newest: few requests.
    NewestOnly,
    /// Looks into much at once, for who wants everything; hours come roughly in order.
    Everything,
}

/// A walk under way.
pub(crate) struct Walk {
    place: Place,
    filter: Filter,
    pace: Pace,
    frontier: BinaryHeap<Folder>,
}

/// A folder that has not been looked into.
#[derive(Debug, PartialEq, Eq)]
struct Folder {
    /// The moments it may hold letters of.
    moments: Range<u64>,
    /// How many folders lie between it and the root: [`FOLDERS`] is an hour.
    depth: usize,
    prefix: String,
    /// The blobs of an hour that are known already.
    found: Option<Vec<Blob>>,
    /// The first page of its subscription, if that was not all.
    begun: Option<Arc<[Blob]>>,
}

impl Ord for Folder {
    /// What may hold newer letters comes first; of the same time what is to be opened before it can
    /// be told.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = self.moments.end.cmp(&other.moments.end);
        by_time.then(other.depth.cmp(&self.depth)).then_with(|| other.prefix.cmp(&self.prefix))
    }
}

impl PartialOrd for Folder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Walk {
    /// A walk over what the filter may take.
    pub(crate) fn new(place: &Place, filter: &Filter, pace: Pace) -> Self {
        let root = Folder {
            moments: 0..u64::MAX,
            depth: 0,
            prefix: place.root(),
            found: None,
            begun: None,
        };
        Self {
            place: place.clone(),
            filter: filter.clone(),
            pace,
            frontier: BinaryHeap::from([root]),
        }
    }

    /// The blobs of the next hour, those written last first; of [`Pace::Everything`] of several
    /// hours.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Vec<Blob>>> {
        loop {
            let folders = self.take();
            if folders.is_empty() {
                return Ok(None);
            }
            let (hours, others): (Vec<_>, Vec<_>) =
                folders.into_iter().partition(|folder| folder.depth == FOLDERS);
            let opened = try_join_all(others.into_iter().map(|folder| self.open(folder))).await?;
            let blobs = try_join_all(hours.into_iter().map(|hour| self.blobs(hour))).await?;
            self.frontier.extend(opened.into_iter().flatten());
            let mut blobs: Vec<(u64, Blob)> = blobs.into_iter().flatten().collect();
            if !blobs.is_empty() {
                blobs.sort_by_cached_key(|(hour, blob)| {
                    (Reverse((*hour, blob.modified_ms)), blob.key.clone())
                });
                return Ok(Some(blobs.into_iter().map(|(_, blob)| blob).collect()));
            }
        }
    }

    /// Takes the folders to look into next.
    fn take(&mut self) -> Vec<Folder> {
        let Some(first) = self.frontier.pop() else { return Vec::new() };
        let (end, is_hour) = (first.moments.end, first.depth == FOLDERS);
        let mut taken = vec![first];
        while let Some(next) = self.frontier.peek() {
            let together = match self.pace {
                Pace::NewestOnly => next.moments.end == end && (next.depth == FOLDERS) == is_hour,
                Pace::Everything => taken.len() < AT_ONCE,
            };
            if !together {
                break;
            }
            taken.extend(self.frontier.pop());
        }
        taken
    }

    /// The blobs of an hour, each with the end of the hour.
    async fn blobs(&self, hour: Folder) -> anyhow::Result<Vec<(u64, Blob)>> {
        let blobs = match (hour.found, hour.begun.as_deref()) {
            (Some(found), _) => found,
            (None, Some(begun)) => self.rest(&hour.prefix, begun).await?,
            (None, None) => self.rest(&hour.prefix, &[]).await?,
        };
        Ok(blobs.into_iter().map(|blob| (hour.moments.end, blob)).collect())
    }

    /// The blobs of an hour, some of which the first page of the subscription may have told
    /// already.
    async fn rest(&self, prefix: &str, begun: &[Blob]) -> anyhow::Result<Vec<Blob>> {
        let mut blobs: Vec<Blob> =
            begun.iter().filter(|blob| blob.key.starts_with(prefix)).cloned().collect();
        let told_up_to = begun.last().map_or("", |blob| blob.key.as_str());
        let is_inside = told_up_to.starts_with(prefix);
        if is_inside || told_up_to < prefix {
            let start = is_inside.then(|| told_up_to.to_owned());
            let ask = Ask { prefix: prefix.to_owned(), start, ..Ask::default() };
            blobs.extend(self.place.pages(ask).await?.blobs);
        }
        Ok(blobs)
    }

    /// The folders in a folder that may hold what is meant.
    async fn open(&self, folder: Folder) -> anyhow::Result<Vec<Folder>> {
        if let Some(name) = self.filter.segment_at(folder.depth) {
            let prefix = format!("{}{name}/", folder.prefix);
            return Ok(vec![Folder { depth: folder.depth + 1, prefix, ..folder }]);
        }
        let mut folder = folder;
        if folder.depth == NAMES {
            match self.small(&folder).await? {
                Ok(hours) => return Ok(hours),
                Err(begun) => folder.begun = Some(begun),
            }
        }
        let page = self
            .place
            .pages(Ask { prefix: folder.prefix.clone(), by_folder: true, ..Ask::default() })
            .await?;
        Ok(page.folders.into_iter().filter_map(|prefix| self.child(&folder, prefix)).collect())
    }

    /// The hours of a subscription whose blobs fit into one page; else that page.
    async fn small(
        &self,
        subscription: &Folder,
    ) -> anyhow::Result<Result<Vec<Folder>, Arc<[Blob]>>> {
        let page =
            self.place.page(&Ask { prefix: subscription.prefix.clone(), ..Ask::default() }).await?;
        if page.next.is_some() {
            return Ok(Err(page.blobs.into()));
        }
        let root = self.place.root();
        let mut hours: BTreeMap<u64, Folder> = BTreeMap::new();
        for blob in page.blobs {
            let Some(moments) =
                hour_of(&blob.key, &root).filter(|moments| self.filter.looks_into(moments))
            else {
                continue;
            };
            let prefix = subscription.prefix.clone();
            let hour = Folder {
                moments: moments.clone(),
                depth: FOLDERS,
                prefix,
                found: Some(Vec::new()),
                begun: None,
            };
            hours.entry(moments.start).or_insert(hour).found.get_or_insert_default().push(blob);
        }
        Ok(Ok(hours.into_values().collect()))
    }

    fn child(&self, parent: &Folder, prefix: String) -> Option<Folder> {
        let depth = parent.depth + 1;
        let path = prefix.strip_prefix(&self.place.root())?.trim_end_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        if segments.first() == Some(&LEDGERS) {
            return None;
        }
        let moments =
            if depth <= NAMES { parent.moments.clone() } else { moments(segments.get(NAMES..)?)? };
        self.filter.looks_into(&moments).then(|| Folder {
            moments,
            depth,
            prefix,
            found: None,
            begun: parent.begun.clone(),
        })
    }
}
