//! Files of other projects, as their authors wrote them. They deploy once each reference has an
//! address.
//!
//! Separate from the tests of the dialects, which check the meaning of each field. These are real
//! files from the repositories of Knative and of Azure. Each has a row in
//! `docs/reference/conformance.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dialects::{Finding, Reading, ReferenceUse, Severity, Source, read};
use lastmile_tests::document::assert_table;
use serde_json::{Map, Value, json};

use super::outside;

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

/// A document with an address for every reference that the reading lacks.
fn mapped(reading: &Reading) -> String {
    let missing = reading.findings.iter().filter_map(|finding| finding.reference.as_ref());
    let entries: Map<String, Value> = missing
        .filter_map(|reference| {
            let address = match reference.used_for {
                ReferenceUse::Events => "https://a.example.com/",
                ReferenceUse::DeadLetters => "s3://dead-letters",
                // A reference that is used for tokens has an address already.
                ReferenceUse::Token => return None,
            };
            Some((reference.key.clone(), address.into()))
        })
        .collect();
    json!({"apiVersion": "lastmile.dev/v1", "kind": "Destinations", "spec": entries}).to_string()
}

fn of_severity(reading: &Reading, severity: Severity) -> Vec<&Finding> {
    reading.findings.iter().filter(|finding| finding.severity == severity).collect()
}

/// A real file, read with an address for each of its references.
struct Read {
    /// The repository and the path in it.
    name: String,
    reading: Reading,
    /// The number of references that needed an address.
    mapped: usize,
}

impl Read {
    fn new(path: &Path) -> Self {
        let file = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let repository = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let name = format!("{}: {}", repository.expect("a folder"), file.replace("__", "/"));
        let text = fs::read_to_string(path).expect("text");
        let source = Source { name: file, text: &text };
        let destinations = mapped(&read(&[source]));
        let reading = read(&[source, Source { name: "destinations.json", text: &destinations }]);
        crate::canonical::is_kept(&reading);
        let mapped = reading.destinations.len();
        Self { name, reading, mapped }
    }

    fn errors(&self) -> String {
        let errors = of_severity(&self.reading, Severity::Error);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    /// The row of the docs: the result, and the warnings and notes.
    fn row(&self) -> String {
        let [warnings, notes] = [Severity::Warning, Severity::Note].map(|severity| {
            let found = of_severity(&self.reading, severity);
            found.into_iter().map(|finding| finding.message.as_str()).collect::<BTreeSet<&str>>()
        });
        let warnings: Vec<&str> = warnings.into_iter().chain(notes).collect();
        let errors = of_severity(&self.reading, Severity::Error);
        let result = match errors.first() {
            Some(error) => format!("refused: {}", error.message),
            None => "accepted".to_owned(),
        };
        let subscriptions = self.reading.catalogue.subscriptions().count();
        format!(
            "| {} | {result} | {subscriptions} | {} | {} |",
            self.name,
            self.mapped,
            warnings.join("; ").replace('|', "\\|")
        )
    }
}

#[test]
fn knative_files_are_accepted_once_their_references_have_addresses() {
    let Some(folder) = outside("corpus/manifests") else { return };
    let all: Vec<Read> = files(&folder).iter().map(|path| Read::new(path)).collect();
    assert_eq!(all.len(), 78);
    let refused: Vec<String> =
        all.iter().map(Read::errors).filter(|errors| !errors.is_empty()).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let head = "| file | result | subscriptions | addresses to add | warnings and notes |";
    let rows: Vec<String> = all.iter().map(Read::row).collect();
    assert_table("reference/conformance.md", "knative-files", head, &rows);
}

/// The row of an Event Grid file: its subscriptions once each reference has an address, the result,
/// and the warnings.
fn row(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let text = fs::read_to_string(path).expect("text");
    let source = Source { name, text: &text };
    let first = read(&[source]);
    let missing = first.findings.iter().filter(|finding| finding.reference.is_some()).count();
    let destinations = mapped(&first);
    let reading = read(&[source, Source { name: "destinations.json", text: &destinations }]);
    crate::canonical::is_kept(&reading);
    let result = match of_severity(&reading, Severity::Error).first() {
        None if missing == 0 => "accepted".to_owned(),
        None => "accepted, once its endpoint has an address".to_owned(),
        Some(error) => format!("refused: {}", error.message),
    };
    let subscriptions = reading.catalogue.subscriptions();
    let subscriptions: Vec<String> = subscriptions
        .map(|subscription| format!("`{}` ({})", subscription.name, subscription.dialect.as_str()))
        .collect();
    let warnings = reading.findings.iter().filter(|finding| finding.severity == Severity::Warning);
    let warnings: BTreeSet<&str> = warnings.map(|finding| finding.message.as_str()).collect();
    let warnings = warnings.into_iter().collect::<Vec<_>>().join("; ");
    format!("| `{name}` | {} | {result} | {warnings} |", subscriptions.join(", "))
}

#[test]
fn resources_of_event_grid_are_accepted_as_the_documentation_says() {
    let Some(folder) = outside("corpus/eventgrid") else { return };
    let rows: Vec<String> = files(&folder).iter().map(|path| row(path)).collect();
    assert_eq!(rows.len(), 14);
    let head = "| file | subscriptions | result | warnings |";
    assert_table("reference/conformance.md", "event-grid-files", head, &rows);
}
