//! Waits until the deliveries of a replay have ended.

use std::collections::HashSet;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use deadletters::replay::ReplayJob;
use deadletters::replay::ends::{EndCounts, LOOK_EVERY_MS, ReplayEnds};
use delivery::ports::Clock as _;
use delivery::time::duration::format_ms;

use crate::operations::shell;
use crate::terminal::output::{note, out};
use crate::terminal::progress;
use crate::terminal::text;

/// Waits until all deliveries of a job have ended, or the timeout has passed, and reports their
/// outcomes. Returns true if all were delivered.
pub(super) async fn wait(
    letters: &DeadLetters,
    job: &ReplayJob,
    at_most_ms: u64,
) -> anyhow::Result<bool> {
    let (header, counts) = (&job.header, job.counts());
    if !header.has_results(&counts) {
        let why = if header.results {
            "the results of skipped chunks are unknown"
        } else {
            "this container does not record results"
        };
        note(format_args!("not waiting for results: {why}"));
        return Ok(false);
    }
    let until_ms = Machine.now_ms().saturating_add(at_most_ms);
    let (mut ends, mut keys, mut seen) = (ReplayEnds::new(), HashSet::new(), 0);
    let bar = progress::bar(counts.sent, "results");
    let ended = loop {
        letters.read_new_ends(&header.job, &mut ends, &mut keys).await?;
        let counts = job.end_counts(&ends);
        bar.inc(counts.ended() - seen);
        seen = counts.ended();
        if counts.under_way == 0 || Machine.now_ms() >= until_ms {
            break counts;
        }
        Machine.sleep(LOOK_EVERY_MS).await;
    };
    bar.finish_and_clear();
    out(&report(&ended))?;
    if ended.under_way > 0 {
        let (count, waited) = (text::grouped(ended.under_way), format_ms(at_most_ms));
        note(format_args!(
            "{count} deliveries did not finish within {waited}; see `{}`",
            shell::command(&["lastmile", "deadletters", "jobs", &header.job])
        ));
    }
    Ok(ended.delivered == header.letters as u64)
}

fn report(ends: &EndCounts) -> String {
    let all = [
        (ends.delivered, "delivered"),
        (ends.dead_again, "dead-again"),
        (ends.dropped, "dropped"),
        (ends.under_way, "still under way"),
        (ends.unknown, "unknown"),
    ];
    let there = all.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        there.map(|(count, end)| format!("{} {end}", text::grouped(*count))).collect();
    if parts.is_empty() {
        "nothing was sent\n".to_owned()
    } else {
        format!("{}\n", parts.join(", "))
    }
}
