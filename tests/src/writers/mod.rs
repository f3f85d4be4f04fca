//! Real `lastmile` processes that change one topic of a catalogue, and what has to be true of it all the while.
//!
//! Separate because the same is asked of a folder and of a bucket, of writers that race and of those that are killed.
//! Each change has a number that is in two places of its subscription, so that one written in part would show.

mod ledger;
mod race;
mod reader;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use adapters::storage::StoredObject;
use serde_json::Value;

use crate::built::binary;

pub use ledger::Ledger;
pub use race::{READABLE, Raced, race, runtime};
pub use reader::Reader;

/// The namespace that is changed.
pub const NAMESPACE: &str = "shop";
/// How many subscriptions are there from the beginning, so that the tree has leaves below its root.
pub const FILLERS: u64 = 300;
/// How many subscriptions each writer has.
const NAMES: u64 = 5;
/// Each such change is a deletion. It has no factor in common with the number of names, so it hits all of them.
const DELETION: u64 = 7;

/// A catalogue, as the program and as this process find it.
#[derive(Debug)]
pub struct Place {
    program: PathBuf,
    uri: String,
    /// Where this process reads it.
    pub folder: StoredObject,
    environment: Vec<(String, String)>,
    files: tempfile::TempDir,
}

impl Place {
    /// The catalogue at this address, changed by this program in this environment.
    ///
    /// # Panics
    /// When there is no folder for temporary files.
    #[must_use]
    pub fn new(uri: String, folder: StoredObject, environment: Vec<(String, String)>) -> Self {
        let files = tempfile::tempdir().expect("a folder");
        Self { program: binary("lastmile"), uri, folder, environment, files }
    }

    /// The one in this folder.
    ///
    /// # Panics
    /// As [`Place::new`].
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let stored = StoredObject::file(&folder.join("catalogue"));
        Self::new(format!("file://{}/catalogue/", folder.display()), stored, Vec::new())
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

    /// Puts a subscription with this number.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn put(&self, owner: &str, name: &str, number: u64) -> Command {
        self.change(&["subscriptions", "put"], owner, &document(NAMESPACE, name, number))
    }

    /// Changes the catalogue by this command and a file with this text.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn change(&self, command: &[&str], owner: &str, text: &str) -> Command {
        let file = format!("{owner}.yaml");
        std::fs::write(self.files.path().join(&file), text).expect("a file");
        self.command(&[command, &["-f", &file, "--owner", owner]].concat())
    }

    /// Puts the subscriptions that are there from the beginning.
    ///
    /// # Panics
    /// When they are not put.
    pub fn fill(&self) {
        let all = (0..FILLERS).map(|at| document(NAMESPACE, &format!("filler-{at}"), 0));
        let all = all.collect::<Vec<_>>().join("---\n");
        let put = self.change(&["subscriptions", "put"], "filler", &all);
        assert_eq!(version_of(&succeeded(put)), 1);
    }

    /// Makes so many changes of five subscriptions, one after the other; all of them have to be acknowledged.
    ///
    /// # Panics
    /// When one is not.
    pub fn write(&self, ledger: &Ledger, owner: &str, changes: u64) {
        for number in 1..=changes {
            let name = format!("{owner}-{}", number % NAMES);
            let is_deletion = number.is_multiple_of(DELETION);
            let key = format!("{NAMESPACE}/orders/{name}");
            let command = if is_deletion {
                self.command(&["subscriptions", "delete", &key, "--owner", owner, "--yes"])
            } else {
                ledger.begin(&name, number);
                self.put(owner, &name, number)
            };
            let version = version_of(&succeeded(command));
            ledger.acknowledge(version, &name, (!is_deletion).then_some(number));
        }
    }

    /// Runs the collection of garbage once; returns how many objects were removed.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn collect_garbage(&self) -> u64 {
        let gc = self.command(&["subscriptions", "gc", NAMESPACE, "--output", "json"]);
        let collected: Value = serde_json::from_str(&succeeded(gc)).expect("JSON");
        collected[0]["removed"].as_u64().expect("a number")
    }
}

/// A subscription with this number, in a file. It is long enough for a few dozen to fill a leaf.
#[must_use]
pub fn document(namespace: &str, name: &str, number: u64) -> String {
    let padding = "x".repeat(400);
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: {namespace}, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://example.com/{number}'}}, filter: {{exact: {{type: '{number}-{padding}'}}}}}}\n"
    )
}

/// What a program printed that has to succeed.
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

/// The version that a change is in, by what was printed of it.
fn version_of(printed: &str) -> u64 {
    let rest = printed.split_once(&format!("{NAMESPACE}: version ")).map(|(_, rest)| rest);
    let number = rest.and_then(|rest| rest.split_once(',')).and_then(|(it, _)| it.parse().ok());
    number.unwrap_or_else(|| panic!("no version in {printed}"))
}
