//! Reads blobs of dead letters, within limits of size and number.

use adapters::storage::{Fetched, Storage, StorageError};
use delivery::deadletter::stored;

use crate::cause::Letter;
use crate::report::Blob;

/// Maximum number of blobs that are read per invocation. For further blobs, the subscription is
/// taken from the key.
pub(crate) const BLOBS_MAX: usize = 2_000;
/// Maximum size of a blob that is read. An event is at most 1 MiB, and some dead-letter formats
/// contain the event more than once.
const BLOB_MAX_BYTES: u64 = 4 << 20;
/// Maximum number of concurrent reads. With this number, blobs of [`BLOB_MAX_BYTES`] each fit in
/// the memory of the function.
pub(crate) const READS_AT_ONCE: usize = 16;
/// Number of segments of a key after the subscription: year, month, day, hour, name.
const SEGMENTS_AFTER_SUBSCRIPTION: usize = 5;

/// The reason why the cause of a dead letter is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    Gone,
    TooLarge,
    Unusual,
    Refused,
    Unavailable,
    OverLimit,
    Report,
}

impl Unread {
    /// Returns the id of the cause under which unread dead letters are counted.
    fn id(self) -> &'static str {
        match self {
            Self::Gone => "unread-gone",
            Self::TooLarge => "unread-too-large",
            Self::Unusual => "unread-not-a-dead-letter",
            Self::Refused => "unread-refused",
            Self::Unavailable => "unread-unavailable",
            Self::OverLimit => "unread-over-limit",
            Self::Report => "unread-report",
        }
    }

    fn title(self) -> String {
        let why = match self {
            Self::Gone => "the object was deleted before it was read".to_owned(),
            Self::TooLarge => format!("the object is larger than {} MiB", BLOB_MAX_BYTES >> 20),
            Self::Unusual => "the object is not a dead letter".to_owned(),
            Self::Refused => "S3 refused the read".to_owned(),
            Self::Unavailable => "S3 did not answer in time".to_owned(),
            Self::OverLimit => format!("only the first {BLOBS_MAX} objects of a minute are read"),
            Self::Report => "the report does not name an object".to_owned(),
        };
        format!("cause unknown: {why}")
    }
}

/// Reads the dead letter in a blob. An unreadable blob is counted too. Returns `None` for a
/// delivery that did not fail, because its subscription was paused or its destination disabled.
pub(crate) async fn read(storage: &Storage, prefix: &str, blob: &Blob) -> Option<Letter> {
    let unread = |why| Some(unread(why, prefix, blob));
    let Some(key) = &blob.key else { return unread(Unread::Report) };
    let bytes = match storage.get_at_most(BLOB_MAX_BYTES, key, None).await {
        Ok(Fetched::Changed { bytes, .. }) => bytes,
        Ok(Fetched::Missing | Fetched::Unchanged) => return unread(Unread::Gone),
        Err(error) => return unread(reason(&error)),
    };
    let Ok(letter) = stored::read(key, prefix, &bytes) else { return unread(Unread::Unusual) };
    (!letter.is_set_aside()).then(|| Letter::new(&letter))
}

/// Returns the facts about a blob beyond the limits, which is counted but not read.
pub(crate) fn uncounted(prefix: &str, blob: &Blob) -> Letter {
    unread(Unread::OverLimit, prefix, blob)
}

fn reason(error: &StorageError) -> Unread {
    match error {
        StorageError::TooLarge { .. } => Unread::TooLarge,
        StorageError::InvalidKey(_) => Unread::Unusual,
        StorageError::NoSuchBucket(_) | StorageError::Refused(_) => Unread::Refused,
        StorageError::Unavailable(_) => Unread::Unavailable,
    }
}

fn unread(why: Unread, prefix: &str, blob: &Blob) -> Letter {
    let key = blob.key.as_deref().unwrap_or_default();
    Letter {
        cause: why.id().to_owned(),
        title: why.title(),
        subscription: subscription_of(key, prefix).to_owned(),
        at_ms: blob.stored_ms,
    }
}

/// Returns the subscription in a blob's key. The key begins with the prefix of the container and
/// `namespace/topic/name`.
fn subscription_of<'a>(key: &'a str, prefix: &str) -> &'a str {
    let name = key.rsplitn(SEGMENTS_AFTER_SUBSCRIPTION + 1, '/').nth(SEGMENTS_AFTER_SUBSCRIPTION);
    let name = name.unwrap_or(key);
    name.strip_prefix(prefix).unwrap_or(name).trim_start_matches('/')
}
