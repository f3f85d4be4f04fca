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
fn what_only_dead_letters_need_is_written_as_a_comment() {
    let folder = tempfile::tempdir().expect("a folder");
    let trigger = TRIGGER.replace(
        "{ref: {apiVersion: v1, kind: Service, name: billing}}",
        "{uri: 'https://b.example.com/'}",
    );
    std::fs::write(folder.path().join("trigger.yaml"), &trigger).expect("written");
    let arguments = ["check", "trigger.yaml", "--write-destinations", "d.yaml"];
    for is_first in [true, false] {
        let (printed, code) = run(folder.path(), &arguments);
        assert_eq!((code, printed.contains("d.yaml written")), (Some(0), is_first), "{printed}");
        let written = std::fs::read_to_string(folder.path().join("d.yaml")).expect("it is there");
        assert_eq!(
            written,
            "# What references in other files are here. Replace each address with a real one.\n\
             apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  \
             # \"v1/Service/default/lost\": \"s3://bucket/prefix\"   # without it, to the default container\n"
        );
    }
    let (printed, code) = run(folder.path(), &["check", "trigger.yaml", "d.yaml"]);
    assert_eq!(code, Some(0), "{printed}");
    // A subscriber that is missing later is added to the same file.
    std::fs::write(folder.path().join("trigger.yaml"), TRIGGER).expect("written");
    let (printed, code) = run(folder.path(), &arguments);
    assert_eq!((code, printed.contains("1 entries added")), (Some(0), true), "{printed}");
    let json = ["check", "trigger.yaml", "--write-destinations", "new.json"];
    let (printed, code) = run(folder.path(), &json);
    assert_eq!((code, printed.contains("ends with .yaml")), (Some(2), true), "{printed}");
    assert!(!folder.path().join("new.json").exists());
}

#[test]
fn files_may_be_given_by_an_option_as_well() {
    let folder = folder();
    let option = ["check", "-f", "trigger.yaml", "--write-destinations", "d.yaml"];
    let (printed, code) = run(folder.path(), &option);
    assert_eq!((code, printed.contains("1 entries added")), (Some(0), true), "{printed}");
    let (printed, code) = run(folder.path(), &["check", "--write-destinations", "d.yaml"]);
    assert_eq!(code, Some(2), "{printed}");
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
fn a_place_is_left_for_who_asks_for_a_token_and_written_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let asking = TRIGGER.replace("subscriber: {", "subscriber: {audience: them, ");
    let addressed = asking.replace("name: t}", "name: u}").replace(
        "ref: {apiVersion: v1, kind: Service, name: billing}",
        "uri: 'https://partner.example.com/in'",
    );
    let both = format!("{asking}---\n{addressed}");
    std::fs::write(folder.path().join("triggers.yaml"), both).expect("written");
    let arguments = ["check", "triggers.yaml", "--write-destinations", "d.yaml"];
    let (printed, code) = run(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("2 entries added to d.yaml"), "{printed}");
    let path = folder.path().join("d.yaml");
    let written = std::fs::read_to_string(&path).expect("it is there");
    let place = "    # auth: {oauth2: {tokenUrl: \"https://…\", clientId: \"…\", clientSecret: \"env:…\"}}   \
                 # without it, requests show no token\n";
    for (key, url) in [
        ("https://partner.example.com/in", "https://partner.example.com/in"),
        ("v1/Service/default/billing", "https://replace-me.invalid/v1/Service/default/billing"),
    ] {
        let entry = format!("  \"{key}\":\n    url: \"{url}\"\n{place}");
        assert!(written.contains(&entry), "{written}");
    }
    let (printed, code) = run(folder.path(), &arguments);
    assert!(code == Some(0) && !printed.contains("entries added"), "{printed}");
    assert_eq!(printed.matches("requests show no token").count(), 2, "{printed}");
    let filled =
        written.replace("# auth:", "auth:").replace("\"https://…\"", "https://login.example.com/");
    let filled = filled.replace("\"…\"", "lastmile").replace("env:…", "env:CLIENT_SECRET");
    std::fs::write(&path, filled).expect("written");
    let (printed, code) = run(folder.path(), &arguments);
    assert!(code == Some(0) && !printed.contains("requests show no token"), "{printed}");
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

/// A template with two queues of one account.
const TEMPLATE: &str = r#"{"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
 "contentVersion": "1.0.0.0", "resources": [
  {"type": "Microsoft.EventGrid/domains/topics/eventSubscriptions", "name": "shop/orders/one", "location": "[l()]",
   "properties": {"destination": {"endpointType": "StorageQueue", "properties": {"queueName": "one",
    "resourceId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/acc"}}}},
  {"type": "Microsoft.EventGrid/domains/topics/eventSubscriptions", "name": "shop/orders/two",
   "properties": {"destination": {"endpointType": "StorageQueue", "properties": {"queueName": "two",
    "resourceId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/acc"}}}}]}"#;

#[test]
fn a_template_gets_an_entry_for_each_queue() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.json"), TEMPLATE).expect("written");
    let arguments = ["check", "t.json", "--write-destinations", "d.yaml"];
    let (printed, code) = run(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("2 entries added to d.yaml"), "{printed}");
    let written = std::fs::read_to_string(folder.path().join("d.yaml")).expect("it is there");
    let queues = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/acc/\
                  queueServices/default/queues";
    for name in ["one", "two"] {
        let key = format!("  \"{queues}/{name}\": \"https://replace-me.invalid/");
        assert!(written.contains(&key), "{written}");
    }
}
