//! The options that the verbs share: the container, and which of its dead letters.

use deadletters::DeadLetters;
use deadletters::container::{DeadLetterContainer, LOCAL_CONTAINER};
use deadletters::filter::Filter;

use super::search::Search;
use crate::filter_args::FilterArgs;
use crate::output::Output;
use crate::store;

/// Where the dead letters are.
#[derive(Debug, clap::Args)]
pub(super) struct ContainerArgs {
    /// s3://BUCKET[/PREFIX], or a folder; by default that of `lastmile dev` and `lastmile demo`
    #[arg(long, value_name = "CONTAINER", default_value = LOCAL_CONTAINER)]
    container: String,
}

impl ContainerArgs {
    pub(super) async fn open(&self) -> anyhow::Result<DeadLetters> {
        let container = match self.container.strip_prefix("s3://") {
            Some(bucket) => {
                let bucket = bucket.parse().map_err(anyhow::Error::msg)?;
                DeadLetterContainer::bucket(store::client().await, bucket)
            }
            None => DeadLetterContainer::folder(&self.container)?,
        };
        Ok(DeadLetters::new(container))
    }
}

/// Which dead letters of which container.
#[derive(Debug, clap::Args)]
pub(super) struct SelectionArgs {
    #[command(flatten)]
    container: ContainerArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

impl SelectionArgs {
    pub(super) async fn open(self) -> anyhow::Result<(DeadLetters, Filter)> {
        let letters = self.container.open().await?;
        Ok((letters, self.filter.filter()?))
    }

    /// The same for a verb that searches once, and reports what that cost.
    pub(super) async fn search(self) -> anyhow::Result<(Search, Filter)> {
        let (letters, filter) = self.open().await?;
        Ok((Search::start(letters), filter))
    }
}

/// The options of the verbs that sum up.
#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
}
