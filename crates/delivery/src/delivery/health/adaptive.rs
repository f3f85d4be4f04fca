//! Adaptive concurrency: the limit of concurrent requests from one process to an overloaded
//! destination.
//!
//! A destination has its full limit (`maxConcurrency`, the ceiling) until responses show overload:
//! 429, 503 or timeouts. Then the limit is halved. While the limit is N, every N successes raise it
//! by one. At the ceiling, it is removed. TCP congestion control works in the same way.
//!
//! - One unlucky response does not change the limit. At least two responses, and a fifth of the
//!   latest ones, must show overload. Without the fifth, one timeout in twenty requests would be
//!   enough to halve the limit again and again.
//! - The share of overload responses is computed as if there were at least as many responses as
//!   requests in flight, because timeouts arrive last.
//! - An event itself may cause a timeout, so timeouts alone never reduce the limit below five.
//! - Subscriptions of one address may have different ceilings. The highest one decides when the
//!   limit is removed, and each subscription keeps its own ceiling.
//! - Requests that were under way when the limit was halved do not count, because they did not test
//!   the new limit.

use crate::delivery::outcome::Outcome;

/// Minimum number of requests in flight that is assumed when the limit is first halved. The first
/// limit is therefore at least five, unless `maxConcurrency` is less than ten.
pub const MANY: u32 = 10;
/// Minimum number of overload responses that are required to halve the limit.
const TOO_MUCH_MIN: u32 = 2;
/// One in this many recent responses must show overload before the limit is halved.
const ONE_OF: u32 = 5;
/// Lowest limit that a timeout can cause. An event itself may cause a timeout, so a decrease below
/// this limit requires a response with status 429 or 503.
const DESPITE_TIMEOUTS: u32 = 5;
/// Number of rounds of responses that are counted. A round has as many responses as the ceiling,
/// but at least [`MANY`] and at most [`ROUND_MAX`]. After the last round, a quarter of the count is
/// dropped, so that recent responses weigh more.
const ROUNDS: u32 = 4;
/// Maximum number of responses in a round, however high the concurrency limit is.
const ROUND_MAX: u32 = 50;

/// One finished attempt, as [`AdaptiveLimit::note`] counts it.
#[derive(Debug, Clone, Copy)]
pub struct Observed {
    /// The classified outcome of the attempt.
    pub outcome: Outcome,
    /// Start of the request in milliseconds since 1970.
    pub started_ms: u64,
    /// Time at which the outcome was known, in milliseconds since 1970.
    pub ended_ms: u64,
    /// Number of requests in flight to this destination, including this one.
    pub under_way: u32,
    /// The subscription's `maxConcurrency`.
    pub ceiling: u32,
}

/// The adaptive limit of one process at one destination, and the responses that determine it.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdaptiveLimit {
    /// Number of counted responses since the limit was halved.
    answers: u32,
    /// Number of counted responses that show overload.
    too_much: u32,
    /// Maximum number of simultaneous requests in flight since the limit was last halved.
    under_way: u32,
    /// The highest `maxConcurrency` of the subscriptions that share this destination.
    ceiling: u32,
    limited: Option<Limited>,
}

/// A current limit below the ceiling.
#[derive(Debug, Clone, Copy)]
struct Limited {
    limit: u32,
    decreased_ms: u64,
    /// Number of successes since the limit last changed.
    successes: u32,
}

impl AdaptiveLimit {
    /// Returns the adaptive limit of concurrent requests; `None` if there is none below `ceiling`.
    #[must_use]
    pub fn limit(&self, ceiling: u32) -> Option<u32> {
        let limited = self.limited?;
        (limited.limit < ceiling).then_some(limited.limit)
    }

    /// Counts a finished attempt, and lowers or raises the limit accordingly.
    pub fn note(&mut self, observed: Observed) {
        if self.limited.is_some_and(|limited| observed.started_ms <= limited.decreased_ms) {
            return;
        }
        let is_too_much = matches!(observed.outcome, Outcome::Busy | Outcome::TimedOut);
        if !is_too_much && !self.is_watched() {
            return;
        }
        self.add(observed, is_too_much);
        if is_too_much && self.have_too_much() {
            self.decrease(observed);
        } else if observed.outcome == Outcome::Success {
            self.increase();
        }
        if self.is_over() {
            *self = Self::default();
        }
    }

    /// Returns true if responses are being counted, which begins with the first overload response.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.too_much > 0 || self.limited.is_some()
    }
    fn add(&mut self, observed: Observed, is_too_much: bool) {
        self.ceiling = self.ceiling.max(observed.ceiling);
        self.under_way = self.under_way.max(observed.under_way);
        // A failed connection shows nothing about the load of the destination.
        if matches!(
            observed.outcome,
            Outcome::SocketError
                | Outcome::ResolutionError
                | Outcome::TlsError
                | Outcome::Blocked
                | Outcome::Probation
                | Outcome::Aborted
        ) {
            return;
        }
        if self.answers >= latest(self.ceiling) {
            (self.answers, self.too_much) = (self.answers / 4 * 3, self.too_much * 3 / 4);
        }
        self.answers += 1;
        self.too_much += u32::from(is_too_much);
    }

    fn have_too_much(&self) -> bool {
        let answers = self.answers.max(self.under_way);
        self.too_much >= TOO_MUCH_MIN && self.too_much.saturating_mul(ONE_OF) >= answers
    }

    /// Halves the limit. The first limit is half of the requests in flight, because half of a
    /// higher ceiling would change nothing. At least [`MANY`] requests in flight are assumed: two
    /// unlucky responses must not reduce the concurrency to one request.
    fn decrease(&mut self, observed: Observed) {
        let before = match self.limited {
            Some(limited) => limited.limit,
            None => self.under_way.max(MANY).min(self.ceiling),
        };
        let is_timeout = observed.outcome == Outcome::TimedOut;
        let least = if is_timeout { DESPITE_TIMEOUTS.min(before) } else { 1 };
        let limit = (before / 2).max(least);
        self.limited = Some(Limited { limit, decreased_ms: observed.ended_ms, successes: 0 });
        (self.answers, self.too_much, self.under_way) = (0, 0, 0);
    }

    fn increase(&mut self) {
        let Some(limited) = &mut self.limited else { return };
        limited.successes += 1;
        if limited.successes >= limited.limit {
            (limited.limit, limited.successes) = (limited.limit.saturating_add(1), 0);
        }
    }

    /// Returns true if the limit has reached the ceiling, or if no counted response shows overload
    /// and there is no limit.
    fn is_over(&self) -> bool {
        match self.limited {
            Some(limited) => limited.limit >= self.ceiling,
            None => self.too_much == 0,
        }
    }
}

/// Returns the number of recent responses that are counted for a destination with this ceiling.
fn latest(ceiling: u32) -> u32 {
    ROUNDS * ceiling.clamp(MANY, ROUND_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: u32 = 50;

    /// An attempt that begins at this time and ends a millisecond later.
    fn attempt(outcome: Outcome, started_ms: u64) -> Observed {
        let ended_ms = started_ms + 1;
        Observed { outcome, started_ms, ended_ms, under_way: 50, ceiling: CEILING }
    }

    /// Notes enough responses for a decision: a fifth of the requests under way, and at least two.
    fn enough(limits: &mut AdaptiveLimit, observed: Observed) {
        let count = observed.under_way.div_ceil(ONE_OF).max(TOO_MUCH_MIN);
        (0..count).for_each(|_| limits.note(observed));
    }

    #[test]
    fn only_429_503_and_timeouts_halve_the_limit() {
        for outcome in Outcome::ALL {
            let mut limits = AdaptiveLimit::default();
            enough(&mut limits, attempt(outcome, 1));
            let expected = match outcome {
                Outcome::Busy | Outcome::TimedOut => Some(25),
                Outcome::Success
                | Outcome::NotFound
                | Outcome::Unauthorized
                | Outcome::Forbidden
                | Outcome::BadRequest
                | Outcome::PayloadTooLarge
                | Outcome::GenericError
                | Outcome::SocketError
                | Outcome::ResolutionError
                | Outcome::TlsError
                | Outcome::Blocked
                | Outcome::Probation
                | Outcome::Aborted => None,
            };
            assert_eq!(limits.limit(CEILING), expected, "{outcome}");
            assert_eq!(limits.is_watched(), expected.is_some());
        }
    }

    #[test]
    fn the_first_time_it_is_half_of_what_is_under_way_but_of_ten_at_least() {
        for (under_way, ceiling, limit) in [
            (50, 50, 25),
            (30, 50, 15),
            (30, 20, 10),
            (11, 50, 5),
            (1, 50, 5),
            (1, 6, 3),
            (1, 2, 1),
        ] {
            let mut limits = AdaptiveLimit::default();
            enough(&mut limits, Observed { under_way, ceiling, ..attempt(Outcome::Busy, 1) });
            assert_eq!(limits.limit(ceiling), Some(limit), "{under_way} of {ceiling}");
        }
        // The lowest limit is one.
        let mut limits = AdaptiveLimit::default();
        enough(&mut limits, Observed { ceiling: 1, ..attempt(Outcome::Busy, 1) });
        assert_eq!((limits.limit(1), limits.is_watched()), (None, false));
    }

    #[test]
    fn of_subscriptions_of_one_address_the_highest_ceiling_counts() {
        let of_one =
            |outcome, at_ms| Observed { under_way: 1, ceiling: 1, ..attempt(outcome, at_ms) };
        let mut limits = AdaptiveLimit::default();
        enough(&mut limits, attempt(Outcome::Busy, 1));
        assert_eq!((limits.limit(50), limits.limit(1)), (Some(25), None));
        limits.note(of_one(Outcome::Success, 10));
        assert_eq!(limits.limit(50), Some(25), "it is not forgotten");
        enough(&mut limits, of_one(Outcome::Busy, 10));
        assert_eq!(limits.limit(50), Some(12), "it is halved, and not one");
        // The higher ceiling also counts if the response that causes the first limit belongs to the
        // subscription with the lower ceiling.
        let mut limits = AdaptiveLimit::default();
        (0..9).for_each(|_| limits.note(attempt(Outcome::Busy, 1)));
        limits.note(of_one(Outcome::Busy, 1));
        assert_eq!(limits.limit(50), Some(25));
    }

    #[test]
    fn two_answers_and_a_fifth_of_them_have_to_be_too_much() {
        let few = |outcome| Observed { under_way: 9, ..attempt(outcome, 1) };
        for (successes, limit) in [(0, Some(5)), (8, Some(5)), (9, None)] {
            let mut limits = AdaptiveLimit::default();
            limits.note(few(Outcome::Busy));
            (0..successes).for_each(|_| limits.note(few(Outcome::Success)));
            assert_eq!((limits.limit(CEILING), limits.is_watched()), (None, true));
            limits.note(few(Outcome::Busy));
            assert_eq!(limits.limit(CEILING), limit, "{successes}");
        }
        // A failed connection is not counted; other responses are.
        for (outcome, limit) in [
            (Outcome::SocketError, Some(5)),
            (Outcome::Aborted, Some(5)),
            (Outcome::NotFound, None),
        ] {
            let mut limits = AdaptiveLimit::default();
            limits.note(few(Outcome::Busy));
            (0..9).for_each(|_| limits.note(few(outcome)));
            limits.note(few(Outcome::Busy));
            assert_eq!(limits.limit(CEILING), limit, "{outcome}");
        }
    }

    #[test]
    fn successes_forget_what_was_too_much() {
        for ceiling in [1, 20, 1_000] {
            let mut limits = AdaptiveLimit::default();
            let observed = |outcome| Observed { ceiling, under_way: 1, ..attempt(outcome, 1) };
            limits.note(observed(Outcome::Busy));
            let successes = latest(ceiling);
            (1..successes).for_each(|_| limits.note(observed(Outcome::Success)));
            assert!(limits.is_watched());
            limits.note(observed(Outcome::Success));
            assert!(!limits.is_watched(), "{ceiling}");
        }
    }

    #[test]
    fn timeouts_leave_five_requests_and_do_not_raise_a_lower_limit() {
        let mut limits = AdaptiveLimit::default();
        for (at_ms, limit) in [(1, 25), (3, 12), (5, 6), (7, 5), (9, 5)] {
            enough(&mut limits, attempt(Outcome::TimedOut, at_ms));
            assert_eq!(limits.limit(CEILING), Some(limit));
        }
        for (at_ms, outcome, limit) in
            [(11, Outcome::Busy, 2), (13, Outcome::TimedOut, 2), (15, Outcome::Busy, 1)]
        {
            enough(&mut limits, attempt(outcome, at_ms));
            assert_eq!(limits.limit(CEILING), Some(limit));
        }
        // Timeouts cannot lower the limit below five, which is the ceiling here.
        let mut limits = AdaptiveLimit::default();
        enough(&mut limits, Observed { ceiling: 5, ..attempt(Outcome::TimedOut, 1) });
        assert!(!limits.is_watched());
    }

    /// Returns the lowest and the average limit of 1,000 rounds in which `time_out` percent of the
    /// requests time out. Each round begins as many requests as the limit allows, and its timeouts
    /// arrive after its successes.
    fn of_hundred(time_out: u64) -> (u32, u32) {
        let (mut limits, mut random) = (AdaptiveLimit::default(), 1_u64);
        let (mut least, mut sum) = (CEILING, 0);
        for round in 0..1_000 {
            let limit = limits.limit(CEILING).unwrap_or(CEILING);
            (least, sum) = (least.min(limit), sum + limit);
            let mut outcomes: Vec<Outcome> = (0..limit)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let is_timeout = (random >> 33) % 100 < time_out;
                    if is_timeout { Outcome::TimedOut } else { Outcome::Success }
                })
                .collect();
            outcomes.sort_by_key(|outcome| *outcome == Outcome::TimedOut);
            for outcome in outcomes {
                limits.note(Observed { under_way: limit, ..attempt(outcome, 1 + 2 * round) });
            }
        }
        (least, sum / 1_000)
    }

    #[test]
    fn a_destination_of_which_a_few_in_a_hundred_time_out_keeps_its_limit() {
        assert_eq!(of_hundred(0), (50, 50));
        assert_eq!(of_hundred(5), (50, 50));
        assert_eq!(of_hundred(30), (5, 5));
    }

    #[test]
    fn it_is_halved_once_per_round_down_to_one() {
        let mut limits = AdaptiveLimit::default();
        for (round, limit) in [25, 12, 6, 3, 1, 1].into_iter().enumerate() {
            let started_ms = 10 * round as u64 + 1;
            for ended_ms in [started_ms + 3, started_ms + 7] {
                enough(&mut limits, Observed { ended_ms, ..attempt(Outcome::Busy, started_ms) });
                assert_eq!(limits.limit(CEILING), Some(limit));
            }
        }
    }

    #[test]
    fn it_grows_by_one_after_as_many_successes_and_is_forgotten_at_its_ceiling() {
        let mut limits = AdaptiveLimit::default();
        let ceiling = 8;
        enough(&mut limits, Observed { ceiling, ..attempt(Outcome::Busy, 1) });
        for limit in 4..ceiling {
            for _ in 0..limit {
                assert_eq!(limits.limit(ceiling), Some(limit));
                // Requests from before the change are not counted.
                limits.note(Observed { ceiling, ..attempt(Outcome::Success, 2) });
                let few = Observed { ceiling, under_way: 1, ..attempt(Outcome::Success, 3) };
                limits.note(few);
            }
        }
        assert!(!limits.is_watched());
    }
}
