//! The files of others, as their authors wrote them: once each reference has an address, they deploy.
//!
//! Separate from the tests of the dialects, which hold the meaning of each field: these files are real ones,
//! from the repositories of Knative.

use std::fs;
use std::path::{Path, PathBuf};

use delivery::manifest::{Reading, ReferenceUse, Severity, Source, read};
use serde_json::{Map, Value, json};

/// The files that are refused, and why. Each is a limit of this version.
const REFUSED: [(&str, &str); 1] = [(
    "slack-sink__config__100-broker.yaml",
    "delivery to the topic default/badword-broker is not supported",
)];

/// All files below a folder of the corpus.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A document that gives every reference which the reading lacks an address.
fn mapped(reading: &Reading) -> String {
    let missing = reading.findings.iter().filter_map(|finding| finding.reference.as_ref());
    let entries: Map<String, Value> = missing
        .map(|of| {
            let address = match of.used_for {
                ReferenceUse::Events => "https://a.example.com/",
                ReferenceUse::DeadLetters => "s3://dead-letters",
            };
            (of.key.clone(), address.into())
        })
        .collect();
    json!({"apiVersion": "lastmile.dev/v1", "kind": "Destinations", "spec": entries}).to_string()
}

fn errors(reading: &Reading) -> Vec<String> {
    let errors = reading.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

#[test]
fn knative_files_are_accepted_once_their_references_have_addresses() {
    let Some(folder) = crate::events::corpus_path("manifests") else { return };
    let (mut accepted, mut refused) = (0, Vec::new());
    for path in files(&folder) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let text = fs::read_to_string(&path).expect("text");
        let source = Source { name: &name, text: &text };
        let destinations = mapped(&read(&[source]));
        let reading = read(&[source, Source { name: "destinations.json", text: &destinations }]);
        match errors(&reading) {
            errors if errors.is_empty() => accepted += 1,
            errors => refused.push((name, errors.join("\n"))),
        }
    }
    assert_eq!(refused.len(), REFUSED.len(), "{refused:#?}");
    for ((name, errors), (known, why)) in refused.iter().zip(REFUSED) {
        assert!(name.ends_with(known) && errors.contains(why), "{name}: {errors}");
    }
    assert_eq!(accepted, 77);
}
