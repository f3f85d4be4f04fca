//! The public keys of subscriptions: where `apply` writes them, and when it withdraws them.

use std::path::Path;

use crate::programs::run;

const KEY: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const OTHER_KEY: &str = "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";

fn write(folder: &Path, signing: &str) {
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: 'https://a.example.com/'{signing}}}}}\n"
    );
    std::fs::write(folder.join("s.yaml"), document).expect("a file");
}

fn signed_with(keys: &[&str]) -> String {
    format!(", signing: {{secrets: ['ssm:/a'], publicKeys: ['{}']}}", keys.join("', '"))
}

/// The coordinates of the keys that are published.
fn published(folder: &Path) -> Vec<String> {
    let text = std::fs::read(folder.join("shop/orders/a.json")).expect("a key set");
    let set: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let keys = set["keys"].as_array().expect("a list").iter();
    keys.map(|key| key["x"].as_str().expect("a text").to_owned()).collect()
}

/// Applies the file, with these options.
fn apply(folder: &Path, options: &[&str]) -> String {
    let uri = format!("file://{}/subscriptions/", folder.display());
    let arguments = ["apply", "-f", "s.yaml", "--to", &uri, "--yes"];
    let (printed, code) = run(folder, &[&arguments[..], options].concat());
    assert_eq!(code, Some(0), "{printed}");
    printed
}

#[test]
fn apply_writes_public_keys_without_a_secret_and_withdraws_them() {
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const OTHER_X: &str = "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw";
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    let option = format!("--public-keys=file://{}", keys.display());
    let apply = || apply(folder.path(), &[&option]);
    write(folder.path(), "");
    assert!(!apply().contains("public key"));
    write(folder.path(), &signed_with(&[KEY]));
    let printed = apply();
    assert!(printed.contains("shop/orders/a.json: 1 public key of shop/orders/a"), "{printed}");
    assert!(
        printed.contains(&format!("destination.signing.publicKeys: not set -> [{KEY}]")),
        "{printed}"
    );
    assert_eq!(published(&keys), [X]);
    write(folder.path(), &signed_with(&[OTHER_KEY, KEY]));
    apply();
    assert_eq!(published(&keys), [OTHER_X, X]);
    assert!(apply().contains("nothing to do"));
    write(folder.path(), "");
    assert!(apply().contains("shop/orders/a.json: 0 public keys"));
    assert_eq!(published(&keys), [""; 0]);
}

#[test]
fn apply_fills_a_new_bucket_of_public_keys_although_the_topics_are_up_to_date() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &signed_with(&[KEY]));
    let printed = apply(folder.path(), &[]);
    assert!(printed.contains("public keys change and are not published"), "{printed}");
    assert!(apply(folder.path(), &[]).contains("nothing to do"));
    let keys = folder.path().join("keys");
    let option = format!("--public-keys=file://{}", keys.display());
    let printed = apply(folder.path(), &[&option]);
    assert!(printed.contains("shop/orders/a.json: 1 public key"), "{printed}");
    assert_eq!(published(&keys).len(), 1);
    assert!(apply(folder.path(), &[&option]).contains("nothing to do"));
}
