//! Stores dead letters, one blob each, for two functions.
//!
//! The deadletter function stores dead letters; dispatch stores those that do not fit into a
//! message. [`delivery::machine::storing`] selects the target, and the fallback after a permanent
//! refusal. This module writes and logs.

use delivery::deadletter::blob;
use delivery::delivery::DeadLetter;
use delivery::machine::storing::{StoreTarget, fallback, first_target};
use delivery::ports::{BlobTag, PutBlob as _, PutError, PutMessage as _, StoragePorts};
use delivery::subscription::sink::Container;

use crate::telemetry;

/// The location of a stored dead letter: its container and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobLocation {
    /// The container, as bucket and prefix.
    pub container: String,
    /// The key in the bucket, including the prefix of the container.
    pub key: String,
}

/// Stores a dead letter. `default` is the deployment's container.
///
/// Returns the location if the dead letter was stored in a container.
///
/// # Errors
/// [`PutError`] if the dead letter was not stored, or if the outcome is unknown.
pub async fn store(
    ports: &impl StoragePorts,
    default: &Container,
    letter: &DeadLetter,
) -> Result<Option<BlobLocation>, PutError> {
    match put(ports, &first_target(&letter.store, default), default, letter).await {
        // Fall back only after a permanent refusal. An unavailable target is retried.
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
            // Buckets outside the deployment may forbid tags, and have lifecycle rules of their
            // own.
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
