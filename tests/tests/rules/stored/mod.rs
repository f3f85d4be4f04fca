//! The stored text of subscriptions and topics: whatever is written is read to an equal value and written to the same
//! bytes again. Version 1 is permanent: its texts are `crates/delivery/fixtures/stored/v1`, and a fixture is added, never
//! changed.

mod fixtures;
mod generated;
mod refused;

use delivery::subscription::topic_settings::TopicSettings;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Topic;
use delivery::wire::stored::{read_subscription, read_topic, write_subscription, write_topic};
use dialects::{Finding, Reading, Source};

/// Writes it, reads that, and returns the text.
#[track_caller]
fn assert_subscription_is_kept(subscription: &Subscription) -> String {
    let text = write_subscription(subscription);
    let read = read_subscription(subscription.name.clone(), &subscription.mapping, &text);
    let read = read.unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(&read, subscription, "{text}");
    assert_eq!(write_subscription(&read), text);
    text
}

/// Writes it, reads that without its publishers, and returns the text.
#[track_caller]
fn assert_topic_is_kept(topic: &Topic) -> String {
    let text = write_topic(topic);
    let read = read_topic(topic.name.clone(), &text);
    let read = read.unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(
        read,
        Topic {
            settings: TopicSettings { from: Vec::new(), ..topic.settings.clone() },
            ..topic.clone()
        },
        "{text}"
    );
    assert_eq!(write_topic(&read), text);
    text
}

fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)
}

/// What a file holds. What it refers to elsewhere gets an address, which the findings ask for.
fn reading(path: &Path) -> Reading {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.display().to_string();
    let file = Source { name: &name, text: &text };
    let asked: BTreeSet<_> =
        dialects::read(&[file]).findings.iter().filter_map(asked_for).collect();
    let entries: Vec<_> =
        asked.into_iter().map(|(key, address)| format!("\"{key}\": {address}")).collect();
    let addresses = format!(
        "{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {{{}}}}}",
        entries.join(", ")
    );
    dialects::read(&[file, Source { name: "addresses", text: &addresses }])
}

/// The key that a `Destinations` document needs, and an address for it.
fn asked_for(finding: &Finding) -> Option<(String, &'static str)> {
    let (before, scheme) = finding.help.as_ref()?.split_once("://…")?.0.rsplit_once(": ")?;
    let (_, key) = before.rsplit_once("document: ").or_else(|| before.rsplit_once("spec: {"))?;
    let address = if scheme == "s3" { "s3://dead-letters" } else { "https://example.com/" };
    Some((key.trim_matches('"').to_owned(), address))
}

/// The YAML and JSON files of a folder and of its folders, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let of = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    let is_manifest = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "yaml" || extension == "json")
    };
    paths.into_iter().flat_map(of).filter(is_manifest).collect()
}

/// How many subscriptions and topics of a folder's files are kept: all that have no errors.
pub(crate) fn kept_of(folder: &Path) -> (usize, usize) {
    let (mut subscriptions, mut topics) = (0, 0);
    for path in files(folder) {
        let catalogue = reading(&path).catalogue;
        for subscription in catalogue.subscriptions() {
            assert_subscription_is_kept(subscription);
            subscriptions += 1;
        }
        for topic in catalogue.topics() {
            assert_topic_is_kept(topic);
            topics += 1;
        }
    }
    (subscriptions, topics)
}

#[test]
fn subscriptions_and_topics_of_every_file_are_kept() {
    for (folder, least) in [("examples", 6), ("crates/dialects/fixtures", 5)] {
        let (subscriptions, topics) = kept_of(&repository(folder));
        assert!(subscriptions >= least && topics >= 1, "{folder}: {subscriptions}, {topics}");
    }
}

#[test]
fn a_plain_native_subscription_takes_less_than_a_kilobyte() {
    let catalogue = reading(&repository("examples/native.yaml")).catalogue;
    let texts: Vec<_> =
        catalogue.subscriptions().map(|of| assert_subscription_is_kept(of)).collect();
    assert!(!texts.is_empty());
    for text in texts {
        assert!(text.len() < 1_024, "{}: {text}", text.len());
    }
}

#[test]
fn neither_the_name_nor_the_mapping_is_in_the_text() {
    let mapped = |subject: &str| {
        let text = format!(
            "{{apiVersion: lastmile.dev/v1, kind: Topic, metadata: {{namespace: n, name: t}}, \
             spec: {{mapping: {{subject: {{default: {subject}}}}}}}}}\n---\n\
             {{apiVersion: lastmile.dev/v1, kind: Subscription, \
             metadata: {{namespace: n, topic: t, name: {subject}}}, \
             spec: {{destination: {{url: \"https://h/\"}}}}}}"
        );
        dialects::read(&[Source { name: "f", text: &text }]).into_result().expect("valid")
    };
    let [(a, first), (b, second)] = ["a", "b"].map(|subject| {
        let catalogue = mapped(subject);
        let subscription = catalogue.subscriptions().next().expect("one").clone();
        (subscription.clone(), assert_subscription_is_kept(&subscription))
    });
    assert_eq!(first, second);
    let read = read_subscription(b.name.clone(), &Arc::clone(&b.mapping), &first).expect("valid");
    assert_eq!(read, *b);
    assert_ne!(a, b);
}
