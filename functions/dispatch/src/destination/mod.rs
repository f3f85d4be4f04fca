//! Decides whether a request may be sent to a destination now. One list of gates decides
//! ([`gates`]), with one type of answer ([`answer`]).
//!
//! A process keeps one value for each namespace and address ([`known`]). Each gate is a file. A
//! gate reads that value, or the table that all processes share. The permits of one request are in
//! its [`Passage`]. The caller executes the answers; nothing here sends a message. The results of
//! attempts are recorded in [`record`].

mod answer;
mod consent;
mod credentials;
mod gates;
mod in_flight;
mod known;
mod passage;
mod permits;
mod probation;
mod rate;
mod record;
pub(crate) mod recovering;
mod requested_wait;
mod slots;
mod slow;
mod switch;

use std::sync::Arc;

use delivery::delivery::DeliveryTarget;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::AllNews;
use delivery::ports::{Clock, DispatchPorts, QueueName};
use delivery::subscription::Subscription;
use delivery::subscription::auth::TokenSource;

pub(crate) use self::answer::{Answer, Asked};
use self::in_flight::TotalRoom;
pub(crate) use self::known::{Destination, KnownDestinations};
pub(crate) use self::passage::Passage;
use self::permits::AllPermits;
use self::switch::Switches;
use crate::credentials::Credentials;
use crate::invocation::Invocation;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;
use crate::slow_lane::SlowLane;
use crate::table::SharedTable;

/// Pause before a request to the table, so that other deliveries of the invocation can share the
/// request.
const GATHER_MS: u64 = 5;

/// The destinations of this process and the gates before them.
#[derive(Debug)]
pub(crate) struct Destinations<P> {
    ports: Arc<P>,
    table: Arc<SharedTable<P>>,
    credentials: Arc<Credentials<P>>,
    slow_lane: Arc<SlowLane>,
    known: KnownDestinations,
    switches: Switches,
    total: TotalRoom,
    permits: AllPermits,
    /// Maximum number of concurrent functions. They share the limits of a destination.
    functions: u32,
}

impl<P: DispatchPorts> Destinations<P> {
    pub(crate) fn new(
        ports: &Arc<P>,
        table: &Arc<SharedTable<P>>,
        credentials: &Arc<Credentials<P>>,
        slow_lane: &Arc<SlowLane>,
        functions: u32,
    ) -> Self {
        let (known, switches, total, permits) = Default::default();
        Self {
            ports: Arc::clone(ports),
            table: Arc::clone(table),
            credentials: Arc::clone(credentials),
            slow_lane: Arc::clone(slow_lane),
            known,
            switches,
            total,
            permits,
            functions,
        }
    }

    /// Creates the passage of one request for the deliveries in `waiting`. No gate is asked yet.
    pub(crate) fn passage(
        &self,
        subscription: &Arc<Subscription>,
        waiting: &[InFlightDelivery],
    ) -> Passage {
        let target = passage::target_of(waiting);
        let token_server = match subscription.destination.token_source() {
            Some(TokenSource::Client(client)) if *target == DeliveryTarget::Destination => {
                Some(self.known.of_address(&subscription.name, &client.token_url))
            }
            Some(TokenSource::Client(_) | TokenSource::Aws(_)) | None => None,
        };
        let destination = self.known.of_target(subscription, target);
        Passage::new(subscription, target, destination, token_server)
    }

    pub(crate) fn known(&self) -> &KnownDestinations {
        &self.known
    }

    /// Replaces the list of disabled destinations with the published one.
    pub(crate) fn adopt_switches(&self, news: &AllNews) {
        self.switches.adopt(news);
    }

    /// Records whether a destination is disabled, according to its item in the table.
    pub(crate) fn note_disabled(&self, key: DestinationKey, is_disabled: bool) {
        self.switches.note(key, is_disabled);
    }

    fn now_ms(&self) -> u64 {
        Clock::now_ms(&*self.ports)
    }
}

/// True if the deliveries may be re-enqueued instead of attempted. A delivery that does not fit a
/// message would become a dead letter. A record of the isolation queue is always attempted: the
/// receive count of a re-enqueued record restarts at zero, and would never reach its maximum.
fn can_wait(due: &[InFlightDelivery], invocation: &Invocation<'_>) -> bool {
    invocation.queue != QueueName::Isolation
        && due.iter().all(|in_flight| fits_a_message(&in_flight.delivery))
}
