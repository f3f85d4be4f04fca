//! A destination that recovers gets few requests from all processes, and its deliveries are attempted in time.

use delivery::delivery::Delivery;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::shared::{DestinationState, Document as _};
use delivery::ports::{Clock as _, QueueName, Record};
use delivery::subscription::{Concurrency, Subscription};
use delivery::table::{Recovery, Report, Results, SlotQueue, TakePlaces};
use delivery::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};
use lastmile_tests::fake_ports::reactions::{Reaction, answers};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use uuid::Uuid;

use super::gate_limits::{copies, posts_to};
use crate::examples::{
    EVENT, carried, catalogue_of, delivery, events, limits_item, published_at, record,
    retry_record, subscription, tried,
};
use crate::process::Process;

/// A process that knows that the destination of s0 recovers since now; so many deliveries are away.
fn recovering(ports: &FakePorts, subscription: &Subscription, away: i64) -> Process {
    let process = Process::new(ports.clone());
    fail_ten_times(&process);
    assert_eq!(ports.requests(), 10);
    ports.advance_ms(11_000);
    process.invoke(&copies(&tried(), 1, QueueName::Retry));
    assert_eq!(ports.requests(), 11, "the probe");
    // The first that is reported.
    process.invoke(&copies(&tried(), 1, QueueName::Retry));
    assert_eq!(ports.requests(), 12);
    let item = limits_item(subscription);
    let known = ports.change_table(|table, _| table.recovery(&item)).expect("it recovers");
    if away > 0 {
        ports.change_table(|table, now_ms| {
            let nothing = TakePlaces {
                count: 0,
                each_us: 0,
                others_wait: false,
                earliest_ms: now_ms,
                latest_ms: u64::MAX / 1_000,
                plausible_ms: u64::MAX / 1_000,
                report: Some(Report { known, results: Results { away, ..Results::default() } }),
            };
            table.take_places(&item, SlotQueue::Recovery, &nothing, now_ms)
        });
    }
    process
}

fn fail_ten_times(process: &Process) {
    events("f", 10).iter().for_each(|event| drop(process.invoke(std::slice::from_ref(event))));
}

fn fails_ten_times_then(then: &[Reaction]) -> Vec<Reaction> {
    [&vec![answers(503); 10][..], then].concat()
}

/// A process that asks to probe and learns that the destination has recovered keeps to its rate.
#[test]
fn the_first_requests_of_all_processes_after_an_outage_keep_to_the_rate() {
    let mut failed = subscription("shop/orders/s0");
    failed.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([failed]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]));
    let process = Process::new(ports.clone());
    fail_ten_times(&process);
    ports.advance_ms(1_000);
    // Thirty others learn of it.
    let others: Vec<Process> = (0..30).map(|_| Process::new(ports.clone())).collect();
    let due = |number| {
        retry_record(&Delivery {
            attempts: 1,
            id: Uuid::from_u128(number),
            ..delivery("shop/orders/s0")
        })
    };
    for other in &others {
        other.invoke(&[due(1)]);
    }
    assert_eq!(ports.requests(), 10);
    ports.advance_ms(10_000);
    process.invoke(&[due(2)]);
    assert_eq!(ports.requests(), 11, "the probe");
    ports.advance_ms(100);
    let began_ms = ports.elapsed_ms();
    for (number, other) in others.iter().enumerate() {
        other.invoke(&[due(100 + number as u128)]);
    }
    let posts = posts_to(&ports, "s0.example.com");
    let within = posts.iter().filter(|at_ms| (began_ms..began_ms + 1_000).contains(at_ms)).count();
    assert!(within <= 5, "{within} requests within {} ms", ports.elapsed_ms() - began_ms);
}

/// Before the outage there were slots of `maxPerSecond`.
#[test]
fn slots_of_before_an_outage_do_not_count_in_the_recovery() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_per_second = Some(50);
    limited.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([limited.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]));
    let process = recovering(&ports, &limited, 0);
    ports.advance_ms(1_000);
    let began_ms = ports.elapsed_ms();
    // As a second of the line before the outage.
    let mut with_slot = Delivery { due_ms: ports.now_ms(), ..delivery("shop/orders/s0") };
    with_slot.hold.slots = 1;
    process.invoke(&copies(&with_slot, 50, QueueName::Retry));
    let posts = posts_to(&ports, "s0.example.com");
    let within = posts.iter().filter(|at_ms| (began_ms..began_ms + 1_000).contains(at_ms)).count();
    assert!(within <= 5, "{within} within a second");
}

/// A recovery begins with five requests a second, more than this subscription allows.
#[test]
fn a_recovery_is_no_faster_than_the_maximum_rate() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_per_second = Some(1);
    limited.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([limited.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]));
    let process = recovering(&ports, &limited, 0);
    ports.advance_ms(2_000);
    let (began_ms, before) = (ports.elapsed_ms(), ports.requests());
    for _ in 0..10 {
        process.invoke(&copies(&tried(), 1, QueueName::Retry));
    }
    let seconds = (ports.elapsed_ms() - began_ms).div_ceil(1_000) as usize;
    let requests = ports.requests() - before;
    assert!((1..=seconds + 1).contains(&requests), "{requests} requests within {seconds} s");
}

/// Delays are whole seconds, rounded up.
#[test]
fn a_delivery_that_waits_for_a_recovery_comes_back_in_time_for_an_attempt() {
    let mut brief = subscription("shop/orders/s0");
    brief.destination.probation = true;
    brief.retry.time_to_live_ms = Some(MINUTE_MS);
    let ports = FakePorts::new(catalogue_of([brief.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]))
        .with_random(u32::MAX / 2);
    let process = recovering(&ports, &brief, 4_000);
    let fresh = published_at(ports.now_ms());
    // Ten are more than half a second has places for.
    let before = ports.sent().len();
    process.invoke(&copies(&fresh, 10, QueueName::Retry));
    let away: Vec<_> = ports
        .sent_after(before)
        .into_iter()
        .filter(|(_, message)| carried(message).hold.away > 0)
        .collect();
    assert!(!away.is_empty(), "{:?}", ports.sent_after(before));
    let (_, message) = away[0].clone();
    let waits_ms = message.wait_ms.div_ceil(SECOND_MS) * SECOND_MS;
    ports.advance_ms(waits_ms);
    let (requests, sent) = (ports.requests(), ports.sent().len());
    process.invoke(&[retry_record(&carried(&message))]);
    assert_eq!(
        ports.requests(),
        requests + 1,
        "waited {waits_ms}: {:?}",
        ports.sent_after(sent).first().map(|(queue, _)| *queue)
    );
}

/// Requests in so many seconds to a destination that recovers and has a backlog, by a process that handles ten at a time.
fn made_while_recovering(concurrency: Concurrency, seconds: u64) -> (usize, u32) {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_concurrency = concurrency;
    limited.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([limited.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200).after_ms(100)]));
    let process = recovering(&ports, &limited, 0);
    let (before, began_ms) = (ports.requests(), ports.now_ms());
    let mut due: Vec<(u64, Record)> = copies(&tried(), 3_000, QueueName::Retry)
        .into_iter()
        .map(|record| (began_ms, record))
        .collect();
    while ports.now_ms() < began_ms + seconds * SECOND_MS {
        let sent = ports.sent().len();
        let now_ms = ports.now_ms();
        let mut batch = Vec::new();
        due.retain(|(at_ms, record)| {
            let takes = *at_ms <= now_ms && batch.len() < 10;
            if takes {
                batch.push(record.clone());
            }
            !takes
        });
        if batch.is_empty() {
            ports.advance_ms(100);
            continue;
        }
        process.invoke(&batch);
        for (_, message) in ports.sent_after(sent) {
            let at_ms = ports.now_ms() + message.wait_ms.div_ceil(SECOND_MS) * SECOND_MS;
            due.push((at_ms, retry_record(&carried(&message))));
        }
        // The next invocation.
        ports.advance_ms(1);
    }
    let rate = ports
        .change_table(|table, _| table.recovery(&limits_item(&limited)))
        .map_or(0, |recovery| recovery.rate);
    (ports.requests() - before, rate)
}

#[test]
fn a_recovery_is_as_fast_with_permits() {
    let without = made_while_recovering(Concurrency::of_each(50), 120);
    let with = made_while_recovering(Concurrency::of_all(50), 120);
    assert!(with.0 * 10 >= without.0 * 7, "{with:?} with permits, {without:?} without");
}

/// Good responses come in bursts, every ten minutes.
#[test]
fn a_recovery_of_a_destination_with_bursts_ends_within_a_day() {
    let mut recovery = Recovery::beginning(None, NOW_MS);
    let mut now_ms = NOW_MS;
    let mut firsts = Vec::new();
    while now_ms < NOW_MS + DAY_MS && !recovery.is_over(now_ms) {
        let mut left = 500_u32;
        let mut first = None;
        while left > 0 {
            let good = recovery.rate.min(left);
            left -= good;
            now_ms += SECOND_MS;
            let results = Results { good, waits: left > 0, ..Results::default() };
            recovery = recovery.after(results, now_ms);
            first.get_or_insert(recovery.rate);
        }
        firsts.push(first);
        now_ms += 10 * MINUTE_MS;
    }
    assert!(
        recovery.is_over(now_ms),
        "after a day of good responses: {recovery:?}, {:?}",
        &firsts[firsts.len() - 3..]
    );
}

/// A new process asks the item during the day after an outage.
#[test]
fn a_process_that_learns_that_a_recovery_is_over_keeps_to_the_rate() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_per_second = Some(1);
    limited.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([limited.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]));
    let process = Process::new(ports.clone());
    for number in 0..10 {
        process.invoke(&[record(&format!("f{number}"), EVENT)]);
        ports.advance_ms(1_100);
    }
    ports.advance_ms(11_000);
    let due = |number| copies(&tried(), number, QueueName::Retry);
    process.invoke(&due(1));
    assert_eq!(ports.requests(), 11, "the probe");
    ports.advance_ms(2_000);
    process.invoke(&due(1));
    // An hour later nobody remembers the outage but the table.
    ports.advance_ms(60 * MINUTE_MS);
    let other = Process::new(ports.clone());
    let began_ms = ports.elapsed_ms();
    other.invoke(&events("a", 30));
    let posts = posts_to(&ports, "s0.example.com");
    let within = posts.iter().filter(|at_ms| (began_ms..began_ms + 900).contains(at_ms)).count();
    assert!(within <= 1, "{within} within 0.9 s");
}

/// More than a tenth of the responses are failures, whatever the rate is.
#[test]
fn a_recovery_ends_within_a_day_where_an_eighth_always_fails() {
    let (mut recovery, mut now_ms, mut owed) = (Recovery::beginning(None, NOW_MS), NOW_MS, 0_u32);
    let mut highest = 0;
    while now_ms < NOW_MS + DAY_MS && !recovery.is_over(now_ms) {
        now_ms += SECOND_MS;
        owed += recovery.rate;
        let failed = owed / 8;
        owed -= 8 * failed;
        let good = recovery.rate - failed;
        let results = Results { good, failed, waits: true, ..Results::default() };
        recovery = recovery.after(results, now_ms);
        highest = highest.max(recovery.rate);
    }
    assert!(recovery.is_over(now_ms), "a day later, at most {highest} a second: {recovery:?}");
}

/// Deliveries may end while they are away. They do not count as away for the rest of the recovery.
#[test]
fn ended_deliveries_do_not_count_as_waiting_for_a_recovery() {
    let mut failed = subscription("shop/orders/s0");
    failed.destination.probation = true;
    failed.retry.time_to_live_ms = Some(10 * MINUTE_MS);
    let ports = FakePorts::new(catalogue_of([failed.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]))
        .with_random(u32::MAX / 2);
    // A thousand deliveries were away when their time to live ended.
    let process = recovering(&ports, &failed, 1_000);
    let mut longest_ms = Vec::new();
    for burst in 0..30 {
        ports.advance_ms(10 * MINUTE_MS);
        let sent = ports.sent().len();
        let fresh = published_at(ports.now_ms());
        let fresh: Vec<Record> = (0..10)
            .map(|number| {
                retry_record(&Delivery {
                    id: Uuid::from_u128(burst * 100 + number),
                    ..fresh.clone()
                })
            })
            .collect();
        process.invoke(&fresh);
        let mut away: Vec<_> =
            ports.sent_after(sent).into_iter().map(|(_, message)| message).collect();
        longest_ms.push(away.iter().map(|message| message.wait_ms).max().unwrap_or(0));
        away.sort_by_key(|message| message.wait_ms);
        let waits = away.iter().map(|message| message.wait_ms).max().unwrap_or(0);
        ports.advance_ms(waits.div_ceil(SECOND_MS) * SECOND_MS);
        // They are attempted, or end.
        for message in away {
            process.invoke(&[retry_record(&carried(&message))]);
        }
    }
    let last_ms = longest_ms.last().copied().unwrap_or(0);
    assert!(last_ms < 30_000, "five hours later they wait {longest_ms:?}");
}

#[test]
fn a_recovery_with_little_traffic_ends_after_a_quarter_of_an_hour() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([limited.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200).after_ms(50)]));
    let process = recovering(&ports, &limited, 0);
    for number in 0..16 {
        ports.advance_ms(MINUTE_MS);
        process.invoke(&[record(&format!("m{number}"), EVENT)]);
    }
    assert_eq!(ports.requests(), 28);
    let recovery = ports.change_table(|table, _| table.recovery(&limits_item(&limited)));
    assert!(recovery.is_some_and(|state| state.is_over(ports.now_ms())), "{recovery:?}");
}

/// A process that finds ten failures in a row is gone when the destination works again.
#[test]
fn the_first_success_of_another_process_is_the_end_of_a_row_of_failures() {
    let mut without = subscription("shop/orders/s0");
    without.destination.probation = false;
    let ports = FakePorts::new(catalogue_of([without.clone()]))
        .with_reactions("s0.example.com", &fails_ten_times_then(&[answers(200)]));
    let is_failing = || {
        let key = DestinationKey::new("shop", &without.destination.url);
        let text = ports.entry_text(&key.health_item("shop")).expect("it was written");
        DestinationState::read(text.as_bytes()).expect("it is one").is_failing()
    };
    let gone = Process::new(ports.clone());
    fail_ten_times(&gone);
    assert!(is_failing());
    Process::new(ports.clone()).invoke(&[record("m1", EVENT)]);
    assert!(!is_failing());
}
