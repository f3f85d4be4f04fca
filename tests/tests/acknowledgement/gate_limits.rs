//! Limits of a destination leave room for other destinations, and time for the last attempt of each delivery.

use delivery::delivery::{Batching, Delivery};
use delivery::ports::{Clock as _, QueueName, Record};
use delivery::subscription::Concurrency;
use delivery::table::SlotQueue;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::{answers, times_out_after};
use uuid::Uuid;

use crate::examples::{
    EVENT, carried, catalogue_of, delivery, events, limits_item, published_at, record,
    retry_record, subscription, tried,
};
use crate::process::Process;

pub(super) fn copies(original: &Delivery, count: u128, queue: QueueName) -> Vec<Record> {
    let copy = |number| Record {
        queue,
        message: format!("{}{number}", original.subscription),
        ..retry_record(&Delivery { id: Uuid::from_u128(number), ..original.clone() })
    };
    (1..=count).map(copy).collect()
}

pub(super) fn posts_to(ports: &FakePorts, host: &str) -> Vec<u64> {
    let posts = ports.timed_posts();
    let requests = posts.iter().filter(|(_, request)| request.url.host_str() == Some(host));
    requests.map(|(at_ms, _)| *at_ms).collect()
}

#[test]
fn a_sibling_with_a_shared_limit_does_not_let_a_hanging_destination_use_all_room() {
    let mut sibling = subscription("shop/others/s1");
    sibling.destination.max_concurrency = Concurrency::of_all(1);
    sibling.destination.url = "https://s0.example.com/".parse().expect("an address");
    let catalogue =
        catalogue_of([subscription("shop/orders/s0"), sibling, subscription("shop/third/s2")]);
    let ports = FakePorts::new(catalogue)
        .with_reactions("s0.example.com", &[answers(200), times_out_after(30_000)])
        .with_reactions("s2.example.com", &[answers(200)]);
    let process = Process::new(ports.clone());
    process.invoke(&copies(&delivery("shop/others/s1"), 1, QueueName::Slow));
    let began_ms = ports.elapsed_ms();
    let mut records = copies(&delivery("shop/orders/s0"), 500, QueueName::Slow);
    records.extend(copies(&delivery("shop/third/s2"), 1, QueueName::Slow));
    process.invoke(&records);
    let healthy = posts_to(&ports, "s2.example.com");
    assert!(healthy.iter().all(|at_ms| at_ms - began_ms < 1_000), "{healthy:?} since {began_ms}");
}

/// The list starts again after a wait for a permit. The slot is kept.
#[test]
fn a_request_uses_one_slot_also_where_it_needs_a_permit() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_concurrency = Concurrency::of_all(10);
    limited.destination.max_per_second = Some(1);
    let ports =
        FakePorts::new(catalogue_of([limited])).with_reactions("s0.example.com", &[answers(200)]);
    Process::new(ports.clone()).invoke(&[record("m1", EVENT)]);
    let posts = posts_to(&ports, "s0.example.com");
    assert!(posts.len() == 1 && posts[0] < 100, "{posts:?}, {} sent", ports.sent().len());
}

#[test]
fn an_isolated_record_waits_for_a_permit_once_and_is_then_attempted_without_one() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_concurrency = Concurrency::of_all(1);
    let ports = FakePorts::new(catalogue_of([limited.clone()]));
    ports.give_permits_to_another(&limits_item(&limited), 1, 600_000);
    let record = Record { queue: QueueName::Isolation, receives: 2, ..record("m1", EVENT) };
    Process::new(ports.clone()).invoke_for(900_000, &[record]);
    // Its timeout, three seconds, and thirty.
    assert_eq!(ports.requests(), 1);
    assert!(ports.elapsed_ms() < 80_000, "{}", ports.elapsed_ms());
}

/// The attempt alone after a refused batch is made whatever the limits of the policy are.
#[test]
fn the_attempt_alone_after_a_refused_batch_gets_a_slot_after_its_time_to_live() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_per_second = Some(1);
    limited.retry.time_to_live_ms = Some(5_000);
    let ports =
        FakePorts::new(catalogue_of([limited])).with_reactions("s0.example.com", &[answers(200)]);
    let process = Process::new(ports.clone());
    let mut alone = tried();
    alone.batching = Batching::RetryAlone.into();
    for _ in 0..100 {
        let before = ports.sent().len();
        process.invoke(&[retry_record(&alone)]);
        let Some((_, message)) = ports.sent().get(before).cloned() else { break };
        alone = carried(&message);
        ports.advance_ms(message.wait_ms);
    }
    assert_eq!(ports.requests(), 1, "after {} ms", ports.elapsed_ms());
}

#[test]
fn the_spread_after_a_retry_after_leaves_a_delivery_its_last_attempt() {
    let mut brief = subscription("shop/orders/s0");
    brief.retry.time_to_live_ms = Some(100_000);
    brief.destination.probation = false;
    let asks = answers(429).with_retry_after("60");
    let ports = FakePorts::new(catalogue_of([brief]))
        .with_reactions("s0.example.com", &[asks, answers(200)])
        .with_random(u32::MAX);
    let process = Process::new(ports.clone());
    process.invoke(&[record("m1", EVENT)]);
    ports.advance_ms(1_000);
    // Published just now: it lives for 40 s after the destination may be called again.
    let fresh = published_at(ports.now_ms());
    let before = ports.sent().len();
    process.invoke(&[retry_record(&fresh)]);
    let (_, message) = ports.sent()[before].clone();
    ports.advance_ms(message.wait_ms);
    process.invoke(&[retry_record(&carried(&message))]);
    assert_eq!(
        ports.requests(),
        2,
        "it waited {} ms: {:?}",
        message.wait_ms,
        ports.sent().last().map(|(queue, _)| *queue)
    );
}

#[test]
fn a_delivery_that_waits_for_its_turn_is_attempted_within_its_time_to_live() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_concurrency = Concurrency::of_all(1);
    limited.retry.time_to_live_ms = Some(MINUTE_MS);
    let ports = FakePorts::new(catalogue_of([limited.clone()]))
        .with_reactions("s0.example.com", &[answers(200).after_ms(20_000), answers(200)]);
    let process = Process::new(ports.clone());
    // Attempts take twenty seconds, as far as it knows; four others wait, who will not come.
    process.invoke(&copies(&delivery("shop/orders/s0"), 1, QueueName::Slow));
    ports.give_places_to_others(&limits_item(&limited), SlotQueue::Turns, 4, 20_000_000);
    let mut fresh = published_at(ports.now_ms());
    let before = ports.requests();
    let began_ms = ports.now_ms();
    while ports.now_ms() < began_ms + 2 * MINUTE_MS {
        let sent = ports.sent().len();
        process.invoke(&[Record { queue: QueueName::Slow, ..retry_record(&fresh) }]);
        let Some((QueueName::Retry, message)) = ports.sent().get(sent).cloned() else { break };
        fresh = carried(&message);
        ports.advance_ms(message.wait_ms.div_ceil(1_000) * 1_000);
    }
    assert_eq!(ports.requests(), before + 1, "after {} ms", ports.now_ms() - began_ms);
}

#[test]
fn a_slot_is_given_only_to_who_can_come_for_it() {
    let mut brief = subscription("shop/orders/s0");
    brief.destination.max_per_second = Some(1);
    brief.retry.time_to_live_ms = Some(30_000);
    let ports =
        FakePorts::new(catalogue_of([brief])).with_reactions("s0.example.com", &[answers(200)]);
    let process = Process::new(ports.clone());
    process.invoke(&events("m", 50));
    let mut with_slot: Vec<_> =
        ports.sent().into_iter().filter(|(_, message)| carried(message).hold.slots == 1).collect();
    with_slot.sort_by_key(|(_, message)| carried(message).due_ms);
    let sent_at_ms = ports.now_ms();
    for (_, message) in with_slot {
        let delay_ms = message.wait_ms.div_ceil(SECOND_MS) * SECOND_MS;
        let before = ports.requests();
        ports.advance_ms((sent_at_ms + delay_ms).saturating_sub(ports.now_ms()));
        process.invoke(&[retry_record(&carried(&message))]);
        assert_eq!(ports.requests(), before + 1, "its slot was in {} ms", message.wait_ms);
    }
}
