//! `maxConcurrency` of all functions together: processes take permits from the table, and return
//! them.

use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::Concurrency;
use delivery::subscription::Subscription;
use delivery::table::SlotQueue;
use dispatch::Deadline;
use futures::future::join;
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::{Reaction, answers};

use crate::examples::{
    EVENT, carried, catalogue_of, delivery, events, limits_item, record, retry_record, subscription,
};
use crate::process::Process;

/// A subscription whose destination accepts this many requests at once.
fn limited(most: u32) -> Subscription {
    let mut subscription = subscription("shop/orders/s0");
    subscription.destination.max_concurrency = Concurrency::of_all(most);
    subscription
}

fn ports(most: u32, reactions: &[Reaction]) -> FakePorts {
    let ports = FakePorts::new(catalogue_of([limited(most)]));
    ports.with_reactions("s0.example.com", reactions)
}

/// The number of permits that are given out.
fn given_out(ports: &FakePorts) -> usize {
    ports.change_table(|table, now_ms| table.permits(&limits_item(&limited(1)), now_ms))
}

#[test]
fn one_process_uses_all_permits_and_returns_them() {
    let ports = ports(3, &[answers(200).after_ms(1_000)]);
    Process::new(ports.clone()).invoke(&events("m", 6));
    assert_eq!((ports.requests(), ports.most_requests_at_once()), (6, 3));
    assert!((2_000..2_100).contains(&ports.elapsed_ms()), "{}", ports.elapsed_ms());
    assert_eq!(given_out(&ports), 0);
}

#[test]
fn two_processes_together_make_no_more_requests_at_once() {
    let ports = ports(3, &[answers(200).after_ms(1_000)]);
    let first = Process::new(ports.clone()).dispatch;
    let second = Process::new(ports.clone().with_random(1)).dispatch;
    let (of_first, of_second) = (events("a", 5), events("b", 5));
    let deadline = Deadline::new(ports.now_ms(), ports.now_ms() + 120_000);
    let both = join(first.handle(&of_first, &deadline), second.handle(&of_second, &deadline));
    ports.run(both);
    assert!(ports.most_requests_at_once() <= 3, "{}", ports.most_requests_at_once());
    assert_eq!(ports.requests() + ports.sent().len(), 10, "each was attempted or waits");
}

#[test]
fn turns_depend_on_the_duration_of_attempts_and_two_deliveries_share_a_turn() {
    let ports = ports(1, &[answers(200).after_ms(1_900)]);
    let process = Process::new(ports.clone());
    // The process now knows the duration of an attempt.
    process.invoke(&events("m", 1));
    ports.give_permits_to_another(&limits_item(&limited(1)), 1, 90_000);
    process.invoke(&events("a", 5));
    let sent = ports.sent();
    assert_eq!((ports.requests(), sent.len()), (1, 5));
    assert!(sent.iter().all(waits_for_its_turn), "{sent:?}");
    let mut waits_ms: Vec<u64> = sent.iter().map(|(_, message)| message.wait_ms / 100).collect();
    waits_ms.sort_unstable();
    assert_eq!(waits_ms, [21, 21, 65, 65, 109]);
}

#[test]
fn a_new_delivery_waits_behind_the_line_though_a_permit_is_free() {
    let ports = ports(3, &[answers(200)]);
    ports.give_places_to_others(&limits_item(&limited(1)), SlotQueue::Turns, 4, 500_000);
    Process::new(ports.clone()).invoke(&events("a", 1));
    let sent = ports.sent();
    assert_eq!((ports.requests(), sent.len(), given_out(&ports)), (0, 1, 0));
    assert!((2_000..2_300).contains(&sent[0].1.wait_ms), "{}", sent[0].1.wait_ms);
}

fn waits_for_its_turn((queue, message): &(QueueName, Message)) -> bool {
    let delivery = carried(message);
    let is_uncounted = (delivery.attempts, delivery.hold.permits) == (0, 1);
    *queue == QueueName::Retry && message.wait_ms > 1_000 && is_uncounted
}

#[test]
fn a_process_that_is_killed_keeps_others_waiting_for_its_timeout_and_five_seconds_at_most() {
    let ports = ports(1, &[answers(200).after_ms(20_000), answers(200)]);
    let killed = Process::new(ports.clone()).dispatch;
    let deadline = Deadline::new(ports.now_ms(), ports.now_ms() + 120_000);
    let records = events("a", 1);
    ports.run(async {
        futures::future::select(
            std::pin::pin!(killed.handle(&records, &deadline)),
            std::pin::pin!(ports.sleep(1_000)),
        )
        .await;
    });
    drop(killed);
    assert_eq!((ports.requests(), given_out(&ports)), (1, 1));
    let (other, timeout_ms) = (Process::new(ports.clone().with_random(1)), 30_000);
    let mut waiting = delivery("shop/orders/s0");
    waiting.hold.permits = 1;
    while ports.requests() == 1 {
        let before = ports.sent().len();
        other.invoke(&[retry_record(&waiting)]);
        if let Some((_, message)) = ports.sent().get(before) {
            waiting = carried(message);
            ports.advance_ms(message.wait_ms);
        }
    }
    assert!(ports.elapsed_ms() <= timeout_ms + 5_000, "{} ms", ports.elapsed_ms());
}

/// Handles a delivery whose turn has come, while another process has the permit. Also returns the
/// duration of the invocation.
fn waits_in_place(given_ms: u64) -> (FakePorts, u64) {
    let ports = ports(1, &[answers(200)]);
    ports.give_permits_to_another(&limits_item(&limited(1)), 1, given_ms);
    let mut waited = delivery("shop/orders/s0");
    waited.hold.permits = 1;
    let record = retry_record(&waited);
    Process::new(ports.clone()).invoke(&[record]);
    (ports.clone(), ports.elapsed_ms())
}

#[test]
fn a_delivery_whose_turn_has_come_asks_for_a_permit_each_second() {
    let (ports, took_ms) = waits_in_place(1_500);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    assert!((2_000..2_500).contains(&took_ms), "{took_ms}");
}

#[test]
fn a_delivery_whose_turn_has_come_waits_some_seconds_in_place_and_then_as_a_message() {
    let (ports, took_ms) = waits_in_place(33_000);
    assert_eq!(ports.requests(), 0);
    assert!((2_000..4_500).contains(&took_ms), "{took_ms}");
    let [(queue, message)] = &ports.sent()[..] else { panic!("one message") };
    let waiting = carried(message);
    assert_eq!((*queue, waiting.attempts, waiting.hold.permits), (QueueName::Retry, 0, 2));
    // The delivery gets another turn.
    assert_eq!(message.wait_ms, 575);
}

/// Handles a record in isolation, while another process has the permit for this time. Returns the
/// number of requests, and the duration of the invocation.
fn isolated(given_ms: u64) -> (usize, u64) {
    let ports = ports(1, &[answers(200)]);
    ports.give_permits_to_another(&limits_item(&limited(1)), 1, given_ms);
    let record = Record { queue: QueueName::Isolation, receives: 2, ..record("m1", EVENT) };
    Process::new(ports.clone()).invoke(&[record]);
    assert_eq!(ports.sent().len(), 0);
    (ports.requests(), ports.elapsed_ms())
}

#[test]
fn an_isolated_record_waits_in_place_for_a_permit_but_not_for_ever() {
    let (requests, took_ms) = isolated(20_000);
    assert_eq!(requests, 1);
    assert!((20_000..22_000).contains(&took_ms), "{took_ms}");
    // The record waits as long as there is time for its attempt.
    let (requests, took_ms) = isolated(600_000);
    assert_eq!(requests, 1);
    assert!((60_000..120_000).contains(&took_ms), "{took_ms}");
}

#[test]
fn a_probe_needs_no_permit() {
    let ports = ports(1, &[answers(503)]);
    let process = Process::new(ports.clone());
    for number in 0..10 {
        process.invoke(&events(&format!("m{number}"), 1));
    }
    assert_eq!(ports.requests(), 10);
    ports.give_permits_to_another(&limits_item(&limited(1)), 1, 90_000);
    ports.advance_ms(10_000);
    let due = retry_record(&delivery("shop/orders/s0"));
    process.invoke(&[due]);
    assert_eq!(ports.requests(), 11);
}

#[test]
fn without_the_table_each_process_keeps_to_its_share() {
    let ports = ports(6, &[answers(200).after_ms(1_000)]);
    ports.set_table_unreachable(true);
    let process = Process::one_of(3, ports.clone());
    process.invoke(&events("m", 6));
    assert_eq!((ports.requests(), ports.most_requests_at_once()), (6, 2));
}

#[test]
fn a_permit_is_valid_for_as_long_as_the_attempt_may_take() {
    let mut patient = limited(1);
    patient.destination.response_timeout_ms = 100_000;
    let ports = FakePorts::new(catalogue_of([patient]))
        .with_reactions("s0.example.com", &[answers(200).after_ms(90_000)]);
    let first = Process::new(ports.clone()).dispatch;
    let second = Process::new(ports.clone().with_random(1)).dispatch;
    let slow = Record { queue: QueueName::Slow, ..retry_record(&delivery("shop/orders/s0")) };
    let (of_first, of_second) = ([slow], events("b", 1));
    // The deadline leaves enough time for both attempts.
    let deadline = Deadline::new(ports.now_ms(), ports.now_ms() + 300_000);
    let later = async {
        ports.sleep(80_000).await;
        second.handle(&of_second, &deadline).await
    };
    ports.run(join(first.handle(&of_first, &deadline), later));
    assert_eq!((ports.requests(), ports.most_requests_at_once()), (1, 1));
}

#[test]
fn a_destination_whose_file_says_nothing_asks_for_no_permit() {
    let ports = FakePorts::new(catalogue_of([subscription("shop/orders/s0")]));
    Process::new(ports.clone()).invoke(&events("m", 6));
    assert_eq!((ports.requests(), ports.table_requests()), (6, 1), "the news");
}

#[test]
fn a_delivery_takes_one_request_for_a_permit_and_one_to_return_it() {
    let ports = ports(1, &[answers(200).after_ms(1_000)]);
    Process::new(ports.clone()).invoke(&events("a", 1));
    assert_eq!((ports.table_requests(), given_out(&ports)), (3, 0), "the news, and these");
}

#[test]
fn without_the_table_some_processes_have_one_of_a_few_permits_and_others_none() {
    for (random, requests) in [(0, 1), (1, 1), (2, 0), (3, 1), (5, 0)] {
        let ports = ports(2, &[answers(200)]).with_random(random);
        ports.set_table_unreachable(true);
        Process::one_of(3, ports.clone()).invoke(&events("m", 1));
        assert_eq!(ports.requests(), requests, "the process with {random}");
    }
}
