//! Opens a container of dead letters, by its address or for a stack.

use deadletters::DeadLetters;
use deadletters::container::DeadLetterContainer;

use crate::operations::cache_folder;
use crate::operations::stack::Stack;
use crate::operations::store;
use crate::terminal::usage::usage_error;

/// Opens a container: `s3://BUCKET[/PREFIX]`, or a folder.
///
/// # Errors
/// A usage error if the folder does not exist, or the address is invalid.
pub(crate) async fn at(address: &str) -> anyhow::Result<DeadLetters> {
    let Some(bucket) = address.strip_prefix("s3://") else {
        let folder = DeadLetterContainer::folder(address);
        return Ok(DeadLetters::new(folder.map_err(|error| usage_error(error.to_string()))?));
    };
    let bucket = bucket.parse().map_err(|problem: String| usage_error(problem))?;
    let cache = cache_folder::folder(|name| std::env::var_os(name))?;
    let letters = DeadLetters::new(DeadLetterContainer::bucket(store::client().await, bucket));
    Ok(match cache {
        Some(folder) => letters.with_cache_in(&folder),
        None => letters,
    })
}

/// Opens the default container of a stack.
///
/// # Errors
/// If the stack has no container.
pub(crate) async fn of_stack(stack: &Stack) -> anyhow::Result<DeadLetters> {
    at(&stack.dead_letter_container()?).await
}
