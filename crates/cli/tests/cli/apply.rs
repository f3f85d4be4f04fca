//! `lastmile apply` and `lastmile subscriptions`: whose entries are added, changed, left and removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::deployments::{apply, document, object, try_apply, uri, write_entry};
use crate::programs::{lastmile, run};

#[test]
fn an_owner_changes_and_removes_only_what_is_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let apply = |documents: &[String], owner: &str, more: &[&str]| {
        let more = [&["--yes", "--owner", owner], more].concat();
        let (printed, code) = try_apply(folder.path(), documents, &more);
        assert_eq!(code, Some(0), "{printed}");
        printed
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| document(name, ""));
    let printed = apply(&[a.clone(), b], "one", &[]);
    for part in [
        "+ subscription shop/orders/a\n    destination.url: https://a.example.com/in",
        "+ subscription shop/orders/b\n",
        "shop/orders: ",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!printed.contains("code=secret"), "{printed}");
    let printed = apply(std::slice::from_ref(&a), "one", &[]);
    assert!(
        printed.contains("nothing to do")
            && printed.contains("1 entries of \"one\" are not in the files"),
        "{printed}"
    );

    // What another owner has in the same topic stays, and in other topics too.
    for topic in ["orders", "others"] {
        let of_two = c.replace("topic: orders", &format!("topic: {topic}"));
        let printed = apply(&[of_two], "two", &[]);
        assert!(!printed.contains("- subscription"), "{printed}");
    }
    let changed = document("a", ", retry: {maxAttempts: 3}");
    let printed = apply(&[changed], "one", &["--prune"]);
    for part in [
        "~ subscription shop/orders/a\n    retry.maxAttempts: 20 -> 3",
        "- subscription shop/orders/b",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!printed.contains("orders/c") && !printed.contains("others"), "{printed}");
    let printed = apply(&[], "two", &["--prune", "--allow-empty"]);
    for part in ["- subscription shop/orders/c", "- topic shop/others"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let removed = std::fs::read_to_string(object(folder.path(), "shop/others.json"));
    assert!(removed.expect("a mark").starts_with("{\"v\":1,\"removed\":\""));
}

#[test]
fn an_entry_of_somebody_else_is_named_and_nothing_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\nspec: {input: opaque}\n";
    apply(folder.path(), "one", &[document("a", ""), topic.to_owned()]);
    let orders = object(folder.path(), "shop/orders.json");
    let before = std::fs::read(&orders).expect("an object");
    let other = document("z", "").replace("namespace: shop", "namespace: bank");
    for (document, named) in [
        (document("a", ", retry: {maxAttempts: 3}"), "the subscription a belongs to \"one\""),
        (topic.replace("opaque", "auto, maxReplies: 3"), "the topic itself belongs to \"one\""),
    ] {
        let documents = [document, other.clone()];
        let (printed, code) =
            try_apply(folder.path(), &documents, &["--owner", "two", "--yes", "--prune"]);
        assert_eq!(code, Some(1), "{printed}");
        let named = format!("the topic shop/orders is not changed: {named}");
        assert!(
            printed.contains(&named) && printed.contains("change it with --owner one, or"),
            "{printed}"
        );
        assert_eq!(std::fs::read(&orders).expect("an object"), before);
        assert!(!object(folder.path(), "bank/orders.json").exists(), "{printed}");
    }
}

#[test]
fn a_dry_run_changes_nothing_and_exits_with_2_only_if_something_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let dry_run = |documents: &[String], more: &[&str]| {
        try_apply(folder.path(), documents, &[&["--dry-run"], more].concat())
    };
    let (printed, code) = dry_run(&[document("a", "")], &[]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("+ subscription shop/orders/a"), "{printed}");
    assert!(!folder.path().join("subscriptions").exists());

    apply(folder.path(), "files", &[document("a", ""), document("b", "")]);
    let (printed, code) = dry_run(&[document("a", "")], &[]);
    assert_eq!(code, Some(0), "what stays is no difference: {printed}");
    let (printed, code) = dry_run(&[document("a", "")], &["--prune"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("- subscription shop/orders/b"), "{printed}");
    let policy = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n";
    let (printed, code) = dry_run(&[document("a", ""), policy.to_owned()], &[]);
    assert_eq!(code, Some(2), "settings are a difference: {printed}");
    let (printed, code) = dry_run(&[document("a", ""), document("b", "")], &["--prune"]);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn an_unusable_topic_is_named_and_keeps_nobody_from_changing_another() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "files", &[document("a", "")]);
    let orders = object(folder.path(), "shop/orders.json");
    std::fs::write(&orders, "damaged").expect("a file");
    let (printed, code) = try_apply(folder.path(), &[document("b", "")], &["--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the topic shop/orders cannot be read: "), "{printed}");
    let other = document("b", "").replace("topic: orders", "topic: others");
    for more in [&["--yes"][..], &["--yes", "--prune"]] {
        let (printed, code) = try_apply(folder.path(), std::slice::from_ref(&other), more);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("shop/orders is left as it is: "), "{printed}");
    }
    assert_eq!(std::fs::read_to_string(orders).expect("a file"), "damaged");
}

#[test]
fn an_entry_that_cannot_be_used_stays_when_another_one_of_its_topic_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "files", &[document("a", "")]);
    write_entry(folder.path(), "bad", r#"{"owner":"files","newer":true}"#);
    apply(folder.path(), "files", &[document("a", ", retry: {maxAttempts: 3}")]);
    let text = std::fs::read_to_string(object(folder.path(), "shop/orders.json"));
    let text = text.expect("an object");
    assert!(text.contains("\"newer\":true") && text.contains("\"maxAttempts\":3"), "{text}");
}

#[test]
fn of_a_folder_all_files_of_subscriptions_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("files");
    std::fs::create_dir_all(files.join("more/.hidden")).expect("a folder");
    for (name, text) in [
        ("b.yaml", document("b", "")),
        ("more/a.yml", document("a", "")),
        ("more/c.json", r#"{"apiVersion":"lastmile.dev/v1","kind":"Subscription","metadata":{"namespace":"shop","topic":"orders","name":"c"},"spec":{"destination":{"url":"https://c.example.com/"}}}"#.to_owned()),
        ("more/README.md", "no file of subscriptions".to_owned()),
        ("more/.hidden/d.yaml", "none either".to_owned()),
    ] {
        std::fs::write(files.join(name), text).expect("a file");
    }
    let (printed, code) = run(folder.path(), &["check", "files"]);
    assert_eq!(code, Some(0), "{printed}");
    let to = uri(folder.path());
    let (printed, code) = run(folder.path(), &["apply", "-f", "files", "--to", &to, "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(printed.matches("+ subscription").count(), 3, "{printed}");
    let (printed, code) = run(folder.path(), &["check", "files/more/.hidden/.."]);
    assert_eq!(code, Some(0), "{printed}");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    let (printed, code) = run(folder.path(), &["check", "empty"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("empty has no file"), "{printed}");
}

#[test]
fn a_file_of_another_tool_is_an_error_with_the_next_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    std::fs::create_dir_all(folder.path().join("infra")).expect("a folder");
    write("infra/main.bicep", "param endpoint string\n");
    write("infra/main.tf", "resource \"aws_sns_topic\" \"orders\" {\n}\n");
    let (printed, code) = run(folder.path(), &["check", "infra"]);
    assert_eq!(code, Some(1), "{printed}");
    for part in [
        "infra/main.bicep:1:1: error: this is Bicep, which is not read; check what Azure has: az eventgrid ",
        "infra/main.tf:1:1: error: this is a configuration of Terraform, which is not read; give rules of EventBridge as ",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    // Beside files of subscriptions they are none of the folder's files.
    write("infra/a.yaml", &document("a", ""));
    let (printed, code) = run(folder.path(), &["check", "infra"]);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = run(folder.path(), &["check", "infra/a.yaml", "infra/main.tf"]);
    assert_eq!(code, Some(1), "{printed}");
}

#[test]
fn single_subscriptions_are_listed_read_and_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = uri(folder.path());
    apply(folder.path(), "team", &[document("a", ""), document("b", "")]);
    let lastmile = |arguments: &[&str]| {
        run(folder.path(), &[&["subscriptions"], arguments, &["--to", &to]].concat())
    };
    for name in ["shop", "shop/orders"] {
        let (printed, code) = lastmile(&["list", name]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("shop/orders/a") && printed.contains("https://b.example.com/in"));
        assert!(!printed.contains("code=secret"), "{printed}");
    }
    let (printed, code) = lastmile(&["list", "shop", "--output", "json"]);
    assert_eq!(code, Some(0), "{printed}");
    let listed: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(listed[0]["owner"], "team", "{printed}");
    let (printed, code) = lastmile(&["list", "shop/others"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no subscription of shop/others in"), "{printed}");
    let (printed, code) = lastmile(&["get", "shop/orders/a"]);
    assert_eq!(code, Some(0), "{printed}");
    let stored: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        (&stored["owner"], &stored["spec"]["destination"]["url"]),
        (&"team".into(), &"https://a.example.com/in?code=secret".into())
    );
    assert_eq!(lastmile(&["get", "shop/orders/c"]).1, Some(1));

    let delete = ["delete", "shop/orders/a", "--yes"];
    let (printed, code) = lastmile(&[&delete[..], &["--owner", "others"]].concat());
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the subscription a belongs to \"team\""), "{printed}");
    let of_team = [&delete[..], &["--owner", "team"]].concat();
    let (printed, code) = lastmile(&of_team);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = lastmile(&of_team);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no subscription shop/orders/a"), "{printed}");
    assert_eq!(lastmile(&["get", "shop/orders/b"]).1, Some(0));
    let (printed, code) = lastmile(&["delete", "shop/orders/b", "--owner", "team", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("the topic shop/orders stays without subscriptions"), "{printed}");
    let (printed, code) = lastmile(&["list", "shop"]);
    assert_eq!(code, Some(1), "no subscription is left: {printed}");
    let topic =
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n";
    let more = ["--owner", "team", "--allow-empty"];
    let dry_run = [&more[..], &["--dry-run"]].concat();
    let (printed, code) = try_apply(folder.path(), &[topic.to_owned()], &dry_run);
    assert_eq!(code, Some(0), "the topic is as if files had it: {printed}");
    let prune = [&more[..], &["--prune", "--yes"]].concat();
    let (printed, code) = try_apply(folder.path(), &[], &prune);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("- topic shop/orders"), "{printed}");
}

/// Documents of every kind that an object beside the topics has, too.
fn all_kinds() -> [String; 8] {
    let of = |kind: &str, metadata: &str, spec: &str| {
        format!("apiVersion: lastmile.dev/v1\nkind: {kind}\n{metadata}spec: {spec}\n")
    };
    let topic = |name: &str| format!("metadata: {{namespace: shop, name: {name}}}\n");
    let sns = "{input: sns, from: [{snsTopic: 'arn:aws:sns:us-east-1:000000000000:orders'}]}";
    let client = "{tokenUrl: 'https://login.example.com/t', clientId: a, clientSecret: 'env:A'}";
    let mapped = format!(
        "{{crm: 'https://crm.example.com', unused: 's3://bucket/letters', shop: {{url: 'https://b.example.com/in', maxPerSecond: 5, auth: \
         {{oauth2: {client}}}}}}}"
    );
    [
        document("a", ", retry: {maxAttempts: 3}, deadLetter: none"),
        subscription_with_secret(),
        ["crm", "shop"]
            .map(|name| {
                document(name, "")
                    .replace(&format!("https://{name}.example.com/in?code=secret"), name)
            })
            .join("---\n"),
        of("Topic", &topic("orders"), sns),
        of("Topic", &topic("notices"), "{}"),
        of("Notifications", "", "{topic: shop/notices}"),
        of(
            "SecretPolicy",
            "",
            "{secrets: [{name: 'env:A', hosts: [b.example.com, login.example.com]}]}",
        ),
        of("Destinations", "", &mapped),
    ]
}

fn subscription_with_secret() -> String {
    crate::deployments::subscription("b", ", signing: {secrets: ['env:A']}")
}

#[test]
fn what_is_exported_changes_nothing_when_it_is_applied() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "files", &all_kinds());
    let to = uri(folder.path());
    let export = || {
        let mut command = lastmile(folder.path(), &["subscriptions", "export", "--to", &to]);
        let output = command.stdin(Stdio::null()).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let exported = export();
    for part in [
        "maxAttempts: 3",
        "code=secret",
        "snsTopic",
        "kind: Notifications",
        "env:A",
        "unused: s3://bucket/letters",
    ] {
        assert!(exported.contains(part), "{part} in {exported}");
    }
    let before = objects(folder.path());
    assert_eq!(before.len(), 5, "{before:?}");
    for more in [["--dry-run", "--prune"], ["--yes", "--prune"]] {
        let (printed, code) = try_apply(folder.path(), std::slice::from_ref(&exported), &more);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("nothing to do"), "{printed}");
    }
    // Nor does it lose anything on the way to another deployment.
    let (printed, code) = run(folder.path(), &["check", "applied.yaml"]);
    assert_eq!(code, Some(0), "{printed}");
    std::fs::remove_dir_all(folder.path().join("subscriptions")).expect("it was there");
    apply(folder.path(), "files", std::slice::from_ref(&exported));
    assert_eq!(export(), exported);
    assert_eq!(objects(folder.path()), before);
}

/// The text of every object of a deployment.
fn objects(folder: &Path) -> BTreeMap<PathBuf, String> {
    let names = ["shop/orders.json", "shop/notices.json", "_settings.json", "_publishers.json"];
    let names = names.into_iter().chain(["_destinations/files.json"]);
    let read = |name| {
        let path = object(folder, name);
        Some((path.clone(), std::fs::read_to_string(path).ok()?))
    };
    names.filter_map(read).collect()
}

#[test]
fn an_owner_exports_what_can_be_applied_again_under_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\nspec: {maxReplies: 3}\n";
    let mapped = |name: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {{of-{name}: 'https://{name}.test/'}}\n"
        )
    };
    apply(folder.path(), "platform", &[topic.to_owned(), mapped("platform")]);
    apply(folder.path(), "one", &[document("a", ""), mapped("one")]);
    apply(folder.path(), "two", &[document("b", "")]);
    let to = uri(folder.path());
    let export = ["subscriptions", "export", "--owner", "one", "--to", &to];
    let (exported, code) = run(folder.path(), &export);
    assert_eq!(code, Some(0), "{exported}");
    assert!(exported.contains("a.example.com") && !exported.contains("b.example.com"));
    assert!(exported.contains("of-one") && !exported.contains("of-platform"), "{exported}");
    let more = ["--dry-run", "--prune", "--owner", "one"];
    let (printed, code) = try_apply(folder.path(), &[exported], &more);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn a_topic_keeps_its_settings_until_they_are_pruned() {
    let folder = tempfile::tempdir().expect("a folder");
    let topic = |more: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\nspec: {{{more}}}\n"
        )
    };
    apply(folder.path(), "files", &[topic("input: opaque"), document("a", "")]);
    let (printed, code) = try_apply(folder.path(), &[document("a", "")], &["--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("nothing to do"), "{printed}");
    let (printed, code) = try_apply(folder.path(), &[document("a", "")], &["--yes", "--prune"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("~ topic shop/orders\n    input: opaque -> auto"), "{printed}");
}

#[test]
fn an_entry_that_nobody_could_read_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let too_large = format!(", filter: {{exact: {{type: {}}}}}", "x".repeat(300_000));
    let other = document("a", "").replace("namespace: shop", "namespace: bank");
    let documents = [other, document("large", &too_large)];
    let (printed, code) = try_apply(folder.path(), &documents, &["--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("shop/orders/large: it has "), "{printed}");
    assert!(!folder.path().join("subscriptions").exists(), "{printed}");
}
