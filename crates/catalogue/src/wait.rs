//! The waits of those who were too late: they double, and jitter takes away up to half.

use delivery::ports::{Clock, JitterSource};
use delivery::subscription::schedule::Jitter;

/// The longest wait before the second try; it doubles with each further one.
const FIRST_WAIT_MS: u64 = 50;
/// The longest wait between two tries.
const WAIT_MAX_MS: u64 = 2_000;

/// Waits after so many conflicts, from 1 on.
pub(crate) async fn wait(machine: &(impl Clock + JitterSource), conflicts: u32) {
    machine.sleep(wait_ms(conflicts, machine.next_jitter())).await;
}

fn wait_ms(conflicts: u32, Jitter(random): Jitter) -> u64 {
    let doubled = FIRST_WAIT_MS << (conflicts.saturating_sub(1)).min(16);
    let longest = doubled.min(WAIT_MAX_MS);
    longest - longest * u64::from(random) / u64::from(u32::MAX) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_two_seconds_and_jitter_takes_away_half_at_most() {
        let waits =
            |random| [1, 2, 3, 6, 7, 20].map(|conflicts| wait_ms(conflicts, Jitter(random)));
        assert_eq!(waits(0), [50, 100, 200, 1_600, 2_000, 2_000]);
        assert_eq!(waits(u32::MAX), [25, 50, 100, 800, 1_000, 1_000]);
    }
}
