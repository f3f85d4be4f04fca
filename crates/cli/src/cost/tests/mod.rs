//! The estimate against arithmetic by hand, against the production state machine, and against itself.

use adapters::metrics::Splits;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::explain::{Always, Endpoint, explain_jittered};
use delivery::machine::step::{Arrival, End, arrive, settle};
use delivery::subscription::Concurrency;
use delivery::subscription::Subscription;
use delivery::subscription::profile::Dialect;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS};
use delivery::waits::{Kind, Schedule};

mod outage;
mod tuning;

use super::average::hops;
use super::cost_items::CostItem;
use super::estimate::{Estimate, HALF_JITTER, estimate};
use super::load::{DEAD_LETTER_BATCH_SIZE, DEAD_LETTER_MEMORY_MB};
use super::needs;
use super::plan::{Architecture, Deployment, LogLevel, Plan, Pollers, Traffic};
use super::prices::DOLLAR;
use crate::queues::shares_of;

fn plan() -> Plan {
    Plan {
        traffic: Traffic {
            events: 1e6,
            fan_out: 1.0,
            success: 1.0,
            failure: Always::Status(503),
            down_ms: 0,
            down_share: 1.0,
            event_bytes: 1_024.0,
            events_per_message: 1.0,
            publish_batch: 1.0,
            answer_ms: 100.0,
            slow_share: 0.0,
            failing: 0.0,
            rate_limited: None,
            concurrency_limited: None,
        },
        deployment: Deployment {
            batch_window_s: 0,
            concurrency: shares_of(100).expect("a row"),
            events_pollers: None,
            memory_mb: 256,
            account_concurrency: 10,
            nat_gateways: 0.0,
            architecture: Architecture::Arm64,
            log_level: LogLevel::Info,
            topics: 1.0,
            subscriptions: 1.0,
            metrics_per: Splits::default(),
            subscription_changes: 0.0,
            dead_letters_kept_ms: 30 * DAY_MS,
        },
    }
}

fn traffic(change: impl FnOnce(&mut Traffic)) -> Plan {
    let mut plan = plan();
    change(&mut plan.traffic);
    plan
}

fn subscription(dialect: Dialect) -> Subscription {
    Subscription::new("a/b/c".parse().unwrap(), dialect, "https://example.com/".parse().unwrap())
}

fn native() -> Subscription {
    subscription(Dialect::Native)
}

/// The quantity of an item; 0 if there is none.
fn quantity(estimate: &Estimate, what: &str) -> u64 {
    estimate.items.iter().find(|item| item.what == what).map_or(0, |item| item.thousandths / 1_000)
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(1.0)
}

#[test]
fn a_load_without_failures_is_what_a_calculation_by_hand_gives() {
    let estimate = estimate(&plan(), &native());
    assert!(close(estimate.average.attempts, 1.0) && close(estimate.average.messages, 0.0));
    for (what, wanted) in [
        ("events published", 1_000_000),
        ("events received", 1_000_000),
        ("events deleted", 1_000_000),
        ("dispatch invoked", 1_000_000),
        // 1,000,000 × 0.102 s × 0.25 GB
        ("dispatch for events", 25_500),
        ("waits sent", 0),
        ("dead letters written", 0),
        // Four queues without messages: 4 × 5 × 86,400 ÷ 20.
        ("polls that find nothing", 86_400),
    ] {
        assert_eq!(quantity(&estimate, what), wanted, "{what}");
    }
    let published = &estimate.items[0];
    assert_eq!(published.pico_dollars(), DOLLAR * 4 / 10, "a million requests");
    assert_eq!(estimate.total.day, estimate.items.iter().map(CostItem::pico_dollars).sum());
    assert_eq!(estimate.total.million_events, estimate.total.day);
}

#[test]
fn a_window_fills_batches_and_an_event_of_65_kib_is_two_requests() {
    let mut plan = plan();
    // 1,000,000 ÷ 86,400 s × 5 s ÷ 5 pollers = 11.6, deleted ten at a time.
    plan.deployment.batch_window_s = 5;
    let eleven = estimate(&plan, &native());
    assert_eq!(
        (quantity(&eleven, "dispatch invoked"), quantity(&eleven, "events deleted")),
        (90_909, 181_818)
    );
    plan.traffic.event_bytes = 65.0 * 1_024.0;
    let large = estimate(&plan, &native());
    assert_eq!(quantity(&large, "events published"), 2_000_000);
    // Eleven of 65.5 KiB are 720 KiB: as many requests to delete as to receive, and twelve chunks of 64.
    assert_eq!(quantity(&large, "events received"), 1_181_818);
    // Six of 1,000 KiB fit into the 6 MiB of an invocation.
    plan.traffic.event_bytes = 1_000.0 * 1_024.0;
    assert_eq!(quantity(&estimate(&plan, &native()), "dispatch invoked"), 166_667);
}

#[test]
fn an_event_for_more_than_ten_subscriptions_is_received_once_more_per_part() {
    let of = |fan_out| estimate(&traffic(|of| of.fan_out = fan_out), &native());
    for (fan_out, received) in [(10.0, 1_000_000), (11.0, 3_000_000)] {
        assert_eq!(quantity(&of(fan_out), "events received"), received, "{fan_out}");
    }
    // The last one is divided into two parts, which have 101 parts of their own.
    for (fan_out, parts) in [(10.0, 0), (11.0, 2), (1_000.0, 100), (1_001.0, 103)] {
        let sent = quantity(&of(fan_out), "parts sent");
        assert_eq!(sent, parts * 1_000_000 / 10, "{fan_out}");
    }
}

#[test]
fn each_attempt_has_the_next_power_of_the_failure_rate_and_the_last_power_is_dead_lettered() {
    let mut subscription = native();
    subscription.retry.max_attempts = 3;
    subscription.retry.schedule =
        Schedule { kind: Kind::Constant { delay_ms: 5_000 }, max_ms: None };
    let estimate = estimate(&traffic(|of| of.success = 0.9), &subscription);
    let average = &estimate.average;
    assert!(close(average.attempts, 1.0 + 0.1 + 0.01), "{average:?}");
    assert!(
        close(average.waits, 0.11)
            && close(average.messages, 0.11)
            && close(average.dead_letters, 0.001)
    );
    assert_eq!(quantity(&estimate, "waits sent"), 110_000);
    assert_eq!(quantity(&estimate, "dead letters written"), 1_000);
}

#[test]
fn a_destination_that_is_down_for_ever_takes_every_attempt_of_the_policy() {
    let down = traffic(|of| of.down_ms = 14 * DAY_MS);
    for dialect in Dialect::ALL {
        let subscription = subscription(dialect);
        let estimate = estimate(&down, &subscription);
        let endpoint = Endpoint { always: Always::Status(503), retry_after: None };
        let life = explain_jittered(&subscription, &endpoint, 0, HALF_JITTER);
        let attempts = f64::from(u32::try_from(life.attempts.len()).unwrap());
        assert!(close(estimate.average.attempts, attempts), "{dialect:?}: {:?}", estimate.average);
        assert!(close(estimate.average.dead_letters, 1.0), "{dialect:?}");
    }
}

#[test]
fn an_outage_of_a_day_dead_letters_only_what_the_policy_does_not_retry_for_long_enough() {
    // Three attempts at 0, 6 h and 12 h: an event published in the first half of the day loses all
    // three, one of the third quarter two, one of the last quarter one.
    let mut subscription = native();
    subscription.retry.max_attempts = 3;
    subscription.retry.jitter_percent = 0;
    subscription.retry.time_to_live_ms = None;
    subscription.retry.schedule =
        Schedule { kind: Kind::Constant { delay_ms: 6 * HOUR_MS }, max_ms: None };
    let estimate = estimate(&traffic(|of| of.down_ms = DAY_MS), &subscription);
    let average = &estimate.average;
    assert!(close(average.dead_letters, 0.5), "{average:?}");
    assert!(close(average.attempts, 0.5 * 3.0 + 0.25 * 3.0 + 0.25 * 2.0), "{average:?}");
    assert!(close(average.messages, 24.0 * (0.5 * 2.0 + 0.25 * 2.0 + 0.25)), "{average:?}");
    let end =
        estimate.needs.iter().find(|need| need.what == "delayed messages, outage's end").unwrap();
    assert!(close(end.amount, 0.5e6), "those of 12 hours: {end:?}");
}

/// Runs a delivery through the state machine as dispatch does: every message has the delay of the
/// queue, and what arrives early is re-enqueued. Returns attempts and messages.
fn simulated(subscription: &Subscription, status: u16) -> (u32, u32) {
    let event = Event::recall(
        &r#"{"specversion":"1.0","id":"1","source":"/","type":"t"}"#.into(),
        Input::CloudEvents,
    );
    let origin = Origin { message: "m".to_owned(), index: 0 };
    let mut delivery = Delivery::new(event, subscription.name.clone(), origin, 0);
    let (mut now_ms, mut messages) = (0, 0);
    loop {
        let wait_ms = match arrive(&delivery, subscription, now_ms) {
            Arrival::NotDue { wait_ms } => wait_ms,
            Arrival::Ended(_) | Arrival::Forward(_) => return (delivery.attempts, messages),
            Arrival::Attempt => {
                let result =
                    TransportResult::Answered { status, retry_after: None, body: Vec::new() };
                let exchange = Exchange::new(result, now_ms, 0);
                match settle(&mut delivery, subscription, &exchange, now_ms, HALF_JITTER).end {
                    End::Retry { wait_ms } => wait_ms,
                    End::Done | End::DeadLetter(_) | End::ToSink(_) | End::Drop(_) => {
                        return (delivery.attempts, messages);
                    }
                }
            }
        };
        if wait_ms < dispatch::IN_PLACE_BELOW_MS {
            now_ms += wait_ms;
        } else {
            messages += 1;
            now_ms += delivery::waits::delay_seconds(wait_ms) * 1_000;
        }
    }
}

#[test]
fn attempts_and_messages_are_those_of_a_delivery_that_travels_through_the_queue() {
    let down = traffic(|of| of.down_ms = 14 * DAY_MS);
    for dialect in Dialect::ALL {
        let mut subscription = subscription(dialect);
        if dialect == Dialect::Knative {
            subscription.retry.max_attempts = 14;
        }
        let (attempts, messages) = simulated(&subscription, 503);
        let average = estimate(&down, &subscription).average;
        assert!(
            close(average.attempts, f64::from(attempts)),
            "{dialect:?}: {attempts} {average:?}"
        );
        assert!(
            close(average.messages, f64::from(messages)),
            "{dialect:?}: {messages} {average:?}"
        );
    }
}

#[test]
fn a_wait_is_as_many_messages_as_fifteen_minutes_fit_into_it() {
    for (wait_ms, messages) in [
        (0, 0),
        (999, 0),
        (1_000, 1),
        (15 * MINUTE_MS, 1),
        // The rest is waited in place.
        (15 * MINUTE_MS + 999, 1),
        (15 * MINUTE_MS + 1_000, 2),
        (30 * MINUTE_MS, 2),
        (HOUR_MS, 4),
        (3 * HOUR_MS, 12),
        (6 * HOUR_MS, 24),
        (12 * HOUR_MS, 48),
    ] {
        assert_eq!(hops(wait_ms), messages, "{wait_ms}");
    }
}

#[test]
fn a_delay_costs_a_message_for_each_quarter_of_an_hour_and_moves_the_first_attempts() {
    let mut subscription = native();
    for (delay_ms, messages) in [(0, 0), (500, 0), (MINUTE_MS, 1), (HOUR_MS, 4)] {
        subscription.delay_ms = delay_ms;
        let estimate = estimate(&plan(), &subscription);
        let is_wait = u64::from(messages > 0);
        assert!(close(estimate.average.messages, f64::from(messages)), "{delay_ms}");
        assert_eq!(quantity(&estimate, "waits sent"), is_wait * 1_000_000, "{delay_ms}");
        let received = quantity(&estimate, "waits received");
        assert_eq!(received > 0, messages > 0, "{delay_ms}");
        assert!(close(estimate.average.attempts, 1.0), "{delay_ms}");
        let waits: Vec<u32> = estimate.waits.iter().map(|wait| wait.after_attempt).collect();
        assert_eq!(waits.first(), Some(&u32::from(delay_ms == 0)), "{delay_ms}");
    }
}

#[test]
fn with_a_delay_every_attempt_counts_once() {
    let mut subscription = native();
    subscription.retry.max_attempts = 3;
    subscription.retry.jitter_percent = 0;
    for (wait_ms, in_place, after_messages) in [(500, 2.0, 0.0), (MINUTE_MS, 0.0, 2.0)] {
        subscription.retry.schedule =
            Schedule { kind: Kind::Constant { delay_ms: wait_ms }, max_ms: None };
        for (delay_ms, at_once) in [(0, 1.0), (500, 1.0), (HOUR_MS, 0.0)] {
            subscription.delay_ms = delay_ms;
            let average = estimate(&traffic(|of| of.success = 0.0), &subscription).average;
            let case = format!("{wait_ms} {delay_ms}");
            assert!(
                close(average.attempts, 3.0) && close(average.first_at_once(), at_once),
                "{case}"
            );
            assert!(
                close(average.attempts_in_place, in_place),
                "{case}: {}",
                average.attempts_in_place
            );
            let after = after_messages + 1.0 - at_once;
            assert!(close(average.attempts_after_messages(), after), "{case}");
        }
    }
}

#[test]
fn waits_below_a_second_are_waited_in_place_but_not_more_than_five_in_a_row() {
    let mut subscription = native();
    subscription.retry.max_attempts = 8;
    subscription.retry.jitter_percent = 0;
    subscription.retry.schedule = Schedule { kind: Kind::Constant { delay_ms: 500 }, max_ms: None };
    let estimate = estimate(&traffic(|of| of.success = 0.0), &subscription);
    let messages: Vec<u32> = estimate.waits.iter().map(|wait| wait.messages).collect();
    assert_eq!(messages, [0, 0, 0, 0, 0, 1, 0]);
    assert!(
        close(estimate.average.attempts_in_place, 6.0)
            && close(estimate.average.attempts_after_messages(), 1.0)
    );
}

#[test]
fn more_events_more_failures_and_more_subscriptions_never_cost_less() {
    let day = |plan: &Plan| estimate(plan, &subscription(Dialect::EventGrid)).total.day;
    let mut before = 0;
    for events in [0.0, 1.0, 1e3, 1e5, 1e6, 2e6, 1e8, 1e9, 1e11] {
        let now = day(&traffic(|of| of.events = events));
        assert!(now >= before, "{events} events");
        before = now;
    }
    for changes in [
        [1.0, 0.999, 0.99, 0.9, 0.5, 0.0].map(|success| traffic(|of| of.success = success)),
        [0, 1, 6, 12, 24, 48].map(|hours| traffic(|of| of.down_ms = hours * HOUR_MS)),
        [0.0, 0.5, 1.0, 2.0, 10.0, 11.0].map(|fan_out| traffic(|of| of.fan_out = fan_out)),
    ] {
        let costs: Vec<u128> = changes.iter().map(day).collect();
        assert!(costs.is_sorted(), "{costs:?}");
    }
}

#[test]
fn no_delivery_has_more_attempts_than_its_policy_allows() {
    for dialect in Dialect::ALL {
        for success in [0.0, 0.3, 1.0] {
            for hours in [0, 5, 24, 100] {
                let plan = traffic(|of| (of.success, of.down_ms) = (success, hours * HOUR_MS));
                let subscription = subscription(dialect);
                let average = estimate(&plan, &subscription).average;
                let most = f64::from(subscription.retry.max_attempts);
                assert!(
                    average.attempts >= 1.0 - 1e-9 && average.attempts <= most + 1e-9,
                    "{dialect:?} {average:?}"
                );
                assert!(
                    (-1e-9..=1.0 + 1e-9).contains(&average.dead_letters),
                    "{dialect:?} {average:?}"
                );
            }
        }
    }
}

#[test]
fn the_first_bottleneck_is_the_need_closest_to_its_limit_even_when_it_exceeds_it() {
    let mut plan = traffic(|of| (of.events, of.success) = (1e9, 0.9));
    plan.deployment.account_concurrency = 1_000;
    let estimate = estimate(&plan, &native());
    let first = needs::tightest(&estimate.needs).expect("there are limits");
    assert_eq!(first.what, "invocations at once, events");
    assert!(first.share > 1.0, "{first:?}");
}

#[test]
fn an_idle_day_has_no_bottleneck_and_costs_the_polls_of_five_queues_and_an_alarm() {
    let idle = estimate(&traffic(|of| of.events = 0.0), &native());
    assert!(needs::tightest(&idle.needs).is_none());
    // 5 × 5 × 86,400 ÷ 20, at $0.40 a million.
    assert_eq!(quantity(&idle, "polls that find nothing"), 108_000);
    let items: Vec<&str> = idle.items.iter().map(|item| item.what).collect();
    assert_eq!(items, ["polls that find nothing", "alarm"]);
    // A thirtieth of $0.10, rounded to thousandths of an alarm's month.
    assert_eq!(idle.items[1].pico_dollars(), DOLLAR * 33 / 10_000);
}

#[test]
fn an_invocation_that_only_sends_the_next_hop_writes_no_metrics() {
    // Two attempts an hour apart: four messages, of which the last alone brings an attempt.
    let mut subscription = native();
    subscription.retry.max_attempts = 2;
    subscription.retry.jitter_percent = 0;
    subscription.retry.schedule =
        Schedule { kind: Kind::Constant { delay_ms: HOUR_MS }, max_ms: None };
    // So few that each is received alone.
    let plan = traffic(|of| (of.events, of.success) = (1e4, 0.0));
    let retries = estimate(&plan, &subscription).load.retries;
    assert!(close(retries.invocations, 4e4) && close(retries.attempting, 1e4), "{retries:?}");
}

#[test]
fn a_subscription_of_its_own_has_every_metric_but_that_of_unmatched_events() {
    let mut deployment = plan().deployment;
    assert!(close(deployment.metrics(), 10.0), "at most ten combinations by default");
    // Ten more per topic, two of them per outcome and three per reason.
    deployment.metrics_per = Splits { topic: true, outcome: true, subscription: false };
    assert!(close(deployment.metrics(), 10.0 + 10.0 + 2.0 * 5.0 + 3.0 * 2.0));
    (deployment.subscriptions, deployment.metrics_per) = (100.0, Splits::ALL);
    assert!(close(deployment.metrics(), 36.0 + 900.0));
}

/// Sixty processes: as many as the template's concurrency of new events and of retries allows.
fn thirty_five(change: impl FnOnce(&mut Traffic)) -> Plan {
    let mut plan = traffic(|of| (of.events, of.success) = (1e9, 0.9));
    plan.deployment.concurrency = shares_of(50).expect("a row");
    change(&mut plan.traffic);
    plan
}

/// The costs of the table.
fn table(plan: &Plan) -> u128 {
    let items = estimate(plan, &native()).items;
    let table = items.iter().filter(|item| item.what.starts_with("table "));
    table.map(CostItem::pico_dollars).sum()
}

#[test]
fn a_hundred_failing_destinations_cost_thirty_five_processes_less_than_a_dollar_a_day() {
    let plan = thirty_five(|of| of.failing = 100.0);
    let used = estimate(&plan, &native()).load.table;
    // 35 processes × 86,400 s ÷ 30 s.
    assert!(close(used.news, 100_800.0), "{used:?}");
    // 291 probes each: 5 in the first 310 s, then one every five minutes. Each process asks before and after.
    assert!(close(used.questions, 100.0 * 291.0 * 35.0 * 2.0), "{used:?}");
    // Each process finds it out and writes two items; ten claim a probe, one writes its result.
    assert!(close(used.findings, 100.0 * (35.0 * 2.0 + 291.0 * 12.0)), "{used:?}");
    let cost = table(&plan);
    assert!(cost <= DOLLAR * 3 / 4, "{cost}");
    // Those that hang are probed for longer, so the others ask more often.
    let hang = thirty_five(|of| (of.failing, of.failure) = (100.0, Always::Timeout));
    assert!(table(&hang) <= DOLLAR * 6 / 5, "{}", table(&hang));
}

#[test]
fn an_invocation_asks_once_for_the_slots_of_all_its_deliveries_to_a_destination() {
    let of = |limited| estimate(&thirty_five(|of| of.rate_limited = Some(limited)), &native());
    let one = of(1.0).load;
    let invocations = one.events.attempting + one.retries.attempting;
    assert!(close(one.table.slots, invocations), "{one:?}");
    let many = of(1_000.0);
    let attempts = many.load.deliveries * many.average.attempts;
    assert!(close(many.load.table.slots, attempts), "one for each attempt: {:?}", many.load);
    assert!(close(of(0.0).load.table.writes(), 0.0));
}

#[test]
fn the_limits_of_the_subscription_count_unless_an_option_says_how_many_destinations_have_them() {
    let mut subscription = native();
    subscription.destination.max_per_second = Some(10);
    subscription.destination.max_concurrency = Concurrency::of_all(4);
    let of = |options| {
        let plan = traffic(|of| (of.rate_limited, of.concurrency_limited) = (options, options));
        estimate(&plan, &subscription)
    };
    let used = of(None).load.table;
    // For each invocation, one request for slots, and two for permits.
    assert!(close(used.slots, 1e6) && close(used.permits, 2e6), "{used:?}");
    assert!(close(of(Some(0.0)).load.table.writes(), 0.0));
    let limits = |estimate: &Estimate| {
        let named = |need: &&needs::Need| need.what.starts_with("requests ");
        let needs = estimate.needs.iter().filter(named);
        needs.map(|need| (need.what, need.share)).collect::<Vec<_>>()
    };
    // 11.6 requests a second of 100 ms.
    let second = 1e6 / 86_400.0;
    for (options, destinations) in [(None, 1.0), (Some(3.0), 3.0)] {
        let needs = limits(&of(options));
        let [("requests a second", rate), ("requests at once", at_once)] = needs[..] else {
            panic!("{needs:?}")
        };
        assert!(close(rate, second / 10.0 / destinations), "{needs:?}");
        assert!(close(at_once, second * 0.1 / 4.0 / destinations), "{needs:?}");
    }
    assert_eq!(limits(&of(Some(0.0))), []);
    assert_eq!(limits(&estimate(&plan(), &native())), []);
}

#[test]
fn permits_are_taken_and_returned_by_each_invocation_but_not_more_often_than_used() {
    let of = |limited, fan_out| {
        let plan = traffic(|of| (of.concurrency_limited, of.fan_out) = (Some(limited), fan_out));
        estimate(&plan, &native()).load.table.permits
    };
    assert!(close(of(1.0, 1.0), 2e6));
    assert!(close(of(5.0, 1.0), 2e6), "an invocation with one delivery has one destination");
    assert!(close(of(5.0, 10.0), 10e6));
}

#[test]
fn the_news_are_read_twice_a_minute_but_not_more_often_than_invoked() {
    let of = |events| estimate(&traffic(|of| of.events = events), &native()).load.table;
    assert!(close(of(1e5).news, 2_880.0));
    assert!(close(of(7.0).reads(), 3.5) && close(of(0.0).reads(), 0.0));
    // Two processes, and one for waits.
    let fails = traffic(|of| of.success = 0.9);
    assert!(close(estimate(&fails, &native()).load.table.news, 3.0 * 2_880.0));
}

#[test]
fn subscriptions_are_looked_at_twice_a_minute_and_each_process_reads_what_changed() {
    let of = |events, topics, changes| {
        let mut plan = traffic(|of| of.events = events);
        plan.deployment.topics = topics;
        plan.deployment.subscription_changes = changes;
        estimate(&plan, &native()).load.subscriptions
    };
    let looks = (24 * 60 * 60_000 / 28_000) as f64;
    let unchanged = of(1e5, 11.0, 0.0);
    assert!(close(unchanged.lists, looks) && close(unchanged.writes, 0.0), "{unchanged:?}");
    assert!(close(unchanged.reads, 2.0 * looks), "the settings and the publishers: {unchanged:?}");
    assert!(close(of(7.0, 11.0, 0.0).lists, 7.0), "not more often than invoked");
    let few = of(1e5, 10.0, 0.0);
    assert!(close(few.lists, 0.0) && close(few.reads, 12.0 * looks), "{few:?}");
    let changed = of(1e5, 11.0, 1_440.0);
    // One process reads each, and so does the writer before.
    assert!(close(changed.reads - unchanged.reads, 2.0 * 1_440.0), "{changed:?}");
    assert!(close(changed.lists, unchanged.lists) && close(changed.writes, 1_440.0), "{changed:?}");
}

#[test]
fn a_delivery_that_moves_to_the_slow_lane_is_sent_received_and_deleted_once_more() {
    let moved = estimate(&traffic(|of| of.slow_share = 0.25), &native());
    assert_eq!(quantity(&moved, "slow lane"), 750_000);
    assert_eq!(quantity(&moved, "fair queues"), 750_000);
}

/// The defaults here have to follow the template.
#[test]
fn the_defaults_are_those_of_the_template() {
    let template = include_str!("../../../../../template.yaml");
    let default = |name: &str| {
        let (_, after) =
            template.split_once(&format!("\n  {name}:\n")).unwrap_or_else(|| panic!("no {name}"));
        let (_, after) = after.split_once("Default: ").expect("it has a default");
        after.lines().next().unwrap_or_default().trim_matches('"').to_owned()
    };
    let Deployment { batch_window_s, memory_mb, .. } = plan().deployment;
    assert_eq!(default("DispatchBatchWindow"), batch_window_s.to_string());
    assert!(template.contains("BatchSize: !If [HasBatchWindow, 100, 10]\n"));
    assert!(template.contains("Architectures: [arm64]\n"));
    assert_eq!(default("Concurrency"), "10");
    assert_eq!(default("DispatchTimeout"), (crate::lints::DISPATCH_TIMEOUT_MS / 1_000).to_string());
    assert_eq!(default("DispatchMemory"), memory_mb.to_string());
    assert!(template.contains(&format!("MemorySize: {DEAD_LETTER_MEMORY_MB}\n")));
    assert_eq!(default("LogLevel"), "info");
    assert_eq!((default("EventsPollers"), default("MetricsPer")), (String::new(), String::new()));
    assert!(template.contains(&format!("BatchSize: {DEAD_LETTER_BATCH_SIZE}\n")));
    let windows = template.matches("MaximumBatchingWindowInSeconds: !Ref DispatchBatchWindow\n");
    assert_eq!(windows.count(), 2, "of events and of waits");
}
