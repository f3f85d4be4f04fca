//! The template of a release: the same, but for one processor and with functions that are built.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::TEMPLATE;

/// The template that `scripts/release-template` prints for a processor.
fn released(processor: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/release-template");
    let output = Command::new(script).arg(processor).output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("a template is text");
    serde_saphyr::from_str(&text).expect("a template is YAML")
}

#[test]
fn a_release_differs_in_how_functions_are_built_and_in_nothing_else() {
    for processor in ["arm64", "x86_64"] {
        let mut expected = TEMPLATE.clone();
        expected["Globals"]["Function"]["Architectures"] = json!([processor]);
        let resources = expected["Resources"].as_object_mut().expect("the template has resources");
        let functions = resources
            .values_mut()
            .filter(|resource| resource["Type"] == "AWS::Serverless::Function");
        for function in functions {
            let members = function.as_object_mut().expect("a function has members");
            let metadata = members.remove("Metadata").expect("it says how it is built");
            let name = metadata["BuildProperties"]["Binary"].as_str().expect("a name");
            function["Properties"]["CodeUri"] = json!(format!("{name}.zip"));
        }
        assert_eq!(released(processor), expected, "{processor}");
    }
}

#[test]
fn a_release_for_a_processor_that_lambda_does_not_have_is_refused() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/release-template");
    let output = Command::new(script).arg("riscv").output().expect("the script runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_readme_names_the_versions_that_a_release_is_made_with() {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        fs::read_to_string(path).expect("it is there")
    };
    let (lock, readme) = (file("tests/libraries/requirements.lock"), file("README.md"));
    for (package, tool) in [("cargo-lambda", "cargo-lambda"), ("ziglang", "zig")] {
        let pinned = lock.lines().find_map(|line| line.strip_prefix(&format!("{package}==")));
        let version = pinned.and_then(|line| line.split(' ').next()).expect("it is pinned");
        assert!(readme.contains(&format!("{tool} {version}")), "{tool} {version}");
    }
}
