//! The permissions of the functions' roles: everything that a function does, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{TEMPLATE, properties, read, resources, statement, statements, texts};

const DISPATCH: &str = "DispatchRole";
const DEADLETTER: &str = "DeadLetterRole";
const INGRESS: &str = "IngressRole";

/// The statements of a role, each with its template condition.
fn of_role(role: &str) -> Vec<(Option<&'static str>, &'static Value)> {
    let policies = properties(role)["Policies"].as_array().expect("a role has policies");
    policies.iter().flat_map(|policy| statements(&policy["PolicyDocument"])).collect()
}

/// The statement of a role with this id.
fn named(role: &str, id: &str) -> Option<(Option<&'static str>, &'static Value)> {
    of_role(role).into_iter().find(|(_, statement)| statement["Sid"] == id)
}

/// The permissions of a role: action, resource, and template condition.
fn allowed(role: &str) -> BTreeSet<(&'static str, &'static str, &'static str)> {
    let mut all = BTreeSet::new();
    let allowing = |(_, statement): &(_, &Value)| statement["Effect"] == "Allow";
    for (condition, statement) in of_role(role).into_iter().filter(allowing) {
        for action in texts(&statement["Action"]) {
            for resource in texts(&statement["Resource"]) {
                all.insert((action, resource, condition.unwrap_or("always")));
            }
        }
    }
    all
}

/// The resources on which a role always allows this action, in order.
fn always(role: &str, action: &str) -> Vec<&'static str> {
    let all = allowed(role).into_iter();
    all.filter(|(granted, _, when)| *granted == action && *when == "always")
        .map(|(_, on, _)| on)
        .collect()
}

/// The actions that a role allows under a condition, in order.
fn only_with(role: &str, condition: &str) -> Vec<(&'static str, &'static str)> {
    let all = allowed(role).into_iter().filter(|(.., when)| *when == condition);
    all.map(|(action, resource, _)| (action, resource)).collect()
}

fn assert_takes_messages(role: &str, queues: &[&str]) {
    for action in [
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility",
    ] {
        assert_eq!(always(role, action), queues, "{action}");
    }
}

#[test]
fn a_function_may_take_messages_from_the_queues_it_reads() {
    let dispatched = ["EventsQueue.Arn", "IsolationQueue.Arn", "RetryQueue.Arn", "SlowQueue.Arn"];
    assert_takes_messages(DISPATCH, &dispatched);
    assert_takes_messages(DEADLETTER, &["DeadLetterQueue.Arn"]);
}

#[test]
fn dispatch_may_send_to_each_queue_it_sends_to() {
    assert_eq!(
        always(DISPATCH, "sqs:SendMessage"),
        ["DeadLetterQueue.Arn", "IsolationQueue.Arn", "RetryQueue.Arn", "SlowQueue.Arn"]
    );
}

#[test]
fn deadletter_may_send_to_its_own_queue_and_to_the_last_resort() {
    let queues = ["DeadLetterQueue.Arn", "LastResortQueue.Arn"];
    assert_eq!(always(DEADLETTER, "sqs:SendMessage"), queues);
}

#[test]
fn no_queue_of_the_stack_is_a_sink_whatever_sinks_are_named() {
    let queues = resources("AWS::SQS::Queue").into_iter().map(|(name, _)| format!("{name}.Arn"));
    let queues: BTreeSet<String> = queues.collect();
    for role in [DISPATCH, DEADLETTER] {
        let (condition, denied) = named(role, "OwnQueuesAreNoSinks").expect("a statement");
        assert_eq!((condition, &denied["Effect"]), (None, &json!("Deny")), "{role}");
        assert_eq!(texts(&denied["Action"]), ["sqs:SendMessage"], "{role}");
        // `adapters::sinks` refuses the queues that the function sends to for other reasons.
        let denied = texts(&denied["Resource"]).into_iter();
        let known: BTreeSet<String> =
            denied.chain(always(role, "sqs:SendMessage")).map(str::to_owned).collect();
        assert_eq!(known, queues, "{role}");
    }
}

#[test]
fn dispatch_may_read_the_subscriptions_and_their_earlier_versions() {
    const SUBSCRIPTIONS: &str = "${ConfigBucket.Arn}/subscriptions/*";
    assert_eq!(always(DISPATCH, "s3:GetObjectVersion"), [SUBSCRIPTIONS]);
    assert!(always(DISPATCH, "s3:GetObject").contains(&SUBSCRIPTIONS));
}

#[test]
fn dispatch_may_list_the_subscriptions_and_nothing_else() {
    let conditions = |action: &str| -> Vec<&Value> {
        let statements = of_role(DISPATCH).into_iter().map(|(_, statement)| statement);
        let listing = statements.filter(|statement| texts(&statement["Action"]).contains(&action));
        listing
            .inspect(|statement| assert_eq!(statement["Resource"], "ConfigBucket.Arn", "{action}"))
            .map(|statement| &statement["Condition"])
            .collect()
    };
    // The prefix may be the key of an object, to list its versions, or the folder itself.
    let subscriptions = json!({"StringLike": {"s3:prefix": "subscriptions/*"}});
    assert_eq!(conditions("s3:ListBucket"), [&subscriptions]);
    assert_eq!(conditions("s3:ListBucketVersions"), [&subscriptions]);
}

#[test]
fn no_function_may_write_ledgers_of_replays_or_dismissals() {
    // A separate statement allows deadletter to record ends beside the ledgers. Ledgers and
    // dismissals do not end in .json, so the bucket denies them.
    for (role, files) in [(DISPATCH, "*"), (DEADLETTER, "*.json")] {
        let found = named(role, "LeaveReplaysAlone");
        let (condition, denied) = found.unwrap_or_else(|| panic!("{role} may write ledgers"));
        assert_eq!((condition, &denied["Effect"]), (None, &json!("Deny")));
        assert_eq!(texts(&denied["Action"]), ["s3:PutObject"]);
        let below = |files: &str| format!("${{DeadLetterBucket.Arn}}/{files}");
        let resources = [below(&format!("_replays/{files}")), below("_dismissed/*")];
        assert_eq!(denied["Resource"], json!(resources), "{role}");
    }
    let policies = resources("AWS::S3::BucketPolicy");
    let policy = policies.iter().find(|(_, properties)| properties["Bucket"] == "DeadLetterBucket");
    let (_, policy) = policy.expect("the bucket has a policy");
    let expected = json!({
        "Sid": "FunctionsWriteLettersAndEnds", "Effect": "Deny", "Principal": "*", "Action": "s3:PutObject",
        "NotResource": [
            "${DeadLetterBucket.Arn}/*.json", "${DeadLetterBucket.Arn}/*_replays/*/ends/*.ndjson"
        ],
        "Condition": {"ArnEquals": {"aws:PrincipalArn": ["DispatchRole.Arn", "DeadLetterRole.Arn"]}}
    });
    let found = statement(&policy["PolicyDocument"], "FunctionsWriteLettersAndEnds");
    assert_eq!(found, Some((None, &expected)));
}

#[test]
fn dispatch_may_change_items_of_the_table_but_not_remove_or_scan_them_or_write_subscriptions() {
    for action in ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"] {
        assert_eq!(always(DISPATCH, action), ["Table.Arn"]);
    }
    for action in ["dynamodb:Scan", "dynamodb:DeleteItem", "dynamodb:PutItem"] {
        assert!(always(DISPATCH, action).is_empty(), "{action}");
    }
    assert_eq!(always(DISPATCH, "s3:PutObject"), ["${DeadLetterBucket.Arn}/*.json"]);
}

#[test]
fn the_table_is_kept_backed_up_and_encrypted_with_the_key_of_the_stack() {
    let tables = resources("AWS::DynamoDB::Table");
    let [(name, table)] = &tables[..] else { panic!("one table: {tables:?}") };
    for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
        assert_eq!(TEMPLATE["Resources"][name][policy], "Retain");
    }
    assert_eq!(*name, "Table");
    assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
    let expires = json!({"AttributeName": adapters::table::EXPIRES, "Enabled": true});
    assert_eq!(table["TimeToLiveSpecification"], expires);
    let recovery = &table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"];
    assert_eq!(recovery, &json!(true));
    let keys = [adapters::table::PARTITION, adapters::table::SORT];
    let found: Vec<&Value> =
        (0..2).map(|index| &table["KeySchema"][index]["AttributeName"]).collect();
    assert_eq!(found, keys);
    assert_eq!(table["SSESpecification"][1]["KMSMasterKeyId"], "KmsKeyArn");
}

#[test]
fn deadletter_may_store_dead_letters_and_read_none() {
    const ENDS: &str = "_replays/*/ends/*.ndjson";
    let (_, ends) = named(DEADLETTER, "RecordEndsOfReplays").expect("a statement");
    let resources = json!([format!("${{DeadLetterBucket.Arn}}/{ENDS}")]);
    assert_eq!((&ends["Effect"], &ends["Resource"]), (&json!("Allow"), &resources));
    let (_, letters) = named(DEADLETTER, "StoreDeadLetters").expect("a statement");
    assert_eq!(texts(&letters["Resource"]), ["${DeadLetterBucket.Arn}/*.json"]);
    for (action, ..) in allowed(DEADLETTER) {
        assert!(!action.starts_with("s3:") || action.starts_with("s3:PutObject"), "{action}");
    }
}

#[test]
fn both_functions_may_use_further_sinks_and_a_key_where_they_are_named() {
    for role in [DISPATCH, DEADLETTER] {
        let sinks = [("s3:PutObject", "ExtraSinkArns"), ("sqs:SendMessage", "ExtraSinkArns")];
        assert_eq!(only_with(role, "HasExtraSinks"), sinks, "{role}");
        let key = [("kms:Decrypt", "KmsKeyArn"), ("kms:GenerateDataKey", "KmsKeyArn")];
        assert_eq!(only_with(role, "HasKmsKey"), key, "{role}");
        // While the key changes, the old one and the new one are used.
        let second =
            [("kms:Decrypt", "PreviousKmsKeyArn"), ("kms:GenerateDataKey", "PreviousKmsKeyArn")];
        assert_eq!(only_with(role, "HasPreviousKmsKey"), second, "{role}");
    }
}

#[test]
fn who_sends_to_one_queue_or_reads_one_bucket_uses_the_key_through_that_service_only() {
    let is_through = |use_key: &Value, services: &[&str]| {
        let endpoint =
            |service: &&str| json!(format!("{service}.${{AWS::Region}}.${{AWS::URLSuffix}}"));
        let named: Vec<Value> = services.iter().map(endpoint).collect();
        let services = if let [single] = &named[..] { single.clone() } else { json!(named) };
        use_key["Condition"] == json!({"StringEquals": {"kms:ViaService": services}})
    };
    let (_, use_key) = named(INGRESS, "UseKey").expect("a statement");
    assert!(is_through(use_key, &["sqs"]), "{INGRESS}");
    // A statement with a template condition is a list of three elements.
    let template = read("infra/github.yaml");
    let policy = &template["Resources"]["ApplyRole"]["Properties"]["Policies"][0]["PolicyDocument"];
    let statements = policy["Statement"].as_array().expect("a list");
    let use_key =
        statements.iter().find(|statement| statement[1]["Sid"] == "UseKey").expect("a statement");
    assert!(is_through(&use_key[1], &["s3", "dynamodb"]));
}

#[test]
fn the_ingress_may_publish_and_read_its_keys_and_nothing_else() {
    const ANY_KEY: &str = "arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*";
    let expected = [
        ("kms:Decrypt", ANY_KEY, "HasPublisherKeyArns"),
        ("kms:Decrypt", "KmsKeyArn", "HasKmsKey"),
        ("kms:Decrypt", "PreviousKmsKeyArn", "HasPreviousKmsKey"),
        ("kms:GenerateDataKey", "KmsKeyArn", "HasKmsKey"),
        ("kms:GenerateDataKey", "PreviousKmsKeyArn", "HasPreviousKmsKey"),
        ("logs:CreateLogStream", "IngressLogGroup.Arn", "always"),
        ("logs:PutLogEvents", "IngressLogGroup.Arn", "always"),
        ("secretsmanager:GetSecretValue", "PublisherKeyArns", "HasPublisherKeyArns"),
        ("sqs:SendMessage", "EventsQueue.Arn", "always"),
        ("ssm:GetParameter", "PublisherKeyArns", "HasPublisherKeyArns"),
        ("xray:PutTelemetryRecords", "*", "IsTraced"),
        ("xray:PutTraceSegments", "*", "IsTraced"),
    ];
    assert_eq!(allowed(INGRESS), BTreeSet::from(expected));
    for (id, context) in [
        ("DecryptSecrets", "kms:EncryptionContext:SecretARN"),
        ("DecryptParameters", "kms:EncryptionContext:PARAMETER_ARN"),
    ] {
        let (_, decrypting) = named(INGRESS, id).expect("a statement");
        assert_eq!(decrypting["Condition"]["StringLike"], json!({context: "PublisherKeyArns"}));
        assert!(decrypting["Condition"]["StringEquals"]["kms:ViaService"].is_string(), "{id}");
    }
}

#[test]
fn dispatch_alone_may_read_the_secrets_that_are_named() {
    let read = only_with(DISPATCH, "HasSecrets");
    for action in ["secretsmanager:GetSecretValue", "ssm:GetParameter"] {
        assert!(read.contains(&(action, "SecretArns")), "{action}");
    }
    assert_eq!(only_with(DEADLETTER, "HasSecrets"), []);
    assert_eq!(only_with(INGRESS, "HasSecrets"), []);
}

#[test]
fn dispatch_alone_may_assume_the_role_that_signs_requests() {
    assert_eq!(only_with(DISPATCH, "HasInvokeRole"), [("sts:AssumeRole", "InvokeRoleArn")]);
    for role in [DISPATCH, DEADLETTER, INGRESS] {
        let all = allowed(role);
        let sts = all.iter().filter(|(action, ..)| action.starts_with("sts:")).count();
        assert_eq!(sts, if role == DISPATCH { 2 } else { 0 }, "{role}");
    }
}

#[test]
fn dispatch_gets_tokens_for_the_audiences_that_are_named_and_for_no_other() {
    let allowed = only_with(DISPATCH, "HasIdentityAudiences");
    assert_eq!(allowed, [("sts:GetWebIdentityToken", "*")]);
    let (_, statement) = named(DISPATCH, "ShowIdentity").expect("a statement");
    let condition = json!({
        "ForAllValues:StringEquals": {"sts:IdentityTokenAudience": "IdentityAudiences"},
        "Null": {"sts:IdentityTokenAudience": "false"}
    });
    assert_eq!(statement["Condition"], condition);
}

#[test]
fn dispatch_alone_may_be_in_a_vpc_and_its_code_may_not_touch_the_network() {
    let allowed = only_with(DISPATCH, "HasSubnets");
    assert!(allowed.iter().all(|(action, on)| action.starts_with("ec2:") && *on == "*"));
    assert_eq!(allowed.len(), 6, "{allowed:?}");
    for role in [DEADLETTER, INGRESS] {
        assert_eq!(only_with(role, "HasSubnets"), [], "{role}");
    }
    let (_, denied) = named(DISPATCH, "LeaveNetworkAlone").expect("a statement");
    assert_eq!((&denied["Effect"], &denied["Action"]), (&json!("Deny"), &json!("ec2:*")));
    // The condition matches a function of any name, because CloudFormation shortens the name if the
    // name of the stack is long.
    assert_eq!(denied["Condition"], json!({"Null": {"lambda:SourceFunctionArn": "false"}}));
}

#[test]
fn both_functions_may_write_their_own_log() {
    for (role, log) in [(DISPATCH, "DispatchLogGroup.Arn"), (DEADLETTER, "DeadLetterLogGroup.Arn")]
    {
        for action in ["logs:CreateLogStream", "logs:PutLogEvents"] {
            assert_eq!(always(role, action), [log], "{role} {action}");
        }
    }
}
