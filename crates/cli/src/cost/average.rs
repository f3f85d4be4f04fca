//! The average delivery: how many of its policy's waits it reaches, and how many messages that
//! takes.
//!
//! Separate because it is the only file with probabilities. Attempts succeed independently of each
//! other, so attempt `k` is made with probability `q^(k-1)`, where `q` is the probability that an
//! attempt fails. While the destination is down every attempt fails; the times of the attempts
//! decide how many fall into an outage.

use delivery::explain::Life;
use delivery::time::duration::{DAY_MS, SECOND_MS};
use delivery::waits::{DELAY_MAX_MS, delay_seconds};
use dispatch::{IN_PLACE_BELOW_MS, IN_PLACE_WAITS};

/// The longest delay of one message, in milliseconds.
pub(crate) const HOP_MS: u64 = DELAY_MAX_MS;

/// The wait after a failed attempt, or before the first one.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    /// The attempt that failed; 0 for the wait before the first one.
    pub(crate) after_attempt: u32,
    /// Its length without jitter.
    pub(crate) wait_ms: u64,
    /// Its length with half of the jitter: the length that is counted.
    pub(crate) counted_ms: u64,
    /// The messages that it takes; 0 for a wait in place.
    pub(crate) messages: u32,
    /// The same with all of the jitter.
    pub(crate) messages_most: u32,
    /// The probability that a delivery reaches it.
    pub(crate) reached: f64,
}

/// Checks whether the first attempt waits, for the delay of its subscription.
pub(crate) fn starts_later(life: &Life) -> bool {
    life.attempts.first().is_some_and(|attempt| attempt.wait_ms > 0)
}

/// The waits of a life: before the first attempt, if it waits, and after every attempt but the last. After the last one there is a wait if
/// its retry would have been too late.
fn waits_ms(life: &Life) -> Vec<u64> {
    let first = usize::from(!starts_later(life));
    let attempts = life.attempts.iter().skip(first);
    let mut waits: Vec<u64> = attempts.map(|attempt| attempt.wait_ms).collect();
    if life.last_wait_ms > 0 {
        waits.push(life.last_wait_ms);
    }
    waits
}

/// The waits of a policy, from its lives without, with half and with full jitter. With more jitter
/// a life may end after fewer waits: a missing wait takes no messages.
pub(crate) fn waits(life: &Life, half_jitter: &Life, full_jitter: &Life) -> Vec<Wait> {
    let (without_jitter, half_jitter, full_jitter) =
        (waits_ms(life), waits_ms(half_jitter), waits_ms(full_jitter));
    let (messages, messages_most) = (messages(&half_jitter), messages(&full_jitter));
    let first = if starts_later(life) { 0 } else { 1 };
    let numbered = (first..).zip(&half_jitter).enumerate();
    numbered
        .map(|(index, (after_attempt, counted_ms))| Wait {
            after_attempt,
            wait_ms: without_jitter.get(index).copied().unwrap_or(*counted_ms),
            counted_ms: *counted_ms,
            messages: messages.get(index).copied().unwrap_or(0),
            messages_most: messages_most.get(index).copied().unwrap_or(0),
            reached: 0.0,
        })
        .collect()
}

/// The messages of each wait. Dispatch waits up to five short waits in a row in place.
fn messages(waits_ms: &[u64]) -> Vec<u32> {
    let mut in_place = 0;
    let carry = |wait_ms: &u64| {
        if *wait_ms < IN_PLACE_BELOW_MS && in_place < IN_PLACE_WAITS {
            in_place += 1;
            return 0;
        }
        in_place = 0;
        // A short wait that may not be waited in place any more is still one message.
        hops(*wait_ms).max(1)
    };
    waits_ms.iter().map(carry).collect()
}

/// The messages of one wait: each has the delay that production gives it, and a rest below a second
/// is waited in place.
pub(crate) fn hops(wait_ms: u64) -> u32 {
    let (mut rest_ms, mut hops) = (wait_ms, 0);
    while rest_ms >= IN_PLACE_BELOW_MS {
        rest_ms = rest_ms.saturating_sub(delay_seconds(rest_ms) * SECOND_MS);
        hops += 1;
    }
    hops
}

/// The share of the day's events that are published during an outage, which begins with the day.
pub(crate) fn share_of_day(outage_ms: u64) -> f64 {
    as_f64(outage_ms.min(DAY_MS)) / as_f64(DAY_MS)
}

/// The probability that `k` attempts have failed, by `k`: that attempt `k + 1` is made, and at the
/// last index that no attempt is left. `fails` is the probability of failing while the destination
/// is up, `down` the share of the deliveries that begin while it is down.
pub(crate) fn reached(life: &Life, fails: f64, outage_ms: u64, down: f64) -> Vec<f64> {
    let attempts = life.attempts.len();
    let powers: Vec<f64> =
        std::iter::successors(Some(1.0), |power| Some(power * fails)).take(attempts + 1).collect();
    let lost = lost_to(life, outage_ms);
    let while_down = |k: usize| -> f64 {
        lost.iter()
            .enumerate()
            .map(|(index, weight)| weight * powers[k.saturating_sub(index + 1)])
            .sum()
    };
    (0..=attempts)
        .map(|k| (1.0 - down) * powers[k] + if down > 0.0 { down * while_down(k) } else { 0.0 })
        .collect()
}

/// How many attempts of a delivery that begins during the outage fall into it: the probability of
/// `i + 1` attempts, by `i`.
fn lost_to(life: &Life, outage_ms: u64) -> Vec<f64> {
    // How much of the outage remains at publication is uniform between these two.
    let (from_ms, to_ms) = (outage_ms.saturating_sub(DAY_MS), outage_ms);
    let within = as_f64(to_ms.saturating_sub(from_ms).max(1));
    let begins = life.attempts.iter().map(|attempt| attempt.at_ms);
    // No attempt follows the last one: the rest of the outage falls to it.
    let ends = life.attempts.iter().skip(1).map(|attempt| attempt.at_ms).chain([u64::MAX]);
    begins
        .zip(ends)
        .map(|(begin_ms, end_ms)| {
            as_f64(end_ms.min(to_ms).saturating_sub(begin_ms.max(from_ms))) / within
        })
        .collect()
}

/// The average delivery.
#[derive(Debug, Clone)]
pub(crate) struct AverageDelivery {
    /// Attempts.
    pub(crate) attempts: f64,
    /// 1 if a message waits for its first attempt, for the delay of its subscription; else 0.
    pub(crate) starts_later: f64,
    /// The probability that its first attempt fails.
    pub(crate) first_fails: f64,
    /// Attempts after a wait in place.
    pub(crate) attempts_in_place: f64,
    /// Attempts that failed.
    pub(crate) failures: f64,
    /// Waits that are sent as messages.
    pub(crate) waits: f64,
    /// Waits that take more than one message.
    pub(crate) long_waits: f64,
    /// Messages of all waits.
    pub(crate) messages: f64,
    /// Time spent in these messages, in milliseconds.
    pub(crate) waiting_ms: f64,
    /// Time of waits in place, in milliseconds.
    pub(crate) in_place_ms: f64,
    /// The probability that it is dead-lettered.
    pub(crate) dead_letters: f64,
}

impl AverageDelivery {
    /// The average over this life and these waits.
    pub(crate) fn of(life: &Life, waits: &[Wait], reached: &[f64]) -> Self {
        let attempts = life.attempts.len();
        let sum = |of: &dyn Fn(&Wait) -> f64| {
            waits.iter().map(|wait| wait.reached * of(wait)).sum::<f64>()
        };
        let before_attempt =
            |wait: &Wait| usize::try_from(wait.after_attempt).is_ok_and(|after| after < attempts);
        let as_number = |holds: bool| if holds { 1.0 } else { 0.0 };
        let is_sent = |wait: &Wait| wait.after_attempt == 0 && wait.messages > 0;
        let without_success = reached.last().copied().unwrap_or(0.0);
        Self {
            attempts: reached.iter().take(attempts).sum(),
            starts_later: as_number(waits.iter().any(is_sent)),
            first_fails: reached.get(1).copied().unwrap_or(0.0),
            // The first attempt after a wait in place is one at once.
            attempts_in_place: sum(&|wait| {
                as_number(wait.messages == 0 && wait.after_attempt > 0 && before_attempt(wait))
            }),
            failures: reached.iter().skip(1).sum(),
            waits: sum(&|wait| as_number(wait.messages > 0)),
            long_waits: sum(&|wait| as_number(wait.messages > 1)),
            messages: sum(&|wait| f64::from(wait.messages)),
            waiting_ms: sum(&|wait| if wait.messages > 0 { as_f64(wait.counted_ms) } else { 0.0 }),
            in_place_ms: sum(&|wait| {
                if wait.messages == 0 { as_f64(wait.counted_ms) } else { 0.0 }
            }),
            dead_letters: if life.stored.is_some() { without_success } else { 0.0 },
        }
    }

    /// First attempts in the invocation that receives the event.
    pub(crate) fn first_at_once(&self) -> f64 {
        1.0 - self.starts_later
    }

    /// Attempts after a message of the retry queue.
    pub(crate) fn attempts_after_messages(&self) -> f64 {
        (self.attempts - self.first_at_once() - self.attempts_in_place).max(0.0)
    }
}

/// Milliseconds as a floating-point number: exact below 2^53, which is 285,000 years.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact below 2^53 ms, and lives are 14 days at most"
)]
pub(crate) fn as_f64(ms: u64) -> f64 {
    ms as f64
}
