//! Subscriptions that deliver to a service of AWS: what a stack allows, what its role may do, and what this machine sends.

use std::sync::mpsc::Receiver;

use crate::check_stack::{cloud_formation, described, empty_bucket, run_beside};
use crate::programs::{deciding_receiver, findings};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:shop-orders";
const ROLE: &str = "arn:aws:iam::123456789012:role/invoke";

fn target(arn: &str, action: &str) -> String {
    format!("destination: {{aws: {{arn: '{arn}', action: {action}}}}}")
}

fn to_queue(arn: &str) -> String {
    target(arn, "SendMessage")
}

/// An IAM that decides this about every action.
fn iam(decision: &'static str) -> (String, Receiver<String>) {
    deciding_receiver(move |_| {
        let body = format!(
            "<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults><member>\
             <EvalActionName>sqs:SendMessage</EvalActionName><EvalDecision>{decision}</EvalDecision></member>\
             </EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>"
        );
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    })
}

/// Runs the command line with a stack that has this role and lists these targets.
fn run(spec: &str, targets: &str, iam: &str, arguments: &[&str]) -> (String, Option<i32>) {
    let parameters = [("InvokeRoleArn", ROLE), ("AwsTargets", targets)];
    let stack = cloud_formation("200 OK", described(&parameters));
    let services =
        [("CLOUDFORMATION", &*stack), ("STS", &stack), ("S3", &empty_bucket()), ("IAM", iam)];
    run_beside(spec, &services, arguments)
}

const CHECK: [&str; 4] = ["check", "s.yaml", "--stack", "live"];

#[test]
fn check_and_apply_refuse_a_target_that_is_unlisted_foreign_or_of_the_stack_itself() {
    let (iam, _asked) = iam("allowed");
    let own = "arn:aws:sqs:eu-west-1:123456789012:live-Retry";
    let foreign = "arn:aws:sqs:eu-west-1:999999999999:shop-orders";
    for (arn, targets, told) in [
        (QUEUE, "", "which AwsTargets of the stack live does not list for the namespace shop; add shop="),
        (QUEUE, "bank=arn:aws:sqs:*:*:*", "does not list for the namespace shop; add shop="),
        (foreign, "shop=arn:aws:sqs:eu-west-1:123456789012:shop-*", "does not list for the namespace shop"),
        (own, "*=arn:aws:sqs:*:*:*", "which belongs to the deployment itself; name a resource that is no part"),
    ] {
        let begins = format!("s.yaml:4:27: error: aws: shop/orders/billing delivers to {arn}, ");
        let is_told = |printed: &str| printed.contains(&begins) && printed.contains(told);
        let (printed, code) = run(&to_queue(arn), targets, &iam, &CHECK);
        assert!(code == Some(1) && is_told(&printed), "{printed}");
        let apply = ["apply", "-f", "s.yaml", "--stack", "live", "--yes"];
        let (printed, code) = run(&to_queue(arn), targets, &iam, &apply);
        assert!(code == Some(1) && is_told(&printed), "{printed}");
    }
    let (printed, code) = run(&to_queue(QUEUE), "arn:aws:sqs", &iam, &CHECK);
    let invalid = printed.contains("the stack live has an invalid AwsTargets");
    assert!(code == Some(1) && invalid, "{printed}");
}

#[test]
fn check_tells_whether_the_role_may_use_a_target() {
    let needs = format!("shop/orders/billing needs sqs:SendMessage on {QUEUE}, and");
    for (decision, told, expected) in [
        ("allowed", "", Some(0)),
        ("implicitDeny", "no policy of the role InvokeRoleArn allows it", Some(0)),
        ("explicitDeny", "a policy denies it to the role InvokeRoleArn", Some(1)),
    ] {
        let (iam, asked) = iam(decision);
        let (printed, code) = run(&to_queue(QUEUE), "shop=arn:aws:sqs:*:*:shop-*", &iam, &CHECK);
        assert_eq!(code, expected, "{printed}");
        if told.is_empty() {
            assert_eq!(findings(&printed), "");
        } else {
            assert!(printed.contains(&format!("aws: {needs} {told}")), "{printed}");
        }
        let request = asked.try_recv().expect("IAM was asked");
        for part in ["role%2Finvoke", "sqs%3ASendMessage", "shop-orders"] {
            assert!(request.contains(part), "{part} in {request}");
        }
    }
    let (printed, code) =
        run(&to_queue(QUEUE), "shop=arn:aws:sqs:*:*:shop-*", "http://127.0.0.1:1/", &CHECK);
    let told = "whether InvokeRoleArn may use AWS targets was not checked: IAM simulates no policy: ";
    assert!(code == Some(0) && printed.contains(told), "{printed}");
}

#[test]
fn the_table_of_check_tells_a_target_and_whether_the_deployment_lists_it() {
    let (iam, _asked) = iam("allowed");
    let (printed, _) = run(&to_queue(QUEUE), "*=arn:aws:sqs:*:*:*", &iam, &CHECK);
    assert!(printed.contains(QUEUE) && !printed.contains("if the deployment"), "{printed}");
    let (printed, code) = run(&to_queue(QUEUE), "", &iam, &["check", "s.yaml"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains(", if the deployment lists this target"), "{printed}");
}
