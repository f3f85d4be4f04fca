//! What processes tell each other about destinations that are not healthy, so that one of them probes
//! and all obey.
//!
//! A process writes what its attempts showed at the end of an invocation: nothing while all is well. It
//! reads the digest of all destinations when it starts, at most twice a minute while something is
//! unhealthy, and else every five minutes. Storage that does not answer is left alone for a while: then each process does what it
//! would do by itself. What is lost with a process is found out again.

mod dead_letters;
mod documents;
mod notices;

pub(crate) use dead_letters::announced;
pub(crate) use documents::NotUpdated;

use documents::Stored;

use adapters::runtime::contained;
use adapters::telemetry;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::notice::Transition;
use delivery::delivery::health::probation::{Admission, PROBE_MS};
use delivery::delivery::health::shared::{
    Claim, DestinationState, Digest, Findings, Spell, digest_document,
};
use delivery::machine::step;
use delivery::ports::{DispatchPorts, Record};
use delivery::subscription::Subscription;
use delivery::time::duration::MINUTE_MS;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, Invocation};
use crate::memory::health::{Probe, key_of};
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

    /// Until when others have to be waited for; `None` if this process probes.
    async fn claim_probe(&self, probe: &InFlightDelivery, deadline: &Deadline) -> Option<u64> {
        let subscription = &probe.subscription;
        let probe = Probe::of(&self.health, key_of(subscription));
        let until_ms = match self.health.is_unreachable(self.ports.now_ms()) {
            true => None,
            false => self.claim_shared(subscription, deadline).await,
        };
        if until_ms.is_none() {
            probe.keep();
        }
        until_ms
    }

    async fn claim_shared(&self, subscription: &Subscription, deadline: &Deadline) -> Option<u64> {
        let (key, destination) = (key_of(subscription), &subscription.destination);
        let document = key.document();
        // Without storage each process probes by itself.
        let stored: Stored<DestinationState> = self.read_shared(&document, deadline).await?;
        let (now_ms, state) = (self.ports.now_ms(), stored.document?);
        let takes_ms = destination.response_timeout_ms.saturating_add(destination.late_window_ms);
        let ends_ms = now_ms.saturating_add(takes_ms).saturating_add(CLAIM_MARGIN_MS);
        let soon_ms = now_ms.saturating_add(PROBE_MS);
        match state.claim(now_ms, ends_ms) {
            Claim::Recovered => {
                self.health.forget_failing(key);
                None
            }
            Claim::Probed => {
                // The others of this process need not ask.
                let failing = state.failing.map(|spell| Spell { until_ms: soon_ms, ..spell });
                if let Some(spell) = failing {
                    self.health.adopt_failing(key, spell, now_ms);
                }
                Some(soon_ms)
            }
            Claim::Failing(spell) => {
                self.health.adopt_failing(key, spell, now_ms);
                Some(spell.until_ms)
            }
            Claim::Write(claimed) => {
                let version = stored.version.as_deref();
                let is_mine = self.replace_shared(&document, &*claimed, version, deadline).await?;
                (!is_mine).then_some(soon_ms)
            }
        }
    }

    /// Reads what other processes know, if it is time to.
    pub(crate) async fn learn(&self, records: &[Record], deadline: &Deadline) {
        if self.health.should_learn(records, self.ports.now_ms()) {
            contained("learn", self.learn_all(deadline).boxed()).await;
        }
    }

    async fn learn_all(&self, deadline: &Deadline) {
        let stored = self.read_shared::<Digest>(&digest_document(), deadline).await;
        let now_ms = self.ports.now_ms();
        if stored.is_some() || !self.health.is_unreachable(now_ms) {
            // Also one that cannot be used: the next invocation would find the same.
            self.health.note_read(now_ms);
        }
        if let Some(stored) = stored {
            self.health.adopt(&stored.document.unwrap_or_default(), now_ms);
        }
    }

    /// Writes what this process found out. What cannot be written now is written later.
    pub(crate) async fn share(&self, of: &Invocation<'_>) {
        let unshared = self.health.take_unshared(self.ports.now_ms());
        if !unshared.is_empty() {
            // The batch is done: a panic must not return it.
            contained("share", self.share_all(unshared, of).boxed()).await;
        }
        contained("share", self.share_dead_letters(of).boxed()).await;
    }

    async fn share_all(&self, unshared: Vec<(DestinationKey, Findings)>, of: &Invocation<'_>) {
        let deadline = of.deadline;
        let share = async |(key, mut findings): (DestinationKey, Findings)| {
            let now_ms = self.ports.now_ms();
            findings.notifies = notices::are_wanted(&findings, &of.catalogue);
            let merge = |stored: Option<DestinationState>| {
                let merged = DestinationState::merged(stored.clone(), &findings, now_ms);
                let changes = Transition::since(stored.as_ref(), &merged);
                (merged, changes)
            };
            let state = self.update_shared(&key.document(), merge, deadline).await;
            let state = state.ok().map(|(state, changes)| {
                changes.for_each(|change| self.telemetry.destination_changed(&state, change));
                state
            });
            let mut are_told = true;
            if let Some(state) = state.as_ref().filter(|state| !state.notices.is_empty()) {
                are_told = self.send_notices(key, state, of).await;
            }
            (key, findings, state, are_told)
        };
        let shared = stream::iter(unshared).map(share).buffer_unordered(WRITES_AT_ONCE);
        let shared: Vec<_> = shared.collect().await;
        let now_ms = self.ports.now_ms();
        let note_all = |digest: Option<Digest>| {
            let mut digest = digest.unwrap_or_default();
            for (key, _, state, _) in &shared {
                if let Some(state) = state {
                    digest.note(*key, state, now_ms);
                }
            }
            (digest, ())
        };
        let digest = self.update_shared(&digest_document(), note_all, deadline).await.ok();
        for (key, findings, state, are_told) in shared {
            if digest.is_none() || state.is_none() {
                self.health.keep_unshared(key, findings);
            } else if !are_told {
                // Nothing new, but a reason to write again.
                let Findings { destination, subscription, .. } = findings;
                self.health.keep_unshared(key, Findings::new(destination, subscription));
            }
        }
        if let Some((digest, ())) = digest {
            self.health.adopt(&digest, now_ms);
        }
    }
}
