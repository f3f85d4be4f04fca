//! Real `lastmile` processes that change one topic, and the invariants of the topic.
//!
//! This module is separate because several tests use it: for a folder and a bucket, and for writers
//! that race or are killed. Each subscription contains the number of its change twice, so a partial
//! write is visible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use adapters::live_topics::TopicObjects;
use adapters::storage::{Fetched, StoredObject};
use delivery::topic_object::Content;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::built::binary;

/// The topic that is changed.
pub const TOPIC: &str = "shop/orders";
/// The number of subscriptions that exist before the writers start.
pub const FILLERS: u64 = 60;
/// The number of subscriptions per writer.
const NAMES: u64 = 5;
/// The pause between two reads while writers run.
const BETWEEN_READS: Duration = Duration::from_millis(1);
/// Every seventh change is a deletion. Seven has no factor in common with [`NAMES`], so deletions
/// hit all names.
const DELETION: u64 = 7;

/// The changes that writers began, and those that were acknowledged, by the names of their
/// subscriptions.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The numbers of all begun changes, finished or not.
    begun: BTreeMap<String, BTreeSet<u64>>,
    /// The last acknowledged number. A deletion removes the entry.
    acknowledged: BTreeMap<String, u64>,
}

impl Ledger {
    /// Records that a writer is about to give a subscription this number.
    pub fn begin(&self, name: &str, number: u64) {
        self.lock().begun.entry(name.to_owned()).or_default().insert(number);
    }

    /// Records that a subscription has this number, or was deleted.
    pub fn acknowledge(&self, name: &str, number: Option<u64>) {
        let acknowledged = &mut self.lock().acknowledged;
        match number {
            Some(number) => acknowledged.insert(name.to_owned(), number),
            None => acknowledged.remove(name),
        };
    }

    /// True if a writer began to give a subscription this number.
    #[must_use]
    pub fn has_begun(&self, name: &str, number: u64) -> bool {
        self.lock().begun.get(name).is_some_and(|numbers| numbers.contains(&number))
    }

    /// Returns the last acknowledged number of each subscription that was not deleted.
    #[must_use]
    pub fn acknowledged(&self) -> BTreeMap<String, u64> {
        self.lock().acknowledged.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscriptions of a deployment, with the access of the program and of this process.
#[derive(Debug)]
pub struct Place {
    program: PathBuf,
    uri: String,
    /// The folder from which this process reads the subscriptions.
    pub folder: StoredObject,
    environment: Vec<(String, String)>,
    files: tempfile::TempDir,
}

impl Place {
    /// The subscriptions at this address. The program changes them in this environment.
    ///
    /// # Panics
    /// If there is no folder for temporary files.
    #[must_use]
    pub fn new(uri: String, folder: StoredObject, environment: Vec<(String, String)>) -> Self {
        let files = tempfile::tempdir().expect("a folder");
        Self { program: binary("lastmile"), uri, folder, environment, files }
    }

    /// The subscriptions in this folder.
    ///
    /// # Panics
    /// As [`Place::new`].
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let stored = StoredObject::file(&folder.join("subscriptions"));
        Self::new(format!("file://{}/subscriptions/", folder.display()), stored, Vec::new())
    }

    /// Returns the program with these arguments and the address.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--to", &self.uri]).current_dir(self.files.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the command that applies a subscription with this number.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[must_use]
    pub fn put(&self, owner: &str, name: &str, number: u64) -> Command {
        self.apply(owner, &document("shop", name, number))
    }

    /// Returns the command that applies a file with this text.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[must_use]
    pub fn apply(&self, owner: &str, text: &str) -> Command {
        let file = format!("{owner}.yaml");
        std::fs::write(self.files.path().join(&file), text).expect("a file");
        self.command(&["apply", "-f", &file, "--owner", owner, "--yes"])
    }

    /// Applies the subscriptions that exist before the writers start.
    ///
    /// # Panics
    /// If `apply` fails.
    pub fn fill(&self) {
        let all = (0..FILLERS).map(|at| document("shop", &format!("filler-{at}"), 0));
        let _ = succeeded(self.apply("filler", &all.collect::<Vec<_>>().join("---\n")));
    }

    /// Makes this many changes of five subscriptions, one after the other. All must be
    /// acknowledged.
    ///
    /// # Panics
    /// If a change fails.
    pub fn write(&self, ledger: &Ledger, owner: &str, changes: u64) {
        for number in 1..=changes {
            let name = format!("{owner}-{}", number % NAMES);
            let is_deletion = number.is_multiple_of(DELETION);
            let key = format!("{TOPIC}/{name}");
            let command = if is_deletion {
                self.command(&["subscriptions", "delete", &key, "--owner", owner, "--yes"])
            } else {
                ledger.begin(&name, number);
                self.put(owner, &name, number)
            };
            let _ = succeeded(command);
            ledger.acknowledge(&name, (!is_deletion).then_some(number));
        }
    }
}

/// Returns a YAML document with a subscription of this number.
#[must_use]
pub fn document(namespace: &str, name: &str, number: u64) -> String {
    let padding = "x".repeat(400);
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: {namespace}, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://example.com/{number}'}}, filter: {{exact: {{type: '{number}-{padding}'}}}}}}\n"
    )
}

/// Returns the output of a program that must succeed.
///
/// # Panics
/// If the program fails.
#[must_use]
pub fn succeeded(mut command: Command) -> String {
    let output = command.output().expect("the program runs");
    let [printed, errors] = [output.stdout, output.stderr].map(String::from_utf8);
    let printed = printed.expect("text");
    assert!(output.status.success(), "{:?}: {printed}{errors:?}", command.get_args());
    printed
}

/// A reader that checks every object: each must be complete.
#[derive(Debug)]
pub struct Reader {
    objects: TopicObjects,
    /// The number of each subscription when it was last there.
    numbers: BTreeMap<String, u64>,
}

impl Reader {
    /// A reader of the subscriptions in this folder.
    #[must_use]
    pub fn new(folder: &StoredObject) -> Self {
        Self { objects: TopicObjects::below(folder), numbers: BTreeMap::new() }
    }

    /// Reads the topic and checks it: it has only values that a writer wrote, and no subscription
    /// goes back to an older number. Returns the number of each subscription except the first ones.
    ///
    /// # Panics
    /// If the topic cannot be read, or a check fails.
    pub async fn read(&mut self, ledger: &Ledger) -> BTreeMap<String, u64> {
        let key = self.objects.key_of(&TOPIC.parse().expect("a topic"));
        let fetched = self.objects.get(&key, None).await.expect("the topic can be read");
        let Fetched::Changed { bytes, .. } = fetched else { panic!("there is no object") };
        let content = Content::parse(&bytes).expect("a whole object");
        let Content::Topic(object) = content else { panic!("the topic was removed") };
        let entries = object.subscriptions.iter();
        let mut found: BTreeMap<String, u64> =
            entries.map(|(name, entry)| (name.clone(), number(entry))).collect();
        for filler in 0..FILLERS {
            assert_eq!(found.remove(&format!("filler-{filler}")), Some(0), "filler {filler}");
        }
        for (name, number) in &found {
            assert!(ledger.has_begun(name, *number), "nobody wrote {number} to {name}");
            let last = self.numbers.insert(name.clone(), *number).unwrap_or_default();
            assert!(*number >= last, "{name} went from {last} back to {number}");
        }
        found
    }
}

/// Returns the number of a subscription, which its address and its filter must share.
fn number(entry: &str) -> u64 {
    let value: Value = serde_json::from_str(entry).expect("JSON");
    let url = value["spec"]["destination"]["url"].as_str().expect("an address");
    let wanted = value["spec"]["filter"]["exact"]["type"].as_str().expect("a filter");
    let in_url = url.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
    let in_filter = wanted.split('-').next().and_then(|number| number.parse::<u64>().ok());
    assert_eq!(in_url, in_filter, "{value}");
    in_url.unwrap_or_else(|| panic!("no number in {value}"))
}

/// Runs two writers that make this many changes in total, while a reader checks that every object
/// is complete. At the end the topic has exactly the acknowledged changes. Returns the number of
/// reads.
///
/// # Panics
/// If a check fails.
#[must_use]
pub fn race(place: &Place, ledger: &Ledger, changes: u64) -> u64 {
    place.fill();
    let (mut reader, runtime) = (Reader::new(&place.folder), runtime());
    let reads = thread::scope(|scope| {
        let writers = ["left", "right"]
            .map(|owner| scope.spawn(move || place.write(ledger, owner, changes / 2)));
        let mut reads = 0;
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            let _ = runtime.block_on(reader.read(ledger));
            reads += 1;
            // Leaves processor time to the writers.
            thread::sleep(BETWEEN_READS);
        }
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        reads
    });
    assert_eq!(runtime.block_on(reader.read(ledger)), ledger.acknowledged());
    reads
}

/// A runtime with one thread.
///
/// # Panics
/// If the runtime cannot be built.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
