//! Assigns turns to deliveries: estimated start times in the queue of a destination. Several
//! deliveries may share a turn, so that they are received again together.

use delivery::ports::DispatchPorts;
use delivery::table::{Line, Places, SlotQueue, Table as _, TakePlaces};
use delivery::time::duration::SECOND_MS;

use super::{Limit, TURNS_AHEAD_MS};
use crate::destination::Destinations;
use crate::table::Unreachable;

/// Turns are assigned at most this far ahead as long as no attempt was measured, because the
/// average duration is then only assumed.
const GUESSED_AHEAD_MS: u64 = 5 * SECOND_MS;
/// Assumed duration of an attempt when turns are assigned, in percent of the average. More than
/// 100, because taking and returning permits takes time. A permit that is briefly unused costs less
/// than a delivery that is received too early.
const TAKES_PERCENT: u64 = 115;
/// Bounds of the period over which the turns of a group are spread, because its deliveries are
/// received again together. The period is three times the duration of an attempt, within these
/// bounds.
const GROUP_MS: (u64, u64) = (4 * SECOND_MS, 12 * SECOND_MS);
/// Largest batch that SQS delivers without a batching window.
const GROUP_MAX: u64 = 10;

impl<P: DispatchPorts> Destinations<P> {
    /// Requests `count` turns from the table, or fewer if fewer are free.
    pub(super) async fn take_turns(
        &self,
        limit: &Limit<'_>,
        count: u32,
    ) -> Result<(), Unreachable> {
        let now_ms = self.now_ms();
        let (takes_ms, ahead_ms, line_until_ms) = {
            let held = limit.own.held();
            let ahead_ms = match held.known_takes_ms() {
                Some(_) => TURNS_AHEAD_MS,
                None => GUESSED_AHEAD_MS,
            };
            (held.takes_ms(), ahead_ms, held.line_until_ms)
        };
        // The queue is full for as far ahead as turns are assigned.
        if line_until_ms >= now_ms.saturating_add(ahead_ms) {
            return Ok(());
        }
        let take = TakePlaces {
            count,
            each_us: (takes_ms.saturating_mul(TAKES_PERCENT * 10) / u64::from(limit.most)).max(1),
            others_wait: line_until_ms > now_ms,
            earliest_ms: now_ms,
            latest_ms: now_ms.saturating_add(ahead_ms),
            plausible_ms: now_ms.saturating_add(2 * TURNS_AHEAD_MS),
            report: None,
        };
        let asked = self.table.port().take_places(&limit.item, SlotQueue::Turns, &take, now_ms);
        let Places { line, .. } = self.table.answer(asked, limit.deadline).await?;
        let mut held = limit.own.held();
        match line {
            Line::Taken { first_us } => {
                // A delivery is received again at the end of its turn, when the attempts before it
                // have ended. Deliveries of one group are received in one batch, and their process
                // takes all permits in one request.
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

/// Returns the number of deliveries that are received again together. A number above `most` is a
/// multiple of `most`, so that the next group finds all permits free.
fn group(takes_ms: u64, each_ms: u64, most: u32) -> usize {
    let (shortest_ms, longest_ms) = GROUP_MS;
    let group_ms = (3 * takes_ms).clamp(shortest_ms, longest_ms);
    let most = u64::from(most);
    let count = (group_ms / each_ms).clamp(1, GROUP_MAX);
    let count = if count > most { count - count % most } else { count };
    usize::try_from(count).unwrap_or(1)
}
