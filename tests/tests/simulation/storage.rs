//! Object storage and an external queue: the first write wins, and sometimes they refuse.

use std::collections::BTreeMap;

use delivery::ports::{MESSAGE_MAX_BYTES, PutError};
use uuid::Uuid;

use super::faults::{Fault, SeededRandom};

pub(crate) const DEFAULT_CONTAINER: &str = "dead-letters/all";

/// The behaviour of a bucket, or of the external queue.
#[derive(Debug, Clone, Copy)]
enum Availability {
    /// Accepts everything.
    Fine,
    /// Refuses until this time.
    RefusesUntil(u64),
    /// Is missing until this time.
    MissingUntil(u64),
}

/// Two buckets and an external queue. Some subscriptions name the second bucket or the queue.
#[derive(Debug)]
pub(crate) struct Storage {
    default: Availability,
    own: Availability,
    queue: Availability,
    /// The number of messages in the external queue, by the id of their delivery.
    pub(crate) sink_messages: BTreeMap<Uuid, u32>,
    /// Stored blobs, by bucket and key.
    pub(crate) blobs: BTreeMap<(String, String), Vec<u8>>,
}

impl Storage {
    /// Draws the availability of storage for one world.
    pub(crate) fn choose(random: &mut SeededRandom, now_ms: u64) -> Self {
        let default = Self::availability(random, now_ms, 4);
        let own = Self::availability(random, now_ms, 20);
        let queue = Self::availability(random, now_ms, 30);
        Self { default, own, queue, sink_messages: BTreeMap::new(), blobs: BTreeMap::new() }
    }

    fn availability(random: &mut SeededRandom, now_ms: u64, percent: u64) -> Availability {
        if random.quiet || !random.percent(percent) {
            return Availability::Fine;
        }
        let until_ms = now_ms
            + random.pick(&[60_000, 3_600_000, 3_600_000, 10_000_000, 10_000_000, u64::MAX / 2]);
        if random.percent(50) {
            Availability::RefusesUntil(until_ms)
        } else {
            Availability::MissingUntil(until_ms)
        }
    }

    /// Makes every container refuse everything until this time.
    pub(crate) fn refuse_until(&mut self, until_ms: u64) {
        (self.default, self.own) =
            (Availability::RefusesUntil(until_ms), Availability::RefusesUntil(until_ms));
    }

    /// Writes a blob. Returns whether it is stored, and the result for the writer, which may
    /// differ.
    pub(crate) fn put(
        &mut self,
        random: &mut SeededRandom,
        now_ms: u64,
        (bucket, key): (&str, &str),
        bytes: Vec<u8>,
    ) -> (bool, Result<(), PutError>) {
        let availability = if DEFAULT_CONTAINER.split('/').next() == Some(bucket) {
            self.default
        } else {
            self.own
        };
        if let Some(error) = availability.refusal(random, now_ms) {
            return (false, Err(error));
        }
        self.blobs.entry((bucket.to_owned(), key.to_owned())).or_insert(bytes);
        (true, Self::maybe_lose_answer(random))
    }

    /// True if the default container accepts nothing now, and accepted nothing before.
    pub(crate) fn refuses(&self, now_ms: u64) -> bool {
        match self.default {
            Availability::Fine => false,
            Availability::RefusesUntil(until_ms) | Availability::MissingUntil(until_ms) => {
                now_ms < until_ms
            }
        }
    }

    /// Puts a dead letter into the external queue. Returns whether it is there, and the result for
    /// the sender.
    pub(crate) fn send_to_sink(
        &mut self,
        random: &mut SeededRandom,
        now_ms: u64,
        id: Uuid,
        json: &str,
    ) -> (bool, Result<(), PutError>) {
        if let Some(error) = self.queue.refusal(random, now_ms) {
            return (false, Err(error));
        }
        if json.len() > MESSAGE_MAX_BYTES {
            return (false, Err(PutError::Permanent("too long".to_owned())));
        }
        *self.sink_messages.entry(id).or_default() += 1;
        (true, Self::maybe_lose_answer(random))
    }

    fn maybe_lose_answer(random: &mut SeededRandom) -> Result<(), PutError> {
        let lost = random.injects(Fault::StorageAnswerLost);
        if lost { Err(PutError::Unavailable("no answer".to_owned())) } else { Ok(()) }
    }
}

impl Availability {
    /// The error of a write now; `None` if writes are accepted.
    fn refusal(self, random: &mut SeededRandom, now_ms: u64) -> Option<PutError> {
        match self {
            Self::RefusesUntil(until_ms) if now_ms < until_ms => {
                random.count(Fault::StorageRefused);
                Some(PutError::Unavailable("503".to_owned()))
            }
            Self::MissingUntil(until_ms) if now_ms < until_ms => {
                random.count(Fault::ContainerMissing);
                Some(PutError::Permanent("404".to_owned()))
            }
            Self::Fine | Self::RefusesUntil(_) | Self::MissingUntil(_) => None,
        }
    }
}
