//! How long a message waits whose attribute this program cannot read.
//!
//! While two versions run side by side, the older one receives what only the newer one can read. It
//! re-enqueues such a message as it is, and counts that beside it: the older code of the other function
//! ignores the count.

use crate::time::duration::MINUTE_MS;

/// The attribute that says how often a message was re-enqueued unread.
pub const UNREAD_ATTRIBUTE: &str = "unread";

/// Half an hour in all: longer than a deployment takes, also a gradual one.
const WAITS_MINUTES: [u64; 5] = [1, 2, 4, 8, 15];

/// For how long a message is delayed in all before it counts as unreadable.
pub const UNREAD_MS: u64 = 30 * MINUTE_MS;

/// How long a message waits that was re-enqueued unread this often; one of a newer version goes on
/// waiting with the longest delay.
#[must_use]
pub fn unread_wait_ms(unread: u32) -> u64 {
    let index = (unread as usize).min(WAITS_MINUTES.len() - 1);
    WAITS_MINUTES[index] * MINUTE_MS
}

/// Whether a message that was re-enqueued unread this often has waited long enough.
#[must_use]
pub fn has_waited(unread: u32) -> bool {
    unread as usize >= WAITS_MINUTES.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_waits_half_an_hour_in_all_and_each_wait_is_one_delay() {
        let waits: Vec<u64> = (0..).take_while(|it| !has_waited(*it)).map(unread_wait_ms).collect();
        assert_eq!(waits.iter().sum::<u64>(), UNREAD_MS);
        assert!(waits.iter().all(|wait_ms| *wait_ms <= 15 * MINUTE_MS), "{waits:?}");
        assert_eq!((unread_wait_ms(99), has_waited(u32::MAX)), (15 * MINUTE_MS, true));
    }
}
