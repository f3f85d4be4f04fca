//! The permissions of the functions on AWS. The emulated AWS enforces the roles of the template and
//! the policies of its queues and buckets. It does so for the functions of all tests and for the
//! calls of this file.
//!
//! These tests are separate because functions never see a refused call. Lambda receives messages
//! and writes logs for the function, and the emulated Lambda needs no permission for that. Only the
//! rules about the template cover those grants (`tests/tests/rules/template`).

use std::collections::BTreeSet;

use delivery::delivery::health::news::NEWS;
use serde_json::{Value, json};

use super::credentials::of_aws::TOKEN_CALL;
use super::stack::{Stack, script};
use super::{ARRIVAL_LIMIT, Deployment, event, now, on_deployment};

/// The roles of the functions, by their names in the template.
const DISPATCH: &str = "DispatchRole";
const DEADLETTER: &str = "DeadLetterRole";
const INGRESS: &str = "IngressRole";
const FUNCTIONS: [&str; 3] = [DISPATCH, DEADLETTER, INGRESS];
/// A role that `OperatorArns` names, and a role that it does not name. Their own policies allow
/// everything.
const OPERATOR: &str = "operators-of-lastmile";
const STRANGER: &str = "strangers";

/// The stack of all tests, and a stack whose `ExtraSinkArns` cover its buckets. The second name is
/// too long to appear whole in a function's name.
const STACK: &str = "lastmile";
const WITH_SINKS: &str = "deployed-with-a-name-that-no-function-of-lambda-can-have";

/// A call: the role, the operation and the parameters, in the format of `tests/emulated/calls.py`.
type Call = (&'static str, &'static str, Value);

/// The error codes of calls that no policy allows or that a policy denies. They depend on the
/// service.
const DENIED: [&str; 3] = ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"];

/// Makes these calls with the roles of a stack. Returns the error code of each call that failed.
async fn error_codes(stack: &Stack, of_stack: &'static str, calls: &[Call]) -> Vec<Option<String>> {
    let port = stack.endpoint.rsplit(':').next().expect("the endpoint has a port").to_owned();
    let calls = json!(calls).to_string();
    let run = tokio::task::spawn_blocking(move || script("calls.sh", &[&port, &calls, of_stack]));
    serde_json::from_str(&run.await.expect("calls.sh runs")).expect("calls.sh prints JSON")
}

/// Fails unless all of these calls are denied, or unless all are allowed.
async fn assert_denied(stack: &Stack, is_expected: bool, calls: Vec<Call>) {
    assert_denied_in(stack, STACK, is_expected, calls).await;
}

/// Makes these calls with the roles of another stack, and fails as [`assert_denied`].
async fn assert_denied_in(
    stack: &Stack,
    of_stack: &'static str,
    is_expected: bool,
    calls: Vec<Call>,
) {
    let codes = error_codes(stack, of_stack, &calls).await;
    assert_eq!(codes.len(), calls.len());
    let is_denied =
        |code: &Option<String>| code.as_deref().is_some_and(|code| DENIED.contains(&code));
    let wrong: Vec<_> =
        calls.iter().zip(&codes).filter(|(_, code)| is_denied(code) != is_expected).collect();
    assert!(wrong.is_empty(), "denied should be {is_expected}: {wrong:#?}");
}

fn letter(stack: &Stack, key: &str) -> Value {
    json!({"Bucket": stack.dead_letter_bucket(), "Key": key})
}

fn new_letter(stack: &Stack, key: &str) -> Value {
    json!({"Bucket": stack.dead_letter_bucket(), "Key": key, "IfNoneMatch": "*"})
}

fn config(stack: &Stack, key: &str) -> Value {
    json!({"Bucket": stack.output("ConfigBucketName"), "Key": key})
}

fn listing(stack: &Stack, prefix: &str) -> Value {
    json!({"Bucket": stack.output("ConfigBucketName"), "Prefix": prefix})
}

fn queue(stack: &Stack, name: &str) -> Value {
    json!({"QueueUrl": stack.output(&format!("{name}Url"))})
}

/// Sends nothing: SQS checks the permission before it refuses a batch without entries.
fn no_messages(stack: &Stack, name: &str) -> Value {
    json!({"QueueUrl": stack.output(&format!("{name}Url")), "Entries": []})
}

/// Deletes nothing, because the receipt does not exist.
fn no_receipt(stack: &Stack, name: &str) -> Value {
    json!({"QueueUrl": stack.output(&format!("{name}Url")), "ReceiptHandle": "none"})
}

/// The queues from which each function receives messages.
const TAKEN: [(&str, &[&str]); 3] = [
    (DISPATCH, &["EventsQueue", "RetryQueue", "SlowQueue", "IsolationQueue"]),
    (DEADLETTER, &["DeadLetterQueue"]),
    (INGRESS, &[]),
];
const SENT_TO: [(&str, &[&str]); 3] = [
    (DISPATCH, &["RetryQueue", "SlowQueue", "IsolationQueue", "DeadLetterQueue"]),
    (DEADLETTER, &["DeadLetterQueue", "LastResortQueue"]),
    (INGRESS, &["EventsQueue"]),
];
const QUEUES: [&str; 6] = [
    "EventsQueue",
    "RetryQueue",
    "SlowQueue",
    "IsolationQueue",
    "DeadLetterQueue",
    "LastResortQueue",
];

#[test]
fn a_function_takes_messages_from_its_queues_and_sends_to_those_it_needs() {
    on_deployment(|Deployment { stack, .. }| async move {
        let (mut allowed, mut denied) = (Vec::new(), Vec::new());
        for ((role, taken), (_, sent_to)) in TAKEN.into_iter().zip(SENT_TO) {
            for name in QUEUES {
                let to = if taken.contains(&name) { &mut allowed } else { &mut denied };
                to.push((role, "sqs.get_queue_attributes", queue(stack, name)));
                to.push((role, "sqs.delete_message", no_receipt(stack, name)));
                let mut hide = no_receipt(stack, name);
                hide["VisibilityTimeout"] = json!(1);
                to.push((role, "sqs.change_message_visibility", hide));
                if !taken.contains(&name) {
                    denied.push((role, "sqs.receive_message", queue(stack, name)));
                }
                let to = if sent_to.contains(&name) { &mut allowed } else { &mut denied };
                to.push((role, "sqs.send_message_batch", no_messages(stack, name)));
                denied.push((role, "sqs.purge_queue", queue(stack, name)));
            }
        }
        let (foreign, _) = stack.new_queue("of-somebody-else").await;
        for role in FUNCTIONS {
            denied.push((role, "sqs.receive_message", json!({"QueueUrl": foreign})));
            denied.push((
                role,
                "sqs.send_message",
                json!({"QueueUrl": foreign, "MessageBody": "x"}),
            ));
        }
        assert_denied(stack, false, allowed).await;
        assert_denied(stack, true, denied).await;
    });
}

#[test]
fn only_functions_and_operators_send_to_internal_queues_and_take_messages_and_everybody_uses_tls() {
    on_deployment(|Deployment { stack, .. }| async move {
        let internal = QUEUES.into_iter().filter(|name| *name != "EventsQueue");
        let by = |role: &'static str| {
            internal
                .clone()
                .map(move |name| (role, "sqs.send_message_batch", no_messages(stack, name)))
        };
        assert_denied(stack, false, by(OPERATOR).collect()).await;
        assert_denied(stack, true, by(STRANGER).collect()).await;
        let delete = |role: &'static str| {
            QUEUES.map(|name| (role, "sqs.delete_message", no_receipt(stack, name))).to_vec()
        };
        assert_denied(stack, false, delete(OPERATOR)).await;
        assert_denied(stack, true, delete(STRANGER)).await;
        let in_clear = |mut call: Call| {
            call.2["InClear"] = json!(true);
            call
        };
        let key = "permissions/clear.json";
        let reads = [
            (OPERATOR, "s3.get_object", letter(stack, key)),
            (OPERATOR, "s3.get_object", config(stack, "subscriptions/_settings.json")),
            (DISPATCH, "s3.get_object", config(stack, "subscriptions/_settings.json")),
        ];
        let attributes =
            QUEUES.map(|name| (OPERATOR, "sqs.get_queue_attributes", queue(stack, name)));
        assert_denied(stack, true, reads.into_iter().chain(attributes).map(in_clear).collect())
            .await;
    });
}

/// Returns a call of this operation on the table.
fn of_table(stack: &Stack, operation: &str) -> (&'static str, Value) {
    let table = stack.output("TableName");
    let key = json!({"pk": {"S": "permissions"}, "sk": {"S": "a"}});
    match operation {
        "get_item" => ("dynamodb.get_item", json!({"TableName": table, "Key": key})),
        "update_item" => ("dynamodb.update_item", json!({"TableName": table, "Key": key})),
        "delete_item" => ("dynamodb.delete_item", json!({"TableName": table, "Key": key})),
        "scan" => ("dynamodb.scan", json!({"TableName": table})),
        _ => {
            let query = json!({
                "TableName": table,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": "permissions"}},
            });
            ("dynamodb.query", query)
        }
    }
}

#[test]
fn dispatch_reads_subscriptions_changes_items_of_the_table_and_lists_nothing_else() {
    on_deployment(|Deployment { stack, .. }| async move {
        const TOPIC: &str = "subscriptions/permissions/orders.json";
        let subscriptions = || config(stack, TOPIC);
        let versions = listing(stack, TOPIC);
        let version = |key: &str| {
            let mut of_version = config(stack, key);
            of_version["VersionId"] = json!("none");
            of_version
        };
        let missing = vec![(DISPATCH, "s3.get_object", subscriptions())];
        let codes = error_codes(stack, STACK, &missing).await;
        assert!(codes.iter().all(|code| code.as_deref() == Some("NoSuchKey")), "{codes:?}");
        let calls_of_table =
            || ["get_item", "update_item", "query"].map(|operation| of_table(stack, operation));
        let allowed = calls_of_table().map(|(operation, call)| (DISPATCH, operation, call));
        let subscriptions_only = vec![
            (DISPATCH, "s3.get_object", subscriptions()),
            (DISPATCH, "s3.get_object", config(stack, "subscriptions/_settings.json")),
            (DISPATCH, "s3.list_objects_v2", listing(stack, "subscriptions/")),
            (DISPATCH, "s3.list_object_versions", versions.clone()),
            (DISPATCH, "s3.get_object", version(TOPIC)),
        ];
        let allowed = subscriptions_only.into_iter().chain(allowed).collect();
        assert_denied(stack, false, allowed).await;
        let mut denied = vec![
            (DISPATCH, "s3.put_object", subscriptions()),
            (DISPATCH, "s3.put_object", config(stack, "subscriptions/_settings.json")),
            (DISPATCH, "s3.delete_object", subscriptions()),
            (DISPATCH, "s3.get_object", config(stack, "other.json")),
            (DISPATCH, "s3.put_object", config(stack, "other.json")),
            (DISPATCH, "s3.list_objects_v2", json!({"Bucket": stack.output("ConfigBucketName")})),
            (DISPATCH, "s3.list_object_versions", listing(stack, "")),
        ];
        for operation in ["scan", "delete_item"] {
            let (operation, call) = of_table(stack, operation);
            denied.push((DISPATCH, operation, call));
        }
        for folder in ["", "s", "_", "subscriptions"] {
            denied.push((DISPATCH, "s3.list_objects_v2", listing(stack, folder)));
        }
        for role in [DEADLETTER, INGRESS] {
            denied.extend([
                (role, "s3.get_object", subscriptions()),
                (role, "s3.put_object", subscriptions()),
                (role, "s3.list_object_versions", versions.clone()),
            ]);
            denied.extend(calls_of_table().map(|(operation, call)| (role, operation, call)));
        }
        assert_denied(stack, true, denied).await;
    });
}

#[test]
fn a_function_adds_dead_letters_and_neither_reads_nor_changes_what_is_there() {
    on_deployment(|Deployment { stack, .. }| async move {
        for role in [DISPATCH, DEADLETTER] {
            let key = &format!("permissions/{role}/_replays/2026/11/20/7/1.json");
            let bucket = json!({"Bucket": stack.dead_letter_bucket()});
            let first = vec![(role, "s3.put_object", new_letter(stack, key))];
            assert_denied(stack, false, first).await;
            let denied = [
                (role, "s3.put_object", letter(stack, key)),
                (role, "s3.put_object", letter(stack, "permissions/a/b/2026/11/20/7/1.json")),
                (role, "s3.delete_object", letter(stack, key)),
                (role, "s3.get_object", letter(stack, key)),
                (role, "s3.list_objects_v2", bucket.clone()),
                (role, "s3.get_bucket_policy", bucket.clone()),
                (role, "s3.delete_bucket_policy", bucket),
                (role, "s3.put_object", new_letter(stack, "permissions/a/b/2026/11/20/7/1.txt")),
                (role, "s3.put_object", new_letter(stack, "_replays/job/plan.ndjson")),
                (role, "s3.put_object", new_letter(stack, "_replays/job/ends/1.json")),
                (role, "s3.put_object", letter(stack, "_replays/job/1.ndjson")),
                (role, "s3.put_object", new_letter(stack, "_replays/job/1.ndjson")),
                (role, "s3.put_object", new_letter(stack, "_replays/job/done.ndjson")),
                (role, "s3.put_object", new_letter(stack, "_replays/job/ends.ndjson")),
                (role, "s3.put_object", new_letter(stack, "_dismissed/1.ndjson")),
                (role, "s3.put_object", new_letter(stack, "_dismissed/1.json")),
                (role, "s3.put_object", letter(stack, "_replays/job/ends/1.ndjson")),
            ];
            assert_denied(stack, true, denied.to_vec()).await;
            // `deadletter` records the end of a replay once, and `dispatch` sends it to
            // `deadletter`.
            let end = new_letter(stack, "_replays/job/ends/1.ndjson");
            assert_denied(stack, role == DISPATCH, vec![(role, "s3.put_object", end)]).await;
        }
        let key = "permissions/ingress/b/2026/11/20/7/1.json";
        let denied = [
            (INGRESS, "s3.put_object", new_letter(stack, key)),
            (INGRESS, "s3.put_object", new_letter(stack, "_replays/job/ends/1.ndjson")),
            (INGRESS, "s3.get_object", letter(stack, key)),
            (INGRESS, "s3.delete_object", letter(stack, key)),
            (INGRESS, "s3.list_objects_v2", json!({"Bucket": stack.dead_letter_bucket()})),
        ];
        assert_denied(stack, true, denied.to_vec()).await;
    });
}

#[test]
fn where_sinks_cover_the_bucket_of_dead_letters_its_policy_keeps_ledgers_and_what_was_written() {
    on_deployment(|Deployment { stack, .. }| async move {
        let sinks = format!("ExtraSinkArns=arn:aws:s3:::{}*", &WITH_SINKS[..20]);
        let second = stack.deploy_second(WITH_SINKS, &[&sinks, "Ingress=iam", KEYS]).await;
        let bucket = second.output("DeadLetterBucketName");
        assert!(bucket.starts_with(&WITH_SINKS[..20]), "{bucket}");
        let put = |role, key: &str, is_new: bool| {
            let mut put = json!({"Bucket": bucket, "Key": key});
            if is_new {
                put["IfNoneMatch"] = json!("*");
            }
            (role, "s3.put_object", put)
        };
        for role in [DISPATCH, DEADLETTER] {
            let letter = format!("{role}/a/b/2026/11/20/7/1.json");
            // Only the sinks allow this write, so they do cover the bucket.
            let end = put(role, &format!("of-{role}/_replays/job/ends/1.ndjson"), true);
            let allowed = vec![put(role, &letter, true), end];
            assert_denied_in(stack, WITH_SINKS, false, allowed).await;
            let mut denied = vec![
                put(role, &letter, false),
                put(role, &format!("{role}/a/b/2026/11/20/7/2.json"), false),
                put(role, &format!("{role}/a/b/2026/11/20/7/1.txt"), true),
                put(role, &format!("of-{role}/_replays/job/1.ndjson"), true),
            ];
            for ledger in ["plan", "1", "done", "ends"] {
                let key = format!("_replays/job/{ledger}.ndjson");
                denied.extend([put(role, &key, true), put(role, &key, false)]);
            }
            for key in ["_replays/job/ends/1.json", "_dismissed/1.ndjson", "_dismissed/1.json"] {
                denied.push(put(role, key, true));
            }
            denied.push(put(role, "_replays/job/ends/1.ndjson", false));
            assert_denied_in(stack, WITH_SINKS, true, denied).await;
            let end = put(role, &format!("_replays/{role}/ends/1.ndjson"), true);
            assert_denied_in(stack, WITH_SINKS, role == DISPATCH, vec![end]).await;
        }
        network_is_for_lambda_alone(stack).await;
        keys_of_publishers_are_for_the_ingress_alone(stack).await;
    });
}

/// Keys of publishers for this stack.
const KEYS: &str = "PublisherKeyArns=arn:aws:secretsmanager:us-east-1:000000000000:secret:of-publishers-??????,\
     arn:aws:ssm:us-east-1:000000000000:parameter/of-publishers";

async fn keys_of_publishers_are_for_the_ingress_alone(stack: &Stack) {
    let secret = json!({"Name": "of-publishers", "SecretString": "x"});
    let parameter = json!({"Name": "/of-publishers", "Value": "x", "Type": "SecureString"});
    let made = [
        (OPERATOR, "secretsmanager.create_secret", secret),
        (OPERATOR, "ssm.put_parameter", parameter),
    ];
    assert_denied(stack, false, made.to_vec()).await;
    for role in [DISPATCH, DEADLETTER, INGRESS] {
        let read = vec![
            (role, "secretsmanager.get_secret_value", json!({"SecretId": "of-publishers"})),
            (role, "ssm.get_parameter", json!({"Name": "/of-publishers"})),
        ];
        assert_denied_in(stack, WITH_SINKS, role != INGRESS, read).await;
    }
}

/// This stack is in a VPC. Lambda may create network interfaces with the role of dispatch, but the
/// code of the function may not.
async fn network_is_for_lambda_alone(stack: &Stack) {
    let subnets = |by_code: bool| {
        let parameters =
            if by_code { json!({"InFunction": "DispatchFunction"}) } else { json!({}) };
        vec![(DISPATCH, "ec2.describe_subnets", parameters)]
    };
    assert_denied_in(stack, WITH_SINKS, false, subnets(false)).await;
    assert_denied_in(stack, WITH_SINKS, true, subnets(true)).await;
}

#[test]
fn dispatch_alone_gets_tokens_and_those_for_a_named_audience_and_no_function_takes_another_role() {
    on_deployment(|Deployment { stack, .. }| async move {
        let token = |role, audience: &str| {
            let parameters = json!({"Audience": [audience], "SigningAlgorithm": "RS256"});
            (role, "sts.get_web_identity_token", parameters)
        };
        let named = "https://asked.example.com/";
        let take = |role| {
            let arn = format!("arn:aws:iam::000000000000:role/{OPERATOR}");
            (role, "sts.assume_role", json!({"RoleArn": arn, "RoleSessionName": "permissions"}))
        };
        // The first call creates the role, which trusts everybody.
        let allowed = vec![
            (OPERATOR, "sts.get_caller_identity", json!({})),
            take(STRANGER),
            token(DISPATCH, named),
        ];
        assert_denied(stack, false, allowed).await;
        let mut denied = FUNCTIONS.map(take).to_vec();
        denied.extend([DEADLETTER, INGRESS].map(|role| token(role, named)));
        denied.push(token(DISPATCH, "https://foreign.example.com/"));
        assert_denied(stack, true, denied).await;
    });
}

#[test]
fn nobody_replaces_a_dead_letter_and_operators_keep_ledgers_and_purge() {
    on_deployment(|Deployment { stack, .. }| async move {
        let key = "permissions/operators/c/2026/11/20/7/1.json";
        let mut copy = letter(stack, key);
        copy["CopySource"] = letter(stack, key);
        let ledger = || letter(stack, "_replays/permissions/1.ndjson");
        let dismissals = || letter(stack, "_dismissed/permissions.txt");
        assert_denied(
            stack,
            false,
            vec![
                (OPERATOR, "s3.put_object", new_letter(stack, key)),
                (OPERATOR, "s3.get_object", letter(stack, key)),
                (OPERATOR, "s3.put_object", ledger()),
                (OPERATOR, "s3.put_object", ledger()),
                (OPERATOR, "s3.put_object", dismissals()),
                (OPERATOR, "s3.put_object", dismissals()),
                (OPERATOR, "s3.create_multipart_upload", letter(stack, key)),
            ],
        )
        .await;
        let denied = [
            (OPERATOR, "s3.put_object", letter(stack, key)),
            (OPERATOR, "s3.copy_object", copy),
            (OPERATOR, "s3.complete_multipart_upload", completed(letter(stack, key))),
        ];
        assert_denied(stack, true, denied.to_vec()).await;
        let allowed = [
            (OPERATOR, "s3.complete_multipart_upload", completed(new_letter(stack, key))),
            (OPERATOR, "s3.delete_object", letter(stack, key)),
        ];
        assert_denied(stack, false, allowed.to_vec()).await;
    });
}

/// The completion of a multipart upload that was never begun.
fn completed(mut letter: Value) -> Value {
    letter["UploadId"] = json!("none");
    letter
}

#[test]
fn dispatch_reads_the_secrets_that_are_named_for_it_and_no_others() {
    on_deployment(|Deployment { stack, .. }| async move {
        let secret = |name: &str| json!({"Name": name, "SecretString": "x"});
        let parameter = |name: &str| json!({"Name": name, "Value": "x", "Type": "SecureString"});
        const NAMES: [&str; 2] = ["named", "other"];
        let made = NAMES.iter().flat_map(|name| {
            [
                (OPERATOR, "secretsmanager.create_secret", secret(name)),
                (OPERATOR, "ssm.put_parameter", parameter(&format!("/{name}"))),
            ]
        });
        assert_denied(stack, false, made.collect()).await;
        let (mut allowed, mut denied) = (Vec::new(), Vec::new());
        for (role, named) in [(DISPATCH, Some("named")), (DEADLETTER, None), (INGRESS, None)] {
            for name in NAMES {
                let to = if named == Some(name) { &mut allowed } else { &mut denied };
                to.push((role, "secretsmanager.get_secret_value", json!({"SecretId": name})));
                to.push((role, "ssm.get_parameter", json!({"Name": format!("/{name}")})));
            }
            for listing in
                ["secretsmanager.list_secrets", "iam.list_roles", "lambda.list_functions"]
            {
                denied.push((role, listing, json!({})));
            }
        }
        assert_denied(stack, false, allowed).await;
        assert_denied(stack, true, denied).await;
    });
}

#[test]
fn dispatch_alone_reads_and_changes_items_of_the_table_and_removes_none() {
    on_deployment(|Deployment { stack, .. }| async move {
        let table = stack.output("TableName");
        let item = |partition: &str| {
            let key = json!({"pk": {"S": partition}, "sk": {"S": "of-permissions"}});
            json!({"TableName": table, "Key": key})
        };
        let query = |partition: &str| {
            let values = json!({":pk": {"S": partition}});
            json!({"TableName": table, "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": values})
        };
        // The partitions of a namespace (destinations, consents and limits) and of news.
        let partitions = ["permissions", NEWS];
        let items = |role| {
            partitions.into_iter().flat_map(move |partition| {
                let calls = ["dynamodb.get_item", "dynamodb.update_item"];
                calls.map(|call| (role, call, item(partition)))
            })
        };
        let mut allowed: Vec<Call> = items(DISPATCH).collect();
        allowed.push((DISPATCH, "dynamodb.query", query(NEWS)));
        assert_denied(stack, false, allowed).await;
        let whole = || json!({"TableName": table});
        let mut denied = vec![
            (DISPATCH, "dynamodb.delete_item", item("permissions")),
            (DISPATCH, "dynamodb.scan", whole()),
            (DISPATCH, "dynamodb.delete_table", whole()),
            (DISPATCH, "dynamodb.put_item", put(table)),
        ];
        for role in [DEADLETTER, INGRESS] {
            denied.extend(items(role));
            denied.push((role, "dynamodb.query", query(NEWS)));
        }
        assert_denied(stack, true, denied).await;
    });
}

/// Writes a whole item.
fn put(table: &str) -> Value {
    json!({"TableName": table, "Item": {"pk": {"S": "permissions"}, "sk": {"S": "of-permissions"}}})
}

/// Checks that no function made a call that its role does not allow, in this test or an earlier
/// one. Every test ends with this check.
pub(crate) fn assert_no_call_was_denied(stack: &Stack) {
    // One test requests a token for an audience that the template does not allow.
    let is_wrong = |call: &Value| call["allowed"] == false && call["action"] != TOKEN_CALL;
    let denied: Vec<Value> = stack.function_calls().into_iter().filter(is_wrong).collect();
    assert!(denied.is_empty(), "{denied:#?}");
}

#[test]
fn each_function_makes_the_calls_that_deliveries_need() {
    on_deployment(|deployment| async move {
        // One event is delivered, one waits, and one becomes a dead letter.
        for (topic, id) in
            [("shop/orders", "allowed"), ("shop/retried", "allowed"), ("shop/refused", "allowed")]
        {
            deployment.stack.publish(topic, &event(id)).await;
        }
        let expected = [
            ("Dispatch", "s3:GetObject"),
            ("Dispatch", "sqs:SendMessage"),
            ("Dispatch", "dynamodb:Query"),
            ("DeadLetter", "s3:PutObject"),
        ];
        let expected = expected.map(|(by, action)| (by.to_owned(), action.to_owned()));
        let deadline = now() + ARRIVAL_LIMIT;
        loop {
            let calls = deployment.stack.function_calls();
            let made: BTreeSet<_> = calls.iter().filter_map(by_and_action).collect();
            if expected.iter().all(|call| made.contains(call)) {
                return assert_one_partition(&calls);
            }
            assert!(now() < deadline, "missing of {expected:?}: {made:?}");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    });
}

/// Each request to the table names one partition, so that a policy can match it. Dispatch queries
/// the news, reads everything else, and changes both.
fn assert_one_partition(calls: &[Value]) {
    let action = |call: &Value| call["action"].as_str().unwrap_or_default().to_owned();
    for call in calls.iter().filter(|call| action(call).starts_with("dynamodb:")) {
        let partitions = call["partitions"].as_array().map(Vec::as_slice);
        let Some([partition]) = partitions else { panic!("{call}") };
        let is_news = partition == NEWS;
        match action(call).as_str() {
            "dynamodb:Query" => assert!(is_news, "{call}"),
            "dynamodb:GetItem" => assert!(!is_news, "{call}"),
            action => assert_eq!(action, "dynamodb:UpdateItem", "{call}"),
        }
    }
}

/// Returns the function that made a call, and the action.
fn by_and_action(call: &Value) -> Option<(String, String)> {
    let by = call["principal"].as_str()?.rsplit('/').next()?;
    let by = by.strip_prefix("lastmile-")?.split("Function").next()?;
    Some((by.to_owned(), call["action"].as_str()?.to_owned()))
}
