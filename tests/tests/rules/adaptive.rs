//! Properties of adaptive concurrency.

use delivery::delivery::health::adaptive::{AdaptiveLimit, Observed};
use delivery::delivery::outcome::Outcome;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_limit_is_at_least_one_and_below_its_ceiling_and_changes_by_half_once_a_round_or_by_one(
        ceiling in 1_u32..100,
        attempts in prop::collection::vec(
            (0..Outcome::ALL.len(), 0_u64..50, 1_u64..5_000, 0_u32..100), 0..300),
    ) {
        let (mut limits, mut started_ms, mut decreased_ms) = (AdaptiveLimit::default(), 0, 0);
        for (outcome, after_ms, took_ms, under_way) in attempts {
            started_ms += after_ms;
            let (outcome, ended_ms) = (Outcome::ALL[outcome], started_ms + took_ms);
            let before = limits.limit(ceiling);
            limits.note(Observed { outcome, started_ms, ended_ms, under_way, ceiling });
            let after = limits.limit(ceiling);
            prop_assert!(after.is_none_or(|limit| (1..ceiling).contains(&limit)));
            match (before, after) {
                (Some(from), Some(to)) if to < from => {
                    let least = if outcome == Outcome::TimedOut { 5.min(from) } else { 1 };
                    prop_assert!(to == (from / 2).max(least) && started_ms > decreased_ms);
                    decreased_ms = ended_ms;
                }
                (None, Some(_)) => decreased_ms = ended_ms,
                (Some(from), to) => prop_assert!(to.unwrap_or(ceiling) <= from + 1),
                (None, None) => {}
            }
        }
    }
}
