//! The rules that hold for every command: exit codes, the stack of the environment, errors as sentences,
//! questions before something is removed.

use std::path::Path;
use std::process::Stdio;

use local::aws::{LocalAws, LocalAwsConfig};

use crate::check_stack::cloud_formation;
use crate::deployments::{deploy, object, uri};
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
    write("broken.yaml", "kind: Subscription\n").expect("a file");
    write("event.json", EVENT).expect("a file");
    write("blank.yaml", "# nothing\n\n---\n# here\n").expect("a file");
    std::fs::create_dir(folder.path().join("nothing")).expect("a folder");
    sample_letters::write(&folder.path().join("letters"), &LETTERS.map(Sample::blob));
    folder
}

/// The words of a line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn every_command_exits_with_0_1_or_2_by_the_same_rule() {
    let folder = files();
    let closed = "http://127.0.0.1:1/000000000000/events";
    let unreached = format!("publish --queue-url {closed} event.json");
    let rescue = format!("deadletters rescue --container letters --queue-url {closed}");
    for (line, expected) in [
        ("check s.yaml", 0),
        ("check -f s.yaml", 0),
        ("check broken.yaml", 1),
        ("check blank.yaml", 1),
        ("check nowhere.yaml", 2),
        ("check nothing", 2),
        ("check", 2),
        ("check --to s3:/bucket", 2),
        ("explain -f s.yaml", 0),
        ("explain -f broken.yaml", 1),
        ("explain -f nowhere.yaml", 2),
        ("explain -f s.yaml --subscription a/b/c", 2),
        ("explain s.yaml", 0),
        ("explain blank.yaml", 1),
        ("explain nothing", 2),
        ("try --consent -f s.yaml", 0),
        ("try --consent -f broken.yaml", 1),
        ("try --consent -f nowhere.yaml", 2),
        ("try -f s.yaml shop/orders/a --print", 0),
        ("try -f broken.yaml shop/orders/a", 1),
        ("try -f s.yaml shop/orders/b", 2),
        ("try -f s.yaml shop/orders/a --event nowhere.json", 2),
        ("try shop/orders/a", 2),
        ("cost --events 1e6", 0),
        ("cost --events many", 2),
        ("apply -f s.yaml", 2),
        ("apply -f s.yaml --to file:///dev/null/all/ --yes", 1),
        ("rollback shop --to file:///nowhere/at/all/", 1),
        ("subscriptions export --to file:///nowhere/at/all/", 1),
        ("subscriptions list shop --to file:///nowhere/at/all/", 1),
        ("subscriptions get shop --to file:///nowhere/at/all/", 2),
        ("destinations list", 1),
        ("destinations list --to nowhere", 2),
        ("destinations show billing", 2),
        ("deadletters list --container letters", 0),
        ("deadletters list --container letters --id nothing", 1),
        ("deadletters list --container letters --reason Nothing", 2),
        ("deadletters list --container letters --topic a/b/c", 2),
        ("deadletters list --container nowhere", 2),
        ("deadletters show nothing --container letters", 1),
        ("deadletters jobs --container letters", 1),
        ("deadletters list --container letters --full --status 599", 1),
        ("deadletters purge --container letters", 2),
        ("deadletters purge --container letters --all --dry-run", 0),
        ("deadletters replay --container letters --dry-run", 0),
        (&rescue, 1),
        ("deadletters list --container letters --follow --every soon", 2),
        (&unreached, 1),
        ("publish nowhere.json", 2),
        ("publish --topic orders event.json", 2),
        ("subscriber --delay 2", 2),
        ("completions bash", 0),
        ("completions powershell", 0),
        ("completions csh", 2),
        ("man pages", 0),
        ("--version", 0),
        ("--help", 0),
        ("deadletters", 2),
        ("nonsense", 2),
    ] {
        let (printed, code) = run(folder.path(), &words(line));
        assert_eq!(code, Some(expected), "{line}: {printed}");
    }
    assert!(folder.path().join("pages/lastmile-deadletters-list.1").is_file());
}

#[test]
fn every_option_for_an_outcome_takes_the_same_words_and_suggests_the_same() {
    let folder = files();
    let commands = ["explain s.yaml", "deadletters list --container letters"];
    for (word, problem) in [
        ("503", None),
        ("timeout", None),
        ("TimedOut", None),
        ("refused", None),
        ("SocketError", None),
        ("dns", None),
        ("busy", None),
        ("Aborted", None),
        ("600", Some("a status from 100 to 599 or a word is expected; known: timeout, refused")),
        ("bussy", Some("did you mean Busy?")),
        ("time-out", Some("did you mean timeout?")),
    ] {
        for command in commands {
            let line = format!("{command} --outcome {word}");
            let (printed, code) = run(folder.path(), &words(&line));
            match problem {
                None => assert_ne!(code, Some(2), "{line}: {printed}"),
                Some(problem) => {
                    assert_eq!(code, Some(2), "{line}: {printed}");
                    assert!(printed.contains(problem), "{line}: {printed}");
                }
            }
        }
    }
}

#[test]
fn every_option_for_a_url_names_what_is_missing_in_it() {
    let folder = files();
    for option in [
        "publish event.json --queue-url URL",
        "publish event.json --ingress URL",
        "deadletters replay --container letters --queue-url URL",
        "deadletters replay --container letters --to-url URL",
        "deadletters rescue --container letters --queue-url URL",
        "try --consent -f s.yaml --listen 127.0.0.1:0 --public-url URL",
    ] {
        for (url, problem) in [
            ("localhost:8080/x", "the URL has no scheme"),
            ("api.example.com/x", "the URL has no scheme"),
            ("//host/x", "the URL has no scheme"),
            ("htps://host/x", "the scheme \"htps\" is not supported here"),
            ("https:/host/x", "two slashes are missing after https:"),
        ] {
            let line = option.replace("URL", url);
            let (printed, code) = run(folder.path(), &words(&line));
            assert_eq!(code, Some(2), "{line}: {printed}");
            let expected = format!("{problem}; https://… or http://… is expected");
            assert!(printed.contains(&expected), "{line}: {printed}");
        }
    }
}

#[test]
fn what_cannot_be_undone_is_not_done_unless_somebody_agrees() {
    let folder = files();
    deploy(folder.path(), &SUBSCRIPTION.replace("name: a", "name: b"));
    let topic = object(folder.path(), "shop/orders.json");
    deploy(folder.path(), SUBSCRIPTION);
    let read = || std::fs::read_to_string(&topic).expect("a file");
    let current = read();
    let to = format!("--to {}", uri(folder.path()));
    let delete = format!("subscriptions delete shop/orders/a {to}");
    std::fs::write(folder.path().join("new.yaml"), SUBSCRIPTION.replace("name: a", "name: c"))
        .expect("a file");
    for line in [
        format!("apply -f new.yaml {to}"),
        delete.clone(),
        "deadletters purge --container letters --all".to_owned(),
        "deadletters replay --container letters".to_owned(),
    ] {
        let (printed, code) = run(folder.path(), &words(&line));
        assert!(code == Some(2) && printed.contains("confirm with --yes"), "{line}: {printed}");
    }
    assert_eq!(read(), current);
    let listed = run(folder.path(), &words("deadletters list --container letters"));
    assert_eq!(listed.1, Some(0), "{}", listed.0);
    assert_eq!(run(folder.path(), &words(&format!("{delete} --yes"))).1, Some(0));
}

/// clap drops a requirement if the required option conflicts with one that is given. Without the rules for that,
/// `publish --dry-run FILE` would publish.
#[test]
fn an_option_of_another_mode_is_refused_beside_any_option_of_this_one() {
    let folder = files();
    for line in [
        "publish --dry-run event.json",
        "publish --count 3 -f event.json",
        "publish --type a event.json",
        "publish --source a event.json",
        "publish --subject a event.json",
        "publish --id a event.json",
        "try -f s.yaml --handshake eventgrid --event event.json n/t/a",
        "try -f s.yaml --rate 3 --event event.json n/t/a",
        "try -f s.yaml --table x --sample n/t/a",
        "try -f s.yaml --stack x --print n/t/a",
        "try -f s.yaml --config . --print n/t/a",
        "try -f s.yaml --listen 127.0.0.1:0 --event event.json n/t/a",
        "try -f s.yaml --wait 1m --event event.json n/t/a",
        "try --to s3://x/ --event event.json n/t/a",
        "explain --topic shop/orders --outcome 503 s.yaml",
        "deadletters list --container letters --every 1s --full",
        "deadletters replay --container letters --skip-uncertain --name j",
    ] {
        let (printed, code) = run(folder.path(), &words(line));
        assert_eq!(code, Some(2), "{line}: {printed}");
        assert!(printed.contains("cannot be used with"), "{line}: {printed}");
    }
}

#[test]
fn an_error_of_the_command_line_shows_no_secret_of_an_address() {
    let folder = files();
    for line in [
        "check --to https://user:hunter2@host/x",
        "apply -f s.yaml --to=https://user:hunter2@host",
        "publish --ingress ttp//user:hunter2@host event.json",
        "publish --queue-url https//user:hunter2@host event.json",
        "deadletters replay --to-url https//user:hunter2@host",
        "destinations show ftp://user:hunter2@host?code=hunter2",
        "https://user:hunter2@host",
        "check --t https://host?code=hunter2",
    ] {
        let (printed, code) = run(folder.path(), &words(line));
        assert_eq!(code, Some(2), "{line}: {printed}");
        assert!(!printed.contains("hunter2"), "{line}: {printed}");
    }
    // Nor a character that moves the cursor.
    let (printed, _) = run(folder.path(), &["check", "--output", "a\u{1b}[2Jb"]);
    assert!(!printed.contains('\u{1b}') && printed.contains("invalid value"), "{printed}");
    let (printed, _) = run(folder.path(), &["deadletter", "list"]);
    assert!(printed.contains("'deadletters'"), "there is a suggestion: {printed}");
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

#[test]
fn without_a_region_or_credentials_the_error_says_which_to_set() {
    let folder = files();
    for (line, region, part) in [
        ("check --stack live", None, "AWS_REGION"),
        ("deadletters list --container s3://letters", None, "AWS_REGION"),
        ("deadletters list --container s3://letters", Some("eu-west-1"), "aws sso login"),
        ("check --stack live", Some("eu-west-1"), "aws sso login"),
    ] {
        let mut command = lastmile(folder.path(), &words(line));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
            command.env_remove(name);
        }
        command.env("HOME", folder.path()).env("AWS_EC2_METADATA_DISABLED", "true");
        command.envs(region.map(|region| ("AWS_REGION", region)));
        let printed = failed(&mut command, line);
        assert!(printed.contains(part), "{line} in {region:?}: {part} in {printed}");
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

#[test]
fn files_without_a_document_are_an_error_that_says_what_would_be_right() {
    let folder = files();
    let (printed, code) = run(folder.path(), &["check", "blank.yaml"]);
    assert_eq!(code, Some(1), "{printed}");
    for part in ["blank.yaml:1:1: error", "nothing but comments", "kind: Subscription"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let (printed, code) = run(folder.path(), &["check", "s.yaml", "blank.yaml"]);
    assert!(code == Some(0) && printed.contains("blank.yaml:1:1: warning"), "{printed}");
    let (printed, code) = run(folder.path(), &["check", "nothing"]);
    assert!(code == Some(2) && printed.contains("one that ends with .yaml"), "{printed}");
}
