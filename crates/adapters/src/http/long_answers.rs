//! Limits how many long responses are read concurrently, because each one needs memory. A *turn* is
//! the permission to read one.
//!
//! Separate from reading because fairness matters: an endpoint decides how long its response takes.
//! A URL has at most [`OF_AN_ADDRESS`] turns. A turn with less throughput than [`FAST_ENOUGH`] ends
//! early if another exchange waits. Without waiting exchanges no turn ends early.
//!
//! Does not limit the duration of a response: the deadline of its exchange does.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use url::Url;

use super::failure::Failure;
use crate::machine::Machine;

/// Maximum number of long responses that are read concurrently. Others wait, within their
/// deadlines. Each needs memory: the connection's buffer grows to 408 KiB, and the next buffer is
/// allocated before the old one is freed.
const AT_ONCE: usize = 4;
/// Maximum number of long responses from one URL that are read concurrently.
const OF_AN_ADDRESS: usize = 2;
/// Duration for which a slow turn may continue, even if another exchange waits.
const UNDISTURBED_MS: u64 = SECOND_MS;
/// Minimum throughput while other exchanges wait, in bytes per millisecond. At this rate the
/// longest response takes about seven seconds.
const FAST_ENOUGH: u64 = 64;

/// Grants turns to read long responses.
#[derive(Debug)]
pub(super) struct LongAnswers {
    /// Every turn and every waiting exchange holds a reference, so the reference count shows the
    /// demand.
    all: Arc<Semaphore>,
    of_addresses: Mutex<HashMap<Url, Arc<Semaphore>>>,
}

/// The permission to read a long response, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    began_ms: u64,
    bytes: u64,
    of_all: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
}

impl Default for LongAnswers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE)), of_addresses: Mutex::default() }
    }
}

impl LongAnswers {
    /// Waits for a turn to read a response from `url`. Always returns `Some`, because the
    /// semaphores are never closed.
    pub(super) async fn turn(&self, url: &Url) -> Option<Turn> {
        // This order matters: an exchange that waits for its own address holds no turn, and does
        // not shorten the turns of others.
        let of_address = self.of_address(url).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn { began_ms: Machine.now_ms(), bytes: 0, of_all, _of_address: of_address })
    }

    fn of_address(&self, url: &Url) -> Arc<Semaphore> {
        let mut known = self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let new = || Arc::new(Semaphore::new(OF_AN_ADDRESS));
        Arc::clone(known.entry(url.clone()).or_insert_with(new))
    }
}

impl Turn {
    /// Counts bytes that were received during this turn.
    pub(super) fn brought(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Waits for the next part of the response.
    ///
    /// # Errors
    /// Fails if no data is available, the turn is too slow, and another exchange waits.
    pub(super) async fn next<T>(&self, coming: impl Future<Output = T>) -> Result<T, Failure> {
        let mut coming = pin!(coming);
        loop {
            // Accept data that is already available, even late: this process may have been busy.
            if let Ok(next) = timeout(Duration::ZERO, &mut coming).await {
                return Ok(next);
            }
            let lasted_ms = Machine.now_ms().saturating_sub(self.began_ms);
            if is_slow(lasted_ms, self.bytes) && self.is_wanted() {
                return Err(Failure::TurnOver);
            }
            if let Ok(next) = timeout(Duration::from_millis(UNDISTURBED_MS), &mut coming).await {
                return Ok(next);
            }
        }
    }

    /// True if another exchange waits. The semaphore then has more references than [`LongAnswers`]
    /// and [`AT_ONCE`] turns hold.
    fn is_wanted(&self) -> bool {
        Arc::strong_count(self.of_all.semaphore()) > 1 + AT_ONCE
    }
}

/// True if a turn that has read this many bytes in this time may be ended for another exchange.
fn is_slow(lasted_ms: u64, bytes: u64) -> bool {
    lasted_ms >= UNDISTURBED_MS && bytes < lasted_ms.saturating_mul(FAST_ENOUGH)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt as _;

    use super::*;

    fn url(number: usize) -> Url {
        format!("https://a.example.com/{number}").parse().expect("a URL")
    }

    fn turn(answers: &LongAnswers, number: usize) -> Option<Turn> {
        answers.turn(&url(number)).now_or_never().flatten()
    }

    #[test]
    fn an_address_has_some_of_the_turns_and_others_have_the_rest() {
        let answers = LongAnswers::default();
        let first = [turn(&answers, 1), turn(&answers, 1)];
        assert!(first.iter().all(Option::is_some) && turn(&answers, 1).is_none());
        let others = [turn(&answers, 2), turn(&answers, 3)];
        assert!(others.iter().all(Option::is_some) && turn(&answers, 4).is_none());
        drop(first);
        assert!(turn(&answers, 4).is_some() && turn(&answers, 1).is_some());
        drop(others);
        assert_eq!(turn(&answers, 5).map(|_| answers.of_addresses.lock().unwrap().len()), Some(1));
    }

    #[test]
    fn a_turn_that_brings_enough_is_not_slow_and_one_that_has_just_begun_neither() {
        for (lasted_ms, bytes, expected) in [
            (UNDISTURBED_MS - 1, 0, false),
            (UNDISTURBED_MS, 0, true),
            (UNDISTURBED_MS, UNDISTURBED_MS * FAST_ENOUGH - 1, true),
            (UNDISTURBED_MS, UNDISTURBED_MS * FAST_ENOUGH, false),
            (7 * SECOND_MS, 448 * 1_024, false),
            (u64::MAX, 448 * 1_024, true),
        ] {
            assert_eq!(is_slow(lasted_ms, bytes), expected, "{lasted_ms} ms, {bytes} bytes");
        }
    }

    #[tokio::test]
    async fn a_turn_ends_when_another_address_waits_and_not_before() {
        let answers = LongAnswers::default();
        let mut turns: Vec<_> = [1, 1, 2, 2].map(|number| turn(&answers, number)).into();
        // Enough bytes for hours, in two parts that add up.
        for bytes in [1_000_000_000, 1] {
            turns[1].as_mut().expect("it has a turn").brought(bytes);
        }
        let twice = Duration::from_millis(2 * UNDISTURBED_MS);
        let next_of = async |which: usize, coming| match &turns[which] {
            Some(turn) => timeout(twice, turn.next(coming)).await.ok(),
            None => panic!("it has a turn"),
        };
        let next = async |coming| next_of(0, coming).await;
        let (same, other) = (url(1), url(3));
        let (mut same, mut another) = (pin!(answers.turn(&same)), pin!(answers.turn(&other)));
        assert!(same.as_mut().now_or_never().is_none());
        assert!(next(pending().boxed()).await.is_none(), "no other address waits");
        assert!(matches!(next(async {}.boxed()).await, Some(Ok(()))));
        assert!(another.as_mut().now_or_never().is_none());
        assert!(matches!(next(async {}.boxed()).await, Some(Ok(()))), "what is there is taken");
        assert!(matches!(next(pending().boxed()).await, Some(Err(Failure::TurnOver))));
        assert!(next_of(1, pending().boxed()).await.is_none(), "it has brought enough");
        drop(turns);
        assert!(another.await.is_some());
    }
}
