//! The gate of the credentials: the secrets of a request, and its token. A token server counts as a
//! separate destination.
//!
//! This gate follows the gate of consent, which may replace the token. It precedes the gates of
//! rate and concurrency, so that no delivery holds a slot or a permit while it waits for a token.

use std::sync::Arc;

use adapters::telemetry;
use delivery::delivery::health::shared::Attempted;
use delivery::delivery::outcome::Unsendable;
use delivery::ports::DispatchPorts;
use delivery::subscription::secret::Keyring;
use futures::FutureExt as _;

use super::Destinations;
use super::answer::Answer;
use super::gates::same_for_all;
use super::passage::Passage;
use crate::invocation::Invocation;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

impl<P: DispatchPorts> Destinations<P> {
    /// Waits for the credentials of the request. If the credentials take too long, the deliveries
    /// move to the slow lane once the invocation has no other work.
    pub(super) async fn ask_credentials(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let needs_them = passage.is_own && passage.subscription.destination.needs_keyring();
        if !needs_them || passage.keyring.is_some() {
            return None;
        }
        let started_ms = self.now_ms();
        passage.keyring = self.wait_for_keyring(due, passage, invocation).boxed().await;
        let is_left = passage.keyring.is_none();
        passage.has_waited |= self.now_ms() > started_ms;
        self.note_credentials(passage, started_ms, is_left);
        if is_left { same_for_all(due, Answer::Slow) } else { None }
    }

    /// Returns the credentials; `None` if the deliveries should move to the slow lane instead.
    async fn wait_for_keyring(
        &self,
        due: &[InFlightDelivery],
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Result<Keyring, Unsendable>> {
        let subscription = Arc::clone(&passage.subscription);
        let destination = &subscription.destination;
        let mut work = Box::pin(self.credentials.keyring(&subscription, invocation.deadline));
        let may_move = destination.slow_after_ms < destination.response_timeout_ms
            && self.slow_lane.may_move(invocation.queue, due.len(), self.now_ms())
            && due.iter().all(|in_flight| fits_a_message(&in_flight.delivery));
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = self.ports.sleep(destination.slow_after_ms), if may_move => {}
        }
        // While other work is active, waiting delays nothing.
        let _pause = invocation.active_work.pause();
        tokio::select! {
            biased;
            done = &mut work => Some(done),
            () = invocation.active_work.none_left() => None,
        }
    }

    /// Records how long the credentials took, as the response time of the token server. `is_left`
    /// is true if the wait was abandoned, which counts as slow. Does not affect the health of the
    /// destination itself.
    fn note_credentials(&self, passage: &Passage, started_ms: u64, is_left: bool) {
        let (Some(server), now_ms) = (&passage.token_server, self.now_ms()) else { return };
        let took_ms = now_ms.saturating_sub(started_ms);
        if took_ms == 0 {
            // The token was cached, so no request was made to its server.
            return;
        }
        let is_slow = is_left || took_ms > passage.subscription.destination.slow_after_ms;
        let mut state = server.state();
        let found = match is_slow {
            true => state.slowness.note_slow(now_ms),
            false => state.slowness.note_in_time(now_ms),
        };
        let Some(found) = found else { return };
        let findings = state.findings(server, &passage.subscription);
        findings.slow = Some((found, now_ms));
        if is_slow {
            findings.add_attempt(Attempted::abandoned(started_ms, now_ms));
        }
        drop(state);
        server.note_unshared();
        telemetry::slow_destination(&passage.subscription.name, server.address(), found);
    }
}
