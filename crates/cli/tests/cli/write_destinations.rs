//! `check --write-destinations`: files of others, and the one step that makes them deployable.

use crate::programs::run;

const TRIGGER: &str = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t}\nspec:\n  broker: b\n  \
                       subscriber: {ref: {apiVersion: v1, kind: Service, name: billing}}\n  \
                       delivery: {deadLetterSink: {ref: {apiVersion: v1, kind: Service, name: lost}}}\n";
const RESOURCE: &str = r#"{"type": "Microsoft.EventGrid/eventSubscriptions", "name": "s", "lastmile": {"topic": "n/t"},
 "properties": {"destination": {"endpointType": "AzureFunction", "properties": {"resourceId": "/subscriptions/a/functions/f \"x\""}}}}"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("trigger.yaml"), TRIGGER).expect("written");
    std::fs::write(folder.path().join("resource.json"), RESOURCE).expect("written");
    folder
}

#[test]
fn the_missing_addresses_are_written_as_placeholders_and_then_the_files_pass() {
    let folder = folder();
    let (printed, code) = run(folder.path(), &["check", "."]);
    assert_eq!(code, Some(1), "{printed}");
    let arguments = ["check", "trigger.yaml", "resource.json", "--write-destinations", "d.yaml"];
    let (printed, code) = run(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("2 entries added to d.yaml"), "{printed}");
    assert_eq!(printed.matches("has a placeholder as its destination").count(), 2, "{printed}");
    let written = std::fs::read_to_string(folder.path().join("d.yaml")).expect("it is there");
    assert_eq!(
        written,
        "# What references in other files are here. Replace each address with a real one.\n\
         apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  \
         \"/subscriptions/a/functions/f \\\"x\\\"\": \"https://replace-me.invalid/subscriptions/a/functions/f--x-\"\n  \
         \"v1/Service/default/billing\": \"https://replace-me.invalid/v1/Service/default/billing\"\n  \
         # \"v1/Service/default/lost\": \"s3://bucket/prefix\"   # without it, to the default container\n"
    );
}

#[test]
fn what_is_in_the_file_stays_and_only_what_is_missing_is_added() {
    let folder = folder();
    let (mine, path) = (
        "# mine\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {v1/Service/default/billing: 'https://b.example.com/'}\n",
        folder.path().join("d.yaml"),
    );
    std::fs::write(&path, mine).expect("written");
    // A folder that holds the file: it is not read twice.
    for added in [true, false] {
        let (printed, code) = run(folder.path(), &["check", ".", "--write-destinations", "d.yaml"]);
        assert_eq!((code, printed.contains("1 entries added")), (Some(0), added), "{printed}");
        let written = std::fs::read_to_string(&path).expect("it is there");
        assert!(written.starts_with(mine), "{written}");
        assert_eq!(written.matches("kind: Destinations").count(), 2);
    }
}

#[test]
fn no_other_file_is_written_to() {
    let folder = folder();
    for (name, text) in [
        ("run.sh", "#!/bin/sh\n"),
        (
            "d.json",
            r#"{"apiVersion": "lastmile.dev/v1", "kind": "Destinations", "spec": {"a": "https://a/"}}"#,
        ),
        ("broken.yaml", "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {a: 'https://a/\n"),
        ("mixed.yaml", TRIGGER),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        let (printed, code) =
            run(folder.path(), &["check", "trigger.yaml", "--write-destinations", name]);
        assert_eq!(code, Some(2), "{name}: {printed}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    }
}

#[test]
fn a_tool_learns_which_reference_lacks_an_address_and_what_for() {
    let folder = folder();
    let (printed, _) = run(folder.path(), &["check", "trigger.yaml", "--output", "json"]);
    let line = printed.lines().find(|line| line.starts_with('{')).expect("an object");
    let report: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let references: Vec<_> = report["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding.get("reference").cloned())
        .collect();
    assert_eq!(
        references,
        [
            serde_json::json!({"key": "v1/Service/default/billing", "for": "events"}),
            serde_json::json!({"key": "v1/Service/default/lost", "for": "deadLetters"}),
        ]
    );
}
