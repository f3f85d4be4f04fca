//! Records whose dead letters go into one blob. Pure.
//!
//! Separate because nothing but storing depends on it: a dead letter that is not due, or that wants
//! a blob of its own, is a batch of one, and every record of a batch is acknowledged for itself. So
//! is one that is redelivered: whatever went wrong with its batch, it holds up no other.

use delivery::deadletter::blob::{BlobKey, blob_key};
use delivery::delivery::DeadLetter;
use delivery::ports::Record;

/// A record and the dead letter it carries.
#[derive(Debug)]
pub(crate) struct Received<'a> {
    /// The record.
    pub(crate) record: &'a Record,
    /// Its dead letter.
    pub(crate) letter: DeadLetter,
}

impl Received<'_> {
    /// Ends the delay of the dead letter.
    pub(crate) fn due(mut self, now_ms: u64) -> Self {
        self.letter.not_before_ms = self.letter.not_before_ms.min(now_ms);
        self
    }
}

/// Groups dead letters that are due into batches, one blob each, of at most as many as they allow.
pub(crate) fn blob_batches(received: Vec<Received<'_>>, now_ms: u64) -> Vec<Vec<Received<'_>>> {
    let mut batches: Vec<(Option<BlobKey>, Vec<Received<'_>>)> = Vec::new();
    for one in received {
        let together = one.letter.not_before_ms <= now_ms && one.record.receives <= 1;
        let shared = blob_key(&one.letter).filter(|_| together);
        let most = usize::try_from(one.letter.events_per_blob).unwrap_or(usize::MAX);
        let room = |(of, batch): &&mut (Option<BlobKey>, Vec<Received<'_>>)| {
            *of == shared && batch.len() < most
        };
        // Letters without a shared key compare as equal, and yet must not share a blob.
        match batches.iter_mut().find(room).filter(|_| shared.is_some()) {
            Some((_, batch)) => batch.push(one),
            None => batches.push((shared, vec![one])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}
