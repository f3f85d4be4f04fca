//! Records whose letters go into one blob. Pure.
//!
//! Separate because nothing but storing knows of it: a letter that is not due, or that wants a blob
//! of its own, is a parcel of one, and every record of a parcel is answered for itself. So is one
//! that comes again: whatever went wrong with its parcel, it holds up no other.

use adapters::records::Record;
use delivery::deadletter::blob::{BlobKey, blob_key};
use delivery::delivery::DeadLetter;

/// A record and the letter it carries.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    /// The record.
    pub(crate) record: &'a Record,
    /// Its letter.
    pub(crate) letter: DeadLetter,
}

/// Puts letters that are due into parcels, one blob each: those that can share one do, as many as
/// they allow.
pub(crate) fn blob_batches(opened: Vec<Opened<'_>>, now_ms: u64) -> Vec<Vec<Opened<'_>>> {
    let mut blob_batches: Vec<(Option<BlobKey>, Vec<Opened<'_>>)> = Vec::new();
    for one in opened {
        let together = one.letter.not_before_ms <= now_ms && one.record.receives <= 1;
        let shared = blob_key(&one.letter).filter(|_| together);
        let most = usize::try_from(one.letter.events_per_blob).unwrap_or(usize::MAX);
        let room = |(of, batch): &&mut (Option<BlobKey>, Vec<Opened<'_>>)| {
            *of == shared && batch.len() < most
        };
        match blob_batches.iter_mut().find(room).filter(|_| shared.is_some()) {
            Some((_, batch)) => batch.push(one),
            None => blob_batches.push((shared, vec![one])),
        }
    }
    blob_batches.into_iter().map(|(_, batch)| batch).collect()
}
