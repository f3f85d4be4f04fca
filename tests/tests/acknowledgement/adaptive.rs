//! Adaptive concurrency: an overloaded destination gets fewer requests at once, and none while
//! `Retry-After` lasts.

use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::Concurrency;
use delivery::subscription::Subscription;
use delivery::subscription::profile::{Dialect, Profile};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, times_out_after};

use crate::examples::{
    EVENT, carried, catalogue_of, delivery, events, large, record, retry_record, subscription,
};
use crate::process::Process;

/// A process with the topics shop/orders, whose s0 has these reactions, and shop/others with s1.
fn process(s0: Subscription, reactions: &[Reaction]) -> Process {
    let ports = FakePorts::new(catalogue_of([s0, subscription("shop/others/s1")]));
    Process::new(ports.with_reactions("s0.example.com", reactions))
}

fn process_of(reactions: &[Reaction]) -> Process {
    process(subscription("shop/orders/s0"), reactions)
}

/// A process whose destination answers 503 after half a minute, so that it gets one request at
/// once.
fn process_of_one_at_once() -> Process {
    let mut busy = subscription("shop/orders/s0");
    busy.destination.probation = false;
    let process = process(busy, &[answers(503).after_ms(30_000)]);
    (0..3).for_each(|_| _ = invoke(&process, &[slow_record(0), slow_record(0)]));
    process
}

/// Runs one invocation. Returns its messages, the number of its requests, and its duration.
fn invoke(process: &Process, records: &[Record]) -> (Vec<(QueueName, Message)>, usize, u64) {
    let requests = process.ports.requests();
    // Requests that began when the limit was halved do not count.
    process.ports.advance_ms(1);
    let (sent, took_ms) = process.timed_invoke(records);
    (sent, process.ports.requests() - requests, took_ms)
}

/// The maximum number of concurrent requests of an invocation with this many events.
fn most_at_once(process: &Process, count: usize) -> usize {
    process.ports.forget_requests_at_once();
    invoke(process, &events("m", count));
    process.ports.most_requests_at_once()
}

/// A delivery in the slow queue that has waited for its turn this many times.
fn slow_record(turns: u32) -> Record {
    let mut waited = delivery("shop/orders/s0");
    waited.hold.turns = turns;
    Record { queue: QueueName::Slow, ..retry_record(&waited) }
}

/// The number of deliveries that wait for a turn as a message, for this many seconds.
fn wait_for_a_turn(sent: &[(QueueName, Message)], seconds: u64) -> usize {
    let waits = |(queue, message): &&(QueueName, Message)| {
        let delivery = carried(message);
        let is_uncounted = (delivery.attempts, u64::from(delivery.hold.turns)) == (0, seconds);
        *queue == QueueName::Retry && message.wait_ms == seconds * 1_000 && is_uncounted
    };
    sent.iter().filter(waits).count()
}

#[test]
fn each_invocation_with_many_503_halves_the_requests_of_the_next_and_successes_restore_them() {
    let busy = answers(503).after_ms(100);
    let (fails, recovers) = (vec![busy; 6], answers(200).after_ms(100));
    let process = process_of(&[&fails[..], &[recovers]].concat());
    for _ in 0..3 {
        invoke(&process, &events("m", 2));
    }
    assert_eq!(most_at_once(&process, 1), 1);
    // The limit falls 10 → 5 → 2 → 1. It rises by one after as many successes as it allows
    // requests.
    let limits: Vec<usize> = (0..6).map(|_| most_at_once(&process, 10)).collect();
    assert!(limits.windows(2).all(|pair| pair[0] <= pair[1]), "{limits:?}");
    assert!(limits[0] < 5 && limits[5] == 10, "{limits:?}");
}

#[test]
fn the_first_answers_limit_the_rest_of_the_invocation() {
    let mut of_twenty = subscription("shop/orders/s0");
    of_twenty.destination.max_concurrency = Concurrency::of_each(20);
    of_twenty.destination.probation = false;
    of_twenty.destination.slow_after_ms = 3_000;
    let busy = vec![answers(503).after_ms(100); 20];
    let process = process(of_twenty, &[&busy[..], &[answers(200).after_ms(2_500)]].concat());
    // Twenty requests run at once, then ten and ten. The other deliveries wait for three seconds
    // after the overload is known.
    let (sent, requests, took_ms) = invoke(&process, &events("m", 60));
    assert_eq!((requests, wait_for_a_turn(&sent, 1), took_ms), (40, 20, 5_100));
}

#[test]
fn the_slow_lane_attempts_few_deliveries_to_a_destination_that_hangs() {
    let process = process_of(&[times_out_after(30_000)]);
    let batch: Vec<Record> = (0..10).map(|_| slow_record(0)).collect();
    for (attempted, turns) in [(10, 0), (5, 5), (5, 5)] {
        let (sent, requests, took_ms) = invoke(&process, &batch);
        assert_eq!((requests, wait_for_a_turn(&sent, 1), took_ms), (attempted, turns, 30_000));
    }
}

#[test]
fn a_delivery_too_large_for_a_message_is_attempted_after_a_wait_in_place() {
    let process = process_of_one_at_once();
    let large = [record("m1", &large()), record("m2", &large())];
    let (_, requests, took_ms) = invoke(&process, &large);
    // The second attempt begins after two seconds.
    assert_eq!((requests, took_ms), (2, 32_000));
}

#[test]
fn retry_after_of_one_answer_holds_for_all_other_deliveries_of_its_destination() {
    let asks = answers(429).with_retry_after("7");
    let process = process_of(&[asks, answers(200)]);
    invoke(&process, &events("m", 1));
    process.ports.advance_ms(2_000);
    let other = retry_record(&delivery("shop/orders/s0"));
    let (sent, requests, _) = invoke(&process, &[other, record("m2", EVENT)]);
    assert_eq!((requests, sent.len()), (0, 2));
    for (queue, message) in &sent {
        let waiting = carried(message);
        assert_eq!((*queue, waiting.attempts), (QueueName::Retry, 0));
        // The deliveries are spread over the time that they waited.
        assert!((4_999..9_998).contains(&message.wait_ms), "{}", message.wait_ms);
        assert_eq!(waiting.due_ms, process.ports.now_ms() + message.wait_ms);
        assert_eq!((waiting.hold, waiting.history.newest()), (Default::default(), None));
    }
    process.ports.advance_ms(5_000);
    assert_eq!(invoke(&process, &[record("m2", EVENT)]).1, 1);
}

#[test]
fn retry_after_also_holds_for_a_delivery_that_waited_for_its_turn() {
    let mut one_at_once = subscription("shop/orders/s0");
    one_at_once.destination.max_concurrency = Concurrency::of_each(1);
    let asks = answers(429).with_retry_after("7").after_ms(500);
    let process = process(one_at_once, &[asks, answers(200)]);
    let (sent, requests, _) = invoke(&process, &events("m", 2));
    let waits = sent.iter().map(|(_, message)| (carried(message).attempts, message.wait_ms));
    assert_eq!(requests, 1);
    assert!(waits.clone().any(|wait| wait == (0, 7_000)), "{:?}", waits.collect::<Vec<_>>());
}

#[test]
fn an_earlier_success_does_not_end_a_retry_after_and_other_destinations_are_not_held() {
    let asks = answers(503).with_retry_after("60").after_ms(100);
    let process = process_of(&[asks, answers(200).after_ms(500)]);
    invoke(&process, &events("m", 2));
    let of_s1 = Record { topic: Some("shop/others".to_owned()), ..record("m3", EVENT) };
    let (sent, requests, _) = invoke(&process, &[record("m2", EVENT), of_s1]);
    let waits: Vec<u64> = sent.iter().map(|(_, message)| message.wait_ms).collect();
    assert_eq!((requests, waits), (1, vec![59_599]));
}

#[test]
fn retry_after_holds_for_as_long_as_the_policy_obeys_it() {
    for (most_ms, held_ms) in [(3_600_000, Some(3_599_999)), (5_000, Some(4_999)), (0, None)] {
        let mut obedient = subscription("shop/orders/s0");
        obedient.retry.retry_after_max_ms = most_ms;
        let asks = answers(429).with_retry_after("100000");
        let process = process(obedient, &[asks, answers(200)]);
        invoke(&process, &events("m", 1));
        let (sent, ..) = invoke(&process, &[record("m2", EVENT)]);
        assert_eq!(sent.first().map(|(_, message)| message.wait_ms), held_ms, "{most_ms}");
    }
}

#[test]
fn an_event_grid_subscription_obeys_retry_after_and_waits_for_nothing_that_its_table_asks() {
    let waits_ms = |asks: Option<&str>| {
        let mut event_grid = subscription("shop/orders/s0");
        event_grid.retry = Profile::for_dialect(Dialect::EventGrid).retry;
        let busy = answers(503);
        let busy = asks.map_or(busy.clone(), |seconds| busy.with_retry_after(seconds));
        let process = process(event_grid, &[busy, answers(200)]);
        invoke(&process, &events("m", 1));
        let (sent, ..) = invoke(&process, &[record("m2", EVENT)]);
        sent.first().map(|(_, message)| message.wait_ms)
    };
    assert_eq!(waits_ms(Some("7")), Some(6_999));
    // The least wait of a 503 applies only to its own delivery.
    assert_eq!(waits_ms(None), None);
}

#[test]
fn while_a_destination_asks_to_be_left_alone_what_cannot_wait_is_attempted() {
    let process = process_of(&[answers(503).with_retry_after("60"), answers(200)]);
    invoke(&process, &events("m", 1));
    let (sent, requests, _) = invoke(&process, &[record("m2", &large()), record("m3", EVENT)]);
    assert_eq!((requests, sent.len()), (1, 1));
}
