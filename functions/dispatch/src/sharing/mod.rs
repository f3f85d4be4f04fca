//! What processes tell each other about destinations that are not healthy, so that one of them probes
//! and all obey.
//!
//! A process writes what its attempts showed at the end of an invocation: nothing while all is well. It
//! reads the news when it starts, and then every half minute at most. A table that does not answer is left alone for a
//! while: then each process does what it would do by itself. What is lost with a process is found out again.

mod dead_letters;
mod entries;
mod notices;

pub(crate) use dead_letters::announced;
pub(crate) use entries::{NotUpdated, Unreachable};

use entries::Read;

use adapters::runtime::contained;
use adapters::telemetry;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::{AllNews, NEWS, NEWS_MAX, News};
use delivery::delivery::health::notice::Transition;
use delivery::delivery::health::probation::{Admission, PROBE_MS};
use delivery::delivery::health::shared::{Claim, DestinationState, Document as _, Findings, Spell};
use delivery::machine::step;
use delivery::ports::DispatchPorts;
use delivery::subscription::{Disabled, Subscription};
use delivery::table::{Expected, Table as _};
use delivery::time::duration::MINUTE_MS;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, Invocation};
use crate::memory::health::{Probe, Switch, key_of};
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

/// How many documents are written at once.
const WRITES_AT_ONCE: usize = 8;
/// How much longer than its attempt the claim of a probe lasts.
const CLAIM_MARGIN_MS: u64 = MINUTE_MS;

impl<P: DispatchPorts> Dispatch<P> {
    /// Defers a delivery whose destination is on probation, and returns for how long: that is no attempt.
    /// After the probation one delivery is the probe, but none that is moved to be attempted elsewhere.
    pub(crate) async fn defer(
        &self,
        in_flight: &mut InFlightDelivery,
        moves: bool,
        of: &Invocation<'_>,
    ) -> Option<u64> {
        let until_ms = match self.health.admit(in_flight, moves, self.ports.now_ms()) {
            Admission::Admitted => return None,
            Admission::Deferred { until_ms } => until_ms,
            // Boxed: it is rare, and would enlarge the future of every delivery.
            Admission::Probe => self.claim_probe(in_flight, of.deadline).boxed().await?,
        };
        if !fits_a_message(&in_flight.delivery) {
            // It cannot wait: it is attempted rather than a dead letter.
            return None;
        }
        let now_ms = self.ports.now_ms();
        let InFlightDelivery { delivery, subscription, .. } = in_flight;
        // One that ends meanwhile is a dead letter then, and not when the probation ends.
        let left_ms = step::left_to_live_ms(delivery, &subscription.retry, now_ms);
        let wait_ms = until_ms.saturating_sub(now_ms).min(left_ms);
        delivery.defer(now_ms, now_ms.saturating_add(wait_ms));
        telemetry::deferred(delivery, wait_ms);
        Some(wait_ms)
    }

    /// Returns the fate of a delivery whose destination is disabled.
    pub(crate) async fn disabled(
        &self,
        in_flight: &InFlightDelivery,
        deadline: &Deadline,
    ) -> Option<Disabled> {
        let switch = self.health.switch(in_flight)?;
        match switch.is_certain {
            true => Some(switch.disabled),
            // Boxed: it is rare, and would enlarge the future of every delivery.
            false => self.confirm(switch, &in_flight.subscription, deadline).boxed().await,
        }
    }

    /// Asks the item of a destination whether it is disabled, as the news says. The news counts while the item cannot be
    /// read. The answer holds until the news is read again.
    async fn confirm(
        &self,
        switch: Switch,
        subscription: &Subscription,
        deadline: &Deadline,
    ) -> Option<Disabled> {
        let key = key_of(subscription);
        let item = key.health_item(&subscription.name.topic.namespace);
        let disabled = match self.read_entry::<DestinationState>(&item, deadline).await {
            Ok(read) => read.document.and_then(|state| state.disabled).map(|it| it.then),
            Err(Unreachable) => Some(switch.disabled),
        };
        self.health.note_disabled(key, disabled);
        disabled
    }

    /// Until when others have to be waited for; `None` if this process probes.
    async fn claim_probe(&self, probe: &InFlightDelivery, deadline: &Deadline) -> Option<u64> {
        let subscription = &probe.subscription;
        let probe = Probe::of(&self.health, key_of(subscription));
        // Without the table each process probes by itself.
        let until_ms = self.claim_shared(subscription, deadline).await.unwrap_or(None);
        if until_ms.is_none() {
            probe.keep();
        }
        until_ms
    }

    async fn claim_shared(
        &self,
        subscription: &Subscription,
        deadline: &Deadline,
    ) -> Result<Option<u64>, Unreachable> {
        let (key, destination) = (key_of(subscription), &subscription.destination);
        let item = key.health_item(&subscription.name.topic.namespace);
        let read: Read<DestinationState> = self.read_entry(&item, deadline).await?;
        let Some(state) = &read.document else { return Ok(None) };
        let now_ms = self.ports.now_ms();
        let takes_ms = destination.response_timeout_ms.saturating_add(destination.late_window_ms);
        let ends_ms = now_ms.saturating_add(takes_ms).saturating_add(CLAIM_MARGIN_MS);
        let soon_ms = now_ms.saturating_add(PROBE_MS);
        match state.claim(now_ms, ends_ms) {
            Claim::Recovered => {
                self.health.forget_failing(key);
                Ok(None)
            }
            Claim::Probed => {
                // The others of this process need not ask.
                let failing = state.failing.map(|spell| Spell { until_ms: soon_ms, ..spell });
                if let Some(spell) = failing {
                    self.health.adopt_failing(key, spell, now_ms);
                }
                Ok(Some(soon_ms))
            }
            Claim::Failing(spell) => {
                self.health.adopt_failing(key, spell, now_ms);
                Ok(Some(spell.until_ms))
            }
            Claim::Write(claimed) => {
                let is_mine = self.replace_entry(&item, &*claimed, &read, deadline).await?;
                Ok((!is_mine).then_some(soon_ms))
            }
        }
    }

    /// Reads the news, if it is time to.
    pub(crate) async fn learn(&self, deadline: &Deadline) {
        if self.health.should_learn(self.ports.now_ms()) {
            contained("learn", self.learn_all(deadline).boxed()).await;
        }
    }

    async fn learn_all(&self, deadline: &Deadline) {
        // First: refused, it is not asked for by each invocation.
        self.health.note_read(self.ports.now_ms());
        let asked = self.ports.table().newest(NEWS, NEWS_MAX);
        let Ok(stored) = self.table_answer(asked, deadline).await else { return };
        let now_ms = self.ports.now_ms();
        let news = stored.iter().filter(|it| !it.has_expired(now_ms));
        // News of a newer version is no news for this one.
        let news: AllNews = news.filter_map(|it| News::read(it.text.as_bytes()).ok()).collect();
        self.health.adopt(&news, now_ms);
        self.health.adopt_disabled(&news);
        self.ports.were_changed(news.topics());
    }

    /// Writes what this process found out. What cannot be written now is written later.
    pub(crate) async fn share(&self, of: &Invocation<'_>) {
        // The subscriptions say who wants notices.
        if !of.knows_subscriptions {
            return;
        }
        let unshared = self.health.take_unshared(self.ports.now_ms());
        if !unshared.is_empty() {
            // The batch is done: a panic must not return it.
            contained("share", self.share_all(unshared, of).boxed()).await;
        }
        contained("share", self.share_dead_letters(of).boxed()).await;
    }

    async fn share_all(&self, unshared: Vec<(DestinationKey, Findings)>, of: &Invocation<'_>) {
        let share = async |(key, findings)| self.share_one(key, findings, of).await;
        stream::iter(unshared).for_each_concurrent(WRITES_AT_ONCE, share).await;
    }

    /// Writes what this process found out about a destination, and tells everybody what has changed.
    async fn share_one(&self, key: DestinationKey, mut findings: Findings, of: &Invocation<'_>) {
        let (deadline, now_ms) = (of.deadline, self.ports.now_ms());
        findings.notifies = notices::are_wanted(&findings, &of.catalogue);
        let merge = |stored: Option<DestinationState>| {
            let merged = DestinationState::merged(stored.clone(), &findings, now_ms);
            let changes = Transition::since(stored.as_ref(), &merged);
            (
                merged.clone(),
                (changes, News::of_change(key, stored.as_ref(), &merged).collect::<Vec<_>>()),
            )
        };
        let item = key.health_item(findings.namespace());
        let Ok((state, (changes, news))) = self.update_entry(&item, merge, deadline).await else {
            return self.health.keep_unshared(key, findings);
        };
        changes.for_each(|change| self.telemetry.destination_changed(&state, change));
        let are_told = self.tell(&news, deadline).await.is_ok();
        self.health.adopt(&news.into_iter().collect(), now_ms);
        self.health.note_disabled(key, state.disabled.as_ref().map(|disabled| disabled.then));
        let are_sent = state.notices.is_empty() || self.send_notices(&item, &state, of).await;
        if !are_told || !are_sent {
            // The item is written, but not all processes know: the next invocation tells them again.
            let Findings { destination, subscription, .. } = findings;
            self.health.keep_unshared(key, Findings::new(destination, subscription));
        }
    }

    async fn tell(&self, news: &[News], deadline: &Deadline) -> Result<(), Unreachable> {
        for one in news {
            let (item, entry, now_ms) = (one.item(), one.entry(), self.ports.now_ms());
            let told = self.ports.table().replace(&item, &entry, Expected::Anything, now_ms);
            self.table_answer(told, deadline).await?;
        }
        Ok(())
    }
}
