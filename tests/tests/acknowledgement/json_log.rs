//! The log lines of a delivery: each line has the event, the id of the delivery and the trace.

use adapters::metrics::{MetricsSettings, NAMESPACE, Splits};
use adapters::telemetry::{LogDeliveries, Telemetry};
use deadletter::DeadLetters;
use delivery::delivery::replay::Replay;
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::ports::{Message, PutError, QueueName, Record};
use delivery::subscription::profile::StatusSet;
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};
use lastmile_tests::fake_ports::reactions::{answers, replies, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, Fault};
use lastmile_tests::logs::Logged;
use serde_json::Value;
use uuid::Uuid;

use crate::examples::{
    ENDS_MS, EVENT, catalogue_of, container, dead_letter_record, delivery, dispatch, letter,
    long_given_up, record, retry_record, subscription, subscriptions, subscriptions_with_sink,
};
use crate::process::Process;

/// The publisher's trace context, as received with the record.
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// The log lines that this code writes at this level and above, in the functions' format.
pub(super) fn log_lines(level: tracing::Level, run: impl FnOnce()) -> Vec<Value> {
    let logged = Logged::at(level);
    run();
    logged.lines()
}

fn messages(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["message"].as_str().expect("a line has a message")).collect()
}

/// A record that carries this message, as received from this queue.
fn received_from(message: &Message, queue: QueueName) -> Record {
    Record { queue, attribute: Some(message.attribute.clone()), ..record("m2", &message.body) }
}

#[test]
fn a_trace_continues_over_queue_attempt_and_dead_letter_and_is_in_every_line() {
    let ports =
        FakePorts::new(subscriptions(1)).with_reactions("s0", &[answers(503), answers(400)]);
    let process = Process::new(ports.clone());
    let traced = Record { traceparent: Some(PARENT.to_owned()), ..record("m1", EVENT) };
    let lines = log_lines(tracing::Level::INFO, || {
        process.invoke(&[traced]);
        ports.advance_ms(3_000);
        let retry = received_from(&ports.sent()[0].1, QueueName::Retry);
        process.invoke(&[retry]);
        let dead_letter_record = received_from(&ports.sent()[1].1, QueueName::DeadLetter);
        ports.run(DeadLetters::new(ports.clone(), container()).handle(&[dead_letter_record]));
    });
    let expected =
        ["delivery.attempted", "delivery.attempted", "delivery.ended", "deadletter.stored"];
    assert_eq!(messages(&lines), expected, "{lines:#?}");
    for line in &lines {
        let found = ["event_id", "source", "type", "subscription", "trace_id"]
            .map(|name| line[name].as_str());
        assert_eq!(
            found,
            [Some("1"), Some("s"), Some("t"), Some("shop/orders/s0"), Some(TRACE)],
            "{line}"
        );
        assert_eq!(line["delivery_id"], lines[0]["delivery_id"], "{line}");
    }
    let is_traceparent = |name: &String| name == "traceparent";
    for post in ports.posts() {
        let traceparent = post
            .headers
            .iter()
            .find(|(name, _)| is_traceparent(name))
            .map(|(_, value)| value.as_str());
        assert_eq!(traceparent, Some(PARENT));
    }
    assert!(
        ports.blobs()[0].1.contains(&format!(r#""traceparent":"{PARENT}""#)),
        "{:?}",
        ports.blobs()
    );
}

#[test]
fn a_redriven_message_keeps_its_trace() {
    let ports = FakePorts::new(subscriptions(0));
    let redriven = Record {
        traceparent: Some(PARENT.to_owned()),
        queue: QueueName::DeadLetter,
        ..record("m1", EVENT)
    };
    let lines = log_lines(tracing::Level::INFO, || {
        ports.run(DeadLetters::new(ports.clone(), container()).handle(&[redriven]));
    });
    assert_eq!(
        (messages(&lines), lines[0]["trace_id"].as_str()),
        (vec!["deadletter.stored"], Some(TRACE))
    );
}

#[test]
fn the_line_of_an_attempt_has_its_outcome_and_its_verdict() {
    let ports = FakePorts::new(subscriptions(1)).with_status(503).with_duration_ms(7);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::INFO, || {
        process.invoke(&[record("m1", EVENT)]);
    });
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    let fields = ["attempt", "outcome", "status", "verdict", "wait_ms", "duration_ms"]
        .map(|name| line[name].to_string());
    assert_eq!(fields, ["1", r#""Busy""#, "503", r#""retry""#, "2000", "7"]);
}

#[test]
fn a_delivery_that_succeeds_at_its_first_attempt_has_one_line_of_attempt_and_end() {
    let ports = FakePorts::new(subscriptions(1)).with_duration_ms(7);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::INFO, || {
        process.invoke(&[record("m1", EVENT)]);
    });
    assert_eq!(messages(&lines), ["delivery.delivered"]);
    let line = &lines[0];
    let fields = ["event_id", "subscription", "attempt", "status", "duration_ms", "age_ms"]
        .map(|name| line[name].to_string());
    assert_eq!(fields, [r#""1""#, r#""shop/orders/s0""#, "1", "200", "7", "17"], "{line}");
    assert!(line.get("leg").is_none() && line.get("verdict").is_none(), "{line}");
}

#[test]
fn the_log_of_failures_alone_has_each_failure_and_the_metrics_count_all_deliveries() {
    let ports = FakePorts::new(subscriptions(1))
        .with_reactions("s0", &[answers(200), answers(503), answers(200)]);
    let metrics = MetricsSettings { namespace: NAMESPACE.to_owned(), splits: Splits::default() };
    let telemetry = Telemetry::new(metrics).with_log_deliveries(LogDeliveries::Failures);
    let process = Process::new(ports.clone()).with_telemetry(telemetry);
    let run = |record| log_lines(tracing::Level::INFO, || drop(process.invoke(&[record])));
    assert_eq!(run(record("m1", EVENT)), [] as [Value; 0]);
    assert_eq!(messages(&run(record("m2", EVENT))), ["delivery.attempted"]);
    ports.advance_ms(3_000);
    let retry = received_from(&ports.sent()[0].1, QueueName::Retry);
    let retried = run(retry);
    assert_eq!(messages(&retried), ["delivery.delivered"]);
    assert_eq!(retried[0]["attempt"], 2);
    assert!(process.dispatch.metrics()[0].contains(r#""DeliverySuccessCount":2"#), "{retried:?}");
}

#[test]
fn an_attempt_whose_reply_cannot_be_sent_is_logged_and_its_delivery_has_not_ended() {
    let mut replying = subscription("shop/orders/s0");
    replying.reply = Some(ReplyTo::Address("https://r.example.com/".parse().expect("a URL")));
    let reply = r#"{"specversion":"1.0","id":"r1","source":"/s0","type":"noted"}"#;
    let ports = FakePorts::new(catalogue_of([replying]))
        .with_reactions("s0", &[replies(reply)])
        .with_failing_queue();
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::INFO, || {
        let records = [record("m1", EVENT)];
        assert_eq!(process.handle(&records), ["m1"]);
    });
    let attempted = lines.iter().find(|line| line["message"] == "delivery.attempted");
    assert_eq!(attempted.expect("the attempt")["verdict"], "delivered", "{lines:#?}");
    assert!(!messages(&lines).contains(&"delivery.delivered"), "{lines:#?}");
}

#[test]
fn a_destination_that_says_that_it_is_gone_is_named() {
    let with = |change: fn(&mut Subscription)| {
        let mut subscription = subscription("shop/orders/s0");
        subscription.reply =
            Some(ReplyTo::Address("https://s0.example.com/".parse().expect("a URL")));
        change(&mut subscription);
        FakePorts::new(catalogue_of([subscription])).with_status(410)
    };
    let to_destination = delivery("shop/orders/s0");
    let to_reply = Delivery { target: DeliveryTarget::Reply, ..to_destination.clone() };
    let gone_is_done: fn(&mut Subscription) =
        |subscription| subscription.retry.success = StatusSet::new([410..=410]);
    for (ports, delivery, is_named) in [
        (with(|_| ()), &to_destination, true),
        (with(|_| ()), &to_reply, false),
        (with(gone_is_done), &to_destination, false),
    ] {
        let lines = log_lines(tracing::Level::WARN, || {
            assert_eq!(dispatch(&ports, &[retry_record(delivery)], ENDS_MS), [""; 0]);
        });
        let expected = if is_named { &["destination.retired"][..] } else { &[] };
        assert_eq!(messages(&lines), expected, "{lines:#?}");
    }
}

#[test]
fn a_dead_letter_counts_where_its_sink_is_responsible_for_it() {
    // A topic is from the beginning; an address may still refuse it.
    for (sink, counted) in [("topic:shop/lost", true), ("https://sink.example.com/", false)] {
        let telemetry = Telemetry::new(MetricsSettings {
            namespace: NAMESPACE.to_owned(),
            splits: Splits::default(),
        });
        let mut failing = subscription("shop/orders/s0");
        failing.dead_letter.sink = sink.strip_prefix("topic:").map_or_else(
            || Sink::Address(sink.parse().expect("a URL")),
            |topic| Sink::Topic(topic.parse().expect("a topic")),
        );
        let ports = FakePorts::new(catalogue_of([failing, subscription("shop/lost/a")]));
        let ports = ports.with_status(400);
        let process = Process::new(ports).with_telemetry(telemetry);
        let lines = log_lines(tracing::Level::INFO, || {
            process.invoke(&[record("m1", EVENT)]);
        });
        assert_eq!(messages(&lines), ["delivery.attempted", "delivery.ended"], "{sink}");
        let metrics = process.dispatch.metrics().concat();
        assert_eq!(metrics.contains("DeadLetteredCount"), counted, "{sink}: {metrics}");
    }
}

#[test]
fn an_unmatched_event_is_logged_with_its_own_id() {
    let ports = FakePorts::new(subscriptions(0));
    let process = Process::new(ports.clone());
    let both_events = format!("[{EVENT},{}]", EVENT.replace("\"1\"", "\"2\""));
    let lines = log_lines(tracing::Level::INFO, || {
        process.invoke(&[record("m1", &both_events)]);
    });
    assert_eq!(messages(&lines), ["event.unmatched"; 2]);
    let fields = |line: &Value| {
        ["event_id", "source", "type", "topic", "message_id"].map(|name| line[name].to_string())
    };
    assert_eq!(fields(&lines[1]), [r#""2""#, r#""s""#, r#""t""#, r#""shop/orders""#, r#""m1""#]);
}

#[test]
fn a_divided_record_is_logged_with_its_number_of_parts() {
    let ports = FakePorts::new(subscriptions(11));
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::INFO, || {
        process.invoke(&[record("m1", EVENT)]);
    });
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    let fields = ["message", "message_id", "parts"].map(|name| line[name].to_string());
    assert_eq!(fields, [r#""record.divided""#, r#""m1""#, "2"]);
}

#[test]
fn a_dead_letter_is_logged_only_when_it_was_sent_or_stored() {
    let refused = |sink: &str| FakePorts::new(subscriptions_with_sink(sink)).with_status(400);
    let handle = |ports: &FakePorts, record: Record| Process::new(ports.clone()).handle(&[record]);
    let (container_sink, address) = ("s3://letters", "https://sink.example.com/");
    // Enqueued for its sink, which refuses it as the destination did.
    let before = refused(address);
    handle(&before, record("m1", EVENT));
    let (queue, message) = before.sent().remove(0);
    let returned = received_from(&message, queue);
    for (sink, record, reported) in [
        (container_sink, record("m1", EVENT), "delivery.ended"),
        (address, returned, "deadletter.returned"),
    ] {
        let stuck = refused(sink)
            .with_queue_fault(QueueName::DeadLetter, Fault::Refuses)
            .with_put_error("letters", PutError::Unavailable("503".to_owned()));
        for (ports, is_sent) in [(refused(sink), true), (stuck, false)] {
            let mut redelivered = Vec::new();
            let lines = log_lines(tracing::Level::INFO, || {
                redelivered = handle(&ports, record.clone());
            });
            assert_eq!(redelivered.is_empty(), is_sent);
            assert_eq!(messages(&lines).contains(&reported), is_sent, "{lines:#?}");
        }
    }
}

#[test]
fn the_start_and_the_end_of_a_probation_are_logged() {
    let mut probing = subscription("shop/orders/s0");
    probing.destination.probation = true;
    let ports = FakePorts::new(catalogue_of([probing]));
    let ports = ports
        .with_reactions("s0", &[&vec![times_out_after(1_000); 10][..], &[answers(200)]].concat());
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::INFO, || {
        for number in 0..10 {
            process.invoke(&[record(&format!("m{number}"), EVENT)]);
        }
        ports.advance_ms(10_000);
        process.invoke(&[record("m10", EVENT)]);
    });
    let expected: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"].as_str().is_some_and(|text| text.starts_with("probation.")))
        .collect();
    let [began, ended] = expected[..] else { panic!("{expected:#?}") };
    assert_eq!(messages(&[began.clone(), ended.clone()]), ["probation.began", "probation.ended"]);
    let fields =
        ["subscription", "destination", "outcome", "lasts_ms"].map(|name| began[name].to_string());
    assert_eq!(
        fields,
        [r#""shop/orders/s0""#, r#""https://s0.example.com/""#, r#""TimedOut""#, "10000"]
    );
}

#[test]
fn a_dead_letter_too_large_for_the_last_resort_queue_is_logged_at_each_try() {
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let lines = log_lines(tracing::Level::WARN, || {
        ports.run(DeadLetters::new(ports.clone(), container()).handle(&[long_given_up()]));
    });
    assert_eq!(messages(&lines), ["deadletter.refused"]);
    assert_eq!(lines[0]["wait_ms"].as_u64(), Some(1_800_000));
}

#[test]
fn the_end_of_a_replay_that_its_queue_refuses_is_logged_by_job_letter_and_delivery() {
    let old = Uuid::from_u128(7);
    let replay = Replay::new("job-1", old);
    let replayed = Delivery { replay, ..delivery("shop/orders/s0") };
    let ports =
        FakePorts::new(subscriptions(1)).with_queue_fault(QueueName::DeadLetter, Fault::Refuses);
    let lines = log_lines(tracing::Level::WARN, || {
        assert_eq!(dispatch(&ports, &[retry_record(&replayed)], ENDS_MS), [""; 0]);
    });
    assert_eq!(messages(&lines), ["replay.end_lost"]);
    let line = &lines[0];
    assert_eq!((&line["job"], &line["outcome"]), (&"job-1".into(), &"delivered".into()), "{line}");
    assert_eq!(line["letter"], old.to_string());
    assert_eq!(line["delivery"], replayed.id.to_string());
    assert!(line.get("message_id").is_none(), "{line}");
}

#[test]
fn at_level_warn_normal_attempts_and_ends_are_not_logged() {
    let ports =
        FakePorts::new(subscriptions(1)).with_reactions("s0", &[answers(200), answers(400)]);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::WARN, || {
        process.invoke(&[record("m1", EVENT), record("m2", EVENT)]);
        let (queue, message) = &ports.sent()[0];
        assert_eq!(*queue, QueueName::DeadLetter);
        ports.run(
            DeadLetters::new(ports.clone(), container())
                .handle(&[dead_letter_record(&letter(message))]),
        );
    });
    assert_eq!(lines, [] as [Value; 0]);
}
