//! What the functions may do on AWS: the emulated one enforces the roles of the template and the policies
//! of its queues and buckets, for the functions of all tests here and for the calls of this file.
//!
//! Separate because a call that is refused is nothing the functions ever see. Lambda, not a function,
//! receives messages and writes logs; the emulated one needs no permission for that, so only the rules
//! about the template hold those grants (`tests/tests/rules/template`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::credentials::of_aws::TOKEN_CALL;
use super::stack::{Stack, script};
use super::{ARRIVAL_LIMIT, Deployment, event, now, on_deployment};

/// The roles of the functions, as the template calls them.
const DISPATCH: &str = "DispatchRole";
const DEADLETTER: &str = "DeadLetterRole";
const INGRESS: &str = "IngressRole";
/// A role that `OperatorArns` names, and one that it does not. Their own policies allow everything.
const OPERATOR: &str = "operators-of-lastmile";
const STRANGER: &str = "strangers";

/// A call: by which role, what, and with which parameters, as `tests/emulated/calls.py` takes it.
type Call = (&'static str, &'static str, Value);

/// What AWS answers a call that no policy allows, or that one denies; the name depends on the service.
const DENIED: [&str; 2] = ["AccessDenied", "AccessDeniedException"];

/// The error code of each call, if it failed.
async fn error_codes(stack: &Stack, calls: &[Call]) -> Vec<Option<String>> {
    let port = stack.endpoint.rsplit(':').next().expect("the endpoint has a port").to_owned();
    let calls = json!(calls).to_string();
    let run = tokio::task::spawn_blocking(move || script("calls.sh", &[&port, &calls]));
    serde_json::from_str(&run.await.expect("calls.sh runs")).expect("calls.sh prints JSON")
}

/// Fails for every one of these calls that is denied although it should not be, or the other way round.
async fn assert_denied(stack: &Stack, is_expected: bool, calls: Vec<Call>) {
    let codes = error_codes(stack, &calls).await;
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

/// Sends nothing: SQS refuses a batch without entries, after it has asked whether the call is allowed.
fn no_messages(stack: &Stack, name: &str) -> Value {
    json!({"QueueUrl": stack.output(&format!("{name}Url")), "Entries": []})
}

/// Deletes nothing: there is no such receipt.
fn no_receipt(stack: &Stack, name: &str) -> Value {
    json!({"QueueUrl": stack.output(&format!("{name}Url")), "ReceiptHandle": "none"})
}

/// The queues that a function takes messages from, those that it sends to, and those it has nothing to do
/// with.
const TAKEN: [(&str, &[&str]); 3] = [
    (DISPATCH, &["EventsQueue", "FanOutQueue", "RetryQueue", "SlowQueue", "IsolationQueue"]),
    (DEADLETTER, &["DeadLetterQueue", "UnprocessedQueue"]),
    (INGRESS, &[]),
];
const SENT_TO: [(&str, &[&str]); 3] = [
    (DISPATCH, &["FanOutQueue", "RetryQueue", "SlowQueue", "IsolationQueue", "DeadLetterQueue"]),
    (DEADLETTER, &["DeadLetterQueue", "LastResortQueue"]),
    (INGRESS, &["EventsQueue"]),
];
const QUEUES: [&str; 8] = [
    "EventsQueue",
    "FanOutQueue",
    "RetryQueue",
    "SlowQueue",
    "IsolationQueue",
    "DeadLetterQueue",
    "UnprocessedQueue",
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
        for role in [DISPATCH, DEADLETTER, INGRESS] {
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
fn only_functions_and_operators_send_to_internal_queues_and_everybody_over_tls() {
    on_deployment(|Deployment { stack, .. }| async move {
        let internal = QUEUES.into_iter().filter(|name| *name != "EventsQueue");
        let by = |role: &'static str| {
            internal
                .clone()
                .map(move |name| (role, "sqs.send_message_batch", no_messages(stack, name)))
        };
        assert_denied(stack, false, by(OPERATOR).collect()).await;
        assert_denied(stack, true, by(STRANGER).collect()).await;
        let in_clear = |mut call: Call| {
            call.2["InClear"] = json!(true);
            call
        };
        let key = "permissions/clear.json";
        let reads = [
            (OPERATOR, "s3.get_object", letter(stack, key)),
            (OPERATOR, "s3.get_object", config(stack, "subscriptions.yaml")),
            (DISPATCH, "s3.get_object", config(stack, "subscriptions.yaml")),
        ];
        let attributes =
            QUEUES.map(|name| (OPERATOR, "sqs.get_queue_attributes", queue(stack, name)));
        assert_denied(stack, true, reads.into_iter().chain(attributes).map(in_clear).collect())
            .await;
    });
}

#[test]
fn dispatch_reads_subscriptions_keeps_what_it_knows_of_destinations_and_lists_nothing_else() {
    on_deployment(|Deployment { stack, .. }| async move {
        let subscriptions = || config(stack, "subscriptions.yaml");
        let versions = listing(stack, "subscriptions.yaml");
        let known = || config(stack, "_destinations/permissions.json");
        let missing = || config(stack, "_consents/permissions.json");
        let missing_here: [Call; 2] = [
            (DISPATCH, "s3.get_object", missing()),
            (DISPATCH, "s3.get_object", config(stack, "_destinations/nobody.json")),
        ];
        let codes = error_codes(stack, &missing_here).await;
        assert!(codes.iter().all(|code| code.as_deref() == Some("NoSuchKey")), "{codes:?}");
        assert_denied(
            stack,
            false,
            vec![
                (DISPATCH, "s3.get_object", subscriptions()),
                (DISPATCH, "s3.list_object_versions", versions.clone()),
                (DISPATCH, "s3.put_object", known()),
                (DISPATCH, "s3.get_object", known()),
            ],
        )
        .await;
        let denied = [
            (DISPATCH, "s3.put_object", subscriptions()),
            (DISPATCH, "s3.delete_object", subscriptions()),
            (DISPATCH, "s3.delete_object", known()),
            (DISPATCH, "s3.get_object", config(stack, "other.yaml")),
            (DISPATCH, "s3.put_object", config(stack, "other.yaml")),
            (DISPATCH, "s3.list_objects_v2", json!({"Bucket": stack.output("ConfigBucketName")})),
            (DISPATCH, "s3.list_objects_v2", listing(stack, "")),
            (DISPATCH, "s3.list_objects_v2", listing(stack, "s")),
            (DISPATCH, "s3.list_objects_v2", listing(stack, "_")),
            (DISPATCH, "s3.list_object_versions", listing(stack, "")),
            (DISPATCH, "s3.list_object_versions", listing(stack, "_consents/")),
            (DEADLETTER, "s3.get_object", subscriptions()),
            (DEADLETTER, "s3.get_object", missing()),
            (DEADLETTER, "s3.put_object", known()),
            (DEADLETTER, "s3.list_object_versions", versions),
        ];
        assert_denied(stack, true, denied.to_vec()).await;
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
            // The end of a replay: deadletter records it once, dispatch sends it there.
            let end = new_letter(stack, "_replays/job/ends/1.ndjson");
            assert_denied(stack, role == DISPATCH, vec![(role, "s3.put_object", end)]).await;
        }
    });
}

#[test]
fn nobody_replaces_a_dead_letter_and_operators_keep_ledgers_and_purge() {
    on_deployment(|Deployment { stack, .. }| async move {
        let key = "permissions/operators/c/2026/11/20/7/1.json";
        let mut copy = letter(stack, key);
        copy["CopySource"] = letter(stack, key);
        let ledger = || letter(stack, "_replays/permissions/1.ndjson");
        assert_denied(
            stack,
            false,
            vec![
                (OPERATOR, "s3.put_object", new_letter(stack, key)),
                (OPERATOR, "s3.get_object", letter(stack, key)),
                (OPERATOR, "s3.put_object", ledger()),
                (OPERATOR, "s3.put_object", ledger()),
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

/// An upload in parts that was never begun.
fn completed(mut letter: Value) -> Value {
    letter["UploadId"] = json!("none");
    letter
}

#[test]
fn dispatch_alone_reads_secrets_and_only_those_that_are_named() {
    on_deployment(|Deployment { stack, .. }| async move {
        let secret = |name: &str| json!({"Name": name, "SecretString": "x"});
        let parameter = |name: &str| json!({"Name": name, "Value": "x", "Type": "SecureString"});
        let made = vec![
            (OPERATOR, "secretsmanager.create_secret", secret("named")),
            (OPERATOR, "secretsmanager.create_secret", secret("other")),
            (OPERATOR, "ssm.put_parameter", parameter("/named")),
            (OPERATOR, "ssm.put_parameter", parameter("/other")),
        ];
        assert_denied(stack, false, made).await;
        let read = |role, name: &str| {
            [
                (role, "secretsmanager.get_secret_value", json!({"SecretId": name})),
                (role, "ssm.get_parameter", json!({"Name": format!("/{name}")})),
            ]
        };
        assert_denied(stack, false, read(DISPATCH, "named").to_vec()).await;
        let mut denied = read(DISPATCH, "other").to_vec();
        denied.extend(read(DEADLETTER, "named"));
        denied.push((DISPATCH, "secretsmanager.list_secrets", json!({})));
        denied.push((DISPATCH, "iam.list_roles", json!({})));
        denied.push((DISPATCH, "lambda.list_functions", json!({})));
        assert_denied(stack, true, denied).await;
    });
}

#[test]
fn the_functions_make_no_call_that_is_denied() {
    on_deployment(|deployment| async move {
        // One that is delivered, one that waits, and one that becomes a dead letter.
        for (topic, id) in
            [("shop/orders", "allowed"), ("shop/retried", "allowed"), ("shop/refused", "allowed")]
        {
            deployment.stack.publish(topic, &event(id)).await;
        }
        let expected = [
            ("Dispatch", "s3:GetObject"),
            ("Dispatch", "sqs:SendMessage"),
            ("DeadLetter", "s3:PutObject"),
        ];
        let expected = expected.map(|(by, action)| (by.to_owned(), action.to_owned()));
        let deadline = now() + ARRIVAL_LIMIT;
        loop {
            let calls = deployment.stack.function_calls();
            // A test asks for a token for somebody whom the template does not allow.
            let is_wrong = |call: &&Value| call["allowed"] == false && call["action"] != TOKEN_CALL;
            let denied: Vec<_> = calls.iter().filter(is_wrong).collect();
            assert!(denied.is_empty(), "{denied:#?}");
            let made: BTreeSet<_> = calls.iter().filter_map(by_and_action).collect();
            if expected.iter().all(|call| made.contains(call)) {
                return;
            }
            assert!(now() < deadline, "missing of {expected:?}: {made:?}");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    });
}

/// Which function made a call, and the action.
fn by_and_action(call: &Value) -> Option<(String, String)> {
    let by = call["principal"].as_str()?.rsplit('/').next()?;
    let by = by.strip_prefix("lastmile-")?.split("Function").next()?;
    Some((by.to_owned(), call["action"].as_str()?.to_owned()))
}
