//! Probation of a dead destination: due deliveries are postponed, and one of them probes it.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::{Batching, Delivery, DeliveryTarget};
use delivery::ports::{Clock as _, QueueName, Record};
use delivery::subscription::{ReplyTo, Subscription};
use delivery::time::duration::DAY_MS;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, breaks_off_after, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    EVENT, carried, catalogue_of, delivery, events, record, retry_record, subscription,
};
use crate::process::Process;

/// The address for the replies of s0.
const REPLIES: &str = "https://replies.example.com/";

fn with_probation(name: &str) -> Subscription {
    let mut subscription = subscription(name);
    subscription.destination.probation = true;
    subscription
}

/// A process with the topics shop/orders, whose s0 has these reactions, and shop/others, whose s1
/// is healthy.
fn with_reactions_of_s0(reactions: &[Reaction]) -> Process {
    let to_replies = ReplyTo::Address(REPLIES.parse().expect("an address"));
    let ports = FakePorts::new(catalogue_of([
        Subscription { reply: Some(to_replies), ..with_probation("shop/orders/s0") },
        with_probation("shop/others/s1"),
    ]));
    // With this random number, a deferred delivery returns in the middle of the time after a
    // probation.
    Process::new(ports.with_random(1 << 31).with_reactions("s0.example.com", reactions))
}

/// Like `with_reactions_of_s0`, after ten timeouts of one second each, of ten events.
fn after_ten_timeouts(then: &[Reaction]) -> Process {
    let silent = vec![times_out_after(1_000); 10];
    let process = with_reactions_of_s0(&[&silent[..], then].concat());
    events("m", 10).iter().for_each(|event| drop(process.invoke(std::slice::from_ref(event))));
    assert_eq!((process.ports.requests(), process.ports.elapsed_ms()), (10, 10_000));
    process
}

/// Runs an invocation with one record, whose delivery is postponed. Returns the delivery and its
/// wait.
fn postpone(process: &Process, record: Record) -> (Delivery, u64) {
    let before = process.ports.requests();
    let sent = process.invoke(&[record]);
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(process.ports.requests(), before, "a postponed delivery is not sent");
    (carried(message), message.wait_ms)
}

fn outcomes(delivery: &Delivery) -> Vec<Outcome> {
    delivery.history.first().iter().filter_map(|entry| entry.outcome.known()).collect()
}

#[test]
fn after_ten_timeouts_the_next_due_delivery_is_postponed_without_a_request_or_an_attempt() {
    let process = after_ten_timeouts(&[answers(200)]);
    process.ports.advance_ms(4_000);
    let tried = Delivery { attempts: 3, ..delivery("shop/orders/s0") };
    let (postponed, wait_ms) = postpone(&process, retry_record(&tried));
    // The probation lasts for ten seconds after the last timeout.
    assert_eq!((wait_ms, postponed.due_ms, postponed.attempts), (6_000, NOW_MS + 20_000, 3));
    assert_eq!(outcomes(&postponed), [Outcome::Probation]);
    // The next delivery does not return then. Its return is spread over ten seconds, the length of
    // the outage.
    let (fresh, wait_ms) = postpone(&process, record("m11", EVENT));
    assert_eq!((wait_ms, fresh.attempts, fresh.history.first_attempt()), (11_000, 0, None));
}

#[test]
fn the_last_deferral_ends_five_seconds_before_the_time_to_live_and_then_it_is_attempted() {
    let process = after_ten_timeouts(&[answers(200)]);
    // The default time to live is a day.
    let published_ms = process.ports.now_ms() - DAY_MS + 8_000;
    let old = Delivery { published_ms, starts_ms: published_ms, ..delivery("shop/orders/s0") };
    let (postponed, wait_ms) = postpone(&process, retry_record(&old));
    assert_eq!(wait_ms, 3_000);
    process.ports.advance_ms(wait_ms);
    let sent = process.invoke(&[retry_record(&postponed)]);
    assert_eq!((sent.len(), process.ports.requests()), (0, 11), "attempted on probation");
}

#[test]
fn a_retry_alone_that_is_older_than_its_time_to_live_waits_for_the_probation() {
    let process = after_ten_timeouts(&[answers(200)]);
    let published_ms = process.ports.now_ms() - 2 * DAY_MS;
    let alone = Batching::RetryAlone.into();
    let old = Delivery {
        published_ms,
        starts_ms: published_ms,
        batching: alone,
        ..delivery("shop/orders/s0")
    };
    // Limits do not apply to a retry alone, so it is not a dead letter. It is not re-enqueued again
    // and again either.
    assert_eq!(postpone(&process, retry_record(&old)).1, 10_000);
}

#[test]
fn consecutive_postponements_leave_one_history_entry_and_a_failed_probe_doubles_the_probation() {
    let process = after_ten_timeouts(&[times_out_after(1_000)]);
    let (postponed, _) = postpone(&process, record("m11", EVENT));
    process.ports.advance_ms(10_000);
    let sent = process.invoke(&[record("m12", EVENT)]);
    assert_eq!((process.ports.requests(), carried(&sent[0].1).attempts), (11, 1), "the probe");
    let (postponed, wait_ms) = postpone(&process, retry_record(&postponed));
    assert_eq!(
        (wait_ms, outcomes(&postponed), postponed.attempts),
        (20_000, vec![Outcome::Probation], 0)
    );
}

#[test]
fn one_of_several_due_deliveries_probes_and_its_success_releases_the_others() {
    // The failures are not timeouts, because only one request is made at a time after timeouts.
    let refused = vec![breaks_off_after(1_000); 10];
    let process = with_reactions_of_s0(&[&refused[..], &[answers(200).after_ms(500)]].concat());
    (0..10).for_each(|number| _ = process.invoke(&[record(&format!("m{number}"), EVENT)]));
    process.ports.advance_ms(30_000);
    let sent = process.invoke(&[record("m11", EVENT), record("m12", EVENT), record("m13", EVENT)]);
    assert_eq!((process.ports.requests(), sent.len()), (11, 2));
    // The outage has lasted for half a minute, as long as the probation.
    assert!(
        sent.iter().all(|(queue, message)| *queue == QueueName::Retry && message.wait_ms == 15_000)
    );
    let back: Vec<Record> =
        sent.iter().map(|(_, message)| retry_record(&carried(message))).collect();
    process.ports.advance_ms(15_000);
    assert_eq!((process.invoke(&back).len(), process.ports.requests()), (0, 13));
}

#[test]
fn a_reply_goes_to_its_address_while_the_destination_is_on_probation() {
    let process = after_ten_timeouts(&[answers(200)]);
    let reply = Delivery { target: DeliveryTarget::Reply, ..delivery("shop/orders/s0") };
    assert_eq!(process.invoke(&[retry_record(&reply)]).len(), 0);
    let to: Vec<_> = process.ports.posts().iter().map(|post| post.url.to_string()).collect();
    assert_eq!((to.len(), to.last().map(String::as_str)), (11, Some(REPLIES)));
}
