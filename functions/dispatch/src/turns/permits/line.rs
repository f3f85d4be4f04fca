//! Gives deliveries their turns: places in the line of a destination, some of which come back together.

use delivery::ports::DispatchPorts;
use delivery::table::{Line, LineName, Table as _, TakePlaces};
use delivery::time::duration::SECOND_MS;

use super::{Limit, TURNS_AHEAD_MS};
use crate::dispatch::Dispatch;
use crate::sharing::Unreachable;

/// Turns are given out this far ahead while nobody knows how long attempts take.
const GUESSED_AHEAD_MS: u64 = 5 * SECOND_MS;
/// Turns are given out as if attempts took this many percent of their time, since permits are taken and returned. A
/// permit that is free for a moment costs less than a delivery that comes too early.
const TAKES_PERCENT: u64 = 115;
/// Deliveries come back together if their turns come within three attempts, but at least and at most this long.
const GROUP_MS: (u64, u64) = (4 * SECOND_MS, 12 * SECOND_MS);
/// SQS delivers at most so many messages together, unless a batch may be larger.
const GROUP_MAX: u64 = 10;

impl<P: DispatchPorts> Dispatch<P> {
    /// Takes turns for so many deliveries, as far as there are any in the time ahead.
    pub(super) async fn take_turns(
        &self,
        limit: &Limit<'_>,
        count: u32,
    ) -> Result<(), Unreachable> {
        let now_ms = self.ports.now_ms();
        let (takes_ms, ahead_ms, line_until_ms) = {
            let held = limit.own.held();
            let ahead_ms = match held.known_takes_ms() {
                Some(_) => TURNS_AHEAD_MS,
                None => GUESSED_AHEAD_MS,
            };
            (held.takes_ms(), ahead_ms, held.line_until_ms)
        };
        // It is known to be full.
        if line_until_ms >= now_ms.saturating_add(ahead_ms) {
            return Ok(());
        }
        let take = TakePlaces {
            count,
            each_us: (takes_ms.saturating_mul(TAKES_PERCENT * 10) / u64::from(limit.most)).max(1),
            others_wait: line_until_ms > now_ms,
            latest_ms: now_ms.saturating_add(ahead_ms),
            plausible_ms: now_ms.saturating_add(2 * TURNS_AHEAD_MS),
        };
        let asked = self.ports.table().take_places(&limit.item, LineName::Turns, &take, now_ms);
        let line = self.table_answer(asked, limit.deadline).await?;
        let mut held = limit.own.held();
        match line {
            Line::Taken { first_us } => {
                // A place is over when the attempts before it are. Those of one group come back together, in one
                // batch: their process takes the permits once for all.
                let each_ms = (take.each_us / 1_000).max(1);
                let in_group = group(takes_ms, each_ms, limit.most);
                let places_ms = take.places_ms(first_us.saturating_add(take.each_us));
                let places_ms: Vec<u64> = places_ms.collect();
                let groups = places_ms.chunks(in_group);
                held.turns_ms.extend(groups.flat_map(|group| group.iter().map(|_| group[0])));
                held.line_until_ms = first_us.saturating_add(take.all_us()) / 1_000;
            }
            Line::Full { until_ms } => held.line_until_ms = until_ms,
            Line::Overtaken => {}
        }
        Ok(())
    }
}

/// So many deliveries come back together. Those that use the same permits one after the other come in full rounds, so
/// that the next group finds the permits free.
fn group(takes_ms: u64, each_ms: u64, most: u32) -> usize {
    let (shortest_ms, longest_ms) = GROUP_MS;
    let group_ms = (3 * takes_ms).clamp(shortest_ms, longest_ms);
    let most = u64::from(most);
    let count = (group_ms / each_ms).clamp(1, GROUP_MAX);
    let count = if count > most { count - count % most } else { count };
    usize::try_from(count).unwrap_or(1)
}
