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
        plan.deployment.metrics_per.topic = true;
        plan.deployment.topics = 9.0;
    });
    assert!(by_topic.starts_with("100,000 lines") && by_topic.contains("2,000,000"), "{by_topic}");
}

#[test]
fn of_failures_alone_only_what_failed_before_is_logged_as_delivered() {
    let logged = |log_level| {
        let mut plan = traffic(|of| of.success = 0.99);
        plan.deployment.log_level = log_level;
        let items = estimate(&plan, &native()).items;
        items.into_iter().find(|item| item.what == "logs of deliveries").map(|item| item.formula)
    };
    let all = logged(LogLevel::Info).expect("lines");
    assert!(all.starts_with("1,000,000 delivered") && all.contains("10,101 failed"), "{all}");
    let failures = logged(LogLevel::Failures).expect("lines");
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
    (deployment.batch_window_s, deployment.memory_mb) = (10, 128);
    deployment.log_level = LogLevel::Failures;
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

/// A plan with these limits of event pollers.
fn with_pollers(events: f64, minimum: u32, maximum: u32) -> Plan {
    let mut plan = traffic(|of| of.events = events);
    plan.deployment.events_pollers = Some(Pollers { minimum, maximum });
    plan
}

fn need(estimate: &Estimate, what: &str) -> Option<(f64, f64, f64)> {
    let need = estimate.needs.iter().find(|need| need.what == what)?;
    Some((need.amount, need.limit?.0, need.share))
}

#[test]
fn event_pollers_that_stand_by_are_billed_all_day_and_more_where_the_load_needs_them() {
    let hours = |plan: &Plan| quantity(&estimate(plan, &native()), "event pollers");
    assert_eq!(hours(&plan()), 0);
    assert_eq!(hours(&with_pollers(0.0, 2, 200)), 48);
    // 11.6 events a second, one by one: 11.6 polls a second, of which a poller makes ten.
    assert_eq!(hours(&with_pollers(1e6, 2, 200)), 48);
    assert_eq!(hours(&with_pollers(1e6, 5, 200)), 120);
    // 115.7 polls a second.
    assert_eq!(hours(&with_pollers(1e7, 2, 200)), 12 * 24);
    assert_eq!(hours(&with_pollers(1e9, 2, 20)), 20 * 24, "no more than the maximum");
    let idle = estimate(&with_pollers(0.0, 2, 200), &native());
    let pollers = idle.items.iter().find(|item| item.what == "event pollers").unwrap();
    // 48 × $0.00925
    assert_eq!(dollars(pollers.pico_dollars()), "0.4440");
}

#[test]
fn each_event_poller_makes_ten_invocations_at_once() {
    let of = |plan: &Plan| estimate(plan, &native());
    let default = of(&plan());
    assert_eq!(need(&default, "event pollers, events"), None);
    assert_eq!(need(&default, "invocations at once, events").unwrap().1, 50.0);
    let provisioned = of(&with_pollers(1e6, 2, 200));
    assert_eq!(need(&provisioned, "invocations at once, events").unwrap().1, 2_000.0);
    assert_eq!(need(&provisioned, "event pollers, events").unwrap().1, 200.0);
}

#[test]
fn event_pollers_are_limited_by_invocations_bytes_or_polls() {
    let full = |change: fn(&mut Plan)| {
        let mut plan = with_pollers(1e9, 2, 2_000);
        change(&mut plan);
        let (_, most, share) = need(&estimate(&plan, &native()), "event pollers, events").unwrap();
        share * most
    };
    let second = 1e9 / 86_400.0;
    assert!(close(full(|_| {}), second / 10.0 / 10.0), "ten records a poll, ten polls a second");
    let bytes = full(|plan| plan.traffic.event_bytes = 20_000.0 - 512.0);
    assert!(close(bytes, second * 20_000.0 / 1e6), "{bytes}");
    let slow = full(|plan| plan.traffic.answer_ms = 10_000.0);
    assert!(slow > second / 10.0 * 10.0 / 10.0, "{slow}");
}

#[test]
fn a_load_beyond_the_polls_of_its_event_pollers_fills_its_batches() {
    let fill =
        |events, maximum| estimate(&with_pollers(events, 2, maximum), &native()).load.events.fill;
    assert_eq!((fill(1e6, 2), fill(1e7, 2), fill(1e9, 2)), (1, 6, 10));
    assert_eq!(fill(1e7, 200), 1);
}

#[test]
fn event_pollers_that_stand_by_poll_an_empty_queue() {
    let polls = |plan: &Plan| quantity(&estimate(plan, &native()), "polls that find nothing");
    let idle = traffic(|of| of.events = 0.0);
    assert_eq!(polls(&with_pollers(0.0, 2, 200)), polls(&idle), "not fewer than Lambda by itself");
    assert_eq!(polls(&with_pollers(0.0, 15, 200)), polls(&idle) + 10 * 4_320);
}
