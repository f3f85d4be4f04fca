//! `lastmile deadletters why --by`: counts dead letters by a field, and prints the counts as bars.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::ValueEnum;
use deadletters::filter::Filter;
use deadletters::stats::{Stats, greatest_first};
use delivery::time::moment::rfc3339;
use serde_json::json;

use super::search::Search;
use crate::terminal::output::Output;
use crate::terminal::text;

/// The length of the bar for the highest count, in characters.
const BAR_MAX_CHARS: u64 = 40;
/// The maximum length of a name in characters. Longer names are cut.
const NAME_MAX_CHARS: usize = 60;
/// The maximum number of hours that are shown; the most recent hours are kept.
const HOURS_MAX: usize = 48;
/// The maximum number of names that are shown; those with the highest counts come first.
const NAMES_MAX: usize = 20;

/// A property to count by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    Reason,
    Subscription,
    Destination,
    /// Hour in which the event became a dead letter, in UTC
    Hour,
}

/// Prints the number of matching dead letters by each of the given fields, as bars.
pub(super) async fn run(
    search: &Search,
    filter: Filter,
    by: &[By],
    output: Output,
) -> anyhow::Result<ExitCode> {
    let stats = search.letters.stats(&filter).await?;
    search.clear();
    output.write(stats.count == 0, || json(&stats, by), || charts(&stats, by))?;
    let found = usize::try_from(stats.count).unwrap_or(usize::MAX);
    search.finish_filtered(filter, found).await
}

fn json(stats: &Stats, by: &[By]) -> serde_json::Value {
    let counts = by.iter().map(|by| match by {
        By::Reason => ("reasons", json!(stats.reasons)),
        By::Subscription => ("subscriptions", json!(stats.subscriptions)),
        By::Destination => ("destinations", json!(stats.destinations)),
        By::Hour => {
            let hours = stats.hours.iter().map(|(hour, count)| (rfc3339(*hour), json!(count)));
            ("hours", hours.collect())
        }
    });
    let counts = [("letters", json!(stats.count))].into_iter().chain(counts);
    counts.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn charts(stats: &Stats, by: &[By]) -> String {
    let charts: Vec<String> = by
        .iter()
        .map(|by| match by {
            By::Reason => chart("reason", &named(&stats.reasons), NAMES_MAX),
            By::Subscription => chart("subscription", &named(&stats.subscriptions), NAMES_MAX),
            By::Destination => chart("destination", &named(&stats.destinations), NAMES_MAX),
            By::Hour => hours(stats),
        })
        .collect();
    charts.join("\n")
}

fn hours(stats: &Stats) -> String {
    let hours = stats.hours.iter().map(|(hour, count)| {
        (format!("{}Z", text::first_chars(&text::at(Some(*hour)), 16)), *count)
    });
    let hours: Vec<(String, u64)> = hours.collect();
    let recent = hours.len().saturating_sub(HOURS_MAX);
    chart(if recent > 0 { "hour, last 48" } else { "hour" }, &hours[recent..], HOURS_MAX)
}

/// Returns the names as they are shown, with their counts, highest count first.
fn named(counts: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let sorted = greatest_first(counts).into_iter();
    sorted.map(|(name, count)| (display_name(name), count)).collect()
}

fn display_name(name: &str) -> String {
    if name.is_empty() {
        "(none)".to_owned()
    } else {
        text::line(name).chars().take(NAME_MAX_CHARS).collect()
    }
}

fn chart(title: &str, counts: &[(String, u64)], shown_max: usize) -> String {
    let width =
        counts.iter().take(shown_max).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let greatest = counts.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let mut lines = format!("{title}\n");
    for (name, count) in counts.iter().take(shown_max) {
        lines.push_str(&format!(
            "  {name:<width$}  {:>9}  {}\n",
            text::grouped(*count),
            bar(*count, greatest)
        ));
    }
    if counts.len() > shown_max {
        let rest: u64 = counts.iter().skip(shown_max).map(|(_, count)| count).sum();
        lines.push_str(&format!(
            "  and {} more with {}\n",
            counts.len() - shown_max,
            text::dead_letters(rest)
        ));
    }
    lines
}

/// Formats a bar for a count, in eighths of a character, with at least one eighth.
fn bar(count: u64, greatest: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count.saturating_mul(BAR_MAX_CHARS * 8) / greatest.max(1)).max(1);
    let whole = "█".repeat(usize::try_from(eighths / 8).unwrap_or(0));
    format!("{whole}{}", EIGHTHS[usize::try_from(eighths % 8).unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_empty() {
        assert_eq!(bar(40, 40), "█".repeat(40));
        assert_eq!(bar(20, 40), "█".repeat(20));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(3, 64), "█▉");
    }
}
