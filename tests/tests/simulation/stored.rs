//! Checks on every stored dead letter. Some of these checks also apply to external queues.

use delivery::ports::PutError;
use delivery::time::moment::hour_folder;
use uuid::Uuid;

use super::queued::{Carried, Queued};
use super::replayed::is_of_replay;
use super::rules::OWN_CONTAINER;
use super::storage::DEFAULT_CONTAINER;
use super::trace::digest;
use super::world::{Inner, Touched};

impl Inner {
    /// Checks a blob, and stores it.
    pub(crate) fn store(
        &mut self,
        bucket: &str,
        mut key: String,
        mut bytes: Vec<u8>,
    ) -> Result<(), PutError> {
        if is_of_replay(&key) {
            return self.store_ends(bucket, &key, bytes);
        }
        self.saboteur.tampers_with_blob(&mut key, &mut bytes);
        let id = key
            .rsplit('/')
            .next()
            .and_then(|name| name.strip_suffix(".json"))
            .and_then(|name| name.parse().ok());
        let id: Uuid = id.unwrap_or_default();
        self.check_blob(id, bucket, &key, &bytes);
        self.trace(|| {
            let (name, digest) = (self.ledger.name(id), digest(&bytes));
            format!("stores {name} in {bucket}/{key}: {digest}")
        });
        let (there, answer) =
            self.storage.put(&mut self.random, self.now_ms, (bucket, &key), bytes);
        self.trace(|| format!("storage answers {answer:?}"));
        if !self.invocation().stores {
            self.note_stored_directly(id, bucket, there, &answer);
        }
        answer
    }

    /// Records that dispatch wrote a blob itself, or tried to. If the write failed, the record is
    /// redelivered and its attempts are repeated. A missing container of a subscription is no
    /// failure, because the default container replaces it.
    pub(crate) fn note_stored_directly(
        &mut self,
        id: Uuid,
        bucket: &str,
        there: bool,
        answer: &Result<(), PutError>,
    ) {
        if there {
            let chain = self.chain_of(id);
            *self.ledger.letters.entry(chain).or_default() += 1;
            self.ledger.must_end.insert(chain);
            let begins = self.ledger.known.get(&id).is_some_and(|known| known.from.is_some());
            if begins && self.bases(id).is_empty() {
                // The dead letter is too large for its sink, so it is stored where the sink
                // delivery started.
                *self.ledger.starts.entry(id).or_default() += 1;
            }
        }
        let excused = match answer {
            Ok(()) => false,
            Err(PutError::Unavailable(_)) => true,
            Err(PutError::Permanent(_)) => DEFAULT_CONTAINER.starts_with(bucket),
        };
        if excused {
            self.fork(&Touched::single(id));
        }
    }

    /// Checks that the key and the bytes of a blob follow from its message.
    fn check_blob(&mut self, id: Uuid, bucket: &str, key: &str, bytes: &[u8]) {
        if !self.ledger.known.contains_key(&id) && !self.ledger.unprocessed.contains_key(&id) {
            return self.ledger.record_violation(format!("a blob without a delivery: {key}"));
        }
        if !self.invocation().stores {
            return;
        }
        let prefix = [OWN_CONTAINER, DEFAULT_CONTAINER].into_iter().find_map(|container| {
            container.strip_prefix(bucket).and_then(|prefix| prefix.strip_prefix('/'))
        });
        let path = key.strip_prefix(prefix.unwrap_or("?")).unwrap_or("?");
        let right = |held: &Queued| {
            let decided_ms = match &held.carried {
                Carried::DeadLetter(letter) => letter.decided_ms,
                // A message without a dead letter was decided when it was first received.
                Carried::Nothing
                | Carried::Publication(_)
                | Carried::Delivery(_)
                | Carried::ReplayEnd(_) => held.first_received_ms.unwrap_or_default(),
            };
            path.ends_with(&format!("/{}/{id}.json", hour_folder(decided_ms)))
        };
        if !self.messages_with(id).iter().any(right) {
            self.record_violation(
                id,
                &format!("its blob has a key that does not follow from its message: {key}"),
            );
        }
        self.check_stored_copy(id, bucket, key, bytes);
    }

    /// The messages of the running invocation that carry a dead letter with this id.
    pub(crate) fn messages_with(&self, id: Uuid) -> Vec<Queued> {
        let carries_it = |held: &&Queued| match held.carried.kept() {
            Some(delivery) => delivery.id == id,
            None => self.ledger.whole_id(held) == Some(id),
        };
        self.invocations[self.current]
            .taken
            .iter()
            .map(|(_, held)| held)
            .filter(carries_it)
            .cloned()
            .collect()
    }

    /// Checks that a dead letter is stored once in one place, or again with the same content, and
    /// not too early. Its message may have been re-enqueued any number of times.
    pub(crate) fn check_stored_copy(&mut self, id: Uuid, place: &str, key: &str, bytes: &[u8]) {
        let messages_with = self.messages_with(id);
        let [held] = &messages_with[..] else { return };
        if matches!(&held.carried, Carried::DeadLetter(letter) if self.clock_ms() < letter.not_before_ms)
        {
            self.record_violation(id, "its dead letter was written before its delay had passed");
        }
        // A message without our attribute was decided when this copy was received.
        if self.ledger.unprocessed.contains_key(&id) {
            return;
        }
        let place = (held.letter_of.clone(), place.to_owned());
        let first =
            self.ledger.stored.entry(place).or_insert_with(|| (key.to_owned(), bytes.to_vec()));
        if (first.0.as_str(), &first.1[..]) != (key, bytes) {
            self.record_violation(
                id,
                "the same dead letter was stored twice with different content",
            );
        }
    }
}
