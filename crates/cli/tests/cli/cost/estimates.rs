//! Runs `lastmile cost` and reads its JSON. `generated` writes `docs/reference/scale.md` with it.

use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn run(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.arg("cost").args(arguments.split_whitespace()).output().expect("the program runs")
}

pub(crate) fn printed(arguments: &str) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is text")
}

pub(crate) fn json(arguments: &str) -> Value {
    serde_json::from_str(&printed(&format!("{arguments} --output json")))
        .expect("the output is JSON")
}

pub(crate) fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().unwrap_or_else(|| panic!("no {member} in {value}"))
}

pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}"))
}

pub(crate) fn number(value: &Value, member: &str) -> f64 {
    let number = value[member].as_f64().or_else(|| value[member].as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("no {member} in {value}"))
}
