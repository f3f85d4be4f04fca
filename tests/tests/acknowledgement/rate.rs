//! `maxPerSecond`: a delivery over the rate waits for its own slot, which any process honours.

use std::collections::BTreeMap;

use delivery::delivery::{Delivery, Hold};
use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::{Batch, OnRefused, Subscription};
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, Hanging, NOW_MS};

use crate::examples::{
    EVENT, carried, catalogue_of, delivery, events, record, retry_record, subscription,
};
use crate::process::Process;

/// A process with the topic shop/orders, whose destination accepts this many requests a second.
fn process(per_second: u32) -> Process {
    Process::new(FakePorts::new(catalogue_of([limited(per_second)])))
}

fn limited(per_second: u32) -> Subscription {
    let mut subscription = subscription("shop/orders/s0");
    subscription.destination.max_per_second = Some(per_second);
    subscription
}

/// The number of deliveries that wait for each second after the start.
fn waits(sent: &[(QueueName, Message)]) -> BTreeMap<u64, usize> {
    let mut waits = BTreeMap::new();
    for (queue, message) in sent {
        let delivery = carried(message);
        assert_eq!((*queue, delivery.attempts, delivery.hold.slots), (QueueName::Retry, 0, 1));
        *waits.entry((delivery.due_ms - NOW_MS) / 1_000).or_default() += 1;
    }
    waits
}

#[test]
fn deliveries_over_the_rate_wait_for_the_next_free_second_and_are_not_counted() {
    let process = process(2);
    let sent = process.invoke(&events("m", 10));
    // One request is made at once, and two later in place, one each half second.
    assert_eq!((process.ports.requests(), process.ports.elapsed_ms()), (3, 1_005));
    assert_eq!(waits(&sent), BTreeMap::from([(1, 1), (2, 2), (3, 2), (4, 2)]));
    assert_eq!(process.ports.table_requests(), 1 + 1, "the news, and one question for all");
}

#[test]
fn a_delivery_that_missed_its_slot_gets_one_more_and_is_then_attempted() {
    let process = process(1);
    // The slots of the next seconds are taken.
    assert_eq!(waits(&process.invoke(&events("m", 5))).len(), 3);
    let hold = Hold { slots: 1, ..Hold::default() };
    let late = Delivery { hold, due_ms: NOW_MS - 5_000, ..delivery("shop/orders/s0") };
    let sent = process.invoke(&[retry_record(&late)]);
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    let again = carried(message);
    assert_eq!((again.due_ms, again.hold.slots), (NOW_MS + 5_005, 2));
    process.ports.advance_ms(60_000);
    let before = process.ports.requests();
    assert!(process.invoke(&[retry_record(&again)]).is_empty());
    assert_eq!(process.ports.requests(), before + 1);
}

#[test]
fn processes_share_the_rate() {
    let first = process(2);
    let second = Process::new(first.ports.clone());
    first.invoke(&events("m", 4));
    assert_eq!((first.ports.requests(), first.ports.elapsed_ms()), (3, 1_005));
    let sent = second.invoke(&events("m", 4));
    // The second process waits behind the two seconds of the first four deliveries.
    assert_eq!((first.ports.requests(), first.ports.elapsed_ms()), (4, 2_005));
    assert_eq!(waits(&sent), BTreeMap::from([(2, 1), (3, 2)]));
}

#[test]
fn the_events_of_a_batch_are_one_request_but_wait_for_slots_of_their_own() {
    let mut subscription = limited(2);
    subscription.batch =
        Some(Batch { max_events: 4, preferred_bytes: 65_536, on_refused: OnRefused::Split });
    let process = Process::new(FakePorts::new(catalogue_of([subscription])));
    let sent = process.invoke(&events("m", 24));
    assert_eq!(process.ports.requests(), 3);
    // The events of the last three of six batches wait separately.
    let later: usize = waits(&sent).values().sum();
    assert_eq!((later, waits(&sent).values().max()), (12, Some(&2)), "{sent:?}");
}

#[test]
fn a_process_that_is_always_overtaken_asks_for_slots_again_soon() {
    let process = process(2);
    process.invoke(&events("m", 6));
    let before = process.ports.requests();
    process.ports.overtake(20);
    let sent = process.invoke(&events("m", 2));
    assert_eq!((process.ports.requests(), sent.len()), (before, 2), "nobody uses a share as well");
    for (_, message) in &sent {
        assert_eq!((message.wait_ms, carried(message).hold.slots), (2_000, 0));
    }
}

#[test]
fn without_the_table_a_process_keeps_to_its_share_of_the_rate() {
    for hangs in [false, true] {
        let ports = FakePorts::new(catalogue_of([limited(8)]));
        let ports = if hangs { ports.with_hanging(Hanging::Table) } else { ports };
        ports.set_table_unreachable(!hangs);
        let process = Process::one_of(4, ports);
        let sent = process.invoke(&events("m", 10));
        assert_eq!((process.ports.requests(), sent.len()), (3, 7), "one every half second");
        assert!(process.ports.elapsed_ms() <= 4_000);
        assert!(sent.iter().all(|(queue, _)| *queue == QueueName::Retry));
    }
}

#[test]
fn a_delivery_without_a_slot_in_its_lifetime_asks_again_at_its_end() {
    let mut brief = limited(1);
    brief.retry.time_to_live_ms = Some(30_000);
    let process = Process::new(FakePorts::new(catalogue_of([brief])));
    let sent = process.invoke(&events("m", 50));
    // One request is made at once, and one after a second in place.
    assert_eq!((process.ports.requests(), sent.len()), (2, 48));
    let with_slot = |(_, message): &&(QueueName, Message)| carried(message).hold.slots == 1;
    let (with_slot, without): (Vec<_>, Vec<_>) = sent.iter().partition(with_slot);
    // The last slot is five seconds before the end of the time to live.
    assert_eq!((with_slot.len(), without.len()), (23, 25));
    for (_, message) in without {
        assert!((23_000..25_000).contains(&message.wait_ms), "{} ms", message.wait_ms);
    }
}

#[test]
fn retry_after_also_holds_for_a_delivery_that_waited_for_its_slot() {
    let asks = answers(429).with_retry_after("7").after_ms(100);
    let ports = FakePorts::new(catalogue_of([limited(1)]))
        .with_reactions("s0.example.com", &[asks, answers(200)]);
    let process = Process::new(ports);
    let sent = process.invoke(&events("m", 2));
    assert_eq!((process.ports.requests(), process.ports.elapsed_ms()), (1, 1_005));
    let waits: Vec<u64> = sent.iter().map(|(_, message)| message.wait_ms).collect();
    // The response came after 105 ms. The slot of the other delivery was a second after the first
    // slot.
    assert_eq!(waits, [7_000, 6_100]);
}

#[test]
fn an_isolated_record_is_attempted_without_a_slot() {
    let process = process(1);
    // The slots of the coming seconds are taken.
    assert!(!process.invoke(&events("m", 10)).is_empty());
    let before = process.ports.requests();
    let isolated = Record { queue: QueueName::Isolation, ..record("crashes", EVENT) };
    assert!(process.invoke(&[isolated]).is_empty());
    assert_eq!(process.ports.requests(), before + 1);
}

#[test]
fn subscriptions_share_a_rate_only_if_they_have_the_same_address() {
    let limited = |name, url: &str| {
        let mut subscription = subscription(name);
        subscription.destination.max_per_second = Some(1);
        subscription.destination.url = url.parse().expect("an address");
        subscription
    };
    const FIRST: &str = "https://s0.example.com/in";
    for (second, waiting) in [(FIRST, 1), ("https://s0.example.com/other", 0)] {
        let both = [limited("shop/orders/s0", FIRST), limited("shop/orders/s1", second)];
        let process = Process::new(FakePorts::new(catalogue_of(both)));
        // Two events need two slots of each limit. The second slot is a second later, in place.
        let sent = process.invoke(&events("m", 2));
        assert_eq!(sent.len(), 2 * waiting, "{second}");
        assert_eq!(process.ports.requests(), 4 - 2 * waiting, "{second}");
    }
}

#[test]
fn a_delivery_that_has_a_slot_does_not_ask_the_table_again() {
    let process = process(1);
    let sent = process.invoke(&events("m", 3));
    let [(_, last)] = &sent[..] else { panic!("{sent:?}") };
    process.ports.advance_ms(carried(last).due_ms - process.ports.now_ms());
    let asked = process.ports.table_requests();
    assert!(process.invoke(&[retry_record(&carried(last))]).is_empty());
    assert_eq!(
        (process.ports.requests(), process.ports.table_requests()),
        (3, asked),
        "the news alone"
    );
}
