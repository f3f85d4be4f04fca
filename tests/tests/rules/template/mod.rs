//! The promises that rest on a property of `template.yaml`, a test for each.
//!
//! The template is read as YAML without tags: `!Ref Name` is the text `Name`, and `!If [A, b, c]` a
//! list of three.

mod access;
mod aws_targets;
mod buckets;
mod functions;
mod http_api;
mod keys;
mod notify;
mod people;
mod pollers;
mod queues;
mod release;
mod samconfig;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

static TEMPLATE: LazyLock<Value> = LazyLock::new(|| read("template.yaml"));

/// A template of the repository.
fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_saphyr::from_str(&text).expect("a template is YAML")
}

/// The templates beside the application's, by name.
fn surrounding() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra");
    let entries = fs::read_dir(folder).expect("there is infra");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let names = names.map(|name| format!("infra/{}", name.expect("a plain name")));
    names.filter(|name| name.ends_with(".yaml")).collect()
}

/// The names of the resources of this type, and their properties.
fn resources(of_type: &str) -> Vec<(&'static str, &'static Value)> {
    let all = TEMPLATE["Resources"].as_object().expect("the template has resources");
    let found = all.iter().filter(|(_, resource)| resource["Type"] == of_type);
    found.map(|(name, resource)| (name.as_str(), &resource["Properties"])).collect()
}

/// The properties of a resource.
fn properties(resource: &str) -> &'static Value {
    &TEMPLATE["Resources"][resource]["Properties"]
}

/// The texts of a property that is one text or a list of them.
fn texts(property: &'static Value) -> Vec<&'static str> {
    match property.as_array() {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => property.as_str().into_iter().collect(),
    }
}

/// The statement with this id of a policy document, and the condition under which it is there.
fn statement(document: &'static Value, id: &str) -> Option<(Option<&'static str>, &'static Value)> {
    statements(document).into_iter().find(|(_, statement)| statement["Sid"] == id)
}

/// The statements of a policy document, each with the condition under which it is there.
fn statements(document: &'static Value) -> Vec<(Option<&'static str>, &'static Value)> {
    let all = document["Statement"].as_array().expect("a policy has statements");
    let with_condition = |statement: &'static Value| match statement.as_array().map(Vec::as_slice) {
        Some([condition, then, otherwise]) => {
            assert_eq!(otherwise, "AWS::NoValue", "{then:#}");
            (condition.as_str(), then)
        }
        _ => (None, statement),
    };
    all.iter().map(with_condition).collect()
}

/// The statement that refuses requests without TLS to these resources.
fn tls_only(action: &str, resource: &Value) -> Value {
    json!({"Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": action, "Resource": resource,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}}})
}

/// The lines that match a pattern, as CloudFormation matches a whole value with it.
fn matching(pattern: &str, lines: &str) -> String {
    let mut grep = Command::new("grep");
    let grep = grep.args(["-P", pattern]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut grep = grep.spawn().expect("there is grep");
    let mut input = grep.stdin.take().expect("it reads");
    let lines = lines.to_owned();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = grep.wait_with_output().expect("grep ends");
    writer.join().expect("no panic").expect("grep reads all");
    String::from_utf8(output.stdout).expect("lines are text")
}
