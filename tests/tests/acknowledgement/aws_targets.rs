//! Deliveries to AWS targets: which targets are refused, and what the answers of the services lead to. The answers are in the
//! shapes in which the services send them.

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::ports::QueueName;
use delivery::subscription::aws::policy::{AwsPolicy, AwsTargets, OwnResources};
use delivery::subscription::catalogue::Catalogue;
use dialects::Source;
use dispatch::{Deadline, Dispatch};

use super::json_log::log_lines;
use super::{ENDS_MS, EVENT, carried, letter};
use crate::fake_ports::{FakePorts, NOW_MS, container, record};
use crate::reactions::{Reaction, answers};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:shop-orders";
const QUEUE_HOST: &str = "sqs.eu-west-1.amazonaws.com";
const HOUR_MS: u64 = 3_600_000;

/// The topic shop/orders with the subscription s0 to this target.
fn catalogue(arn: &str, action: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s0}}\n\
         spec: {{destination: {{aws: {{arn: '{arn}', action: {action}}}}}, retry: {{jitterPercent: 0}}}}\n"
    );
    dialects::read(&[Source { name: "test", text: &text }]).into_result().expect("it is valid")
}

fn policy(targets: &str) -> AwsPolicy {
    let own = "arn:aws:sqs:eu-west-1:123456789012:lastmile-*";
    let own = OwnResources::parse(own).expect("ARNs");
    let role = Some("arn:aws:iam::123456789012:role/invoke");
    AwsPolicy::new(AwsTargets::parse(targets).expect("a list"), own, role)
}

/// Dispatches one event under a policy.
fn run(ports: &FakePorts, targets: &str) {
    let dispatch = Dispatch::new(ports.clone(), container(), None).with_targets(policy(targets));
    let deadline = Deadline::new(NOW_MS, ENDS_MS);
    assert_eq!(ports.run(dispatch.handle(&[record("m1", EVENT)], &deadline)), [""; 0]);
}

fn ports(arn: &str, action: &str) -> FakePorts {
    let ports = FakePorts::new(catalogue(arn, action));
    ports.grant_credentials(Some(HOUR_MS));
    ports
}

#[test]
fn an_allowed_target_gets_the_event_in_a_signed_request() {
    let ports = ports(QUEUE, "SendMessage");
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
        let is_told =
            |line: &serde_json::Value| line["why"].as_str().is_some_and(|of| of.contains(why));
        assert!(lines.iter().any(is_told), "{why}: {lines:?}");
    }
}

/// What follows from an answer: an outcome with its status, and whether the delivery is retried.
fn after(arn: &str, action: &str, host: &str, answer: Reaction) -> (Outcome, Option<u16>, bool) {
    let ports = ports(arn, action).with_reactions(host, &[answer]);
    run(&ports, "*=arn:aws:*:*:*:*");
    assert_eq!(ports.posts().len(), 1, "{arn}");
    let sent = ports.sent();
    let Some((queue, message)) = sent.first() else { return (Outcome::Success, None, false) };
    let is_retried = *queue == QueueName::Retry;
    let delivery = if is_retried { carried(message) } else { letter(message).delivery };
    let last = delivery.history.first().first().expect("an attempt");
    (last.outcome.known().expect("a known word"), last.status, is_retried)
}

#[test]
fn the_answers_of_services_count_as_those_of_http_endpoints() {
    let json = |kind: &str| format!(r#"{{"__type":"{kind}","message":"no"}}"#);
    let error = |status, kind: &str| answers(status).with_body(&json(kind)).with_headers(&[]);
    let header =
        |status, kind| answers(status).with_body("{}").with_headers(&[("x-amzn-errortype", kind)]);
    let xml = |status, code: &str| {
        let body = format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
        );
        answers(status).with_body(&body).with_headers(&[])
    };
    let entries = |failed: u64, code: &str| {
        let body = format!(
            r#"{{"FailedEntryCount":{failed},"Entries":[{{"ErrorCode":"{code}","ErrorMessage":"no"}}]}}"#
        );
        answers(200).with_body(&body).with_headers(&[])
    };
    let function = |kind| {
        answers(200)
            .with_body(r#"{"errorType":"Error"}"#)
            .with_headers(&[("X-Amz-Function-Error", kind)])
    };
    let (bus, functions) = (
        ("arn:aws:events:eu-west-1:123456789012:event-bus/shop", "PutEvents", "events.eu-west-1"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:shop", "Invoke", "lambda.eu-west-1"),
    );
    let queue = (QUEUE, "SendMessage", QUEUE_HOST);
    let topic = ("arn:aws:sns:eu-west-1:123456789012:shop", "Publish", "sns.eu-west-1");
    let machine = (
        "arn:aws:states:eu-west-1:123456789012:stateMachine:shop",
        "StartExecution",
        "states.eu-west-1",
    );
    let stream =
        ("arn:aws:kinesis:eu-west-1:123456789012:stream/shop", "PutRecord", "kinesis.eu-west-1");
    let firehose = (
        "arn:aws:firehose:eu-west-1:123456789012:deliverystream/shop",
        "PutRecord",
        "firehose.eu-west-1",
    );
    let done = (Outcome::Success, None, false);
    let retried = |outcome, status| (outcome, Some(status), true);
    let ended = |outcome, status| (outcome, Some(status), false);
    for ((arn, action, host), answer, expected) in [
        (queue, answers(200).with_body("{}"), done),
        (queue, error(400, "com.amazonaws.sqs#RequestThrottled"), retried(Outcome::Busy, 429)),
        (queue, error(400, "com.amazonaws.sqs#KmsThrottled"), retried(Outcome::Busy, 429)),
        (queue, error(400, "com.amazonaws.sqs#QueueDoesNotExist"), ended(Outcome::NotFound, 404)),
        (
            queue,
            error(400, "com.amazon.coral.service#InvalidParameterValueException"),
            ended(Outcome::BadRequest, 400),
        ),
        (
            queue,
            error(403, "com.amazon.coral.service#AccessDeniedException"),
            ended(Outcome::Forbidden, 403),
        ),
        (
            queue,
            error(403, "com.amazon.coral.service#ExpiredTokenException"),
            retried(Outcome::Aborted, 403),
        ),
        (
            queue,
            error(403, "com.amazon.coral.service#UnrecognizedClientException"),
            retried(Outcome::Aborted, 403),
        ),
        (
            queue,
            error(500, "com.amazon.coral.service#InternalFailure"),
            retried(Outcome::Busy, 503),
        ),
        (queue, answers(500), retried(Outcome::GenericError, 500)),
        (bus, entries(0, ""), done),
        (bus, entries(1, "ThrottlingException"), retried(Outcome::Busy, 429)),
        (bus, entries(1, "InternalFailure"), retried(Outcome::Busy, 503)),
        (bus, entries(1, "MalformedDetail"), ended(Outcome::BadRequest, 400)),
        (bus, entries(1, "NotAuthorizedForSourceException"), ended(Outcome::Forbidden, 403)),
        (bus, entries(1, "SomethingNew"), retried(Outcome::GenericError, 500)),
        (bus, answers(200).with_body("{\"Entr"), retried(Outcome::Busy, 503)),
        (bus, error(400, "ThrottlingException"), retried(Outcome::Busy, 429)),
        (functions, answers(200).with_body("null").with_headers(&[]), done),
        (functions, answers(202).with_headers(&[]), done),
        (functions, function("Unhandled"), retried(Outcome::GenericError, 502)),
        (
            functions,
            header(
                429,
                "TooManyRequestsException:http://internal.amazon.com/coral/com.amazonaws.lambda/",
            ),
            retried(Outcome::Busy, 429),
        ),
        (functions, header(413, "RequestTooLargeException"), ended(Outcome::PayloadTooLarge, 413)),
        (functions, header(404, "ResourceNotFoundException"), ended(Outcome::NotFound, 404)),
        (functions, header(502, "EC2ThrottledException"), retried(Outcome::Busy, 429)),
        (functions, header(410, "EFSIOException"), retried(Outcome::Busy, 503)),
        (topic, answers(200).with_body("<PublishResponse/>"), done),
        (topic, xml(400, "Throttling"), retried(Outcome::Busy, 429)),
        (topic, xml(404, "NotFound"), ended(Outcome::NotFound, 404)),
        (topic, xml(403, "AuthorizationError"), ended(Outcome::Forbidden, 403)),
        (topic, xml(403, "InvalidClientTokenId"), retried(Outcome::Aborted, 403)),
        (
            machine,
            error(400, "com.amazonaws.swf.service.v2.model#ExecutionLimitExceeded"),
            retried(Outcome::Busy, 429),
        ),
        (machine, error(400, "com.amazonaws.swf.service.v2.model#ExecutionAlreadyExists"), done),
        (
            machine,
            error(400, "com.amazonaws.swf.service.v2.model#StateMachineDoesNotExist"),
            ended(Outcome::NotFound, 404),
        ),
        (stream, error(400, "ProvisionedThroughputExceededException"), retried(Outcome::Busy, 429)),
        (stream, error(400, "ResourceNotFoundException"), ended(Outcome::NotFound, 404)),
        (firehose, error(503, "ServiceUnavailableException"), retried(Outcome::Busy, 503)),
        (firehose, error(400, "SomethingNew"), ended(Outcome::BadRequest, 400)),
    ] {
        let found = after(arn, action, host, answer.clone());
        assert_eq!(found, expected, "{arn} {answer:?}");
    }
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
    let code = "QueueDoesNotExist, sent with status 400";
    assert!(format!("{lines:?}").contains(code), "{lines:?}");
}
