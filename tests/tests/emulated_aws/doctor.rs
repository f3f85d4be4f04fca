//! `lastmile doctor` on a stack that works, and on the same stack broken in six ways:
//!
//! - no subscription is applied;
//! - a mapping is paused;
//! - a permission is missing;
//! - AWS targets have no permission;
//! - secrets are wrong;
//! - destinations refuse or cannot be reached.
//!
//! The stack is separate from that of the other tests, which these faults must not disturb.

use std::process::Command;

use lastmile_tests::built::binary;
use lastmile_tests::snippets;
use serde_json::{Value, json};

use super::stack::{ACCOUNT, Second, Stack, script};
use super::{ARRIVAL_LIMIT, Deployment, on_deployment};

/// A role that may do everything.
const OPERATOR: &str = "operators-of-lastmile";
const NAME: &str = "doctored";
/// The role that makes requests to AWS targets.
const TARGETS_ROLE: &str = "doctored-targets";
/// AWS targets of this stack: queues and topics.
const SETTINGS: [&str; 2] = [
    "InvokeRoleArn=arn:aws:iam::000000000000:role/doctored-targets",
    "AwsTargets=shop=arn:aws:sqs:*:*:doctored-*,shop=arn:aws:sns:*:*:doctored-*",
];

/// Returns subscriptions of the topic shop/doctored, given their names and destinations.
fn subscriptions(all: &[(&str, String)]) -> String {
    let document = |(name, destination): &(&str, String)| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: doctored, name: {name}}}\n\
             spec: {{destination: {{{destination}}}}}\n"
        )
    };
    all.iter().map(document).collect::<Vec<_>>().join("---\n")
}

/// A stack that doctor checks.
struct Patient<'a> {
    aws: &'a Stack,
    stack: Second,
}

impl Patient<'_> {
    /// Returns the state and the text of each item that doctor prints. Fails unless the exit code
    /// follows from the states.
    async fn examined(&self, options: &[&str]) -> Vec<(String, String)> {
        self.examined_by(&ACCOUNT.map(|(name, value)| (name, value.to_owned())), options).await
    }

    /// Runs doctor with these credentials.
    async fn examined_by(
        &self,
        credentials: &[(&'static str, String)],
        options: &[&str],
    ) -> Vec<(String, String)> {
        let mut command = Command::new(binary("lastmile"));
        command.args(["doctor", "--stack", NAME, "--output", "json"]).args(options);
        command.envs(self.aws.variables()).envs(credentials.iter().cloned());
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.expect("it ends").expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let report: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"));
        let items = report["items"].as_array().expect("items").iter();
        let items: Vec<(String, String)> = items.map(line).collect();
        let is_ill = items.iter().any(|(state, _)| state == "error");
        assert_eq!(output.status.code(), Some(i32::from(is_ill)), "{items:#?}");
        items
    }

    /// Fails unless the items that are not ok have exactly these states and contain these texts, in
    /// this order.
    async fn shows(&self, options: &[&str], expected: &[(&str, &[&str])]) {
        let all = self.examined(options).await;
        let found: Vec<_> = all.iter().filter(|(state, _)| state != "ok").collect();
        assert_eq!(found.len(), expected.len(), "{all:#?}");
        for ((state, line), (expected_state, texts)) in found.into_iter().zip(expected) {
            let has_all = texts.iter().all(|text| line.contains(text));
            assert!(state == expected_state && has_all, "{state} {line}\nhas not {texts:?}");
        }
    }

    async fn call(&self, operation: &str, parameters: Value) {
        let port = self.aws.endpoint.rsplit(':').next().expect("a port").to_owned();
        let calls = json!([(OPERATOR, operation, parameters)]).to_string();
        let run = tokio::task::spawn_blocking(move || script("calls.sh", &[&port, &calls]));
        assert_eq!(run.await.expect("calls.sh runs").trim(), "[null]", "{operation}");
    }

    async fn subscribe(&self, all: &[(&str, String)]) {
        let bucket = self.stack.output("ConfigBucketName");
        self.aws.put_subscriptions_into(bucket, subscriptions(all)).await;
    }
}

fn line(item: &Value) -> (String, String) {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    (text("state"), format!("{}: {}; {}", text("item"), text("message"), text("help")))
}

#[test]
fn doctor_says_of_a_broken_stack_what_to_do_and_of_a_healthy_one_nothing() {
    on_deployment(|Deployment { stack: aws, subscriber, .. }| async move {
        let patient = Patient { aws, stack: aws.deploy_second(NAME, &SETTINGS).await };
        let missing = "subscriptions/ does not exist yet";
        let apply = "lastmile apply -f FILE --stack doctored";
        patient.shows(&[], &[("error", &[missing, apply])]).await;
        // Doctor sends nothing to a stack that cannot deliver.
        let tried = ["--try", "shop/doctored/good"];
        patient.shows(&tried, &[("error", &[missing]), ("warning", &["not sent"])]).await;

        let at = |path: &str| format!("url: 'http://{}{path}'", subscriber.address);
        let good = ("good", at("/doctored"));
        patient.subscribe(std::slice::from_ref(&good)).await;
        patient.shows(&[], &[]).await;
        patient.shows(&tried, &[]).await;
        subscriber.arrived("/doctored", ARRIVAL_LIMIT, |all| !all.is_empty()).await;

        other_credentials(&patient).await;
        paused_mapping(&patient).await;
        missing_permission(&patient).await;
        targets(&patient, &good).await;

        patient
            .subscribe(&[
                good.clone(),
                ("refuses", at("/doctored-refuses")),
                ("away", "url: 'http://127.0.0.1:1/'".to_owned()),
            ])
            .await;
        let tried = [
            "--try",
            "shop/doctored/good",
            "--try",
            "shop/doctored/refuses",
            "--try",
            "shop/doctored/away",
        ];
        let refused: &[&str] =
            &["shop/doctored/refuses", "401 Unauthorized", "check auth", "deadletters show"];
        let away: &[&str] = &["shop/doctored/away", "SocketError", "cannot reach the destination"];
        patient.shows(&tried, &[("error", refused), ("error", away)]).await;

        wrong_secrets(&patient, &good.1).await;
    });
}

/// The permissions of the manual suffice. With fewer, doctor reports unchecked items as not
/// checked.
async fn other_credentials(patient: &Patient<'_>) {
    let policy = snippets::under("operate/doctor.md", "What it needs").text;
    let by_role = patient.aws.session("looks", &policy);
    let read = patient.stack.output("ConsoleReadPolicyArn");
    let attached = json!({"RoleName": "looks", "PolicyArn": read});
    patient.call("iam.attach_role_policy", attached).await;
    let all = patient.examined_by(&by_role, &[]).await;
    assert!(all.iter().all(|(state, _)| state == "ok"), "{all:#?}");

    let stacks = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}]});
    let by_role = patient.aws.session("looks-at-little", &stacks.to_string());
    let all = patient.examined_by(&by_role, &[]).await;
    let fine =
        all.iter().filter(|(state, line)| state != "warning" || !line.contains("not checked: "));
    let fine: Vec<&str> = fine.map(|(_, line)| line.as_str()).collect();
    assert!(fine.len() == 1 && fine[0].starts_with("stack: "), "{all:#?}");
}

async fn paused_mapping(patient: &Patient<'_>) {
    let lambda = patient.aws.lambda();
    let all = lambda.list_event_source_mappings().send().await.expect("mappings");
    let retries = patient.stack.output("RetryQueueArn");
    let mut ids = all.event_source_mappings().iter();
    let id = ids
        .find(|mapping| mapping.event_source_arn() == Some(retries))
        .and_then(|mapping| mapping.uuid());
    let id = id.expect("the retry queue is read");
    let set = |is: bool| lambda.update_event_source_mapping().uuid(id).enabled(is).send();
    set(false).await.expect("a mapping can be paused");
    let command = format!("aws lambda update-event-source-mapping --uuid {id} --enabled");
    patient
        .shows(&[], &[("error", &["mapping of RetryQueue: the mapping is disabled", &command])])
        .await;
    set(true).await.expect("a mapping can be enabled");
    patient.shows(&[], &[]).await;
}

async fn missing_permission(patient: &Patient<'_>) {
    let all = patient.examined(&[]).await;
    let role = all.iter().find_map(|(_, line)| line.strip_prefix("role ")?.split(": ").next());
    let role = role.expect("the role of dispatch comes first");
    let denied = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Deny", "Action": "sqs:SendMessage", "Resource": "*-RetryQueue"}]});
    let policy = |document: Option<String>| match document {
        Some(document) => {
            json!({"RoleName": role, "PolicyName": "wrong", "PolicyDocument": document})
        }
        None => json!({"RoleName": role, "PolicyName": "wrong"}),
    };
    patient.call("iam.put_role_policy", policy(Some(denied.to_string()))).await;
    let texts: &[&str] =
        &[role, "missing permissions: sqs:SendMessage on", "-RetryQueue", "remove the denial"];
    patient.shows(&[], &[("error", texts)]).await;
    patient.call("iam.delete_role_policy", policy(None)).await;
    patient.shows(&[], &[]).await;
}

/// One target is allowed by the role's policy, one has no policy, and one is denied.
async fn targets(patient: &Patient<'_>, good: &(&str, String)) {
    let allowed = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*:doctored-*"},
        {"Effect": "Deny", "Action": "sqs:SendMessage", "Resource": "*:doctored-denied"}]});
    patient.aws.session(TARGETS_ROLE, &allowed.to_string());
    let target = |service: &str, action: &str, name: &str| {
        format!(
            "aws: {{arn: 'arn:aws:{service}:us-east-1:000000000000:doctored-{name}', action: {action}}}"
        )
    };
    let queue = ("queue", target("sqs", "SendMessage", "queue"));
    patient.subscribe(&[good.clone(), queue.clone()]).await;
    let all = patient.examined(&[]).await;
    let expected = "AWS targets: the role InvokeRoleArn has permissions for 1 target";
    assert!(
        all.iter().any(|(state, line)| state == "ok" && line.starts_with(expected)),
        "{all:#?}"
    );

    let denied = ("denied", target("sqs", "SendMessage", "denied"));
    let topic = ("topic", target("sns", "Publish", "topic"));
    patient.subscribe(&[good.clone(), queue, denied, topic]).await;
    let none = "shop/doctored/topic requires sns:Publish on arn:aws:sns:us-east-1:000000000000:doctored-topic, but no policy";
    let deny = "shop/doctored/denied requires sqs:SendMessage on arn:aws:sqs:us-east-1:000000000000:doctored-denied, but a policy";
    patient.shows(&[], &[("warning", &[none]), ("error", &[deny])]).await;
}

/// One secret exists but may not be read, one does not exist, and one is a variable that the
/// function does not have.
async fn wrong_secrets(patient: &Patient<'_>, good: &str) {
    patient
        .call(
            "secretsmanager.create_secret",
            json!({"Name": "doctored", "SecretString": "hush-hush"}),
        )
        .await;
    let shown = |secret: &str| format!("{good}, auth: {{bearer: {{token: '{secret}'}}}}");
    patient
        .subscribe(&[
            ("a", shown("secretsmanager:doctored#token")),
            ("b", shown("ssm:/doctored/missing")),
            ("c", shown("env:DOCTORED")),
        ])
        .await;
    let to_allow = "add arn:aws:secretsmanager:us-east-1:000000000000:secret:doctored";
    let expected: [(&str, &[&str]); 4] = [
        ("error", &["secret env:DOCTORED: shop/doctored/c needs this secret", "Environment"]),
        (
            "error",
            &["secret secretsmanager:doctored#token: shop/doctored/a", to_allow, "SecretArns"],
        ),
        ("error", &["secret ssm:/doctored/missing: shop/doctored/b", "but it does not exist"]),
        ("error", &["SecretsExtensionLayerArn"]),
    ];
    patient.shows(&[], &expected).await;
}
