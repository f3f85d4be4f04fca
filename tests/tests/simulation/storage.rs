//! Object storage and an external queue: the first write wins, and sometimes they refuse.

use std::collections::BTreeMap;

use delivery::ports::{MESSAGE_MAX_BYTES, PutError};
use uuid::Uuid;

use super::faults::{Fault, JitterSource};

/// The default container.
pub(crate) const DEFAULT_CONTAINER: &str = "dead-letters/all";

/// How a bucket behaves.
#[derive(Debug, Clone, Copy)]
enum Mood {
    /// Accepts everything.
    Fine,
    /// Refuses until this time.
    RefusesUntil(u64),
    /// Is missing until this time.
    MissingUntil(u64),
}

/// Two buckets, the default one and one that some subscriptions name, and a queue that some name.
#[derive(Debug)]
pub(crate) struct Storage {
    default: Mood,
    own: Mood,
    queue: Mood,
    /// What the queue received, by the id of the delivery.
    pub(crate) handed: BTreeMap<Uuid, u32>,
    /// What is stored, by bucket and key.
    pub(crate) blobs: BTreeMap<(String, String), Vec<u8>>,
}

impl Storage {
    /// Storage for one world.
    pub(crate) fn choose(dice: &mut JitterSource, now_ms: u64) -> Self {
        let default = Self::mood(dice, now_ms, 4);
        let own = Self::mood(dice, now_ms, 20);
        let queue = Self::mood(dice, now_ms, 30);
        Self { default, own, queue, handed: BTreeMap::new(), blobs: BTreeMap::new() }
    }

    fn mood(dice: &mut JitterSource, now_ms: u64, percent: u64) -> Mood {
        if dice.quiet || !dice.percent(percent) {
            return Mood::Fine;
        }
        let until_ms = now_ms
            + dice.one_of(&[60_000, 3_600_000, 3_600_000, 10_000_000, 10_000_000, u64::MAX / 2]);
        if dice.percent(50) { Mood::RefusesUntil(until_ms) } else { Mood::MissingUntil(until_ms) }
    }

    /// Writes a blob; returns whether it is there, which is not always the result that the writer
    /// gets.
    pub(crate) fn put(
        &mut self,
        dice: &mut JitterSource,
        now_ms: u64,
        (bucket, key): (&str, &str),
        bytes: Vec<u8>,
    ) -> (bool, Result<(), PutError>) {
        let mood = if DEFAULT_CONTAINER.split('/').next() == Some(bucket) {
            self.default
        } else {
            self.own
        };
        if let Some(error) = mood.refusal(dice, now_ms) {
            return (false, Err(error));
        }
        self.blobs.entry((bucket.to_owned(), key.to_owned())).or_insert(bytes);
        (true, Self::perhaps_lost(dice))
    }

    /// Puts a dead letter into the external queue; returns whether it is there.
    pub(crate) fn send_to_sink(
        &mut self,
        dice: &mut JitterSource,
        now_ms: u64,
        id: Uuid,
        json: &str,
    ) -> (bool, Result<(), PutError>) {
        if let Some(error) = self.queue.refusal(dice, now_ms) {
            return (false, Err(error));
        }
        if json.len() > MESSAGE_MAX_BYTES {
            return (false, Err(PutError::NoSuchContainer("too long".to_owned())));
        }
        *self.handed.entry(id).or_default() += 1;
        (true, Self::perhaps_lost(dice))
    }

    fn perhaps_lost(dice: &mut JitterSource) -> Result<(), PutError> {
        let lost = dice.strikes(Fault::StorageAnswerLost);
        if lost { Err(PutError::Refused("no answer".to_owned())) } else { Ok(()) }
    }
}

impl Mood {
    /// Why nothing is accepted now.
    fn refusal(self, dice: &mut JitterSource, now_ms: u64) -> Option<PutError> {
        match self {
            Self::RefusesUntil(until_ms) if now_ms < until_ms => {
                dice.count(Fault::StorageRefused);
                Some(PutError::Refused("503".to_owned()))
            }
            Self::MissingUntil(until_ms) if now_ms < until_ms => {
                dice.count(Fault::ContainerMissing);
                Some(PutError::NoSuchContainer("404".to_owned()))
            }
            Self::Fine | Self::RefusesUntil(_) | Self::MissingUntil(_) => None,
        }
    }
}
