//! Rules of commands that need AWS: `transcripts/aws_errors.md` and `live_stack.md` there, and the
//! topics that `dev` knows.

use local::aws::{LocalAws, LocalAwsConfig};

use crate::check_stack::{cloud_formation, response};
use crate::deployments::{deploy, uri};
use crate::programs::{Running, deciding_receiver, lastmile, run, word};
use crate::sample_letters::{self, LETTERS, Sample};
use crate::transcripts;

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;
const SUBSCRIPTION: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                            metadata: {namespace: shop, topic: orders, name: a}\n\
                            spec: {destination: {url: 'https://a.example.com/'}}\n";

/// A folder with files of subscriptions and events, and with dead letters.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("s.yaml", SUBSCRIPTION).expect("a file");
    write("event.json", EVENT).expect("a file");
    sample_letters::write(&folder.path().join("letters"), &LETTERS.map(Sample::blob));
    folder
}

#[test]
fn the_page_about_errors_of_aws() {
    let folder = files();
    let file = folder.path().join("answer.txt");
    let (aws, _) = deciding_receiver(move |_| {
        let answer = std::fs::read_to_string(&file).expect("an answer");
        let (status, body) = answer.split_once('\n').expect("a status and a body");
        response(status, body)
    });
    let functions = format!("export AWS_ENDPOINT_URL={aws}\n{CREDENTIALS}{ANSWERS}");
    std::fs::write(folder.path().join("functions.sh"), functions).expect("a file");
    transcripts::run_in("aws_errors", folder.path());
}

/// Credentials of the pages, and one attempt for each request.
const CREDENTIALS: &str = "export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 \
                           AWS_MAX_ATTEMPTS=1\n";
/// The functions of the page about errors: the next answers of AWS.
const ANSWERS: &str = r#"answer() { printf '%s\n%s' "$1" "$2" > answer.txt; }
s3() { answer "$1" "<Error><Code>$2</Code><Message>said by S3</Message></Error>"; }
sqs() { answer "$1" "{\"__type\":\"com.amazonaws.sqs#$2\",\"message\":\"said by SQS\"}"; }
stack() { answer "$1" "<ErrorResponse><Error><Code>$2</Code><Message>said by it</Message></Error></ErrorResponse>"; }
"#;

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
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_a_live_stack() {
    let (stack, folder) = (LiveStack::start().await, files());
    let functions = format!(
        "{CREDENTIALS}export AWS_ENDPOINT_URL={} AWS_ENDPOINT_URL_CLOUDFORMATION={}\nQUEUE={}\nCONFIG={}\n",
        stack.aws.endpoint(),
        stack.endpoint,
        stack.aws.queue_url("events"),
        uri(&stack.data.path().join("config"))
    );
    std::fs::write(folder.path().join("functions.sh"), functions).expect("a file");
    transcripts::run_in("live_stack", folder.path());
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
        run(folder.path(), &line.split_whitespace().collect::<Vec<_>>())
    };
    let (printed, code) = publish("shop/unknown", "");
    assert_eq!(code, Some(1), "{printed}");
    for part in ["the topic shop/unknown does not exist", "shop/orders", "--allow-unknown"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let accepted = ("1 accepted, 0 refused\n".to_owned(), Some(0));
    assert_eq!(publish("shop/orders", ""), accepted);
    assert_eq!(publish("shop/unknown", "--allow-unknown"), accepted);
}
