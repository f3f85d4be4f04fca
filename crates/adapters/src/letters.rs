//! Where a dead letter's blob goes: one way for both functions.
//!
//! deadletter stores letters; dispatch stores those that do not fit into a message. Both mean the same by it: into the
//! letter's own container, or, if that refuses for good, into the deployment's, with the reason beside it.

use delivery::blob;
use delivery::deadletter::{Container, Letter};
use delivery::ports::{PutBlob, PutError};

use crate::telemetry;

/// Writes a letter's blob; `default` is the deployment's container.
///
/// # Errors
/// [`PutError`] when it is not certain that the blob is in one of the two.
pub async fn store(ports: &impl PutBlob, default: &Container, letter: &Letter) -> Result<(), PutError> {
    let own = letter.container.as_ref().unwrap_or(default);
    match put(ports, own, letter, None).await {
        Err(PutError::NoSuchContainer(problem)) if own != default => {
            put(ports, default, letter, Some(&format!("{own}: {problem}"))).await
        }
        result => result,
    }
}

async fn put(
    ports: &impl PutBlob,
    container: &Container,
    letter: &Letter,
    sink_error: Option<&str>,
) -> Result<(), PutError> {
    let key = blob::key(letter, &container.prefix);
    ports.put(&container.bucket, &key, blob::bytes(letter, sink_error)).await?;
    telemetry::stored(&letter.delivery, letter.reason, &container.bucket, &key);
    Ok(())
}
