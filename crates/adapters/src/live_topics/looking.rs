//! Checks the cached topics for changes.
//!
//! With few topics, a process requests each of them, which is cheaper than a listing. With more,
//! each check reads the next pages of the listing. A deployment with N thousand topics therefore
//! uses a change after at most about N checks.

use std::collections::BTreeMap;

use delivery::ports::Clock;
use delivery::subscription::name::TopicName;
use futures::FutureExt as _;

use super::LiveTopics;
use crate::storage::Page;

/// Interval between checks for new settings and topics. Ten checks take less than five minutes.
pub const LOOK_EVERY_MS: u64 = 28_000;
/// Maximum number of topics that are requested one by one instead of listed. A page of the listing
/// costs as much as twelve such requests.
pub const FEW_TOPICS: usize = 10;

/// Number of topics after which a check reads no further page.
const TOPICS_OF_A_LOOK: usize = 1_000;
/// Maximum number of pages that one check reads. Two, because pages also contain objects that are
/// not topics, so a thousand topics may need a second page.
const PAGES_OF_A_LOOK: usize = 2;

/// The position of the checks in the listing.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The last key of the previous page; `None` at the beginning.
    after: Option<String>,
    looked_ms: Option<u64>,
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// If a check is due, marks cached topics that have changed, or may have changed, as stale.
    pub(super) async fn look_for_changes(&self) {
        let now_ms = self.clock.now_ms();
        let mut after = {
            let mut state = self.state();
            let listing = &mut state.listing;
            let is_due = |looked_ms| now_ms.abs_diff(looked_ms) >= self.look_every_ms;
            // A process that has just read its first topic needs no check.
            if !is_due(*listing.looked_ms.get_or_insert(now_ms)) {
                return;
            }
            listing.looked_ms = Some(now_ms);
            if state.topics.len() <= FEW_TOPICS {
                state.topics.make_all_stale();
                return;
            }
            state.listing.after.clone()
        };
        let mut topics = 0;
        for _ in 0..PAGES_OF_A_LOOK {
            // Boxed, because the future is large and most invocations list nothing.
            let page = match self.objects.page(after.as_deref()).boxed().await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(problem = %error, "subscriptions.not_listed");
                    return;
                }
            };
            topics += self.compare(&page, after.as_deref(), now_ms);
            after = self.state().listing.after.clone();
            if after.is_none() || topics >= TOPICS_OF_A_LOOK {
                return;
            }
        }
    }

    /// Compares the cached topics with a page of the listing that begins after the key `after`.
    /// Returns the number of topics on the page.
    fn compare(&self, page: &Page, after: Option<&str>, now_ms: u64) -> usize {
        let last = page.entries.last().map(|entry| entry.key.clone());
        let next = last.filter(|_| page.next.is_some());
        let listed = page
            .entries
            .iter()
            .filter_map(|entry| Some((self.objects.topic_of(&entry.key)?, entry.etag.as_str())));
        let listed: BTreeMap<TopicName, &str> = listed.collect();
        let is_on_page = |name: &TopicName| {
            let key = self.objects.key_of(name);
            after.is_none_or(|after| key.as_str() > after)
                && next.as_deref().is_none_or(|last| key.as_str() <= last)
        };
        let mut state = self.state();
        state.topics.compare(&listed, is_on_page, now_ms);
        state.listing.after = next;
        listed.len()
    }
}
