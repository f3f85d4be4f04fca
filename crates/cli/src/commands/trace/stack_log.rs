//! Reads the log of a deployed stack from CloudWatch Logs Insights, and opens its dead letters.
//!
//! Queries filter `@message` by a regular expression, sort by time and have a limit. The emulated
//! AWS supports this part of the query language too.

use adapters::machine::Machine;
use anyhow::{Context as _, bail};
use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::operation::get_query_results::GetQueryResultsOutput;
use aws_sdk_cloudwatchlogs::types::{QueryStatus, ResultField};
use deadletters::DeadLetters;
use delivery::ports::Clock as _;
use delivery::time::duration::{DAY_MS, SECOND_MS};

use super::Range;
use super::log_source::Lines;
use crate::operations::container;
use crate::operations::stack::{self, Stack};
use crate::operations::trace::Wanted;
use crate::operations::trace::scan::{LogGroup, Scan};
use crate::terminal::advice::aws_error;
use crate::terminal::confirm::is_confirmed;
use crate::terminal::output::note;
use crate::terminal::progress;

/// The names of the stack outputs with the log groups. The log of the ingress is omitted, because
/// it has no lines about deliveries.
const LOG_GROUPS: [&str; 2] = ["DispatchLogGroupName", "DeadLetterLogGroupName"];
/// The maximum number of lines that a query returns.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartQuery.html>
const LINES_MAX: i32 = 10_000;
/// The interval at which results are requested.
const POLL_EVERY_MS: u64 = 500;
/// The maximum number of requests for results. Together, they take five minutes.
const POLLS_MAX: u32 = 600;

pub(super) struct StackLog {
    stack: Stack,
    client: Client,
    groups: Vec<String>,
}

impl StackLog {
    /// Finds the log groups of a stack.
    ///
    /// # Errors
    /// If the stack has no log groups.
    pub(super) async fn open(stack: Stack) -> anyhow::Result<Self> {
        let named = LOG_GROUPS.iter().map(|output| stack.output(output).map(ToOwned::to_owned));
        let groups = named.collect::<anyhow::Result<_>>()?;
        Ok(Self { client: Client::new(&stack::aws().await), groups, stack })
    }

    pub(super) fn name(&self) -> &str {
        &self.stack.name
    }

    /// Describes which lines the stack's parameters exclude from the log.
    pub(super) fn not_logged(&self) -> Option<String> {
        not_logged(&self.stack)
    }

    pub(super) async fn may_query(&self, range: Range, yes: bool) -> anyhow::Result<bool> {
        let now_ms = Machine.now_ms();
        let mut groups = Vec::new();
        for name in &self.groups {
            groups.push(self.log_group(name, now_ms).await?);
        }
        let scan = Scan::estimate(&groups, (range.since_ms, range.until_ms), now_ms);
        let scanned = scan.shown();
        note(format_args!(
            "CloudWatch Logs Insights: at most four queries, each scanning {scanned}"
        ));
        if yes || !scan.is_large() {
            return Ok(true);
        }
        let nobody = "nothing was read, because standard input is not a terminal: confirm with \
                      --yes, or narrow the period with --since and --until";
        is_confirmed("run the query?", nobody)
    }

    /// Reads the size and the age of the log group with this name.
    async fn log_group(&self, name: &str, now_ms: u64) -> anyhow::Result<LogGroup> {
        let answer = self.client.describe_log_groups().log_group_name_prefix(name).send().await;
        let answer = answer.map_err(|error| aws_error(&error));
        let answer = answer.with_context(|| format!("the log group {name} cannot be read"))?;
        let group = answer.log_groups().iter().find(|group| group.log_group_name() == Some(name));
        let group = group.with_context(|| format!("there is no log group {name}"))?;
        let created_ms = u64::try_from(group.creation_time().unwrap_or_default()).unwrap_or(0);
        let kept_days = group.retention_in_days().and_then(|days| u64::try_from(days).ok());
        let kept_since_ms = kept_days.map(|days| now_ms.saturating_sub(days * DAY_MS));
        Ok(LogGroup {
            stored_bytes: u64::try_from(group.stored_bytes().unwrap_or_default()).unwrap_or(0),
            oldest_ms: created_ms.max(kept_since_ms.unwrap_or(0)),
        })
    }

    pub(super) async fn lines(&self, wanted: &Wanted, range: Range) -> anyhow::Result<Lines> {
        let seconds = |ms: u64| i64::try_from(ms / SECOND_MS).unwrap_or(i64::MAX);
        let start = self.client.start_query().set_log_group_names(Some(self.groups.clone()));
        // The time range of a query consists of whole seconds, and includes its end.
        let start = start.start_time(seconds(range.since_ms)).end_time(seconds(range.until_ms) + 1);
        let query = query(wanted);
        let started = start.query_string(query).send().await.map_err(|error| aws_error(&error));
        let started =
            started.with_context(|| format!("the log of {} cannot be searched", self.name()))?;
        let id = started.query_id().context("CloudWatch Logs returned no query id")?;
        let bar = progress::count("seconds of log search");
        let results = self.results(id).await;
        bar.finish_and_clear();
        let results = results?;
        let lines: Vec<String> = results.results().iter().filter_map(|row| message(row)).collect();
        let is_cut = i32::try_from(lines.len()).is_ok_and(|count| count >= LINES_MAX);
        Ok(Lines { lines, is_cut })
    }

    /// Waits until a query has finished, and returns its results.
    async fn results(&self, id: &str) -> anyhow::Result<GetQueryResultsOutput> {
        let failed = || format!("the log of {} cannot be searched", self.name());
        for _ in 0..POLLS_MAX {
            let answer = self.client.get_query_results().query_id(id).send().await;
            let answer = answer.map_err(|error| aws_error(&error)).with_context(failed)?;
            match answer.status() {
                Some(QueryStatus::Complete) => return Ok(answer),
                Some(QueryStatus::Scheduled | QueryStatus::Running) | None => {}
                Some(other) => bail!("{}: the query ended as {}", failed(), other.as_str()),
            }
            Machine.sleep(POLL_EVERY_MS).await;
        }
        // Stop the query, because its result is no longer needed. If the request fails, the query
        // ends by itself.
        _ = self.client.stop_query().query_id(id).send().await;
        bail!(
            "{}: the query did not finish within five minutes; narrow the period with --since and \
             --until",
            failed()
        )
    }

    /// Opens the dead letters of the stack. Also returns the name of their container in log lines.
    pub(super) async fn letters(&self) -> anyhow::Result<(DeadLetters, String)> {
        let bucket = self.stack.output("DeadLetterBucketName")?.to_owned();
        Ok((container::of_stack(&self.stack).await?, bucket))
    }
}

fn not_logged(stack: &Stack) -> Option<String> {
    match stack.parameter("LogLevel") {
        level @ ("warn" | "error") => Some(format!(
            "LogLevel={level}: deliveries are not logged, so only dead letters and dropped events \
             can be found"
        )),
        "failures" => Some(
            "LogLevel=failures: deliveries that succeeded at the first attempt are not logged, so \
             they are not shown"
                .to_owned(),
        ),
        _ => None,
    }
}

fn query(wanted: &Wanted) -> String {
    format!(
        "fields @timestamp, @message | filter @message like {} | sort @timestamp asc | limit {LINES_MAX}",
        wanted.pattern()
    )
}

/// Returns the log line in a row of results; `None` if the row has none.
fn message(row: &[ResultField]) -> Option<String> {
    let field = row.iter().find(|field| field.field() == Some("@message"))?;
    field.value().map(|line| line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stack_does_not_log_is_said() {
        let said = |parameters: &[(&str, &str)]| not_logged(&Stack::sample(parameters, &[]));
        assert_eq!(said(&[("LogLevel", "info")]), None);
        // A stack of an earlier version has no such parameter.
        assert_eq!(said(&[]), None);
        let failures = said(&[("LogLevel", "failures")]);
        assert!(failures.is_some_and(|said| said.starts_with("LogLevel=failures: ")));
        let warn = said(&[("LogLevel", "warn")]);
        assert!(warn.is_some_and(|said| said.starts_with("LogLevel=warn: ")));
    }

    #[test]
    fn a_query_stays_in_the_part_of_the_language_that_the_emulated_aws_has() {
        assert_eq!(
            query(&Wanted::anywhere("order-1")),
            "fields @timestamp, @message | filter @message like /order-1/ | sort @timestamp asc | limit 10000"
        );
    }
}
