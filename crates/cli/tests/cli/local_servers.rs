//! Servers on this machine are closed to web pages and open to programs, with or without a proxy.

use std::path::Path;
use std::process::Command;

use crate::programs::{Running, exchange, lastmile, printed, receiver, word};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn subscriptions(folder: &Path, url: &str) {
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"{url}\"}}}}\n"
    );
    std::fs::write(folder.join("subscriptions.yaml"), document).expect("a file can be written");
    std::fs::write(folder.join("event.json"), EVENT).expect("a file can be written");
}

/// The application, and the addresses of its ingress and its AWS, as `host:port`.
fn dev(folder: &Path, proxy: Option<&str>) -> (Running, String, String) {
    let mut command = lastmile(folder, &["dev", "--port", "0", "--aws-port", "0"]);
    proxy.into_iter().for_each(|proxy| use_proxy(&mut command, proxy));
    let mut dev = Running::start(command);
    let ready = dev.line_with("ready:");
    let ingress = word(&ready, "http://");
    let aws = word(ready.rsplit(" on ").next().expect("an address"), "http://");
    let host = |url: &str| url.split('/').nth(2).expect("a host").to_owned();
    let (ingress, aws) = (host(&ingress), host(&aws));
    (dev, ingress, aws)
}

/// Sets every variable of proxies, and none of exceptions.
fn use_proxy(command: &mut Command, proxy: &str) {
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, proxy).env(name.to_lowercase(), proxy);
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
}

/// Sends a request as rebound names and foreign pages do: no route may answer it.
fn assert_guarded(address: &str, line: &str, headers: &str, body: &str) {
    let port = address.rsplit(':').next().expect("a port");
    for more in [
        format!("host: rebound.example.com:{port}\r\n"),
        format!("host: {address}.example.com\r\n"),
        format!("host: {address}\r\nhost: a.example.com\r\n"),
    ] {
        let answer = exchange(address, line, &format!("{more}{headers}"), body);
        assert!(answer.starts_with("HTTP/1.1 421"), "{line} {more}: {answer}");
    }
    for more in [
        "origin: https://a.example.com\r\n",
        "origin: http://localhost:3000\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
    ] {
        let answer = exchange(address, line, &format!("host: {address}\r\n{more}{headers}"), body);
        assert!(answer.starts_with("HTTP/1.1 403"), "{line} {more}: {answer}");
    }
}

#[test]
fn the_local_aws_and_the_ingress_do_nothing_for_a_web_page() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    subscriptions(folder.path(), &url);
    let (_dev, ingress, aws) = dev(folder.path(), None);
    let letter = folder.path().join(".lastmile/s3/dead-letters/n/letter.json");
    std::fs::create_dir_all(letter.parent().expect("a folder")).expect("a folder can be made");
    std::fs::write(&letter, "{}").expect("a file can be written");

    let path = "/dead-letters/n/letter.json";
    assert_guarded(&aws, &format!("DELETE {path}"), "", "");
    assert_guarded(&aws, &format!("GET {path}"), "", "");
    assert_guarded(&aws, "PUT /config/subscriptions/_settings.json", "", "a: b");
    let purge =
        "x-amz-target: AmazonSQS.PurgeQueue\r\ncontent-type: application/x-amz-json-1.0\r\n";
    let queue = format!(r#"{{"QueueUrl":"http://{aws}/000000000000/retry"}}"#);
    assert_guarded(&aws, "POST /", purge, &queue);
    assert!(letter.is_file(), "nothing was deleted");
    assert!(!folder.path().join(".lastmile/s3/config/subscriptions/_settings.json").exists());
    let accepted = exchange(&aws, "POST /", &format!("host: {aws}\r\n{purge}"), &queue);
    assert!(accepted.starts_with("HTTP/1.1 200"), "{accepted}");
    let localhost = aws.replace("127.0.0.1", "localhost");
    let deleted = exchange(&aws, &format!("DELETE {path}"), &format!("host: {localhost}\r\n"), "");
    assert!(deleted.starts_with("HTTP/1.1 204") && !letter.exists(), "{deleted}");

    let kind = "content-type: application/cloudevents+json\r\n";
    assert_guarded(&ingress, "POST /topics/shop/orders", kind, EVENT);
    assert!(received.try_recv().is_err(), "nothing was published");
    let accepted = exchange(
        &ingress,
        "POST /topics/shop/orders",
        &format!("host: {ingress}\r\n{kind}"),
        EVENT,
    );
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    let refused = exchange(&ingress, "GET /", "host: a.example.com\r\n", "");
    assert!(refused.contains("127.0.0.1, localhost, [::1]"), "{refused}");
}

/// As for other containers: by a key, for the names that were given, and nothing else is opened.
#[test]
fn an_ingress_for_other_machines_needs_a_key_and_keeps_its_guard() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    subscriptions(folder.path(), "http://127.0.0.1:1/");
    let ports = ["dev", "--port", "0", "--aws-port", "0", "--no-console"];
    let open = [&ports[..], &["--listen", "0.0.0.0"]].concat();
    let refused = lastmile(folder.path(), &open).output().expect("the program runs");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("add --key"), "{said}");

    let named = ["--host", "lastmile", "--key", "env:PUBLISH_KEY"];
    let mut command = lastmile(folder.path(), &[&open[..], &named].concat());
    command.env("PUBLISH_KEY", "k3y-of-publishers");
    let mut dev = Running::start(command);
    dev.line_with("WARNING: the ingress listens on 0.0.0.0");
    let ready = dev.line_with("ready:");
    let ingress = word(&ready, "http://127.0.0.1:");
    let ingress = ingress.split('/').nth(2).expect("a host");
    let aws = word(ready.rsplit(" on ").next().expect("an address"), "http://");
    assert!(aws.starts_with("http://127.0.0.1:"), "{ready}");
    let kind =
        "content-type: application/cloudevents+json\r\nauthorization: Bearer k3y-of-publishers\r\n";
    let line = "POST /topics/shop/orders";
    assert_guarded(ingress, line, kind, EVENT);
    for host in [ingress, "lastmile:8080", "10.1.2.3:8080"] {
        let accepted = exchange(ingress, line, &format!("host: {host}\r\n{kind}"), EVENT);
        assert!(accepted.starts_with("HTTP/1.1 202"), "{host}: {accepted}");
    }
    let keyless = "host: lastmile\r\ncontent-type: application/cloudevents+json\r\n";
    let refused = exchange(ingress, line, keyless, EVENT);
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
}

#[test]
fn the_ingress_says_how_large_a_body_is_and_may_be() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    subscriptions(folder.path(), "http://127.0.0.1:1/");
    let (_dev, ingress, _aws) = dev(folder.path(), None);
    let headers = format!("host: {ingress}\r\ncontent-type: application/json\r\n");
    let event = "x".repeat(1_048_577);
    let refused = exchange(&ingress, "POST /topics/shop/orders", &headers, &event);
    let expected = r#"{"error":"the body has 1048577 bytes; the limit is 1048576 bytes (1 MiB), as for an SQS message"}"#;
    assert!(refused.starts_with("HTTP/1.1 413") && refused.ends_with(expected), "{refused}");
}

#[test]
fn the_sample_subscriber_answers_receivers_and_tunnels_that_were_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let arguments = ["subscriber", "--port", "0", "--host", "hooks.example.com"];
    let mut subscriber = Running::start(lastmile(folder.path(), &arguments));
    let url = word(&subscriber.line_with("listening"), "http://");
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_guarded(&address, "POST /in", "", "foreign");
    for host in [address.as_str(), "localhost", "hooks.example.com"] {
        let answer = exchange(&address, "POST /in", &format!("host: {host}\r\n"), host);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        subscriber.line_with(host);
    }
    assert!(!subscriber.seen().contains("foreign"), "{}", subscriber.seen());
}

#[test]
fn the_server_of_confirmations_answers_for_its_public_name_and_this_machine_only() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = receiver(OK);
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: a}}\n\
         spec: {{destination: {{url: \"{url}\", consent: {{handshake: eventgrid}}}}}}\n"
    );
    std::fs::write(folder.path().join("s.yaml"), document).expect("a file can be written");
    let public = "https://confirm.example.com/in";
    let ask = ["try", "--consent", "-f", "s.yaml", "--listen", "127.0.0.1:0"];
    let arguments = [&ask[..], &["--public-url", public]].concat();
    let mut running = Running::start(lastmile(folder.path(), &arguments));
    let address = word(&running.line_with("listening on"), "127.0.0.1:");
    let path = word(&running.line_with("pending; confirm"), public);
    let path = path.strip_prefix("https://confirm.example.com").expect("the public URL");
    let confirm = |host: &str| exchange(&address, &format!("GET {path}"), host, "");
    assert!(confirm("host: rebound.example.com\r\n").starts_with("HTTP/1.1 421"));
    // A link in a mail or in another site: knowing the URL is the permission.
    let linked = confirm("host: confirm.example.com\r\nsec-fetch-site: cross-site\r\n");
    assert!(linked.starts_with("HTTP/1.1 200"), "{linked}");
    running.line_with("1 of 1 endpoints have consented");
}

#[test]
fn requests_to_this_machine_use_no_proxy() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    subscriptions(folder.path(), &url);
    let (proxy, proxied) = receiver(OK);
    let (mut dev, ingress, aws) = dev(folder.path(), Some(&proxy));
    let run_with = |endpoint: (&str, &str), arguments: &[&str]| {
        let mut command = lastmile(folder.path(), arguments);
        use_proxy(&mut command, &proxy);
        let settings = [
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            endpoint,
        ];
        command.envs(settings);
        printed(&command.output().expect("the program runs"))
    };
    let endpoint = format!("http://{aws}");
    let run = |arguments: &[&str]| run_with(("AWS_ENDPOINT_URL", &endpoint), arguments);
    let queue = format!("http://{aws}/000000000000/events");
    let topic = ["--topic", "shop/orders"];
    let by_queue =
        run(&[&["publish", "--queue-url", &queue], &topic[..], &["event.json"]].concat());
    assert_eq!(by_queue, ("1 accepted, 0 refused\n".to_owned(), Some(0)));
    dev.line_with("200 OK");
    let to = format!("http://{ingress}/topics/shop/orders");
    let by_ingress = run(&["publish", "--ingress", &to, "event.json"]);
    assert_eq!(by_ingress, ("1 accepted, 0 refused\n".to_owned(), Some(0)));
    dev.line_with("200 OK");
    // A bucket is a part of the path here: no name of this machine has it in front.
    let named = endpoint.replace("127.0.0.1", "localhost");
    for endpoint in [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ENDPOINT_URL", &*named),
        ("AWS_ENDPOINT_URL_S3", &*named),
    ] {
        let list = ["deadletters", "list", "--container", "s3://dead-letters"];
        let (listed, code) = run_with(endpoint, &list);
        assert!(code == Some(1) && listed.contains("nothing found in"), "{endpoint:?}: {listed}");
    }
    assert_eq!(received.try_iter().count(), 2);
    assert_eq!(proxied.try_iter().collect::<Vec<_>>(), Vec::<String>::new());
}
