//! `lastmile trace --stack` with a CloudWatch Logs that is a script here: the price, the question
//! before a large query, and what the stack does not log. `tests/tests/emulated_aws/trace.rs` has
//! queries of a log that functions wrote.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

use crate::programs::{deciding_receiver, lastmile, printed};

/// Two lines that the functions wrote about one delivery on the emulated AWS.
const LINES: [&str; 2] = [
    r#"{"timestamp":"TIME1Z","level":"INFO","message":"delivery.attempted","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/busy","delivery_id":"6c93bfa1-6020-5b2f-9966-f474a78b25a5","leg":"event","attempt":1,"outcome":"Busy","status":503,"verdict":"retry","wait_ms":2000,"duration_ms":10}"#,
    r#"{"timestamp":"TIME2Z","level":"INFO","message":"delivery.delivered","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/busy","delivery_id":"6c93bfa1-6020-5b2f-9966-f474a78b25a5","attempt":2,"status":200,"duration_ms":5,"age_ms":2689}"#,
];
const DAY: &str = "2026-11-28";

/// A stack whose functions log as this parameter says, with so many bytes in each log group.
fn aws(log_level: &'static str, stored_bytes: u64) -> (String, Receiver<String>) {
    deciding_receiver(move |request| {
        let asks_for = |operation: &str| request.contains(&format!("Logs_20140328.{operation}"));
        let body = if asks_for("DescribeLogGroups") {
            let name =
                if request.contains("live-dispatch") { "live-dispatch" } else { "live-deadletter" };
            json!({"logGroups": [{"logGroupName": name, "creationTime": 0, "storedBytes": stored_bytes}]})
                .to_string()
        } else if asks_for("StartQuery") {
            json!({"queryId": "1"}).to_string()
        } else if asks_for("GetQueryResults") {
            json!({"status": "Complete", "results": rows()}).to_string()
        } else if request.contains("DescribeStacks") {
            described(log_level)
        } else {
            // S3: an empty list.
            "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>".to_owned()
        };
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    })
}

fn rows() -> Vec<Value> {
    let times = [("TIME1", "04:07:59.622"), ("TIME2", "04:08:02.198")];
    let rows = LINES.iter().zip(times).map(|(line, (mark, time))| {
        let line = line.replace(mark, &format!("{DAY}T{time}0000"));
        json!([{"field": "@timestamp", "value": format!("{DAY} {time}")}, {"field": "@message", "value": line}])
    });
    rows.collect()
}

fn described(log_level: &str) -> String {
    let output = |(key, value): (&str, &str)| {
        format!("<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>")
    };
    let outputs = [
        ("DispatchLogGroupName", "live-dispatch"),
        ("DeadLetterLogGroupName", "live-deadletter"),
        ("DeadLetterBucketName", "own-letters"),
    ];
    let outputs = outputs.map(output).concat();
    format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>live</StackName>\
         <StackId>arn:aws:cloudformation:eu-west-1:123456789012:stack/live/1</StackId><Parameters><member>\
         <ParameterKey>LogLevel</ParameterKey><ParameterValue>{log_level}</ParameterValue></member></Parameters>\
         <Outputs>{outputs}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
    )
}

fn trace(address: &str, more: &[&str]) -> Command {
    let arguments =
        ["trace", "told-1", "--stack", "live", "--since", DAY, "--until", "2026-11-28T12:00:00Z"];
    let mut command = lastmile(Path::new("."), &[&arguments[..], more].concat());
    command.stdin(Stdio::null()).env_remove("AWS_PROFILE").envs([
        ("AWS_ENDPOINT_URL", address),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("NO_PROXY", "127.0.0.1"),
    ]);
    command
}

fn run(address: &str, more: &[&str]) -> (String, Option<i32>) {
    printed(&trace(address, more).output().expect("the program runs"))
}

#[test]
fn a_small_query_is_made_at_once_and_its_price_is_printed() {
    let (address, requests) = aws("info", 1_000_000);
    let (said, code) = run(&address, &[]);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "shop/told/busy  event told-1  delivered by attempt 2, 2 s after publication\n",
        "503 Service Unavailable (Busy) in 10 ms  retry in 2 s\n",
        "CloudWatch Logs Insights: at most four queries, each scanning about ",
        "at most 2.0 MB (less than $0.01), the size of the log groups",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("LogLevel"), "{said}");
    let query = requests.try_iter().find(|request| request.contains("StartQuery"));
    let query = query.expect("a query");
    let groups = r#"["live-dispatch","live-deadletter"]"#;
    for part in [groups, "filter @message like", "sort @timestamp asc"] {
        assert!(query.contains(part), "{part}\n{query}");
    }
}

#[test]
fn a_large_query_is_asked_about_and_nothing_is_read_where_nobody_can_be_asked() {
    // As if lines were written since 1970: 500 PB in a good half century are more than 100 GB in a
    // quarter of a day.
    let (address, requests) = aws("info", 500_000_000_000_000_000);
    let (said, code) = run(&address, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("confirm with --yes") && said.contains("TB of log lines ($"), "{said}");
    assert!(!requests.try_iter().any(|request| request.contains("StartQuery")), "{said}");
    let (said, code) = run(&address, &["--yes"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_the_stack_does_not_log_is_said_and_is_in_the_json() {
    let (address, _requests) = aws("failures", 1_000);
    let output = trace(&address, &["--output", "json"]).output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = "LogLevel=failures: deliveries that succeeded at the first attempt are not logged, \
                so they are not shown";
    assert!(errors.contains(said), "{errors}");
    let trace: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(trace["not_logged"], said);
    assert_eq!(trace["deliveries"][0]["end"], "delivered");
    assert_eq!(trace["deliveries"][0]["steps"][0]["text"], "503 Service Unavailable (Busy)");
}
