//! Tokens of OAuth 2.0: one token serves all deliveries, a refused token is replaced, and no token is stored or logged.

use std::collections::BTreeSet;

use delivery::ports::{QueueName, Record};
use delivery::request::Request;
use delivery::request::token::TOKEN_TIMEOUT_MS;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::secret_policy::{SecretPolicy, SecretRule};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, times_out_after};

use super::json_log::log_lines;
use crate::examples::{
    carried, delivery, events, letter, retry_record, subscriptions_with_destination,
};
use crate::process::Process;

const SERVER: &str = "login.example.com";
const DESTINATION: &str = "s0.example.com";

fn catalogue(more: &str) -> Catalogue {
    let client =
        "{tokenUrl: 'https://login.example.com/token', clientId: acme, clientSecret: 'env:CLIENT'}";
    subscriptions_with_destination(&format!("auth: {{oauth2: {client}}}{more}"))
}

/// The server grants this token for so many seconds.
fn grants(token: &str, seconds: u64) -> Reaction {
    let members =
        format!(r#""access_token":"{token}","token_type":"Bearer","expires_in":{seconds}"#);
    answers(200).with_body(&format!("{{{members}}}")).after_ms(20)
}

/// The destination answers these, and the token server those.
fn ports(destination: &[Reaction], server: &[Reaction]) -> FakePorts {
    FakePorts::new(catalogue(""))
        .with_reactions(SERVER, server)
        .with_reactions(DESTINATION, destination)
}

/// A delivery in the slow lane, which may take as long as its timeout.
fn slow() -> Record {
    Record { queue: QueueName::Slow, ..retry_record(&delivery("shop/orders/s0")) }
}

fn to_server(ports: &FakePorts) -> Vec<Request> {
    ports.posts().into_iter().filter(|post| post.url.host_str() == Some(SERVER)).collect()
}

/// The `authorization` of each request to the destination.
fn shown(ports: &FakePorts) -> Vec<String> {
    let posts = ports.posts().into_iter().filter(|post| post.url.host_str() == Some(DESTINATION));
    let shown =
        |request: Request| request.headers.into_iter().find(|(name, _)| name == "authorization");
    posts.map(|post| shown(post).expect("it shows a token").1).collect()
}

#[test]
fn a_thousand_events_at_once_need_one_token_and_two_when_it_ends_in_between() {
    let ports = ports(&[answers(200)], &[grants("first", 120), grants("second", 3_600)]);
    let process = Process::new(ports.clone());
    process.invoke(&events("m", 1_000));
    assert_eq!((to_server(&ports).len(), shown(&ports).len()), (1, 1_000));
    assert_eq!(
        shown(&ports).into_iter().collect::<BTreeSet<_>>(),
        ["Bearer first".to_owned()].into()
    );
    ports.advance_ms(59_000);
    process.invoke(&events("m", 1));
    assert_eq!(to_server(&ports).len(), 1);
    // A minute before its end.
    ports.advance_ms(1_000);
    process.invoke(&events("m", 1_000));
    assert_eq!((to_server(&ports).len(), shown(&ports).len()), (2, 2_001));
    assert_eq!(shown(&ports).last().map(String::as_str), Some("Bearer second"));
    assert_eq!(ports.sent(), []);
}

#[test]
fn a_token_that_is_refused_is_replaced_and_the_request_repeated_uncounted() {
    let refused = [answers(401), answers(401), answers(401), answers(200)];
    let ports = ports(&refused, &[grants("old", 3_600), grants("new", 3_600)]);
    let lines = log_lines(tracing::Level::TRACE, || {
        drop(Process::new(ports.clone()).invoke(&events("m", 3)));
    });
    // All three were under way with the old one; one of them fetched the new one for all.
    assert_eq!((to_server(&ports).len(), ports.sent().len()), (2, 0));
    let mut expected = ["Bearer old"; 3].to_vec();
    expected.extend(["Bearer new"; 3]);
    assert_eq!(shown(&ports), expected);
    // A line of its own is for an attempt that failed, or was not the first.
    let lines_of = |message| lines.iter().filter(move |line| line["message"] == message);
    let numbers: Vec<_> =
        lines_of("delivery.delivered").map(|line| line["attempt"].as_u64()).collect();
    assert_eq!(
        (numbers, lines_of("delivery.attempted").count()),
        (vec![Some(1); 3], 0),
        "{lines:?}"
    );
}

#[test]
fn the_request_with_another_token_has_what_is_left_of_the_time_of_the_attempt() {
    let grants = [grants("old", 3_600), grants("new", 3_600)];
    // The token takes 20 ms.
    for (refused_after_ms, expected) in [(2_000, &[30_000, 27_980][..]), (29_980, &[30_000])] {
        let ports = ports(&[answers(401).after_ms(refused_after_ms), answers(200)], &grants);
        Process::new(ports.clone()).invoke(&[slow()]);
        let posts =
            ports.posts().into_iter().filter(|post| post.url.host_str() == Some(DESTINATION));
        let timeouts: Vec<u64> = posts.map(|post| post.timeout_ms).collect();
        assert_eq!(timeouts, expected);
    }
}

#[test]
fn a_refusal_stands_where_no_time_is_left_for_another_token() {
    for (refused_after_ms, in_time) in [(29_979, true), (29_980, false)] {
        // The server refuses after 20 ms, of the 30 seconds of the attempt.
        let refusal = answers(400).after_ms(20);
        let refused = [answers(401).after_ms(refused_after_ms)];
        let ports = ports(&refused, &[grants("old", 3_600), refusal]);
        Process::new(ports.clone()).invoke(&[slow()]);
        assert_eq!((to_server(&ports).len(), shown(&ports).len()), (2, 1));
        let [(queue, message)] = &ports.sent()[..] else { panic!("one message") };
        // A refusal is final; without a token the attempt was aborted.
        let expected = if in_time { QueueName::Retry } else { QueueName::DeadLetter };
        assert_eq!(*queue, expected, "after {refused_after_ms} ms: {message:?}");
    }
}

#[test]
fn a_second_refusal_stands_and_counts_once() {
    let ports = ports(&[answers(401)], &[grants("old", 3_600), grants("new", 3_600)]);
    let process = Process::new(ports.clone());
    process.invoke(&events("m", 1));
    process.invoke(&events("m", 1));
    // Within a minute the second event has no further token.
    assert_eq!((to_server(&ports).len(), shown(&ports).len()), (2, 3));
    let sent = ports.sent();
    assert_eq!(sent.len(), 2);
    for (queue, message) in &sent {
        assert_eq!(*queue, QueueName::DeadLetter);
        assert_eq!(letter(message).delivery.attempts, 1);
    }
    ports.advance_ms(60_000);
    process.invoke(&events("m", 1));
    assert_eq!((to_server(&ports).len(), shown(&ports).len()), (3, 5));
}

#[test]
fn without_a_token_the_attempt_is_aborted_says_why_and_blames_nobody() {
    let refusal =
        answers(400).with_body(r#"{"error":"invalid_client","error_description":"no hush"}"#);
    let ports = ports(&[answers(200)], &[refusal, grants("at-last", 3_600)]);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::TRACE, || drop(process.invoke(&events("m", 50))));
    assert_eq!((to_server(&ports).len(), shown(&ports).len()), (1, 0));
    let sent = ports.sent();
    assert_eq!(sent.len(), 50);
    for (queue, message) in &sent {
        assert_eq!((*queue, carried(message).attempts), (QueueName::Retry, 1));
    }
    let why =
        "no token from login.example.com: the token server responded with 400, invalid_client";
    let aborted = lines.iter().filter(|line| line["outcome"] == "Aborted" && line["why"] == why);
    assert_eq!(aborted.count(), 50, "{lines:?}");
    assert!(lines.iter().all(|line| !line.to_string().contains("hush")), "{lines:?}");
    // The destination is not on probation: the next event is attempted as soon as there is a token.
    ports.advance_ms(5_000);
    process.invoke(&events("m", 1));
    assert_eq!((to_server(&ports).len(), shown(&ports).len()), (2, 1));
}

#[test]
fn a_token_server_that_hangs_is_waited_for_once() {
    let ports = ports(&[answers(200)], &[times_out_after(TOKEN_TIMEOUT_MS)]);
    let process = Process::new(ports.clone());
    process.invoke(&events("m", 1_000));
    let asked = to_server(&ports);
    assert_eq!((asked.len(), shown(&ports).len(), ports.sent().len()), (1, 0, 1_000));
    assert_eq!(asked[0].timeout_ms, TOKEN_TIMEOUT_MS);
    // Nobody else waits for it: they go on in the lane for what is slow, and no attempt is counted.
    assert_eq!(ports.elapsed_ms(), 2_000);
    for (queue, message) in ports.sent() {
        assert_eq!((queue, carried(&message).attempts), (QueueName::Slow, 0));
    }
}

#[test]
fn no_token_is_in_what_is_logged_and_sent_and_the_server_may_not_repeat_the_secret() {
    let echo = answers(400)
        .with_body("you sent Bearer t0ken-of-client, t0ken-of-client, dDBrZW4tb2YtY2xpZW50");
    let ports = ports(&[echo], &[grants("t0ken-of-client", 3_600)]);
    let lines = log_lines(tracing::Level::TRACE, || {
        drop(Process::new(ports.clone()).invoke(&events("m", 1)));
    });
    let traces = format!("{lines:?} {:?}", ports.sent());
    assert_eq!(ports.sent().len(), 1);
    for value in ["t0ken", "dDBrZW4", "hush"] {
        assert!(!traces.contains(value), "{value} in {traces}");
    }
}

#[test]
fn the_secret_of_a_client_has_to_be_allowed_for_both_hosts() {
    for (hosts, is_sent) in
        [(&[SERVER, DESTINATION][..], true), (&[SERVER], false), (&[DESTINATION], false)]
    {
        let mut policy = SecretPolicy::default();
        let hosts = hosts.iter().map(|host| host.parse().expect("a host")).collect();
        policy.add(SecretRule { name: "env:CLIENT".parse().expect("a name"), hosts });
        let mut catalogue = catalogue("");
        catalogue.restrict_secrets(policy);
        let ports = FakePorts::new(catalogue).with_reactions(SERVER, &[grants("token", 3_600)]);
        Process::new(ports.clone()).invoke(&events("m", 1));
        assert_eq!(
            (to_server(&ports).len(), ports.sent().len()),
            (usize::from(is_sent), usize::from(!is_sent))
        );
    }
}

#[test]
fn a_validation_whose_token_is_refused_is_repeated_with_another_one() {
    let more = ", consent: {handshake: cloudevents, origin: events.example.com}";
    let ports = FakePorts::new(catalogue(more))
        .with_reactions(SERVER, &[grants("old", 3_600), grants("new", 3_600)]);
    ports.set_consent_headers(&[("allowed-origin", "events.example.com")]);
    ports.refuse_authorization("Bearer old");
    Process::new(ports.clone()).invoke(&events("m", 1));
    let asked = ports.validation_requests().into_iter().flat_map(|request| request.headers);
    let asked: Vec<String> =
        asked.filter(|(name, _)| name == "authorization").map(|(_, value)| value).collect();
    assert_eq!(asked, ["Bearer old", "Bearer new"]);
    assert_eq!((to_server(&ports).len(), shown(&ports)), (2, vec!["Bearer new".to_owned()]));
    assert_eq!(ports.sent(), []);
}
