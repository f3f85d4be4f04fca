//! Walks the hours of a container from the newest to the oldest, without listing everything.
//!
//! A listing runs only forwards, in byte order. But the folders form a calendar: listing a year, a
//! month or a day shows its subfolders, and the newest one is opened first. Older folders stay
//! pending, and most are never opened. A subscription whose blobs fit into one page costs one
//! request. If a caller wants the blobs of all times, a subscription is listed page by page
//! instead, because a page holds more blobs than most hours.
//!
//! Promises: with [`ReadAhead::NewestOnly`], hours come newest first, and each hour comes with the
//! blobs of all subscriptions. At most [`EXTRA_PAGES_MAX`] pages of blobs are held in addition to
//! the first page of each subscription.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};

use adapters::storage::{Entry, ListRequest};
use futures::future::try_join_all;

use crate::container::DeadLetterContainer;
use crate::filter::Filter;
use crate::key::{KEY_FOLDERS, NAME_FOLDERS, RESERVED_FOLDERS, hour_of_key, time_range};

const LISTINGS_AT_ONCE: usize = 16;
/// Maximum number of pages that a walk lists instead of hours: 200,000 blobs of about 300 bytes
/// each.
const EXTRA_PAGES_MAX: usize = 200;

/// Determines how many folders a walk opens at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAhead {
    /// Open only folders that may contain the newest blobs, to save requests.
    NewestOnly,
    /// Open many folders at once, for callers that stop early. Hours come roughly in order.
    ManyHours,
    /// Open many folders at once and list by pages, for callers that want all blobs. Hours come
    /// roughly in order.
    Everything,
}

/// A walk over the hours of a container, from the newest to the oldest.
pub(crate) struct Walk {
    container: DeadLetterContainer,
    filter: Filter,
    read_ahead: ReadAhead,
    pending: BinaryHeap<PendingFolder>,
    /// Number of further pages that may be listed, initially [`EXTRA_PAGES_MAX`].
    pages_left: AtomicUsize,
}

/// A folder that the walk has not opened yet.
#[derive(Debug, PartialEq, Eq)]
struct PendingFolder {
    /// The time range of the dead letters in the folder.
    range: Range<u64>,
    /// Number of folders from the root to this folder. [`KEY_FOLDERS`] means an hour folder.
    depth: usize,
    prefix: String,
    /// The blobs of an hour folder, if they are already listed.
    blobs: Option<Vec<Entry>>,
    /// The first pages of the folder's subscription, if the subscription has more pages.
    first_pages: Option<Arc<[Entry]>>,
}

impl Ord for PendingFolder {
    /// Orders folders so that the greatest may contain the newest dead letters. At equal times, a
    /// folder nearer to the root is greater, because its hours are only known after opening it.
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
    /// Starts a walk over folders that may match the filter.
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
            first_pages: None,
        };
        Self {
            container: container.clone(),
            filter: filter.clone(),
            read_ahead,
            pending: BinaryHeap::from([root]),
            pages_left: AtomicUsize::new(EXTRA_PAGES_MAX),
        }
    }

    /// Returns the blobs of the next hour, last written first. Returns the blobs of several hours
    /// unless the walk is [`ReadAhead::NewestOnly`].
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
            blobs.retain(|(_, blob)| self.filter.has_wanted_key(&blob.key));
            if !blobs.is_empty() {
                // The key breaks ties, so that two walks give the same order.
                blobs.sort_by_cached_key(|(hour, blob)| {
                    (Reverse((*hour, blob.modified_ms)), blob.key.clone())
                });
                return Ok(Some(blobs.into_iter().map(|(_, blob)| blob).collect()));
            }
        }
    }

    /// Removes the folders to open next from the queue of pending folders, and returns them.
    fn next_folders(&mut self) -> Vec<PendingFolder> {
        let Some(first) = self.pending.pop() else { return Vec::new() };
        let (end, is_hour) = (first.range.end, first.depth == KEY_FOLDERS);
        let mut folders = vec![first];
        while let Some(next) = self.pending.peek() {
            let is_taken = match self.read_ahead {
                ReadAhead::NewestOnly => {
                    next.range.end == end && (next.depth == KEY_FOLDERS) == is_hour
                }
                ReadAhead::ManyHours | ReadAhead::Everything => folders.len() < LISTINGS_AT_ONCE,
            };
            if !is_taken {
                break;
            }
            folders.extend(self.pending.pop());
        }
        folders
    }

    /// Returns the blobs of an hour folder, each with the end of the hour.
    async fn blobs(&self, hour: PendingFolder) -> anyhow::Result<Vec<(u64, Entry)>> {
        let blobs = match (hour.blobs, hour.first_pages.as_deref()) {
            (Some(blobs), _) => blobs,
            (None, Some(first_pages)) => self.list_rest(&hour.prefix, first_pages).await?,
            (None, None) => self.list_rest(&hour.prefix, &[]).await?,
        };
        Ok(blobs.into_iter().map(|blob| (hour.range.end, blob)).collect())
    }

    /// Returns the blobs of an hour folder. Takes them from the first pages of the subscription as
    /// far as these contain the hour, and lists only the rest.
    async fn list_rest(&self, prefix: &str, first_pages: &[Entry]) -> anyhow::Result<Vec<Entry>> {
        let mut blobs: Vec<Entry> =
            first_pages.iter().filter(|blob| blob.key.starts_with(prefix)).cloned().collect();
        let listed_up_to = first_pages.last().map_or("", |blob| blob.key.as_str());
        let is_inside = listed_up_to.starts_with(prefix);
        // Pages that end after this hour contain all of it.
        if is_inside || listed_up_to < prefix {
            let start_after = is_inside.then(|| listed_up_to.to_owned());
            let request =
                ListRequest { prefix: prefix.to_owned(), start_after, ..ListRequest::default() };
            blobs.extend(self.container.pages(request).await?.entries);
        }
        Ok(blobs)
    }

    /// Opens a folder, and returns the subfolders that may contain a match.
    async fn open(&self, folder: PendingFolder) -> anyhow::Result<Vec<PendingFolder>> {
        // The filter fixes this name, so the level need not be listed.
        if let Some(name) = self.filter.segment_at(folder.depth) {
            let prefix = format!("{}{name}/", folder.prefix);
            return Ok(vec![PendingFolder { depth: folder.depth + 1, prefix, ..folder }]);
        }
        let mut folder = folder;
        if folder.depth == NAME_FOLDERS {
            match self.try_pages(&folder).await? {
                Ok(hours) => return Ok(hours),
                Err(first_pages) => folder.first_pages = Some(first_pages),
            }
        }
        let prefix = folder.prefix.clone();
        let request = ListRequest { prefix, by_folder: true, ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        Ok(page.folders.into_iter().filter_map(|prefix| self.child(&folder, prefix)).collect())
    }

    /// Returns the hour folders of a subscription, if its blobs fit into the pages that may be
    /// listed. Otherwise returns these pages.
    async fn try_pages(
        &self,
        subscription: &PendingFolder,
    ) -> anyhow::Result<Result<Vec<PendingFolder>, Arc<[Entry]>>> {
        let prefix = subscription.prefix.clone();
        let (mut request, mut listed) =
            (ListRequest { prefix, ..ListRequest::default() }, Vec::new());
        loop {
            let page = self.container.page(&request).await?;
            listed.extend(page.entries);
            request.page_token = page.next;
            if request.page_token.is_none() {
                return Ok(Ok(self.hours(subscription, listed)));
            }
            // Keep the pages, so that the hours do not list the same blobs again.
            if !self.may_list_page() {
                return Ok(Err(listed.into()));
            }
        }
    }

    /// True if another page of a subscription may be listed; counts this page as used. False with a
    /// time range, or if the caller may stop early, because most blobs of the subscription are then
    /// not needed.
    fn may_list_page(&self) -> bool {
        let of_any_time = self.filter.since_ms.is_none() && self.filter.until_ms.is_none();
        let (relaxed, take_one) = (atomic::Ordering::Relaxed, |left: usize| left.checked_sub(1));
        of_any_time
            && self.read_ahead == ReadAhead::Everything
            && self.pages_left.fetch_update(relaxed, relaxed, take_one).is_ok()
    }

    /// Groups the listed blobs of a subscription by hour. Omits hours that cannot match the filter.
    fn hours(&self, subscription: &PendingFolder, listed: Vec<Entry>) -> Vec<PendingFolder> {
        let root = self.container.root();
        let mut hours: BTreeMap<u64, PendingFolder> = BTreeMap::new();
        for blob in listed {
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
                first_pages: None,
            };
            hours.entry(range.start).or_insert(hour).blobs.get_or_insert_default().push(blob);
        }
        hours.into_values().collect()
    }

    fn child(&self, parent: &PendingFolder, prefix: String) -> Option<PendingFolder> {
        let depth = parent.depth + 1;
        let path = prefix.strip_prefix(&self.container.root())?.trim_end_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        if segments.first().is_some_and(|first| RESERVED_FOLDERS.contains(first)) {
            return None;
        }
        let range = if depth <= NAME_FOLDERS {
            // Names contain no time; the calendar begins below them.
            parent.range.clone()
        } else {
            time_range(segments.get(NAME_FOLDERS..)?)?
        };
        self.filter.may_match_within(&range).then(|| PendingFolder {
            range,
            depth,
            prefix,
            blobs: None,
            first_pages: parent.first_pages.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::dead_letters::DeadLetters;

    /// The first page of 1,000 ends in the middle of an hour. With 2,100 blobs, it would end
    /// exactly at the end of an hour.
    const BLOBS: usize = 2_107;
    const HOURS: usize = 42;

    #[tokio::test]
    async fn everything_is_listed_by_pages_and_a_time_range_by_hours() {
        let folder = tempfile::tempdir().unwrap();
        let mut expected = HashSet::new();
        for number in 0..BLOBS {
            let (day, hour) = (1 + number % HOURS / 24, number % HOURS % 24);
            let key = format!("shop/orders/billing/2026/11/{day}/{hour}/{number}.json");
            let path = folder.path().join(&key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
            expected.insert(key);
        }
        let container = DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap();
        let letters = DeadLetters::new(container);
        let everything = Filter::default();
        assert_eq!(letters.keys(&everything).await.unwrap(), expected);
        // One request each for namespaces, topics and subscriptions, and three pages of blobs.
        assert_eq!(letters.container.requests(), 6);
        for (read_ahead, extra) in [(ReadAhead::ManyHours, 0), (ReadAhead::Everything, 2)] {
            let mut walk = Walk::new(&letters.container, &everything, read_ahead);
            walk.next().await.unwrap();
            assert_eq!(walk.pages_left.into_inner(), EXTRA_PAGES_MAX - extra, "{read_ahead:?}");
        }
        let mut walk = Walk::new(&letters.container, &everything, ReadAhead::NewestOnly);
        let mut walked = HashSet::new();
        while let Some(hour) = walk.next().await.unwrap() {
            walked.extend(hour.into_iter().map(|blob| blob.key));
        }
        assert_eq!(walked, expected, "no blob is missing where the first page ends");
        let before = letters.container.requests();
        let second_day = Filter { since_ms: Some(1_793_577_600_001), ..Filter::default() };
        expected.retain(|key| key.contains("/11/2/"));
        assert_eq!(letters.keys(&second_day).await.unwrap(), expected);
        assert!(letters.container.requests() >= before + 18, "one for each hour of that day");
    }
}
