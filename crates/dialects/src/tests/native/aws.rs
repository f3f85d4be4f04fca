//! Destinations that are AWS targets.

use delivery::subscription::aws::{AwsAction, AwsService};

use super::refused::is_refused_in_subscription;
use super::{HEAD, TOPIC, subscription};
use crate::tests::support::{read_one, shown};

const QUEUE: &str = "arn: 'arn:aws:sqs:eu-west-1:123456789012:orders', action: SendMessage";

#[test]
fn a_target_is_read_and_its_arn_is_its_address() {
    let read = subscription(&format!(
        "{HEAD}  destination: {{aws: {{{QUEUE}, parameters: {{DelaySeconds: 9, MessageGroupId: '{{{{ event.id }}}}'}}}}, timeout: PT5S}}\n"
    ));
    let destination = &read.destination;
    let target = destination.aws.as_ref().expect("a target");
    assert_eq!((target.arn.service(), target.action), (AwsService::Sqs, AwsAction::SendMessage));
    assert_eq!(target.iam_action(), "sqs:SendMessage");
    assert_eq!(destination.display(), "arn:aws:sqs:eu-west-1:123456789012:orders");
    assert_eq!(destination.host(), "sqs.eu-west-1.amazonaws.com");
    let scope = destination.signing_scope().expect("it is signed");
    assert_eq!(
        (scope.service, scope.region.as_str(), scope.signs_body),
        ("sqs", "eu-west-1", true)
    );
    assert!(destination.needs_keyring() && destination.has_templates());
}

#[test]
fn what_a_topic_states_for_urls_is_not_used_for_a_target() {
    let topic = "spec: {delivery: {destination: {method: PUT, headers: [{name: a, secret: 'env:A'}], auth: {bearer: {token: 'env:T'}}, timeout: PT7S}}}";
    let read =
        subscription(&format!("{TOPIC}{topic}\n---\n{HEAD}  destination: {{aws: {{{QUEUE}}}}}\n"));
    let destination = &read.destination;
    assert_eq!((destination.secrets().count(), destination.headers.len()), (0, 0));
    assert_eq!((destination.auth.as_ref(), destination.response_timeout_ms), (None, 7_000));
}

#[test]
fn bad_targets_are_refused_at_their_position_with_what_is_right() {
    let parameters = |service: &str, action: &str, parameters: &str| {
        format!(
            "destination: {{aws: {{arn: 'arn:aws:{service}', action: {action}, parameters: {{{parameters}}}}}}}"
        )
    };
    let sqs = |stated: &str| parameters("sqs:eu-west-1:123456789012:a", "SendMessage", stated);
    let events =
        |stated: &str| parameters("events:eu-west-1:123456789012:event-bus/a", "PutEvents", stated);
    let lambda =
        |stated: &str| parameters("lambda:eu-west-1:123456789012:function:a:b", "Invoke", stated);
    let function =
        |stated: &str| parameters("lambda:eu-west-1:123456789012:function:a", "Invoke", stated);
    let states = |stated: &str| {
        parameters("states:eu-west-1:123456789012:stateMachine:a", "StartExecution", stated)
    };
    let firehose = |stated: &str| {
        parameters("firehose:eu-west-1:123456789012:deliverystream/a", "PutRecord", stated)
    };
    let beside = |rest: &str| format!("destination: {{aws: {{{QUEUE}}}, {rest}}}");
    let (at, parameters_at) = ("destination.aws", "destination.aws.parameters");
    for (spec, expected) in [
        ("destination: {aws: {arn: ^sqs, action: SendMessage}}".to_owned(), format!("{at}.arn: not an ARN: arn:PARTITION")),
        ("destination: {aws: {arn: ^'arn:aws:sqs:eu-west-1:123456789012:{{ event.type }}', action: \
          SendMessage}}".to_owned(), format!("{at}.arn: an ARN of SQS must end with QUEUE")),
        ("destination: {aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:a', action: ^Publish}}".to_owned(), format!("{at}.action: Publish is not an action of SQS; action: SendMessage")),
        ("destination: {aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:a', action: ^SendMesage}}".to_owned(), format!("{at}.action: \"SendMesage\" is not a valid value; did you mean SendMessage?")),
        ("destination: ^{aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:a'}}".replace("^{aws: ", "{aws: ^"), format!("{at}.action: action is missing")),
        (sqs("^MessageGroup: a"), format!("{parameters_at}.MessageGroup: SQS has no parameter \"MessageGroup\"; did you mean MessageGroupId?")),
        (sqs("DelaySeconds: ^901"), format!("{parameters_at}.DelaySeconds: expected a whole number from 0 to 900")),
        (sqs("DelaySeconds: ^'9'"), format!("{parameters_at}.DelaySeconds: expected a whole number from 0 to 900")),
        (sqs("MessageGroupId: ^7"), format!("{parameters_at}.MessageGroupId: expected a string")),
        (sqs("MessageGroupId: ^'{{ event.'"), format!("{parameters_at}.MessageGroupId: ")),
        (sqs("MessageAttributes: ^{a: b}"), format!("{parameters_at}.MessageAttributes: expected NAME: {{DataType: String")),
        (events("Resources: ^a"), format!("{parameters_at}.Resources: expected a list of strings")),
        (events("Time: ^today"), format!("{parameters_at}.Time: expected a time such as 2026-11-20T07:03:00Z")),
        (lambda("InvocationType: ^DryRun"), format!("{parameters_at}.InvocationType: expected Event or RequestResponse")),
        (lambda("Qualifier: ^a"), format!("{parameters_at}.Qualifier: the ARN already has an alias or a version")),
        (function("Qualifier: ^'{{ event.subject }}'"), format!("{parameters_at}.Qualifier: expected the name of an alias or a version, without expressions")),
        (function("Qualifier: ^'live:1'"), format!("{parameters_at}.Qualifier: expected the name of an alias")),
        (states("^Name: a"), format!("{parameters_at}.Name: Step Functions has no parameter \"Name\"; did you mean name?")),
        (firehose("^PartitionKey: a"), format!("{parameters_at}.PartitionKey: Firehose has no parameter \"PartitionKey\"; Firehose supports no parameters")),
        (beside("url: ^'https://a.example.com/'"), "destination.url: set only one of url and aws".to_owned()),
        (beside("headers: ^[{name: a, value: b}]"), "destination.headers: an AWS target does not support headers; requests to AWS targets are signed with the role InvokeRoleArn".to_owned()),
        (beside("auth: ^{bearer: {token: 'env:T'}}"), "destination.auth: an AWS target does not support auth".to_owned()),
        (beside("lateResponseWindow: ^PT1M"), "destination.lateResponseWindow: an AWS target does not support lateResponseWindow".to_owned()),
        (beside("notificationHeaders: ^true"), "destination.notificationHeaders: an AWS target does not support notificationHeaders".to_owned()),
        (beside("hidePath: ^true"), "destination.hidePath: an AWS target does not support hidePath".to_owned()),
        (beside("schema: ^cloudevents-binary"), "destination.schema: an AWS target does not support the schema cloudevents-binary, which sends attributes as headers; schema: cloudevents-structured".to_owned()),
        (beside("body: {}, bodyText: ^a"), "destination.bodyText: set only one of body and bodyText".to_owned()),
        (format!("{}\n  batch: ^{{maxEvents: 9}}", beside("timeout: PT5S")), "batch: an AWS target receives one event per request, not batches; batch: none".to_owned()),
        (format!("{}\n  reply: ^'https://a.example.com/'", beside("timeout: PT5S")), "reply: an AWS target cannot reply with events".to_owned()),
    ] {
        is_refused_in_subscription(&spec, &expected);
    }
}

#[test]
fn a_parameter_that_tells_events_apart_is_warned_of_if_all_have_the_same() {
    for (target, name) in [
        (
            "arn: 'arn:aws:states:eu-west-1:123456789012:stateMachine:a', action: StartExecution",
            "name",
        ),
        (
            "arn: 'arn:aws:sqs:eu-west-1:123456789012:a.fifo', action: SendMessage",
            "MessageDeduplicationId",
        ),
        (
            "arn: 'arn:aws:sns:eu-west-1:123456789012:a.fifo', action: Publish",
            "MessageDeduplicationId",
        ),
        (
            "arn: 'arn:aws:lambda:eu-west-1:123456789012:function:a', action: Invoke",
            "DurableExecutionName",
        ),
    ] {
        let found = |value: &str| {
            shown(&read_one(&format!(
                "{HEAD}  destination: {{aws: {{{target}, parameters: {{{name}: {value}}}}}}}\n"
            )))
        };
        let expected = format!(
            "warning: spec.destination.aws.parameters.{name}: every event has the same {name}, so \
             the service discards all but the first as duplicates; use an expression, such as \
             {{{{ event.id }}}}"
        );
        let literal = found("order");
        assert!(literal.len() == 1 && literal[0].ends_with(&expected), "{name}: {literal:?}");
        for of_the_event in ["'{{ event.id }}'", "'a-{{ event.subject }}'", "null"] {
            assert_eq!(found(of_the_event), Vec::<String>::new(), "{name}: {of_the_event}");
        }
    }
}

#[test]
fn a_target_whose_parameters_are_made_of_the_event_needs_a_mapping_of_custom_events() {
    let topic = format!("{TOPIC}spec: {{input: custom}}\n---\n{HEAD}");
    let problem = "provides no eventType, which the CloudEvent for templates requires";
    for (target, is_refused) in [
        ("arn: 'arn:aws:sqs:eu-west-1:123456789012:a', action: SendMessage", false),
        ("arn: 'arn:aws:sqs:eu-west-1:123456789012:a.fifo', action: SendMessage", true),
        ("arn: 'arn:aws:events:eu-west-1:123456789012:event-bus/a', action: PutEvents", true),
        ("arn: 'arn:aws:kinesis:eu-west-1:123456789012:stream/a', action: PutRecord", true),
        (
            "arn: 'arn:aws:firehose:eu-west-1:123456789012:deliverystream/a', action: PutRecord",
            false,
        ),
    ] {
        let found = shown(&read_one(&format!("{topic}  destination: {{aws: {{{target}}}}}\n")));
        assert_eq!(
            found.iter().any(|finding| finding.contains(problem)),
            is_refused,
            "{target}: {found:?}"
        );
    }
}
