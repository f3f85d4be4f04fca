//! `infra/terraform`: the parameters and outputs that it names are those of the template, and Terraform reads it.
//!
//! Terraform validates a resource by its provider for AWS, which is downloaded from Terraform's registry. The tests download
//! nothing from there, so names of arguments are not validated.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use lastmile_tests::libraries;
use serde_json::Value;

use crate::root;

fn example() -> String {
    fs::read_to_string(root().join("infra/terraform/main.tf")).expect("the example is there")
}

/// The names in a section of the template.
fn names(section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("template.yaml")).expect("the template is there");
    let template: Value = serde_saphyr::from_str(&text).expect("a template is YAML");
    template[section].as_object().expect("a section has members").keys().cloned().collect()
}

#[test]
fn each_parameter_of_the_example_is_one_of_the_template() {
    let example = example();
    let (_, parameters) = example.split_once("parameters = merge({").expect("it has parameters");
    let (parameters, _) = parameters.split_once('}').expect("the map ends");
    let named: BTreeSet<String> = parameters
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.trim().to_owned()))
        .collect();
    assert!(named.len() >= 3 && named.is_subset(&names("Parameters")), "{named:?}");
}

#[test]
fn each_output_of_the_example_is_one_of_the_template() {
    let example = example();
    let named: BTreeSet<String> = example
        .split(".outputs[\"")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect();
    assert!(named.len() >= 2 && named.is_subset(&names("Outputs")), "{named:?}");
}

#[test]
fn each_variable_that_is_used_is_declared_and_each_that_is_declared_is_used() {
    let example = example();
    let after = |text: &str| -> BTreeSet<String> {
        let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let found = example.split(text).skip(1);
        found
            .map(|rest| rest.chars().take_while(|&character| is_name(character)).collect())
            .collect()
    };
    assert_eq!(after("var."), after("\nvariable \""));
}

#[test]
fn terraform_reads_the_example_and_would_format_it_the_same() {
    let terraform = |arguments: &[&str]| {
        let mut command = Command::new("terraform");
        command.args(arguments).current_dir(root().join("infra/terraform")).output()
    };
    if terraform(&["version"]).is_err() {
        return libraries::skipped("infra/terraform", "Terraform");
    }
    for arguments in [["fmt", "-check"], ["providers", "-no-color"]] {
        let output = terraform(&arguments).expect("Terraform starts");
        assert!(output.status.success(), "{output:?}");
    }
}
