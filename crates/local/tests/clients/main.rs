//! The local AWS, tested with the real AWS clients.

mod mapping;
mod objects;
mod queues;

use std::path::Path;

use local::aws::{LocalAws, LocalAwsConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A local AWS, its clients, and the folder of its objects.
struct Started {
    aws: LocalAws,
    sqs: aws_sdk_sqs::Client,
    s3: aws_sdk_s3::Client,
    folder: tempfile::TempDir,
}

/// Starts one on a free port with this visibility timeout.
async fn start(visibility_timeout_seconds: u32) -> Started {
    let folder = tempfile::tempdir().expect("a folder");
    start_in(folder, |path| {
        LocalAwsConfig::of_lastmile(0, path.to_owned(), visibility_timeout_seconds)
    })
    .await
}

async fn start_in(
    folder: tempfile::TempDir,
    config: impl FnOnce(&Path) -> LocalAwsConfig,
) -> Started {
    let aws = LocalAws::start(config(folder.path())).await.expect("a free port");
    let (sqs, s3) = (sqs_client(&aws.endpoint()), s3_client(&aws.endpoint()));
    Started { aws, sqs, s3, folder }
}

fn sqs_client(endpoint: &str) -> aws_sdk_sqs::Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
        .region(aws_sdk_sqs::config::Region::new("eu-west-9"))
        .credentials_provider(aws_sdk_sqs::config::Credentials::new(
            "any", "thing", None, None, "test",
        ))
        .endpoint_url(endpoint)
        .build();
    aws_sdk_sqs::Client::from_conf(config)
}

fn s3_client(endpoint: &str) -> aws_sdk_s3::Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
        .region(aws_sdk_s3::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_s3::config::Credentials::new(
            "any", "thing", None, None, "test",
        ))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

#[tokio::test]
async fn an_occupied_port_is_named() {
    let first = start(30).await;
    let port: u16 =
        first.aws.endpoint().rsplit(':').next().expect("a port").parse().expect("a number");
    let config = LocalAwsConfig::of_lastmile(port, first.folder.path().to_owned(), 30);
    let error = LocalAws::start(config).await.expect_err("the port is taken");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    first.aws.stop().await;
}

#[tokio::test]
async fn a_stopped_one_frees_its_port_and_keeps_its_objects() {
    let first = start(30).await;
    let port: u16 =
        first.aws.endpoint().rsplit(':').next().expect("a port").parse().expect("a number");
    first.s3.put_object().bucket("config").key("kept").send().await.expect("a put");
    first.aws.stop().await;
    let restarted =
        start_in(first.folder, |path| LocalAwsConfig::of_lastmile(port, path.to_owned(), 30)).await;
    restarted.s3.head_object().bucket("config").key("kept").send().await.expect("the object");
    restarted.aws.stop().await;
}

/// Sends raw bytes and returns the whole response.
async fn exchange(started: &Started, request: &str) -> String {
    let address = started.aws.endpoint().replace("http://", "");
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn a_client_of_the_query_protocol_gets_an_error_that_asks_to_update() {
    let started = start(30).await;
    let form = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\n\
                content-length: 17\r\n\r\nAction=ListQueues";
    let query = "GET /?Action=ListQueues HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    for request in [form, query] {
        let answer = exchange(&started, request).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("JSON protocol"), "{answer}");
    }
    started.aws.stop().await;
}

#[tokio::test]
async fn a_path_that_would_leave_the_folder_is_refused() {
    let started = start(30).await;
    std::fs::write(started.folder.path().join("secret"), "s3cr3t").expect("a file");
    std::fs::create_dir(started.folder.path().join(".hidden")).expect("a folder");
    std::fs::write(started.folder.path().join(".hidden/x"), "s3cr3t").expect("a file");
    for path in [
        "/config/../secret",
        "/config/..%2fsecret",
        "/config/%2e%2e/secret",
        "/.hidden/x",
        "/../secret",
    ] {
        let answer = exchange(
            &started,
            &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains("s3cr3t"), "{path}: {answer}");
    }
    started.aws.stop().await;
}
