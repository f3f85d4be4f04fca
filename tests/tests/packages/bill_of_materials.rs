//! `scripts/packages/bill-of-materials`: what CycloneDX requires of a document, and that it has what the program has.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::{root, script, succeeded};

fn bill(package: &str) -> Value {
    let mut command = script("bill-of-materials");
    command.arg(package).env("CARGO_NET_OFFLINE", "true");
    serde_json::from_str(&succeeded(&mut command)).expect("a document is JSON")
}

fn list<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document[name].as_array().unwrap_or_else(|| panic!("no {name}"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}: {value}"))
}

fn names(document: &Value) -> BTreeSet<&str> {
    list(document, "components").iter().map(|component| text(component, "name")).collect()
}

/// The fields that the schema of CycloneDX 1.6 requires, and their values where it lists them.
#[test]
fn a_bill_of_materials_has_the_fields_that_cyclonedx_requires() {
    let document = bill("lastmile");
    assert_eq!(document["bomFormat"], "CycloneDX");
    assert_eq!(document["specVersion"], "1.6");
    assert_eq!(document["version"], 1);
    let program = &document["metadata"]["component"];
    assert_eq!(program["type"], "application");
    assert_eq!(program["purl"], format!("pkg:cargo/lastmile@{}", crate::VERSION));
    let mut references = BTreeSet::from([text(program, "bom-ref")]);
    for component in list(&document, "components") {
        assert_eq!(component["type"], "library");
        let purl = format!("pkg:cargo/{}@{}", text(component, "name"), text(component, "version"));
        assert_eq!(text(component, "purl"), purl);
        assert!(references.insert(text(component, "bom-ref")), "{component}: twice");
        for hash in component["hashes"].as_array().into_iter().flatten() {
            assert_eq!(text(hash, "alg"), "SHA-256");
            let content = text(hash, "content");
            assert!(content.len() == 64 && content.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
    let dependencies = list(&document, "dependencies");
    let from: BTreeSet<&str> = dependencies.iter().map(|entry| text(entry, "ref")).collect();
    assert_eq!(from, references);
    for to in dependencies.iter().flat_map(|entry| list(entry, "dependsOn")) {
        assert!(references.contains(to.as_str().expect("a reference")), "{to}");
    }
}

#[test]
fn a_bill_of_materials_has_what_its_program_has_and_nothing_of_the_tests() {
    let [lastmile, deadletter] = ["lastmile", "deadletter"].map(bill);
    assert!(names(&lastmile).is_superset(&BTreeSet::from(["tokio", "dialects", "rustls"])));
    // The command line alone reads files; the clients of a deployed stack are a feature.
    assert!(names(&lastmile).contains("aws-sdk-cloudformation"));
    assert!(!names(&deadletter).contains("dialects"));
    assert!(names(&deadletter).contains("aws-sdk-s3"));
    for name in ["proptest", "insta", "lastmile-tests"] {
        assert!(!names(&lastmile).contains(name), "{name}");
    }
}

#[test]
fn a_crate_has_its_license_and_the_checksum_of_the_lock_file() {
    let document = bill("deadletter");
    let is_tokio = |component: &&Value| component["name"] == "tokio";
    let tokio = list(&document, "components").iter().find(is_tokio).expect("it has tokio");
    assert_eq!(tokio["licenses"][0]["expression"], "MIT");
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let entry = format!("name = \"tokio\"\nversion = \"{}\"\n", text(tokio, "version"));
    let (_, entry) = lock.split_once(&entry).expect("tokio is locked");
    let checksum = format!("checksum = \"{}\"", text(&tokio["hashes"][0], "content"));
    assert_eq!(entry.lines().nth(1), Some(&*checksum));
}

#[test]
fn a_package_that_the_workspace_does_not_have_is_refused() {
    let mut command: Command = script("bill-of-materials");
    let output = command.arg("lastmiles").output().expect("the script starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("lastmiles is no package"), "{message}");
}
