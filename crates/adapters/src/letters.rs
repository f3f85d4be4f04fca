//! Where a dead letter's blob goes: one way for both functions.
//!
//! deadletter stores letters; dispatch stores those that do not fit into a message. Both mean the same by it: into the
//! letter's own container, or, if that refuses for good, into the deployment's, with the reason beside it. Letters that
//! share a blob want the same container.

use delivery::blob;
use delivery::deadletter::{Container, Letter};
use delivery::ports::{PutBlob, PutError};

use crate::telemetry;

/// Writes a letter's blob; `default` is the deployment's container.
///
/// # Errors
/// [`PutError`] when it is not certain that the blob is in one of the two.
pub async fn store(ports: &impl PutBlob, default: &Container, letter: &Letter) -> Result<(), PutError> {
    store_together(ports, default, &[letter]).await
}

/// Writes the blob of letters that [share](blob::share) one; nothing where there is no letter.
///
/// # Errors
/// [`PutError`] when it is not certain that the blob is in one of the two containers.
pub async fn store_together(ports: &impl PutBlob, default: &Container, letters: &[&Letter]) -> Result<(), PutError> {
    let Some(first) = letters.first() else { return Ok(()) };
    let own = first.container.as_ref().unwrap_or(default);
    match put(ports, own, letters, None).await {
        Err(PutError::NoSuchContainer(problem)) if own != default => {
            put(ports, default, letters, Some(&format!("{own}: {problem}"))).await
        }
        result => result,
    }
}

async fn put(
    ports: &impl PutBlob,
    container: &Container,
    letters: &[&Letter],
    sink_error: Option<&str>,
) -> Result<(), PutError> {
    let key = blob::shared_key(letters, &container.prefix);
    ports.put(&container.bucket, &key, blob::shared_bytes(letters, sink_error)).await?;
    for letter in letters {
        telemetry::stored(&letter.delivery, letter.reason, &container.bucket, &key);
    }
    Ok(())
}
