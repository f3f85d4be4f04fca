//! `lastmile trace`: traces an event, from the log and the dead letters.
//!
//! `log_source` reads the log of `lastmile dev` or, through `stack_log`, the log of a stack. `find`
//! queries the log, and `report` prints the result. [`crate::operations::trace`] interprets the
//! lines.
//!
//! Promises: the command only reads. A query of CloudWatch Logs is billed by the scanned bytes, so
//! its cost is printed first, and an expensive query needs confirmation.

mod find;
mod log_source;
mod report;
#[cfg(feature = "aws")]
mod stack_log;

use std::path::PathBuf;
use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::filter::TimeBound;
use delivery::ports::Clock as _;
use delivery::time::moment::rfc3339;
use serde_json::json;

use self::find::Found;
use self::log_source::{DATA, LogSource};
use crate::operations::place::{Place, StackArg};
use crate::operations::trace::Wanted;
use crate::terminal::help::{CONFIRMATION, OUTPUT, examples};
use crate::terminal::output::{Output, note, out};
use crate::terminal::styled::{ColorArgs, Screen};
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The exit code if nothing was found.
const NOTHING: u8 = 1;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/why-not.md",
        "lastmile trace order-1",
        "lastmile trace 6c93bfa1-6020-5b2f-9966-f474a78b25a5 --stack orders-prod",
        "lastmile trace order- --search --since 2d --stack orders-prod --output json",
    )
)]
pub(crate) struct Arguments {
    /// Event id, webhook-id or trace id; with --search any text of a log line
    #[arg(value_name = "TEXT")]
    text: String,
    /// Find the argument TEXT anywhere in a log line, such as a part of an id, source or type
    #[arg(long)]
    search: bool,
    #[command(flatten)]
    stack: StackArg,
    /// Data folder of `lastmile dev` to search, if there is no stack
    #[arg(long, default_value = DATA, value_name = "DIR", conflicts_with = "stack")]
    data: PathBuf,
    /// Start of the time range to search: an RFC 3339 time, a day in UTC such as 2026-11-20, or an
    /// age such as 2h or 7d
    #[arg(long, default_value = "3h", value_name = "WHEN")]
    since: TimeBound,
    /// End of the time range to search, in the same forms as --since
    #[arg(long, value_name = "WHEN")]
    until: Option<TimeBound>,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
    #[command(flatten)]
    color: ColorArgs,
    /// Do not ask for confirmation
    ///
    /// Without this option, trace asks before a query that may scan more than 20 GB of log lines
    /// ($0.10).
    #[arg(long, help_heading = CONFIRMATION)]
    yes: bool,
}

/// The time range that is searched, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    since_ms: u64,
    until_ms: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let range = range(&arguments)?;
    let text = arguments.text.trim();
    if text.is_empty() {
        return Err(usage_error("the text is empty: specify an id, or a text with --search"));
    }
    let wanted = if arguments.search { Wanted::anywhere(text) } else { Wanted::id(text) };
    let place = Place::from(arguments.stack.clone());
    let source = match place.stack().await? {
        Some(stack) => LogSource::of_stack(stack).await?,
        None => LogSource::of_dev(&arguments.data),
    };
    if !source.may_query(range, arguments.yes).await? {
        return Ok(ExitCode::from(NOTHING));
    }
    let found = find::find(&source, &wanted, arguments.search, range).await?;
    found.notes.iter().chain(&source.not_logged()).for_each(note);
    if found.trace.is_empty() {
        note(nothing(&arguments, &source, range));
    }
    write(&arguments, &found, &source, range)?;
    Ok(if found.trace.is_empty() { ExitCode::from(NOTHING) } else { ExitCode::SUCCESS })
}

fn range(arguments: &Arguments) -> anyhow::Result<Range> {
    let now_ms = Machine.now_ms();
    let since_ms = arguments.since.ms(now_ms);
    let until_ms = arguments.until.map_or(now_ms, |until| until.ms(now_ms));
    if since_ms >= until_ms {
        return Err(usage_error(format!(
            "--since {} must be before --until {}",
            text::at(Some(since_ms)),
            text::at(Some(until_ms))
        )));
    }
    Ok(Range { since_ms, until_ms })
}

/// Returns advice for a search that has found nothing.
fn nothing(arguments: &Arguments, source: &LogSource, range: Range) -> String {
    let (text, since) = (text::line(arguments.text.trim()), text::at(Some(range.since_ms)));
    let place = source.name();
    let mut said = format!(
        "{text} was not found in {place} since {since}; use --since to search further back"
    );
    if !arguments.search {
        said.push_str(", or --search to find a part of an id");
    }
    said
}

fn write(
    arguments: &Arguments,
    found: &Found,
    source: &LogSource,
    range: Range,
) -> anyhow::Result<()> {
    let Range { since_ms, until_ms } = range;
    let as_json = || {
        json!({
            "text": arguments.text.trim(),
            "since": rfc3339(since_ms),
            "until": rfc3339(until_ms),
            "deliveries": found.trace.deliveries,
            "unmatched": found.trace.unmatched,
            "not_logged": source.not_logged(),
            "notes": found.notes,
        })
    };
    match arguments.output {
        Output::Json => arguments.output.write(false, as_json, String::new),
        Output::Table if found.trace.is_empty() => Ok(()),
        Output::Table => {
            let screen = Screen::stdout(arguments.color);
            report::write(&found.trace, &source.place(), screen)?;
            out(&report::summary(&found.trace))
        }
    }
}
