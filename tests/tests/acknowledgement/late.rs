//! Responses after the response timeout: a late success ends a delivery, and no invocation waits
//! too long for one.

use adapters::records::Record;
use delivery::delivery::Delivery;
use delivery::ports::QueueName;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::schedule::Kind;
use delivery::subscription::{ReplyTo, Subscription};

use super::reactions::{answers, replies, times_out_after};
use super::{ENDS_MS, EVENT, carried, delivery, dispatch, letter, retried, subscription};
use crate::desk::{Desk, NOW_MS, catalogue_of, record};

/// A response timeout of one second, this late-response window after it, and this wait before
/// retries.
fn patient(name: &str, window_ms: u64, retry_ms: u64) -> Subscription {
    let mut subscription = subscription(name);
    subscription.destination.response_timeout_ms = 1_000;
    subscription.destination.late_window_ms = window_ms;
    subscription.retry.schedule.kind = Kind::Constant { delay_ms: retry_ms };
    subscription
}

fn one(window_ms: u64, retry_ms: u64) -> Catalogue {
    catalogue_of([patient("shop/orders/s0", window_ms, retry_ms)])
}

/// When each message was sent, and its wait.
fn sent(desk: &Desk) -> Vec<(u64, u64)> {
    let waits = desk.sent().into_iter().map(|(_, message)| message.wait_ms);
    desk.sent_after_ms().into_iter().zip(waits).collect()
}

#[test]
fn a_late_success_ends_the_delivery_and_queues_no_retry() {
    let desk = Desk::new(one(10_000, 20_000))
        .meeting("s0.example.com", &[times_out_after(1_000).and_late(5_000, answers(200))]);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((desk.requests(), desk.sent().len(), desk.after_ms()), (1, 0, 5_000));
}

#[test]
fn a_late_answer_that_is_no_success_changes_nothing_and_the_retry_leaves_at_once() {
    for status in [400, 503, 200] {
        let late = times_out_after(1_000).and_late(5_000, answers(status));
        let desk = Desk::new(one(10_000, 20_000)).meeting("s0.example.com", &[late]);
        assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        // Settled at one second, due at 21 seconds, and five have passed.
        assert_eq!(sent(&desk), if status == 200 { vec![] } else { vec![(5_000, 16_000)] });
        assert!(desk.sent().iter().all(|(_, message)| carried(message).attempts == 1));
    }
}

#[test]
fn without_a_late_answer_the_retry_leaves_with_the_rest_of_its_wait() {
    for (window_ms, retry_ms, left_ms) in [
        // The end of the window.
        (5_000, 20_000, 6_000),
        // Ten seconds after all other work.
        (60_000, 120_000, 11_000),
        // The time when it is due.
        (60_000, 3_000, 4_000),
    ] {
        let desk = Desk::new(one(window_ms, retry_ms))
            .meeting("s0.example.com", &[times_out_after(1_000)]);
        assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        assert_eq!(sent(&desk), [(left_ms, 1_000 + retry_ms - left_ms)]);
        let state = carried(&desk.sent()[0].1);
        assert_eq!((state.attempts, state.due_ms), (1, NOW_MS + 1_000 + retry_ms));
    }
}

#[test]
fn ten_seconds_are_counted_from_the_end_of_all_other_work() {
    let busy = subscription("shop/orders/s1");
    let desk = Desk::new(catalogue_of([patient("shop/orders/s0", 60_000, 120_000), busy]))
        .meeting("s0.example.com", &[times_out_after(1_000)])
        .meeting("s1.example.com", &[answers(200).after_ms(7_000)]);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(sent(&desk), [(17_000, 104_000)]);
}

#[test]
fn nothing_late_is_waited_for_when_the_invocation_has_to_end() {
    let desk = Desk::new(one(60_000, 120_000)).meeting("s0.example.com", &[times_out_after(1_000)]);
    // Nine seconds are reserved for sending.
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], NOW_MS + 16_000), [""; 0]);
    assert_eq!(sent(&desk), [(7_000, 114_000)]);
}

#[test]
fn groups_that_wait_for_nothing_but_late_answers_end_together() {
    let both =
        [patient("shop/orders/s0", 60_000, 120_000), patient("shop/orders/s1", 60_000, 240_000)];
    let desk = Desk::new(catalogue_of(both))
        .meeting("s0.example.com", &[times_out_after(1_000)])
        .meeting("s1.example.com", &[times_out_after(3_000)]);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let mut sent = sent(&desk);
    sent.sort_unstable();
    assert_eq!(sent, [(13_000, 108_000), (13_000, 230_000)]);
}

#[test]
fn a_late_success_takes_back_a_dead_letter_that_was_not_sent_yet() {
    let late = [times_out_after(1_000).and_late(5_000, answers(200))];
    let last = Delivery { attempts: 9, ..delivery("shop/orders/s0") };
    let desk = Desk::new(one(10_000, 20_000)).meeting("s0.example.com", &late);
    assert_eq!(dispatch(&desk, &[retried(&last)], ENDS_MS), [""; 0]);
    assert_eq!((desk.requests(), desk.sent().len()), (1, 0));
    let desk = Desk::new(one(3_000, 20_000)).meeting("s0.example.com", &late);
    assert_eq!(dispatch(&desk, &[retried(&last)], ENDS_MS), [""; 0]);
    let (queue, message) = desk.sent().remove(0);
    assert_eq!(
        (queue, letter(&message).delivery.attempts, sent(&desk)[0].0),
        (QueueName::DeadLetter, 10, 4_000)
    );
}

#[test]
fn a_late_success_that_carries_a_reply_sends_the_reply() {
    const REPLY: &str =
        r#"{"specversion":"1.0","id":"r1","source":"/billing","type":"order.billed"}"#;
    let mut replying = patient("shop/orders/s0", 10_000, 20_000);
    replying.reply =
        Some(ReplyTo::Address("https://replies.example.com/".parse().expect("an address")));
    let late = [times_out_after(1_000).and_late(5_000, replies(REPLY))];
    let desk = Desk::new(catalogue_of([replying.clone()])).meeting("s0.example.com", &late);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((sent(&desk), desk.sent()[0].1.body.as_ref()), (vec![(5_000, 0)], REPLY));
    let desk =
        Desk::new(catalogue_of([replying])).meeting("s0.example.com", &late).refusing_messages();
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
}

#[test]
fn what_waits_for_a_late_answer_keeps_nobody_from_a_turn() {
    let mut narrow = patient("shop/orders/s0", 60_000, 120_000);
    narrow.destination.max_concurrency = 1;
    let desk = Desk::new(catalogue_of([narrow]))
        .meeting("s0.example.com", &[times_out_after(1_000), answers(200)]);
    let records: [Record; 2] = [record("m1", EVENT), record("m2", EVENT)];
    assert_eq!(dispatch(&desk, &records, ENDS_MS), [""; 0]);
    assert_eq!((desk.requests(), sent(&desk)), (2, vec![(11_000, 110_000)]));
}
