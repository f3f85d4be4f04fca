//! Commands that look at the subscriptions of a catalogue: `check`, `explain`, `destinations`, `cost`,
//! `validate` and `dev`.

use std::convert::Infallible;
use std::path::Path;

use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::machine::Machine;
use adapters::storage::StoredObject;
use catalogue::{Changes, Namespace, NodeCache};

use crate::programs::{Running, lastmile, run};

pub(crate) fn subscription(name: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/in?code=secret'{more}}}}}\n"
    )
}

pub(crate) fn uri(folder: &Path) -> String {
    format!("file://{}/catalogue/", folder.display())
}

/// Applies these documents as this owner.
pub(crate) fn apply(folder: &Path, owner: &str, documents: &[String]) {
    std::fs::write(folder.join("applied.yaml"), documents.join("---\n")).expect("a file");
    let arguments = [
        "apply",
        "-f",
        "applied.yaml",
        "--to",
        &uri(folder),
        "--owner",
        owner,
        "--yes",
        "--allow-empty",
    ];
    let (printed, code) = run(folder, &arguments);
    assert_eq!(code, Some(0), "{printed}");
}

/// Writes an entry as it is.
fn write_entry(folder: &Path, namespace: &str, key: &str, value: &str) {
    let objects = CatalogueObjects::below(&StoredObject::file(&folder.join("catalogue")));
    let nodes = NodeCache::new(0);
    let mut changes = Changes::default();
    changes.put(key, value);
    let change = |_| std::future::ready(Ok::<_, Infallible>(changes.clone()));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let namespace = Namespace::new(&objects, &nodes, namespace);
    runtime.block_on(namespace.commit(&Machine, "test", change)).expect("written");
}

#[test]
fn a_catalogue_is_checked_for_what_no_owner_sees_in_files_of_his_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = uri(folder.path());
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no catalogue yet"), "{printed}");

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

    apply(
        folder.path(),
        "b",
        &[subscription("schema", ", schema: cloudevents-structured"), limited("b", 2)],
    );
    // `apply` would refuse it; whoever may write the objects need not ask.
    let opaque = r#"{"owner":"topics","is":{"v":1,"input":"opaque","maxReplies":64}}"#;
    write_entry(folder.path(), "shop", "orders/", opaque);
    let (printed, code) = run(folder.path(), &["check", "--to", &to, "--output", "json"]);
    assert_eq!(code, Some(1), "{printed}");
    let report: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(report["owners"], serde_json::json!({"a": 2, "b": 2}));
    let findings = report["findings"].as_array().expect("a list");
    let errors: Vec<_> = findings.iter().filter(|it| it["severity"] == "error").collect();
    assert_eq!(errors.len(), 1, "{printed}");
    assert_eq!(
        (&errors[0]["file"], &errors[0]["field"]),
        (&"shop/orders/schema".into(), &"schema".into())
    );
}

#[test]
fn a_broken_entry_or_namespace_is_named_and_the_others_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "a", &[subscription("a", ""), subscription("b", "")]);
    write_entry(folder.path(), "shop", "orders/bad", r#"{"owner":"a","is":{"v":99}}"#);
    write_entry(folder.path(), "_deployment", "settings/odd", r#"{"owner":"a","is":{"new":{}}}"#);
    write_entry(folder.path(), "other", "topic/lost", "{}");
    let pointer = folder.path().join("catalogue/namespaces/other/pointer");
    std::fs::write(pointer, "damaged").expect("a file");
    let to = uri(folder.path());
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(1), "{printed}");
    for part in [
        "shop/orders/bad:1:1: error: the entry orders/bad cannot be read: ",
        "_deployment/settings/odd:1:1: error: the entry settings/odd cannot be read: ",
        "other:1:1: error: the namespace other cannot be read: ",
        "subscriptions without an error: 2; errors: 3; warnings: 0\n",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let (printed, code) = run(folder.path(), &["explain", "shop/orders/a", "--to", &to]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("applied by \"a\""), "{printed}");
    assert!(printed.contains("the entry orders/bad cannot be read"), "{printed}");
    assert!(!printed.contains("the namespace other"), "it is not read: {printed}");
}

#[test]
fn a_lost_pointer_is_named_and_restored_before_anything_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "a", &[subscription("a", "")]);
    apply(folder.path(), "b", &[subscription("b", "")]);
    let to = uri(folder.path());
    let check = || run(folder.path(), &["check", "--to", &to]);
    let pointer = folder.path().join("catalogue/namespaces/shop/pointer");
    std::fs::remove_file(&pointer).expect("it was there");
    let (printed, code) = check();
    assert_eq!(code, Some(1), "{printed}");
    let part = "shop:1:1: error: the namespace shop has objects and no pointer, so nothing of it is in use: ";
    assert!(printed.contains(part), "{printed}");
    let history = ["subscriptions", "history", "shop", "--to", &to];
    let (printed, code) = run(folder.path(), &history);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("nothing of a namespace shop is in use"), "{printed}");
    for (command, part) in [
        (&["subscriptions", "list", "shop"][..], "nothing of a namespace shop is in use"),
        (&["subscriptions", "get", "shop/orders/a"], "nothing of a namespace shop is in use"),
        (
            &["rollback", "--namespace", "shop", "--owner", "a"],
            "restore it first, by lastmile apply",
        ),
    ] {
        let (printed, code) = run(folder.path(), &[command, &["--to", &to]].concat());
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(part), "{printed}");
    }
    assert!(!pointer.exists(), "reading restores nothing");

    // Also what belongs to others, and where nothing else is to be done.
    std::fs::write(folder.path().join("b.yaml"), subscription("b", "")).expect("a file");
    let unchanged = ["apply", "-f", "b.yaml", "--owner", "b", "--to", &to];
    let (printed, code) = run(folder.path(), &unchanged);
    assert_eq!(code, Some(2), "nobody was asked: {printed}");
    assert!(printed.contains("the pointer of the namespace shop is missing"), "{printed}");
    assert!(!pointer.exists(), "{printed}");
    let (printed, code) = run(folder.path(), &[&unchanged[..], &["--yes"]].concat());
    assert_eq!(code, Some(0), "{printed}");
    assert!(pointer.exists(), "{printed}");
    std::fs::remove_file(&pointer).expect("it was restored");

    apply(folder.path(), "a", &[subscription("a", ""), subscription("c", "")]);
    let (printed, code) = check();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("subscriptions without an error: 3;"), "{printed}");
    let (printed, code) = run(folder.path(), &[&history[..], &["--output", "json"]].concat());
    assert_eq!((printed.matches("\"version\":").count(), code), (3, Some(0)), "{printed}");
}

#[test]
fn a_policy_whose_pointer_is_lost_still_refuses_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: [{name: 'env:OTHER', hosts: [a.example.com]}]}\n";
    apply(folder.path(), "owner", &[subscription("a", ""), policy.to_owned()]);
    let pointer = folder.path().join("catalogue/namespaces/_deployment/pointer");
    std::fs::remove_file(&pointer).expect("it was there");
    let to = uri(folder.path());
    let (printed, code) = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the namespace _deployment has objects and no pointer"), "{printed}");
    let secret = subscription("b", ", auth: {bearer: {token: 'env:TOKEN'}}");
    std::fs::write(folder.path().join("b.yaml"), secret).expect("a file");
    for command in [&["apply", "--yes"][..], &["subscriptions", "put"]] {
        std::fs::remove_file(&pointer).ok();
        let more = ["-f", "b.yaml", "--owner", "b", "--to", &to];
        let (printed, code) = run(folder.path(), &[command, &more].concat());
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains("env:TOKEN"), "{printed}");
    }
}

#[test]
fn a_pointer_whose_root_is_not_that_of_its_version_is_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: [{name: 'env:OTHER', hosts: [a.example.com]}]}\n";
    apply(folder.path(), "a", &[subscription("a", ""), policy.to_owned()]);
    let to = uri(folder.path());
    std::fs::write(folder.path().join("b.yaml"), subscription("b", "")).expect("a file");
    for namespace in ["shop", "_deployment"] {
        let pointer = folder.path().join(format!("catalogue/namespaces/{namespace}/pointer"));
        let text = std::fs::read_to_string(&pointer).expect("a pointer");
        std::fs::write(&pointer, text.replace("a.example.com", "b.example.com")).expect("a file");
        let more = ["-f", "b.yaml", "--owner", "a", "--to", &to];
        let put = [&["subscriptions", "put"], &more[..]].concat();
        let apply = [&["apply", "--yes"], &more[..]].concat();
        for command in [&["check", "--to", &to][..], &put, &apply] {
            let (printed, code) = run(folder.path(), command);
            assert_eq!(code, Some(1), "{printed}");
            let part = format!(
                "namespaces/{namespace}/pointer is damaged: its root is not that of its version"
            );
            assert!(printed.contains(&part), "{printed}");
        }
        std::fs::write(&pointer, text).expect("a file");
    }
}

#[test]
fn a_subscription_of_a_deployment_is_explained_from_its_topic() {
    let folder = tempfile::tempdir().expect("a folder");
    let documents = [subscription("a", ""), subscription("b", "")];
    apply(folder.path(), "team", &documents);
    std::fs::write(folder.path().join("subscriptions.yaml"), documents.join("---\n"))
        .expect("a file");
    let file = format!("file://{}/subscriptions.yaml", folder.path().display());
    for (to, origin) in
        [(uri(folder.path()), "applied by \"team\""), (file, "default of the native")]
    {
        let explain = |name: &str| run(folder.path(), &["explain", name, "--to", &to]);
        let (printed, code) = explain("shop/orders/b");
        assert_eq!(code, Some(0), "{printed}");
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
        let cost = ["cost", "--events", "1e6", "--to", &to, "--subscription", "shop/orders/b"];
        let (printed, code) = run(folder.path(), &cost);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("policy: native"), "{printed}");
        let (printed, code) = run(folder.path(), &["check", "--to", &to]);
        assert_eq!(code, Some(0), "{printed}");
    }
    let (printed, code) = run(folder.path(), &["explain", "shop/orders/b"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("--to or --stack is required"), "{printed}");
}

#[test]
fn endpoints_of_a_catalogue_are_validated() {
    let folder = tempfile::tempdir().expect("a folder");
    let consent = ", consent: {handshake: eventgrid}";
    let nowhere =
        subscription("a", consent).replace("a.example.com/in?code=secret", "127.0.0.1:1/");
    apply(folder.path(), "team", &[nowhere, subscription("b", "")]);
    for names in [&[][..], &["--subscription", "shop/orders/a"]] {
        let to = uri(folder.path());
        let (printed, code) = run(folder.path(), &[&["validate", "--to", &to], names].concat());
        assert_eq!(code, Some(1), "{printed}");
        assert!(
            printed.contains("shop/orders/a") && printed.contains("0 of 1 have consented"),
            "{printed}"
        );
    }
}

#[test]
fn a_secret_that_the_policy_of_a_catalogue_forbids_is_not_sent_for_a_validation() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ", consent: {handshake: eventgrid}, signing: {secrets: ['env:PATH']}";
    let signed = subscription("a", more).replace("a.example.com/in?code=secret", "127.0.0.1:1/");
    apply(folder.path(), "team", &[signed]);
    let to = uri(folder.path());
    let validate = || run(folder.path(), &["validate", "--to", &to, "--env", "PATH"]);
    let (printed, _) = validate();
    assert!(!printed.contains("may not be sent"), "{printed}");
    // The objects of a namespace may be written by others than the policy.
    let policy = r#"{"owner":"p","is":{"secret":{"name":"env:PATH","hosts":["b.example.com"]}}}"#;
    write_entry(folder.path(), "_deployment", "settings/policy", policy);
    let (printed, code) = validate();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("\"env:PATH\" may not be sent to \"127.0.0.1\""), "{printed}");
}

#[test]
fn destinations_of_a_catalogue_are_shown_and_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let notices = "apiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {topic: shop/orders}\n";
    let to_b = subscription("other", "").replace("topic: orders", "topic: others");
    let to_b = to_b.replace("https://other.", "https://b.");
    apply(
        folder.path(),
        "team",
        &[subscription("a", ""), subscription("b", ""), to_b, notices.to_owned()],
    );
    let destinations = |arguments: &[&str]| {
        run(folder.path(), &[&["destinations"], arguments, &["--config", "catalogue"]].concat())
    };
    let (printed, code) = destinations(&["show", "shop/orders/a"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("https://a.example.com/in") && !printed.contains("code=secret"),
        "{printed}"
    );
    // Nothing is known of this address, so the whole catalogue is searched.
    let (printed, code) = destinations(&["disable", "https://b.example.com/in"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("shop/orders/b") && printed.contains("shop/others/other"),
        "{printed}"
    );
    let (printed, code) = destinations(&["list"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("disabled: hold") && printed.contains("shop/orders/b"), "{printed}");
    assert!(printed.contains("subscriptions of other topics"), "{printed}");
    let (printed, code) = destinations(&["enable", "https://b.example.com/in"]);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = destinations(&["show", "shop/orders/c"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no subscription shop/orders/c"), "{printed}");
}

#[test]
fn dev_says_what_a_catalogue_has_and_what_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "team", &[subscription("a", ""), subscription("b", "")]);
    write_entry(folder.path(), "shop", "orders/bad", "{}");
    let dev = ["dev", "--subscriptions", "catalogue", "--port", "0", "--aws-port", "0"];
    let mut dev = Running::start(lastmile(folder.path(), &dev));
    dev.line_with("ready: ");
    dev.line_with("2 subscriptions from catalogue");
    dev.line_with("shop/orders/bad:1:1: error: ");
}
