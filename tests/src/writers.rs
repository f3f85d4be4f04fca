//! Real `lastmile` processes that change one topic, and what has to be true of it all the while.
//!
//! Separate because the same is asked of a folder and of a bucket, of writers that race and of those that are killed.
//! Each change has a number that is in two places of its subscription, so that one written in part would show.

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
/// How many subscriptions are there from the beginning.
pub const FILLERS: u64 = 60;
/// How many subscriptions each writer has.
const NAMES: u64 = 5;
/// The pause of the reader that looks at what writers do.
const BETWEEN_READS: Duration = Duration::from_millis(1);
/// Each such change is a deletion. It has no factor in common with the number of names, so it hits all of them.
const DELETION: u64 = 7;

/// What writers began and what was acknowledged to them, by the names of their subscriptions.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The numbers of changes that began, whether or not they were made.
    begun: BTreeMap<String, BTreeSet<u64>>,
    /// The last acknowledged number; none once it was deleted.
    acknowledged: BTreeMap<String, u64>,
}

impl Ledger {
    /// A subscription is about to get this number.
    pub fn begin(&self, name: &str, number: u64) {
        self.lock().begun.entry(name.to_owned()).or_default().insert(number);
    }

    /// A subscription has got this number, or was deleted.
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

    /// The last acknowledged number of each subscription that was not deleted.
    #[must_use]
    pub fn acknowledged(&self) -> BTreeMap<String, u64> {
        self.lock().acknowledged.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscriptions of a deployment, as the program and as this process find them.
#[derive(Debug)]
pub struct Place {
    program: PathBuf,
    uri: String,
    /// The folder in which this process reads them.
    pub folder: StoredObject,
    environment: Vec<(String, String)>,
    files: tempfile::TempDir,
}

impl Place {
    /// Those at this address, changed by this program in this environment.
    ///
    /// # Panics
    /// When there is no folder for temporary files.
    #[must_use]
    pub fn new(uri: String, folder: StoredObject, environment: Vec<(String, String)>) -> Self {
        let files = tempfile::tempdir().expect("a folder");
        Self { program: binary("lastmile"), uri, folder, environment, files }
    }

    /// Those in this folder.
    ///
    /// # Panics
    /// As [`Place::new`].
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let stored = StoredObject::file(&folder.join("subscriptions"));
        Self::new(format!("file://{}/subscriptions/", folder.display()), stored, Vec::new())
    }

    /// The program with these arguments and the address.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--to", &self.uri]).current_dir(self.files.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Applies a subscription with this number.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn put(&self, owner: &str, name: &str, number: u64) -> Command {
        self.apply(owner, &document("shop", name, number))
    }

    /// Applies a file with this text.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn apply(&self, owner: &str, text: &str) -> Command {
        let file = format!("{owner}.yaml");
        std::fs::write(self.files.path().join(&file), text).expect("a file");
        self.command(&["apply", "-f", &file, "--owner", owner, "--yes"])
    }

    /// Applies the subscriptions that are there from the beginning.
    ///
    /// # Panics
    /// When they are not applied.
    pub fn fill(&self) {
        let all = (0..FILLERS).map(|at| document("shop", &format!("filler-{at}"), 0));
        let _ = succeeded(self.apply("filler", &all.collect::<Vec<_>>().join("---\n")));
    }

    /// Makes so many changes of five subscriptions, one after the other; all of them have to be acknowledged.
    ///
    /// # Panics
    /// When one is not.
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

/// A subscription with this number, in a file.
#[must_use]
pub fn document(namespace: &str, name: &str, number: u64) -> String {
    let padding = "x".repeat(400);
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: {namespace}, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://example.com/{number}'}}, filter: {{exact: {{type: '{number}-{padding}'}}}}}}\n"
    )
}

/// The output of a program that has to succeed.
///
/// # Panics
/// When it does not.
#[must_use]
pub fn succeeded(mut command: Command) -> String {
    let output = command.output().expect("the program runs");
    let [printed, errors] = [output.stdout, output.stderr].map(String::from_utf8);
    let printed = printed.expect("text");
    assert!(output.status.success(), "{:?}: {printed}{errors:?}", command.get_args());
    printed
}

/// A reader that trusts nothing: every object that it sees has to be whole.
#[derive(Debug)]
pub struct Reader {
    objects: TopicObjects,
    /// The number of each subscription when it was last there.
    numbers: BTreeMap<String, u64>,
}

impl Reader {
    /// A reader of the subscriptions in this folder.
    #[must_use]
    pub fn of(folder: &StoredObject) -> Self {
        Self { objects: TopicObjects::below(folder), numbers: BTreeMap::new() }
    }

    /// Reads the topic and checks it: it has only values that a writer wrote, and no subscription goes back. Returns the
    /// number of each subscription but the first ones.
    ///
    /// # Panics
    /// When it cannot be read, or a check fails.
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

/// The number of a subscription, which is the same in its address and in its filter.
fn number(entry: &str) -> u64 {
    let value: Value = serde_json::from_str(entry).expect("JSON");
    let url = value["spec"]["destination"]["url"].as_str().expect("an address");
    let wanted = value["spec"]["filter"]["exact"]["type"].as_str().expect("a filter");
    let in_url = url.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
    let in_filter = wanted.split('-').next().and_then(|number| number.parse::<u64>().ok());
    assert_eq!(in_url, in_filter, "{value}");
    in_url.unwrap_or_else(|| panic!("no number in {value}"))
}

/// Lets two writers make so many changes together, while every object that a reader finds is whole. At the end the topic
/// has what was acknowledged. Returns how often it was read meanwhile.
///
/// # Panics
/// When it is not so.
#[must_use]
pub fn race(place: &Place, ledger: &Ledger, changes: u64) -> u64 {
    place.fill();
    let (mut reader, runtime) = (Reader::of(&place.folder), runtime());
    let reads = thread::scope(|scope| {
        let writers = ["left", "right"]
            .map(|owner| scope.spawn(move || place.write(ledger, owner, changes / 2)));
        let mut reads = 0;
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            let _ = runtime.block_on(reader.read(ledger));
            reads += 1;
            // The writers need the processor too.
            thread::sleep(BETWEEN_READS);
        }
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        reads
    });
    assert_eq!(runtime.block_on(reader.read(ledger)), ledger.acknowledged());
    reads
}

/// A runtime for one thread.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
