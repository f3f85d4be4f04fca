//! Stores dead letters: one way for both functions.
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

/// Stores dead letters that [share a blob](blob::blob_key), or one alone; does nothing without any.
/// `default` is the deployment's container.
///
/// Returns where they are, if that is in a container.
///
/// # Errors
/// [`PutError`] when it is not certain that all of them were stored.
pub async fn store(
    ports: &impl StoragePorts,
    default: &Container,
    dead_letters: &[&DeadLetter],
) -> Result<Option<BlobLocation>, PutError> {
    // Those that share a blob are stored in the same place, so the first decides.
    let Some(first) = dead_letters.first() else { return Ok(None) };
    match put(ports, &first_target(&first.store, default), default, dead_letters).await {
        // Only a permanent refusal: what is unavailable is retried in its own place.
        Err(PutError::Permanent(problem)) => match fallback(&first.store, default, &problem) {
            Some(target) => put(ports, &target, default, dead_letters).await,
            None => Err(PutError::Permanent(problem)),
        },
        result => result,
    }
}

async fn put(
    ports: &impl StoragePorts,
    target: &StoreTarget<'_>,
    default: &Container,
    dead_letters: &[&DeadLetter],
) -> Result<Option<BlobLocation>, PutError> {
    match target {
        StoreTarget::Queue(queue) => {
            for dead_letter in dead_letters {
                let (delivery, json) = (&dead_letter.delivery, blob::enriched(dead_letter).json);
                // A failure ends the loop; the repeat sends the first ones again, with the same ids.
                ports.sinks().put_message(queue, delivery.id, &json).await?;
                telemetry::handed_over(delivery, &dead_letter.reason, &queue.to_string());
            }
            Ok(None)
        }
        StoreTarget::Container { container, sink_error } => {
            let key = blob::shared_key(dead_letters, &container.prefix);
            let bytes = blob::shared_bytes(dead_letters, sink_error.as_deref());
            // Others may not allow tags, and have rules of their own.
            let tag = (container.bucket == default.bucket).then(|| tag_of(dead_letters));
            ports.blobs().put(&container.bucket, &key, bytes, tag).await?;
            for DeadLetter { delivery, reason, .. } in dead_letters {
                telemetry::stored(delivery, reason, &container.bucket, &key);
            }
            Ok(Some(BlobLocation { container: container.to_string(), key }))
        }
    }
}

fn tag_of(dead_letters: &[&DeadLetter]) -> BlobTag {
    match dead_letters.iter().any(|letter| letter.is_set_aside()) {
        true => BlobTag::SetAside,
        false => BlobTag::DeadLetter,
    }
}
