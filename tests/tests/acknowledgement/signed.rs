//! Requests signed with credentials of AWS: one role session serves all, the function's own credentials are never used, and
//! none is stored or logged. `contracts/sigv4.rs` has the signature.

use delivery::delivery::reason::Reason;
use delivery::ports::QueueName;
use delivery::request::Request;
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::sigv4::{SigningScope, SigningService};
use delivery::subscription::secret::Secret;
use delivery::subscription::sink::Sink;
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::answers;

use super::json_log::log_lines;
use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_from, catalogue_of, dispatch, events, letter, record,
    retry_record, subscription, subscriptions_with_destination,
};
use crate::process::Process;

const HOUR_MS: u64 = 3_600_000;

fn ports(more: &str) -> FakePorts {
    let auth = "auth: {sigv4: {service: execute-api, region: eu-west-1}}";
    let ports = FakePorts::new(subscriptions_with_destination(&format!("{auth}{more}")));
    ports.grant_credentials(Some(HOUR_MS));
    ports
}

/// The session token that each request is signed with.
fn tokens(requests: &[Request]) -> Vec<String> {
    let token = |request: &Request| {
        let signer = request.signer.as_ref().expect("it is signed");
        assert_eq!(signer.scope.region, "eu-west-1");
        signer.credentials.session_token.as_ref().map(Secret::expose).unwrap_or_default().to_owned()
    };
    requests.iter().map(token).collect()
}

#[test]
fn a_thousand_events_at_once_need_one_role_session_and_another_a_minute_before_its_end() {
    let ports = ports("");
    let process = Process::new(ports.clone());
    process.invoke(&events("m", 1_000));
    assert_eq!((ports.credentials_asked(), ports.posts().len()), (1, 1_000));
    ports.advance_ms(HOUR_MS - 61_000);
    process.invoke(&events("m", 1));
    assert_eq!(ports.credentials_asked(), 1);
    ports.advance_ms(1_000);
    process.invoke(&events("m", 1));
    let tokens = tokens(&ports.posts());
    assert_eq!((ports.credentials_asked(), tokens.len()), (2, 1_002));
    let last: Vec<&str> = tokens[1_000..].iter().map(String::as_str).collect();
    assert_eq!(last, ["session-t0ken-1", "session-t0ken-2"]);
}

#[test]
fn without_a_role_the_attempt_is_aborted_says_what_to_set_and_blames_nobody() {
    let ports = ports("");
    ports.grant_credentials(None);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::TRACE, || drop(process.invoke(&events("m", 50))));
    let sent = ports.sent();
    assert_eq!((ports.posts().len(), ports.credentials_asked(), sent.len()), (0, 1, 50));
    for (queue, message) in &sent {
        assert_eq!((*queue, carried(message).attempts), (QueueName::Retry, 1));
    }
    let is_told = |line: &&serde_json::Value| {
        line["outcome"] == "Aborted" && line["why"].to_string().contains("InvokeRoleArn")
    };
    assert_eq!(lines.iter().filter(is_told).count(), 50, "{lines:?}");
    // Once the role is there the next attempt is made, and a failure is not asked about for five seconds only.
    ports.grant_credentials(Some(HOUR_MS));
    ports.advance_ms(5_000);
    process.invoke(&events("m", 1));
    assert_eq!((ports.posts().len(), ports.credentials_asked()), (1, 2));
}

#[test]
fn a_session_token_that_is_repeated_is_hidden_and_the_secret_key_is_sent_nowhere() {
    let body = r#"{"message":"'POST\n/\n\nx-amz-security-token:session-t0ken-1' was all"}"#;
    let ports = ports("").with_reactions("s0.example.com", &[answers(400).with_body(body)]);
    let process = Process::new(ports.clone());
    let lines = log_lines(tracing::Level::TRACE, || drop(process.invoke(&events("m", 1))));
    let traces = format!("{lines:?} {:?} {:?}", ports.sent(), ports.posts());
    assert!(traces.contains("was all"), "the rest of the answer is kept: {traces}");
    for value in ["session-t0ken", "never-sent"] {
        assert!(!traces.contains(value), "{value} in {traces}");
    }
}

#[test]
fn a_request_to_a_sink_is_not_signed() {
    let mut own = subscription("shop/orders/s0");
    own.dead_letter.sink = Sink::Address("https://sink.example.com/".parse().expect("an address"));
    own.destination.auth = Some(Auth::Sigv4(SigningScope {
        service: SigningService::Lambda,
        region: "eu-west-1".to_owned(),
    }));
    let ports =
        FakePorts::new(catalogue_of([own])).with_reactions("s0.example.com", &[answers(400)]);
    ports.grant_credentials(Some(HOUR_MS));
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let dead = carried(&ports.sent()[0].1);
    assert_eq!((ports.posts()[0].signer.is_some(), ports.credentials_asked()), (true, 1));
    assert_eq!(dispatch(&ports, &[retry_record(&dead)], ENDS_MS), [""; 0]);
    let posts = ports.posts();
    assert_eq!(posts[1].url.host_str(), Some("sink.example.com"));
    // The second process had no credentials yet, and needed none.
    assert_eq!((posts[1].signer.is_some(), ports.credentials_asked()), (false, 1));
}

#[test]
fn no_event_makes_a_url_call_a_function_by_the_api_of_lambda() {
    let text = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: shop, topic: orders, name: s0}\n\
                spec: {destination: {url: 'https://h.example.com/{{ event.subject }}/functions/f/invocations', \
                auth: {sigv4: {service: lambda, region: eu-west-1}}}}\n";
    let ports = FakePorts::new(catalogue_from(text));
    ports.grant_credentials(Some(HOUR_MS));
    let event = |subject: &str| {
        format!(
            r#"{{"specversion":"1.0","id":"1","source":"/s","type":"a","subject":"{subject}"}}"#
        )
    };
    let records = [record("m1", &event("2015-03-31")), record("m2", &event("orders"))];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    let posts = ports.posts();
    assert_eq!((posts.len(), posts[0].url.path()), (1, "/orders/functions/f/invocations"));
    let (queue, message) = &ports.sent()[0];
    assert_eq!(*queue, QueueName::DeadLetter);
    assert_eq!(letter(message).reason, Reason::UndeliverableDueToBlockedAddress);
}

#[test]
fn a_validation_is_signed_too() {
    let ports = ports(", consent: {handshake: cloudevents, origin: events.example.com}");
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(tokens(&ports.validation_requests()), ["session-t0ken-1"]);
}
