//! Several events in one request: each delivery is settled and re-enqueued by itself.

use adapters::records::Record;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::{Batching, Delivery};
use delivery::event::schema::Schema;
use delivery::ports::QueueName;
use delivery::subscription::{Batch, OnRefused, Subscription};

use super::reactions::answers;
use super::{ENDS_MS, EVENT, carried, delivery, dispatch, letter, retried, subscription};
use crate::desk::{Desk, catalogue_of, record};

fn batching(on_refused: OnRefused) -> Subscription {
    let batch = Batch { max_events: 100, preferred_bytes: 64 * 1_024, on_refused };
    Subscription { batch: Some(batch), ..subscription("shop/orders/s0") }
}

fn desk(subscription: Subscription) -> Desk {
    Desk::new(catalogue_of([subscription]))
}

fn three() -> [Record; 3] {
    ["m1", "m2", "m3"].map(|message| record(message, EVENT))
}

fn bodies(desk: &Desk) -> Vec<String> {
    desk.posts().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect()
}

#[test]
fn a_batch_that_fails_leaves_one_message_per_member_with_its_own_state() {
    let desk = desk(batching(OnRefused::Split)).answering(503);
    let before = Delivery { attempts: 2, ..delivery("shop/orders/s0") };
    let old = Record { message: "m4".to_owned(), ..retried(&before) };
    assert_eq!(dispatch(&desk, &[&three()[..], &[old]].concat(), ENDS_MS), [""; 0]);
    assert_eq!(bodies(&desk), [format!("[{EVENT},{EVENT},{EVENT},{EVENT}]")]);
    let mut left: Vec<(QueueName, String, u32, u64)> = desk
        .sent()
        .iter()
        .map(|(queue, message)| {
            let state = carried(message);
            (*queue, state.origin.message.clone(), state.attempts, message.wait_ms)
        })
        .collect();
    left.sort_by(|a, b| a.1.cmp(&b.1));
    let retry =
        |origin: &str, attempts, wait_ms| (QueueName::Retry, origin.to_owned(), attempts, wait_ms);
    let expected = [
        retry("m1", 1, 2_000),
        retry("m2", 1, 2_000),
        retry("m3", 1, 2_000),
        retry("published", 3, 8_000),
    ];
    assert_eq!(left, expected);
}

#[test]
fn members_of_a_failed_batch_come_again_with_their_records_while_the_queue_takes_nothing() {
    let desk = desk(batching(OnRefused::Split)).answering(503).refusing_messages();
    assert_eq!(dispatch(&desk, &three(), ENDS_MS), ["m1", "m2", "m3"]);
    assert_eq!(desk.requests(), 1);
}

#[test]
fn a_panic_while_one_member_leaves_is_its_own() {
    let desk = desk(batching(OnRefused::Split)).answering(503).panicking_once_while_sending();
    assert_eq!(dispatch(&desk, &three(), ENDS_MS), [""; 0]);
    let newest = |message| carried(message).history.newest().map(|entry| entry.outcome);
    let mut outcomes: Vec<_> =
        desk.sent().iter().filter_map(|(_, message)| newest(message)).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [Outcome::Busy, Outcome::Busy, Outcome::Aborted]);
}

#[test]
fn a_refused_batch_leaves_each_member_as_a_message_that_is_owed_an_attempt_alone() {
    let desk = desk(batching(OnRefused::Split)).answering(400);
    assert_eq!(dispatch(&desk, &three(), ENDS_MS), [""; 0]);
    let sent = desk.sent();
    assert_eq!((desk.requests(), sent.len()), (1, 3));
    for (queue, message) in &sent {
        let state = carried(message);
        assert_eq!(
            (*queue, message.wait_ms, state.attempts, state.batching),
            (QueueName::Retry, 0, 1, Batching::RetryAlone)
        );
    }
}

#[test]
fn what_is_owed_an_attempt_alone_gets_it_even_at_its_limit_and_then_ends() {
    for (status, reason) in [
        (400, Reason::UndeliverableDueToHttpBadRequest),
        (503, Reason::MaxDeliveryAttemptsExceeded),
    ] {
        let mut once = batching(OnRefused::Split);
        once.retry.max_attempts = 1;
        let desk = desk(once).answering(status);
        let owed =
            Delivery { attempts: 1, batching: Batching::RetryAlone, ..delivery("shop/orders/s0") };
        let owed =
            ["m1", "m2"].map(|message| Record { message: message.to_owned(), ..retried(&owed) });
        assert_eq!(dispatch(&desk, &owed, ENDS_MS), [""; 0]);
        assert_eq!(bodies(&desk), [format!("[{EVENT}]"), format!("[{EVENT}]")]);
        for (queue, message) in desk.sent() {
            let letter = letter(&message);
            assert_eq!(
                (queue, letter.reason, letter.delivery.attempts),
                (QueueName::DeadLetter, reason, 2)
            );
        }
    }
}

#[test]
fn where_a_refusal_is_for_all_a_refused_batch_is_one_request_and_a_letter_for_each() {
    let desk = desk(batching(OnRefused::All)).answering(400);
    assert_eq!(dispatch(&desk, &three(), ENDS_MS), [""; 0]);
    let sent = desk.sent();
    assert_eq!((desk.requests(), sent.len()), (1, 3));
    for (queue, message) in &sent {
        assert_eq!(*queue, QueueName::DeadLetter);
        assert_eq!(letter(message).reason, Reason::UndeliverableDueToHttpBadRequest);
    }
}

#[test]
fn an_event_that_cannot_be_sent_keeps_no_other_from_being_sent() {
    let mut grid_only = batching(OnRefused::Split);
    grid_only.destination.schema = Some(Schema::EventGrid);
    let desk = desk(grid_only);
    let grid = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13Z"}"#;
    let records = [record("m1", grid), record("m2", EVENT), record("m3", grid)];
    assert_eq!(dispatch(&desk, &records, ENDS_MS), [""; 0]);
    assert_eq!(bodies(&desk), [format!("[{grid},{grid}]")]);
    let sent = desk.sent();
    let [(QueueName::DeadLetter, message)] = &sent[..] else { panic!("{sent:?}") };
    let letter = letter(message);
    assert_eq!(letter.reason, Reason::UndeliverableDueToInvalidRequest);
    assert_eq!(letter.delivery.origin.message, "m2");
}

#[test]
fn one_of_a_batch_that_is_retried_within_the_second_is_tried_again_with_the_others() {
    let mut quick = batching(OnRefused::Split);
    quick.retry.schedule.kind = delivery::subscription::schedule::Kind::Constant { delay_ms: 200 };
    let desk = desk(quick).meeting("s0.example.com", &[answers(503), answers(200)]);
    assert_eq!(dispatch(&desk, &three(), ENDS_MS), [""; 0]);
    assert_eq!(
        (bodies(&desk), desk.sent().len()),
        (vec![format!("[{EVENT},{EVENT},{EVENT}]"); 2], 0)
    );
}

/// Every id of 250 events in a request's body.
fn ids_in(body: &str) -> Vec<usize> {
    body.split("\"id\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next()?.parse().ok())
        .collect()
}

#[test]
fn of_250_events_in_invocations_of_100_records_none_is_lost_while_every_second_request_fails() {
    let turns: Vec<_> =
        (0..200).map(|turn| answers(if turn % 2 == 0 { 503 } else { 200 })).collect();
    let desk = desk(batching(OnRefused::Split)).meeting("specversion", &turns);
    let published = |id: usize| {
        record(&format!("m{id}"), &EVENT.replace("\"id\":\"1\"", &format!("\"id\":\"{id}\"")))
    };
    let mut waiting: Vec<Record> = (0..250).map(published).collect();
    let mut invocations = 0;
    while !waiting.is_empty() && invocations < 50 {
        let rest = waiting.split_off(waiting.len().min(100));
        let before = desk.sent().len();
        assert_eq!(dispatch(&desk, &waiting, ENDS_MS + 36_000_000), [""; 0]);
        let again = desk.sent().into_iter().skip(before).map(|(_, message)| {
            let state = carried(&message);
            Record {
                message: format!("r{}", state.origin.message),
                body: message.body,
                ..retried(&state)
            }
        });
        waiting = rest.into_iter().chain(again).collect();
        desk.passes_ms(600_000);
        invocations += 1;
    }
    let requests: Vec<Vec<usize>> = bodies(&desk).iter().map(|body| ids_in(body)).collect();
    assert!(
        requests.iter().all(|ids| ids.len() <= 100) && requests.len() <= 12,
        "{} requests",
        requests.len()
    );
    let mut taken: Vec<usize> = requests.iter().skip(1).step_by(2).flatten().copied().collect();
    taken.sort_unstable();
    assert_eq!((taken, waiting.len()), ((0..250).collect(), 0));
    println!("250 events in {} requests and {invocations} invocations", requests.len());
}
