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
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use super::{ENDS_MS, EVENT, delivery, retry_record, waits};
use crate::examples::{container, record, subscriptions_with_destination};

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
    ports: FakePorts,
    dispatch: Dispatch<FakePorts>,
}

impl Process {
    fn new(ports: FakePorts) -> Self {
        Self { dispatch: Dispatch::new(ports.clone(), container(), None), ports }
    }

    /// Runs one invocation; returns the messages that it sent.
    fn invoke(&self, records: &[delivery::ports::Record]) -> Vec<(QueueName, Message)> {
        let before = self.ports.sent().len();
        assert_eq!(
            block_on(self.dispatch.handle(records, &Deadline::new(NOW_MS, NOW_MS))),
            [""; 0]
        );
        self.ports.sent().split_off(before)
    }
}

fn carried(message: &Message) -> Delivery {
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    read_delivery(attribute, Event::recall(&message.body, Input::Auto)).expect("a valid attribute")
}

#[test]
fn a_delivery_that_awaits_consent_is_re_enqueued_without_an_attempt_and_delivered_after_the_grant()
{
    for catalogue in [cloud_events("120"), event_grid()] {
        let process = Process::new(FakePorts::new(catalogue));
        let sent = process.invoke(&[record("m1", EVENT)]);
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((message.wait_ms, message.body.as_ref()), (60_000, EVENT));
        let waiting = carried(message);
        assert_eq!(
            (waiting.attempts, waiting.due_ms, waiting.history.first().len()),
            (0, NOW_MS - 10, 0)
        );
        assert_eq!((process.ports.requests(), process.ports.validation_requests().len()), (0, 1));

        process.ports.set_consent_headers(&ALLOWED);
        process.ports.advance_ms(60_000);
        assert_eq!(process.invoke(&[retry_record(&waiting)]), []);
        assert_eq!((process.ports.requests(), process.ports.validation_requests().len()), (1, 2));
        assert_eq!(process.ports.consents().len(), 1);
        assert_eq!(process.invoke(&[record("m2", EVENT)]), []);
        assert_eq!((process.ports.requests(), process.ports.validation_requests().len()), (2, 2));
    }
}

#[test]
fn a_destination_is_validated_once_for_all_deliveries_and_again_only_after_one_minute_then_two() {
    let process = Process::new(FakePorts::new(event_grid()));
    let records: Vec<_> = (0..10).map(|n| record(&format!("m{n}"), EVENT)).collect();
    assert_eq!(process.invoke(&records).len(), 10);
    assert_eq!(process.ports.validation_requests().len(), 1);
    for (wait_ms, validation_requests) in [(59_999, 1), (1, 2), (60_000, 2), (60_000, 3)] {
        process.ports.advance_ms(wait_ms);
        process.invoke(&records[..1]);
        assert_eq!(process.ports.validation_requests().len(), validation_requests, "{wait_ms}");
    }
    process.ports.set_consent_headers(&ALLOWED);
    process.ports.advance_ms(900_000);
    assert_eq!(process.invoke(&records), []);
    assert_eq!((process.ports.validation_requests().len(), process.ports.requests()), (4, 10));
}

#[test]
fn waits_for_consent_grow_and_count_against_the_time_to_live() {
    let process = Process::new(FakePorts::new(event_grid()));
    let mut waiting = delivery("shop/orders/s0");
    (waiting.published_ms, waiting.starts_ms, waiting.due_ms) = (NOW_MS, NOW_MS, NOW_MS);
    for wait_ms in [60_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000, 900_000] {
        let sent = process.invoke(&[retry_record(&waiting)]);
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((message.wait_ms, carried(message)), (wait_ms, waiting.clone()));
        process.ports.advance_ms(wait_ms);
    }
    let (queue, letter) = process.invoke(&[retry_record(&waiting)]).remove(0);
    let Attribute::DeadLetter(letter) = letter.attribute else { panic!("{letter:?}") };
    assert_eq!(queue, QueueName::DeadLetter);
    assert!(letter.contains("TimeToLiveExceeded") && process.ports.requests() == 0, "{letter}");
}

#[test]
fn the_validation_request_and_every_delivery_name_the_origin() {
    let process = Process::new(FakePorts::new(cloud_events("120")));
    process.ports.set_consent_headers(&ALLOWED);
    process.invoke(&[record("m1", EVENT)]);
    let origin = ("WebHook-Request-Origin".to_owned(), "events.example.com".to_owned());
    let (question, post) =
        (process.ports.validation_requests().remove(0), process.ports.posts().remove(0));
    assert_eq!((question.method, question.body.len()), (Method::Options, 0));
    assert!(question.headers.contains(&origin) && post.headers.contains(&origin));
    assert!(question.headers.contains(&("WebHook-Request-Rate".to_owned(), "120".to_owned())));
    // There is no callback endpoint here.
    assert!(!question.headers.iter().any(|(name, _)| name.contains("Callback")));
    let plain = Process::new(FakePorts::new(crate::examples::subscriptions(1)));
    plain.invoke(&[record("m1", EVENT)]);
    assert!(!plain.ports.posts()[0].headers.iter().any(|(name, _)| name.contains("Origin")));
}

#[test]
fn a_delivery_over_the_allowed_rate_is_postponed_without_an_attempt() {
    let process = Process::new(FakePorts::new(cloud_events("120")));
    process.ports.set_consent_headers(&[ALLOWED[0], ("allowed-rate", "2")]);
    let records: Vec<_> = (0..4).map(|n| record(&format!("m{n}"), EVENT)).collect();
    let sent = process.invoke(&records);
    let waits: Vec<u64> = sent.iter().map(|(_, message)| message.wait_ms).collect();
    assert_eq!((process.ports.requests(), waits), (1, vec![30_000, 60_000, 90_000]));
    assert!(
        sent.iter()
            .all(|(queue, message)| *queue == QueueName::Retry && carried(message).attempts == 0)
    );
    process.ports.advance_ms(30_000);
    assert_eq!(process.invoke(&[retry_record(&carried(&sent[0].1))]), []);
}

#[test]
fn an_allowed_rate_is_divided_by_the_maximum_concurrency_and_an_asterisk_is_no_limit() {
    let ports = FakePorts::new(cloud_events("120"));
    ports.set_consent_headers(&[ALLOWED[0], ("allowed-rate", "120")]);
    let process = Process {
        dispatch: Dispatch::new(ports.clone(), container(), None).with_max_concurrency(60),
        ports,
    };
    let records: Vec<_> = (0..3).map(|n| record(&format!("m{n}"), EVENT)).collect();
    let waits: Vec<u64> =
        process.invoke(&records).iter().map(|(_, message)| message.wait_ms).collect();
    assert_eq!(waits, [30_000, 60_000]);
    let ports = FakePorts::new(cloud_events("120"));
    ports.set_consent_headers(&[("allowed-origin", "*"), ("allowed-rate", "*")]);
    let process = Process {
        dispatch: Dispatch::new(ports.clone(), container(), None).with_max_concurrency(60),
        ports,
    };
    assert_eq!((process.invoke(&records), process.ports.requests()), (vec![], 3));
}

#[test]
fn while_consents_cannot_be_read_no_validation_request_is_sent() {
    let process = Process::new(FakePorts::new(event_grid()));
    process.ports.set_consents_unreadable(true);
    process.ports.set_consent_headers(&ALLOWED);
    let sent = process.invoke(&[record("m1", EVENT)]);
    assert_eq!((sent[0].0, sent[0].1.wait_ms), (QueueName::Retry, 60_000));
    assert_eq!((process.ports.validation_requests().len(), process.ports.requests()), (0, 0));
    process.ports.set_consents_unreadable(false);
    assert_eq!(
        process.invoke(&[record("m2", EVENT)]).len(),
        1,
        "storage is not read again at once"
    );
    process.ports.advance_ms(30_000);
    assert_eq!((process.invoke(&[record("m3", EVENT)]), process.ports.requests()), (vec![], 1));
}

#[test]
fn without_time_for_validation_no_attempt_is_counted() {
    let ports = FakePorts::new(event_grid());
    ports.set_consent_headers(&ALLOWED);
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    let deadline = Deadline::new(NOW_MS, ENDS_MS);
    ports.advance_ms(119_000);
    // The first attempt of an invocation may always start: here it is the handshake, and the
    // delivery has no time left.
    assert_eq!(block_on(dispatch.handle(&[record("m1", EVENT)], &deadline)), [""; 0]);
    assert_eq!((ports.validation_requests().len(), ports.requests()), (1, 0));
    assert_eq!(waits(&ports), [(QueueName::Retry, 0)]);
    assert_eq!(super::carried(&ports.sent()[0].1).attempts, 0);
    assert_eq!(
        block_on(
            dispatch.handle(&[record("m1", EVENT)], &Deadline::new(ENDS_MS, ENDS_MS + 120_000))
        ),
        [""; 0]
    );
    assert_eq!((ports.validation_requests().len(), ports.requests()), (1, 1));
}
