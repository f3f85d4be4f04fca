//! A record that is received again moves to the isolation queue. A record that waited as planned does not.

use delivery::delivery::Hold;
use delivery::ports::{Attribute, MessageGroup, PutError, QueueName, Record};
use delivery::wire::write_delivery;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    ENDS_MS, EVENT, delivery, dispatch, large, publication, record, retry_record, subscriptions,
};

#[test]
fn a_record_received_again_moves_to_isolation_with_its_count_and_is_not_read() {
    let again = Record { receives: 2, group: Some("g".to_owned()), ..record("m1", EVENT) };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[again], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((ports.requests(), queue, message.wait_ms), (0, QueueName::Isolation, 0));
    assert_eq!((message.receives, publication(&message).message.as_str()), (2, "m1"));
    assert_eq!(message.group, MessageGroup::Publisher(Some("g".to_owned())));
    let original = delivery("shop/orders/s0");
    let again = Record { receives: 3, earlier_receives: 1, ..retry_record(&original) };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[again], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.receives), (QueueName::Isolation, 4));
    assert_eq!(message.attribute, Attribute::Delivery(write_delivery(&original)));
}

#[test]
fn a_record_in_isolation_is_delivered_however_often_it_was_received() {
    let ports = FakePorts::new(subscriptions(1));
    let isolated = Record { queue: QueueName::Isolation, receives: 9, ..record("m1", EVENT) };
    assert_eq!(dispatch(&ports, &[isolated], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    // Before it is read: should it crash the function, it is received again soon after its end.
    assert_eq!(ports.visibility_changes(), [(QueueName::Isolation, "m1".to_owned(), 125)]);
}

#[test]
fn a_record_too_large_to_move_is_handled_where_it_is() {
    let ports = FakePorts::new(subscriptions(1));
    let again = Record { receives: 2, ..record("m1", &large()) };
    assert_eq!(dispatch(&ports, &[again], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
}

/// A record of the retry queue that is held until this time, sent 15 minutes before now.
fn held(hold: Hold, receives: u32) -> Record {
    let mut waiting = delivery("shop/orders/s0");
    waiting.hold = hold;
    let sent_ms = NOW_MS - 900_000;
    Record { queue: QueueName::Retry, receives, sent_ms, ..retry_record(&waiting) }
}

#[test]
fn a_hold_longer_than_one_delay_is_hidden_once_and_then_counts_as_no_crash() {
    let hour = Hold { count: 9, until_ms: NOW_MS + 2_700_000, ..Hold::default() };
    let ports = FakePorts::without_subscriptions();
    assert_eq!(dispatch(&ports, &[held(hour, 1)], ENDS_MS), ["m1"]);
    assert_eq!(ports.visibility_changes(), [(QueueName::Retry, "m1".to_owned(), 2_700)]);
    assert_eq!(ports.sent().len(), 0);
    // Its second receive was planned, its third was not.
    let over = Hold { count: 9, until_ms: NOW_MS + 1, ..Hold::default() };
    let again = |receives| Record { sent_ms: NOW_MS - 3_600_000, ..held(over, receives) };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[again(2)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    let ports = FakePorts::new(subscriptions(1));
    dispatch(&ports, &[again(3)], ENDS_MS);
    assert_eq!(ports.sent()[0].0, QueueName::Isolation);
}

#[test]
fn clocks_a_minute_apart_hide_no_crash() {
    // Held for one delay by a clock that is a minute ahead: only a crash explains a second receive.
    let one_delay = Hold { count: 9, until_ms: NOW_MS + 60_000, ..Hold::default() };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[held(one_delay, 2)], ENDS_MS), [""; 0]);
    assert_eq!(ports.sent()[0].0, QueueName::Isolation);
    let longer = Hold { until_ms: NOW_MS + 60_001, ..one_delay };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[held(longer, 2)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
}

#[test]
fn a_record_that_follows_one_that_returns_to_its_queue_is_accounted_for_by_itself() {
    let hour = Hold { count: 9, until_ms: NOW_MS + 2_700_000, ..Hold::default() };
    let mut unknown = delivery("shop/orders/new");
    unknown.hold = hour;
    let hidden = Record { sent_ms: NOW_MS - 900_000, ..retry_record(&unknown) };
    let known = retry_record(&delivery("shop/orders/s0"));
    let records = [hidden, Record { message: "m2".to_owned(), ..known }];
    let ports = FakePorts::new(subscriptions(1)).with_failing_reload();
    assert_eq!(dispatch(&ports, &records, ENDS_MS), ["m1"]);
    assert_eq!(ports.requests(), 1);
    let stuck = || FakePorts::new(subscriptions(1)).with_failing_reload().with_status(503);
    assert_eq!(dispatch(&stuck().with_failing_queue(), &records, ENDS_MS), ["m1", "m2"]);
}

#[test]
fn a_hold_that_a_clock_behind_still_sees_is_no_second_receive() {
    let left = Hold { count: 1, until_ms: NOW_MS + 3_000, ..Hold::default() };
    let short = Record { sent_ms: NOW_MS - 298_000, ..held(left, 1) };
    let long = Record { sent_ms: NOW_MS - 1_197_000, ..held(left, 2) };
    for again in [short, long] {
        let ports = FakePorts::without_subscriptions();
        assert_eq!(dispatch(&ports, &[again], ENDS_MS), [""; 0]);
        let (queue, message) = ports.sent().remove(0);
        assert_eq!((queue, message.wait_ms), (QueueName::Retry, 600_000));
        assert_eq!(ports.visibility_changes().len(), 0);
    }
}

fn event_of(bytes: usize) -> String {
    let empty = r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data":""}"#;
    format!(
        r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","data":"{}"}}"#,
        "x".repeat(bytes - empty.len())
    )
}

/// For how long a record in isolation is hidden until its queue gives it up.
fn minutes_until_isolation_gives_up(ports: &FakePorts, body: &str) -> u64 {
    let mut seconds = 0;
    for receives in 1..=10 {
        let isolated = Record { queue: QueueName::Isolation, receives, ..record("m1", body) };
        assert_eq!(dispatch(ports, &[isolated], ENDS_MS), ["m1"]);
        seconds += u64::from(ports.visibility_changes().last().expect("it was hidden").2);
    }
    seconds / 60
}

#[test]
fn a_queue_that_refuses_for_hours_is_no_crash_of_an_isolated_record() {
    let ports = FakePorts::new(subscriptions(1)).with_status(503).with_failing_queue();
    let minutes = minutes_until_isolation_gives_up(&ports, EVENT);
    assert!(minutes >= 6 * 60, "dead-lettered after {minutes} minutes and 10 attempts");
}

#[test]
fn storage_that_refuses_for_hours_is_no_crash_of_an_isolated_record() {
    // It moves to isolation, yet its dead letter does not fit a message and is stored by dispatch.
    let body = event_of(1_048_576 - 300);
    let again = Record { receives: 2, ..record("m1", &body) };
    let ports = FakePorts::new(subscriptions(1));
    dispatch(&ports, &[again], ENDS_MS);
    assert_eq!(ports.sent()[0].0, QueueName::Isolation);
    let ports = FakePorts::new(subscriptions(1))
        .with_status(400)
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let minutes = minutes_until_isolation_gives_up(&ports, &body);
    assert!(
        minutes >= 6 * 60,
        "dead-lettered after {minutes} minutes and {} requests",
        ports.requests()
    );
}

#[test]
fn a_hold_in_the_far_future_does_not_use_up_the_receives_of_isolation() {
    let mut waiting = delivery("shop/orders/s0");
    waiting.hold = Hold { count: 1, until_ms: NOW_MS + 30 * 86_400_000, ..Hold::default() };
    for receives in [1, 9] {
        let isolated = Record { queue: QueueName::Isolation, receives, ..retry_record(&waiting) };
        let ports = FakePorts::without_subscriptions();
        assert_eq!(
            dispatch(&ports, &[isolated], ENDS_MS),
            [""; 0],
            "it is returned, and given up next"
        );
    }
}

#[test]
fn a_record_too_large_to_hold_is_not_isolated_for_having_waited() {
    for spare in 0..400 {
        let body = event_of(1_048_576 - spare);
        let ports = FakePorts::without_subscriptions();
        if dispatch(&ports, &[record("m1", &body)], ENDS_MS).is_empty() {
            return;
        }
        // Hidden for an hour; this receive was the wait's.
        let again = Record { receives: 2, ..record("m1", &body) };
        let ports = FakePorts::without_subscriptions();
        dispatch(&ports, &[again], ENDS_MS);
        assert_eq!(ports.sent().len(), 0, "isolated with {spare} bytes to spare");
    }
}

#[test]
fn a_delivery_that_was_never_attempted_does_not_leave_isolation_behind_retries() {
    let unattempted = delivery("shop/orders/s0");
    let isolated = Record {
        queue: QueueName::Isolation,
        attribute: Some(Attribute::Delivery(write_delivery(&unattempted))),
        ..record("m1", EVENT)
    };
    let ports = FakePorts::without_subscriptions();
    dispatch(&ports, &[isolated], ENDS_MS);
    assert_eq!(ports.sent()[0].0, QueueName::Retry);
}

#[test]
fn a_delivery_of_an_unknown_subscription_waits_at_least_until_it_is_due() {
    let mut waiting = delivery("shop/orders/s0");
    (waiting.attempts, waiting.due_ms) = (1, NOW_MS + 7_200_000);
    let ports = FakePorts::without_subscriptions();
    assert_eq!(dispatch(&ports, &[retry_record(&waiting)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.wait_ms), (QueueName::Retry, 7_200_000));
}
