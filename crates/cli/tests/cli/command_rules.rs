//! Rules of commands that need AWS: errors as sentences, the stack of the environment, topics that nobody described.
//! `transcripts/command_line.md` has the rules of every command.

use std::path::Path;
use std::process::Stdio;

use local::aws::{LocalAws, LocalAwsConfig};

use crate::check_stack::cloud_formation;
use crate::deployments::{deploy, uri};
use crate::programs::{Running, lastmile, printed, receiver, run, word};
use crate::sample_letters::{self, LETTERS, Sample};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;
const SUBSCRIPTION: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                            metadata: {namespace: shop, topic: orders, name: a}\n\
                            spec: {destination: {url: 'https://a.example.com/'}}\n";
/// Words of the SDK that are for its developers.
const STRUCTURES: [&str; 6] =
    ["DispatchFailure", "ServiceError", "ConnectorError", "Unhandled", "ErrorMetadata", "Error {"];

/// A folder with files of subscriptions and events, and with dead letters.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("s.yaml", SUBSCRIPTION).expect("a file");
    write("event.json", EVENT).expect("a file");
    sample_letters::write(&folder.path().join("letters"), &LETTERS.map(Sample::blob));
    folder
}

/// The words of a line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// What a command prints where AWS gives every request this answer; without one, nothing listens.
fn against_aws(folder: &Path, line: &str, answer: Option<(&'static str, &str)>) -> String {
    let endpoint = match answer {
        Some((status, body)) => {
            let head = format!("HTTP/1.1 {status}\r\nconnection: close");
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            // As long as the test: its server has no end.
            receiver(answer.leak()).0
        }
        None => "http://127.0.0.1:1".to_owned(),
    };
    let mut command = lastmile(folder, &words(line));
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "eu-west-1");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command.env("AWS_MAX_ATTEMPTS", "1");
    failed(&mut command, line)
}

/// The output of a command that fails, without structures of the SDK.
fn failed(command: &mut std::process::Command, line: &str) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program runs");
    let (printed, code) = printed(&output);
    assert_eq!(code, Some(1), "{line}: {printed}");
    for structure in STRUCTURES {
        assert!(!printed.contains(structure), "{line}: {structure} in {printed}");
    }
    printed
}

#[test]
fn an_error_of_aws_is_a_sentence_with_what_to_do() {
    let folder = files();
    let s3 =
        |code: &str| format!("<Error><Code>{code}</Code><Message>said by S3</Message></Error>");
    let sqs = |code: &str| format!(r#"{{"__type":"{code}","message":"said by SQS"}}"#);
    let stack = |code: &str| {
        format!(
            "<ErrorResponse><Error><Code>{code}</Code><Message>said by it</Message></Error></ErrorResponse>"
        )
    };
    let bucket = "deadletters list --container s3://letters";
    let queue = "publish --queue-url https://sqs.eu-west-1.amazonaws.com/1/events event.json";
    for (line, status, body, parts) in [
        (bucket, "403 Forbidden", s3("AccessDenied"), ["said by S3", "lack a permission"]),
        (bucket, "404 Not Found", s3("NoSuchBucket"), ["said by S3", "check its spelling"]),
        (bucket, "400 Bad Request", s3("ExpiredToken"), ["said by S3", "aws sso login"]),
        (bucket, "403 Forbidden", s3("InvalidAccessKeyId"), ["said by S3", "AWS_PROFILE"]),
        (
            queue,
            "400 Bad Request",
            sqs("com.amazonaws.sqs#QueueDoesNotExist"),
            ["said by SQS", "there is no such queue"],
        ),
        (
            "check --stack live",
            "403 Forbidden",
            stack("ExpiredToken"),
            ["the stack live cannot be read", "aws sso login"],
        ),
    ] {
        let printed = against_aws(folder.path(), line, Some((status, &body)));
        for part in parts {
            assert!(printed.contains(part), "{line}: {part} in {printed}");
        }
    }
    let printed = against_aws(folder.path(), bucket, None);
    for part in ["no connection", "AWS_ENDPOINT_URL"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
}

/// A stack over a local AWS: CloudFormation's address, and what the local AWS has.
struct LiveStack {
    aws: LocalAws,
    endpoint: String,
    data: tempfile::TempDir,
}

impl LiveStack {
    async fn start() -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 600);
        let aws = LocalAws::start(config).await.expect("the local AWS starts");
        let blobs: Vec<_> = LETTERS.map(Sample::blob).into();
        sample_letters::write(&data.path().join("dead-letters"), &blobs);
        // The objects of the bucket are files.
        std::fs::create_dir_all(data.path().join("config")).expect("a folder");
        deploy(&data.path().join("config"), SUBSCRIPTION);
        let output = |key: &str, value: &str| {
            format!(
                "<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>"
            )
        };
        let parameter = |key: &str, value: &str| {
            format!(
                "<member><ParameterKey>{key}</ParameterKey><ParameterValue>{value}</ParameterValue></member>"
            )
        };
        let outputs = [
            output("DeadLetterBucketName", "dead-letters"),
            output("ConfigBucketName", "config"),
            output("TableName", "lastmile"),
            output("EventsQueueUrl", &aws.queue_url("events")),
            output("RetryQueueUrl", &aws.queue_url("retry")),
            output("LastResortQueueUrl", &aws.queue_url("last-resort")),
        ];
        let parameters = [parameter("DispatchTimeout", "120")];
        let described = format!(
            "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>live</StackName>\
             <Parameters>{}</Parameters><Outputs>{}</Outputs></member></Stacks></DescribeStacksResult>\
             </DescribeStacksResponse>",
            parameters.concat(),
            outputs.concat()
        );
        let endpoint = cloud_formation("200 OK", described);
        Self { aws, endpoint, data }
    }

    /// What a command prints with the stack in the environment, and its exit code.
    fn run(&self, folder: &Path, line: &str) -> (String, Option<i32>) {
        let mut command = lastmile(folder, &words(line));
        command.env("LASTMILE_STACK", "live").env("AWS_REGION", "us-east-1");
        command.env("AWS_ENDPOINT_URL", self.aws.endpoint());
        command.env("AWS_ENDPOINT_URL_CLOUDFORMATION", &self.endpoint);
        command.env("AWS_ACCESS_KEY_ID", "local").env("AWS_SECRET_ACCESS_KEY", "local");
        command.stdin(Stdio::null());
        printed(&command.output().expect("the program runs"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stack_of_the_environment_is_used_unless_an_option_names_another_place() {
    let (stack, folder) = (LiveStack::start().await, files());
    let said = "using the stack live, which LASTMILE_STACK names";
    for (line, expected) in [
        ("deadletters list", 0),
        ("deadletters why --since 2020-01-01", 0),
        ("deadletters why --by reason", 0),
        ("deadletters list --full", 0),
        ("deadletters jobs", 1),
        ("deadletters show nothing", 1),
        ("deadletters replay --yes --name one", 0),
        ("deadletters purge --all --dry-run", 0),
        ("deadletters rescue", 1),
        ("destinations list", 0),
        ("explain shop/orders/a", 0),
        ("apply -f s.yaml", 0),
        ("publish --topic shop/orders event.json", 0),
    ] {
        let (printed, code) = stack.run(folder.path(), line);
        assert!(code == Some(expected) && printed.contains(said), "{line}: {code:?} {printed}");
    }
    for (line, expected) in [
        ("deadletters list --container letters", 0),
        ("deadletters list --container letters --stack live", 0),
        ("destinations list --to .", 1),
        ("check s.yaml", 0),
        ("explain -f s.yaml", 0),
        ("explain s.yaml", 0),
        ("explain nowhere.yaml", 2),
        ("apply -f s.yaml --to file:///dev/null/all/ --yes", 1),
        ("publish --queue-url http://127.0.0.1:1/000000000000/events event.json", 1),
        ("deadletters list --stack", 2),
    ] {
        let (printed, code) = stack.run(folder.path(), line);
        assert!(code == Some(expected) && !printed.contains(said), "{line}: {code:?} {printed}");
    }
    stack.aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_a_topic_that_nobody_described_is_not_published_unless_it_shall_be() {
    let (stack, folder) = (LiveStack::start().await, files());
    let (printed, code) = stack.run(folder.path(), "publish --topic shop/unknown event.json");
    assert_eq!(code, Some(1), "{printed}");
    for part in ["there is no topic shop/unknown", "--allow-unknown"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let (printed, code) =
        stack.run(folder.path(), "publish --topic shop/unknown --allow-unknown event.json");
    assert!(code == Some(0) && printed.contains("1 accepted"), "{printed}");
    // By the subscriptions of the queue; and a queue alone cannot tell.
    let queue = stack.aws.queue_url("events");
    let uri = uri(&stack.data.path().join("config"));
    let by_file = format!("publish --topic shop/unknown --queue-url {queue} --to {uri} event.json");
    let (printed, code) = run(folder.path(), &words(&by_file));
    assert!(code == Some(1) && printed.contains("no topic shop/unknown"), "{printed}");
    let alone = format!("publish --topic shop/unknown --queue-url {queue} event.json");
    let (printed, code) = run(folder.path(), &words(&alone));
    assert!(code == Some(0) && printed.contains("1 accepted"), "{printed}");
    stack.aws.stop().await;
}

#[test]
fn dev_knows_the_topics_of_its_queue_whatever_its_ports_are() {
    let folder = files();
    let ports = ["dev", "--port", "0", "--aws-port", "0", "--no-console", "-f", "s.yaml"];
    let mut dev = Running::start(lastmile(folder.path(), &ports));
    let queue = word(&dev.line_with("ready:").replace("queue ", "queue="), "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = |topic: &str, more: &str| {
        let line = format!("publish --topic {topic} --queue-url {queue} {more} event.json");
        run(folder.path(), &words(&line))
    };
    let (printed, code) = publish("shop/unknown", "");
    assert_eq!(code, Some(1), "{printed}");
    for part in ["there is no topic shop/unknown", "shop/orders", "--allow-unknown"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let accepted = ("1 accepted, 0 refused\n".to_owned(), Some(0));
    assert_eq!(publish("shop/orders", ""), accepted);
    assert_eq!(publish("shop/unknown", "--allow-unknown"), accepted);
}
