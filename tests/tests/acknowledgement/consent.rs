//! Destinations that have to consent first: deliveries wait, and each destination gets one handshake at a time.

use delivery::ports::QueueName;
use delivery::request::Method;
use delivery::subscription::catalogue::Catalogue;
use dispatch::Deadline;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    ENDS_MS, EVENT, carried, events, record, retry_record, subscriptions,
    subscriptions_with_destination, waits,
};
use crate::process::Process;

const ALLOWED: [(&str, &str); 1] = [("allowed-origin", "events.example.com")];

fn cloud_events(rate: &str) -> Catalogue {
    subscriptions_with_destination(&format!(
        "consent: {{handshake: cloudevents, origin: events.example.com, rate: {rate}}}"
    ))
}

fn event_grid() -> Catalogue {
    subscriptions_with_destination("consent: {handshake: eventgrid}")
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
    let records = events("m", 10);
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
    let plain = Process::new(FakePorts::new(subscriptions(1)));
    plain.invoke(&[record("m1", EVENT)]);
    assert!(!plain.ports.posts()[0].headers.iter().any(|(name, _)| name.contains("Origin")));
}

#[test]
fn a_delivery_over_the_allowed_rate_is_postponed_without_an_attempt() {
    let process = Process::new(FakePorts::new(cloud_events("120")));
    process.ports.set_consent_headers(&[ALLOWED[0], ("allowed-rate", "2")]);
    let records = events("m", 4);
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
    let process = Process::one_of(60, ports);
    let records = events("m", 3);
    let waits: Vec<u64> =
        process.invoke(&records).iter().map(|(_, message)| message.wait_ms).collect();
    assert_eq!(waits, [30_000, 60_000]);
    let ports = FakePorts::new(cloud_events("120"));
    ports.set_consent_headers(&[("allowed-origin", "*"), ("allowed-rate", "*")]);
    let process = Process::one_of(60, ports);
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
    let process = Process::new(ports.clone());
    let deadline = Deadline::new(NOW_MS, ENDS_MS);
    ports.advance_ms(119_000);
    // The first attempt of an invocation may always start: here it is the handshake, and the
    // delivery has no time left.
    assert_eq!(ports.run(process.dispatch.handle(&[record("m1", EVENT)], &deadline)), [""; 0]);
    assert_eq!((ports.validation_requests().len(), ports.requests()), (1, 0));
    assert_eq!(waits(&ports), [(QueueName::Retry, 0)]);
    assert_eq!(carried(&ports.sent()[0].1).attempts, 0);
    assert_eq!(process.invoke(&[record("m1", EVENT)]), []);
    assert_eq!((ports.validation_requests().len(), ports.requests()), (1, 1));
}
