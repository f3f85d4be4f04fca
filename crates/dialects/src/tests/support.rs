//! Helpers for the tests of every family: readings, documents of the native form, and tables of
//! findings.

use std::sync::Arc;

use delivery::subscription::Subscription;

use crate::{Reading, Severity, Source, read};

/// The name of the only file, in findings.
pub(crate) const FILE: &str = "f";

pub(crate) fn read_one(text: &str) -> Reading {
    read(&[Source { name: FILE, text }])
}

pub(crate) fn shown(reading: &Reading) -> Vec<String> {
    reading.findings.iter().map(ToString::to_string).collect()
}

pub(crate) fn found(text: &str) -> Vec<String> {
    shown(&read_one(text))
}

/// The subscription of this name.
pub(crate) fn named(reading: &Reading, name: &str) -> Arc<Subscription> {
    let found = reading.catalogue.subscription(&name.parse().expect("a name"));
    Arc::clone(found.unwrap_or_else(|| panic!("no {name}: {:#?}", shown(reading))))
}

pub(crate) fn names(reading: &Reading) -> Vec<String> {
    reading.catalogue.subscriptions().map(|subscription| subscription.name.to_string()).collect()
}

/// The stated values of a subscription, each with its place.
pub(crate) fn origins(reading: &Reading, name: &str) -> Vec<String> {
    let origins = &reading.origins[&name.parse().expect("a name")];
    origins.iter().map(|(field, at)| format!("{field} {at}")).collect()
}

/// A native Topic with these fields of its `spec`; three lines before the `spec`, and a separator
/// at the end.
pub(crate) fn native_topic(name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').expect("a namespace and a name");
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: {namespace}, name: {name}}}\n\
         spec: {{{spec}}}\n---\n"
    )
}

/// A native Subscription with these fields of its `spec`, in as many lines.
pub(crate) fn native_subscription(name: &str, spec: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    let [namespace, topic, name] = parts[..] else { panic!("{name}") };
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: {namespace}, topic: {topic}, name: {name}}}\nspec: {{{spec}}}\n---\n"
    )
}

/// The rows of a table: a line, and below it an indented line that belongs to it. Lines with `#`
/// are headings.
pub(crate) fn rows(table: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut rows = Vec::new();
    while let Some(first) = lines.next() {
        let second = lines.next().and_then(|line| line.strip_prefix("    "));
        rows.push((first, second.unwrap_or_else(|| panic!("nothing belongs to {first}"))));
    }
    rows
}

/// Reads a text with `^` at the place of its one finding of a severity: the finding begins with
/// these words.
pub(crate) fn finds_one(marked: &str, expected: &str) -> Reading {
    let (before, after) = marked.split_once('^').unwrap_or_else(|| panic!("no ^ in {marked}"));
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let reading = read_one(&format!("{before}{after}"));
    let severity = expected.split(':').next().unwrap_or_default();
    let of_severity =
        reading.findings.iter().filter(|finding| finding.severity.as_str() == severity);
    let found: Vec<String> = of_severity.map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{marked}: {:#?}", shown(&reading));
    let expected = format!("{FILE}:{line}:{column}: {expected}");
    assert!(
        found[0].starts_with(&expected),
        "{marked}\nexpected {expected}\nfound    {}",
        found[0]
    );
    reading
}

/// The errors and warnings of a reading.
pub(crate) fn problems(reading: &Reading) -> Vec<String> {
    let problems = reading.findings.iter().filter(|finding| finding.severity != Severity::Note);
    problems.map(ToString::to_string).collect()
}
