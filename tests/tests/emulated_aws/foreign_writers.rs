//! Programs other than `lastmile` write topics as the manual shows, and `lastmile` reads them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lastmile_tests::snippets::{self, Snippet};
use lastmile_tests::writers::{Place, document, succeeded};
use serde_json::{Value, json};

use super::stack::ACCOUNT;
use super::{Deployment, on_deployment};

/// A bucket of its own: the topics of the page are topics of other tests.
const BUCKET: &str = "foreign-writers";

/// The example under this heading, for the bucket of the test.
fn example(heading: &str) -> Snippet {
    let mut snippet = snippets::under("reference/storage.md", heading);
    assert!(snippet.text.contains("CONFIG_BUCKET"), "{heading}");
    snippet.text = snippet.text.replace("CONFIG_BUCKET", BUCKET);
    snippet
}

/// The object of a topic with a subscription of this name.
fn object(name: &str) -> String {
    let spec = json!({"destination": {"url": format!("https://{name}.example.com/")}});
    json!({"v": 1, "subscriptions": {name: {"owner": "shell", "spec": spec}}}).to_string()
}

/// Makes the files that the example for the shell uploads.
fn make_files(folder: &Path) {
    let topics = folder.join("topics");
    fs::create_dir_all(topics.join("shop")).expect("a folder");
    fs::write(folder.join("orders.json"), object("by-cp")).expect("a file");
    fs::write(topics.join("shop/returns.json"), object("by-sync")).expect("a file");
    // The settings are excluded: these would refuse every secret.
    let settings = r#"{"v":1,"secretPolicies":{"shell":{"secrets":[]}}}"#;
    fs::write(topics.join("_settings.json"), settings).expect("a file");
}

/// The names of all subscriptions.
fn subscriptions(place: &Place) -> BTreeSet<String> {
    let listed = succeeded(place.command(&["subscriptions", "list", "shop", "--output", "json"]));
    let listed: Vec<Value> = serde_json::from_str(&listed).expect("a list");
    let name = |entry: &Value| entry["name"].as_str().expect("a name").to_owned();
    listed.iter().map(name).collect()
}

#[test]
fn what_the_aws_cli_python_and_node_write_is_read_and_none_loses_what_another_wrote() {
    on_deployment(|Deployment { stack, .. }| async move {
        stack.new_bucket(BUCKET).await;
        let place = stack.place(BUCKET, &ACCOUNT);
        let _ = succeeded(place.apply("account", &document("shop", "of-apply", 1)));
        let settings = stack.object(BUCKET, "subscriptions/_settings.json").await;

        let endpoint = stack.endpoint.clone();
        let ran = tokio::task::spawn_blocking(move || {
            let folder = tempfile::tempdir().expect("a folder");
            make_files(folder.path());
            let environment = [("AWS_ENDPOINT_URL", endpoint.as_str())];
            if !example("One writer").run_in(folder.path(), &environment) {
                return [false; 3];
            }
            // Both change one object at once.
            let run = |heading| example(heading).run(&environment);
            std::thread::scope(|scope| {
                let python = scope.spawn(|| run("Several writers, in Python"));
                let node = scope.spawn(|| run("Several writers, in Node"));
                [true, python.join().expect("Python ends"), node.join().expect("Node ends")]
            })
        });
        if ran.await.expect("the examples end") != [true; 3] {
            return;
        }
        let names = ["orders/audit", "orders/billing", "orders/by-cp", "returns/by-sync"];
        let names = names.map(|name| format!("shop/{name}"));
        assert_eq!(subscriptions(&place), BTreeSet::from(names));
        let _ = succeeded(place.command(&["check"]));
        let billing = succeeded(place.command(&["subscriptions", "get", "shop/orders/billing"]));
        assert!(billing.contains("https://billing.example.com/events"), "{billing}");
        assert_eq!(stack.object(BUCKET, "subscriptions/_settings.json").await, settings);
        // The owner of an entry changes it with `apply` later.
        let _ = succeeded(place.apply("provisioning", &document("shop", "billing", 2)));
    });
}
