//! The queues and who may send to them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{properties, resources, statement, tls_only};

const QUEUE: &str = "AWS::SQS::Queue";
/// Those that only the functions and operators send to; on the other one, everybody publishes.
const INTERNAL: [&str; 7] = [
    "FanOutQueue",
    "RetryQueue",
    "SlowQueue",
    "IsolationQueue",
    "DeadLetterQueue",
    "UnprocessedQueue",
    "LastResortQueue",
];

/// The policy document of a queue.
fn policy(queue: &str) -> &'static Value {
    let policies = resources("AWS::SQS::QueuePolicy");
    let mut of_queue =
        policies.iter().filter(|(_, properties)| properties["Queues"] == json!([queue]));
    let (Some((_, properties)), None) = (of_queue.next(), of_queue.next()) else {
        panic!("{queue} needs one policy of its own")
    };
    &properties["PolicyDocument"]
}

#[test]
fn a_message_is_received_so_often_before_its_queue_gives_it_up() {
    let redrive = |(name, properties): (&'static str, &'static Value)| {
        let policy = &properties["RedrivePolicy"];
        Some((name, (policy["deadLetterTargetArn"].as_str()?, policy["maxReceiveCount"].as_u64()?)))
    };
    let redrives: BTreeMap<&str, (&str, u64)> =
        resources(QUEUE).into_iter().filter_map(redrive).collect();
    let expected = BTreeMap::from([
        ("EventsQueue", ("UnprocessedQueue.Arn", 100)),
        ("FanOutQueue", ("DeadLetterQueue.Arn", 100)),
        ("RetryQueue", ("DeadLetterQueue.Arn", 100)),
        ("SlowQueue", ("DeadLetterQueue.Arn", 100)),
        ("IsolationQueue", ("DeadLetterQueue.Arn", 10)),
        ("DeadLetterQueue", ("LastResortQueue.Arn", 1_000)),
    ]);
    assert_eq!(redrives, expected);
}

#[test]
fn what_publishers_wrote_is_never_redriven_to_a_queue_whose_attributes_are_believed() {
    let target = &properties("EventsQueue")["RedrivePolicy"]["deadLetterTargetArn"];
    assert_eq!(target, "UnprocessedQueue.Arn");
}

#[test]
fn every_queue_keeps_messages_as_long_and_as_large_as_sqs_can() {
    for (name, properties) in resources(QUEUE) {
        assert_eq!(properties["MessageRetentionPeriod"], 1_209_600, "{name}");
        assert_eq!(properties["MaximumMessageSize"], 1_048_576, "{name}");
    }
}

#[test]
fn every_queue_is_encrypted() {
    for (name, properties) in resources(QUEUE) {
        let managed = json!(["HasKmsKey", "AWS::NoValue", true]);
        assert_eq!(properties["SqsManagedSseEnabled"], managed, "{name}");
        let own = json!(["HasKmsKey", "KmsKeyArn", "AWS::NoValue"]);
        assert_eq!(properties["KmsMasterKeyId"], own, "{name}");
    }
}

#[test]
fn a_throttled_message_stays_isolated_for_two_hours() {
    assert_eq!(properties("IsolationQueue")["VisibilityTimeout"], 7_200);
}

#[test]
fn every_queue_refuses_requests_without_tls() {
    let queues = resources(QUEUE);
    assert_eq!(queues.len(), INTERNAL.len() + 1);
    for (name, _) in queues {
        let expected = tls_only("sqs:*", &json!(format!("{name}.Arn")));
        assert_eq!(statement(policy(name), "TlsOnly"), Some((None, &expected)), "{name}");
    }
}

#[test]
fn only_the_functions_and_the_operators_send_to_an_internal_queue() {
    let operators = json!([",", "OperatorArns"]);
    let senders = json!([",", [",", ["DispatchRole.Arn", "DeadLetterRole.Arn", operators]]]);
    for name in INTERNAL {
        let expected = json!({"Sid": "FunctionsAndOperatorsOnly", "Effect": "Deny", "Principal": "*",
            "Action": "sqs:SendMessage", "Resource": format!("{name}.Arn"),
            "Condition": {"ArnNotLike": {"aws:PrincipalArn": senders}}});
        let found = statement(policy(name), "FunctionsAndOperatorsOnly");
        assert_eq!(found, Some((Some("HasOperators"), &expected)), "{name}");
    }
}

#[test]
fn publishers_may_send_events_and_nothing_else() {
    let policy = policy("EventsQueue");
    for id in ["PublishingIdentities", "PublishingTopicsAndRules", "PublishingBuckets"] {
        let (condition, statement) = statement(policy, id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!(condition, Some("HasPublishers"), "{id}");
        assert_eq!(
            (&statement["Effect"], &statement["Action"]),
            (&json!("Allow"), &json!("sqs:SendMessage"))
        );
        let arns = &statement["Condition"]["ArnLike"];
        let only = [&arns["aws:PrincipalArn"], &arns["aws:SourceArn"]];
        assert!(only.contains(&&json!("PublisherArns")), "{id}: {arns}");
    }
    let (_, buckets) = statement(policy, "PublishingBuckets").expect("buckets publish");
    assert_eq!(
        buckets["Condition"]["StringEquals"],
        json!({"aws:SourceAccount": "AWS::AccountId"}),
        "anybody can take the name of a deleted bucket"
    );
}
