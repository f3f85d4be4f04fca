//! The sample of a topic: `check` renders the templates of its subscriptions with it, and `try` sends it.

use std::path::Path;

use crate::programs::{lastmile, printed};

/// A topic with a sample, and subscriptions with templates for it.
const FILE: &str = r#"apiVersion: lastmile.dev/v1
kind: Topic
metadata: {namespace: shop, name: orders}
spec: {sample: {specversion: "1.0", id: "1", source: /s, type: order.created, data: {total: 7, name: Zoe}}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: right}
spec: {destination: {url: "https://a.example.com/in", body: {of: "{{ event.data.total }}", key: "{{ secret('env:KEY') }}"}}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: wrong-body}
spec:
  destination:
    url: https://a.example.com/in
    body: {a: [1, {b: "{{ event.data.totl }}"}]}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: wrong-query}
spec:
  destination:
    url: https://a.example.com/in
    query: {q: "{{ event.data.name + 1 }}"}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: other}
spec: {filter: {exact: {type: order.failed}}, destination: {url: "https://a.example.com/in", body: "{{ event.data.reason }}"}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: unsampled, name: free}
spec: {destination: {url: "https://a.example.com/in", body: "{{ event.data.reason }}"}}
"#;

fn run(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = lastmile(folder, arguments).output().expect("the program runs");
    printed(&output)
}

#[test]
fn check_names_file_field_place_and_expression_of_what_cannot_be_rendered() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str| {
        std::fs::write(folder.path().join("s.yaml"), text).expect("a file");
        run(folder.path(), &["check", "s.yaml"])
    };
    let (text, code) = check(FILE);
    let errors: Vec<&str> = text.lines().filter(|line| line.contains(": error: ")).collect();
    let expected = [
        "s.yaml:17:11: error: body: shop/orders/wrong-body: the sample of its topic cannot be sent: \
         destination.body.a[1].b: `{{ event.data.totl }}`: ",
        "s.yaml:25:12: error: query: shop/orders/wrong-query: the sample of its topic cannot be sent: \
         destination.query.q: `{{ event.data.name + 1 }}`: ",
    ];
    assert_eq!((errors.len(), code), (2, Some(1)), "{text}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
    }
    let right = FILE.replace("totl", "total").replace("event.data.name + 1", "event.data.name");
    let (text, code) = check(&right);
    assert_eq!((text.contains(": error: "), code), (false, Some(0)), "{text}");
    let (text, code) = check(&right.replace("spec: {sample", "spec: {input: eventgrid, sample"));
    let malformed = "the sample of shop/orders is no event of it: ";
    assert!(text.contains(malformed) && code == Some(1), "{text}");
    let long = right.replace("name: Zoe", &format!("name: {}", "x".repeat(17_000)));
    let (text, code) = check(&long);
    assert!(text.contains("spec.sample: at most 16384 bytes as JSON") && code == Some(1), "{text}");
}

#[test]
fn try_sends_the_sample_of_the_topic() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("s.yaml"), FILE.replace("secret('env:KEY')", "1"))
        .expect("a file");
    let (text, code) = run(folder.path(), &["try", "-f", "s.yaml", "shop/orders/right", "--print"]);
    assert!(text.contains(r#"{"key":1,"of":7}"#) && code == Some(0), "{text}");
}
