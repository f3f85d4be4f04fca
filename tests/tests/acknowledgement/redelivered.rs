//! A record is redelivered because some of its deliveries could not be sent. The same process does
//! not attempt its other deliveries again.

use delivery::ports::{PutError, QueueName, Record};
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, Fault};

use crate::examples::{EVENT, letter, record, subscriptions};
use crate::process::Process;

/// The number of requests that each of these subscriptions got.
fn requests(process: &Process, names: &[&str]) -> Vec<usize> {
    let posts = process.ports.posts();
    let to = |name: &&str| posts.iter().filter(|post| post.url.as_str().contains(*name)).count();
    names.iter().map(to).collect()
}

/// Three subscriptions, of which s1 fails.
fn one_of_three_fails() -> FakePorts {
    FakePorts::new(subscriptions(3)).with_reactions("s1.example", &[answers(503)])
}

#[test]
fn when_the_queue_refuses_the_record_is_redelivered_and_only_what_failed_is_attempted_again() {
    let process = Process::new(one_of_three_fails().with_failing_queue());
    assert_eq!(process.handle(&[record("m1", EVENT)]), ["m1"]);
    assert_eq!(requests(&process, &["s0", "s1", "s2"]), [1, 1, 1]);
    // The record cannot move to isolation either, so its queue hides it.
    let again = Record { receives: 2, ..record("m1", EVENT) };
    assert_eq!(process.handle(std::slice::from_ref(&again)), ["m1"]);
    process.ports.repair_queues();
    assert_eq!(process.handle(&[again]), [""; 0]);
    let (queue, moved) = process.ports.sent().remove(0);
    assert_eq!(queue, QueueName::Isolation);
    // In isolation, the record has another message id. Its attribute carries the id of the
    // published record.
    let isolated = Record { queue, attribute: Some(moved.attribute), ..record("m9", EVENT) };
    assert_eq!(process.handle(&[isolated]), [""; 0]);
    assert_eq!(requests(&process, &["s0", "s1", "s2"]), [1, 2, 1]);
    assert_eq!(process.ports.sent()[1].0, QueueName::Retry);
}

#[test]
fn the_dead_letter_of_a_sibling_is_not_sent_again() {
    let ports = one_of_three_fails().with_reactions("s2.example", &[answers(400)]);
    let ports = ports.with_queue_fault(QueueName::Retry, Fault::Refuses);
    let process = Process::new(ports);
    assert_eq!(process.handle(&[record("m1", EVENT)]), ["m1"]);
    process.ports.repair_queues();
    assert_eq!(process.handle(&[record("m1", EVENT)]), [""; 0]);
    let sent: Vec<QueueName> = process.ports.sent().into_iter().map(|(queue, _)| queue).collect();
    assert_eq!(sent, [QueueName::DeadLetter, QueueName::Retry]);
    assert_eq!(letter(&process.ports.sent()[0].1).delivery.subscription.name, "s2");
    assert_eq!(requests(&process, &["s0", "s1", "s2"]), [1, 2, 1]);
}

#[test]
fn a_delivery_that_travels_alone_is_attempted_although_its_record_has_finished_it() {
    let ports = FakePorts::new(subscriptions(2))
        .with_reactions("s0.example", &[answers(503)])
        .with_reactions("s1.example", &[answers(400)])
        .with_put_error("letters", PutError::Unavailable("503".to_owned()))
        .with_queue_fault(QueueName::DeadLetter, Fault::Refuses);
    let process = Process::new(ports);
    assert_eq!(process.handle(&[record("m1", EVENT)]), ["m1"]);
    let (_, retry) = process.ports.sent().remove(0);
    process.ports.advance_ms(10_000);
    let retry =
        Record { queue: QueueName::Retry, attribute: Some(retry.attribute), ..record("m2", EVENT) };
    assert_eq!(process.handle(&[retry]), [""; 0]);
    assert_eq!(requests(&process, &["s0", "s1"]), [2, 1]);
}
