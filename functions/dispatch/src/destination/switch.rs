//! The gate of disabled destinations. An operator disabled them, or they failed for too long.
//!
//! The published changes (`delivery::delivery::health::news`) list the disabled destinations. Every
//! process that may publish changed topics can also write these changes. Therefore a delivery is
//! stopped only after the item of the destination confirms that the destination is disabled. Such a
//! process, for example a pipeline, may not write items of destinations, and could otherwise
//! disable destinations of other namespaces.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::AllNews;
use delivery::delivery::health::shared::DestinationState;
use delivery::delivery::reason::Reason;
use delivery::ports::DispatchPorts;
use futures::FutureExt as _;

use super::Destinations;
use super::answer::Answer;
use super::gates::same_for_all;
use super::known::Destination;
use super::passage::Passage;
use crate::deadline::Deadline;
use crate::invocation::Invocation;
use crate::progress::InFlightDelivery;
use crate::table::Unreachable;

/// The disabled destinations according to the published changes. The value is true if the item of
/// the destination has confirmed the change.
#[derive(Debug, Default)]
pub(super) struct Switches(Mutex<BTreeMap<DestinationKey, bool>>);

impl Switches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DestinationKey, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the list of disabled destinations with the published one.
    pub(super) fn adopt(&self, news: &AllNews) {
        // All entries are unconfirmed after a read, because an operator may have enabled or
        // disabled the destination after the change was published.
        *self.lock() = news.disabled().iter().map(|key| (*key, false)).collect();
    }

    /// Records whether a destination is disabled, according to its item in the table.
    pub(super) fn note(&self, key: DestinationKey, is_disabled: bool) {
        match is_disabled {
            true => _ = self.lock().insert(key, true),
            false => _ = self.lock().remove(&key),
        }
    }
}

impl<P: DispatchPorts> Destinations<P> {
    /// Ends the deliveries of a disabled destination. SQS delays a message for at most 15 minutes,
    /// so waiting deliveries would be sent again and again. Dead letters can be replayed later.
    pub(super) async fn ask_switch(
        &self,
        due: &[InFlightDelivery],
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let is_certain = self.switches.lock().get(&passage.destination.key).copied()?;
        // Boxed: this rare future would enlarge the future of every delivery.
        let is_disabled =
            is_certain || self.confirm(&passage.destination, invocation.deadline).boxed().await;
        let answer = is_disabled.then_some(Answer::End { reason: Reason::DestinationDisabled })?;
        same_for_all(due, answer)
    }

    /// Returns true if the destination is disabled according to its item in the table. If the item
    /// cannot be read, the published change applies. The result is used until the next read of the
    /// published changes.
    async fn confirm(&self, destination: &Destination, deadline: &Deadline) -> bool {
        let item = destination.key.health_item(&destination.namespace);
        let is_disabled = match self.table.read::<DestinationState>(&item, deadline).await {
            Ok(read) => read.document.is_some_and(|state| state.disabled.is_some()),
            Err(Unreachable) => true,
        };
        self.switches.note(destination.key, is_disabled);
        is_disabled
    }
}
