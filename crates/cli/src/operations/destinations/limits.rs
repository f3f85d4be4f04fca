//! Describes the conditions of a destination and the limits in use, for display.

use std::collections::BTreeSet;

use adapters::table::{DynamoTable, Limits};
use delivery::delivery::health::shared::DestinationState;
use delivery::table::Recovery;

use super::entries::failure;
use super::known::{Destination, GivenOut};
use super::state::{conditions, since, until};

/// Reads the current use of a destination's limits from the table.
pub(crate) async fn given_out(
    table: &DynamoTable,
    destination: &Destination,
    now_ms: u64,
) -> anyhow::Result<GivenOut> {
    let item = destination.key.limits_item(&destination.namespace);
    let Limits { permits, slots_us, recovery } = table.limits(&item).await.map_err(failure)?;
    let expired = permits.expired(now_ms).len();
    let turns_ms = permits.line_us.map(|line_us| line_us / 1_000);
    let permits = permits.given_out.len().saturating_sub(expired);
    Ok(GivenOut {
        recovery: recovery.filter(|recovery| !recovery.is_over(now_ms)),
        turns_ms: turns_ms.filter(|turns_ms| now_ms < *turns_ms),
        next_slot_ms: slots_us.map(|slots_us| slots_us / 1_000),
        permits: u32::try_from(permits).ok().filter(|permits| *permits > 0),
    })
}

/// Describes the limits of a destination for people, and how much of each is in use.
pub(crate) async fn limits(
    table: &DynamoTable,
    destination: &Destination,
    now_ms: u64,
) -> anyhow::Result<Vec<String>> {
    let given_out = given_out(table, destination, now_ms).await?;
    let rate = rate(destination, given_out.next_slot_ms, now_ms);
    let recovery = given_out.recovery.map(|recovery| recovering(recovery, now_ms));
    let lines = rate.into_iter().chain(recovery);
    Ok(lines.chain(concurrency(destination, given_out, now_ms)).collect())
}

/// Describes each unhealthy condition on one line.
pub(crate) fn states(state: Option<&DestinationState>, now_ms: u64) -> Vec<String> {
    let Some(state) = state else {
        return vec!["healthy: no problem is recorded".to_owned()];
    };
    let conditions = conditions(state);
    if conditions.is_empty() {
        return vec![format!("healthy; last change {}", since(state.changed_ms, now_ms))];
    }
    let line = |name, since_ms, why: &str| {
        let colon = if why.is_empty() { "" } else { ", " };
        format!("{name} since {}{colon}{why}", since(since_ms, now_ms))
    };
    conditions
        .iter()
        .map(|condition| line(condition.name, condition.since_ms, &condition.why))
        .collect()
}

/// Describes the rate limit, and the next free slot under it. Returns `None` without a limit,
/// unless slots of an earlier limit are still reserved.
pub(crate) fn rate(
    destination: &Destination,
    next_slot_ms: Option<u64>,
    now_ms: u64,
) -> Option<String> {
    let rates = destination
        .subscriptions
        .iter()
        .filter_map(|subscription| subscription.destination.max_per_second);
    let rates: BTreeSet<u32> = rates.collect();
    let allowed = allowed(&rates, "per second");
    let given_out = next_slot_ms.filter(|next_ms| now_ms < *next_ms);
    match (given_out, rates.is_empty()) {
        (Some(next_ms), _) => {
            Some(format!("{allowed}; all slots are reserved until {}", until(next_ms, now_ms)))
        }
        (None, false) => Some(format!("{allowed}; the next slot is free")),
        (None, true) => None,
    }
}

/// Describes the limit of concurrent requests that all functions share, and the permits in use.
/// Returns `None` without a limit, unless permits of an earlier limit are still in use.
pub(crate) fn concurrency(
    destination: &Destination,
    given_out: GivenOut,
    now_ms: u64,
) -> Option<String> {
    let limits: BTreeSet<u32> = destination.shared_concurrency().collect();
    let (held, allowed) =
        (given_out.permits.unwrap_or_default(), allowed(&limits, "at the same time"));
    let mut text = match held {
        1 => format!("{allowed}; 1 permit is in use"),
        held => format!("{allowed}; {held} permits are in use"),
    };
    if let Some(turns_ms) = given_out.turns_ms {
        text.push_str(&format!("; deliveries wait until {}", until(turns_ms, now_ms)));
    }
    (held > 0 || given_out.turns_ms.is_some() || !limits.is_empty()).then_some(text)
}

/// Describes the reduced rate while a destination recovers from an outage.
pub(crate) fn recovering(recovery: Recovery, now_ms: u64) -> String {
    let Recovery { began_ms, rate, since_ms, good, failed, ceiling, .. } = recovery;
    let mut text = format!(
        "at most {rate} requests per second since {}, after an outage that ended {}; results since \
         then: {good} good, {failed} failed",
        since(since_ms, now_ms),
        since(began_ms, now_ms)
    );
    if let Some((highest, until_ms)) = ceiling.filter(|(_, until_ms)| now_ms < *until_ms) {
        let until = until(until_ms, now_ms);
        text.push_str(&format!(
            "; the destination failed again, so at most {highest} until {until}"
        ));
    }
    text
}

/// Describes a limit of requests. If the subscriptions set different limits, lists all.
fn allowed(limits: &BTreeSet<u32>, scope: &str) -> String {
    let limits: Vec<String> = limits.iter().map(ToString::to_string).collect();
    match limits.is_empty() {
        true => "no limit any more".to_owned(),
        false => format!("at most {} requests {scope}", limits.join(" or ")),
    }
}
