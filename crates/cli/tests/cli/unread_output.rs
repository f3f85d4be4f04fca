//! Commands whose output is not read to its end. A command that changes something finishes, and its
//! exit code is that of the change.

use std::path::Path;
use std::process::Stdio;

use crate::deployments::{document, uri};
use crate::programs::{lastmile, run};

/// Runs a command whose output is not read. Returns its exit code.
fn unread(folder: &Path, arguments: &[&str]) -> Option<i32> {
    let mut command = lastmile(folder, arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().expect("it starts");
    drop(process.stdout.take());
    process.wait().expect("it ends").code()
}

#[test]
fn a_change_is_made_although_nobody_reads_what_it_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let other = document("b", "").replace("namespace: shop", "namespace: bank");
    std::fs::write(folder.join("a.yaml"), [document("a", ""), other].join("---\n"))
        .expect("a file");
    let to = uri(folder);
    assert_eq!(unread(folder, &["apply", "-f", "a.yaml", "--yes", "--to", &to]), Some(0));
    let listed =
        |namespace: &str| run(folder, &["subscriptions", "list", namespace, "--to", &to]).0;
    for (namespace, name) in [("shop", "shop/orders/a"), ("bank", "bank/orders/b")] {
        let listed = listed(namespace);
        assert!(listed.contains(name), "{listed}");
    }
    let delete = ["subscriptions", "delete", "shop/orders/a", "--yes", "--to", &to];
    assert_eq!(unread(folder, &delete), Some(0));
    assert!(!listed("shop").contains("shop/orders/a"));
}

#[test]
fn an_answer_is_the_same_although_nobody_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = document("a", ", maxAttempts: 3");
    std::fs::write(folder.path().join("a.yaml"), broken).expect("a file");
    assert_eq!(unread(folder.path(), &["check", "a.yaml"]), Some(1));
    // A command that only prints ends without an error.
    assert_eq!(unread(folder.path(), &["completions", "bash"]), Some(0));
}
