//! Probation of a dead destination: due deliveries are postponed, and one of them probes it.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::{Batching, Delivery, DeliveryTarget};
use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::{ReplyTo, Subscription};
use delivery::time::duration::{DAY_MS, MINUTE_MS};
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::reactions::{Reaction, answers, breaks_off_after, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use super::{EVENT, carried, delivery, retry_record, subscription};
use crate::examples::{catalogue_of, container, record};

/// Where s0's replies go.
const REPLIES: &str = "https://replies.example.com/";

/// A process that handles several invocations.
struct Process {
    ports: FakePorts,
    dispatch: Dispatch<FakePorts>,
}

fn with_probation(name: &str) -> Subscription {
    let mut subscription = subscription(name);
    subscription.destination.probation = true;
    subscription
}

impl Process {
    /// Topic shop/orders goes to s0, with these reactions; topic shop/others goes to s1, which is
    /// healthy.
    fn with_reactions_of_s0(reactions: &[Reaction]) -> Self {
        let to_replies = ReplyTo::Address(REPLIES.parse().expect("an address"));
        let ports = FakePorts::new(catalogue_of([
            Subscription { reply: Some(to_replies), ..with_probation("shop/orders/s0") },
            with_probation("shop/others/s1"),
        ]));
        // A delivery comes back in the middle of the time after a probation.
        let ports = ports.with_random(1 << 31).with_reactions("s0.example.com", reactions);
        Self { dispatch: Dispatch::new(ports.clone(), container(), None), ports }
    }

    /// The same, after ten timeouts of one second each, of ten events.
    fn after_ten_timeouts(then: &[Reaction]) -> Self {
        let silent = vec![times_out_after(1_000); 10];
        let process = Self::with_reactions_of_s0(&[&silent[..], then].concat());
        for number in 0..10 {
            process.invoke(&[record(&format!("m{number}"), EVENT)]);
        }
        assert_eq!((process.ports.requests(), process.ports.elapsed_ms()), (10, 10_000));
        process
    }

    /// Runs one invocation without a tight deadline; returns the messages that it sent.
    fn invoke(&self, records: &[Record]) -> Vec<(QueueName, Message)> {
        let before = self.ports.sent().len();
        let now_ms = self.ports.now_ms();
        assert_eq!(
            self.ports.run(self.dispatch.handle(records, &Deadline::new(now_ms, 0))),
            [""; 0]
        );
        self.ports.sent().split_off(before)
    }

    /// The one delivery that an invocation with one record postponed, and its wait.
    fn postpone(&self, record: Record) -> (Delivery, u64) {
        let before = self.ports.requests();
        let sent = self.invoke(&[record]);
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(self.ports.requests(), before, "a postponed delivery is not sent");
        (carried(message), message.wait_ms)
    }
}

fn outcomes(delivery: &Delivery) -> Vec<Outcome> {
    delivery.history.first().iter().filter_map(|entry| entry.outcome.known()).collect()
}

#[test]
fn after_ten_timeouts_the_next_due_delivery_is_postponed_without_a_request_or_an_attempt() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    process.ports.advance_ms(4_000);
    let tried = Delivery { attempts: 3, ..delivery("shop/orders/s0") };
    let (postponed, wait_ms) = process.postpone(retry_record(&tried));
    // On probation for ten seconds since the last timeout.
    assert_eq!((wait_ms, postponed.due_ms, postponed.attempts), (6_000, NOW_MS + 20_000, 3));
    assert_eq!(outcomes(&postponed), [Outcome::Probation]);
    // The next one does not come back then, but within as long as the outage will have lasted: ten seconds.
    let (fresh, wait_ms) = process.postpone(record("m11", EVENT));
    assert_eq!((wait_ms, fresh.attempts, fresh.history.first_attempt()), (11_000, 0, None));
}

#[test]
fn the_last_deferral_ends_five_seconds_before_the_time_to_live_and_then_it_is_attempted() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    // By default a delivery lives for a day.
    let published_ms = process.ports.now_ms() - DAY_MS + 8_000;
    let old = Delivery { published_ms, starts_ms: published_ms, ..delivery("shop/orders/s0") };
    let (postponed, wait_ms) = process.postpone(retry_record(&old));
    assert_eq!(wait_ms, 3_000);
    process.ports.advance_ms(wait_ms);
    let sent = process.invoke(&[retry_record(&postponed)]);
    assert_eq!((sent.len(), process.ports.requests()), (0, 11), "attempted on probation");
}

#[test]
fn a_delivery_that_fails_in_its_last_attempt_on_probation_is_a_dead_letter() {
    let process = Process::after_ten_timeouts(&[answers(503)]);
    let published_ms = process.ports.now_ms() - DAY_MS + 5_000;
    let old = Delivery { published_ms, starts_ms: published_ms, ..delivery("shop/orders/s0") };
    let sent = process.invoke(&[retry_record(&old)]);
    // The retry is due after the time to live.
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((carried(message).attempts, process.ports.requests()), (1, 11));
    process.ports.advance_ms(message.wait_ms.max(5_000));
    let sent = process.invoke(&[retry_record(&carried(message))]);
    let [(QueueName::DeadLetter, _)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(process.ports.requests(), 11);
}

#[test]
fn the_first_deferred_delivery_comes_back_at_the_end_and_the_others_within_a_quarter_of_an_hour() {
    let process = Process::after_ten_timeouts(&[times_out_after(1_000)]);
    let [mut began_ms, mut outage_ms, mut lasts_ms] = [process.ports.now_ms(), 0, 10_000];
    for probe in 0..10 {
        let first = process.postpone(record("m1", EVENT)).1;
        assert_eq!(first, lasts_ms, "after {probe} probes");
        // Half of the quarter of an hour, or of the outage until then.
        let spread_ms = (outage_ms + lasts_ms).min(15 * MINUTE_MS);
        let others = [(); 3].map(|()| process.postpone(record("m2", EVENT)).1);
        assert_eq!(others, [lasts_ms + spread_ms / 2; 3], "after {probe} probes");
        process.ports.advance_ms(lasts_ms);
        process.invoke(&[record("probe", EVENT)]);
        outage_ms += process.ports.now_ms() - began_ms;
        began_ms = process.ports.now_ms();
        lasts_ms = (2 * lasts_ms).min(5 * MINUTE_MS);
    }
}

#[test]
fn every_5xx_begins_with_half_a_minute_and_a_503_with_ten_seconds() {
    for (status, lasts_ms) in
        [(500, 30_000), (501, 30_000), (502, 30_000), (504, 30_000), (599, 30_000), (503, 10_000)]
    {
        let process = Process::with_reactions_of_s0(&[answers(status)]);
        (0..10).for_each(|number| _ = process.invoke(&[record(&format!("m{number}"), EVENT)]));
        assert_eq!(process.postpone(record("m11", EVENT)).1, lasts_ms, "{status}");
    }
}

#[test]
fn a_retry_alone_that_is_older_than_its_time_to_live_waits_for_the_probation() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    let published_ms = process.ports.now_ms() - 2 * DAY_MS;
    let alone = Batching::RetryAlone.into();
    let old = Delivery {
        published_ms,
        starts_ms: published_ms,
        batching: alone,
        ..delivery("shop/orders/s0")
    };
    // Its limits do not count, so it is no dead letter; nor is it re-enqueued again and again.
    assert_eq!(process.postpone(retry_record(&old)).1, 10_000);
}

#[test]
fn one_event_that_always_fails_puts_no_destination_on_probation() {
    let process = Process::with_reactions_of_s0(&[times_out_after(1_000)]);
    for _ in 0..30 {
        process.invoke(&[retry_record(&delivery("shop/orders/s0"))]);
    }
    assert_eq!(process.ports.requests(), 30);
}

#[test]
fn consecutive_postponements_leave_one_history_entry_and_a_failed_probe_doubles_the_probation() {
    let process = Process::after_ten_timeouts(&[times_out_after(1_000)]);
    let (postponed, _) = process.postpone(record("m11", EVENT));
    process.ports.advance_ms(10_000);
    let sent = process.invoke(&[record("m12", EVENT)]);
    assert_eq!((process.ports.requests(), carried(&sent[0].1).attempts), (11, 1), "the probe");
    let (postponed, wait_ms) = process.postpone(retry_record(&postponed));
    assert_eq!(
        (wait_ms, outcomes(&postponed), postponed.attempts),
        (20_000, vec![Outcome::Probation], 0)
    );
}

#[test]
fn of_several_due_deliveries_one_probes_and_after_its_success_all_are_delivered() {
    // Not timeouts: after them only one request is made at a time.
    let refused = vec![breaks_off_after(1_000); 10];
    let process =
        Process::with_reactions_of_s0(&[&refused[..], &[answers(200).after_ms(500)]].concat());
    (0..10).for_each(|number| _ = process.invoke(&[record(&format!("m{number}"), EVENT)]));
    process.ports.advance_ms(30_000);
    let sent = process.invoke(&[record("m11", EVENT), record("m12", EVENT), record("m13", EVENT)]);
    assert_eq!((process.ports.requests(), sent.len()), (11, 2));
    // The outage has lasted for the half minute of the probation.
    assert!(
        sent.iter().all(|(queue, message)| *queue == QueueName::Retry && message.wait_ms == 15_000)
    );
    let back: Vec<Record> =
        sent.iter().map(|(_, message)| retry_record(&carried(message))).collect();
    process.ports.advance_ms(15_000);
    assert_eq!((process.invoke(&back).len(), process.ports.requests()), (0, 13));
}

#[test]
fn an_invocation_without_time_for_its_probe_lets_another_probe() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    process.ports.advance_ms(10_000);
    let now_ms = process.ports.now_ms();
    let other = Record { topic: Some("shop/others".to_owned()), ..record("m11", EVENT) };
    // Only enough time for the first attempt, which every invocation may make.
    let (records, short) = ([other, record("m12", EVENT)], Deadline::new(now_ms, now_ms + 9_500));
    assert_eq!(process.ports.run(process.dispatch.handle(&records, &short)), [""; 0]);
    assert_eq!(process.ports.requests(), 11);
    assert_eq!(
        (process.invoke(&[record("m12", EVENT)]).len(), process.ports.requests()),
        (0, 12),
        "the probe"
    );
    assert_eq!(
        (process.invoke(&[record("m13", EVENT)]).len(), process.ports.requests()),
        (0, 13),
        "no probation"
    );
}

#[test]
fn a_probe_that_panics_lets_another_probe() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    process.ports.advance_ms(10_000);
    process.ports.clone().with_one_panic();
    let panicked = process.invoke(&[record("m11", EVENT)]);
    assert_eq!((panicked.len(), process.ports.requests()), (1, 11));
    assert_eq!(
        (process.invoke(&[record("m12", EVENT)]).len(), process.ports.requests()),
        (0, 12),
        "the probe"
    );
}

#[test]
fn a_probation_does_not_affect_other_destinations() {
    let process = Process::after_ten_timeouts(&[times_out_after(1_000)]);
    let other =
        |message: &str| Record { topic: Some("shop/others".to_owned()), ..record(message, EVENT) };
    let sent = process.invoke(&[other("m11"), record("m12", EVENT), other("m13")]);
    assert_eq!((process.ports.requests(), sent.len()), (12, 1));
    assert_eq!(carried(&sent[0].1).subscription.name, "s0");
}

#[test]
fn a_reply_goes_to_its_address_while_the_destination_is_on_probation() {
    let process = Process::after_ten_timeouts(&[answers(200)]);
    let reply = Delivery { target: DeliveryTarget::Reply, ..delivery("shop/orders/s0") };
    assert_eq!(process.invoke(&[retry_record(&reply)]).len(), 0);
    let to: Vec<_> = process.ports.posts().iter().map(|post| post.url.to_string()).collect();
    assert_eq!((to.len(), to.last().map(String::as_str)), (11, Some(REPLIES)));
}

#[test]
fn without_probation_a_destination_is_always_attempted() {
    let mut without = subscription("shop/orders/s0");
    without.destination.probation = false;
    let ports = FakePorts::new(catalogue_of([without]))
        .with_reactions("s0.example.com", &[times_out_after(1_000)]);
    let process = Process { dispatch: Dispatch::new(ports.clone(), container(), None), ports };
    for number in 0..30 {
        process.invoke(&[record(&format!("m{number}"), EVENT)]);
    }
    assert_eq!(process.ports.requests(), 30);
}
