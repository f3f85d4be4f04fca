//! Commands that look at the subscriptions of a deployment: `check`, `explain`, `destinations` and `try --consent`.

use local::aws::{LocalAws, LocalAwsConfig};

use crate::check_stack::{CONFIG_BUCKET, check_deployed};
use crate::deployments::{apply, object, subscription, uri, write_entry};
use crate::programs::run;
use crate::sample_destinations::Known;

#[test]
fn a_deployment_is_checked_for_what_no_owner_sees_in_files_of_his_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = uri(folder.path());
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("nothing is there yet: write it with lastmile apply"), "{printed}");

    let limited = |name, rate: u32| {
        let limited = subscription(name, &format!(", maxPerSecond: {rate}"));
        limited.replace(&format!("https://{name}.example.com"), "https://one.example.com")
    };
    apply(folder.path(), "a", &[limited("a", 1), subscription("more", "")]);
    apply(folder.path(), "b", &[limited("b", 2)]);
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(0), "{printed}");
    for part in [
        "shop/orders/a:1:1: warning: maxPerSecond: shop/orders/a and shop/orders/b have the same address",
        "owner \"a\": 2 subscriptions\n",
        "owner \"b\": 1 subscription\n",
        "subscriptions without an error: 3; errors: 0; warnings: 2\n",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }

    let structured = subscription("schema", ", schema: cloudevents-structured");
    apply(folder.path(), "b", &[structured, limited("b", 2)]);
    write_entry(folder.path(), "", r#"{"owner":"topics","spec":{"input":"opaque"}}"#);
    let (printed, code) = run(folder.path(), &["check", "--to", &to, "--output", "json"]);
    assert_eq!(code, Some(1), "{printed}");
    let report: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(report["owners"], serde_json::json!({"a": 2, "b": 2}));
    let findings = report["findings"].as_array().expect("a list");
    let errors: Vec<_> = findings.iter().filter(|it| it["severity"] == "error").collect();
    assert_eq!(errors.len(), 1, "{printed}");
    assert_eq!(errors[0]["file"], "shop/orders/schema");
}

#[test]
fn an_unusable_entry_or_topic_is_named_and_the_others_are_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = subscription("a", "").replace("topic: orders", "topic: others");
    apply(folder.path(), "a", &[subscription("a", ""), subscription("b", ""), other]);
    write_entry(folder.path(), "bad", r#"{"owner":"a","spec":{"destination":{}}}"#);
    std::fs::write(object(folder.path(), "shop/others.json"), "damaged").expect("a file");
    let to = uri(folder.path());
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(1), "{printed}");
    for part in [
        "shop/orders/bad:1:1: error: ",
        "shop/others:1:1: error: the topic cannot be read: it is not the object of a topic: ",
        "subscriptions without an error: 2; errors: 2; warnings: 0\n",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let (printed, code) =
        run(folder.path(), &["explain", "shop/orders/a", "--to", &to, "--origins"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("applied by \"a\""), "{printed}");
    assert!(printed.contains("shop/orders/bad:1:1: error: "), "{printed}");
    assert!(!printed.contains("shop/others"), "it is not read: {printed}");
    let list = ["subscriptions", "list", "shop", "--to", &to];
    let (printed, code) = run(folder.path(), &list);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("shop/orders/b") && printed.contains("shop/others:1:1"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hostile_object_is_named_in_a_folder_and_in_the_bucket_of_a_stack() {
    let data = tempfile::tempdir().expect("a folder");
    let folder = data.path().join(CONFIG_BUCKET);
    std::fs::create_dir(&folder).expect("a folder");
    let folder = folder.as_path();
    let config = LocalAwsConfig {
        buckets: vec![CONFIG_BUCKET.to_owned()],
        ..LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30)
    };
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    apply(folder, "a", &[subscription("a", "")]);
    let entry =
        |more: &str| format!(r#"{{"spec":{{"destination":{{"url":"https://a.test/"{more}}}}}"#);
    let topic = |entry: &str| format!(r#"{{"v":1,"subscriptions":{{"s":{entry}}}}}"#);
    let condition = r#"{"exact":{"type":"t"}}"#;
    let conditions = vec![condition; 9_000].join(",");
    let filtered = entry(&format!(r#"}},"filter":{{"any":[{conditions}]}}"#));
    let filters: Vec<String> = (0..12).map(|number| format!("\"s{number}\":{filtered}")).collect();
    let nested = format!("{}0{}", "[".repeat(200), "]".repeat(200));
    for (name, text, problem) in [
        ("headers", topic(&entry(r#","headers":[{"name":"host","value":"b.test"}]}"#)), "host"),
        ("attempts", topic(&entry(r#"},"retry":{"maxAttempts":4000000000}"#)), "1 to 1000"),
        ("deep", topic(&entry(&format!(r#"}},"filter":{nested}"#))), "recursion limit"),
        (
            "filters",
            format!(r#"{{"v":1,"subscriptions":{{{}}}}}"#, filters.join(",")),
            "conditions",
        ),
        ("large", " ".repeat(17 * 1_024 * 1_024), "bytes"),
        ("blank", String::new(), "a JSON object is expected"),
        ("foreign", r#"{"kind":"Pod"}"#.to_owned(), "unknown field"),
    ] {
        let object = object(folder, &format!("hostile/{name}.json"));
        std::fs::create_dir_all(object.parent().expect("a folder")).expect("a folder");
        std::fs::write(object, text).expect("a file");
        for (printed, code) in
            [run(folder, &["check", "--to", &uri(folder)]), check_deployed(&aws.endpoint())]
        {
            assert_eq!(code, Some(1), "{name}: {printed}");
            let of_topic = format!("hostile/{name}");
            let line = printed.lines().find(|line| line.contains(&of_topic));
            assert!(line.is_some_and(|line| line.contains(problem)), "{name}: {printed}");
        }
    }
}

#[test]
fn settings_that_cannot_be_used_are_no_missing_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "a", &[subscription("a", "")]);
    for text in ["damaged", "", "{\"v\":2}"] {
        std::fs::write(object(folder.path(), "_settings.json"), text).expect("a file");
        for command in [&["check"][..], &["explain", "shop/orders/a"]] {
            let to = ["--to", &uri(folder.path())];
            let (printed, code) = run(folder.path(), &[command, &to].concat());
            assert_eq!(code, Some(1), "{printed}");
            assert!(printed.contains("_settings.json cannot be read: "), "{printed}");
        }
    }
}

#[test]
fn a_topic_that_was_removed_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = subscription("b", "").replace("topic: orders", "topic: others");
    apply(folder.path(), "a", &[subscription("a", ""), other]);
    let to = uri(folder.path());
    let removed = r#"{"v":1,"removed":"2026-11-20T07:00:00Z"}"#;
    std::fs::write(object(folder.path(), "shop/orders.json"), removed).expect("a file");
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("subscriptions without an error: 1; errors: 0"), "{printed}");
    let (printed, code) = run(folder.path(), &["explain", "shop/orders", "--to", &to]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("there is no topic shop/orders in "), "{printed}");
}

#[test]
fn a_subscription_of_a_deployment_is_explained_from_its_topic() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "team", &[subscription("a", ""), subscription("b", "")]);
    let to = uri(folder.path());
    let explain = |name: &str| run(folder.path(), &["explain", name, "--to", &to, "--origins"]);
    let (printed, code) = explain("shop/orders/b");
    assert_eq!(code, Some(0), "{printed}");
    let origin = "applied by \"team\"";
    assert!(printed.contains(origin) && !printed.contains("shop/orders/a"), "{printed}");
    let (printed, code) = explain("shop/orders");
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("shop/orders/a (") && printed.contains("shop/orders/b ("),
        "{printed}"
    );
    for (name, problem) in [
        ("shop/orders/c", "there is no subscription shop/orders/c in "),
        ("shop/none", "there is no topic shop/none in "),
        ("shop", "namespace/topic or namespace/topic/name is expected"),
    ] {
        let (printed, code) = explain(name);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(problem), "{printed}");
    }
    let (printed, code) = run(folder.path(), &["explain", "shop/orders/b"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("--to or --stack is required"), "{printed}");
}

#[test]
fn an_address_that_is_neither_a_folder_nor_a_prefix_is_a_usage_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for to in ["s3://bucket/subscriptions.yaml", "s3://bucket", "subscriptions", "file://here/"] {
        for command in [&["check"][..], &["rollback", "shop/orders"], &["subscriptions", "export"]]
        {
            let (printed, code) = run(folder.path(), &[command, &["--to", to]].concat());
            assert_eq!(code, Some(2), "{printed}");
            let part = "is not where subscriptions are: s3://bucket/prefix/ or file:///folder/";
            assert!(printed.contains(part), "{printed}");
        }
    }
}

#[test]
fn endpoints_of_a_deployment_are_validated() {
    let folder = tempfile::tempdir().expect("a folder");
    let consent = ", consent: {handshake: eventgrid}";
    let nowhere =
        subscription("a", consent).replace("a.example.com/in?code=secret", "127.0.0.1:1/");
    apply(folder.path(), "team", &[nowhere, subscription("b", "")]);
    for names in [&[][..], &["shop/orders/a"]] {
        let to = uri(folder.path());
        let (printed, code) =
            run(folder.path(), &[&["try", "--consent", "--to", &to], names].concat());
        assert_eq!(code, Some(1), "{printed}");
        assert!(
            printed.contains("shop/orders/a") && printed.contains("0 of 1 have consented"),
            "{printed}"
        );
    }
}

#[test]
fn a_secret_that_the_policy_of_a_deployment_forbids_is_not_sent_for_a_validation() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ", consent: {handshake: eventgrid}, signing: {secrets: ['env:HOME']}";
    let signed = subscription("a", more).replace("a.example.com/in?code=secret", "127.0.0.1:1/");
    apply(folder.path(), "team", &[signed]);
    let to = uri(folder.path());
    let ask = || run(folder.path(), &["try", "--consent", "--to", &to, "--env", "HOME"]);
    let (printed, _) = ask();
    assert!(!printed.contains("may not be sent"), "{printed}");
    // Who may write topics need not be who writes the policy.
    let policy = r#"{"v":1,"secretPolicies":{"p":{"secrets":[{"name":"env:HOME","hosts":["b.example.com"]}]}}}"#;
    std::fs::write(object(folder.path(), "_settings.json"), policy).expect("a file");
    let (printed, code) = ask();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("\"env:HOME\" may not be sent to \"127.0.0.1\""), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn destinations_of_a_deployment_are_shown_and_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let _known = Known::beside(folder.path()).await;
    let notices = "apiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {topic: shop/orders}\n";
    let to_b = subscription("other", "").replace("topic: orders", "topic: others");
    let to_b = to_b.replace("https://other.", "https://b.");
    apply(
        folder.path(),
        "team",
        &[subscription("a", ""), subscription("b", ""), to_b, notices.to_owned()],
    );
    let destinations = |arguments: &[&str]| {
        run(folder.path(), &[&["destinations"], arguments, &["--to", "subscriptions"]].concat())
    };
    let (printed, code) = destinations(&["show", "shop/orders/a"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("https://a.example.com/in") && !printed.contains("code=secret"),
        "{printed}"
    );
    // Nothing is known of this address, so all topics are read.
    let (printed, code) = destinations(&["disable", "https://b.example.com/in"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("shop/orders/b") && printed.contains("shop/others/other"),
        "{printed}"
    );
    let (printed, code) = destinations(&["list"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("disabled ") && printed.contains("shop/orders/b"), "{printed}");
    assert!(printed.contains("shop/others/other"), "{printed}");
    let (printed, code) = destinations(&["enable", "https://b.example.com/in"]);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = destinations(&["show", "shop/orders/c"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no subscription shop/orders/c"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_topics_only_those_are_read_that_are_known_to_deliver_to_a_destination() {
    let folder = tempfile::tempdir().expect("a folder");
    let _known = Known::beside(folder.path()).await;
    let documents: Vec<String> = (0..101)
        .map(|number| {
            let topic = format!("topic: t{number}");
            let one = subscription("a", "").replace("topic: orders", &topic);
            one.replace("https://a.", &format!("https://a{number}."))
        })
        .collect();
    apply(folder.path(), "team", &documents);
    let destinations =
        |arguments: &[&str]| run(folder.path(), &[&["destinations"], arguments].concat());
    let (printed, code) = destinations(&["disable", "shop/t7/a"]);
    assert_eq!(code, Some(0), "{printed}");
    std::fs::write(object(folder.path(), "shop/t8.json"), "damaged").expect("a file");
    let (printed, code) = destinations(&["list"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("shop/t7/a") && printed.contains("disabled "), "{printed}");
    assert!(printed.contains("subscriptions of other topics that deliver there are not listed"));
    assert!(!printed.contains("has errors"), "t8 is not read: {printed}");
    let (printed, code) = destinations(&["enable", "shop/t7/a"]);
    assert_eq!(code, Some(0), "{printed}");
}
