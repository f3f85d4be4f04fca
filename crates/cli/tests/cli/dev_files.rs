//! `lastmile dev -f`: which files it reads, and what becomes of an entry that one of them no longer
//! has.

use std::path::Path;

use crate::deployments::uri;
use crate::programs::{Running, exchange, lastmile, receiver, run, save, word};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;

fn document(topic: &str, name: &str, url: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
         spec: {{destination: {{url: \"{url}{name}\"}}}}\n"
    )
}

/// Starts it with these options; the address of its ingress as `host:port`.
fn dev(folder: &Path, options: &[&str]) -> (Running, String) {
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "--no-console"];
    let mut dev = Running::start(lastmile(folder, &[&arguments[..], options].concat()));
    let ingress = word(&dev.line_with("ready:"), "http://");
    let ingress = ingress.split('/').nth(2).expect("a host").to_owned();
    (dev, ingress)
}

/// Publishes an event to a topic; the status of the answer.
fn publish(ingress: &str, topic: &str) -> String {
    let headers = format!("host: {ingress}\r\ncontent-type: application/cloudevents+json\r\n");
    let answer = exchange(ingress, &format!("POST /topics/{topic}"), &headers, EVENT);
    answer.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn two_files_and_a_folder_are_read_together_and_again_at_each_save() {
    let folder = tempfile::tempdir().expect("a folder");
    let (url, received) = receiver(OK);
    let write = |name: &str, text: &str| save(&folder.path().join(name), text);
    std::fs::create_dir_all(folder.path().join("more/below")).expect("a folder");
    write("one.yaml", &document("orders", "one", &url));
    write("two.yaml", &document("orders", "two", &url));
    write("more/below/three.yaml", &document("others", "three", &url));
    let (mut dev, ingress) = dev(folder.path(), &["-f", "one.yaml", "two.yaml", "-f", "more"]);
    dev.line_with("3 subscriptions from one.yaml, two.yaml, more");
    let paths = |count: usize| {
        let next = || received.recv_timeout(std::time::Duration::from_secs(60));
        let path = |request: String| request.split(' ').nth(1).map(str::to_owned);
        let mut paths: Vec<String> =
            (0..count).filter_map(|_| path(next().expect("a request"))).collect();
        paths.sort();
        paths
    };
    assert_eq!(publish(&ingress, "shop/orders"), "202");
    assert_eq!(publish(&ingress, "shop/others"), "202");
    assert_eq!(paths(3), ["/one", "/three", "/two"]);

    // An entry that a file no longer has is removed, as are those of a file that is no longer
    // there.
    write("two.yaml", &document("orders", "four", &url));
    dev.line_with("reloaded: 3 subscriptions, 2 changed");
    assert_eq!(publish(&ingress, "shop/orders"), "202");
    assert_eq!(paths(2), ["/four", "/one"]);
    write("more/below/five.yaml", &document("orders", "five", &url));
    std::fs::remove_file(folder.path().join("more/below/three.yaml")).expect("it was there");
    dev.line_with("reloaded: 3 subscriptions");
    assert_eq!(publish(&ingress, "shop/others"), "404", "the topic is gone");
    assert_eq!(publish(&ingress, "shop/orders"), "202");
    assert_eq!(paths(3), ["/five", "/four", "/one"]);
    assert!(received.try_recv().is_err());
}

#[test]
fn what_was_removed_from_a_file_between_two_runs_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |text: &str| save(&folder.path().join("subscriptions.yaml"), text);
    let [a, b] = ["a", "b"].map(|name| document("orders", name, "http://127.0.0.1:1/"));
    write(&[a.clone(), b].join("---\n"));
    let listed = || {
        let data = folder.path().join(".lastmile");
        run(folder.path(), &["subscriptions", "list", "shop", "--to", &uri(&data)]).0
    };
    let (running, _) = dev(folder.path(), &[]);
    assert!(listed().contains("shop/orders/a") && listed().contains("shop/orders/b"));
    drop(running);
    write(&a);
    let (mut running, _) = dev(folder.path(), &[]);
    running.line_with("1 subscription from subscriptions.yaml");
    assert!(listed().contains("shop/orders/a") && !listed().contains("shop/orders/b"));
}

#[test]
fn files_with_an_error_are_shown_and_used_once_they_are_mended() {
    let folder = tempfile::tempdir().expect("a folder");
    let (url, received) = receiver(OK);
    let good = document("orders", "a", &url);
    let file = folder.path().join("subscriptions.yaml");
    save(&file, &good.replace("destination:", "destinationn:"));
    let (mut dev, ingress) = dev(folder.path(), &[]);
    dev.line_with("subscriptions.yaml:4:");
    save(&file, &good);
    dev.line_with("reloaded: 1 subscription");
    assert_eq!(publish(&ingress, "shop/orders"), "202");
    received.recv_timeout(std::time::Duration::from_secs(60)).expect("a request");
}

#[test]
fn a_file_in_utf_16_is_read_and_one_that_is_no_text_is_named_at_its_save() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = document("orders", "a", "http://127.0.0.1:1/");
    let file = folder.path().join("subscriptions.yaml");
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&file, utf_16).expect("a file");
    let (mut dev, _) = dev(folder.path(), &[]);
    dev.line_with("1 subscription from subscriptions.yaml");
    std::fs::write(&file, [text.as_bytes(), b"# caf\xe9\n"].concat()).expect("a file");
    let saved = dev.line_with("not reloaded");
    assert!(saved.contains("line 5 is not UTF-8 text: it contains the byte 0xE9"), "{saved}");
}

#[test]
fn without_files_it_states_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let (printed, code) = run(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]);
    assert_eq!(code, Some(2), "{printed}");
    for part in ["subscriptions.yaml does not exist in this folder", "-f FILE"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!folder.path().join(".lastmile").exists(), "{printed}");
    // The commands that it names work.
    assert!(printed.contains("lastmile demo, then lastmile dev -f .lastmile/subscriptions.yaml"));
    let (printed, code) = run(folder.path(), &["demo", "--port", "0"]);
    assert_eq!(code, Some(0), "{printed}");
    let (mut dev, _) = dev(folder.path(), &["-f", ".lastmile/subscriptions.yaml"]);
    dev.line_with("subscriptions from .lastmile/subscriptions.yaml");
}
