//! How a destination that takes so many requests at once is shared out among all processes.
//!
//! One document says who holds how many permits, and until when. A process leases permits for its
//! attempts, for longer than they may take, and returns them at the end of its invocation. One that is
//! killed keeps them until its lease is over.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::shared::{Document, VERSION};
use crate::time::duration::MINUTE_MS;

/// A process that got fewer permits than it wanted is remembered for this long: until then nobody gets
/// more than an equal share.
const SHORT_MS: u64 = MINUTE_MS;

/// The permits of one destination that are given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permits {
    v: u32,
    leases: Vec<Lease>,
    /// Until when somebody is short of permits.
    #[serde(default)]
    short_until_ms: u64,
}

/// What one process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    /// The process.
    holder: Uuid,
    /// How many requests it may make at once.
    count: u32,
    /// Until when.
    until_ms: u64,
}

impl Default for Permits {
    fn default() -> Self {
        Self { v: VERSION, leases: Vec::new(), short_until_ms: 0 }
    }
}

impl Document for Permits {}

impl Permits {
    /// Leases permits to a process, up to `wanted`, of `most` in all; what it had is part of them, and it
    /// keeps at least those that it uses. Returns how many it has now.
    pub fn lease(&mut self, holder: Uuid, wanted: Wanted, most: u32, now_ms: u64) -> u32 {
        let Wanted { count, in_use, until_ms } = wanted;
        self.leases.retain(|lease| now_ms < lease.until_ms && lease.holder != holder);
        let taken: u32 = self.leases.iter().map(|lease| lease.count).sum();
        let free = most.saturating_sub(taken);
        let holders = u32::try_from(self.leases.len() + 1).unwrap_or(u32::MAX);
        let is_short = now_ms < self.short_until_ms;
        let share = if is_short { (most / holders).max(1) } else { most };
        let granted = count.min(free).min(share).max(in_use);
        // Not each time, or every refusal would be a write.
        if granted < count && self.short_until_ms < now_ms.saturating_add(SHORT_MS / 2) {
            self.short_until_ms = now_ms.saturating_add(SHORT_MS);
        }
        if granted > 0 {
            self.leases.push(Lease { holder, count: granted, until_ms });
        }
        granted
    }
}

/// What a process wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// So many permits.
    pub count: u32,
    /// So many of them are in use, and cannot be returned.
    pub in_use: u32,
    /// Until then.
    pub until_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(count: u32, in_use: u32, until_ms: u64) -> Wanted {
        Wanted { count, in_use, until_ms }
    }

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);
    const C: Uuid = Uuid::from_u128(3);

    #[test]
    fn together_they_hold_no_more_than_the_destination_takes() {
        let mut permits = Permits::default();
        assert_eq!(permits.lease(A, wanted(2, 0, 100), 3, 0), 2);
        assert_eq!(permits.lease(B, wanted(5, 0, 100), 3, 0), 1);
        assert_eq!(permits.lease(C, wanted(1, 0, 100), 3, 0), 0);
        assert_eq!(Permits::read(&permits.write()), Ok(permits.clone()));
        // Who returns them, or is gone, leaves them to others.
        assert_eq!(permits.lease(A, wanted(0, 0, 100), 3, 50), 0);
        assert_eq!(permits.lease(C, wanted(1, 0, 200), 3, 50), 1);
        assert_eq!(permits.lease(A, wanted(3, 0, 200), 3, 100), 1, "the lease of B is over");
    }

    #[test]
    fn while_somebody_is_short_nobody_gets_more_than_an_equal_share_but_keeps_what_is_in_use() {
        let mut permits = Permits::default();
        assert_eq!(permits.lease(A, wanted(6, 0, 100_000), 6, 0), 6);
        assert_eq!(permits.lease(B, wanted(3, 0, 100_000), 6, 0), 0);
        assert_eq!(permits.lease(A, wanted(6, 6, 100_000), 6, 1_000), 6, "all are in use");
        assert_eq!(permits.lease(A, wanted(6, 2, 100_000), 6, 2_000), 6, "nobody else holds any");
        assert_eq!(permits.lease(A, wanted(1, 1, 100_000), 6, 3_000), 1);
        assert_eq!(permits.lease(B, wanted(6, 0, 100_000), 6, 3_000), 3);
        assert_eq!(permits.lease(A, wanted(6, 1, 100_000), 6, 4_000), 3);
        // A minute after the last one was short.
        assert_eq!(permits.lease(B, wanted(0, 0, 100_000), 6, 70_000), 0);
        assert_eq!(permits.lease(A, wanted(6, 0, 100_000), 6, 70_000), 6);
    }
}
