//! Formats explanations as text: the policy (optionally with the origin of each value), the
//! attempts on a time axis, and the end.

use delivery::explain::{Attempt, Endpoint, Life, ProbationTerms};
use delivery::subscription::Subscription;

use super::Explained;
use super::timeline::{Axis, dead_letter, hms};
use crate::terminal::text::{self, Table};

/// The width of the time axis, in characters.
const LINE: f64 = 47.0;
/// If a delivery has too many attempts to show, the number of its first attempts that are shown.
const FIRST: usize = 15;
/// If a delivery has too many attempts to show, the number of its last attempts that are shown.
const LAST: usize = 5;

/// Formats all subscriptions, one after the other.
pub(super) fn write(explained: &[Explained], endpoint: &Endpoint) -> String {
    if explained.is_empty() {
        return "no subscription\n".to_owned();
    }
    let each: Vec<String> =
        explained.iter().map(|explained| subscription_text(explained, endpoint)).collect();
    each.join("\n")
}

fn subscription_text(explained: &Explained, endpoint: &Endpoint) -> String {
    let Explained { subscription, life, probation, now, .. } = explained;
    let retry_after = endpoint
        .retry_after
        .as_ref()
        .map_or(String::new(), |value| format!(", Retry-After: {value}"));
    let paused = if subscription.paused { ", paused now" } else { "" };
    let table = policy_table(explained);
    if let Some(topic) = subscription.destination.topic() {
        return format!(
            "{} ({}{paused}) -> {}\n{table}\n\nno request is made: events are forwarded to the \
             subscriptions of {topic}; use explain --event to see which of them match\n",
            subscription.name,
            subscription.dialect.as_str(),
            subscription.destination.display(),
        );
    }
    format!(
        "{} ({}{paused}) -> {}\n{}{table}\n\nassumed response of the endpoint: \
         {}{retry_after}\n\n{}{}{}",
        subscription.name,
        subscription.dialect.as_str(),
        subscription.destination.display(),
        now.iter()
            .flat_map(|now| &now.lines)
            .map(|line| format!("now: {line}\n"))
            .collect::<String>(),
        endpoint.always,
        attempts(life),
        end(life, subscription),
        probation_text(probation.as_ref())
    )
}

fn policy_table(Explained { policy, origins, .. }: &Explained) -> Table {
    let cells = policy.iter().map(|setting| [setting.field.as_str(), setting.text.as_str()]);
    match origins {
        Some(origins) => {
            let mut table = text::table(&["policy", "value", "from"]);
            let rows = cells.zip(origins);
            rows.for_each(|([field, value], from)| table.add_row([field, value, from]));
            table
        }
        None => {
            let mut table = text::table(&["policy", "value"]);
            cells.for_each(|row| table.add_row(row));
            table
        }
    }
}

fn probation_text(terms: Option<&ProbationTerms>) -> String {
    let Some(ProbationTerms { after_failures, first_ms, longest_ms }) = terms else {
        return "probation: off\n".to_owned();
    };
    let Some(first_ms) = first_ms else {
        return "probation: on, but this response never starts one\n".to_owned();
    };
    format!(
        "probation: after {after_failures} consecutive failures of at least two events, no request \
         is sent for {}; then one delivery probes the endpoint, and each failed probe doubles the \
         wait, up to {}\n",
        hms(*first_ms),
        hms(*longest_ms)
    )
}

fn attempts(life: &Life) -> String {
    let axis = Axis::from_life(life);
    let mut text = format!("{:>8}  {:>12}  time\n", "attempt", "wait");
    let all = &life.attempts;
    let (first, last) = if all.len() > FIRST + LAST {
        (&all[..FIRST], &all[all.len() - LAST..])
    } else {
        (all.as_slice(), &[][..])
    };
    first.iter().for_each(|attempt| text.push_str(&line(attempt, &axis)));
    if !last.is_empty() {
        text.push_str(&format!("{:>8}  {} more\n", "...", all.len() - FIRST - LAST));
    }
    last.iter().for_each(|attempt| text.push_str(&line(attempt, &axis)));
    text
}

fn line(attempt: &Attempt, axis: &Axis) -> String {
    let is_at_once = attempt.attempt == 1 && attempt.wait_ms == 0;
    let wait = if is_at_once { "-".to_owned() } else { hms(attempt.wait_ms) };
    let time = format!("+{}", hms(attempt.at_ms));
    let drawn = format!("{}●", "─".repeat(column(axis.position(attempt.at_ms))));
    format!("{:>8}  {wait:>12}  {time:<14}{drawn}\n", attempt.attempt)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position is 0 to 1 and the axis is short"
)]
fn column(position: f64) -> usize {
    (position.clamp(0.0, 1.0) * LINE).round() as usize
}

fn end(life: &Life, subscription: &Subscription) -> String {
    let axis = Axis::from_life(life);
    let time = format!("+{}", hms(life.ended_ms));
    let mark = format!("{}■", "─".repeat(column(axis.position(life.ended_ms))));
    let end = format!("{:>8}  {:>12}  {time:<14}{mark} {}\n", "end", "", life.reason_name());
    dead_letter(life, subscription)
        .map_or(end.clone(), |dead_letter| format!("{end}\n{dead_letter}\n"))
}
