//! The estimate against arithmetic by hand, and against itself.

use super::beside::{Beside, DELIVERIES, REPLAY_DOLLARS};
use super::{Estimate, MONTH_DAYS, Plan, estimate, sum, tightest};
use crate::operations::queues::shares_of;

/// A million events a day, with the defaults of the template.
fn plan() -> Plan {
    Plan {
        events: 1e6 * MONTH_DAYS,
        success: 1.0,
        fan_out: 1.0,
        event_bytes: 1_024.0,
        events_per_message: 1.0,
        publish_batch: 1.0,
        answer_ms: 100.0,
        batch_window_s: 0,
        concurrency: shares_of(10).expect("a row"),
        logs_all: true,
    }
}

/// The quantity of a line in a day; 0 if there is none.
fn a_day(estimate: &Estimate, item: &str) -> f64 {
    let line = estimate.lines.iter().find(|line| line.item == item);
    line.map_or(0.0, |line| line.quantity / MONTH_DAYS)
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    assert!(
        (actual - expected).abs() <= 1e-6 * expected.abs().max(1.0),
        "{actual} is not {expected}"
    );
}

#[test]
fn a_load_without_failures_is_what_a_calculation_by_hand_gives() {
    let estimate = estimate(&plan());
    for (item, quantity) in [
        ("events published", 1e6),
        // One record an invocation, with a request each to receive and to delete it.
        ("events received, deleted", 2e6),
        ("waits sent", 0.0),
        // Five pollers of five queues poll 4,320 times a day, less what the events queue finds.
        ("empty polls", 4.0 * 5.0 * 4_320.0),
        ("dispatch invoked", 1e6),
        // 2.0 ms of the processor and 100 ms for the answer, at 256 MB.
        ("dispatch runs", 1e6 * 0.102 / 4.0),
        ("logs of deliveries", 1e6 * 352.0 / 1_073_741_824.0),
        ("requests to destinations", 1e6 * 1_624.0 / 1_073_741_824.0),
    ] {
        assert_close(a_day(&estimate, item), quantity);
    }
    let metrics = estimate.lines.iter().find(|line| line.item == "metrics");
    assert_close(metrics.expect("metrics").quantity, 10.0);
}

#[test]
fn a_window_fills_batches_and_an_event_of_65_kib_is_two_requests() {
    let with_window = estimate(&Plan { batch_window_s: 5, ..plan() });
    // 11.6 events a second for 5 s, divided among five pollers.
    assert_close(a_day(&with_window, "dispatch invoked"), 1e6 / 11.0);
    let large = estimate(&Plan { event_bytes: 66_560.0, ..plan() });
    assert_close(a_day(&large, "events published"), 2e6);
    assert_close(a_day(&large, "events received, deleted"), 3e6);
}

#[test]
fn a_message_with_more_than_ten_deliveries_is_received_once_more_per_part() {
    let quantities = |fan_out, events_per_message| {
        let estimate = estimate(&Plan { fan_out, events_per_message, ..plan() });
        (a_day(&estimate, "parts sent"), a_day(&estimate, "events published"))
    };
    assert_eq!(quantities(10.0, 1.0), (0.0, 1e6));
    assert_eq!(quantities(1.0, 10.0), (0.0, 1e5));
    assert_close(quantities(25.0, 1.0).0, 3e6 / 10.0);
    assert_close(quantities(10.0, 10.0).0, 1e6 / 10.0);
}

#[test]
fn each_attempt_has_the_next_power_of_the_failure_rate_and_the_last_power_is_dead_lettered() {
    let average = estimate(&Plan { success: 0.5, ..plan() }).average;
    assert_close(average.attempts, 2.0 - 0.5_f64.powi(19));
    assert_close(average.dead_letters, 0.5_f64.powi(20));
    let average = estimate(&Plan { success: 0.0, ..plan() }).average;
    // Eight waits of up to a quarter of an hour with their jitter, of 22, 45 and 90 minutes, and
    // eight of 126 minutes.
    let messages = 8.0 + 2.0 + 3.0 + 6.0 + 8.0 * 9.0;
    assert_eq!((average.attempts, average.messages, average.dead_letters), (20.0, messages, 1.0));
}

#[test]
fn more_events_more_failures_and_more_subscriptions_never_cost_less() {
    let usd = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        sum(&estimate(&plan).lines)
    };
    for (name, costs) in [
        ("events", [1e3, 1e6, 1e9].map(|events| usd(&|plan| plan.events = events))),
        ("success", [1.0, 0.9, 0.0].map(|success| usd(&|plan| plan.success = success))),
        ("fan-out", [1.0, 5.0, 50.0].map(|fan_out| usd(&|plan| plan.fan_out = fan_out))),
        ("bytes", [10.0, 1e4, 1e6].map(|bytes| usd(&|plan| plan.event_bytes = bytes))),
        ("answer", [1.0, 1e2, 1e4].map(|ms| usd(&|plan| plan.answer_ms = ms))),
    ] {
        assert!(costs[0] < costs[1] && costs[1] < costs[2], "{name}: {costs:?}");
    }
    let saves = [
        usd(&|plan| plan.batch_window_s = 1),
        usd(&|plan| plan.events_per_message = 10.0),
        usd(&|plan| plan.publish_batch = 10.0),
        usd(&|plan| plan.logs_all = false),
    ];
    assert!(saves.iter().all(|costs| *costs < usd(&|_| {})), "{saves:?}");
}

#[test]
fn the_first_limit_is_the_need_closest_to_its_limit_even_when_it_exceeds_it() {
    for (events, success, first) in [
        (1e6, 0.99, "invocations at once, events"),
        (1e8, 0.99, "invocations at once, events"),
        (1e6, 0.0, "invocations at once, waits"),
    ] {
        let needs = estimate(&Plan { events: events * MONTH_DAYS, success, ..plan() }).needs;
        let need = tightest(&needs).expect("a need");
        assert_eq!(
            (need.name, need.share > 1.0),
            (first, events > 1e7 || success < 0.5),
            "{need:?}"
        );
    }
}

#[test]
fn an_idle_month_has_no_limit_and_costs_the_polls_of_five_queues_and_an_alarm() {
    let estimate = estimate(&Plan { events: 0.0, ..plan() });
    let items: Vec<&str> = estimate.lines.iter().map(|line| line.item).collect();
    assert_eq!(items, ["empty polls", "alarm"]);
    assert!(tightest(&estimate.needs).is_none());
    // 3,240,000 polls at $0.40 a million, and $0.10.
    assert_close(sum(&estimate.lines), 1.396);
}

#[test]
fn a_million_deliveries_that_wait_a_day_are_165_million_messages_ten_together() {
    let beside = Beside::new(&plan());
    // Sent, received and deleted, with the surcharge; invoked; 25 ms each; 142 lines each; kept.
    let by_hand = 16.5 * (3.0 * 0.5 + 0.2) + 103_125.0 * 0.000_013_333_4 + 45.758 * 0.53;
    assert!((beside.waiting_day - by_hand).abs() < 0.01, "{beside:?}, not {by_hand}");
    let max = estimate(&plan()).waiting_max;
    // Two invocations at once, of 25 ms and ten records each.
    assert_close(max, 2.0 * 86_400.0 / 165.0 * 10.0 / 0.025);
}

#[test]
fn a_replay_costs_what_the_console_says() {
    let replay = Beside::new(&plan()).replay / DELIVERIES * 1e6;
    let stated = f64::from(u32::try_from(REPLAY_DOLLARS).expect("a small number"));
    assert!(replay <= stated && replay > stated - 1.0, "REPLAY_DOLLARS: {replay}");
}
