//! The policies that people attach to their roles. Each allows the actions that its commands need
//! in this stack, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use delivery::delivery::replay::REPLAYS_FOLDER;
use serde_json::{Value, json};

use super::{TEMPLATE, properties, resources, statements, texts};

const READ: &str = "ConsoleReadPolicy";
const REPLAY: &str = "ConsoleReplayPolicy";
const DISMISS: &str = "ConsoleDismissPolicy";
const PURGE: &str = "ConsolePurgePolicy";
const ALL: [&str; 4] = [DISMISS, PURGE, READ, REPLAY];

/// An action, a resource, and the template condition of the statement.
type Allowed = (&'static str, &'static str, &'static str);

/// The statements of a policy, each with its template condition. Fails if a statement has other
/// members, such as `NotAction`.
fn of_policy(policy: &str) -> Vec<(Option<&'static str>, &'static Value)> {
    let all = statements(&properties(policy)["PolicyDocument"]);
    for (_, statement) in &all {
        let members = statement.as_object().expect("a statement has members").keys();
        let members: BTreeSet<&str> = members.map(String::as_str).collect();
        let known = BTreeSet::from(["Sid", "Effect", "Action", "Resource", "Condition"]);
        assert!(members.is_subset(&known), "{policy}: {statement:#}");
        assert_eq!(statement["Effect"], "Allow", "{policy}: {statement:#}");
    }
    all
}

fn allowed(policy: &str) -> BTreeSet<Allowed> {
    let of_statement = |(when, statement): (Option<&'static str>, &'static Value)| {
        let resources = texts(&statement["Resource"]);
        let actions = texts(&statement["Action"]).into_iter();
        let with_each = move |action| {
            let when = when.unwrap_or("always");
            resources.clone().into_iter().map(move |resource| (action, resource, when))
        };
        actions.flat_map(with_each).collect::<Vec<_>>()
    };
    of_policy(policy).into_iter().flat_map(of_statement).collect()
}

/// These actions on each of these resources.
fn each<const N: usize>(actions: [&'static str; N], resources: &[&'static str]) -> Vec<Allowed> {
    let with = |action| resources.iter().map(move |resource| (action, *resource, "always"));
    actions.into_iter().flat_map(with).collect()
}

/// These actions on the key of the stack, and on the key before or after it.
fn of_keys<const N: usize>(actions: [&'static str; N]) -> Vec<Allowed> {
    let with = |action| {
        [(action, "KmsKeyArn", "HasKmsKey"), (action, "PreviousKmsKeyArn", "HasPreviousKmsKey")]
    };
    actions.into_iter().flat_map(with).collect()
}

fn assert_allows(policy: &str, expected: impl IntoIterator<Item = Vec<Allowed>>) {
    let expected: BTreeSet<Allowed> = expected.into_iter().flatten().collect();
    assert_eq!(allowed(policy), expected, "{policy}");
}

#[test]
fn a_reader_may_read_what_the_console_and_the_commands_show() {
    const STACK: &str = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/${AWS::StackName}/*";
    const QUEUES: [&str; 6] = [
        "EventsQueue.Arn",
        "RetryQueue.Arn",
        "SlowQueue.Arn",
        "IsolationQueue.Arn",
        "DeadLetterQueue.Arn",
        "LastResortQueue.Arn",
    ];
    assert_eq!(resources("AWS::SQS::Queue").len(), QUEUES.len());
    let subscriptions = ["${ConfigBucket.Arn}/subscriptions/*"];
    assert_allows(
        READ,
        [
            each(["cloudformation:DescribeStacks"], &[STACK]),
            each(["s3:GetObject"], &["${DeadLetterBucket.Arn}/*"]),
            each(["s3:ListBucket"], &["DeadLetterBucket.Arn", "ConfigBucket.Arn"]),
            each(["s3:GetObject", "s3:GetObjectVersion"], &subscriptions),
            each(["s3:ListBucketVersions"], &["ConfigBucket.Arn"]),
            each(["dynamodb:GetItem", "dynamodb:Query"], &["Table.Arn"]),
            each(["sqs:GetQueueAttributes"], &QUEUES),
            each(["cloudwatch:GetMetricData"], &["*"]),
            of_keys(["kms:Decrypt"]),
        ],
    );
    let listing = of_policy(READ).into_iter().map(|(_, statement)| statement);
    let listing = listing.filter(|statement| statement["Resource"] == "ConfigBucket.Arn");
    let conditions: Vec<&Value> = listing.map(|statement| &statement["Condition"]).collect();
    assert_eq!(conditions, [&json!({"StringLike": {"s3:prefix": "subscriptions/*"}})]);
}

#[test]
fn who_replays_writes_ledgers_and_sends_to_two_queues() {
    let ledgers = ["${DeadLetterBucket.Arn}/_replays/*"];
    assert!(ledgers[0].ends_with(&format!("/{REPLAYS_FOLDER}/*")));
    let queues = ["RetryQueue.Arn", "EventsQueue.Arn"];
    assert_allows(
        REPLAY,
        [
            each(["s3:PutObject"], &ledgers),
            each(["sqs:SendMessage", "sqs:GetQueueAttributes"], &queues),
            of_keys(["kms:Decrypt", "kms:GenerateDataKey"]),
        ],
    );
    // The policy of the retry queue denies sending to everyone else, so the descriptions must name
    // `OperatorArns`.
    let descriptions = [
        &properties(REPLAY)["Description"],
        &TEMPLATE["Outputs"]["ConsoleReplayPolicyArn"]["Description"],
    ];
    for description in descriptions {
        let description = description.as_str().expect("a text");
        assert!(description.contains("OperatorArns"), "{description}");
    }
}

#[test]
fn who_dismisses_writes_dismissals_only() {
    let dismissals = each(["s3:PutObject"], &["${DeadLetterBucket.Arn}/_dismissed/*"]);
    assert_allows(DISMISS, [dismissals, of_keys(["kms:GenerateDataKey"])]);
}

#[test]
fn who_purges_deletes_dead_letters_for_a_week_and_no_ledgers_and_dismissals() {
    // Ledgers and dismissals end in .ndjson. `s3:DeleteObjectVersion` would delete for good.
    assert_allows(PURGE, [each(["s3:DeleteObject"], &["${DeadLetterBucket.Arn}/*.json"])]);
}

#[test]
fn a_policy_for_people_uses_the_key_through_the_services_that_it_calls() {
    let services = BTreeMap::from([
        (READ, vec!["s3", "dynamodb"]),
        (REPLAY, vec!["s3", "sqs"]),
        (DISMISS, vec!["s3"]),
        (PURGE, vec![]),
    ]);
    for (policy, services) in services {
        let endpoint =
            |service: &&str| json!(format!("{service}.${{AWS::Region}}.${{AWS::URLSuffix}}"));
        let named: Vec<Value> = services.iter().map(endpoint).collect();
        let named = if let [single] = &named[..] { single.clone() } else { json!(named) };
        let expected = json!({"StringEquals": {"kms:ViaService": named}});
        let with_key = of_policy(policy).into_iter().filter(|(when, _)| when.is_some());
        let conditions: Vec<&Value> =
            with_key.map(|(_, statement)| &statement["Condition"]).collect();
        let count = if services.is_empty() { 0 } else { 2 };
        assert_eq!(conditions, vec![&expected; count], "{policy}");
    }
}

#[test]
fn only_metrics_are_allowed_without_a_resource_and_no_action_has_a_wildcard() {
    let all = ALL.into_iter().flat_map(allowed);
    let wide =
        all.filter(|(action, resource, _)| action.contains('*') || resource.starts_with('*'));
    let wide: Vec<Allowed> = wide.collect();
    assert_eq!(wide, [("cloudwatch:GetMetricData", "*", "always")]);
}

#[test]
fn each_policy_for_people_is_an_output_and_attached_to_nobody() {
    let mut found: Vec<&str> =
        resources("AWS::IAM::ManagedPolicy").into_iter().map(|(name, _)| name).collect();
    found.sort_unstable();
    assert_eq!(found, ALL);
    for name in ALL {
        // A name would need CAPABILITY_NAMED_IAM. A changed description creates another policy, so
        // the description has no variables.
        let members = properties(name).as_object().expect("a policy has properties");
        let members: Vec<&str> = members.keys().map(String::as_str).collect();
        assert_eq!(members, ["Description", "PolicyDocument"], "{name}");
        let description = properties(name)["Description"].as_str().expect("a text");
        assert!(!description.contains("${"), "{name}");
        assert_eq!(TEMPLATE["Outputs"][format!("{name}Arn")]["Value"], name);
    }
}
