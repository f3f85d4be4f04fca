//! No second of a rate is given out twice, whoever asks for how many slots.

use std::collections::BTreeMap;

use delivery::delivery::health::shared::Document as _;
use delivery::delivery::health::slots::{Reserved, Slots, Wanted};
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_second_is_given_out_beyond_its_rate(
        rate in 1_u32..50,
        calls in proptest::collection::vec((0_u64..30_000, 0_u32..60, 0_u32..20), 1..60),
    ) {
        let (mut slots, mut now_ms) = (Slots::default(), 0);
        let mut given = BTreeMap::<u64, u32>::new();
        for (wait_ms, wanted, ahead) in calls {
            now_ms += wait_ms;
            let asked =
                Wanted { per_second: rate, count: wanted, latest_ms: u64::MAX, ahead };
            let all = slots.reserve(asked, now_ms);
            let sum: u32 = all.iter().map(|slot| slot.count).sum();
            prop_assert!(sum >= wanted);
            for Reserved { at_ms, count } in all {
                prop_assert!(at_ms + 1_000 > now_ms, "it is over");
                *given.entry(at_ms).or_default() += count;
            }
            slots = Slots::read(&slots.write()).unwrap();
        }
        prop_assert!(given.values().all(|count| *count <= rate), "{given:?}");
    }
}
