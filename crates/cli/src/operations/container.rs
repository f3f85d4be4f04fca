//! Opens a container of dead letters, by its address or by the name of a stack.

use deadletters::DeadLetters;
use deadletters::container::{DeadLetterContainer, LOCAL_CONTAINER};

use crate::operations::cache_folder;
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::operations::store;
use crate::terminal::usage::usage_error;

/// The options that name the container of dead letters.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ContainerArgs {
    /// Container of dead letters: s3://BUCKET[/PREFIX] or a folder. By default the container of the
    /// stack, or without a stack .lastmile/s3/dead-letters, where `lastmile dev` and `lastmile
    /// demo` write
    #[arg(long, value_name = "CONTAINER")]
    container: Option<String>,
    /// Deployed CloudFormation stack; its outputs name its dead letters and its queues
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
}

impl ContainerArgs {
    /// Returns the name of the stack, if the options name one.
    pub(crate) fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }

    /// Formats the given options for a printed command, which then reads the same container.
    pub(crate) fn options(&self) -> String {
        let options =
            [("--container", self.container.as_deref()), ("--stack", self.stack.as_deref())];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| format!(" {name} {}", shell::typed(value))).collect()
    }

    /// Opens the container that the options name.
    ///
    /// # Errors
    /// If the stack cannot be described, or the container does not exist.
    pub(crate) async fn open(&self) -> anyhow::Result<DeadLetters> {
        let address = match (&self.container, &self.stack) {
            (Some(address), _) => address.clone(),
            (None, Some(name)) => Stack::describe(name).await?.dead_letter_container()?,
            (None, None) => LOCAL_CONTAINER.to_owned(),
        };
        at(&address).await
    }
}

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
