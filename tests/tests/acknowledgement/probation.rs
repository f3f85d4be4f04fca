//! Probation of a dead destination: due deliveries are postponed, and one of them probes it.

use adapters::records::Record;
use delivery::delivery::Delivery;
use delivery::delivery::outcome::Outcome;
use delivery::ports::{Clock as _, Message, QueueName};
use delivery::subscription::Subscription;
use dispatch::{Deadline, Dispatch};

use super::reactions::{Reaction, answers, times_out_after};
use super::{EVENT, carried, delivery, retried, subscription};
use crate::desk::{Desk, NOW_MS, catalogue_of, container, record};

/// A process that handles several invocations.
struct Process {
    desk: Desk,
    dispatch: Dispatch<Desk>,
}

fn watched(name: &str) -> Subscription {
    let mut subscription = subscription(name);
    subscription.destination.probation = true;
    subscription
}

impl Process {
    /// Topic shop/orders goes to s0, with these reactions; topic shop/others goes to s1, which is
    /// healthy.
    fn meeting(reactions: &[Reaction]) -> Self {
        let desk = Desk::new(catalogue_of([watched("shop/orders/s0"), watched("shop/others/s1")]));
        let desk = desk.meeting("s0.example.com", reactions);
        Self { dispatch: Dispatch::new(desk.clone(), container(), None), desk }
    }

    /// The same, after ten timeouts of one second each, of ten events.
    fn after_ten_timeouts(then: &[Reaction]) -> Self {
        let silent = vec![times_out_after(1_000); 10];
        let process = Self::meeting(&[&silent[..], then].concat());
        for number in 0..10 {
            process.takes(&[record(&format!("m{number}"), EVENT)]);
        }
        assert_eq!((process.desk.requests(), process.desk.after_ms()), (10, 10_000));
        process
    }

    /// Runs one invocation without a tight deadline; returns the messages that it sent.
    fn takes(&self, records: &[Record]) -> Vec<(QueueName, Message)> {
        let before = self.desk.sent().len();
        let now_ms = self.desk.now_ms();
        assert_eq!(
            self.desk.run(self.dispatch.handle(records, &Deadline::new(now_ms, 0))),
            [""; 0]
        );
        self.desk.sent().split_off(before)
    }

    /// The one delivery that an invocation with one record postponed, and its wait.
    fn puts_off(&self, record: Record) -> (Delivery, u64) {
        let before = self.desk.requests();
        let sent = self.takes(&[record]);
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(self.desk.requests(), before, "a put-off is no request");
        (carried(message), message.wait_ms)
    }
}

fn outcomes(delivery: &Delivery) -> Vec<Outcome> {
    delivery.history.first().iter().map(|entry| entry.outcome).collect()
}

#[test]
fn after_ten_timeouts_the_next_due_delivery_is_put_off_without_a_request_or_an_attempt() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    process.desk.passes_ms(4_000);
    let tried = Delivery { attempts: 3, ..delivery("shop/orders/s0") };
    let (put_off, wait_ms) = process.puts_off(retried(&tried));
    // On probation for ten seconds since the last timeout.
    assert_eq!((wait_ms, put_off.due_ms, put_off.attempts), (6_000, NOW_MS + 20_000, 3));
    assert_eq!(outcomes(&put_off), [Outcome::Probation]);
    let (fresh, wait_ms) = process.puts_off(record("m11", EVENT));
    assert_eq!((wait_ms, fresh.attempts, fresh.first_ms), (6_000, 0, None));
}

#[test]
fn one_event_that_always_fails_puts_no_destination_on_probation() {
    let process = Process::meeting(&[times_out_after(1_000)]);
    for _ in 0..30 {
        process.takes(&[retried(&delivery("shop/orders/s0"))]);
    }
    assert_eq!(process.desk.requests(), 30);
}

#[test]
fn put_offs_in_a_row_leave_one_entry_and_a_failed_probe_doubles_the_probation() {
    let process = Process::after_ten_timeouts(&[times_out_after(1_000)]);
    let (put_off, _) = process.puts_off(record("m11", EVENT));
    process.desk.passes_ms(10_000);
    let sent = process.takes(&[record("m12", EVENT)]);
    assert_eq!((process.desk.requests(), carried(&sent[0].1).attempts), (11, 1), "the probe");
    let (put_off, wait_ms) = process.puts_off(retried(&put_off));
    assert_eq!(
        (wait_ms, outcomes(&put_off), put_off.attempts),
        (20_000, vec![Outcome::Probation], 0)
    );
}

#[test]
fn of_several_that_are_due_when_it_ends_one_probes_and_after_its_success_all_are_delivered() {
    let process = Process::after_ten_timeouts(&[answers(200).after_ms(500)]);
    process.desk.passes_ms(10_000);
    let sent = process.takes(&[record("m11", EVENT), record("m12", EVENT), record("m13", EVENT)]);
    assert_eq!((process.desk.requests(), sent.len()), (11, 2));
    assert!(
        sent.iter().all(|(queue, message)| *queue == QueueName::Retry && message.wait_ms == 10_000)
    );
    let back: Vec<Record> = sent.iter().map(|(_, message)| retried(&carried(message))).collect();
    process.desk.passes_ms(10_000);
    assert_eq!((process.takes(&back).len(), process.desk.requests()), (0, 13));
}

#[test]
fn an_invocation_without_time_for_its_probe_leaves_it_to_another() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    process.desk.passes_ms(10_000);
    let now_ms = process.desk.now_ms();
    let other = Record { topic: Some("shop/others".to_owned()), ..record("m11", EVENT) };
    // Only enough time for the first attempt, which every invocation may make.
    let (records, short) = ([other, record("m12", EVENT)], Deadline::new(now_ms, now_ms + 9_500));
    assert_eq!(process.desk.run(process.dispatch.handle(&records, &short)), ["m12"]);
    assert_eq!(process.desk.requests(), 11);
    assert_eq!(
        (process.takes(&[record("m12", EVENT)]).len(), process.desk.requests()),
        (0, 12),
        "the probe"
    );
    assert_eq!(
        (process.takes(&[record("m13", EVENT)]).len(), process.desk.requests()),
        (0, 13),
        "no probation"
    );
}

#[test]
fn other_destinations_are_not_touched() {
    let process = Process::after_ten_timeouts(&[times_out_after(1_000)]);
    let other =
        |message: &str| Record { topic: Some("shop/others".to_owned()), ..record(message, EVENT) };
    let sent = process.takes(&[other("m11"), record("m12", EVENT), other("m13")]);
    assert_eq!((process.desk.requests(), sent.len()), (12, 1));
    assert_eq!(carried(&sent[0].1).subscription.name, "s0");
}

#[test]
fn a_subscription_that_asks_for_no_probation_is_always_tried() {
    let desk = Desk::new(catalogue_of([subscription("shop/orders/s0")]))
        .meeting("s0.example.com", &[times_out_after(1_000)]);
    let process = Process { dispatch: Dispatch::new(desk.clone(), container(), None), desk };
    for number in 0..30 {
        process.takes(&[record(&format!("m{number}"), EVENT)]);
    }
    assert_eq!(process.desk.requests(), 30);
}
