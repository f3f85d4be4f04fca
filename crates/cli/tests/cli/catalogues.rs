//! `lastmile apply` to a catalogue: whose entries are added, changed, left and removed.

use std::path::Path;

use crate::programs::run;

fn document(name: &str, more: &str) -> String {
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
    let (printed, code) = apply("one.yaml", &[a.clone()], &["--owner", "one"]);
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
        "~ subscription shop/orders/a\n    maxAttempts:",
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
fn other_commands_say_that_they_need_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = format!("file://{}/catalogue/", folder.path().display());
    let (printed, code) = run(folder.path(), &["rollback", "--to", &uri, "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("reads a catalogue"), "{printed}");
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
