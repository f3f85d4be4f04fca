//! Turns to read long answers, so few at once that their memory is bounded.
//!
//! Separate from reading because of who else waits: an endpoint decides how long its answer takes. So no address
//! has more than [`OF_AN_ADDRESS`] turns, and a turn that has lasted for [`UNDISTURBED_MS`] ends as soon as
//! somebody waits for it. Nobody is hurried while nobody waits.
//!
//! Does not bound how long an answer takes: the deadline of its exchange does.

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

/// So many are read at once; the others wait, within their deadlines. Each costs memory: the connection's
/// buffer grows to 408 KiB, and the next one is allocated while it is still there.
const AT_ONCE: usize = 4;
/// So many of them are of one address.
const OF_AN_ADDRESS: usize = 2;
/// So long each turn lasts at least: an answer of 512 KiB takes a part of it, from most endpoints.
const UNDISTURBED_MS: u64 = SECOND_MS;

/// Who reads a long answer, and who waits for that.
#[derive(Debug)]
pub(super) struct LongAnswers {
    /// Each turn has a reference to it, and so has everybody who waits for one.
    all: Arc<Semaphore>,
    of_addresses: Mutex<HashMap<Url, Arc<Semaphore>>>,
}

/// A turn to read, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    began_ms: u64,
    of_all: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
}

impl Default for LongAnswers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE)), of_addresses: Mutex::default() }
    }
}

impl LongAnswers {
    /// Waits for a turn to read the answer of this address. There always is one: nobody closes a semaphore here.
    pub(super) async fn turn(&self, url: &Url) -> Option<Turn> {
        // In this order: who waits for its own address takes no turn of others, and hurries nobody.
        let of_address = self.of_address(url).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn { began_ms: Machine.now_ms(), of_all, _of_address: of_address })
    }

    fn of_address(&self, url: &Url) -> Arc<Semaphore> {
        let mut known = self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let new = || Arc::new(Semaphore::new(OF_AN_ADDRESS));
        Arc::clone(known.entry(url.clone()).or_insert_with(new))
    }
}

impl Turn {
    /// What comes next of the answer.
    ///
    /// # Errors
    /// When this turn has lasted long enough, and somebody waits for it.
    pub(super) async fn next<T>(&self, coming: impl Future<Output = T>) -> Result<T, Failure> {
        let mut coming = pin!(coming);
        loop {
            let lasted_ms = Machine.now_ms().saturating_sub(self.began_ms);
            if lasted_ms >= UNDISTURBED_MS && self.is_wanted() {
                return Err(Failure::TurnOver);
            }
            if let Ok(next) = timeout(Duration::from_millis(UNDISTURBED_MS), &mut coming).await {
                return Ok(next);
            }
        }
    }

    /// Whether more have a reference than have a turn, beside [`LongAnswers`] itself.
    fn is_wanted(&self) -> bool {
        Arc::strong_count(self.of_all.semaphore()) > 1 + AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt as _;

    use super::*;

    fn url(number: usize) -> Url {
        format!("https://a.example.com/{number}").parse().expect("a URL")
    }

    fn turn(of: &LongAnswers, number: usize) -> Option<Turn> {
        of.turn(&url(number)).now_or_never().flatten()
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

    #[tokio::test]
    async fn a_turn_ends_when_another_address_waits_and_not_before() {
        let answers = LongAnswers::default();
        let turns: Vec<_> = [1, 1, 2, 2].map(|number| turn(&answers, number)).into();
        let twice = Duration::from_millis(2 * UNDISTURBED_MS);
        let next = async |coming| match &turns[0] {
            Some(turn) => timeout(twice, turn.next(coming)).await.ok(),
            None => panic!("it has a turn"),
        };
        let (same, other) = (url(1), url(3));
        let (mut same, mut another) = (pin!(answers.turn(&same)), pin!(answers.turn(&other)));
        assert!(same.as_mut().now_or_never().is_none());
        assert!(next(pending().boxed()).await.is_none(), "no other address waits");
        assert!(matches!(next(async {}.boxed()).await, Some(Ok(()))));
        assert!(another.as_mut().now_or_never().is_none());
        assert!(matches!(next(pending().boxed()).await, Some(Err(Failure::TurnOver))));
        drop(turns);
        assert!(another.await.is_some());
    }
}
