//! Tokens in which AWS says who is calling: had once for all who need one, replaced once they are refused, and never
//! shown. How they are asked for: `contracts/sigv4.rs`.

use lastmile_tests::fake_ports::reactions::{Reaction, answers};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use std::collections::BTreeSet;

use delivery::ports::QueueName;
use dispatch::{Deadline, Dispatch};

use super::json_log::log_lines;
use super::{EVENT, carried};
use crate::examples::{container, record, subscriptions_with_destination};

fn ports(reactions: &[Reaction]) -> FakePorts {
    let auth = "auth: {awsIdentity: {audience: them, lifetime: PT10M}}";
    let ports = FakePorts::new(subscriptions_with_destination(auth))
        .with_reactions("s0.example.com", reactions);
    ports.grant_credentials(Some(1));
    ports
}

fn handle(dispatch: &Dispatch<FakePorts>, ports: &FakePorts, events: usize) {
    let event = |n: usize| EVENT.replace(r#""id":"1""#, &format!(r#""id":"{n}""#));
    let records: Vec<_> = (0..events).map(|n| record(&format!("m{n}"), &event(n))).collect();
    let now_ms = NOW_MS + ports.elapsed_ms();
    let deadline = Deadline::new(now_ms, now_ms + 120_000);
    assert_eq!(ports.run(dispatch.handle(&records, &deadline)), [""; 0]);
}

/// The `authorization` of each request.
fn shown(ports: &FakePorts) -> Vec<String> {
    let of = |headers: Vec<(String, String)>| {
        headers.into_iter().find(|(name, _)| name == "authorization").expect("a token").1
    };
    ports.posts().into_iter().map(|request| of(request.headers)).collect()
}

#[test]
fn a_thousand_events_at_once_need_one_token_and_another_a_minute_before_its_end() {
    let ports = ports(&[answers(200)]);
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    handle(&dispatch, &ports, 1_000);
    assert_eq!(ports.credentials_asked(), 1);
    let all: BTreeSet<String> = shown(&ports).into_iter().collect();
    assert_eq!(all, ["Bearer jwt-for-them-1".to_owned()].into());
    ports.advance_ms(539_999);
    handle(&dispatch, &ports, 1);
    assert_eq!(ports.credentials_asked(), 1);
    ports.advance_ms(1);
    handle(&dispatch, &ports, 1);
    assert_eq!(ports.credentials_asked(), 2);
    assert_eq!(shown(&ports).last().map(String::as_str), Some("Bearer jwt-for-them-2"));
}

#[test]
fn a_token_that_is_refused_is_replaced_once_a_minute_and_uncounted() {
    let ports = ports(&[answers(401), answers(200), answers(401), answers(200)]);
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    handle(&dispatch, &ports, 1);
    assert_eq!((shown(&ports).len(), ports.sent().len(), ports.credentials_asked()), (2, 0, 2));
    // Within a minute the refusal stands.
    handle(&dispatch, &ports, 1);
    assert_eq!((shown(&ports).len(), ports.sent().len(), ports.credentials_asked()), (3, 1, 2));
}

#[test]
fn without_a_token_the_attempt_is_aborted_and_says_why() {
    let ports = ports(&[answers(200)]);
    ports.grant_credentials(None);
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    let lines = log_lines(tracing::Level::TRACE, || handle(&dispatch, &ports, 50));
    assert_eq!((ports.posts().len(), ports.credentials_asked(), ports.sent().len()), (0, 1, 50));
    for (queue, message) in ports.sent() {
        assert_eq!((queue, carried(&message).attempts), (QueueName::Retry, 1));
    }
    let told = lines.iter().filter(|line| {
        line["outcome"] == "Aborted" && line["why"] == "outbound identity federation is off"
    });
    assert_eq!(told.count(), 50, "{lines:?}");
}

#[test]
fn a_token_that_is_repeated_is_hidden() {
    let echo = answers(400).with_body("no: Bearer jwt-for-them-1, and that was all");
    let ports = ports(&[echo]);
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    let lines = log_lines(tracing::Level::TRACE, || handle(&dispatch, &ports, 1));
    let traces = format!("{lines:?} {:?}", ports.sent());
    assert!(traces.contains("that was all") && !traces.contains("jwt-for"), "{traces}");
}
