//! Destinations that have to consent first: which deliveries wait, and how often the handshake
//! runs.

use delivery::delivery::Delivery;
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Message, QueueName};
use delivery::request::Method;
use delivery::subscription::catalogue::Catalogue;
use delivery::wire::read_delivery;
use dispatch::{Deadline, Dispatch};
use futures::executor::block_on;

use super::{ENDS_MS, EVENT, delivery, retried};
use crate::desk::{Desk, NOW_MS, container, record, subscriptions_with_destination};

const ALLOWED: [(&str, &str); 1] = [("allowed-origin", "events.example.com")];

fn cloud_events(rate: &str) -> Catalogue {
    subscriptions_with_destination(&format!(
        "consent: {{handshake: cloudevents, origin: events.example.com, rate: {rate}}}"
    ))
}

fn event_grid() -> Catalogue {
    subscriptions_with_destination("consent: {handshake: eventgrid}")
}

/// A process that handles several invocations.
struct Process {
    desk: Desk,
    dispatch: Dispatch<Desk>,
}

impl Process {
    fn new(desk: Desk) -> Self {
        Self { dispatch: Dispatch::new(desk.clone(), container(), None), desk }
    }

    /// Runs one invocation; returns the messages that it sent.
    fn takes(&self, records: &[adapters::records::Record]) -> Vec<(QueueName, Message)> {
        let before = self.desk.sent().len();
        assert_eq!(
            block_on(self.dispatch.handle(records, &Deadline::new(NOW_MS, NOW_MS))),
            [""; 0]
        );
        self.desk.sent().split_off(before)
    }
}

fn carried(message: &Message) -> Delivery {
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    read_delivery(attribute, Event::recall(&message.body, Input::Auto)).expect("ours")
}

#[test]
fn a_delivery_that_awaits_consent_leaves_uncounted_and_is_delivered_after_the_grant() {
    for catalogue in [cloud_events("120"), event_grid()] {
        let process = Process::new(Desk::new(catalogue));
        let sent = process.takes(&[record("m1", EVENT)]);
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((message.wait_ms, message.body.as_ref()), (60_000, EVENT));
        let waiting = carried(message);
        assert_eq!(
            (waiting.attempts, waiting.due_ms, waiting.history.first().len()),
            (0, NOW_MS - 10, 0)
        );
        assert_eq!((process.desk.requests(), process.desk.questions().len()), (0, 1));

        process.desk.now_allows(&ALLOWED);
        process.desk.passes_ms(60_000);
        assert_eq!(process.takes(&[retried(&waiting)]), []);
        assert_eq!((process.desk.requests(), process.desk.questions().len()), (1, 2));
        assert_eq!(process.desk.consents().len(), 1);
        assert_eq!(process.takes(&[record("m2", EVENT)]), []);
        assert_eq!((process.desk.requests(), process.desk.questions().len()), (2, 2));
    }
}

#[test]
fn a_destination_is_asked_once_for_all_who_come_and_not_again_for_a_minute_then_two() {
    let process = Process::new(Desk::new(event_grid()));
    let records: Vec<_> = (0..10).map(|n| record(&format!("m{n}"), EVENT)).collect();
    assert_eq!(process.takes(&records).len(), 10);
    assert_eq!(process.desk.questions().len(), 1);
    for (passes_ms, questions) in [(59_999, 1), (1, 2), (60_000, 2), (60_000, 3)] {
        process.desk.passes_ms(passes_ms);
        process.takes(&records[..1]);
        assert_eq!(process.desk.questions().len(), questions, "{passes_ms}");
    }
    process.desk.now_allows(&ALLOWED);
    process.desk.passes_ms(900_000);
    assert_eq!(process.takes(&records), []);
    assert_eq!((process.desk.questions().len(), process.desk.requests()), (4, 10));
}

#[test]
fn what_waits_for_consent_waits_longer_each_time_and_its_time_to_live_goes_on() {
    let process = Process::new(Desk::new(event_grid()));
    let mut waiting = delivery("shop/orders/s0");
    (waiting.published_ms, waiting.due_ms) = (NOW_MS, NOW_MS);
    for wait_ms in [60_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000, 900_000] {
        let sent = process.takes(&[retried(&waiting)]);
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((message.wait_ms, carried(message)), (wait_ms, waiting.clone()));
        process.desk.passes_ms(wait_ms);
    }
    let (queue, letter) = process.takes(&[retried(&waiting)]).remove(0);
    let Attribute::DeadLetter(letter) = letter.attribute else { panic!("{letter:?}") };
    assert_eq!(queue, QueueName::DeadLetter);
    assert!(letter.contains("TimeToLiveExceeded") && process.desk.requests() == 0, "{letter}");
}

#[test]
fn who_asked_is_told_in_the_question_and_in_every_delivery() {
    let process = Process::new(Desk::new(cloud_events("120")));
    process.desk.now_allows(&ALLOWED);
    process.takes(&[record("m1", EVENT)]);
    let origin = ("WebHook-Request-Origin".to_owned(), "events.example.com".to_owned());
    let (question, post) = (process.desk.questions().remove(0), process.desk.posts().remove(0));
    assert_eq!((question.method, question.body.len()), (Method::Options, 0));
    assert!(question.headers.contains(&origin) && post.headers.contains(&origin));
    assert!(question.headers.contains(&("WebHook-Request-Rate".to_owned(), "120".to_owned())));
    // There is no callback endpoint here.
    assert!(!question.headers.iter().any(|(name, _)| name.contains("Callback")));
    let plain = Process::new(Desk::new(crate::desk::subscriptions(1)));
    plain.takes(&[record("m1", EVENT)]);
    assert!(!plain.desk.posts()[0].headers.iter().any(|(name, _)| name.contains("Origin")));
}

#[test]
fn a_delivery_over_the_allowed_rate_leaves_uncounted_until_its_turn() {
    let process = Process::new(Desk::new(cloud_events("120")));
    process.desk.now_allows(&[ALLOWED[0], ("allowed-rate", "2")]);
    let records: Vec<_> = (0..4).map(|n| record(&format!("m{n}"), EVENT)).collect();
    let sent = process.takes(&records);
    let waits: Vec<u64> = sent.iter().map(|(_, message)| message.wait_ms).collect();
    assert_eq!((process.desk.requests(), waits), (1, vec![30_000, 60_000, 90_000]));
    assert!(
        sent.iter()
            .all(|(queue, message)| *queue == QueueName::Retry && carried(message).attempts == 0)
    );
    process.desk.passes_ms(30_000);
    assert_eq!(process.takes(&[retried(&carried(&sent[0].1))]), []);
}

#[test]
fn a_rate_is_shared_with_all_who_may_run_at_once_and_an_asterisk_is_no_limit() {
    let desk = Desk::new(cloud_events("120"));
    desk.now_allows(&[ALLOWED[0], ("allowed-rate", "120")]);
    let process = Process {
        dispatch: Dispatch::new(desk.clone(), container(), None).with_max_concurrency(60),
        desk,
    };
    let records: Vec<_> = (0..3).map(|n| record(&format!("m{n}"), EVENT)).collect();
    let waits: Vec<u64> =
        process.takes(&records).iter().map(|(_, message)| message.wait_ms).collect();
    assert_eq!(waits, [30_000, 60_000]);
    let desk = Desk::new(cloud_events("120"));
    desk.now_allows(&[("allowed-origin", "*"), ("allowed-rate", "*")]);
    let process = Process {
        dispatch: Dispatch::new(desk.clone(), container(), None).with_max_concurrency(60),
        desk,
    };
    assert_eq!((process.takes(&records), process.desk.requests()), (vec![], 3));
}

#[test]
fn while_nobody_can_say_who_consented_nobody_is_asked() {
    let process = Process::new(Desk::new(event_grid()));
    process.desk.consents_unreadable(true);
    process.desk.now_allows(&ALLOWED);
    let sent = process.takes(&[record("m1", EVENT)]);
    assert_eq!((sent[0].0, sent[0].1.wait_ms), (QueueName::Retry, 60_000));
    assert_eq!((process.desk.questions().len(), process.desk.requests()), (0, 0));
    process.desk.consents_unreadable(false);
    assert_eq!(
        process.takes(&[record("m2", EVENT)]).len(),
        1,
        "storage is not asked again at once"
    );
    process.desk.passes_ms(30_000);
    assert_eq!((process.takes(&[record("m3", EVENT)]), process.desk.requests()), (vec![], 1));
}

#[test]
fn without_time_for_the_question_nothing_is_counted_and_nobody_is_asked() {
    let desk = Desk::new(event_grid());
    desk.now_allows(&ALLOWED);
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let deadline = Deadline::new(NOW_MS, ENDS_MS);
    desk.passes_ms(119_000);
    // The first attempt of an invocation may always start: here it is the handshake, and the
    // delivery has no time left.
    assert_eq!(block_on(dispatch.handle(&[record("m1", EVENT)], &deadline)), ["m1"]);
    assert_eq!((desk.questions().len(), desk.requests(), desk.sent().len()), (1, 0, 0));
    assert_eq!(
        block_on(
            dispatch.handle(&[record("m1", EVENT)], &Deadline::new(ENDS_MS, ENDS_MS + 120_000))
        ),
        [""; 0]
    );
    assert_eq!((desk.questions().len(), desk.requests()), (1, 1));
}
