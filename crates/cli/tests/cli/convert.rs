//! `convert`: every dialect in the native form, which means the same and is converted into itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::deployments::{apply, document};
use crate::programs::run;

/// The examples of the tree, one for each dialect.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let names = fs::read_dir(folder).expect("there are examples");
    let files = names.map(|name| name.expect("a name").path());
    let mut files: Vec<PathBuf> = files.filter(|path| is_document(path)).collect();
    files.sort();
    files
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|of| ["yaml", "yml", "json"].iter().any(|known| of == *known))
}

fn lastmile(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The subscriptions of a file as `explain` shows them: schedule, end, filter and policy, without where values are written.
fn explained(path: &Path) -> BTreeMap<String, Value> {
    let path = path.to_str().expect("a path");
    let printed = lastmile(&["explain", "-f", path, "--outcome", "503", "--output", "json"]).stdout;
    let all: Value = serde_json::from_slice(&printed).unwrap_or_default();
    let all = all.as_array().cloned().unwrap_or_else(|| vec![all]);
    let without_origins = |mut of: Value| {
        let policy = of["policy"].as_object_mut();
        for setting in policy.into_iter().flat_map(|policy| policy.values_mut()) {
            *setting = setting["value"].take();
        }
        (of["subscription"].to_string(), of)
    };
    all.into_iter().filter(Value::is_object).map(without_origins).collect()
}

/// Converts a file, and what comes out of it; both have to mean the same.
fn converts(path: &Path) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let first = lastmile(&["convert", path.to_str().expect("a path")]);
    let converted = folder.path().join("converted.yaml");
    fs::write(&converted, &first.stdout).expect("the file can be written");
    if first.stdout.is_empty() {
        return;
    }
    let second = lastmile(&["convert", converted.to_str().expect("a path")]);
    assert_eq!(second.status.code(), Some(0), "{}: {}", path.display(), text(&second.stderr));
    assert_eq!(text(&second.stdout), text(&first.stdout), "{}", path.display());
    let (before, after) = (explained(path), explained(&converted));
    if !before.is_empty() {
        assert_eq!(after, before, "{}", path.display());
    }
}

#[test]
fn the_examples_of_every_dialect_mean_the_same_in_the_native_form() {
    let examples = examples();
    assert!(examples.len() > 3, "{examples:?}");
    examples.iter().for_each(|path| converts(path));
}

#[test]
fn a_rule_of_eventbridge_means_the_same_in_the_native_form() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/eventbridge");
    converts(&folder);
    let printed = lastmile(&["convert", folder.to_str().expect("a path")]);
    assert_eq!(printed.status.code(), Some(0));
    let (documents, findings) = (text(&printed.stdout), text(&printed.stderr));
    assert!(documents.contains("name: orders-to-crm"), "{documents}");
    assert!(
        findings.contains("connection.json:8:29: warning: AuthParameters.ApiKeyAuthParameters")
    );
}

#[test]
fn files_that_describe_no_rule_are_errors_with_the_next_step() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let rule = include_str!("../../../../examples/eventbridge/rule.json");
    for (name, content, problem) in [
        (
            "rule.json",
            rule,
            "no file has the targets of this rule; add the output of: aws events list-targets-by-rule",
        ),
        ("rule.json", &rule[..40], "not JSON that can be read: "),
        (
            "rules.json",
            r#"{"Rules": []}"#,
            "rules.json:1:11: error: Rules: a list of EventBridge is not read; add the output",
        ),
        ("bus.json", r#"{"Name": "default"}"#, "bus.json:1:1: error: apiVersion is missing"),
    ] {
        fs::write(folder.path().join(name), content).expect("the file can be written");
        let (printed, code) = run(folder.path(), &["convert", name]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(problem) && printed.contains(name), "{printed}");
    }
}

#[test]
fn json_is_a_list_of_the_same_documents() {
    let path = examples().into_iter().next().expect("an example");
    let path = path.to_str().expect("a path");
    let json: Vec<Value> =
        serde_json::from_slice(&lastmile(&["convert", path, "--output", "json"]).stdout)
            .expect("a list");
    let yaml: Vec<Value> =
        serde_saphyr::from_multiple(&text(&lastmile(&["convert", path]).stdout)).expect("YAML");
    assert_eq!(json, yaml);
    assert!(json.iter().all(|of| of["apiVersion"] == "lastmile.dev/v1"), "{json:?}");
}

#[test]
fn characters_that_cannot_be_seen_stay_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("joined.json");
    let subscription = "{\"apiVersion\": \"lastmile.dev/v1\", \"kind\": \"Subscription\", \
                        \"metadata\": {\"namespace\": \"n\", \"topic\": \"t\", \"name\": \"s\"}, \"spec\": {\
                        \"destination\": {\"url\": \"https://a.example.com/\"}, \
                        \"filter\": {\"exact\": {\"subject\": \"\u{1f468}\u{200d}\u{1f469}\"}}}}";
    fs::write(&file, subscription).expect("the file can be written");
    for output in ["yaml", "json"] {
        let path = file.to_str().expect("a path");
        let printed = text(&lastmile(&["convert", path, "--output", output]).stdout);
        let documents: Vec<Value> = match output {
            "json" => serde_json::from_str(&printed).expect("JSON"),
            _ => serde_saphyr::from_multiple(&printed).expect("YAML"),
        };
        let of_subscription = documents.iter().find(|of| of["kind"] == "Subscription");
        let subject = &of_subscription.expect("it is there")["spec"]["filter"]["exact"]["subject"];
        assert_eq!(subject, "\u{1f468}\u{200d}\u{1f469}", "{printed}");
    }
}

#[test]
fn files_in_which_nothing_can_be_converted_are_an_error_and_no_empty_text() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("destinations.yaml");
    let document =
        "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {crm: https://crm.test/}\n";
    fs::write(&path, document).expect("the file can be written");
    let converted = lastmile(&["convert", path.to_str().expect("a path")]);
    assert_eq!(converted.status.code(), Some(1));
    assert_eq!(text(&converted.stdout), "");
    let problem = text(&converted.stderr);
    assert!(problem.contains("no Topic and no Subscription"), "{problem}");
}

#[test]
fn the_objects_of_files_are_those_that_apply_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\nspec: {maxReplies: 3}\n";
    let other =
        document("b", ", retry: {maxAttempts: 3}").replace("topic: orders", "topic: 'new ones'");
    let documents = [document("a", ""), other, topic.to_owned()];
    apply(folder.path(), "team", &documents);
    let convert = ["convert", "applied.yaml", "--objects", "topics", "--owner", "team"];
    let (printed, code) = run(folder.path(), &convert);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("shop/new%20ones.json: ") && !printed.contains("left out"),
        "{printed}"
    );
    let mut names: Vec<String> = fs::read_dir(folder.path().join("topics/shop"))
        .expect("a folder")
        .map(|of| of.expect("a name").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["new%20ones.json", "orders.json"]);
    for name in names {
        let [applied, converted] = ["subscriptions", "topics"]
            .map(|of| fs::read_to_string(folder.path().join(of).join("shop").join(&name)));
        assert_eq!(converted.expect("a file"), applied.expect("an object"), "{name}");
    }
}

#[test]
fn objects_beside_the_topics_are_left_out_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let native = "apiVersion: lastmile.dev/v1\nkind";
    let others = [
        format!(
            "{native}: Topic\nmetadata: {{namespace: shop, name: sns}}\nspec: {{input: sns, from: [{{bucket: uploads}}]}}\n"
        ),
        format!("{native}: SecretPolicy\nspec: {{secrets: []}}\n"),
        format!("{native}: Destinations\nspec: {{crm: 'https://crm.example.com/'}}\n"),
    ];
    fs::write(folder.path().join("s.yaml"), others.join("---\n")).expect("a file");
    let (printed, code) = run(folder.path(), &["convert", "s.yaml", "--objects", "topics"]);
    assert_eq!(code, Some(0), "{printed}");
    let left_out = "left out: _settings.json, _publishers.json, _destinations/files.json; lastmile apply writes";
    assert!(printed.contains(left_out), "{printed}");
    let written: Vec<_> = fs::read_dir(folder.path().join("topics"))
        .expect("a folder")
        .map(|of| of.expect("a name").file_name())
        .collect();
    assert_eq!(written, ["shop"]);
}

#[test]
fn objects_are_not_written_of_files_that_apply_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, problem) in [
        (document("a", ", retries: 3"), "retries"),
        (
            document("a", "").replace("a.example.com", "replace-me.invalid"),
            "replace the placeholders",
        ),
        (
            "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n".to_owned(),
            "no Topic and no Subscription",
        ),
    ] {
        fs::write(folder.path().join("s.yaml"), text).expect("a file");
        let (printed, code) = run(folder.path(), &["convert", "s.yaml", "--objects", "topics"]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(problem), "{printed}");
        assert!(!folder.path().join("topics").exists());
    }
    let (printed, code) = run(folder.path(), &["convert", "s.yaml", "--owner", "team"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("--objects"), "{printed}");
}
