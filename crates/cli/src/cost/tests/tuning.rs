//! What a deployment and its publishers can change: arrays, memory, logs and metrics, and the advice about them.

use super::super::levers::advice;
use super::super::prices::dollars;
use super::*;

#[test]
fn an_array_is_one_message_and_its_events_are_one_delivery_each() {
    let of = |events_per_message| {
        estimate(&traffic(|of| of.events_per_message = events_per_message), &native())
    };
    let ten = of(10.0);
    for (what, wanted) in [
        ("events published", 100_000),
        ("events received", 100_000),
        ("events deleted", 100_000),
        ("dispatch invoked", 100_000),
        ("parts sent", 0),
    ] {
        assert_eq!(quantity(&ten, what), wanted, "{what}");
    }
    assert!(close(ten.load.deliveries, 1e6) && close(ten.average.attempts, 1.0));
    // More deliveries than one invocation makes in place are divided into parts: 20 into two, of which ten are 108 kB.
    assert_eq!(quantity(&of(20.0), "parts sent"), 50_000 * 2 / 10 * 2);
    // 100 events of 1,024 bytes are 103 kB: two requests of 64 KiB.
    assert_eq!(quantity(&of(100.0), "events published"), 20_000);
}

#[test]
fn half_the_memory_takes_twice_the_processor_time() {
    let invocation_ms = |memory_mb| {
        let mut plan = plan();
        (plan.traffic.answer_ms, plan.deployment.memory_mb) = (0.0, memory_mb);
        estimate(&plan, &native()).load.events.invocation_ms
    };
    // 288 µs of a whole processor, of which 1,769 MB have one.
    for (memory_mb, wanted) in [(128, 4.0), (256, 2.0), (512, 1.0), (10_240, 1.0)] {
        assert!(
            close(invocation_ms(memory_mb), wanted),
            "{memory_mb}: {}",
            invocation_ms(memory_mb)
        );
    }
}

#[test]
fn metrics_are_written_twice_a_minute_by_each_process_and_every_value_once() {
    let logged = |change: fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        let items = estimate(&plan, &native()).items;
        let metrics = items.into_iter().find(|item| item.what == "logs of metrics");
        metrics.expect("metrics are logged").formula
    };
    let default = logged(|_| {});
    // Two processes at once, 2,880 half minutes a day; but a line holds the values of a hundred attempts.
    assert!(default.starts_with("10,000 lines × "), "{default}");
    assert!(default.contains(" + 1,000,000 attempts × "), "{default}");
    let rare = logged(|plan| plan.traffic.events = 2e3);
    assert!(rare.starts_with("2,000 lines"), "not more often than invoked: {rare}");
    let busy = logged(|plan| plan.traffic.events = 1e5);
    assert!(busy.starts_with("2,880 lines"), "{busy}");
    let by_topic = logged(|plan| {
        (plan.deployment.metrics_per_topic, plan.deployment.topics) = (true, 9.0);
    });
    assert!(by_topic.starts_with("100,000 lines") && by_topic.contains("2,000,000"), "{by_topic}");
}

#[test]
fn of_failures_alone_only_what_failed_before_is_logged_as_delivered() {
    let logged = |log_deliveries| {
        let mut plan = traffic(|of| of.success = 0.99);
        plan.deployment.log_deliveries = log_deliveries;
        let items = estimate(&plan, &native()).items;
        items.into_iter().find(|item| item.what == "logs of deliveries").map(|item| item.formula)
    };
    let all = logged(LogDeliveries::All).expect("lines");
    assert!(all.starts_with("1,000,000 delivered") && all.contains("10,101 failed"), "{all}");
    let failures = logged(LogDeliveries::Failures).expect("lines");
    assert!(failures.starts_with("10,000 delivered") && failures.contains("10,101"), "{failures}");
}

#[test]
fn the_levers_that_save_most_come_first_and_what_is_done_already_does_not_come() {
    let advised = |plan: &Plan| {
        let now = estimate(plan, &native());
        let advice = advice(plan, &native(), &now);
        let saves: Vec<u128> = advice.levers.iter().map(|lever| lever.saves).collect();
        assert!(saves.len() <= 3 && saves.is_sorted_by(|one, other| one >= other), "{saves:?}");
        assert!(advice.together.total.day <= now.total.day - saves.first().unwrap_or(&0));
        advice.levers.into_iter().map(|lever| lever.change.what).collect::<Vec<_>>()
    };
    let default = advised(&plan());
    assert_eq!(default[0], "publishers send arrays of ten events");
    // 11.6 events a second arrive at five pollers: ten of them in five seconds.
    assert!(default.contains(&"DispatchBatchWindow=5".to_owned()), "{default:?}");
    let mut tuned = plan();
    (tuned.traffic.publish_batch, tuned.traffic.events_per_message) = (10.0, 10.0);
    let deployment = &mut tuned.deployment;
    (deployment.batch_window_s, deployment.batch_size, deployment.memory_mb) = (10, 100, 128);
    deployment.log_deliveries = LogDeliveries::Failures;
    assert_eq!(advised(&tuned), [""; 0]);
}

#[test]
fn a_new_account_runs_ten_functions_at_once() {
    let limit = |account_concurrency| {
        let mut plan = plan();
        plan.deployment.account_concurrency = account_concurrency;
        let needs = estimate(&plan, &native()).needs;
        needs.into_iter().find(|need| need.what == "invocations at once, all").unwrap().limit
    };
    assert_eq!(limit(10), Some((10.0, "a new account")));
    assert_eq!(limit(1_000), Some((1_000.0, "the account")));
}

#[test]
fn nat_gateways_cost_their_hours_and_what_passes_them() {
    let without = estimate(&plan(), &native());
    assert!(without.items.iter().all(|item| !item.what.starts_with("NAT")));
    let mut behind = plan();
    behind.deployment.nat_gateways = 2.0;
    let behind = estimate(&behind, &native());
    let item = |what: &str| behind.items.iter().find(|item| item.what == what).expect("an item");
    assert_eq!(dollars(item("NAT gateways").pico_dollars()), "2.1600");
    assert!(item("NAT data").pico_dollars() > 0);
    assert!(behind.total.day > without.total.day);
}
