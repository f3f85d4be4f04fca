//! Subscription files checked against a deployed stack. CloudFormation is a server here that gives
//! every request the same response.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};

use super::programs::{deciding_receiver, findings};

const QUEUE: &str = "sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost";
const QUEUE_ARN: &str = "arn:aws:sqs:eu-west-1:123456789012:lost";

/// The bucket of the stack's subscriptions.
pub(crate) const CONFIG_BUCKET: &str = "own-config";

const OWN_QUEUES: [&str; 6] = ["Events", "Retry", "Slow", "Isolation", "DeadLetter", "LastResort"];

/// The response of CloudFormation about the stack `live`.
pub(crate) fn described(parameters: &[(&str, &str)]) -> String {
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

/// A server that gives every request this status and body; its address.
pub(crate) fn cloud_formation(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The test sees whether the response arrived.
            let _ = serve(stream, status, &body);
        }
    });
    address
}

fn serve(mut stream: TcpStream, status: &str, answer: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    assert!(
        String::from_utf8_lossy(&body).contains("Action=DescribeStacks"),
        "nothing else is requested"
    );
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

/// An S3 whose buckets have no objects; its address.
pub(crate) fn empty_bucket() -> String {
    let answer = |request: &str| {
        let (status, body) = if request.contains("list-type=2") {
            ("200 OK", "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
        } else if request.contains("?versions") || request.contains("&versions") {
            ("200 OK", "<ListVersionsResult></ListVersionsResult>")
        } else {
            ("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>")
        };
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    };
    deciding_receiver(answer).0
}

/// Runs the command line on a subscription with this in its spec, and a stack `live` with these
/// parameters.
fn run(spec: &str, parameters: &[(&str, &str)], arguments: &[&str]) -> (String, Option<i32>) {
    run_with(spec, &cloud_formation("200 OK", described(parameters)), arguments)
}

/// Runs the command line on a subscription with this in its spec, and CloudFormation at this
/// address.
fn run_with(spec: &str, endpoint: &str, arguments: &[&str]) -> (String, Option<i32>) {
    run_in(spec, endpoint, &empty_bucket(), arguments)
}

/// Runs it with S3 at this address.
fn run_in(spec: &str, endpoint: &str, s3: &str, arguments: &[&str]) -> (String, Option<i32>) {
    run_beside(spec, &[("CLOUDFORMATION", endpoint), ("STS", endpoint), ("S3", s3)], arguments)
}

/// Runs it with these services of AWS at these addresses.
pub(crate) fn run_beside(
    spec: &str,
    services: &[(&str, &str)],
    arguments: &[&str],
) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: billing}}\n\
         spec: {{{spec}}}\n"
    );
    std::fs::write(folder.path().join("s.yaml"), text).expect("the file can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder.path()).env("AWS_EC2_METADATA_DISABLED", "true");
    for (service, address) in services {
        command.env(format!("AWS_ENDPOINT_URL_{service}"), address);
    }
    command
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "eu-west-1");
    let Output { stdout, stderr, status } = command.output().expect("the program runs");
    let printed = if status.code() == Some(0) { stdout } else { [stdout, stderr].concat() };
    (String::from_utf8(printed).expect("the output is text"), status.code())
}

/// Checks the deployment of a stack `live` whose buckets are in the S3 at this address.
pub(crate) fn check_deployed(s3: &str) -> (String, Option<i32>) {
    let endpoint = cloud_formation("200 OK", described(&[]));
    run_in(
        "destination: {url: 'https://a.example.com/'}",
        &endpoint,
        s3,
        &["check", "--stack", "live"],
    )
}

/// The findings of `check` if it succeeds; otherwise everything that it prints.
fn check(spec: &str, parameters: &[(&str, &str)]) -> (String, Option<i32>) {
    let (printed, code) = run(spec, parameters, &["check", "s.yaml", "--stack", "live"]);
    if code == Some(0) { (findings(&printed), code) } else { (printed, code) }
}

fn with_sink(sink: &str) -> String {
    format!("destination: {{url: 'https://a.example.com/'}}, deadLetter: {{sink: '{sink}'}}")
}

#[test]
fn a_sink_that_the_stack_may_not_write_to_is_an_error_that_names_what_to_add() {
    let bucket_arn = "arn:aws:s3:::letters/shop/*";
    for (sink, extra, add) in [
        ("s3://letters/shop", "", bucket_arn),
        ("s3://letters/shop", "arn:aws:s3:::letters/other/*,arn:aws:sqs:*", bucket_arn),
        ("s3://letters", "arn:aws:s3:::letters", "arn:aws:s3:::letters/*"),
        (QUEUE, "arn:aws:s3:::*", QUEUE_ARN),
    ] {
        let (printed, code) = check(&with_sink(sink), &[("ExtraSinkArns", extra)]);
        let what = format!(
            "shop/orders/billing sends its dead letters to {sink}, where the stack live may not write; add {add} to the \
             parameter ExtraSinkArns of the stack"
        );
        let expected = format!("s.yaml:4:73: error: deadLetter.sink: {what}\n");
        assert!(code == Some(1) && printed.starts_with(&expected), "{sink} {extra}: {printed}");
        let arguments = ["apply", "-f", "s.yaml", "--stack", "live", "--yes"];
        let (printed, code) = run(&with_sink(sink), &[("ExtraSinkArns", extra)], &arguments);
        assert!(code == Some(1) && printed.ends_with(&expected), "{printed}");
    }
}

#[test]
fn a_sink_that_the_stack_may_write_to_is_no_finding() {
    for (sink, extra) in [
        ("s3://letters/shop", "arn:aws:s3:::letters/shop/*"),
        // Escaped as XML may be.
        ("s3://letters/shop", "arn:aws:sqs:&amp;,arn:aws:s3:::letters&#47;shop/*"),
        ("s3://letters/shop", "arn:aws:sqs:eu-west-1:123456789012:a, arn:aws:s3:::letters/*"),
        ("s3://letters", "arn:aws:s3:::letters/shop/orders/*"),
        ("s3://own-letters/apart", ""),
        (QUEUE, QUEUE_ARN),
        (QUEUE, "arn:aws:sqs:eu-west-1:123456789012:*"),
        ("https://lost.example.com/", ""),
    ] {
        assert_eq!(
            check(&with_sink(sink), &[("ExtraSinkArns", extra)]),
            (String::new(), Some(0)),
            "{sink} {extra}"
        );
    }
    // An older stack has no such parameter.
    assert_eq!(
        check("destination: {url: 'https://a.example.com/'}", &[]),
        (String::new(), Some(0))
    );
}

#[test]
fn a_queue_of_the_stack_itself_or_of_another_region_is_an_error_whatever_may_be_written() {
    let everything = [("ExtraSinkArns", "arn:aws:sqs:*")];
    let own = [
        "a queue of the stack live itself; its messages would be read as events or deliveries again",
    ];
    let elsewhere = [
        "which is not in eu-west-1, the region of live; functions only send to queues of their own region",
    ];
    let of = |host: &str, name: &str| format!("sqs://{host}/123456789012/{name}");
    let host = "sqs.eu-west-1.amazonaws.com";
    let mut cases = OWN_QUEUES.map(|queue| (of(host, &format!("live-{queue}")), own)).to_vec();
    cases.push((of("eu-west-1.queue.amazonaws.com", "live-Events"), own));
    cases.push((of("sqs.us-east-1.amazonaws.com", "live-Events"), elsewhere));
    cases.push((of("sqs.us-east-1.amazonaws.com", "lost"), elsewhere));
    for (sink, [why]) in cases {
        let (printed, code) = check(&with_sink(&sink), &everything);
        let expected = format!(
            "s.yaml:4:73: error: deadLetter.sink: shop/orders/billing sends its dead letters to {sink}, {why}"
        );
        assert!(code == Some(1) && printed.starts_with(&expected), "{sink}: {printed}");
    }
    assert_eq!(check(&with_sink(&of(host, "live-Lost")), &everything), (String::new(), Some(0)));
}

#[test]
fn a_queue_that_is_not_on_an_aws_host_is_a_warning() {
    let (printed, code) = check(&with_sink("sqs://127.0.0.1:4566/000000000000/lost"), &[]);
    let expected = "s.yaml:4:73: warning: deadLetter.sink: sqs://127.0.0.1:4566/000000000000/lost is not an AWS host: \
                    whether the stack may send there cannot be checked\n";
    assert_eq!((printed.as_str(), code), (expected, Some(0)));
}

#[test]
fn what_the_stack_allows_decides_about_private_addresses() {
    let refused = |host: &str| {
        format!(
            "{host}; that is refused, as AllowPrivateDestinations of the stack live does not name it\n"
        )
    };
    for (allowed, expected) in [
        (
            "",
            [
                refused("s.yaml:4:27: warning: url: shop/orders/billing sends to 10.0.0.1, which is not a public address"),
                refused("s.yaml:4:68: warning: deadLetter.sink: shop/orders/billing sends dead letters to lost.internal without TLS"),
            ]
            .concat(),
        ),
        (
            "lost.internal",
            refused("s.yaml:4:27: warning: url: shop/orders/billing sends to 10.0.0.1, which is not a public address"),
        ),
        ("lost.internal,10.0.0.0/8", String::new()),
    ] {
        let spec = "destination: {url: 'https://10.0.0.1/'}, deadLetter: {sink: 'http://lost.internal/in?code=hush'}";
        assert_eq!(check(spec, &[("AllowPrivateDestinations", allowed)]), (expected, Some(0)), "{allowed}");
    }
    let (printed, code) =
        check(&with_sink("https://a/"), &[("AllowPrivateDestinations", "not a host")]);
    assert!(
        code == Some(1)
            && printed.contains("the stack live has an invalid AllowPrivateDestinations"),
        "{printed}"
    );
}

#[test]
fn requests_that_the_stack_cannot_sign_are_told() {
    let spec = "destination: {url: 'https://a.example.com/', auth: {sigv4: {service: lambda, region: eu-west-1}}}";
    let (printed, code) = check(spec, &[("InvokeRoleArn", "")]);
    let expected = "warning: auth: shop/orders/billing has requests signed, but the stack live has no InvokeRoleArn: its \
                    attempts are aborted\n";
    assert!(printed.starts_with("s.yaml:4:") && printed.ends_with(expected), "{printed}");
    assert_eq!(code, Some(0));
    let role = "arn:aws:iam::123456789012:role/invoke";
    assert_eq!(check(spec, &[("InvokeRoleArn", role)]), (String::new(), Some(0)));
}

#[test]
fn tokens_that_the_stack_cannot_have_are_told() {
    let spec =
        "destination: {url: 'https://a.example.com/', auth: {awsIdentity: {audience: them}}}";
    // The server has no answer of STS: what it says then is told too.
    for (audiences, is_told) in [("", true), ("others,their", true), ("others, them", false)] {
        let (printed, code) = check(spec, &[("IdentityAudiences", audiences)]);
        let told = "shows a token for them, which IdentityAudiences of the stack live does not name: its attempts are \
                    aborted\n";
        assert_eq!((printed.contains(told), code), (is_told, Some(0)), "{printed}");
        let asked = "auth: shop/orders/billing shows a token of AWS; asked for with your credentials: no token for them: ";
        assert!(printed.contains(asked), "{printed}");
    }
}

#[test]
fn an_error_of_cloudformation_is_reported_by_its_message() {
    let body = "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code>\
                <Message>Stack with id live does not exist</Message></Error></ErrorResponse>";
    let endpoint = cloud_formation("400 Bad Request", body.to_owned());
    let spec = "destination: {url: 'https://a.example.com/'}";
    let (printed, code) = run_with(spec, &endpoint, &["check", "s.yaml", "--stack", "live"]);
    let expected = "lastmile: the stack live cannot be read: ValidationError: Stack with id live does not exist\n  ";
    assert!(printed.starts_with(expected) && printed.contains("AWS_REGION"), "{printed}");
    assert_eq!(code, Some(1), "{printed}");
}
