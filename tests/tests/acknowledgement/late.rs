//! Responses after the response timeout: a late success ends a delivery, and no invocation waits too long for a response.

use delivery::delivery::Delivery;
use delivery::ports::{QueueName, Record};
use delivery::subscription::Concurrency;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::{ReplyTo, Subscription};
use delivery::waits::Kind;
use lastmile_tests::fake_ports::reactions::{answers, replies, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_of, delivery, dispatch, letter, record, retry_record,
    subscription,
};

/// A response timeout of one second, this late-response window after it, and this wait before
/// retries.
fn with_late_window(name: &str, window_ms: u64, retry_ms: u64) -> Subscription {
    let mut subscription = subscription(name);
    subscription.destination.response_timeout_ms = 1_000;
    subscription.destination.late_window_ms = window_ms;
    subscription.retry.schedule.kind = Kind::Constant { delay_ms: retry_ms };
    subscription
}

/// One whose answers are never slow.
fn patient(name: &str) -> Subscription {
    let mut subscription = subscription(name);
    subscription.destination.slow_after_ms = 60_000;
    subscription
}

fn catalogue_with_late_window(window_ms: u64, retry_ms: u64) -> Catalogue {
    catalogue_of([with_late_window("shop/orders/s0", window_ms, retry_ms)])
}

/// When each message was sent, and its wait.
fn sent(ports: &FakePorts) -> Vec<(u64, u64)> {
    let waits = ports.sent().into_iter().map(|(_, message)| message.wait_ms);
    ports.sent_after_ms().into_iter().zip(waits).collect()
}

#[test]
fn a_late_success_ends_the_delivery_and_queues_no_retry() {
    let ports = FakePorts::new(catalogue_with_late_window(10_000, 20_000))
        .with_reactions("s0.example.com", &[times_out_after(1_000).and_late(5_000, answers(200))]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len(), ports.elapsed_ms()), (1, 0, 5_000));
}

#[test]
fn a_late_failure_changes_nothing_and_the_retry_is_enqueued_at_once() {
    for status in [400, 503, 200] {
        let late = times_out_after(1_000).and_late(5_000, answers(status));
        let ports = FakePorts::new(catalogue_with_late_window(10_000, 20_000))
            .with_reactions("s0.example.com", &[late]);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        // Settled at one second, due at 21 seconds, and five have passed.
        assert_eq!(sent(&ports), if status == 200 { vec![] } else { vec![(5_000, 16_000)] });
        assert!(ports.sent().iter().all(|(_, message)| carried(message).attempts == 1));
    }
}

#[test]
fn without_a_late_response_the_retry_is_enqueued_with_the_rest_of_its_wait() {
    for (window_ms, retry_ms, left_ms) in [
        // The end of the window.
        (5_000, 20_000, 6_000),
        // Ten seconds after all other work.
        (60_000, 120_000, 11_000),
        // The time when it is due.
        (60_000, 3_000, 4_000),
    ] {
        let ports = FakePorts::new(catalogue_with_late_window(window_ms, retry_ms))
            .with_reactions("s0.example.com", &[times_out_after(1_000)]);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        assert_eq!(sent(&ports), [(left_ms, 1_000 + retry_ms - left_ms)]);
        let state = carried(&ports.sent()[0].1);
        assert_eq!((state.attempts, state.due_ms), (1, NOW_MS + 1_000 + retry_ms));
    }
}

#[test]
fn ten_seconds_are_counted_from_the_end_of_all_other_work() {
    let busy = patient("shop/orders/s1");
    let ports =
        FakePorts::new(catalogue_of([with_late_window("shop/orders/s0", 60_000, 120_000), busy]))
            .with_reactions("s0.example.com", &[times_out_after(1_000)])
            .with_reactions("s1.example.com", &[answers(200).after_ms(7_000)]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(sent(&ports), [(17_000, 104_000)]);
}

#[test]
fn no_late_response_is_awaited_when_the_invocation_has_to_end() {
    let ports = FakePorts::new(catalogue_with_late_window(60_000, 120_000))
        .with_reactions("s0.example.com", &[times_out_after(1_000)]);
    // Nine seconds are reserved for sending.
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], NOW_MS + 16_000), [""; 0]);
    assert_eq!(sent(&ports), [(7_000, 114_000)]);
}

#[test]
fn groups_that_wait_only_for_late_responses_end_together() {
    let both = [
        with_late_window("shop/orders/s0", 60_000, 120_000),
        with_late_window("shop/orders/s1", 60_000, 240_000),
    ];
    let ports = FakePorts::new(catalogue_of(both))
        .with_reactions("s0.example.com", &[times_out_after(1_000)])
        .with_reactions("s1.example.com", &[times_out_after(3_000)]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let mut sent = sent(&ports);
    sent.sort_unstable();
    assert_eq!(sent, [(13_000, 108_000), (13_000, 230_000)]);
}

#[test]
fn a_late_success_cancels_a_dead_letter_that_was_not_sent_yet() {
    let late = [times_out_after(1_000).and_late(5_000, answers(200))];
    let last = Delivery { attempts: 19, ..delivery("shop/orders/s0") };
    let ports = FakePorts::new(catalogue_with_late_window(10_000, 20_000))
        .with_reactions("s0.example.com", &late);
    assert_eq!(dispatch(&ports, &[retry_record(&last)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    let ports = FakePorts::new(catalogue_with_late_window(3_000, 20_000))
        .with_reactions("s0.example.com", &late);
    assert_eq!(dispatch(&ports, &[retry_record(&last)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!(
        (queue, letter(&message).delivery.attempts, sent(&ports)[0].0),
        (QueueName::DeadLetter, 20, 4_000)
    );
}

#[test]
fn a_late_success_that_carries_a_reply_sends_the_reply() {
    const REPLY: &str =
        r#"{"specversion":"1.0","id":"r1","source":"/billing","type":"order.billed"}"#;
    let mut replying = with_late_window("shop/orders/s0", 10_000, 20_000);
    replying.reply =
        Some(ReplyTo::Address("https://replies.example.com/".parse().expect("an address")));
    let late = [times_out_after(1_000).and_late(5_000, replies(REPLY))];
    let ports =
        FakePorts::new(catalogue_of([replying.clone()])).with_reactions("s0.example.com", &late);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((sent(&ports), ports.sent()[0].1.body.as_ref()), (vec![(5_000, 0)], REPLY));
    let ports = FakePorts::new(catalogue_of([replying]))
        .with_reactions("s0.example.com", &late)
        .with_failing_queue();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
}

#[test]
fn waiting_for_a_late_response_holds_no_concurrency_permit() {
    let mut single_permit = with_late_window("shop/orders/s0", 60_000, 120_000);
    single_permit.destination.max_concurrency = Concurrency::of_each(1);
    let ports = FakePorts::new(catalogue_of([single_permit]))
        .with_reactions("s0.example.com", &[times_out_after(1_000), answers(200)]);
    let records: [Record; 2] = [record("m1", EVENT), record("m2", EVENT)];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), sent(&ports)), (2, vec![(11_000, 110_000)]));
}

#[test]
fn a_group_whose_late_response_arrived_is_at_work_until_it_ends() {
    let late = |name: &str| with_late_window(name, 60_000, 120_000);
    let all = [late("shop/orders/s0"), late("shop/orders/s1"), patient("shop/orders/s2")];
    let ports = FakePorts::new(catalogue_of(all))
        .with_reactions("s0.example.com", &[times_out_after(1_000).and_late(5_000, answers(200))])
        .with_reactions("s1.example.com", &[times_out_after(1_000)])
        .with_reactions("s2.example.com", &[answers(200).after_ms(20_000)]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    // Ten seconds after the slow one, not after the one whose late response arrived.
    assert_eq!(sent(&ports), [(30_000, 91_000)]);
}
