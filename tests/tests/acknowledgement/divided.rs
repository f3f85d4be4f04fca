//! Records with more deliveries than run in place. They are divided into parts, which the tests
//! feed back until nothing is left.
//!
//! Every delivery of a record is made once, with the same id as without a division.

use std::collections::{BTreeMap, BTreeSet};

use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC};
use delivery::delivery::{Delivery, Hold, Origin, Publication};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, MESSAGE_MAX_BYTES, Message, QueueName, Record};
use delivery::subscription::catalogue::{Catalogue, Topic};
use delivery::subscription::filter::Filter;
use delivery::subscription::topic_settings::TopicSettings;
use delivery::subscription::{Batch, OnRefused, Subscription};
use delivery::wire::write_publication;
use dispatch::{PARTS_MAX, REQUESTS_IN_PLACE};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    ENDS_MS, catalogue_of, dispatch, letter, publication, record, subscription, subscriptions,
};

/// The maximum number of messages that one invocation may send for one record.
const SENDS_MAX: usize = 3 * PARTS_MAX;
/// More invocations than any record here needs.
const INVOCATIONS_MAX: usize = 5_000;

fn event(number: usize) -> String {
    format!(r#"{{"specversion":"1.0","id":"{number}","source":"s","type":"t"}}"#)
}

/// A record of this many events.
fn events(count: usize) -> Record {
    let events: Vec<String> = (0..count).map(event).collect();
    record("m1", &format!("[{}]", events.join(" ,\n ")))
}

/// The record of a message that is received from its queue.
pub(super) fn received(number: usize, (queue, message): &(QueueName, Message)) -> Record {
    let topic = message.topic.as_ref().map(ToString::to_string);
    let attribute = Some(message.attribute.clone());
    let queue = *queue;
    Record { queue, attribute, topic, ..record(&format!("part{number}"), &message.body) }
}

/// Invokes dispatch with a record, and then with everything that dispatch sends to itself, until
/// nothing is left. Returns the number of invocations.
fn run_out(ports: &FakePorts, first: Record) -> usize {
    let (mut waiting, mut taken, mut invocations) = (vec![first], ports.sent().len(), 0);
    while let Some(next) = waiting.pop() {
        let requests = ports.requests();
        assert_eq!(dispatch(ports, &[next], ENDS_MS), [""; 0]);
        assert!(ports.requests() - requests <= REQUESTS_IN_PLACE);
        let sent = ports.sent_after(taken);
        assert!(sent.len() <= SENDS_MAX, "{} messages at once", sent.len());
        for (number, message) in sent.iter().enumerate() {
            assert!(message.1.fits());
            if message.0 != QueueName::DeadLetter {
                waiting.push(received(taken + number, message));
            }
        }
        taken += sent.len();
        invocations += 1;
        assert!(invocations < INVOCATIONS_MAX, "it is divided without an end");
    }
    invocations
}

/// The address and the body of each request.
fn posts(ports: &FakePorts) -> Vec<(String, String)> {
    let post = |request: &delivery::request::Request| {
        (request.url.to_string(), String::from_utf8_lossy(&request.body).into_owned())
    };
    let mut posts: Vec<_> = ports.posts().iter().map(post).collect();
    posts.sort();
    posts
}

/// The address and the body of each of these events for each of these subscriptions.
fn one_each(events: usize, names: &[String]) -> Vec<(String, String)> {
    let address = |name: &String| format!("https://{name}.example.com/");
    let mut all: Vec<_> = names
        .iter()
        .flat_map(|name| (0..events).map(move |number| (address(name), event(number))))
        .collect();
    all.sort();
    all
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number}")).collect()
}

#[test]
fn a_divided_record_is_delivered_as_if_it_had_not_been_divided() {
    for (count, subscribers) in
        [(0, 2), (1, 11), (11, 1), (25, 3), (1, 345), (1, 1_101), (1_234, 1), (7, 101)]
    {
        let ports = FakePorts::new(subscriptions(subscribers));
        run_out(&ports, events(count));
        assert_eq!(posts(&ports), one_each(count, &names(subscribers)), "{count}×{subscribers}");
    }
}

#[test]
fn ten_deliveries_run_in_place_and_eleven_are_two_parts() {
    for (count, subscribers, requests, parts) in
        [(1, 10, 10, 0), (1, 11, 0, 2), (2, 11, 0, 2), (5, 2, 10, 0), (11, 1, 0, 2)]
    {
        let ports = FakePorts::new(subscriptions(subscribers));
        dispatch(&ports, &[events(count)], ENDS_MS);
        let queues: Vec<_> = ports.sent().iter().map(|(queue, _)| *queue).collect();
        assert_eq!((ports.requests(), queues), (requests, vec![QueueName::Retry; parts]));
    }
}

#[test]
fn a_part_carries_all_that_is_known_of_its_record() {
    let ports = FakePorts::new(subscriptions(2));
    let group = Some("tenant-7".to_owned());
    let traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
    let whole = Record { group, traceparent, ..events(12) };
    dispatch(&ports, std::slice::from_ref(&whole), ENDS_MS);
    let sent = ports.sent();
    assert_eq!(first_of_parts(&ports), [0, 5, 10]);
    let of_whole = whole.as_publication();
    for (_, part) in &sent {
        let publication = publication(part);
        assert_eq!(
            (&publication.message, publication.published_ms, &publication.topic),
            (&of_whole.message, of_whole.published_ms, &of_whole.topic)
        );
        assert_eq!(
            (&publication.group, &publication.traceparent, part.wait_ms),
            (&of_whole.group, &of_whole.traceparent, 0)
        );
    }
    assert_eq!(sent[2].1.body.as_ref(), format!("[{},{}]", event(10), event(11)));
}

#[test]
fn a_part_of_a_record_that_was_held_begins_without_a_hold() {
    let hold = Hold { count: 9, until_ms: NOW_MS + 2_700_000, ..Hold::default() };
    let held = write_publication(&Publication { hold, ..events(12).as_publication() });
    let attribute = Some(Attribute::Publication(held));
    let ports = FakePorts::new(subscriptions(1));
    let held = Record { queue: QueueName::Retry, attribute, ..events(12) };
    assert_eq!(dispatch(&ports, &[held], ENDS_MS), [""; 0]);
    assert_eq!(first_of_parts(&ports), [0, 10]);
    assert!(ports.sent().iter().all(|(_, part)| publication(part).hold.is_none()));
}

#[test]
fn a_redelivery_sends_the_same_parts_and_no_others() {
    let ports = FakePorts::new(subscriptions(3));
    for _ in 0..2 {
        dispatch(&ports, &[events(1_000)], ENDS_MS);
    }
    let sent = ports.sent();
    let (before, after) = sent.split_at(sent.len() / 2);
    assert_eq!(before, after);
    assert!(before.len() <= PARTS_MAX);
}

#[test]
fn a_subscription_that_is_added_or_removed_meanwhile_changes_nothing_for_the_others() {
    let before = FakePorts::new(subscriptions(250));
    dispatch(&before, &[events(1)], ENDS_MS);
    // s250 and s251 are between s25 and s26; s7 is gone.
    let others = (0..252).filter(|number| *number != 7);
    let changed = others.map(|number| subscription(&format!("shop/orders/s{number}")));
    let after = FakePorts::new(catalogue_of(changed));
    for (number, part) in before.sent().iter().enumerate() {
        run_out(&after, received(number, part));
    }
    let mut expected = names(252);
    expected.remove(7);
    assert_eq!(posts(&after), one_each(1, &expected));
}

#[test]
fn an_input_that_changes_meanwhile_changes_no_index() {
    let topic = |input| Topic {
        settings: TopicSettings { input, ..TopicSettings::default() },
        ..Topic::new("shop/orders".parse().expect("a topic"))
    };
    let catalogue = |input| {
        let mut catalogue = Catalogue::default();
        catalogue.add_topic(topic(input));
        catalogue.add_subscription(subscription("shop/orders/s0"));
        catalogue
    };
    let before = FakePorts::new(catalogue(Input::Auto));
    dispatch(&before, &[events(12)], ENDS_MS);
    let after = FakePorts::new(catalogue(Input::Opaque));
    for (number, part) in before.sent().iter().enumerate() {
        run_out(&after, received(number, part));
    }
    assert_eq!(posts(&after), one_each(12, &names(1)));
}

/// The reason, subscription and event of each dead letter, by the id of its delivery, and the
/// number of dead letters.
fn letters(ports: &FakePorts) -> (usize, BTreeMap<String, String>) {
    let sent = ports.sent();
    let letters = sent.iter().filter(|(queue, _)| *queue == QueueName::DeadLetter);
    let letters: Vec<_> = letters.map(|(_, message)| letter(message)).collect();
    let by_id = letters.iter().map(|letter| {
        let id = letter.delivery.id.to_string();
        (
            id,
            format!(
                "{} {} {}",
                letter.reason,
                letter.delivery.subscription,
                letter.delivery.event.text()
            ),
        )
    });
    (letters.len(), by_id.collect())
}

#[test]
fn every_element_of_an_unknown_topic_becomes_a_dead_letter_of_its_own() {
    let ports = FakePorts::new(subscriptions(1));
    let ones = vec!["1"; 3_210].join(",");
    let unknown =
        Record { topic: Some("shop/other".to_owned()), ..record("m1", &format!("[{ones}]")) };
    run_out(&ports, unknown);
    let (count, by_id) = letters(&ports);
    let id = |index| {
        let origin = Origin { message: "m1".to_owned(), index };
        let name = format!("shop/other/{UNKNOWN_TOPIC}").parse().expect("a name");
        Delivery::new(Event::recall(&"1".into(), Input::Auto), name, origin, 0).id.to_string()
    };
    assert_eq!((count, by_id.len()), (3_210, 3_210));
    assert!((0..3_210).all(|index| by_id.contains_key(&id(index))));
}

#[test]
fn malformed_elements_keep_their_index_and_no_good_one_is_lost() {
    let ports = FakePorts::new(subscriptions(2));
    let element =
        |number| if number % 3 == 1 { r#"{"specversion":"7"}"#.to_owned() } else { event(number) };
    let elements: Vec<String> = (0..60).map(element).collect();
    run_out(&ports, record("m1", &format!("[{}]", elements.join(","))));
    let delivered: BTreeSet<_> = posts(&ports).into_iter().collect();
    assert_eq!((delivered.len(), ports.posts().len()), (80, 80));
    let (count, by_id) = letters(&ports);
    let malformed = format!(r#"MalformedEvent shop/orders/{MALFORMED} {{"specversion":"7"}}"#);
    assert_eq!((count, by_id.len()), (20, 20));
    assert!(by_id.values().all(|letter| *letter == malformed), "{by_id:?}");
}

#[test]
fn the_records_of_an_s3_notification_are_divided_too() {
    let uploads = Topic {
        settings: TopicSettings { input: Input::S3, ..TopicSettings::default() },
        ..Topic::new("shop/orders".parse().expect("a topic"))
    };
    let mut catalogue = Catalogue::default();
    catalogue.add_topic(uploads);
    catalogue.add_subscription(subscription("shop/orders/s0"));
    let ports = FakePorts::new(catalogue);
    let object = |number: usize| {
        format!(
            r#"{{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","responseElements":{{"x-amz-request-id":"1"}},"s3":{{"bucket":{{"name":"b"}},"object":{{"key":"{number}"}}}}}}"#
        )
    };
    let records: Vec<String> = (0..25).map(object).collect();
    run_out(&ports, record("m1", &format!(r#"{{"Records":[{}]}}"#, records.join(", "))));
    let bodies: BTreeSet<String> = posts(&ports).into_iter().map(|(_, body)| body).collect();
    assert_eq!((bodies.len(), ports.posts().len()), (25, 25));
    assert!(records.iter().all(|record| bodies.iter().any(|body| body.contains(record))));
}

fn batching(name: &str, max_events: u32) -> Subscription {
    let batch = Batch { max_events, preferred_bytes: 1_048_576, on_refused: OnRefused::Split };
    Subscription { batch: Some(batch), ..subscription(name) }
}

/// The number of events in each request to this subscription.
fn batch_sizes(ports: &FakePorts, name: &str) -> Vec<usize> {
    let address = format!("https://{name}.example.com/");
    let to_address = posts(ports).into_iter().filter(|(url, _)| *url == address);
    let mut sizes: Vec<usize> =
        to_address.map(|(_, body)| body.matches("specversion").count()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

#[test]
fn beside_subscriptions_without_batches_a_batch_stays_together() {
    let both = [
        batching("shop/orders/s1", 1_000),
        subscription("shop/orders/s0"),
        subscription("shop/orders/s2"),
    ];
    let ports = FakePorts::new(catalogue_of(both));
    let whole = events(25);
    let body = whole.body.replacen('[', r#"[{"specversion":"7"},"#, 1);
    run_out(&ports, Record { body: body.into(), ..whole });
    assert_eq!(batch_sizes(&ports, "s1"), [25]);
    assert_eq!([batch_sizes(&ports, "s0"), batch_sizes(&ports, "s2")], [vec![1; 25], vec![1; 25]]);
    // There is one dead letter, and not one for each part.
    assert_eq!(letters(&ports).0, 1);
}

#[test]
fn large_batches_are_full() {
    for (max_events, expected) in [
        (3_000, vec![3_000, 3_000, 1_000]),
        (2_500, vec![2_500, 2_500, 2_000]),
        (1_000, vec![1_000; 7]),
        (400, [vec![400; 17], vec![200]].concat()),
    ] {
        let ports = FakePorts::new(catalogue_of([batching("shop/orders/s0", max_events)]));
        run_out(&ports, events(7_000));
        assert_eq!(batch_sizes(&ports, "s0"), expected, "{max_events}");
    }
}

/// The index of the first event of each part that was sent.
fn first_of_parts(ports: &FakePorts) -> Vec<u32> {
    let first = |part: &Message| publication(part).part.expect("a part").first;
    ports.sent().iter().map(|(_, part)| first(part)).collect()
}

#[test]
fn no_further_batch_begins_after_a_thousand_events_in_place() {
    for (max_events, first) in [(1_000, vec![0, 2_000, 4_000]), (999, vec![0, 1_998, 3_996])] {
        let ports = FakePorts::new(catalogue_of([batching("shop/orders/s0", max_events)]));
        dispatch(&ports, &[events(5_000)], ENDS_MS);
        assert_eq!(first_of_parts(&ports), first, "{max_events}");
    }
}

#[test]
fn events_that_no_subscription_matches_are_bounded_and_acknowledged() {
    let mut nothing = subscription("shop/orders/s0");
    nothing.expires_ms = Some(1);
    let ports = FakePorts::new(catalogue_of([nothing]));
    assert!(run_out(&ports, events(8_000)) > 1);
    assert_eq!((ports.requests(), letters(&ports).0), (0, 0));
}

#[test]
fn a_record_with_more_deliveries_than_are_counted_misses_none() {
    // 700 events for thirty subscriptions, then one for another subscription, and one for none.
    let of_type = |number: usize, kind: &str| event(number).replace(r#""t""#, &format!("{kind:?}"));
    let mut all: Vec<String> = (0..700).map(|number| of_type(number, "wanted")).collect();
    all.extend([of_type(700, "rare"), of_type(701, "unwanted")]);
    let only = |name: String, kind: &str| {
        let mut only = subscription(&format!("shop/orders/{name}"));
        only.filter = Filter::Exact { name: "type".to_owned(), value: kind.to_owned() };
        only
    };
    let thirty = names(30).into_iter().map(|name| only(name, "wanted"));
    let ports = FakePorts::new(catalogue_of(thirty.chain([only("z".to_owned(), "rare")])));
    run_out(&ports, record("m1", &format!("[{}]", all.join(","))));
    let mut expected: Vec<_> = names(30)
        .iter()
        .flat_map(|name| (0..700).map(move |number| (name.clone(), number)))
        .map(|(name, number)| (format!("https://{name}.example.com/"), of_type(number, "wanted")))
        .collect();
    expected.push(("https://z.example.com/".to_owned(), of_type(700, "rare")));
    expected.sort();
    assert_eq!(posts(&ports), expected);
}

#[test]
fn events_that_each_want_another_subscription_become_few_parts() {
    let tenants = 1_500;
    let of_tenant = |number: usize| event(number).replace(r#""t""#, &format!("\"k{number}\""));
    let only = |number: usize| {
        let mut only = subscription(&format!("shop/orders/s{number}"));
        let value = format!("k{number}");
        only.filter = Filter::Exact { name: "type".to_owned(), value };
        only
    };
    let ports = FakePorts::new(catalogue_of((0..tenants).map(only)));
    let events: Vec<String> = (0..tenants).map(of_tenant).collect();
    run_out(&ports, record("m1", &format!("[{}]", events.join(","))));
    assert_eq!(ports.posts().len(), tenants);
    let parts: Vec<_> = ports.sent().into_iter().map(|(_, part)| part.body.len()).collect();
    // Each event is in a part, and perhaps in a part of that part.
    let bytes: usize = parts.iter().sum();
    assert!(parts.len() <= 2 * PARTS_MAX && bytes < 300_000, "{} parts, {bytes}", parts.len());
}

#[test]
fn a_batch_stays_together_beside_a_body_that_fits_no_range_of_subscriptions() {
    let both = [batching("shop/orders/s0", 1_000), subscription("shop/orders/s1")];
    let ports = FakePorts::new(catalogue_of(both));
    let pad = (MESSAGE_MAX_BYTES - 100) / 900 - event(100).len() - 13;
    let padded =
        |number: usize| event(number).replace('}', &format!(r#","data":"{}"}}"#, "x".repeat(pad)));
    let events: Vec<String> = (0..900).map(padded).collect();
    let body = format!("[{}]", events.join(","));
    assert!(body.len() <= MESSAGE_MAX_BYTES && body.len() > MESSAGE_MAX_BYTES - 20_000);
    let body = format!("{}{body}", " ".repeat(MESSAGE_MAX_BYTES - body.len()));
    run_out(&ports, record("m1", &body));
    assert_eq!(batch_sizes(&ports, "s0"), [450, 450]);
}

#[test]
fn before_events_of_an_unknown_topic_are_divided_the_newest_subscriptions_are_read() {
    // A division of the record would tear the batch apart.
    for count in [1, 3, 25] {
        let newest = catalogue_of([batching("shop/orders/s0", 1_000)]);
        let ports = FakePorts::new(Catalogue::default()).with_newer_catalogue(newest);
        assert_eq!(dispatch(&ports, &[events(count)], ENDS_MS), [""; 0]);
        assert_eq!((batch_sizes(&ports, "s0"), ports.sent().len()), (vec![count], 0));
    }
}

#[test]
fn an_element_too_large_for_a_part_runs_in_place_and_the_rest_is_divided() {
    let ports = FakePorts::new(subscriptions(11));
    // The large element fits into a message with the others, but not beside the attribute of a
    // part.
    let rest = format!(",{},{}]", event(1), event(2));
    let pad = MESSAGE_MAX_BYTES - 1 - event(0).len() - r#","data":"""#.len() - rest.len();
    let large = event(0).replace('}', &format!(r#","data":"{}"}}"#, "x".repeat(pad)));
    let body = format!("[{large}{rest}");
    assert_eq!(body.len(), MESSAGE_MAX_BYTES);
    dispatch(&ports, &[record("m1", &body)], ENDS_MS);
    assert_eq!((ports.requests(), ports.sent().len()), (11, 2));
    for (number, part) in ports.sent().iter().enumerate() {
        assert!(matches!(part.1.attribute, Attribute::Publication(_)));
        run_out(&ports, received(number, part));
    }
    assert_eq!(posts(&ports).iter().collect::<BTreeSet<_>>().len(), 33);
}

#[test]
fn a_part_too_large_for_a_message_is_halved() {
    let ports = FakePorts::new(subscriptions(1));
    // Ten of eleven deliveries run in place together, and the record has the maximum size of a
    // message.
    let padded = |number: usize, bytes: usize| {
        event(number).replace('}', &format!(r#","data":"{}"}}"#, "x".repeat(bytes)))
    };
    let body = |bytes: usize| {
        let large: Vec<String> = (0..10).map(|number| padded(number, bytes)).collect();
        format!("[{},{}]", large.join(","), event(10))
    };
    let body = body((MESSAGE_MAX_BYTES - body(0).len()) / 10);
    dispatch(&ports, &[record("m1", &body)], ENDS_MS);
    assert_eq!((first_of_parts(&ports), ports.requests()), (vec![0, 5, 10], 0));
    for (number, part) in ports.sent().iter().enumerate() {
        run_out(&ports, received(number, part));
    }
    assert_eq!(posts(&ports).iter().collect::<BTreeSet<_>>().len(), 11);
}

#[test]
fn an_invocation_takes_on_one_large_record_at_a_time() {
    let ports = FakePorts::new(catalogue_of([batching("shop/orders/s0", 5_000)]));
    let records =
        ["m1", "m2", "m3"].map(|message| Record { message: message.to_owned(), ..events(4_000) });
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    assert_eq!(batch_sizes(&ports, "s0"), [4_000]);
    let waiting: Vec<_> = ports.sent();
    let messages: Vec<_> =
        waiting.iter().map(|(_, message)| publication(message).message).collect();
    assert_eq!(messages, ["m2", "m3"]);
    for (number, message) in waiting.iter().enumerate() {
        run_out(&ports, received(number, message));
    }
    assert_eq!(batch_sizes(&ports, "s0"), [4_000; 3]);
}

#[test]
fn out_of_time_a_large_element_returns_with_its_record_although_parts_were_sent() {
    let ports = FakePorts::new(subscriptions(1)).with_duration_ms(60_000);
    let rest = format!("{}]", ",1".repeat(15));
    // The large element fits into a message with the others, but alone it does not fit beside its
    // attribute.
    let pad = MESSAGE_MAX_BYTES - 1 - event(0).len() - r#","data":"""#.len() - rest.len();
    let large = event(0).replace('}', &format!(r#","data":"{}"}}"#, "x".repeat(pad)));
    let large = record("m2", &format!("[{large}{rest}"));
    assert!(large.body.len() <= MESSAGE_MAX_BYTES);
    assert_eq!(dispatch(&ports, &[record("m1", &event(0)), large], NOW_MS + 45_000), ["m2"]);
    let sent = ports.sent();
    assert!(ports.blobs().is_empty() && sent.iter().all(|(queue, _)| *queue == QueueName::Retry));
}

#[test]
fn no_part_is_its_record_whatever_the_size() {
    // The sizes cover three cases: every range of names fits beside the body, only some ranges fit,
    // and no range fits.
    for size in (MESSAGE_MAX_BYTES - 400..=MESSAGE_MAX_BYTES).step_by(16) {
        let ports = FakePorts::new(subscriptions(11));
        let pad = size - event(0).len() - r#","data":"""#.len();
        let body = event(0).replace('}', &format!(r#","data":"{}"}}"#, "x".repeat(pad)));
        let (mut waiting, mut rounds) = (vec![record("m1", &body)], 0);
        while let Some(next) = waiting.pop() {
            let before = ports.sent().len();
            assert_eq!(dispatch(&ports, &[next], ENDS_MS), [""; 0]);
            let sent = ports.sent_after(before);
            waiting.extend(sent.iter().enumerate().map(|(number, part)| received(number, part)));
            rounds += 1;
            assert!(rounds < 5, "{size}");
        }
        assert_eq!(ports.requests(), 11, "{size}");
    }
}

/// The number of messages that this record becomes.
fn parts_of(catalogue: Catalogue, record: Record) -> usize {
    let ports = FakePorts::new(catalogue);
    assert_eq!(dispatch(&ports, &[record], ENDS_MS), [""; 0]);
    assert_eq!(ports.requests(), 0);
    ports.sent().len()
}

#[test]
fn parts_are_as_few_as_run_in_place_and_of_more_than_a_hundred_a_hundred_are_one() {
    for (deliveries, parts) in [(45, 5), (1_000, 100), (1_001, 2), (2_500, 3)] {
        let many =
            names(deliveries).into_iter().map(|name| subscription(&format!("shop/orders/{name}")));
        assert_eq!(parts_of(catalogue_of(many), events(1)), parts, "1×{deliveries}");
        assert_eq!(parts_of(subscriptions(1), events(deliveries)), parts, "{deliveries}×1");
    }
}

#[test]
fn batches_of_several_subscriptions_are_full_though_there_are_more_events_than_are_matched() {
    let both = ["s0", "s1"].map(|name| batching(&format!("shop/orders/{name}"), 1_000));
    let ports = FakePorts::new(catalogue_of(both));
    run_out(&ports, events(5_001));
    for name in ["s0", "s1"] {
        assert_eq!(batch_sizes(&ports, name), [vec![1_000; 5], vec![1]].concat());
    }
}

#[test]
fn a_long_name_of_an_unknown_topic_hinders_no_division() {
    let ports = FakePorts::new(subscriptions(1));
    let topic = Some("ö".repeat(9_000));
    let ones = format!("[{}]", vec!["1"; 500].join(","));
    run_out(&ports, Record { topic, ..record("m1", &ones) });
    assert_eq!((letters(&ports).0, ports.blobs().len()), (500, 0));
    // The detail has the beginning of the name, for people.
    let unknown = ports.sent().into_iter().filter(|(queue, _)| *queue == QueueName::DeadLetter);
    let named = unknown.filter_map(|(_, message)| letter(&message).detail);
    assert_eq!(named.filter(|detail| detail.starts_with(r#""öööö"#)).count(), 500);
}
