//! Where a dead letter goes: one way for both functions.
//!
//! deadletter stores letters; dispatch stores those that do not fit into a message. Both mean the
//! same by it: into the letter's own container or queue, or, if that refuses for good, into the
//! deployment's container, with the reason beside it. Letters that share a blob want the same
//! container.

use delivery::deadletter::blob;
use delivery::deadletter::blob::Enriched;
use delivery::delivery::{DeadLetter, Store};
use delivery::ports::{PutBlob, PutError, PutMessage};
use delivery::subscription::sink::{Container, SinkQueue};

use crate::telemetry;

/// Writes a letter's blob; `default` is the deployment's container.
///
/// # Errors
/// [`PutError`] when it is not certain that the blob is in one of the two.
pub async fn store(
    ports: &(impl PutBlob + PutMessage),
    default: &Container,
    letter: &DeadLetter,
) -> Result<(), PutError> {
    store_together(ports, default, &[letter]).await
}

/// Writes the blob of letters that [share](blob::share) one; nothing where there is no letter.
///
/// # Errors
/// [`PutError`] when it is not certain that the blob is in one of the two containers.
pub async fn store_together(
    ports: &(impl PutBlob + PutMessage),
    default: &Container,
    letters: &[&DeadLetter],
) -> Result<(), PutError> {
    let Some(first) = letters.first() else { return Ok(()) };
    let (own, result) = match &first.store {
        Store::DefaultContainer => return put(ports, default, letters, None).await,
        Store::Container(own) if own == default => return put(ports, default, letters, None).await,
        Store::Container(own) => (own.to_string(), put(ports, own, letters, None).await),
        Store::Queue(own) => (own.to_string(), put_messages(ports, own, letters).await),
    };
    match result {
        Err(PutError::NoSuchContainer(problem)) => {
            put(ports, default, letters, Some(&format!("{own}: {problem}"))).await
        }
        result => result,
    }
}

async fn put_messages(
    ports: &impl PutMessage,
    queue: &SinkQueue,
    letters: &[&DeadLetter],
) -> Result<(), PutError> {
    for letter in letters {
        let Enriched { json, .. } = blob::enriched(letter);
        ports.put_message(queue, letter.delivery.id, &json).await?;
        telemetry::handed_over(&letter.delivery, letter.reason, &queue.to_string());
    }
    Ok(())
}

async fn put(
    ports: &impl PutBlob,
    container: &Container,
    letters: &[&DeadLetter],
    sink_error: Option<&str>,
) -> Result<(), PutError> {
    let key = blob::shared_key(letters, &container.prefix);
    ports.put(&container.bucket, &key, blob::shared_bytes(letters, sink_error)).await?;
    for letter in letters {
        telemetry::stored(&letter.delivery, letter.reason, &container.bucket, &key);
    }
    Ok(())
}
