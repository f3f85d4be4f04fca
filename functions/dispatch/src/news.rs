//! Exchanges the health of destinations with other processes, as published changes
//! (`delivery::delivery::health::news`). One process probes a failing destination, and all others
//! wait.
//!
//! A process writes its findings at the end of an invocation, and writes nothing while all
//! destinations are healthy. It writes the slowness of a destination immediately. A process reads
//! the published changes when it starts, and then at most every 30 seconds. After a request without
//! a response, requests to the table pause for 30 seconds, and each process decides by itself. If
//! findings are lost with a process, other processes make them again.

use std::sync::{Arc, Mutex, PoisonError};

use adapters::runtime::contained;
use adapters::telemetry::Telemetry;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::{AllNews, NEWS, NEWS_MAX, News};
use delivery::delivery::health::notice::Transition;
use delivery::delivery::health::shared::{DestinationState, Document as _, Findings};
use delivery::ports::{DispatchPorts, SubscriptionSource as _};
use delivery::table::{Expected, Table as _};
use delivery::time::duration::SECOND_MS;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::deadline::Deadline;
use crate::destination::{Destination, Destinations, recovering};
use crate::invocation::Invocation;
use crate::notices::{self, Notices};
use crate::table::{SharedTable, Unreachable};

/// Minimum interval between two reads of the published changes.
pub const READ_EVERY_MS: u64 = 30 * SECOND_MS;
const WRITES_AT_ONCE: usize = 8;

#[derive(Debug)]
pub(crate) struct Exchange<P> {
    pub(crate) ports: Arc<P>,
    pub(crate) table: Arc<SharedTable<P>>,
    pub(crate) destinations: Arc<Destinations<P>>,
    pub(crate) notices: Arc<Notices<P>>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) read_ms: Mutex<Option<u64>>,
}

impl<P: DispatchPorts> Exchange<P> {
    pub(crate) async fn learn(&self, deadline: &Deadline) {
        if let Some(began_ms) = self.begin_reading() {
            contained("learn", self.learn_all(began_ms, deadline).boxed()).await;
        }
    }

    /// Returns the current time if a read of the published changes is due, and then schedules the
    /// next read after [`READ_EVERY_MS`], even if the table refuses this one. Otherwise each
    /// invocation would repeat a read that has just failed.
    fn begin_reading(&self) -> Option<u64> {
        let mut read_ms = self.read_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = self.ports.now_ms();
        let is_due = read_ms.is_none_or(|read_ms| now_ms >= read_ms.saturating_add(READ_EVERY_MS));
        let begins = is_due && !self.table.is_unreachable();
        if !begins {
            return None;
        }
        *read_ms = Some(now_ms);
        *read_ms
    }

    async fn learn_all(&self, began_ms: u64, deadline: &Deadline) {
        let asked = self.table.port().newest(NEWS, NEWS_MAX);
        let Ok(stored) = self.table.answer(asked, deadline).await else { return };
        let now_ms = self.ports.now_ms();
        let news = stored.iter().filter(|item| !item.has_expired(now_ms));
        // An item of a newer version cannot be read, and is skipped.
        let news: AllNews = news.filter_map(|item| News::read(item.text.as_bytes()).ok()).collect();
        self.adopt(&news, began_ms);
        self.destinations.adopt_switches(&news);
        self.ports.subscriptions().were_changed(news.topics());
    }

    /// Adopts the health of destinations from published changes, which were read at `read_ms`. Skips
    /// destinations about which this process found something newer.
    fn adopt(&self, news: &AllNews, read_ms: u64) {
        let now_ms = self.ports.now_ms();
        for (namespace, health) in news.health() {
            // A healthy destination without a state in this process needs no state.
            let known = match health.is_news() {
                true => Some(self.destinations.known().get(health.destination, namespace)),
                false => self.destinations.known().find(health.destination),
            };
            let Some(destination) = known else { continue };
            let mut state = destination.state();
            if state.is_newer_than(read_ms) {
                continue;
            }
            if health.failing.is_some() || health.refusing.is_some() {
                let known = state.last_failure.take();
                state.last_failure = health.last_failure.clone().or(known);
            }
            match health.failing {
                Some(spell) => state.failures.adopt(spell, now_ms),
                // Failures below the threshold of probation concern this process alone.
                None if state.failures.is_on_probation() => state.failures.forget(),
                None => {}
            }
            match health.slow {
                Some(spell) => state.slowness.adopt(spell, now_ms),
                None => state.slowness.forget(),
            }
            // Another process found this series of failures. The first success here ends the
            // series.
            state.streak_published_ms =
                state.streak_published_ms.or(health.refusing.map(|row| row.since_ms));
            if health.failing.is_none() {
                recovering::begin(&mut state, health.ended_ms, health.ceiling, now_ms);
            }
        }
    }

    /// Writes the findings of this process about destinations. Retries a failed write later.
    pub(crate) async fn share_health(&self, invocation: &Invocation<'_>) {
        // The topic of notices is unknown without subscriptions.
        if !invocation.knows_subscriptions || self.table.is_unreachable() {
            return;
        }
        let unshared = self.destinations.known().take_unshared();
        if !unshared.is_empty() {
            // A panic here must not return the batch, whose work is finished.
            contained("share", self.share_all(&unshared, invocation).boxed()).await;
            let now_ms = self.ports.now_ms();
            unshared.iter().for_each(|destination| destination.state().note_newer(now_ms));
        }
    }

    async fn share_all(&self, unshared: &[Arc<Destination>], invocation: &Invocation<'_>) {
        let share = async |destination: &Arc<Destination>| {
            let findings = {
                let mut state = destination.state();
                state.note_newer(self.ports.now_ms());
                state.findings.take()
            };
            if let Some(findings) = findings {
                self.share_findings(destination, findings, invocation).await;
            }
        };
        stream::iter(unshared).for_each_concurrent(WRITES_AT_ONCE, share).await;
    }

    /// Writes the findings of this process about one destination, and publishes changes.
    async fn share_findings(
        &self,
        destination: &Arc<Destination>,
        mut findings: Findings,
        invocation: &Invocation<'_>,
    ) {
        let (deadline, now_ms, key) = (invocation.deadline, self.ports.now_ms(), destination.key);
        findings.notifies = notices::are_wanted(&findings, &invocation.catalogue);
        let merge = |stored: Option<DestinationState>| {
            let merged = DestinationState::merged(stored.clone(), &findings, now_ms);
            let changes = Transition::since(stored.as_ref(), &merged);
            let news: Vec<News> = News::of_change(key, stored.as_ref(), &merged).collect();
            (merged, (changes, news))
        };
        let item = key.health_item(findings.namespace());
        let Ok((state, (changes, news))) = self.table.update(&item, merge, deadline).await else {
            return keep(destination, findings);
        };
        changes.for_each(|change| self.telemetry.destination_changed(&state, change));
        let are_published = self.tell(&news, deadline).await.is_ok();
        // These changes contain the findings, unlike a read.
        self.adopt(&news.into_iter().collect(), u64::MAX);
        self.note_disabled(key, &state);
        let are_sent = state.notices.is_empty()
            || self.notices.send_about_destination(&item, &state, invocation).await;
        if !are_published || !are_sent {
            // The item is written, but the change is not published. The next invocation publishes
            // it.
            let Findings { destination: address, subscription, .. } = findings;
            keep(destination, Findings::new(address, subscription));
        }
    }

    fn note_disabled(&self, key: DestinationKey, state: &DestinationState) {
        self.destinations.note_disabled(key, state.disabled.is_some());
    }

    async fn tell(&self, news: &[News], deadline: &Deadline) -> Result<(), Unreachable> {
        for change in news {
            let (item, entry, now_ms) = (change.item(), change.entry(), self.ports.now_ms());
            let write = self.table.port().replace(&item, &entry, Expected::Anything, now_ms);
            self.table.answer(write, deadline).await?;
        }
        Ok(())
    }
}

/// Puts back findings whose write failed, merged with newer ones.
fn keep(destination: &Arc<Destination>, findings: Findings) {
    let mut state = destination.state();
    match &mut state.findings {
        Some(newer) => newer.add_earlier(findings),
        none => *none = Some(findings),
    }
    drop(state);
    destination.note_unshared();
}
