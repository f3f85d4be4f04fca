//! `lastmile rollback` of topics in a folder, which keeps no versions: it changes nothing. What it does in a bucket is
//! tested on the emulated AWS.

use std::path::Path;

use crate::deployments::{apply, document, object, uri};
use crate::programs::run;

/// A deployment in a folder.
struct Deployment(tempfile::TempDir);

impl Deployment {
    /// A deployment with these topics.
    fn of(topics: &[&str]) -> Self {
        let deployment = Self(tempfile::tempdir().expect("a folder"));
        let document = |topic: &&str| document("a", "").replace("orders", topic);
        let documents: Vec<String> = topics.iter().map(document).collect();
        apply(deployment.path(), "one", &documents);
        deployment
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn rollback(&self, name: &str, more: &[&str]) -> (String, Option<i32>) {
        let to = uri(self.path());
        run(self.path(), &[&["rollback", name, "--to", &to], more].concat())
    }

    fn orders(&self) -> String {
        std::fs::read_to_string(object(self.path(), "shop/orders.json")).expect("an object")
    }
}

#[test]
fn a_time_of_which_no_version_is_kept_removes_nothing() {
    let deployment = Deployment::of(&["orders"]);
    let before = deployment.orders();
    for name in ["shop/orders", "shop"] {
        let (printed, code) = deployment.rollback(name, &["--at", "2020-01-01T00:00:00Z", "--yes"]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains("shop/orders has no version of that time"), "{printed}");
    }
    let (printed, code) = deployment.rollback("shop/orders", &["--yes"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("the topic shop/orders has no earlier version"), "{printed}");
    assert_eq!(deployment.orders(), before);
}

#[test]
fn names_that_are_not_there_and_arguments_that_do_not_fit_are_errors() {
    let deployment = Deployment::of(&["orders", "others"]);
    let at = "2020-01-01T00:00:00Z";
    for (name, more, expected, problem) in [
        ("shop/orders/a", &[][..], 2, "\"shop/orders/a\" is no topic"),
        ("bank", &[], 1, "has no topic in the namespace bank"),
        ("bank", &["--at", at], 1, "has no topic in the namespace bank"),
        ("shop", &["--owner", "one"], 2, "--at is required"),
        ("shop", &["--at", "yesterday"], 2, "a time is written as 2026-11-20T07:00:00Z"),
    ] {
        let (printed, code) = deployment.rollback(name, more);
        assert_eq!(code, Some(expected), "{name} {more:?}: {printed}");
        assert!(printed.contains(problem), "{name} {more:?}: {printed}");
    }
}
