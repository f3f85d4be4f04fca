//! Simulated endpoints and their behaviours.

use std::collections::VecDeque;

use delivery::delivery::outcome::TransportResult;
use delivery::time::duration::SECOND_MS;

use super::faults::SeededRandom;

/// The behaviour of the endpoint of one subscription.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    /// Accepts everything.
    Good,
    /// Fails in this percentage of cases, in several ways.
    Flaky(u64),
    /// Always returns this status.
    Always(u16),
    /// Never responds in time.
    Silent,
    /// Never responds until the first of these times, and again from the second one on. Accepts
    /// everything in between.
    HangsTwice(u64, u64),
    /// Returns 500 to the first request of a delivery, and lets all later ones time out.
    SilentAgain,
    /// Refuses every connection.
    Refuses,
    /// Returns 503 until this time, then accepts everything.
    RecoversAt(u64),
    /// Like `RecoversAt`, but each response takes 100 ms.
    RecoversEvenlyAt(u64),
    /// Returns 503 until `from_ms`. Then accepts `per_second` requests a second, and returns 503 to
    /// all others. A fragile endpoint then returns 503 to everything for ten seconds.
    Serves { from_ms: u64, per_second: usize, is_fragile: bool },
    /// Returns 503 for this long, accepts everything for as long, and so on.
    Flaps(u64),
    /// Presents an untrusted certificate.
    Untrusted,
    /// Accepts everything after this long.
    Takes(u64),
}

/// The response of an endpoint to one request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The result for the sender, if nothing is lost on the way.
    pub(crate) result: TransportResult,
    pub(crate) duration_ms: u64,
}

impl Behaviour {
    /// Draws a random behaviour.
    pub(crate) fn choose(random: &mut SeededRandom, now_ms: u64) -> Self {
        match random.below(12) {
            0..=2 => Self::Good,
            3..=5 => Self::Flaky(random.pick(&[30, 60, 90])),
            6 => Self::Always(random.pick(&[400, 404, 410, 413, 302, 401])),
            7 => Self::Silent,
            8 => Self::Refuses,
            9 => Self::RecoversAt(now_ms + random.pick(&[2_000, 60_000, 3_600_000, 40_000_000])),
            10 => random.pick(&[Self::Untrusted, Self::Always(203), Self::Always(207)]),
            _ => Self::Always(500),
        }
    }

    /// The behaviour towards a new delivery, or towards one that the endpoint has seen before.
    pub(crate) fn towards(self, is_known: bool) -> Self {
        if is_known && matches!(self, Self::SilentAgain) { Self::Silent } else { self }
    }

    /// The response to a request at this time.
    pub(crate) fn answer(self, random: &mut SeededRandom, now_ms: u64, timeout_ms: u64) -> Answer {
        let result = match self {
            Self::Good => answered(200, None),
            Self::Flaky(percent) if random.percent(percent) => match random.below(7) {
                0 => answered(503, Some("7")),
                1 => answered(429, Some(random.pick(&["1", "100000", "soon"]))),
                2 => answered(408, None),
                3 => TransportResult::TimedOut,
                4 => TransportResult::ResolutionError,
                _ => answered(500, None),
            },
            Self::Flaky(_) => answered(202, None),
            Self::Always(status) => answered(status, None),
            Self::Silent => TransportResult::TimedOut,
            Self::HangsTwice(until_ms, from_ms) if !(until_ms..from_ms).contains(&now_ms) => {
                TransportResult::TimedOut
            }
            Self::HangsTwice(..) => answered(204, None),
            Self::SilentAgain => answered(500, None),
            Self::Refuses => TransportResult::SocketError,
            Self::RecoversAt(at_ms) | Self::RecoversEvenlyAt(at_ms) if now_ms < at_ms => {
                answered(503, None)
            }
            Self::RecoversAt(_) | Self::RecoversEvenlyAt(_) => answered(204, None),
            Self::Flaps(period_ms) if (now_ms / period_ms).is_multiple_of(2) => answered(503, None),
            Self::Flaps(_) => answered(204, None),
            Self::Untrusted => TransportResult::TlsError,
            // `Served` decides which requests are too many.
            Self::Serves { from_ms, .. } if now_ms < from_ms => answered(503, None),
            Self::Serves { .. } => answered(204, None),
            Self::Takes(_) => answered(204, None),
        };
        let any_ms = random.pick(&[0, 1, 20, 250, 4_000]);
        let takes_ms = if let Self::Takes(takes_ms) = self {
            takes_ms
        } else if let Self::Serves { .. } = self {
            // One process with batches of ten makes at most 200 requests a second.
            50
        } else if let Self::RecoversEvenlyAt(_) | Self::HangsTwice(..) = self {
            100
        } else {
            any_ms
        };
        let silent = result == TransportResult::TimedOut;
        Answer { result, duration_ms: if silent { timeout_ms } else { takes_ms.min(timeout_ms) } }
    }
}

/// The requests that an endpoint of limited capacity got.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Times of the requests in the last second that used capacity. A fragile endpoint uses
    /// capacity for each request, any other only for accepted ones.
    recent_ms: VecDeque<u64>,
    down_until_ms: u64,
    /// The number of times that the endpoint fell over.
    pub(crate) falls: usize,
}

impl Served {
    /// True if a request at this time exceeds the capacity.
    pub(crate) fn is_too_much(&mut self, behaviour: Behaviour, now_ms: u64) -> bool {
        let Behaviour::Serves { from_ms, per_second, is_fragile } = behaviour else { return false };
        if now_ms < from_ms {
            return false;
        }
        self.recent_ms.retain(|at_ms| now_ms < at_ms + SECOND_MS);
        self.recent_ms.push_back(now_ms);
        if now_ms < self.down_until_ms {
            return true;
        }
        let is_too_much = self.recent_ms.len() > per_second;
        if is_too_much && is_fragile {
            self.down_until_ms = now_ms + 10 * SECOND_MS;
            self.falls += 1;
        } else if is_too_much {
            self.recent_ms.pop_back();
        }
        is_too_much
    }
}

/// A response with this status.
pub(crate) fn answered(status: u16, retry_after: Option<&str>) -> TransportResult {
    let body = format!("status {status}").into_bytes();
    TransportResult::Answered { status, retry_after: retry_after.map(ToOwned::to_owned), body }
}
