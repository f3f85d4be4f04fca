//! Endpoints, and how they behave.

use delivery::delivery::outcome::TransportResult;

use super::faults::JitterSource;

/// How the endpoint of one subscription behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    /// Takes everything.
    Good,
    /// Fails in so many cases of a hundred, in several ways.
    Flaky(u64),
    /// Always answers this status.
    Always(u16),
    /// Never answers in time.
    Silent,
    /// Refuses every connection.
    Refuses,
    /// Answers 503 until this moment, then takes everything.
    RecoversAt(u64),
    /// Shows a certificate that nobody trusts.
    Untrusted,
}

/// What an endpoint did with a request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// What the sender sees, if nothing is lost on the way.
    pub(crate) result: TransportResult,
    /// After how long.
    pub(crate) duration_ms: u64,
}

impl Behaviour {
    /// A behaviour for one world.
    pub(crate) fn choose(dice: &mut JitterSource, now_ms: u64) -> Self {
        match dice.below(12) {
            0..=2 => Self::Good,
            3..=5 => Self::Flaky(dice.one_of(&[30, 60, 90])),
            6 => Self::Always(dice.one_of(&[400, 404, 410, 413, 302, 401])),
            7 => Self::Silent,
            8 => Self::Refuses,
            9 => Self::RecoversAt(now_ms + dice.one_of(&[2_000, 60_000, 3_600_000, 40_000_000])),
            10 => dice.one_of(&[Self::Untrusted, Self::Always(203), Self::Always(207)]),
            _ => Self::Always(500),
        }
    }

    /// What it does with a request now.
    pub(crate) fn answer(self, dice: &mut JitterSource, now_ms: u64, timeout_ms: u64) -> Answer {
        let result = match self {
            Self::Good => answered(200, None),
            Self::Flaky(percent) if dice.percent(percent) => match dice.below(7) {
                0 => answered(503, Some("7")),
                1 => answered(429, Some(dice.one_of(&["1", "100000", "soon"]))),
                2 => answered(408, None),
                3 => TransportResult::TimedOut,
                4 => TransportResult::ResolutionError,
                _ => answered(500, None),
            },
            Self::Flaky(_) => answered(202, None),
            Self::Always(status) => answered(status, None),
            Self::Silent => TransportResult::TimedOut,
            Self::Refuses => TransportResult::SocketError,
            Self::RecoversAt(at_ms) if now_ms < at_ms => answered(503, None),
            Self::RecoversAt(_) => answered(204, None),
            Self::Untrusted => TransportResult::TlsError,
        };
        let takes_ms = dice.one_of(&[0, 1, 20, 250, 4_000]);
        let silent = result == TransportResult::TimedOut;
        Answer { result, duration_ms: if silent { timeout_ms } else { takes_ms.min(timeout_ms) } }
    }
}

/// An answer with this status.
pub(crate) fn answered(status: u16, retry_after: Option<&str>) -> TransportResult {
    let body = format!("status {status}").into_bytes();
    TransportResult::Answered { status, retry_after: retry_after.map(ToOwned::to_owned), body }
}
