//! `convert`: every dialect in the native form, which means the same and is converted into itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The examples of the tree: a file for each dialect, and the folder of an EventBridge rule.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let names = fs::read_dir(&folder).expect("there are examples");
    let files = names.map(|name| name.expect("a name").path()).filter(|path| is_document(path));
    files.chain([folder.join("eventbridge")]).collect()
}

fn is_document(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn lastmile(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The subscriptions of a file as `explain` shows them: schedule, end, filter and policy, without
/// where values are written.
fn explained(path: &Path) -> BTreeMap<String, Value> {
    let path = path.to_str().expect("a path");
    let printed = lastmile(&["explain", "-f", path, "--outcome", "503", "--output", "json"]).stdout;
    let all: Value = serde_json::from_slice(&printed).unwrap_or_default();
    let all = all.as_array().cloned().unwrap_or_else(|| vec![all]);
    let without_origins = |mut subscription: Value| {
        let policy = subscription["policy"].as_object_mut();
        for setting in policy.into_iter().flat_map(|policy| policy.values_mut()) {
            *setting = setting["value"].take();
        }
        (subscription["subscription"].to_string(), subscription)
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
    assert!(examples.len() > 4, "{examples:?}");
    examples.iter().for_each(|path| converts(path));
}
