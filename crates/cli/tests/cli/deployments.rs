//! Deployments in folders: what is applied to one, and where its objects are.

use std::path::{Path, PathBuf};

use crate::programs::run;

/// A subscription with more fields in its `spec`.
pub(crate) fn document(name: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/in?code=secret'}}{more}}}\n"
    )
}

/// A subscription with more fields in its `destination`.
pub(crate) fn subscription(name: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/in?code=secret'{more}}}}}\n"
    )
}

/// The address of the deployment in this folder.
pub(crate) fn uri(folder: &Path) -> String {
    format!("file://{}/subscriptions/", folder.display())
}

/// An object of the deployment in this folder, such as `shop/orders.json`.
pub(crate) fn object(folder: &Path, name: &str) -> PathBuf {
    folder.join("subscriptions").join(name)
}

/// Runs `apply` with these documents; returns what was printed and the exit code.
fn try_apply(folder: &Path, documents: &[String], more: &[&str]) -> (String, Option<i32>) {
    std::fs::write(folder.join("applied.yaml"), documents.join("---\n")).expect("a file");
    run(folder, &[&["apply", "-f", "applied.yaml", "--to", &uri(folder)], more].concat())
}

/// Applies these documents as this owner.
pub(crate) fn apply(folder: &Path, owner: &str, documents: &[String]) {
    let more = ["--owner", owner, "--yes", "--allow-empty"];
    let (printed, code) = try_apply(folder, documents, &more);
    assert_eq!(code, Some(0), "{printed}");
}

/// Gives the deployment the subscriptions of these documents, and no others.
pub(crate) fn deploy(folder: &Path, documents: &str) {
    let more = ["--yes", "--allow-empty", "--prune"];
    let (printed, code) = try_apply(folder, &[documents.to_owned()], &more);
    assert_eq!(code, Some(0), "{printed}");
}
