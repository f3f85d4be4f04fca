//! The queues and who may send to them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{TEMPLATE, matching, properties, resources, statements, texts};

const QUEUE: &str = "AWS::SQS::Queue";

/// The statements about a queue, each with its template condition. A queue has only one policy,
/// because SQS keeps only the last one.
fn statements_about(queue: &str) -> Vec<(Option<&'static str>, &'static Value)> {
    let policies = resources("AWS::SQS::QueuePolicy").into_iter();
    let naming = policies.filter(|(_, policy)| texts(&policy["Queues"]).contains(&queue));
    let [(_, policy)] = naming.collect::<Vec<_>>()[..] else { panic!("one policy for {queue}") };
    let arn = format!("{queue}.Arn");
    let all = statements(&policy["PolicyDocument"]).into_iter();
    all.filter(|(_, statement)| texts(&statement["Resource"]).contains(&arn.as_str())).collect()
}

/// True if a queue denies this action to everyone in this case, under this template condition.
fn denies(queue: &str, condition: Option<&str>, action: &str, case: &Value) -> bool {
    statements_about(queue).into_iter().any(|(under, statement)| {
        under == condition
            && statement["Effect"] == "Deny"
            && statement["Principal"] == "*"
            && texts(&statement["Action"]).contains(&action)
            && statement["Condition"] == *case
    })
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
        ("EventsQueue", ("DeadLetterQueue.Arn", 100)),
        ("RetryQueue", ("DeadLetterQueue.Arn", 100)),
        ("SlowQueue", ("DeadLetterQueue.Arn", 100)),
        ("IsolationQueue", ("DeadLetterQueue.Arn", 10)),
        ("DeadLetterQueue", ("LastResortQueue.Arn", 1_000)),
    ]);
    assert_eq!(redrives, expected);
}

#[test]
fn a_queue_takes_what_its_own_sources_give_up_and_nothing_else() {
    const ID: &str = "the unique part of the stack's id";
    /// A text with the id of the stack in it.
    fn with_id(value: &'static Value) -> String {
        let [text, variables] = value.as_array().expect("!Sub with variables").as_slice() else {
            panic!("{value}")
        };
        assert_eq!(*variables, json!({"Id": [2, ["/", "AWS::StackId"]]}), "{ID}");
        text.as_str().expect("a text").to_owned()
    }
    for (name, properties) in resources(QUEUE) {
        let policy = &properties["RedriveAllowPolicy"];
        let gives_up = |(source, properties): &(&'static str, &'static Value)| {
            let target = &properties["RedrivePolicy"]["deadLetterTargetArn"];
            (*target == format!("{name}.Arn")).then_some(*source)
        };
        let sources: Vec<&str> = resources(QUEUE).iter().filter_map(gives_up).collect();
        if sources.is_empty() {
            assert_eq!(*policy, json!({"redrivePermission": "denyAll"}), "{name}");
            continue;
        }
        let arn = |queue: &&str| {
            assert_eq!(
                with_id(&super::properties(queue)["QueueName"]),
                format!("lastmile-${{Id}}-{queue}")
            );
            format!(
                "arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:lastmile-${{Id}}-{queue}"
            )
        };
        let allowed: BTreeSet<String> =
            policy["sourceQueueArns"].as_array().expect("a list").iter().map(with_id).collect();
        assert_eq!(allowed, sources.iter().map(arn).collect(), "{name}");
    }
}

#[test]
fn deadletter_is_told_which_queue_publishers_write_to() {
    let variables = &properties("DeadLetterFunction")["Environment"]["Variables"];
    assert_eq!(variables["EVENTS_QUEUE_URL"], "EventsQueue");
}

#[test]
fn what_holds_events_is_kept_when_the_stack_is_deleted() {
    for of_type in [QUEUE, "AWS::S3::Bucket", "AWS::DynamoDB::Table"] {
        for (name, _) in resources(of_type) {
            for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
                assert_eq!(super::TEMPLATE["Resources"][name][policy], "Retain", "{name}");
            }
        }
    }
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
    let without_tls = json!({"Bool": {"aws:SecureTransport": "false"}});
    for (name, _) in resources(QUEUE) {
        assert!(denies(name, None, "sqs:*", &without_tls), "{name}");
    }
}

/// A condition for everyone except the functions that read queues and the operators.
fn others() -> Value {
    let operators = json!([",", "OperatorArns"]);
    let trusted = json!([",", [",", ["DispatchRole.Arn", "DeadLetterRole.Arn", operators]]]);
    json!({"ArnNotLike": {"aws:PrincipalArn": trusted}})
}

#[test]
fn only_the_functions_and_the_operators_send_to_an_internal_queue() {
    for (name, _) in resources(QUEUE).into_iter().filter(|(name, _)| *name != "EventsQueue") {
        assert!(denies(name, Some("HasOperators"), "sqs:SendMessage", &others()), "{name}");
    }
}

#[test]
fn only_the_functions_and_the_operators_take_or_purge_messages() {
    for (name, _) in resources(QUEUE) {
        for action in [
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:PurgeQueue",
        ] {
            assert!(denies(name, Some("HasOperators"), action, &others()), "{action} on {name}");
        }
    }
}

#[test]
fn no_publisher_is_everybody() {
    let parameter = &TEMPLATE["Parameters"]["PublisherArns"];
    // CloudFormation matches the pattern with each element of the list.
    let pattern = parameter["AllowedPattern"].as_str().expect("a pattern");
    let publishers = "arn:aws:iam::123456789012:role/shop-*\n\
                      arn:aws:iam::123456789012:root\n\
                      arn:aws-cn:sns:cn-north-1:123456789012:orders\n\
                      arn:aws:events:*:123456789012:rule/shop/*\n\
                      arn:aws:s3:::uploads\n";
    let everybody = "*\narn:*\narn:aws:*\narn:aws:iam::*:*\narn:aws:iam::*:role/shop\narn:*:iam::*:root\n\
                     arn:aws:s3:::*\narn:aws:sns:eu-west-1:*:orders\narn:aws:*:*:123456789012:x\n123456789012\n";
    assert_eq!(matching(pattern, &format!("{everybody}{publishers}")), publishers);
}

#[test]
fn publishers_may_send_events_and_nothing_else() {
    let about = statements_about("EventsQueue");
    let statement = |id: &str| about.iter().find(|(_, statement)| statement["Sid"] == id);
    for id in ["PublishingIdentities", "PublishingTopicsAndRules", "PublishingBuckets"] {
        let (condition, statement) = *statement(id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!(condition, Some("HasPublishers"), "{id}");
        assert_eq!(
            (&statement["Effect"], &statement["Action"]),
            (&json!("Allow"), &json!("sqs:SendMessage"))
        );
        let arns = &statement["Condition"]["ArnLike"];
        let only = [&arns["aws:PrincipalArn"], &arns["aws:SourceArn"]];
        assert!(only.contains(&&json!("PublisherArns")), "{id}: {arns}");
    }
    let (_, buckets) = statement("PublishingBuckets").expect("buckets publish");
    assert_eq!(
        buckets["Condition"]["StringEquals"],
        json!({"aws:SourceAccount": "AWS::AccountId"}),
        "anybody can take the name of a deleted bucket"
    );
}

#[test]
fn a_deployment_says_who_may_send_to_the_internal_queues() {
    let said = super::TEMPLATE["Outputs"]["SendersToInternalQueues"]["Value"].as_array();
    let [condition, _, otherwise] = said.expect("!If").as_slice() else { panic!("{said:?}") };
    assert_eq!(condition, "HasOperators");
    let otherwise = otherwise.as_str().expect("a text");
    assert!(otherwise.contains("every identity") && otherwise.contains("OperatorArns is empty"));
}
