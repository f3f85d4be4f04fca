//! Opens the source of log lines and dead letters: a data folder on this machine, or a deployed
//! stack.

use std::path::{Path, PathBuf};

use deadletters::DeadLetters;
use deadletters::container::DeadLetterContainer;

use super::Range;
#[cfg(feature = "aws")]
use super::stack_log::StackLog;
use crate::operations::dev_log;
use crate::operations::shell::typed;
use crate::operations::stack::Stack;
use crate::operations::trace::Wanted;
use crate::terminal::text;

/// The path of the dead letters in a data folder.
const LETTERS: &str = "s3/dead-letters";
/// The name of the container of `lastmile dev` in log lines.
const CONTAINER: &str = "dead-letters";

/// The default data folder of `lastmile dev` and `lastmile demo`.
pub(super) const DATA: &str = ".lastmile";

/// A source of log lines and their dead letters.
pub(super) enum LogSource {
    /// A data folder of `lastmile dev`.
    Dev(PathBuf),
    /// The log groups of a stack, in CloudWatch Logs.
    #[cfg(feature = "aws")]
    Stack(StackLog),
}

/// The log lines that were read, and whether a limit truncated the result.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<String>,
    pub(super) is_cut: bool,
}

impl LogSource {
    pub(super) fn of_dev(data: &Path) -> Self {
        Self::Dev(data.to_owned())
    }

    /// Opens the log of a stack.
    ///
    /// # Errors
    /// If the stack has no log groups.
    #[cfg(feature = "aws")]
    pub(super) async fn of_stack(stack: &Stack) -> anyhow::Result<Self> {
        Ok(Self::Stack(StackLog::open(stack.clone()).await?))
    }

    #[cfg(not(feature = "aws"))]
    #[expect(clippy::unused_async, reason = "the build with AWS reads its configuration")]
    pub(super) async fn of_stack(_: &Stack) -> anyhow::Result<Self> {
        Err(crate::operations::stack::built_without_aws())
    }

    /// Returns the name of the source for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Dev(data) => text::path(data),
            #[cfg(feature = "aws")]
            Self::Stack(log) => format!("the log of {}", text::line(log.name())),
        }
    }

    /// Returns the option with which `lastmile deadletters` finds the dead letters.
    pub(super) fn place(&self) -> String {
        match self {
            // `lastmile deadletters` uses this folder by default.
            Self::Dev(data) if data == Path::new(DATA) => String::new(),
            Self::Dev(data) => option("container", &data.join(LETTERS).display().to_string()),
            #[cfg(feature = "aws")]
            Self::Stack(log) => option("stack", log.name()),
        }
    }

    /// Describes which lines the functions do not log because of their settings, so that a search
    /// cannot find them.
    pub(super) fn not_logged(&self) -> Option<String> {
        match self {
            // A local log is complete.
            Self::Dev(_) => None,
            #[cfg(feature = "aws")]
            Self::Stack(log) => log.not_logged(),
        }
    }

    /// Prints the cost of the query. Returns false if the query is expensive and the user does not
    /// confirm it.
    ///
    /// # Errors
    /// If the size of the log cannot be read, or there is no terminal for the question.
    #[cfg_attr(
        not(feature = "aws"),
        expect(clippy::unused_async, reason = "only requests to a stack wait")
    )]
    pub(super) async fn may_query(&self, range: Range, yes: bool) -> anyhow::Result<bool> {
        match self {
            Self::Dev(_) => {
                let _ = (range, yes);
                Ok(true)
            }
            #[cfg(feature = "aws")]
            Self::Stack(log) => log.may_query(range, yes).await,
        }
    }

    /// Reads the wanted lines, oldest first.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[cfg_attr(
        not(feature = "aws"),
        expect(clippy::unused_async, reason = "only requests to a stack wait")
    )]
    pub(super) async fn lines(&self, wanted: &Wanted, range: Range) -> anyhow::Result<Lines> {
        match self {
            Self::Dev(data) => {
                // The caller filters local lines by time; only a query needs the range.
                let _ = range;
                let lines = dev_log::lines(data, |line| wanted.is_in(line))?;
                Ok(Lines { lines, is_cut: false })
            }
            #[cfg(feature = "aws")]
            Self::Stack(log) => log.lines(wanted, range).await,
        }
    }

    /// Opens the dead letters. Also returns the name of their container in log lines. Returns
    /// `None` if the folder does not exist yet.
    ///
    /// # Errors
    /// If the stack has no container.
    #[cfg_attr(
        not(feature = "aws"),
        expect(clippy::unused_async, reason = "only requests to a stack wait")
    )]
    pub(super) async fn letters(&self) -> anyhow::Result<Option<(DeadLetters, String)>> {
        match self {
            Self::Dev(data) => {
                let folder = data.join(LETTERS);
                if !folder.is_dir() {
                    return Ok(None);
                }
                let container = DeadLetterContainer::folder(&folder.display().to_string())?;
                Ok(Some((DeadLetters::new(container), CONTAINER.to_owned())))
            }
            #[cfg(feature = "aws")]
            Self::Stack(log) => log.letters().await.map(Some),
        }
    }
}

/// Formats an option of a command, with its value quoted for a shell.
fn option(name: &str, value: &str) -> String {
    format!(" --{name} {}", typed(value))
}
