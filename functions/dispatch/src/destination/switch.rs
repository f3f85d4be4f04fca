//! The gate of disabled destinations: an operator disabled them, or they failed for too long.
//!
//! The news list the disabled destinations. Every process that may publish changed topics may write any news. So a delivery is
//! held only after the item of the destination confirms the news.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::delivery::WaitReason;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::AllNews;
use delivery::delivery::health::shared::DestinationState;
use delivery::delivery::reason::Reason;
use delivery::ports::DispatchPorts;
use delivery::subscription::Disabled;
use delivery::waits::PAUSED_MS;
use futures::FutureExt as _;

use super::Destinations;
use super::answer::Answer;
use super::gates::{same_for_all, wait};
use super::known::Destination;
use super::passage::Passage;
use crate::deadline::Deadline;
use crate::invocation::Invocation;
use crate::progress::InFlightDelivery;
use crate::table::Unreachable;

/// The disabled destinations, at most as many as the news contain.
#[derive(Debug, Default)]
pub(super) struct Switches(Mutex<BTreeMap<DestinationKey, Switch>>);

/// The switch of a disabled destination.
#[derive(Debug, Clone, Copy)]
struct Switch {
    disabled: Disabled,
    /// True if its item confirms the news.
    is_certain: bool,
}

impl Switches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DestinationKey, Switch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the list of disabled destinations by that of the news.
    pub(super) fn adopt(&self, news: &AllNews) {
        // Confirmed again each time: an operator may have changed the switch after the news.
        let switch = |(key, disabled): (&DestinationKey, &Disabled)| {
            (*key, Switch { disabled: *disabled, is_certain: false })
        };
        *self.lock() = news.disabled().iter().map(switch).collect();
    }

    /// Records the switch in the item of a destination.
    pub(super) fn note(&self, key: DestinationKey, disabled: Option<Disabled>) {
        let switch = disabled.map(|disabled| Switch { disabled, is_certain: true });
        match switch {
            Some(switch) => _ = self.lock().insert(key, switch),
            None => _ = self.lock().remove(&key),
        }
    }
}

impl<P: DispatchPorts> Destinations<P> {
    /// Holds or ends deliveries of a disabled destination.
    pub(super) async fn ask_switch(
        &self,
        due: &[InFlightDelivery],
        passage: &Passage,
        of: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let switch = self.switches.lock().get(&passage.destination.key).copied()?;
        let disabled = match switch.is_certain {
            true => Some(switch.disabled),
            // Boxed: it is rare, and would enlarge the future of every delivery.
            false => self.confirm(switch, &passage.destination, of.deadline).boxed().await,
        };
        let answer = match disabled? {
            Disabled::Hold => wait(PAUSED_MS, WaitReason::Disabled, self.now_ms()),
            Disabled::DeadLetter => Answer::End { reason: Reason::DestinationDisabled },
        };
        same_for_all(due, answer)
    }

    /// Reads from the item of a destination if it is disabled. The news count while the item cannot be read. The result holds
    /// until the next read of the news.
    async fn confirm(
        &self,
        switch: Switch,
        destination: &Destination,
        deadline: &Deadline,
    ) -> Option<Disabled> {
        let item = destination.key.health_item(&destination.namespace);
        let disabled = match self.table.read::<DestinationState>(&item, deadline).await {
            Ok(read) => read.document.and_then(|state| state.disabled).map(|it| it.then),
            Err(Unreachable) => Some(switch.disabled),
        };
        self.switches.note(destination.key, disabled);
        disabled
    }
}
