//! Deliveries to AWS targets: refused targets, and the effect of each answer. The answers have the shapes that the services
//! send.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::ports::QueueName;
use delivery::subscription::aws::policy::{AwsPolicy, AwsTargets, OwnResources};
use delivery::subscription::catalogue::Catalogue;
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::reactions::{Reaction, answers};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use super::json_log::log_lines;
use crate::examples::{ENDS_MS, EVENT, carried, catalogue_from, container, letter, record};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:shop-orders";
const QUEUE_HOST: &str = "sqs.eu-west-1.amazonaws.com";
const HOUR_MS: u64 = 3_600_000;

/// The topic shop/orders with the subscription s0 to this target.
fn catalogue(arn: &str, action: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s0}}\n\
         spec: {{destination: {{aws: {{arn: '{arn}', action: {action}}}}}, retry: {{jitterPercent: 0}}}}\n"
    );
    catalogue_from(&text)
}

fn policy(targets: &str) -> AwsPolicy {
    let own = "arn:aws:sqs:eu-west-1:123456789012:lastmile-*";
    let own = OwnResources::parse(own).expect("ARNs");
    let role = Some("arn:aws:iam::123456789012:role/invoke");
    AwsPolicy::new(AwsTargets::parse(targets).expect("a list"), own, role)
}

/// Dispatches one event under a policy.
fn run(ports: &FakePorts, targets: &str) {
    run_event(ports, targets, EVENT);
}

fn run_event(ports: &FakePorts, targets: &str, event: &str) {
    let dispatch = Dispatch::new(ports.clone(), container(), None).with_targets(policy(targets));
    let deadline = Deadline::new(NOW_MS, ENDS_MS);
    assert_eq!(ports.run(dispatch.handle(&[record("m1", event)], &deadline)), [""; 0]);
}

/// An answer that SQS sends about a message that it has.
const TAKEN: &str = r#"{"MessageId":"m"}"#;

fn ports(arn: &str, action: &str) -> FakePorts {
    let ports = FakePorts::new(catalogue(arn, action));
    ports.grant_credentials(Some(HOUR_MS));
    ports
}

#[test]
fn an_allowed_target_gets_the_event_in_a_signed_request() {
    let ports = ports(QUEUE, "SendMessage").with_reactions(QUEUE_HOST, &[done(TAKEN)]);
    run(&ports, "shop=arn:aws:sqs:eu-west-1:123456789012:shop-*");
    let posts = ports.posts();
    assert_eq!((posts.len(), ports.sent().len()), (1, 0));
    let signer = posts[0].signer.as_ref().expect("it is signed");
    assert_eq!((signer.scope.service, signer.scope.region.as_str()), ("sqs", "eu-west-1"));
    assert_eq!(posts[0].url.as_str(), "https://sqs.eu-west-1.amazonaws.com/");
    let body: serde_json::Value = serde_json::from_slice(&posts[0].body).expect("JSON");
    assert_eq!(body["MessageBody"], EVENT);
    assert_eq!(body["QueueUrl"], "https://sqs.eu-west-1.amazonaws.com/123456789012/shop-orders");
}

#[test]
fn a_namespace_without_a_pattern_a_foreign_arn_and_an_own_queue_are_refused_without_a_request() {
    for (arn, targets, why) in [
        (QUEUE, "", "AWS_TARGETS does not list"),
        (QUEUE, "billing=arn:aws:sqs:eu-west-1:123456789012:*", "for the namespace \"shop\""),
        (QUEUE, "shop=arn:aws:sqs:eu-west-1:123456789012:other-*", "AWS_TARGETS does not list"),
        (
            "arn:aws:sqs:eu-west-1:999999999999:shop-orders",
            "shop=arn:aws:sqs:eu-west-1:123456789012:*",
            "AWS_TARGETS does not list",
        ),
        (
            "arn:aws:sqs:eu-west-1:123456789012:lastmile-1-events",
            "*=arn:aws:*:*:*:*",
            "belongs to this deployment",
        ),
    ] {
        let ports = ports(arn, "SendMessage");
        let lines = log_lines(tracing::Level::TRACE, || run(&ports, targets));
        assert_eq!((ports.posts().len(), ports.credentials_asked()), (0, 0), "{arn} {targets}");
        let (queue, message) = &ports.sent()[0];
        assert_eq!(*queue, QueueName::DeadLetter);
        assert_eq!(letter(message).reason, Reason::UndeliverableDueToBlockedAddress);
        let is_told = |line: &serde_json::Value| {
            line["why"].as_str().is_some_and(|reason| reason.contains(why))
        };
        assert!(lines.iter().any(is_told), "{why}: {lines:?}");
    }
}

fn after(arn: &str, action: &str, host: &str, answer: Reaction) -> Followed {
    let ports = ports(arn, action).with_reactions(host, &[answer]);
    run(&ports, "*=arn:aws:*:*:*:*");
    assert_eq!(ports.posts().len(), 1, "{arn}");
    let sent = ports.sent();
    let Some((queue, message)) = sent.first() else { return DONE };
    let is_retried = *queue == QueueName::Retry;
    let delivery = if is_retried { carried(message) } else { letter(message).delivery };
    let last = delivery.history.first().first().expect("an attempt");
    (last.outcome.known().expect("a known word"), last.status, is_retried)
}

/// A target: its ARN, its action and its host.
type Target = (&'static str, &'static str, &'static str);

const SQS: Target = (QUEUE, "SendMessage", QUEUE_HOST);
const BUS: Target =
    ("arn:aws:events:eu-west-1:123456789012:event-bus/shop", "PutEvents", "events.eu-west-1");
const FUNCTION: Target =
    ("arn:aws:lambda:eu-west-1:123456789012:function:shop", "Invoke", "lambda.eu-west-1");
const TOPIC: Target = ("arn:aws:sns:eu-west-1:123456789012:shop", "Publish", "sns.eu-west-1");
const MACHINE: Target = (
    "arn:aws:states:eu-west-1:123456789012:stateMachine:shop",
    "StartExecution",
    "states.eu-west-1",
);
const STREAM: Target =
    ("arn:aws:kinesis:eu-west-1:123456789012:stream/shop", "PutRecord", "kinesis.eu-west-1");
const DELIVERY_STREAM: Target = (
    "arn:aws:firehose:eu-west-1:123456789012:deliverystream/shop",
    "PutRecord",
    "firehose.eu-west-1",
);

/// The effect of an answer: outcome and status, and true if the delivery is retried.
type Followed = (Outcome, Option<u16>, bool);

const DONE: Followed = (Outcome::Success, None, false);

fn retried(outcome: Outcome, status: u16) -> Followed {
    (outcome, Some(status), true)
}

fn ended(outcome: Outcome, status: u16) -> Followed {
    (outcome, Some(status), false)
}

/// An error of the JSON protocols.
fn error(status: u16, kind: &str) -> Reaction {
    let body = format!(r#"{{"__type":"{kind}","message":"no"}}"#);
    answers(status).with_body(&body).with_headers(&[])
}

/// An error of Lambda.
fn header(status: u16, kind: &str) -> Reaction {
    answers(status).with_body("{}").with_headers(&[("x-amzn-errortype", kind)])
}

/// An error of the query protocol.
fn xml(status: u16, code: &str) -> Reaction {
    let error = format!("<Type>Sender</Type><Code>{code}</Code><Message>no</Message>");
    let body = format!("<ErrorResponse><Error>{error}</Error></ErrorResponse>");
    answers(status).with_body(&body).with_headers(&[])
}

/// The answer of EventBridge about an event that it refuses.
fn refused(code: &str) -> Reaction {
    let entry = format!(r#"{{"ErrorCode":"{code}","ErrorMessage":"no"}}"#);
    done(&format!(r#"{{"FailedEntryCount":1,"Entries":[{entry}]}}"#))
}

/// An answer with status 200.
fn done(body: &str) -> Reaction {
    answers(200).with_body(body).with_headers(&[])
}

#[track_caller]
fn assert_followed(target: Target, rows: &[(Reaction, Followed)]) {
    let (arn, action, host) = target;
    for (answer, expected) in rows {
        assert_eq!(after(arn, action, host, answer.clone()), *expected, "{arn} {answer:?}");
    }
}

#[test]
fn the_errors_of_sqs_count_as_those_of_http_endpoints() {
    let sqs = |status, code: &str| error(status, &format!("com.amazonaws.sqs#{code}"));
    let common = |status, code: &str| error(status, &format!("com.amazon.coral.service#{code}"));
    assert_followed(
        SQS,
        &[
            (done(TAKEN), DONE),
            (sqs(400, "RequestThrottled"), retried(Outcome::Busy, 429)),
            (sqs(400, "KmsThrottled"), retried(Outcome::Busy, 429)),
            (
                answers(400).with_body(r#"{"__type":"RequestThrottled","message":"It was cu"#),
                retried(Outcome::Busy, 429),
            ),
            (sqs(400, "QueueDoesNotExist"), ended(Outcome::NotFound, 404)),
            (common(400, "InvalidParameterValueException"), ended(Outcome::BadRequest, 400)),
            (common(403, "AccessDeniedException"), ended(Outcome::Forbidden, 403)),
            (common(403, "ExpiredTokenException"), retried(Outcome::Aborted, 403)),
            (common(403, "UnrecognizedClientException"), retried(Outcome::Aborted, 403)),
            (common(500, "InternalFailure"), retried(Outcome::Busy, 503)),
            (answers(500), retried(Outcome::GenericError, 500)),
        ],
    );
}

#[test]
fn an_event_that_eventbridge_refuses_is_a_failure_although_the_status_is_200() {
    assert_followed(
        BUS,
        &[
            (done(r#"{"FailedEntryCount":0,"Entries":[{"EventId":"e"}]}"#), DONE),
            (refused("ThrottlingException"), retried(Outcome::Busy, 429)),
            (refused("InternalFailure"), retried(Outcome::Busy, 503)),
            (refused("MalformedDetail"), ended(Outcome::BadRequest, 400)),
            (refused("NotAuthorizedForSourceException"), ended(Outcome::Forbidden, 403)),
            (refused("SomethingNew"), retried(Outcome::GenericError, 500)),
            (done("{\"Entr"), retried(Outcome::Busy, 503)),
            (done(r#"{"FailedEntryCount":"1","Entries":[{}]}"#), retried(Outcome::Busy, 503)),
            (error(400, "ThrottlingException"), retried(Outcome::Busy, 429)),
        ],
    );
}

#[test]
fn a_function_that_fails_is_retried_and_the_errors_of_lambda_count() {
    let failed = [("X-Amz-Function-Error", "Unhandled")];
    let failed = answers(200).with_body(r#"{"errorType":"Error"}"#).with_headers(&failed);
    let address = "http://internal.amazon.com/coral/com.amazonaws.lambda/";
    let throttled = format!("TooManyRequestsException:{address}");
    assert_followed(
        FUNCTION,
        &[
            (answers(200).with_body("null").with_headers(&[]), DONE),
            (answers(202).with_headers(&[]), DONE),
            (failed, retried(Outcome::GenericError, 502)),
            (header(429, &throttled), retried(Outcome::Busy, 429)),
            (header(413, "RequestTooLargeException"), ended(Outcome::PayloadTooLarge, 413)),
            (header(404, "ResourceNotFoundException"), ended(Outcome::NotFound, 404)),
            (header(502, "EC2ThrottledException"), retried(Outcome::Busy, 429)),
            (header(410, "EFSIOException"), retried(Outcome::Busy, 503)),
        ],
    );
}

#[test]
fn the_errors_of_sns_count_although_they_are_xml() {
    assert_followed(
        TOPIC,
        &[
            (done("<PublishResult><MessageId>m</MessageId></PublishResult>"), DONE),
            (xml(400, "Throttling"), retried(Outcome::Busy, 429)),
            (xml(404, "NotFound"), ended(Outcome::NotFound, 404)),
            (xml(403, "AuthorizationError"), ended(Outcome::Forbidden, 403)),
            (xml(403, "InvalidClientTokenId"), retried(Outcome::Aborted, 403)),
        ],
    );
}

#[test]
fn a_success_without_the_receipt_of_the_service_is_retried() {
    for (target, receipt) in [
        (SQS, TAKEN),
        (BUS, r#"{"FailedEntryCount":0,"Entries":[{"EventId":"e"}]}"#),
        (TOPIC, "<PublishResult><MessageId>m</MessageId></PublishResult>"),
        (MACHINE, r#"{"executionArn":"a"}"#),
        (STREAM, r#"{"SequenceNumber":"1","ShardId":"s"}"#),
        (DELIVERY_STREAM, r#"{"RecordId":"r"}"#),
    ] {
        let cut = &receipt[..receipt.len() / 2];
        let others = ["", "{}", "null", "[]", "<html>Log in to the network</html>", cut];
        let unread = others.map(|body| (done(body), retried(Outcome::Busy, 503)));
        assert_followed(target, &unread);
        assert_followed(target, &[(done(receipt), DONE)]);
    }
}

#[test]
fn an_execution_that_exists_is_delivered_and_the_other_errors_of_step_functions_count() {
    let states = |code: &str| error(400, &format!("com.amazonaws.swf.service.v2.model#{code}"));
    assert_followed(
        MACHINE,
        &[
            (states("ExecutionLimitExceeded"), retried(Outcome::Busy, 429)),
            (states("ExecutionAlreadyExists"), DONE),
            (states("StateMachineDoesNotExist"), ended(Outcome::NotFound, 404)),
        ],
    );
}

#[test]
fn the_errors_of_streams_count_and_an_unknown_one_by_its_status() {
    assert_followed(
        STREAM,
        &[
            (error(400, "ProvisionedThroughputExceededException"), retried(Outcome::Busy, 429)),
            (error(400, "ResourceNotFoundException"), ended(Outcome::NotFound, 404)),
        ],
    );
    assert_followed(
        DELIVERY_STREAM,
        &[
            (error(503, "ServiceUnavailableException"), retried(Outcome::Busy, 503)),
            (error(400, "SomethingNew"), ended(Outcome::BadRequest, 400)),
        ],
    );
}

#[test]
fn a_dead_letter_keeps_the_answer_of_the_service_and_its_code() {
    let body = r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}"#;
    let answer = answers(400).with_body(body).with_headers(&[]);
    let ports = ports(QUEUE, "SendMessage").with_reactions(QUEUE_HOST, &[answer]);
    let lines = log_lines(tracing::Level::TRACE, || run(&ports, "*=arn:aws:*:*:*:*"));
    let letter = letter(&ports.sent()[0].1);
    assert_eq!(letter.reason, Reason::of_status(404));
    assert_eq!(letter.delivery.last_response.as_deref(), Some(body.as_bytes()));
    let code = "QueueDoesNotExist, received with status 400";
    assert!(format!("{lines:?}").contains(code), "{lines:?}");
}

#[test]
fn an_event_of_event_grid_goes_to_a_target_as_a_cloudevent() {
    let event = r#"[{"id":"1","topic":"shop/orders","subject":"orders/7","eventType":"order.created","eventTime":"2026-11-20T07:03:00Z","dataVersion":"1","data":{"total":3}}]"#;
    let ports = ports(BUS.0, BUS.1);
    run_event(&ports, "*=arn:aws:*:*:*:*", event);
    let body: serde_json::Value = serde_json::from_slice(&ports.posts()[0].body).expect("JSON");
    let detail = body["Entries"][0]["Detail"].as_str().expect("a text");
    let detail: serde_json::Value = serde_json::from_str(detail).expect("JSON");
    assert_eq!((&detail["type"], &detail["data"]["total"]), (&"order.created".into(), &3.into()));
}

#[test]
fn a_text_of_an_event_that_no_header_can_have_is_a_dead_letter_that_names_the_header() {
    let text = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: shop, topic: orders, name: s0}\n\
                spec: {destination: {aws: {arn: 'arn:aws:lambda:eu-west-1:123456789012:function:shop', action: Invoke, \
                parameters: {ClientContext: '{{ event.subject }}'}}}}\n";
    let ports = FakePorts::new(catalogue_from(text));
    ports.grant_credentials(Some(HOUR_MS));
    let event =
        r#"{"specversion":"1.0","id":"1","source":"/s","type":"a","subject":"a\r\nx-amz-b: c"}"#;
    let lines = log_lines(tracing::Level::TRACE, || run_event(&ports, "*=arn:aws:*:*:*:*", event));
    assert_eq!((ports.posts().len(), &ports.sent()[0].0), (0, &QueueName::DeadLetter));
    let expected = "the header x-amz-client-context cannot be sent: the value of a header cannot \
                    have control characters";
    assert!(format!("{lines:?}").contains(expected), "{lines:?}");
}
