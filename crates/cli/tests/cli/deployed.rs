//! Deployments in the bucket of a stack, and destinations of a deployment.
//! `transcripts/subscriptions.md` has the rest.

use local::aws::{LocalAws, LocalAwsConfig};

use crate::check_stack::{CONFIG_BUCKET, check_deployed};
use crate::deployments::{apply, object, subscription, uri};
use crate::programs::run;
use crate::sample_destinations::Known;

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
        ("blank", String::new(), "expected a JSON object"),
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
        run(folder.path(), &[&["destinations"], arguments, &["--to", "."]].concat())
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
            let document = subscription("a", "").replace("topic: orders", &topic);
            document.replace("https://a.", &format!("https://a{number}."))
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
    assert!(
        printed.contains("subscriptions of other topics with the same destination are not listed")
    );
    assert!(!printed.contains("has errors"), "t8 is not read: {printed}");
    let (printed, code) = destinations(&["enable", "shop/t7/a"]);
    assert_eq!(code, Some(0), "{printed}");
}
