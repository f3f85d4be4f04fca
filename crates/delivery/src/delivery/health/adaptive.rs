//! Adaptive concurrency: how many requests one process makes at once to a destination that shows that it
//! has too many.
//!
//! A destination has its whole limit (`maxConcurrency`, the ceiling) until answers say that this is too
//! much: 429, 503, timeouts, or answers that take clearly longer than they used to. Then the limit is
//! halved, and grows by one after as many successes as it allows at once. At its ceiling it is forgotten, so
//! a healthy destination is not in this memory and costs nothing. This is how TCP avoids congestion, and how
//! Vector limits its requests (<https://vector.dev/docs/architecture/arc/>).
//!
//! One unlucky answer decides nothing: a fifth of the latest answers have to be 429, 503 or timeouts, and at
//! least two. Timeouts come last, after all successes that began at the same time, so many of the latest
//! count. A timeout may also be due to the one event, so timeouts leave a few requests at once.
//!
//! Subscriptions of one address may have different ceilings. The highest counts for what is halved and when
//! it is forgotten; each makes at most as many requests as its own.
//!
//! What was under way when the limit was halved says nothing about the new one, and is not counted.

use std::collections::HashMap;
use std::hash::Hash;

use crate::delivery::outcome::Outcome;
use crate::time::duration::MINUTE_MS;

/// So many requests under way at once are many: with fewer, answers that take longer say nothing about
/// concurrency. So many answers are a round, whose average is compared.
pub const MANY: u32 = 10;
/// Answers take clearly longer if it is at least this much.
const SLOWER_MS: u64 = 100;
/// So many answers have to be too much, and one of so many.
const TOO_MUCH_MIN: u32 = 2;
/// See [`TOO_MUCH_MIN`].
const ONE_OF: u32 = 5;
/// Timeouts leave so many requests at once.
const DESPITE_TIMEOUTS: u32 = 5;
/// The answers of so many rounds count. Then a quarter of them is forgotten.
const ROUNDS: u32 = 4;
/// The most that a round has here.
const ROUND_MAX: u32 = 50;
/// Destinations that are remembered; beyond them those are forgotten that were last limited this long ago.
const REMEMBERED: usize = 1_000;
/// See [`REMEMBERED`].
const FORGOTTEN_MS: u64 = 10 * MINUTE_MS;

/// The limits that one process keeps to, and how long answers take where it makes many requests at once.
#[derive(Debug)]
pub struct AdaptiveLimits<K> {
    watched: HashMap<K, Watched>,
    latencies: HashMap<K, Latency>,
}

/// What one attempt showed.
#[derive(Debug, Clone, Copy)]
pub struct Observed {
    /// What happened.
    pub outcome: Outcome,
    /// When the request began.
    pub started_ms: u64,
    /// When its outcome was known.
    pub ended_ms: u64,
    /// How many requests to this destination were under way.
    pub under_way: u32,
    /// The most that it may have.
    pub ceiling: u32,
}

/// A destination that answered that it has too much to do, lately or until its limit was halved.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    /// Since the limit was halved, the latest.
    answers: u32,
    /// How many of these said that it is too much.
    too_much: u32,
    /// When the last one was noted.
    noted_ms: u64,
    /// The most requests under way before there was a limit.
    under_way: u32,
    /// The highest of its subscriptions.
    ceiling: u32,
    limited: Option<Limited>,
}

/// A destination below its ceiling.
#[derive(Debug, Clone, Copy)]
struct Limited {
    limit: u32,
    decreased_ms: u64,
    /// Since the limit was changed.
    successes: u32,
}

/// How long answers take: the average of the rounds so far, how far a round is from it on average, and the
/// round that is not complete.
#[derive(Debug, Clone, Copy, Default)]
struct Latency {
    average_ms: Option<u64>,
    deviation_ms: u64,
    sum_ms: u64,
    count: u32,
    /// How many answers there were since the limit was halved.
    answers: u32,
}

impl<K> Default for AdaptiveLimits<K> {
    fn default() -> Self {
        Self { watched: HashMap::new(), latencies: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone> AdaptiveLimits<K> {
    /// Whether no destination had too much to do lately. Then each has its whole limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// How many requests a destination gets at once, if that is less than its ceiling.
    #[must_use]
    pub fn limit(&self, destination: &K, ceiling: u32) -> Option<u32> {
        let limited = self.watched.get(destination)?.limited?;
        (limited.limit < ceiling).then_some(limited.limit)
    }

    /// Takes into account what an attempt showed.
    pub fn note(&mut self, destination: &K, observed: Observed) {
        let limited = self.watched.get(destination).and_then(|watched| watched.limited);
        if limited.is_some_and(|limited| observed.started_ms <= limited.decreased_ms) {
            return;
        }
        let is_too_much = matches!(observed.outcome, Outcome::Busy | Outcome::TimedOut);
        let is_slower = !is_too_much && self.is_slower(destination, observed);
        if is_too_much || is_slower {
            self.watch(destination, observed);
        }
        let Some(watched) = self.watched.get_mut(destination) else { return };
        watched.add(observed, is_too_much);
        if is_slower || is_too_much && watched.have_too_much() {
            watched.decrease(observed);
            // The rest of the round was under way as well.
            if let Some(latency) = self.latencies.get_mut(destination) {
                (latency.sum_ms, latency.count, latency.answers) = (0, 0, 0);
            }
        } else if observed.outcome == Outcome::Success {
            watched.increase();
        }
        if watched.is_over() {
            self.watched.remove(destination);
        }
    }

    /// Counts the answers of a destination from now on, and those of many requests at once before.
    fn watch(&mut self, destination: &K, observed: Observed) {
        if self.watched.len() >= REMEMBERED {
            let oldest_ms = observed.ended_ms.saturating_sub(FORGOTTEN_MS);
            self.watched.retain(|_, watched| watched.noted_ms > oldest_ms);
        }
        let answers = self.latencies.get(destination).map_or(0, |latency| latency.answers);
        let answers = answers.min(latest(observed.ceiling));
        let new = || Watched { answers, ..Watched::default() };
        let watched = self.watched.entry(destination.clone()).or_insert_with(new);
        watched.noted_ms = observed.ended_ms;
    }

    /// Whether this answer completes a round that took clearly longer than those before.
    fn is_slower(&mut self, destination: &K, observed: Observed) -> bool {
        if observed.under_way < MANY || observed.outcome != Outcome::Success {
            return false;
        }
        if self.latencies.len() >= REMEMBERED && !self.latencies.contains_key(destination) {
            self.latencies.clear();
        }
        let latency = self.latencies.entry(destination.clone()).or_default();
        latency.add(observed.ended_ms.saturating_sub(observed.started_ms))
    }
}

/// How many answers count at most.
fn latest(ceiling: u32) -> u32 {
    ROUNDS * ceiling.clamp(MANY, ROUND_MAX)
}

impl Watched {
    fn add(&mut self, observed: Observed, is_too_much: bool) {
        self.ceiling = self.ceiling.max(observed.ceiling);
        self.under_way = self.under_way.max(observed.under_way);
        // What did not get through says nothing of what the destination has to do.
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
        self.too_much >= TOO_MUCH_MIN && self.too_much.saturating_mul(ONE_OF) >= self.answers
    }

    /// Halves the limit. At first, half of what was under way: where that is less than the ceiling, half of
    /// the ceiling would change nothing. A few requests are taken for many, or two unlucky answers would
    /// leave a destination one request at a time.
    fn decrease(&mut self, observed: Observed) {
        let before = match self.limited {
            Some(limited) => limited.limit,
            None => self.under_way.max(MANY).min(self.ceiling),
        };
        let is_timeout = observed.outcome == Outcome::TimedOut;
        let least = if is_timeout { DESPITE_TIMEOUTS.min(before) } else { 1 };
        let limit = (before / 2).max(least);
        self.limited = Some(Limited { limit, decreased_ms: observed.ended_ms, successes: 0 });
        (self.answers, self.too_much) = (0, 0);
    }

    fn increase(&mut self) {
        let Some(limited) = &mut self.limited else { return };
        limited.successes += 1;
        if limited.successes >= limited.limit {
            (limited.limit, limited.successes) = (limited.limit.saturating_add(1), 0);
        }
    }

    /// Whether it has its whole limit, and was not found to have too much to do lately.
    fn is_over(&self) -> bool {
        match self.limited {
            Some(limited) => limited.limit >= self.ceiling,
            None => self.too_much == 0,
        }
    }
}

impl Latency {
    /// Adds an answer; whether it completes a round that took clearly longer. The average follows each
    /// round by a quarter, so a destination that stays slower is not limited for that for ever.
    fn add(&mut self, took_ms: u64) -> bool {
        self.answers = self.answers.saturating_add(1);
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
        self.count += 1;
        if self.count < MANY {
            return false;
        }
        let round_ms = self.sum_ms / u64::from(self.count);
        (self.sum_ms, self.count) = (0, 0);
        let Some(average_ms) = self.average_ms else {
            (self.average_ms, self.deviation_ms) = (Some(round_ms), round_ms / 2);
            return false;
        };
        // As TCP decides how long to wait for an acknowledgement.
        let margin_ms = self.deviation_ms.saturating_mul(4).max(average_ms / 2).max(SLOWER_MS);
        let off_ms = round_ms.abs_diff(average_ms);
        self.deviation_ms = quarter_closer(self.deviation_ms, off_ms);
        self.average_ms = Some(quarter_closer(average_ms, round_ms));
        round_ms > average_ms.saturating_add(margin_ms)
    }
}

/// A quarter of the way from one value to another.
fn quarter_closer(from: u64, to: u64) -> u64 {
    if to >= from { from.saturating_add((to - from) / 4) } else { from - (from - to) / 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: u32 = 50;

    /// An attempt that begins at this time and takes a millisecond.
    fn attempt(outcome: Outcome, started_ms: u64) -> Observed {
        let ended_ms = started_ms + 1;
        Observed { outcome, started_ms, ended_ms, under_way: 50, ceiling: CEILING }
    }

    /// Two answers, with what is different about them.
    fn twice(limits: &mut AdaptiveLimits<char>, observed: Observed) {
        (0..2).for_each(|_| limits.note(&'d', observed));
    }

    /// So many rounds of answers that take this long, of many requests at once.
    fn rounds(limits: &mut AdaptiveLimits<char>, count: u32, from_ms: u64, took_ms: u64) {
        for number in 0..u64::from(count * MANY) {
            let started_ms = from_ms + number;
            let ended_ms = started_ms + took_ms;
            limits.note(&'d', Observed { ended_ms, ..attempt(Outcome::Success, started_ms) });
        }
    }

    #[test]
    fn only_429_503_and_timeouts_halve_the_limit() {
        for outcome in Outcome::ALL {
            let mut limits = AdaptiveLimits::default();
            twice(&mut limits, attempt(outcome, 1));
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
            assert_eq!(limits.limit(&'d', CEILING), expected, "{outcome}");
            assert_eq!(
                (limits.is_empty(), limits.limit(&'e', CEILING)),
                (expected.is_none(), None)
            );
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
            let mut limits = AdaptiveLimits::default();
            twice(&mut limits, Observed { under_way, ceiling, ..attempt(Outcome::Busy, 1) });
            assert_eq!(limits.limit(&'d', ceiling), Some(limit), "{under_way} of {ceiling}");
        }
        // It cannot have fewer than one.
        let mut limits = AdaptiveLimits::default();
        twice(&mut limits, Observed { ceiling: 1, ..attempt(Outcome::Busy, 1) });
        assert_eq!((limits.limit(&'d', 1), limits.is_empty()), (None, true));
    }

    #[test]
    fn of_subscriptions_of_one_address_the_highest_ceiling_counts() {
        let of_one =
            |outcome, at_ms| Observed { under_way: 1, ceiling: 1, ..attempt(outcome, at_ms) };
        let mut limits = AdaptiveLimits::default();
        twice(&mut limits, attempt(Outcome::Busy, 1));
        assert_eq!((limits.limit(&'d', 50), limits.limit(&'d', 1)), (Some(25), None));
        limits.note(&'d', of_one(Outcome::Success, 10));
        assert_eq!(limits.limit(&'d', 50), Some(25), "it is not forgotten");
        twice(&mut limits, of_one(Outcome::Busy, 10));
        assert_eq!(limits.limit(&'d', 50), Some(12), "it is halved, and not one");
        // Also where the first limit follows from an answer to the other one.
        let mut limits = AdaptiveLimits::default();
        limits.note(&'d', attempt(Outcome::Busy, 1));
        limits.note(&'d', of_one(Outcome::Busy, 1));
        assert_eq!(limits.limit(&'d', 50), Some(25));
    }

    #[test]
    fn two_answers_and_a_fifth_of_them_have_to_be_too_much() {
        for (successes, limit) in [(0, Some(25)), (8, Some(25)), (9, None)] {
            let mut limits = AdaptiveLimits::default();
            let few = |outcome| Observed { under_way: 9, ..attempt(outcome, 1) };
            limits.note(&'d', few(Outcome::Busy));
            (0..successes).for_each(|_| limits.note(&'d', few(Outcome::Success)));
            assert_eq!((limits.limit(&'d', CEILING), limits.is_empty()), (None, false));
            limits.note(&'d', attempt(Outcome::Busy, 1));
            assert_eq!(limits.limit(&'d', CEILING), limit, "{successes}");
        }
        // What did not get through is not counted, other answers are.
        for (outcome, limit) in [
            (Outcome::SocketError, Some(25)),
            (Outcome::Aborted, Some(25)),
            (Outcome::NotFound, None),
        ] {
            let mut limits = AdaptiveLimits::default();
            limits.note(&'d', attempt(Outcome::Busy, 1));
            (0..9).for_each(|_| limits.note(&'d', attempt(outcome, 1)));
            limits.note(&'d', attempt(Outcome::Busy, 1));
            assert_eq!(limits.limit(&'d', CEILING), limit, "{outcome}");
        }
    }

    #[test]
    fn successes_forget_what_was_too_much() {
        for ceiling in [1, 20, 1_000] {
            let mut limits = AdaptiveLimits::default();
            let of = |outcome| Observed { ceiling, under_way: 1, ..attempt(outcome, 1) };
            limits.note(&'d', of(Outcome::Busy));
            let successes = latest(ceiling);
            (1..successes).for_each(|_| limits.note(&'d', of(Outcome::Success)));
            assert!(!limits.is_empty());
            limits.note(&'d', of(Outcome::Success));
            assert!(limits.is_empty(), "{ceiling}");
        }
    }

    #[test]
    fn timeouts_leave_five_requests_and_do_not_raise_a_lower_limit() {
        let mut limits = AdaptiveLimits::default();
        for (at_ms, limit) in [(1, 25), (3, 12), (5, 6), (7, 5), (9, 5)] {
            twice(&mut limits, attempt(Outcome::TimedOut, at_ms));
            assert_eq!(limits.limit(&'d', CEILING), Some(limit));
        }
        for (at_ms, outcome, limit) in
            [(11, Outcome::Busy, 2), (13, Outcome::TimedOut, 2), (15, Outcome::Busy, 1)]
        {
            twice(&mut limits, attempt(outcome, at_ms));
            assert_eq!(limits.limit(&'d', CEILING), Some(limit));
        }
        // One that has no more anyway.
        let mut limits = AdaptiveLimits::default();
        twice(&mut limits, Observed { ceiling: 5, ..attempt(Outcome::TimedOut, 1) });
        assert!(limits.is_empty());
    }

    /// The least and the average limit of 1,000 rounds in which so many of a hundred requests time out: a
    /// round begins as many as the limit allows, and its timeouts are known after its successes.
    fn of_hundred(time_out: u64) -> (u32, u32) {
        let (mut limits, mut random) = (AdaptiveLimits::default(), 1_u64);
        let (mut least, mut sum) = (CEILING, 0);
        for round in 0..1_000 {
            let limit = limits.limit(&'d', CEILING).unwrap_or(CEILING);
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
                limits.note(&'d', Observed { under_way: limit, ..attempt(outcome, 1 + 2 * round) });
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
        let mut limits = AdaptiveLimits::default();
        for (round, limit) in [25, 12, 6, 3, 1, 1].into_iter().enumerate() {
            let started_ms = 10 * round as u64 + 1;
            for ended_ms in [started_ms + 3, started_ms + 7] {
                twice(&mut limits, Observed { ended_ms, ..attempt(Outcome::Busy, started_ms) });
                assert_eq!(limits.limit(&'d', CEILING), Some(limit));
            }
        }
    }

    #[test]
    fn it_grows_by_one_after_as_many_successes_and_is_forgotten_at_its_ceiling() {
        let mut limits = AdaptiveLimits::default();
        let ceiling = 8;
        twice(&mut limits, Observed { ceiling, ..attempt(Outcome::Busy, 1) });
        for limit in 4..ceiling {
            for _ in 0..limit {
                assert_eq!(limits.limit(&'d', ceiling), Some(limit));
                // What was under way before says nothing.
                limits.note(&'d', Observed { ceiling, ..attempt(Outcome::Success, 2) });
                let few = Observed { ceiling, under_way: 1, ..attempt(Outcome::Success, 3) };
                limits.note(&'d', few);
            }
        }
        assert!(limits.is_empty());
    }

    #[test]
    fn answers_that_take_clearly_longer_halve_it_and_a_destination_that_stays_slower_recovers() {
        for (usual_ms, later_ms, is_slower) in [
            (20, 100, false),
            (20, 119, false),
            (20, 121, true),
            (1_000, 1_400, false),
            (1_000, 1_600, true),
            (1_000, 100, false),
        ] {
            let mut limits = AdaptiveLimits::default();
            // Until a round is where the others are.
            rounds(&mut limits, 40, 0, usual_ms);
            assert!(limits.is_empty());
            rounds(&mut limits, 1, 10_000, later_ms);
            let limit = is_slower.then_some(25);
            assert_eq!(limits.limit(&'d', CEILING), limit, "{usual_ms} then {later_ms}");
            rounds(&mut limits, 200, 20_000, later_ms);
            assert!(limits.is_empty(), "{usual_ms} then {later_ms}");
        }
    }

    #[test]
    fn of_few_requests_it_does_not_matter_how_long_they_take() {
        let mut limits = AdaptiveLimits::default();
        rounds(&mut limits, 40, 0, 20);
        for number in 0..100 {
            let few = attempt(Outcome::Success, 10_000 + number);
            let ended_ms = few.started_ms + 9_000;
            limits.note(&'d', Observed { under_way: MANY - 1, ended_ms, ..few });
        }
        assert!(limits.is_empty());
    }

    #[test]
    fn destinations_that_were_limited_long_ago_are_forgotten_when_there_are_many() {
        let mut limits = AdaptiveLimits::default();
        (0..REMEMBERED).for_each(|number| limits.note(&number, attempt(Outcome::Busy, 0)));
        limits.note(&REMEMBERED, attempt(Outcome::Busy, 2 * FORGOTTEN_MS));
        assert_eq!(limits.watched.len(), 1);
    }
}
