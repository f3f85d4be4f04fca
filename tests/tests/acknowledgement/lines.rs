//! What the log tells of a delivery: enough in every line to find it by its event, its id or its
//! trace.

use std::sync::{Arc, Mutex};

use adapters::json_log::JsonLayer;
use adapters::records::Record;
use deadletter::DeadLetters;
use delivery::ports::{Attribute, Message, QueueName};
use dispatch::{Deadline, Dispatch};
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::reactions::{answers, times_out_after};
use super::{EVENT, buried, letter, subscription};
use crate::desk::{Desk, NOW_MS, catalogue_of, container, record, subscriptions};

/// The trace of the publisher, as its record came with it.
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// The lines that a scene writes, as the functions write them, from this level on.
fn lines(level: tracing::Level, scene: impl FnOnce()) -> Vec<Value> {
    let paper: Arc<Mutex<String>> = Arc::default();
    let keep = Arc::clone(&paper);
    let lines = JsonLayer::new(move |_, line: &str| {
        keep.lock().expect("nobody panics with the paper").push_str(line)
    });
    let levels = LevelFilter::from_level(level);
    tracing::subscriber::with_default(
        tracing_subscriber::registry().with(levels).with(lines),
        scene,
    );
    let text = paper.lock().expect("the scene is over").clone();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn messages(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["message"].as_str().expect("a line has a message")).collect()
}

/// A record that brings back what this message carries, as another queue hands it over.
fn brought_back(message: &Message, queue: &str) -> Record {
    let (delivery, deadletter) = match &message.attribute {
        Attribute::Delivery(text) => (Some(text.clone()), None),
        Attribute::DeadLetter(text) => (None, Some(text.clone())),
    };
    Record { queue: queue.to_owned(), delivery, deadletter, ..record("m2", &message.body) }
}

#[test]
fn a_trace_goes_on_over_queue_attempt_and_dead_letter_and_stands_in_every_line() {
    let desk = Desk::new(subscriptions(1)).meeting("s0", &[answers(503), answers(400)]);
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let traced = Record { traceparent: Some(PARENT.to_owned()), ..record("m1", EVENT) };
    let lines = lines(tracing::Level::INFO, || {
        desk.run(dispatch.handle(&[traced], &Deadline::new(NOW_MS, 0)));
        desk.passes_ms(3_000);
        let again = brought_back(&desk.sent()[0].1, "retry");
        desk.run(dispatch.handle(&[again], &Deadline::new(NOW_MS + 3_000, 0)));
        let buried = brought_back(&desk.sent()[1].1, "dead-letter");
        desk.run(DeadLetters::new(desk.clone(), container()).handle(&[buried]));
    });
    let told = ["delivery.attempted", "delivery.attempted", "delivery.ended", "deadletter.stored"];
    assert_eq!(messages(&lines), told, "{lines:#?}");
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
    let header = |name: &String| name == "traceparent";
    for post in desk.posts() {
        let carried =
            post.headers.iter().find(|(name, _)| header(name)).map(|(_, value)| value.as_str());
        assert_eq!(carried, Some(PARENT));
    }
    assert!(
        desk.blobs()[0].1.contains(&format!(r#""traceparent":"{PARENT}""#)),
        "{:?}",
        desk.blobs()
    );
}

#[test]
fn a_message_that_its_queue_gave_up_keeps_its_trace() {
    let desk = Desk::new(subscriptions(0));
    let given_up = Record {
        traceparent: Some(PARENT.to_owned()),
        queue: "dead-letter".to_owned(),
        ..record("m1", EVENT)
    };
    let lines = lines(tracing::Level::INFO, || {
        desk.run(DeadLetters::new(desk.clone(), container()).handle(&[given_up]));
    });
    assert_eq!(
        (messages(&lines), lines[0]["trace_id"].as_str()),
        (vec!["deadletter.stored"], Some(TRACE))
    );
}

#[test]
fn the_line_of_an_attempt_says_what_happened_and_what_follows() {
    let desk = Desk::new(subscriptions(1)).answering(503).taking_ms(7);
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let lines = lines(tracing::Level::INFO, || {
        desk.run(dispatch.handle(&[record("m1", EVENT)], &Deadline::new(NOW_MS, 0)));
    });
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    let said = ["attempt", "outcome", "status", "verdict", "wait_ms", "duration_ms"]
        .map(|name| line[name].to_string());
    assert_eq!(said, ["1", r#""Busy""#, "503", r#""retry""#, "2000", "7"]);
}

#[test]
fn an_event_that_nobody_wants_is_told_by_its_own_id() {
    let desk = Desk::new(subscriptions(0));
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let two = format!("[{EVENT},{}]", EVENT.replace("\"1\"", "\"2\""));
    let lines = lines(tracing::Level::INFO, || {
        desk.run(dispatch.handle(&[record("m1", &two)], &Deadline::new(NOW_MS, 0)));
    });
    assert_eq!(messages(&lines), ["event.unmatched"; 2]);
    let said = |line: &Value| {
        ["event_id", "source", "type", "topic", "message_id"].map(|name| line[name].to_string())
    };
    assert_eq!(said(&lines[1]), [r#""2""#, r#""s""#, r#""t""#, r#""shop/orders""#, r#""m1""#]);
}

#[test]
fn a_delivery_that_is_held_says_why() {
    let mut paused = subscription("shop/orders/s0");
    paused.paused = true;
    let desk = Desk::new(catalogue_of([paused]));
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let lines = lines(tracing::Level::INFO, || {
        desk.run(dispatch.handle(&[record("m1", EVENT)], &Deadline::new(NOW_MS, 0)));
    });
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!((&line["message"], &line["why"]), (&"delivery.held".into(), &"paused".into()));
    assert_eq!((line["event_id"].as_str(), line["wait_ms"].as_u64()), (Some("1"), Some(900_000)));
}

#[test]
fn a_probation_is_told_when_it_begins_and_when_it_ends() {
    let mut watched = subscription("shop/orders/s0");
    watched.destination.probation = true;
    let desk = Desk::new(catalogue_of([watched]));
    let desk =
        desk.meeting("s0", &[&vec![times_out_after(1_000); 10][..], &[answers(200)]].concat());
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let lines = lines(tracing::Level::INFO, || {
        for number in 0..10 {
            desk.run(
                dispatch.handle(&[record(&format!("m{number}"), EVENT)], &Deadline::new(NOW_MS, 0)),
            );
        }
        desk.passes_ms(10_000);
        desk.run(dispatch.handle(&[record("m10", EVENT)], &Deadline::new(NOW_MS, 0)));
    });
    let told: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"].as_str().is_some_and(|it| it.starts_with("probation.")))
        .collect();
    let [began, ended] = told[..] else { panic!("{told:#?}") };
    assert_eq!(messages(&[began.clone(), ended.clone()]), ["probation.began", "probation.ended"]);
    let said =
        ["subscription", "destination", "outcome", "lasts_ms"].map(|name| began[name].to_string());
    assert_eq!(
        said,
        [r#""shop/orders/s0""#, r#""https://s0.example.com/""#, r#""TimedOut""#, "10000"]
    );
}

#[test]
fn at_level_warn_attempts_and_ends_that_went_as_asked_write_nothing() {
    let desk = Desk::new(subscriptions(1)).meeting("s0", &[answers(200), answers(400)]);
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    let lines = lines(tracing::Level::WARN, || {
        desk.run(
            dispatch.handle(&[record("m1", EVENT), record("m2", EVENT)], &Deadline::new(NOW_MS, 0)),
        );
        let (queue, message) = &desk.sent()[0];
        assert_eq!(*queue, QueueName::DeadLetter);
        desk.run(DeadLetters::new(desk.clone(), container()).handle(&[buried(&letter(message))]));
    });
    assert_eq!(lines, [] as [Value; 0]);
}
