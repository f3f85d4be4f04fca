//! `lastmile apply` to a catalogue: whose entries are added, changed, left and removed.

use std::path::Path;

use crate::programs::run;

pub(crate) fn document(name: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/in?code=secret'}}{more}}}\n"
    )
}

/// Applies these files; returns what was printed and the exit code.
fn apply(folder: &Path, files: &[(&str, &[String])], more: &[&str]) -> (String, Option<i32>) {
    for (name, documents) in files {
        std::fs::write(folder.join(name), documents.join("---\n")).expect("a file");
    }
    let uri = format!("file://{}/catalogue/", folder.display());
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    run(folder, &[&["apply", "--to", &uri, "--yes"], more, &["-f"], &names].concat())
}

#[test]
fn an_owner_changes_and_removes_only_what_is_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let apply = |name, documents: &[String], more: &[&str]| {
        apply(folder.path(), &[(name, documents)], more)
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| document(name, ""));
    let (printed, code) = apply("one.yaml", &[a.clone(), b], &["--owner", "one"]);
    assert_eq!(code, Some(0), "{printed}");
    for part in [
        "+ subscription shop/orders/a\n    destination.url: https://a.example.com/in",
        "shop: version 1, ",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!printed.contains("code=secret"), "{printed}");
    let (printed, code) = apply("one.yaml", std::slice::from_ref(&a), &["--owner", "one"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("nothing to do")
            && printed.contains("1 entries of \"one\" are not in the files")
    );

    // Another one's topic is not described again, and its subscriptions are neither changed nor removed.
    let of_two = c.replace("topic: orders", "topic: others");
    let (printed, code) = apply("two.yaml", &[of_two], &["--owner", "two", "--prune"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(!printed.contains("- subscription"), "{printed}");
    let (printed, code) = apply("two.yaml", &[document("a", "")], &["--owner", "two"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("shop/orders/a belongs to \"one\""), "{printed}");

    let changed = document("a", ", retry: {maxAttempts: 3}");
    let (printed, code) = apply("one.yaml", &[changed], &["--owner", "one", "--prune"]);
    assert_eq!(code, Some(0), "{printed}");
    for part in [
        "~ subscription shop/orders/a\n    retry.maxAttempts:",
        "- subscription shop/orders/b",
        "shop: version 3, ",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
}

#[test]
fn a_catalogue_that_cannot_be_read_is_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = [document("a", "")];
    assert_eq!(apply(folder.path(), &[("one.yaml", &a)], &[]).1, Some(0));
    let pointer = folder.path().join("catalogue/namespaces/shop/pointer");
    std::fs::write(&pointer, "damaged").expect("a file");
    let (printed, code) = apply(folder.path(), &[("one.yaml", &[document("b", "")])], &[]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the namespace shop cannot be read"), "{printed}");
    assert_eq!(std::fs::read_to_string(pointer).expect("a file"), "damaged");
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
    let uri = format!("file://{}/catalogue/", folder.path().display());
    let (printed, code) = run(folder.path(), &["apply", "-f", "files", "--to", &uri, "--yes"]);
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
        "infra/main.tf:1:1: error: this is a configuration of Terraform, which is not read; rules of EventBridge",
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
fn single_subscriptions_are_put_listed_read_and_deleted_and_the_history_says_by_whom() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = format!("file://{}/catalogue/", folder.path().display());
    let lastmile = |arguments: &[&str]| {
        run(folder.path(), &[&["subscriptions"], arguments, &["--to", &uri]].concat())
    };
    for name in ["a", "b"] {
        let file = format!("{name}.yaml");
        std::fs::write(folder.path().join(&file), document(name, "")).expect("a file");
        let (printed, code) = lastmile(&["put", "-f", &file, "--owner", "team"]);
        assert_eq!(code, Some(0), "{printed}");
    }
    let (printed, code) = lastmile(&["put", "-f", "a.yaml", "--owner", "team"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("nothing to do, version 2 has it"), "{printed}");
    let (printed, code) = lastmile(&["put", "-f", "a.yaml", "--owner", "others"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("orders/a belongs to \"team\""), "{printed}");

    for name in ["shop", "shop/orders"] {
        let (printed, code) = lastmile(&["list", name]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("shop/orders/a") && printed.contains("https://b.example.com/in"));
        assert!(!printed.contains("code=secret"), "{printed}");
    }
    let (printed, code) = lastmile(&["list", "shop/others"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no subscription of shop/others in"), "{printed}");
    let (printed, code) = lastmile(&["get", "shop/orders/a"]);
    assert_eq!(code, Some(0), "{printed}");
    let stored: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!((&stored["owner"], &stored["is"]["v"]), (&"team".into(), &1.into()));
    assert_eq!(lastmile(&["get", "shop/orders/c"]).1, Some(1));

    let (printed, code) = lastmile(&["delete", "shop/orders/a", "--owner", "others", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    let (printed, code) = lastmile(&["delete", "shop/orders/a", "--owner", "team", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = lastmile(&["delete", "shop/orders/a", "--owner", "team", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("there is no subscription shop/orders/a"), "{printed}");
    let (printed, code) = lastmile(&["history", "shop", "--output", "json"]);
    assert_eq!(code, Some(0), "{printed}");
    let versions: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let numbers: Vec<u64> =
        versions.as_array().into_iter().flatten().filter_map(|it| it["version"].as_u64()).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let by = versions[0]["by"].as_str().unwrap_or_default();
    assert!(by.ends_with(" as team"), "{versions}");
    assert!(
        versions[0]["changes"][0].as_str().is_some_and(|what| what.contains("orders/a")),
        "{versions}"
    );
}

#[test]
fn a_topic_that_loses_its_settings_has_the_default_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let topic = |more: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\nspec: {{{more}}}\n"
        )
    };
    let apply = |documents: &[String]| apply(folder.path(), &[("all.yaml", documents)], &[]);
    assert_eq!(apply(&[topic("input: opaque"), document("a", "")]).1, Some(0));
    let (printed, code) = apply(&[document("a", "")]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("~ topic shop/orders\n    input: opaque -> auto"), "{printed}");
}

#[test]
fn what_was_changed_before_a_namespace_cannot_be_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |namespace: &str, more: &str| {
        document("a", more).replace("namespace: shop", &format!("namespace: {namespace}"))
    };
    let too_large = format!(", filter: {{exact: {{type: {}}}}}", "x".repeat(60_000));
    let documents = [of("first", ""), of("second", &too_large)];
    let (printed, code) = apply(folder.path(), &[("all.yaml", &documents)], &[]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("first: version 1, "), "{printed}");
    assert!(printed.contains("the namespace second is not changed"), "{printed}");
}
