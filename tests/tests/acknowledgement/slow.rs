//! The slow queue: no delivery waits for a destination that is slow to answer, and the destination
//! still gets its events.

use delivery::delivery::Delivery;
use delivery::delivery::health::slow::LASTS_MS;
use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::request::Request;
use delivery::subscription::Concurrency;
use delivery::subscription::{Batch, OnRefused, Subscription};
use dispatch::{Deadline, Dispatch};
use futures::future::join;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, Fault, NOW_MS};

use crate::examples::{
    EVENT, carried, catalogue_of, container, delivery, large, record, retry_record, subscription,
};
use crate::process::Process;

/// A process with the topic shop/orders, whose s0 has these reactions.
fn process(reactions: &[Reaction]) -> Process {
    process_with(subscription("shop/orders/s0"), reactions, &[answers(200)])
}

/// A process with the topics shop/orders, which has this s0, and shop/others, which has s1.
fn process_with(s0: Subscription, reactions: &[Reaction], of_s1: &[Reaction]) -> Process {
    let ports = FakePorts::new(catalogue_of([s0, subscription("shop/others/s1")]))
        .with_reactions("s0.example.com", reactions)
        .with_reactions("s1.example.com", of_s1);
    Process::new(ports)
}

fn of_s1(message: &str) -> Record {
    Record { topic: Some("shop/others".to_owned()), ..record(message, EVENT) }
}

fn abandoned() -> Delivery {
    Delivery { abandoned: true, ..delivery("shop/orders/s0") }
}

/// The record of a delivery in a queue.
fn in_queue(queue: QueueName, delivery: &Delivery) -> Record {
    Record { queue, ..retry_record(delivery) }
}

#[test]
fn an_attempt_that_nothing_else_waits_with_is_abandoned_after_two_seconds_and_not_counted() {
    let process = process(&[times_out_after(30_000)]);
    let (sent, took_ms) = process.timed_invoke(&[record("m1", EVENT)]);
    let [(QueueName::Slow, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((took_ms, message.wait_ms, process.ports.requests()), (2_000, 0, 1));
    let state = carried(message);
    assert_eq!((state.abandoned, state.attempts, state.history.newest()), (true, 0, None));
    assert_eq!(state.due_ms, state.published_ms);
}

#[test]
fn an_attempt_that_times_out_when_it_would_be_abandoned_counts() {
    let mut short = subscription("shop/orders/s0");
    short.destination.response_timeout_ms = short.destination.slow_after_ms;
    // The timer of the exchange is not the timer that marks the destination as slow.
    let process = process_with(short, &[times_out_after(2_001)], &[answers(200)]);
    let sent = process.invoke(&[record("m1", EVENT)]);
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((carried(message).abandoned, carried(message).attempts), (false, 1));
}

#[test]
fn a_slow_answer_is_awaited_while_other_deliveries_are_at_work() {
    let slow = [answers(200).after_ms(6_000)];
    let others = [answers(200).after_ms(1_500)];
    let process = process_with(subscription("shop/orders/s0"), &slow, &others);
    // s1 is done after one and a half seconds. After two seconds, nothing else is open.
    assert_eq!(process.timed_invoke(&[record("m1", EVENT), of_s1("m2")]).1, 2_000);

    // A late response of s1 keeps the invocation open anyway.
    let mut busy = subscription("shop/others/s1");
    busy.destination.late_window_ms = 1;
    let ports = FakePorts::new(catalogue_of([subscription("shop/orders/s0"), busy]));
    let ports = ports.with_reactions("s0.example.com", &slow);
    let ports = ports.with_reactions("s1.example.com", &[answers(200).after_ms(7_000)]);
    let process = Process::new(ports);
    let (sent, took_ms) = process.timed_invoke(&[record("m1", EVENT), of_s1("m2")]);
    assert_eq!((sent.len(), took_ms, process.ports.requests()), (0, 7_000, 2));
}

#[test]
fn fifty_attempts_that_hang_end_and_the_deliveries_behind_them_move_to_the_slow_lane() {
    let process = process(&vec![times_out_after(30_000); 50]);
    let records: Vec<Record> = (0..60).map(|number| record(&format!("m{number}"), EVENT)).collect();
    let (sent, took_ms) = process.timed_invoke(&records);
    assert_eq!((sent.len(), took_ms, process.ports.requests()), (60, 30_000, 50));
    let count = |is_counted: fn(&(QueueName, Message)) -> bool| {
        sent.iter().filter(|message| is_counted(message)).count()
    };
    assert_eq!(count(|(queue, _)| *queue == QueueName::Slow), 11);
    assert_eq!(count(|(_, message)| carried(message).abandoned), 1);
    assert_eq!(count(|(_, message)| carried(message).attempts == 1), 49);
}

#[test]
fn an_attempt_in_the_slow_lane_has_its_whole_timeout() {
    let process = process(&[answers(200).after_ms(29_000), times_out_after(30_000)]);
    let (sent, took_ms) = process.timed_invoke(&[in_queue(QueueName::Slow, &abandoned())]);
    assert_eq!((sent.len(), took_ms), (0, 29_000));
    let (sent, took_ms) = process.timed_invoke(&[in_queue(QueueName::Slow, &abandoned())]);
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((took_ms, carried(message).attempts), (30_000, 1));
}

#[test]
fn a_delivery_is_abandoned_once_and_goes_to_the_lane_from_then_on() {
    let process = process(&[answers(200)]);
    let (sent, took_ms) = process.timed_invoke(&[in_queue(QueueName::Retry, &abandoned())]);
    let [(QueueName::Slow, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((took_ms, message.wait_ms, process.ports.requests()), (0, 0, 0));
    assert_eq!(carried(message), abandoned());
    // A delivery that is not due waits in its queue.
    let later = Delivery { due_ms: NOW_MS + 50_000, ..abandoned() };
    let sent = process.invoke(&[in_queue(QueueName::Retry, &later)]);
    assert!(matches!(&sent[..], [(QueueName::Retry, Message { wait_ms: 50_000, .. })]), "{sent:?}");
}

#[test]
fn an_isolated_slow_delivery_is_attempted_so_that_a_crash_would_be_counted() {
    let process = process(&[answers(200).after_ms(29_000)]);
    let (sent, took_ms) = process.timed_invoke(&[in_queue(QueueName::Isolation, &abandoned())]);
    assert_eq!((sent.len(), took_ms, process.ports.requests()), (0, 29_000, 1));
}

#[test]
fn deliveries_to_a_destination_that_is_known_as_slow_go_to_the_lane_without_a_request() {
    let process = process(&[times_out_after(30_000), answers(200)]);
    process.invoke(&[record("m1", EVENT)]);
    let (sent, took_ms) = process.timed_invoke(&[record("m2", EVENT), of_s1("m3")]);
    let [(QueueName::Slow, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((took_ms, carried(message).abandoned, process.ports.requests()), (0, false, 2));
    // The destination stays slow when only time passes.
    process.ports.advance_ms(LASTS_MS);
    let sent = process.invoke(&[record("m4", EVENT)]);
    assert_eq!((sent.len(), process.ports.requests()), (1, 2));
}

#[test]
fn slow_answers_in_the_lane_and_late_ones_make_it_known_too() {
    for (takes_ms, waiting) in [(2_001, 1), (2_000, 0)] {
        let process = process(&[answers(200).after_ms(takes_ms)]);
        process.invoke(&[in_queue(QueueName::Slow, &delivery("shop/orders/s0"))]);
        assert_eq!(process.invoke(&[record("m1", EVENT)]).len(), waiting, "{takes_ms}");
    }
}

#[test]
fn a_destination_says_itself_what_is_slow_and_a_late_window_waits() {
    let mut patient = subscription("shop/orders/s0");
    patient.destination.slow_after_ms = 10_000;
    let process = process_with(patient, &[times_out_after(30_000)], &[answers(200)]);
    assert_eq!(process.timed_invoke(&[record("m1", EVENT)]).1, 10_000);
    let mut late = subscription("shop/orders/s0");
    late.destination.late_window_ms = 60_000;
    let process = process_with(late, &[answers(200).after_ms(29_000)], &[answers(200)]);
    let (sent, took_ms) = process.timed_invoke(&[record("m1", EVENT)]);
    assert_eq!((sent.len(), took_ms), (0, 29_000));
}

#[test]
fn an_event_too_large_for_a_message_is_attempted_where_it_is() {
    let process = process(&[answers(200).after_ms(29_000), answers(200)]);
    assert_eq!(process.timed_invoke(&[record("m1", &large())]).1, 29_000);
    // The destination is known as slow by now.
    let sent = process.invoke(&[record("m2", &large())]);
    assert_eq!((sent.len(), process.ports.requests()), (0, 2));
}

#[test]
fn a_delivery_that_the_lane_refuses_is_attempted_where_it_is() {
    let ports = FakePorts::new(catalogue_of([subscription("shop/orders/s0")]))
        .with_reactions("s0.example.com", &[times_out_after(30_000), answers(200)])
        .with_queue_fault(QueueName::Slow, Fault::Refuses);
    let process = Process::new(ports);
    process.invoke(&[record("m1", EVENT)]);
    // The destination is known as slow, and the delivery was abandoned before. Without the refusal,
    // the delivery would move to the slow queue again.
    let sent = process.invoke(&[in_queue(QueueName::Retry, &abandoned())]);
    assert_eq!((sent.len(), process.ports.requests()), (0, 2));
    process.ports.advance_ms(60_000);
    process.ports.repair_queues();
    let sent = process.invoke(&[in_queue(QueueName::Retry, &abandoned())]);
    assert!(matches!(&sent[..], [(QueueName::Slow, _)]), "{sent:?}");
}

#[test]
fn deliveries_that_wait_for_their_turn_are_work_under_way() {
    // The deliveries run one after the other. For a moment, one has ended and the next has not
    // begun.
    let mut one_at_a_time = subscription("shop/others/s1");
    one_at_a_time.destination.max_concurrency = Concurrency::of_each(1);
    let ports = FakePorts::new(catalogue_of([subscription("shop/orders/s0"), one_at_a_time]));
    let ports = ports
        .with_reactions("s0.example.com", &[answers(200).after_ms(6_000)])
        .with_reactions("s1.example.com", &vec![answers(200).after_ms(1_000); 8]);
    let process = Process::new(ports);
    let others = (0..8).map(|number| of_s1(&format!("o{number}")));
    let records: Vec<Record> = [record("m1", EVENT)].into_iter().chain(others).collect();
    let (sent, took_ms) = process.timed_invoke(&records);
    assert_eq!((sent.len(), took_ms, process.ports.requests()), (0, 8_000, 9));
}

#[test]
fn a_large_batch_is_not_taken_apart() {
    let mut batching = subscription("shop/orders/s0");
    let batch = Batch { max_events: 20, preferred_bytes: 65_536, on_refused: OnRefused::Split };
    batching.batch = Some(batch);
    let process =
        process_with(batching, &[answers(200).after_ms(9_000), answers(200)], &[answers(200)]);
    let records = |count: usize| (0..count).map(|number| record(&format!("m{number}"), EVENT));
    let eleven: Vec<Record> = records(11).collect();
    let (sent, took_ms) = process.timed_invoke(&eleven);
    assert_eq!((sent.len(), took_ms, process.ports.requests()), (0, 9_000, 1));
    // The destination is slow now, and small batches move.
    assert_eq!(process.invoke(&eleven).len(), 0);
    let ten: Vec<Record> = records(10).collect();
    assert_eq!((process.invoke(&ten).len(), process.ports.requests()), (10, 2));
}

#[test]
fn the_table_shows_that_a_destination_is_slow_while_others_of_its_topic_are_at_work() {
    let mut patient = subscription("shop/orders/s1");
    (patient.destination.slow_after_ms, patient.destination.response_timeout_ms) = (60_000, 60_000);
    let ports = FakePorts::new(catalogue_of([subscription("shop/orders/s0"), patient]))
        .with_reactions("s0.example.com", &[answers(200).after_ms(3_000)])
        .with_reactions("s1.example.com", &[answers(200).after_ms(20_000)]);
    let processes = [(); 2].map(|()| Dispatch::new(ports.clone(), container(), None));
    let deadline = Deadline::new(ports.now_ms(), ports.now_ms() + 120_000);
    let (first, second) = ([record("m1", EVENT)], [record("m2", EVENT)]);
    let later = async {
        ports.sleep(5_000).await;
        processes[1].handle(&second, &deadline).await;
    };
    ports.run(join(processes[0].handle(&first, &deadline), later));
    let is_to_s0 = |request: &&Request| request.url.host_str() == Some("s0.example.com");
    assert_eq!(ports.posts().iter().filter(is_to_s0).count(), 1, "the second one is for the lane");
    let sent = ports.sent();
    assert!(matches!(&sent[..], [(QueueName::Slow, _)]), "{sent:?}");
}
