//! `Clock` and `JitterSource` of this machine.

use adapters::machine::Machine;
use delivery::ports::{Clock, JitterSource};
use futures::future::join_all;

/// 2026-01-01 and 2100-01-01: a clock in seconds or microseconds is out of range.
const THIS_CENTURY_MS: std::ops::Range<u64> = 1_767_225_600_000..4_102_444_800_000;

async fn a_clock_counts_milliseconds_and_sleeps_at_least_its_wait(clock: &impl Clock) {
    let before_ms = clock.now_ms();
    assert!(THIS_CENTURY_MS.contains(&before_ms), "{before_ms}");
    let sleeps = [0, 1, 2, 3, 5, 8, 13, 21].map(|wait_ms| async move {
        let from_ms = clock.now_ms();
        clock.sleep(wait_ms).await;
        let slept_ms = clock.now_ms() - from_ms;
        assert!(slept_ms >= wait_ms, "{slept_ms} of {wait_ms}");
    });
    join_all(sleeps).await;
    let all_ms = clock.now_ms() - before_ms;
    assert!((21..60_000).contains(&all_ms), "{all_ms}");
}

fn jitter_covers_the_whole_range(source: &impl JitterSource) {
    let values: Vec<u32> = (0..1_000).map(|_| source.next_jitter().0).collect();
    for eighth in 0..8 {
        let in_eighth = values.iter().filter(|next_jitter| **next_jitter >> 29 == eighth).count();
        // 125 are expected; 40 or fewer happen about once in 10^17 runs.
        assert!(in_eighth > 40, "{in_eighth} of 1000 values in eighth {eighth}");
    }
}

#[tokio::test]
async fn the_machines_clock_counts_milliseconds_and_sleeps_at_least_its_wait() {
    a_clock_counts_milliseconds_and_sleeps_at_least_its_wait(&Machine).await;
}

#[test]
fn the_machines_jitter_covers_the_whole_range() {
    jitter_covers_the_whole_range(&Machine);
}

#[test]
fn random_bytes_for_keys_do_not_repeat() {
    let draw = || Machine.random_bytes::<32>().expect("the operating system provides them");
    let (first, second) = (draw(), draw());
    let distinct: std::collections::BTreeSet<u8> = first.iter().copied().collect();
    // Fewer than eight different values happen less than once in 10^37 runs.
    assert!(first != second && distinct.len() >= 8, "{first:?} {second:?}");
}
