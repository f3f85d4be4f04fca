//! Emptying the table loses what is known of destinations, and nothing else: topics, what waits,
//! and dead letters are elsewhere.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::console_live_server::subscription;
use crate::deployments::uri;
use crate::programs::{Running, exchange, lastmile, receiver, run, word};

pub(crate) const EVENT: &str =
    r#"{"specversion":"1.0","id":"order-1","source":"s","type":"order.created"}"#;
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// Longer than it takes to empty the table meanwhile.
const WAITS: &str = ", retry: {schedule: {kind: constant, delay: PT10S}}";

/// A subscriber that answers with these statuses in turn, and its address.
pub(crate) fn subscriber(folder: &Path, answers: &str) -> (Running, String) {
    let arguments = ["subscriber", "--port", "0", "--answer", answers];
    let mut subscriber = Running::start(lastmile(folder, &arguments));
    let url = word(&subscriber.line_with("listening"), "http://");
    (subscriber, url)
}

/// The output of a command that succeeds.
pub(crate) fn succeeded(folder: &Path, arguments: &[&str]) -> String {
    let (printed, code) = run(folder, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {printed}");
    printed
}

/// Calls an operation of the local AWS.
fn call(aws: &str, target: &str, body: &Value) -> Value {
    let headers = format!(
        "host: {aws}\r\nx-amz-target: {target}\r\ncontent-type: application/x-amz-json-1.0\r\n"
    );
    let answer = exchange(aws, "POST /", &headers, &body.to_string());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{target}: {answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Deletes every item of the table; returns how many there were.
fn empty_table(aws: &str) -> usize {
    let table = json!({ "TableName": "lastmile" });
    let scanned = call(aws, "DynamoDB_20120810.Scan", &table);
    let items = scanned["Items"].as_array().expect("a list");
    for item in items {
        let key = json!({ "pk": item["pk"], "sk": item["sk"] });
        let delete = json!({ "TableName": "lastmile", "Key": key });
        call(aws, "DynamoDB_20120810.DeleteItem", &delete);
    }
    assert_eq!(call(aws, "DynamoDB_20120810.Scan", &table)["Count"], 0);
    items.len()
}

/// Waits until so many deliveries wait for a while: for a minute at most.
fn wait_for_delayed(aws: &str, count: &str) {
    for _ in 0..1_200 {
        if delayed(aws) == count {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} and not {count}", delayed(aws));
}

fn delayed(aws: &str) -> String {
    let queue = format!("http://{aws}/000000000000/retry");
    let name = "ApproximateNumberOfMessagesDelayed";
    let asked = json!({ "QueueUrl": queue, "AttributeNames": [name] });
    let answer = call(aws, "AmazonSQS.GetQueueAttributes", &asked);
    answer["Attributes"][name].as_str().expect("a number").to_owned()
}

#[test]
fn emptying_the_table_loses_what_is_known_of_destinations_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let folder = folder.path();
    let (billing, received) = receiver(OK);
    let (mut crm, crm_url) = subscriber(folder, "503,200");
    let (mut stock, stock_url) = subscriber(folder, "400,200");
    let documents = [
        subscription("billing", &billing, "", ""),
        subscription("crm", &crm_url, "", WAITS),
        subscription("stock", &stock_url, "", ""),
    ];
    std::fs::write(folder.join("subscriptions.yaml"), documents.concat()).expect("a file");
    std::fs::write(folder.join("event.json"), EVENT).expect("a file");
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "--no-console"];
    let mut dev = Running::start(lastmile(folder, &arguments));
    let ready = dev.line_with("ready:");
    let aws = word(ready.rsplit(" on ").next().expect("an address"), "http://");
    let aws = aws.split('/').nth(2).expect("a host").to_owned();

    // Before any function has read the published changes.
    succeeded(folder, &["destinations", "disable", "shop/orders/billing"]);
    succeeded(folder, &["publish", "--to", ".", "--topic", "shop/orders", "event.json"]);
    crm.line_with("-> 503");
    stock.line_with("-> 400");
    dev.line_with("DestinationDisabled");
    let list = || succeeded(folder, &["destinations", "list"]);
    let show = || succeeded(folder, &["destinations", "show", "shop/orders/billing"]);
    let subscriptions = || {
        succeeded(
            folder,
            &["subscriptions", "list", "shop", "--to", &uri(&folder.join(".lastmile"))],
        )
    };
    let (listed, applied) = (list(), subscriptions());
    assert!(listed.contains("shop/orders/billing") && listed.contains("disabled"), "{listed}");
    assert!(show().contains("by an operator"), "{}", show());
    // The retry of crm.
    wait_for_delayed(&aws, "1");

    assert!(empty_table(&aws) >= 2, "the switch and its news");
    assert_eq!(list(), "all destinations are healthy according to the table\n");
    assert!(show().contains("healthy: no problem is recorded"), "{}", show());
    let enabled = succeeded(folder, &["destinations", "enable", "shop/orders/billing"]);
    assert!(enabled.contains("already enabled"), "{enabled}");
    assert_eq!(subscriptions(), applied);
    assert!(applied.contains("billing") && applied.contains("crm"), "{applied}");
    crm.line_with("-> 200");
    let letters = succeeded(folder, &["deadletters", "list"]);
    assert!(
        letters.contains("shop/orders/stock") && letters.contains("DestinationDisabled"),
        "{letters}"
    );
    // The queues of the `dev` in this folder, which has another port than 4566.
    let of_stock = ["--subscription", "shop/orders/stock"];
    succeeded(folder, &[&["deadletters", "replay", "--yes"][..], &of_stock].concat());
    stock.line_with("-> 200");
    assert!(received.try_recv().is_err(), "what is set aside waits for its replay");
}
