//! `lastmile deadletters stats`: how many letters of what, as bars.

use std::process::ExitCode;

use delivery::time::moment::rfc3339;
use serde_json::json;

use super::meant::Summing;
use super::out;
use super::shape::Output;
use crate::letters::stats::{Stats, greatest_first};
use crate::letters::text;

/// The longest bar, in characters.
const BAR: u64 = 40;
/// Longer names are cut.
const NAME_MAX: usize = 60;
/// Of many hours the last are shown.
const HOURS_MAX: usize = 48;
/// Of many names the greatest are shown.
const NAMES_MAX: usize = 20;

pub(super) async fn run(arguments: Summing) -> anyhow::Result<ExitCode> {
    let (letters, filter, look) = arguments.which.look().await?;
    let stats = letters.stats(&filter).await?;
    look.clear();
    match arguments.output {
        Output::Json => out(&format!("{}\n", json(&stats)))?,
        Output::Table if stats.letters == 0 => {}
        Output::Table => out(&charts(&stats))?,
    }
    Ok(look.end(usize::try_from(stats.letters).unwrap_or(usize::MAX)))
}

fn json(stats: &Stats) -> serde_json::Value {
    let hours: serde_json::Map<_, _> =
        stats.hours.iter().map(|(hour, count)| (rfc3339(*hour), json!(count))).collect();
    json!({
        "letters": stats.letters,
        "reasons": stats.reasons,
        "subscriptions": stats.subscriptions,
        "destinations": stats.destinations,
        "hours": hours,
    })
}

fn charts(stats: &Stats) -> String {
    let named = |counts| -> Vec<(String, u64)> {
        greatest_first(counts).into_iter().map(|(name, count)| (shown(name), count)).collect()
    };
    let hours = stats
        .hours
        .iter()
        .map(|(hour, count)| (format!("{}:00Z", &text::at(Some(*hour))[..13]), *count));
    let hours: Vec<(String, u64)> = hours.collect();
    let recent = hours.len().saturating_sub(HOURS_MAX);
    [
        chart("reason", &named(&stats.reasons), NAMES_MAX),
        chart("subscription", &named(&stats.subscriptions), NAMES_MAX),
        chart("destination", &named(&stats.destinations), NAMES_MAX),
        chart(
            if recent > 0 { "hour, the last of them" } else { "hour" },
            &hours[recent..],
            HOURS_MAX,
        ),
    ]
    .join("\n")
}

fn shown(name: &str) -> String {
    if name.is_empty() {
        "(none)".to_owned()
    } else {
        text::line(name).chars().take(NAME_MAX).collect()
    }
}

fn chart(title: &str, counts: &[(String, u64)], most: usize) -> String {
    let width = counts.iter().take(most).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let greatest = counts.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let mut lines = format!("{title}\n");
    for (name, count) in counts.iter().take(most) {
        lines.push_str(&format!(
            "  {name:<width$}  {:>9}  {}\n",
            text::grouped(*count),
            bar(*count, greatest)
        ));
    }
    if counts.len() > most {
        let rest: u64 = counts[most..].iter().map(|(_, count)| count).sum();
        lines.push_str(&format!(
            "  and {} more with {}\n",
            counts.len() - most,
            text::letters(rest)
        ));
    }
    lines
}

/// A bar in eighths of a character; what is there at all is seen.
fn bar(count: u64, greatest: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count.saturating_mul(BAR * 8) / greatest.max(1)).max(1);
    let whole = "█".repeat(usize::try_from(eighths / 8).unwrap_or(0));
    format!("{whole}{}", EIGHTHS[usize::try_from(eighths % 8).unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_nothing() {
        assert_eq!(bar(40, 40), "█".repeat(40));
        assert_eq!(bar(20, 40), "█".repeat(20));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(3, 64), "█▉");
    }
}
