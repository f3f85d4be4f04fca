//! `lastmile subscriptions gc` and `lastmile rollback` in a catalogue: what earlier versions are removed, and what of
//! them is restored.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::catalogues::document;
use crate::programs::run;

/// Longer than versions are kept.
const AGE: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// A catalogue in a folder.
struct Catalogue(tempfile::TempDir);

impl Catalogue {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn uri(&self) -> String {
        format!("file://{}/catalogue/", self.0.path().display())
    }

    fn run(&self, arguments: &[&str]) -> (String, Option<i32>) {
        run(self.0.path(), &[arguments, &["--to", &self.uri()]].concat())
    }

    /// Puts a subscription with so many attempts.
    fn put(&self, name: &str, owner: &str, attempts: u32) {
        self.put_text(&document(name, &format!(", retry: {{maxAttempts: {attempts}}}")), owner);
    }

    fn put_text(&self, text: &str, owner: &str) {
        fs::write(self.0.path().join("put.yaml"), text).expect("a file");
        let (printed, code) =
            self.run(&["subscriptions", "put", "-f", "put.yaml", "--owner", owner]);
        assert_eq!(code, Some(0), "{printed}");
    }

    fn rollback(&self, more: &[&str]) -> (String, Option<i32>) {
        self.run(&[&["rollback", "--namespace", "shop"], more].concat())
    }

    /// How many attempts each subscription has, and who applied it.
    fn attempts(&self) -> Vec<String> {
        let (printed, code) = self.run(&["subscriptions", "list", "shop", "--output", "json"]);
        assert_eq!(code, Some(0), "{printed}");
        let listed: Value = serde_json::from_str(&printed).expect("JSON");
        let one = |listed: &Value| {
            let name = listed["name"].as_str().expect("a name");
            let (printed, code) = self.run(&["subscriptions", "get", name]);
            assert_eq!(code, Some(0), "{printed}");
            let stored: Value = serde_json::from_str(&printed).expect("JSON");
            let owner = listed["owner"].as_str().expect("an owner");
            format!("{name} {owner} {}", stored["is"]["retry"]["maxAttempts"])
        };
        listed.as_array().expect("a list").iter().map(one).collect()
    }

    fn objects(&self, namespace: &str) -> PathBuf {
        self.0.path().join("catalogue/namespaces").join(namespace).join("objects")
    }

    /// Makes all objects of a namespace so old that what is not needed is garbage.
    fn age(&self, namespace: &str) {
        for object in fs::read_dir(self.objects(namespace)).expect("a folder") {
            age(&object.expect("a file").path());
        }
    }
}

/// Sets the modification time of a file back.
pub(crate) fn age(path: &Path) {
    let file = File::options().write(true).open(path).expect("a file");
    let modified = file.metadata().and_then(|it| it.modified()).expect("a time");
    file.set_modified(modified - AGE).expect("a time");
}

#[test]
fn gc_removes_what_is_old_and_not_needed_in_each_namespace() {
    let catalogue = Catalogue::new();
    for attempts in [1, 2, 3] {
        catalogue.put("a", "one", attempts);
    }
    let gc = |arguments: &[&str]| catalogue.run(&[&["subscriptions", "gc"], arguments].concat());
    let (printed, code) = gc(&["--output", "json"]);
    assert_eq!(code, Some(0), "{printed}");
    let of_namespace = |name: &str, objects: u64, removed: u64, versions: u64| serde_json::json!({"namespace": name, "objects": objects, "removed": removed, "versions": versions});
    let collected: Value = serde_json::from_str(&printed).expect("JSON");
    let wanted = [of_namespace("_deployment", 2, 0, 1), of_namespace("shop", 6, 0, 3)];
    assert_eq!(collected, Value::from(wanted.to_vec()));

    catalogue.age("shop");
    let (printed, code) = gc(&["shop", "--output", "json"]);
    assert_eq!(code, Some(0), "{printed}");
    let collected: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(collected, Value::from(vec![of_namespace("shop", 6, 4, 1)]));
    assert_eq!(fs::read_dir(catalogue.objects("shop")).expect("a folder").count(), 2);
    assert_eq!(catalogue.attempts(), ["shop/orders/a one 3"]);

    let (printed, code) = catalogue.rollback(&["--owner", "one", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("version 2 of shop is no longer there"), "{printed}");
    assert!(printed.contains("for 30 days after"), "{printed}");
}

#[test]
fn gc_goes_on_after_a_namespace_that_it_cannot_read() {
    let catalogue = Catalogue::new();
    catalogue.put("a", "one", 1);
    catalogue.put_text(&document("a", "").replace("namespace: shop", "namespace: attic"), "one");
    let pointer = catalogue.0.path().join("catalogue/namespaces/attic/pointer");
    fs::write(pointer, "damaged").expect("a file");
    let (printed, code) = catalogue.run(&["subscriptions", "gc", "attic", "nobody", "shop"]);
    assert_eq!(code, Some(1), "{printed}");
    for part in [
        "the namespace attic: the object namespaces/attic/pointer is damaged",
        "the namespace nobody: it has no pointer, so nothing is removed",
        "shop ",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!printed.contains("\nattic") && !printed.contains("\nnobody"), "{printed}");
    let empty = Catalogue::new();
    let (printed, code) = empty.run(&["subscriptions", "gc"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("has no namespaces"), "{printed}");
}

#[test]
fn a_rollback_restores_one_owners_entries_as_a_new_version() {
    let catalogue = Catalogue::new();
    catalogue.put("a", "one", 1);
    catalogue.put("b", "two", 1);
    catalogue.put("a", "one", 2);
    catalogue.put("c", "one", 2);
    catalogue.put("b", "two", 2);
    let (printed, code) = catalogue.rollback(&["--owner", "one", "--version", "2"]);
    assert_eq!(code, Some(2), "nobody confirms: {printed}");
    let (printed, code) = catalogue.rollback(&["--owner", "one", "--version", "2", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    for part in [
        "~ subscription shop/orders/a\n    retry.maxAttempts: 2 -> 1",
        "- subscription shop/orders/c",
        "shop: version 6, ",
        r#"the entries of "one" in shop are those of version 2"#,
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!printed.contains("orders/b"), "{printed}");
    assert_eq!(catalogue.attempts(), ["shop/orders/a one 1", "shop/orders/b two 2"]);

    // The one before the newest: that undoes the rollback.
    let (printed, code) = catalogue.rollback(&["--owner", "one", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    let all = ["shop/orders/a one 2", "shop/orders/b two 2", "shop/orders/c one 2"];
    assert_eq!(catalogue.attempts(), all);
    let (printed, code) = catalogue.rollback(&["--owner", "one", "--version", "7", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("nothing to do"), "{printed}");

    let (printed, code) = catalogue.rollback(&["--list"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("changed orders/a") && printed.contains(" as two"), "{printed}");
    let (printed, code) = catalogue.rollback(&["--owner", "one", "--version", "8", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("its newest is version 7"), "{printed}");
    let (printed, code) = catalogue.rollback(&["--owner", "three", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(r#""three" has no entries in shop"#), "{printed}");
    assert_eq!(catalogue.attempts(), all);
}

#[test]
fn a_rollback_takes_nothing_from_another_owner() {
    let catalogue = Catalogue::new();
    catalogue.put("a", "one", 1);
    let (printed, code) =
        catalogue.run(&["subscriptions", "delete", "shop/orders/a", "--owner", "one", "--yes"]);
    assert_eq!(code, Some(0), "{printed}");
    catalogue.put("a", "two", 2);
    let (printed, code) = catalogue.rollback(&["--owner", "one", "--version", "1", "--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(r#"orders/a belongs to "two" now"#), "{printed}");
    assert_eq!(catalogue.attempts(), ["shop/orders/a two 2"]);
}

#[test]
fn settings_of_the_deployment_are_restored_like_entries_of_a_namespace() {
    let catalogue = Catalogue::new();
    let topic = |from: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\n\
             spec: {{input: sns, from: [{{snsTopic: 'arn:aws:sns:us-east-1:000000000000:{from}'}}]}}\n"
        )
    };
    for from in ["first", "second"] {
        fs::write(catalogue.0.path().join("all.yaml"), topic(from)).expect("a file");
        let apply = ["apply", "-f", "all.yaml", "--yes", "--prune", "--allow-empty"];
        let (printed, code) = catalogue.run(&apply);
        assert_eq!(code, Some(0), "{printed}");
    }
    let back = ["rollback", "--namespace", "_deployment", "--owner", "files", "--yes"];
    let (printed, code) = catalogue.run(&back);
    assert_eq!(code, Some(0), "{printed}");
    let line = |mark: &str, arn: &str| {
        let of_change = |line: &str| line.starts_with(&format!("{mark} settings/"));
        printed.lines().any(|line| of_change(line) && line.contains(arn))
    };
    assert!(line("-", ":second") && line("+", ":first"), "{printed}");
    assert!(printed.contains("_deployment: version 3, "), "{printed}");
}

#[test]
fn arguments_that_suit_only_a_file_or_only_a_catalogue_are_usage_errors() {
    let catalogue = Catalogue::new();
    catalogue.put("a", "one", 1);
    for (arguments, problem) in [
        (["--owner", "one"].as_slice(), "--namespace is required"),
        (&["--list"], "--namespace is required"),
        (&["--namespace", "shop"], "--owner is required"),
        (&["--namespace", "shop", "--owner", "one", "--version", "current"], "the number of a"),
    ] {
        let (printed, code) = catalogue.run(&[&["rollback", "--yes"], arguments].concat());
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(problem), "{printed}");
    }
    let uri = format!("file://{}/put.yaml", catalogue.0.path().display());
    for option in ["--owner", "--namespace"] {
        let (printed, code) =
            run(catalogue.0.path(), &["rollback", "--to", &uri, "--yes", option, "one"]);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains("are for catalogues"), "{printed}");
    }
    let (printed, code) = run(catalogue.0.path(), &["subscriptions", "gc", "--to", &uri]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("is a file"), "{printed}");
}
