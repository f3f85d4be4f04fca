//! The container of dead letters, by its address or as that of a stack.

use deadletters::DeadLetters;
use deadletters::container::DeadLetterContainer;

use crate::files::usage_error;
use crate::stack::Stack;
use crate::{cache_folder, store};

/// The dead letters in a container: s3://BUCKET[/PREFIX], or a folder.
///
/// # Errors
/// A usage error if there is no such folder, or the address is not one.
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

/// The dead letters in the default container of a stack.
///
/// # Errors
/// When the stack has none.
pub(crate) async fn of_stack(stack: &Stack) -> anyhow::Result<DeadLetters> {
    at(&stack.dead_letter_container()?).await
}
