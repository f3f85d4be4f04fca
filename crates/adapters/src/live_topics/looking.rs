//! Looks for changes of the topics that a process keeps.
//!
//! A process that keeps few topics requests each of them again, which is cheaper than a listing. With more topics, each look
//! reads the next page of the listing: a change is in use after as many looks as the deployment has thousands of topics.

use std::collections::BTreeMap;

use delivery::ports::Clock;
use delivery::subscription::name::TopicName;
use futures::FutureExt as _;

use super::LiveTopics;
use crate::storage::Page;

/// The settings and the topics are looked at again after this long. Ten pages of the listing take less than five minutes.
pub const LOOK_EVERY_MS: u64 = 28_000;
/// Up to this number, topics are requested one by one: a page of the listing costs as much as twelve such requests.
pub const FEW_TOPICS: usize = 10;

/// A look has at least this number of topics, if two pages have them.
const TOPICS_OF_A_LOOK: usize = 1_000;
/// Objects beside the topics are on the pages too, so a thousand topics are on two.
const PAGES_OF_A_LOOK: usize = 2;

/// The part of the listing that was read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The last key of the page before.
    after: Option<String>,
    looked_ms: Option<u64>,
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Marks the topics that have changed or may have, if a look is due.
    pub(super) async fn look_for_changes(&self) {
        let now_ms = self.clock.now_ms();
        let mut after = {
            let mut state = self.state();
            let listing = &mut state.listing;
            let is_due = |looked_ms| now_ms.abs_diff(looked_ms) >= self.look_every_ms;
            // The first read of a topic needs no listing.
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
            // Boxed: the future is large, and most invocations list nothing.
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

    /// Compares the topics with a page of the listing, which begins after this key. Returns the number of topics on it.
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
