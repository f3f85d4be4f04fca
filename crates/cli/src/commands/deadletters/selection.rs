//! The options that the verbs share: the container, and which of its dead letters.

use deadletters::DeadLetters;
use deadletters::container::LOCAL_CONTAINER;
use deadletters::filter::Filter;

use super::search::Search;
use crate::container;
use crate::filter_args::FilterArgs;
use crate::output::Output;
use crate::shell;
use crate::stack::Stack;

/// Where the dead letters are.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ContainerArgs {
    /// s3://BUCKET[/PREFIX], or a folder; by default that of the stack, and without a stack
    /// .lastmile/s3/dead-letters, as `lastmile dev` and `lastmile demo` have it
    #[arg(long, value_name = "CONTAINER")]
    container: Option<String>,
    /// The deployed CloudFormation stack, whose outputs say where its dead letters and its queues are
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
}

impl ContainerArgs {
    /// The name of the stack, if one is given.
    pub(super) fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }

    /// The options as they were given, for a printed command that reads the same container.
    pub(super) fn options(&self) -> String {
        let options =
            [("--container", self.container.as_deref()), ("--stack", self.stack.as_deref())];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| format!(" {name} {}", shell::typed(value))).collect()
    }

    pub(super) async fn open(&self) -> anyhow::Result<DeadLetters> {
        let address = match (&self.container, &self.stack) {
            (Some(address), _) => address.clone(),
            (None, Some(name)) => Stack::describe(name).await?.dead_letter_container()?,
            (None, None) => LOCAL_CONTAINER.to_owned(),
        };
        container::at(&address).await
    }
}

/// Whether dismissed dead letters are left out.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DismissedArgs {
    /// Also those that were dismissed
    #[arg(long, help_heading = "Filters")]
    dismissed: bool,
}

impl DismissedArgs {
    /// The filter without what is dismissed, unless that is wanted.
    pub(super) async fn apply(
        &self,
        letters: &DeadLetters,
        filter: Filter,
    ) -> anyhow::Result<Filter> {
        if self.dismissed { Ok(filter) } else { letters.without_dismissed(filter).await }
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
        // A wrong filter is reported even where nothing can be read.
        let filter = self.filter.filter()?;
        Ok((self.container.open().await?, filter))
    }

    /// The options that name the container, for a printed command.
    pub(super) fn place_options(&self) -> String {
        self.container.options()
    }

    /// Whether all dead letters match.
    pub(super) fn is_of_all(&self) -> bool {
        self.filter.is_empty()
    }

    /// The same for a verb that searches once, and reports what that cost.
    pub(super) async fn search(self) -> anyhow::Result<(Search, Filter)> {
        let (letters, filter) = self.open().await?;
        Ok((Search::start(letters), filter))
    }

    /// The same without what is dismissed, unless that is wanted.
    pub(super) async fn search_open(
        self,
        dismissed: &DismissedArgs,
    ) -> anyhow::Result<(Search, Filter)> {
        let (search, filter) = self.search().await?;
        let filter = dismissed.apply(&search.letters, filter).await?;
        Ok((search, filter))
    }
}

/// The options of the verbs that sum up.
#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    #[command(flatten)]
    pub(super) dismissed: DismissedArgs,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
}
