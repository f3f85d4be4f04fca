//! The template of a release: the same, but for one processor and with functions that are built.

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
        let parameter = &mut expected["Parameters"]["Architecture"];
        parameter["Default"] = json!(processor);
        parameter["AllowedValues"] = json!([processor]);
        let resources = expected["Resources"].as_object_mut().expect("the template has resources");
        let functions =
            resources.values_mut().filter(|it| it["Type"] == "AWS::Serverless::Function");
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
