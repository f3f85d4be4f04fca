//! `infra/notify.yaml`: reports wait until messages are published, and the function may do nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::read;

fn resource(name: &str) -> Value {
    read("infra/notify.yaml")["Resources"][name]["Properties"].clone()
}

#[test]
fn invocations_of_notify_do_not_overlap_and_do_not_share_reports() {
    let (function, queue) = (resource("NotifyFunction"), resource("ReportsQueue"));
    let timeout = function["Timeout"].as_u64().expect("a number");
    assert_eq!(resource("EveryMinute")["ScheduleExpression"], "rate(1 minute)");
    assert!(timeout < 60, "{timeout}");
    assert!(queue["VisibilityTimeout"].as_u64().expect("a number") > timeout);
    assert_eq!(function["EventInvokeConfig"]["MaximumRetryAttempts"], 0);
}

#[test]
fn reports_wait_as_long_as_sqs_keeps_them_and_only_the_rule_sends_them() {
    let queue = resource("ReportsQueue");
    assert_eq!(queue["MessageRetentionPeriod"], 14 * 24 * 60 * 60);
    assert_eq!(queue["RedrivePolicy"], Value::Null, "no report is given up");
    let policy = resource("ReportsQueuePolicy")["PolicyDocument"]["Statement"].clone();
    assert_eq!(policy[0]["Principal"], json!({"Service": "events.amazonaws.com"}));
    let of_rule = json!({"ArnEquals": {"aws:SourceArn": "DeadLetterStored.Arn"}});
    assert_eq!(policy[0]["Condition"], of_rule);
}

#[test]
fn notify_may_take_reports_read_dead_letters_publish_and_nothing_else() {
    let policy = resource("NotifyRole")["Policies"][0]["PolicyDocument"]["Statement"].clone();
    let statements = policy.as_array().expect("statements").iter();
    let statements =
        statements.map(|statement| if statement.is_array() { &statement[1] } else { statement });
    let actions = statements.flat_map(|statement| {
        let action = &statement["Action"];
        action.as_array().cloned().unwrap_or_else(|| vec![action.clone()])
    });
    let actions: BTreeSet<String> =
        actions.map(|action| action.as_str().expect("an action").to_owned()).collect();
    let expected = [
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "s3:GetObject",
        "s3:ListBucket",
        "sns:Publish",
        "sqs:DeleteMessage",
        "sqs:ReceiveMessage",
    ];
    assert_eq!(actions, expected.map(ToOwned::to_owned).into());
}
