//! Tokens of AWS identity: a refused token is replaced, and no token is stored or logged. `contracts/sigv4.rs` has the
//! requests for tokens.

use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::{Reaction, answers};

use super::json_log::log_lines;
use crate::examples::{events, subscriptions_with_destination};
use crate::process::Process;

fn ports(reactions: &[Reaction]) -> FakePorts {
    let auth = "auth: {awsIdentity: {audience: them, lifetime: PT10M}}";
    let ports = FakePorts::new(subscriptions_with_destination(auth))
        .with_reactions("s0.example.com", reactions);
    ports.grant_credentials(Some(1));
    ports
}

/// The `authorization` of each request.
fn shown(ports: &FakePorts) -> Vec<String> {
    let token = |headers: Vec<(String, String)>| {
        headers.into_iter().find(|(name, _)| name == "authorization").expect("a token").1
    };
    ports.posts().into_iter().map(|request| token(request.headers)).collect()
}

#[test]
fn a_token_that_is_refused_is_replaced_once_a_minute_and_uncounted() {
    let ports = ports(&[answers(401), answers(200), answers(401), answers(200)]);
    let process = Process::new(ports.clone());
    process.invoke(&events("m", 1));
    assert_eq!((shown(&ports).len(), ports.sent().len(), ports.credentials_asked()), (2, 0, 2));
    // Within a minute the refusal stands.
    process.invoke(&events("m", 1));
    assert_eq!((shown(&ports).len(), ports.sent().len(), ports.credentials_asked()), (3, 1, 2));
}

#[test]
fn a_token_that_is_repeated_is_hidden() {
    let echo = answers(400).with_body("no: Bearer jwt-for-them-1, and that was all");
    let ports = ports(&[echo]);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::TRACE, || drop(process.invoke(&events("m", 1))));
    let traces = format!("{lines:?} {:?}", ports.sent());
    assert!(traces.contains("that was all") && !traces.contains("jwt-for"), "{traces}");
}
