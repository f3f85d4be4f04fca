//! Subscription files checked against a deployed stack: `transcripts/stack.md`. CloudFormation, IAM
//! and S3 are servers here.

use std::path::Path;

use crate::programs::{deciding_receiver, lastmile, printed};
use crate::transcripts;

/// The bucket of the stack's subscriptions.
pub(crate) const CONFIG_BUCKET: &str = "own-config";

const OWN_QUEUES: [&str; 6] = ["Events", "Retry", "Slow", "Isolation", "DeadLetter", "LastResort"];

/// The response of CloudFormation about the stack `live`.
fn described(parameters: &[(&str, &str)]) -> String {
    let parameter = |(key, value): &(&str, &str)| {
        format!(
            "<member><ParameterKey>{key}</ParameterKey><ParameterValue>{value}</ParameterValue></member>"
        )
    };
    let always = [("DispatchTimeout", "120")];
    let parameters: String = parameters.iter().chain(&always).map(parameter).collect();
    let queues = OWN_QUEUES.map(|queue| {
        format!(
            "<member><OutputKey>{queue}QueueUrl</OutputKey>\
             <OutputValue>https://sqs.eu-west-1.amazonaws.com/123456789012/live-{queue}</OutputValue></member>"
        )
    });
    let queues = queues.concat();
    format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>live</StackName>\
         <StackId>arn:aws:cloudformation:eu-west-1:123456789012:stack/live/1</StackId>\
         <Parameters>{parameters}</Parameters><Outputs><member><OutputKey>DeadLetterBucketName</OutputKey>\
         <OutputValue>own-letters</OutputValue></member><member><OutputKey>ConfigBucketName</OutputKey>\
         <OutputValue>{CONFIG_BUCKET}</OutputValue></member>{queues}</Outputs></member></Stacks></DescribeStacksResult>\
         </DescribeStacksResponse>"
    )
}

/// A CloudFormation that gives every request this status and body; its address.
pub(crate) fn cloud_formation(status: &'static str, body: String) -> String {
    let answer = move |request: &str| {
        assert!(request.contains("Action=DescribeStacks"), "nothing else is requested");
        response(status, &body)
    };
    deciding_receiver(answer).0
}

/// An S3 whose buckets have no objects; its address.
fn empty_bucket() -> String {
    let answer = |request: &str| {
        let (status, body) = if request.contains("list-type=2") {
            ("200 OK", "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
        } else if request.contains("?versions") || request.contains("&versions") {
            ("200 OK", "<ListVersionsResult></ListVersionsResult>")
        } else {
            ("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>")
        };
        response(status, body)
    };
    deciding_receiver(answer).0
}

/// Checks the deployment of a stack `live` whose buckets are in the S3 at this address.
pub(crate) fn check_deployed(s3: &str) -> (String, Option<i32>) {
    let stack = cloud_formation("200 OK", described(&[]));
    let mut command = lastmile(Path::new("."), &["check", "--stack", "live"]);
    command.env("AWS_ENDPOINT_URL_CLOUDFORMATION", stack).env("AWS_ENDPOINT_URL_S3", s3);
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    printed(&command.env("AWS_REGION", "eu-west-1").output().expect("the program runs"))
}

/// The parameters of a file: `Key=Value` in each line.
fn parameters(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let parameters: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
    Some(described(&parameters))
}

/// A response of an AWS service.
pub(crate) fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[test]
fn the_page_about_a_stack() {
    let folder = tempfile::tempdir().expect("a folder");
    let [described, decision] =
        ["parameters.txt", "decision.txt"].map(|name| folder.path().join(name));
    // STS has no other answer either: no test needs its token.
    let (stack, _) = deciding_receiver(move |_| match parameters(&described) {
        Some(stack) => response("200 OK", &stack),
        None => response("400 Bad Request", MISSING),
    });
    let (iam, _) = deciding_receiver(move |request| {
        for part in ["role%2Finvoke", "sqs%3ASendMessage"] {
            assert!(request.contains(part), "{part} in {request}");
        }
        let decision = std::fs::read_to_string(&decision).expect("a decision");
        response("200 OK", &SIMULATED.replace("DECISION", decision.trim()))
    });
    let services =
        [("CLOUDFORMATION", &stack), ("STS", &stack), ("S3", &empty_bucket()), ("IAM", &iam)];
    let exported = services.map(|(name, url)| format!("export AWS_ENDPOINT_URL_{name}={url}\n"));
    let functions = format!("{}{FUNCTIONS}", exported.concat());
    std::fs::write(folder.path().join("functions.sh"), functions).expect("a file");
    transcripts::run_in("stack", folder.path());
}

/// The functions of the page.
const FUNCTIONS: &str = r#"export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=eu-west-1
stack() { printf '%s\n' "$@" > parameters.txt; }
findings() {
  case $1 in destination*) spec=$1 ;; *) spec="destination: {url: 'https://a.example.com/'}, $1" ;; esac
  cat > s.yaml <<< "apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: billing}
spec: {$spec}"
  lastmile check s.yaml --stack live 2>&1 | sed '/^$/d; /^subscription/d; /^valid /d; /^shop.orders.billing  /d'
}
"#;

/// The answer of CloudFormation about a stack that does not exist.
const MISSING: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code>\
    <Message>Stack with id live does not exist</Message></Error></ErrorResponse>";

/// The answer of IAM about an action.
const SIMULATED: &str = "<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults>\
    <member><EvalActionName>sqs:SendMessage</EvalActionName><EvalDecision>DECISION</EvalDecision></member>\
    </EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>";
