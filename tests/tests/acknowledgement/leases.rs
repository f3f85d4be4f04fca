//! `maxConcurrency` of all functions together: permits are leased, and returned.

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::permits::{Permits, Wanted};
use delivery::delivery::health::shared::Document as _;
use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::Concurrency;
use delivery::subscription::Subscription;
use dispatch::{Deadline, Dispatch};
use futures::future::join;
use uuid::Uuid;

use super::reactions::{Reaction, answers};
use super::{EVENT, carried, delivery, retry_record, subscription};
use crate::fake_ports::{FakePorts, catalogue_of, container, record};

/// A destination that takes this many requests at once.
fn limited(most: u32) -> Subscription {
    let mut subscription = subscription("shop/orders/s0");
    subscription.destination.max_concurrency = Concurrency::of_all(most);
    subscription
}

fn ports(most: u32, reactions: &[Reaction]) -> FakePorts {
    let ports = FakePorts::new(catalogue_of([limited(most)]));
    ports.with_reactions("s0.example.com", reactions)
}

fn process(ports: &FakePorts) -> Dispatch<FakePorts> {
    Dispatch::new(ports.clone(), container(), None)
}

fn events(name: &str, count: u32) -> Vec<Record> {
    (0..count).map(|number| record(&format!("{name}{number}"), EVENT)).collect()
}

fn deadline(ports: &FakePorts) -> Deadline {
    Deadline::new(ports.now_ms(), ports.now_ms() + 120_000)
}

fn document() -> String {
    DestinationKey::of(&limited(1).destination.url).permits_document()
}

/// How many permits are left, of so many.
fn left(ports: &FakePorts, most: u32) -> u32 {
    let text = ports.shared_document(&document()).expect("it was written");
    let mut permits = Permits::read(text.as_bytes()).expect("it is one");
    let wanted = Wanted { new: 0, waited: most, in_use: 0, until_ms: u64::MAX };
    // Later than anybody was short of them.
    permits.lease(Uuid::nil(), wanted, most, ports.now_ms()).permits
}

#[test]
fn one_process_uses_all_permits_and_returns_them() {
    let ports = ports(3, &[answers(200).after_ms(1_000)]);
    let (records, deadline) = (events("m", 6), deadline(&ports));
    assert_eq!(ports.run(process(&ports).handle(&records, &deadline)), [""; 0]);
    assert_eq!((ports.requests(), ports.most_requests_at_once()), (6, 3));
    assert!((2_000..2_100).contains(&ports.elapsed_ms()), "{}", ports.elapsed_ms());
    assert_eq!(left(&ports, 3), 3);
}

#[test]
fn two_processes_together_make_no_more_requests_at_once() {
    let ports = ports(3, &[answers(200).after_ms(1_000)]);
    let (first, second) = (process(&ports), process(&ports.clone().with_random(1)));
    let (of_first, of_second) = (events("a", 5), events("b", 5));
    let deadline = deadline(&ports);
    let both = join(first.handle(&of_first, &deadline), second.handle(&of_second, &deadline));
    ports.run(both);
    assert!(ports.most_requests_at_once() <= 3, "{}", ports.most_requests_at_once());
    assert_eq!(ports.requests() + ports.sent().len(), 10, "each was attempted or waits");
}

#[test]
fn what_has_to_wait_gets_a_turn_of_its_own_by_how_long_attempts_take() {
    let ports = ports(3, &[answers(200)]);
    let mut permits = Permits::default();
    permits.note_taken(9_000, ports.now_ms());
    let until_ms = ports.now_ms() + 90_000;
    let wanted = Wanted { new: 0, waited: 3, in_use: 0, until_ms };
    permits.lease(Uuid::max(), wanted, 3, ports.now_ms());
    ports.set_shared_document(&document(), &permits.write());
    ports.run(process(&ports).handle(&events("a", 5), &deadline(&ports)));
    let sent = ports.sent();
    assert_eq!((ports.requests(), sent.len()), (0, 5));
    assert!(sent.iter().all(waits_for_its_turn), "{sent:?}");
    let mut waits_ms: Vec<u64> = sent.iter().map(|(_, message)| message.wait_ms / 100).collect();
    waits_ms.sort_unstable();
    assert_eq!(waits_ms, [34, 69, 103, 137, 172]);
}

fn waits_for_its_turn((queue, message): &(QueueName, Message)) -> bool {
    let delivery = carried(message);
    let is_uncounted = (delivery.attempts, delivery.hold.permits) == (0, 1);
    *queue == QueueName::Retry && message.wait_ms > 1_000 && is_uncounted
}

#[test]
fn how_long_an_attempt_took_is_told_when_its_permit_is_returned() {
    let ports = ports(1, &[answers(200).after_ms(1_000)]);
    ports.run(process(&ports).handle(&events("a", 1), &deadline(&ports)));
    let text = ports.shared_document(&document()).expect("it was written");
    assert!(text.contains(r#""leases":[]"#) && text.contains(r#""takes_ms":1000}"#), "{text}");
}

#[test]
fn one_after_the_other_in_one_process_needs_no_turns() {
    let ports = ports(1, &[answers(200).after_ms(1_000)]);
    ports.run(process(&ports).handle(&events("a", 5), &deadline(&ports)));
    assert_eq!((ports.requests(), ports.most_requests_at_once()), (5, 1));
    assert!(ports.elapsed_ms() < 5_200, "{}", ports.elapsed_ms());
    let text = ports.shared_document(&document()).expect("it was written");
    assert!(text.contains(r#""turns_until_us":0"#), "{text}");
}

#[test]
fn a_process_that_is_gone_keeps_its_permits_until_its_lease_is_over() {
    let ports = ports(1, &[answers(200)]);
    lease_to_another(&ports, 90_000);
    let process = process(&ports);
    ports.run(process.handle(&events("a", 1), &deadline(&ports)));
    assert_eq!((ports.requests(), ports.sent().len()), (0, 1));
    ports.advance_ms(90_000);
    ports.run(process.handle(&events("b", 1), &deadline(&ports)));
    assert_eq!((ports.requests(), ports.sent().len()), (1, 1));
}

/// Another process has the only permit, for so long.
fn lease_to_another(ports: &FakePorts, lasts_ms: u64) {
    let mut permits = Permits::default();
    let until_ms = ports.now_ms() + lasts_ms;
    let wanted = Wanted { new: 0, waited: 1, in_use: 0, until_ms };
    permits.lease(Uuid::max(), wanted, 1, ports.now_ms());
    ports.set_shared_document(&document(), &permits.write());
}

/// A delivery whose turn has come, while another process has the permit; how long the invocation took.
fn waits_in_place(leased_ms: u64) -> (FakePorts, u64) {
    let ports = ports(1, &[answers(200)]);
    lease_to_another(&ports, leased_ms);
    let mut waited = delivery("shop/orders/s0");
    waited.hold.permits = 1;
    let record = retry_record(&waited);
    assert_eq!(ports.run(process(&ports).handle(&[record], &deadline(&ports))), [""; 0]);
    (ports.clone(), ports.elapsed_ms())
}

#[test]
fn whose_turn_has_come_asks_each_second_for_the_permit_of_another_process() {
    let (ports, took_ms) = waits_in_place(2_500);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    assert!((3_000..3_500).contains(&took_ms), "{took_ms}");
}

#[test]
fn whose_turn_has_come_waits_five_seconds_in_place_and_then_as_a_message() {
    let (ports, took_ms) = waits_in_place(90_000);
    assert_eq!(ports.requests(), 0);
    assert!((5_000..6_500).contains(&took_ms), "{took_ms}");
    let [(queue, message)] = &ports.sent()[..] else { panic!("one message") };
    let waiting = carried(message);
    assert_eq!((*queue, waiting.attempts, waiting.hold.permits), (QueueName::Retry, 0, 2));
    assert_eq!(message.wait_ms, 1_000);
}

#[test]
fn a_probe_needs_no_permit() {
    let ports = ports(1, &[answers(503)]);
    let process = process(&ports);
    for number in 0..10 {
        ports.run(process.handle(&events(&format!("m{number}"), 1), &deadline(&ports)));
    }
    assert_eq!(ports.requests(), 10);
    lease_to_another(&ports, 90_000);
    ports.advance_ms(10_000);
    let due = retry_record(&delivery("shop/orders/s0"));
    ports.run(process.handle(&[due], &deadline(&ports)));
    assert_eq!(ports.requests(), 11);
}

#[test]
fn while_one_destination_fails_others_need_permits_as_before() {
    let ports = FakePorts::new(catalogue_of([limited(1), subscription("shop/others/s1")]))
        .with_reactions("s1.example.com", &[answers(503)]);
    let process = process(&ports);
    for event in events("m", 10) {
        let of_s1 = Record { topic: Some("shop/others".to_owned()), ..event };
        ports.run(process.handle(&[of_s1], &deadline(&ports)));
    }
    lease_to_another(&ports, 90_000);
    ports.run(process.handle(&events("a", 1), &deadline(&ports)));
    assert_eq!(ports.requests(), 10);
}

#[test]
fn without_storage_each_process_keeps_to_its_share() {
    let ports = ports(6, &[answers(200).after_ms(1_000)]);
    ports.set_shared_unreachable(true);
    let process = process(&ports).with_max_concurrency(3);
    ports.run(process.handle(&events("m", 6), &deadline(&ports)));
    assert_eq!((ports.requests(), ports.most_requests_at_once()), (6, 2));
}

#[test]
fn without_storage_some_processes_have_one_of_a_few_permits_and_others_none() {
    for (random, requests) in [(0, 1), (1, 1), (2, 0), (3, 1), (5, 0)] {
        let ports = ports(2, &[answers(200)]).with_random(random);
        ports.set_shared_unreachable(true);
        let process = process(&ports).with_max_concurrency(3);
        ports.run(process.handle(&events("m", 1), &deadline(&ports)));
        assert_eq!(ports.requests(), requests, "the process with {random}");
    }
}

#[test]
fn a_permit_is_leased_for_as_long_as_the_attempt_may_take() {
    let mut patient = limited(1);
    patient.destination.response_timeout_ms = 100_000;
    let ports = FakePorts::new(catalogue_of([patient]))
        .with_reactions("s0.example.com", &[answers(200).after_ms(90_000)]);
    let (first, second) = (process(&ports), process(&ports.clone().with_random(1)));
    let slow = Record { queue: QueueName::Slow, ..retry_record(&delivery("shop/orders/s0")) };
    let (of_first, of_second) = ([slow], events("b", 1));
    // Time enough for both.
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
    ports.run(process(&ports).handle(&events("m", 6), &deadline(&ports)));
    assert_eq!((ports.requests(), ports.shared_document(&document())), (6, None));
}
