//! Stores dead letters, each in a blob of its own: one way for both functions.
//!
//! deadletter stores dead letters; dispatch stores those that do not fit into a message. Where one
//! goes, and where next when that refuses permanently, is decided by
//! [`delivery::machine::storing`]; here it is written and logged.

use delivery::deadletter::blob;
use delivery::delivery::DeadLetter;
use delivery::machine::storing::{StoreTarget, fallback, first_target};
use delivery::ports::{BlobTag, PutBlob as _, PutError, PutMessage as _, StoragePorts};
use delivery::subscription::sink::Container;

use crate::telemetry;

/// Where a blob is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobLocation {
    /// Bucket and prefix.
    pub container: String,
    /// The key, prefix included.
    pub key: String,
}

/// Stores a dead letter. `default` is the deployment's container.
///
/// Returns where it is, if that is in a container.
///
/// # Errors
/// [`PutError`] when it is not certain that it was stored.
pub async fn store(
    ports: &impl StoragePorts,
    default: &Container,
    letter: &DeadLetter,
) -> Result<Option<BlobLocation>, PutError> {
    match put(ports, &first_target(&letter.store, default), default, letter).await {
        // Only a permanent refusal: what is unavailable is retried in its own place.
        Err(PutError::Permanent(problem)) => match fallback(&letter.store, default, &problem) {
            Some(target) => put(ports, &target, default, letter).await,
            None => Err(PutError::Permanent(problem)),
        },
        result => result,
    }
}

async fn put(
    ports: &impl StoragePorts,
    target: &StoreTarget<'_>,
    default: &Container,
    letter: &DeadLetter,
) -> Result<Option<BlobLocation>, PutError> {
    let DeadLetter { delivery, reason, .. } = letter;
    match target {
        StoreTarget::Queue(queue) => {
            ports.sinks().put_message(queue, delivery.id, &blob::enriched(letter).json).await?;
            telemetry::handed_over(delivery, reason, &queue.to_string());
            Ok(None)
        }
        StoreTarget::Container { container, sink_error } => {
            let key = blob::key(letter, &container.prefix);
            let bytes = blob::bytes(letter, sink_error.as_deref());
            // Others may not allow tags, and have rules of their own.
            let tag = (container.bucket == default.bucket).then(|| tag_of(letter));
            ports.blobs().put(&container.bucket, &key, bytes, tag).await?;
            telemetry::stored(delivery, reason, &container.bucket, &key);
            Ok(Some(BlobLocation { container: container.to_string(), key }))
        }
    }
}

fn tag_of(letter: &DeadLetter) -> BlobTag {
    match letter.is_set_aside() {
        true => BlobTag::SetAside,
        false => BlobTag::DeadLetter,
    }
}
