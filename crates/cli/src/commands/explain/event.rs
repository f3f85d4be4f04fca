//! `lastmile explain --event`: explains which subscriptions of a topic match an event, and why
//! ([`crate::operations::event_report`]); also prints the rendered requests
//! ([`crate::operations::rendered_request`]).

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;

use super::event_text;
use crate::operations::who_gets::reports;
use crate::terminal::output::{Output, out, out_json};

/// Prints the explanations. Returns exit code 0 if a subscription matches an event, otherwise 1.
pub(super) fn run(
    file: &str,
    catalogue: &Catalogue,
    topics: &BTreeSet<TopicName>,
    selected: &[Arc<Subscription>],
    output: Output,
) -> anyhow::Result<ExitCode> {
    let reports = reports(file, catalogue, topics, selected)?;
    match output {
        Output::Table => out(&event_text::write(&reports))?,
        Output::Json => out_json(&match &reports[..] {
            [report] => serde_json::to_string(report)?,
            several => serde_json::to_string(several)?,
        })?,
    }
    let is_matched = reports
        .iter()
        .flat_map(|report| &report.subscriptions)
        .any(|subscription| subscription.matches);
    Ok(if is_matched { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
