//! Object storage: the first write wins, and now and then it refuses.

use std::collections::BTreeMap;

use delivery::ports::PutError;

use super::faults::{Dice, Fault};

/// The deployment's container.
pub(crate) const DEFAULT_CONTAINER: &str = "dead-letters/all";

/// How a bucket behaves.
#[derive(Debug, Clone, Copy)]
enum Mood {
    /// Takes everything.
    Fine,
    /// Refuses until this moment.
    RefusesUntil(u64),
    /// Does not exist until this moment.
    MissingUntil(u64),
}

/// Two buckets: the deployment's, and one that some subscriptions name.
#[derive(Debug)]
pub(crate) struct Storage {
    default: Mood,
    own: Mood,
    /// What is stored, by bucket and key.
    pub(crate) blobs: BTreeMap<(String, String), Vec<u8>>,
}

impl Storage {
    /// Storage for one world.
    pub(crate) fn choose(dice: &mut Dice, now_ms: u64) -> Self {
        let default = Self::mood(dice, now_ms, 4);
        let own = Self::mood(dice, now_ms, 20);
        Self { default, own, blobs: BTreeMap::new() }
    }

    fn mood(dice: &mut Dice, now_ms: u64, percent: u64) -> Mood {
        if dice.quiet || !dice.percent(percent) {
            return Mood::Fine;
        }
        let until_ms = now_ms + dice.one_of(&[60_000, 3_600_000, 3_600_000, 10_000_000, 10_000_000, u64::MAX / 2]);
        if dice.percent(50) { Mood::RefusesUntil(until_ms) } else { Mood::MissingUntil(until_ms) }
    }

    /// Writes a blob; says whether it is there, which is not always what the writer is told.
    pub(crate) fn put(
        &mut self,
        dice: &mut Dice,
        now_ms: u64,
        (bucket, key): (&str, &str),
        bytes: Vec<u8>,
    ) -> (bool, Result<(), PutError>) {
        let mood = if DEFAULT_CONTAINER.split('/').next() == Some(bucket) { self.default } else { self.own };
        match mood {
            Mood::RefusesUntil(until_ms) if now_ms < until_ms => {
                dice.count(Fault::StorageRefused);
                (false, Err(PutError::Refused("503".to_owned())))
            }
            Mood::MissingUntil(until_ms) if now_ms < until_ms => {
                dice.count(Fault::ContainerMissing);
                (false, Err(PutError::NoSuchContainer("404".to_owned())))
            }
            Mood::Fine | Mood::RefusesUntil(_) | Mood::MissingUntil(_) => {
                self.blobs.entry((bucket.to_owned(), key.to_owned())).or_insert(bytes);
                let lost = dice.strikes(Fault::StorageAnswerLost);
                (true, if lost { Err(PutError::Refused("no answer".to_owned())) } else { Ok(()) })
            }
        }
    }
}
