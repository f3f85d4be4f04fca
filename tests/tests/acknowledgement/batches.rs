//! Several events in one request: each delivery is settled and re-enqueued by itself.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::{Batching, Delivery};
use delivery::event::schema::Schema;
use delivery::ports::{QueueName, Record};
use delivery::subscription::templates::Templated;
use delivery::subscription::{Batch, OnRefused, Subscription};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::answers;
use uuid::Uuid;

use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_of, delivery, dispatch, letter, record, retry_record,
    subscription,
};
use crate::sinks::{address, sink_delivery, with_sink};

fn batching(on_refused: OnRefused) -> Subscription {
    let batch = Batch { max_events: 100, preferred_bytes: 64 * 1_024, on_refused };
    Subscription { batch: Some(batch), ..subscription("shop/orders/s0") }
}

fn ports_for(subscription: Subscription) -> FakePorts {
    FakePorts::new(catalogue_of([subscription]))
}

fn three_records() -> [Record; 3] {
    ["m1", "m2", "m3"].map(|message| record(message, EVENT))
}

fn bodies(ports: &FakePorts) -> Vec<String> {
    ports
        .posts()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect()
}

#[test]
fn each_member_of_a_failed_batch_is_re_enqueued_with_its_own_state() {
    let ports = ports_for(batching(OnRefused::Split)).with_status(503);
    let before = Delivery { attempts: 2, ..delivery("shop/orders/s0") };
    let old = Record { message: "m4".to_owned(), ..retry_record(&before) };
    assert_eq!(dispatch(&ports, &[&three_records()[..], &[old]].concat(), ENDS_MS), [""; 0]);
    assert_eq!(bodies(&ports), [format!("[{EVENT},{EVENT},{EVENT},{EVENT}]")]);
    let mut left: Vec<(QueueName, String, u32, u64)> = ports
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
fn a_panic_while_one_member_is_sent_affects_no_other_member() {
    let ports = ports_for(batching(OnRefused::Split)).with_status(503).with_one_panic_on_send();
    assert_eq!(dispatch(&ports, &three_records(), ENDS_MS), [""; 0]);
    let result = |message| {
        let delivery = carried(message);
        let newest = delivery.history.newest().and_then(|entry| entry.outcome.known());
        (newest, delivery.batching.known())
    };
    let mut results: Vec<_> = ports.sent().iter().map(|(_, message)| result(message)).collect();
    results.sort_unstable_by_key(|(outcome, _)| *outcome);
    let busy = (Some(Outcome::Busy), Some(Batching::Allowed));
    let alone = (Some(Outcome::Aborted), Some(Batching::Disabled));
    assert_eq!(results, [busy, busy, alone], "an interrupted one shares no further request");
}

#[test]
fn each_member_of_a_refused_batch_is_re_enqueued_for_a_retry_alone() {
    let ports = ports_for(batching(OnRefused::Split)).with_status(400);
    assert_eq!(dispatch(&ports, &three_records(), ENDS_MS), [""; 0]);
    let sent = ports.sent();
    assert_eq!((ports.requests(), sent.len()), (1, 3));
    for (queue, message) in &sent {
        let state = carried(message);
        assert_eq!(
            (*queue, message.wait_ms, state.attempts, state.batching.known()),
            (QueueName::Retry, 0, 1, Some(Batching::RetryAlone))
        );
    }
}

#[test]
fn an_event_that_cannot_be_sent_does_not_block_the_others() {
    let mut grid_only = batching(OnRefused::Split);
    grid_only.destination.schema = Some(Schema::EventGrid);
    let ports = ports_for(grid_only);
    let grid_record =
        r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13Z"}"#;
    let records = [record("m1", grid_record), record("m2", EVENT), record("m3", grid_record)];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    assert_eq!(bodies(&ports), [format!("[{grid_record},{grid_record}]")]);
    let sent = ports.sent();
    let [(QueueName::DeadLetter, message)] = &sent[..] else { panic!("{sent:?}") };
    let letter = letter(message);
    assert_eq!(letter.reason, Reason::UndeliverableDueToInvalidRequest);
    assert_eq!(letter.delivery.origin.message, "m2");
}

#[test]
fn a_member_whose_retry_is_due_within_a_second_is_retried_with_the_others() {
    let mut quick_retry = batching(OnRefused::Split);
    quick_retry.retry.schedule.kind = delivery::waits::Kind::Constant { delay_ms: 200 };
    let ports =
        ports_for(quick_retry).with_reactions("s0.example.com", &[answers(503), answers(200)]);
    assert_eq!(dispatch(&ports, &three_records(), ENDS_MS), [""; 0]);
    assert_eq!(
        (bodies(&ports), ports.sent().len()),
        (vec![format!("[{EVENT},{EVENT},{EVENT}]"); 2], 0)
    );
}

#[test]
fn an_event_that_its_template_cannot_render_ends_alone_whatever_refused_batches_mean() {
    for on_refused in OnRefused::ALL {
        let mut templated = batching(on_refused);
        let text = "{% for of in events %}{{ of.data.total }} {% endfor %}";
        let compiled = Templated::text(text, "destination.bodyText").expect("a template");
        templated.destination.body_text = Some(compiled);
        let first = ports_for(templated.clone());
        let event_with = |data: &str| {
            format!(
                r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{{"{data}":7}}}}"#
            )
        };
        let records = [
            record("m1", &event_with("total")),
            record("m2", &event_with("sum")),
            record("m3", &event_with("total")),
        ];
        assert_eq!(dispatch(&first, &records, ENDS_MS), [""; 0]);
        assert_eq!(first.requests(), 0);
        let retries_alone: Vec<Record> = first
            .sent()
            .iter()
            .map(|(queue, message)| {
                assert_eq!((*queue, message.wait_ms), (QueueName::Retry, 0));
                let state = carried(message);
                let message_id = state.origin.message.clone();
                Record { message: message_id, body: message.body.clone(), ..retry_record(&state) }
            })
            .collect();
        let ports = ports_for(templated);
        assert_eq!(dispatch(&ports, &retries_alone, ENDS_MS), [""; 0]);
        assert_eq!(bodies(&ports), ["7 ", "7 "], "{on_refused:?}");
        let sent = ports.sent();
        let [(QueueName::DeadLetter, message)] = &sent[..] else { panic!("{sent:?}") };
        let letter = letter(message);
        assert_eq!(letter.reason, Reason::UndeliverableDueToInvalidRequest);
        assert_eq!(letter.delivery.origin.message, "m2");
        let detail = letter.detail.expect("the reason");
        assert!(detail.contains("destination.bodyText: `{{ of.data.total }}`: "), "{detail}");
    }
}

#[test]
fn dead_letters_for_an_address_share_no_request_with_events_or_with_each_other() {
    let batch = batching(OnRefused::Split).batch;
    let ports = ports_for(Subscription { batch, ..with_sink("shop/orders/s0", address()) });
    let to_sink = sink_delivery();
    let another = Delivery { id: Uuid::from_u128(9), ..to_sink.clone() };
    let due = [delivery("shop/orders/s0"), to_sink, another].map(|due| retry_record(&due));
    let [first, second, third] = due;
    let due = [
        first,
        Record { message: "m2".to_owned(), ..second },
        Record { message: "m3".to_owned(), ..third },
    ];
    assert_eq!(dispatch(&ports, &due, ENDS_MS), [""; 0]);
    let mut hosts: Vec<_> =
        ports.posts().iter().filter_map(|post| Some(post.url.host_str()?.to_owned())).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["s0.example.com", "sink.example.com", "sink.example.com"]);
}
