//! A copy of the night's container, and `lastmile deadletters` over it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use delivery::time::moment;
use lastmile_tests::built::binary;
use serde_json::Value;
use tempfile::TempDir;

use crate::lifetime;

/// The default container of a local stack, within the folder of its data.
const CONTAINER: &str = "s3/dead-letters";
/// More dead letters than a night has.
const LIMIT: &str = "1000";

/// A container in a folder of its own.
pub(crate) struct NightContainer {
    data: TempDir,
}

/// A dead letter as the function wrote it.
pub(crate) struct Stored {
    pub(crate) key: String,
    pub(crate) text: String,
}

impl NightContainer {
    /// A copy of the dead letters of the night.
    pub(crate) fn new() -> Self {
        let container = Self { data: tempfile::tempdir().expect("a folder can be made") };
        for Stored { key, text } in lifetime::letters() {
            container.write(key, text);
        }
        container
    }

    /// The folder of the data of a stack, whose default container this is.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// The folder of the blobs.
    pub(crate) fn path(&self) -> PathBuf {
        self.data.path().join(CONTAINER)
    }

    /// All dead letters, by key.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        stored_below(&self.path())
    }

    /// Writes an object, as anybody may who can write to the container.
    pub(crate) fn write(&self, key: &str, text: &str) {
        let path = self.path().join(key);
        std::fs::create_dir_all(path.parent().expect("a key has folders")).expect("a folder");
        std::fs::write(path, text).expect("a file can be written");
    }

    /// A verb of `lastmile deadletters`, until it exits.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary("lastmile"));
        // Relative, as a person writes it: `why` repeats it in the commands that it proposes.
        command.arg("deadletters").args(arguments).args(["--container", CONTAINER]);
        command.current_dir(self.data.path()).env("ALLOW_PRIVATE_DESTINATIONS", "127.0.0.1");
        command.output().expect("the program runs")
    }

    /// The standard output of a verb that succeeds.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// The list that a verb prints as JSON; empty if nothing matches.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let done = self.run(&[arguments, &["--output", "json"]].concat());
        let is_expected = matches!(done.status.code(), Some(0 | 1));
        assert!(is_expected, "{arguments:?}: {}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("a list in JSON")
    }

    /// Title and count of each cause, in alphabetical order.
    pub(crate) fn causes(&self, more: &[&str]) -> Vec<(String, u64)> {
        let causes = self.json(&[&["why"], more].concat());
        let cause =
            |cause: &Value| (word(cause, "title"), cause["count"].as_u64().expect("a count"));
        let mut causes: Vec<_> = causes.iter().map(cause).collect();
        causes.sort();
        causes
    }

    /// The number of open dead letters of the cause with this title.
    pub(crate) fn count(&self, title: &str, more: &[&str]) -> u64 {
        let causes = self.causes(more).into_iter();
        causes.filter(|(cause, _)| cause == title).map(|(_, count)| count).sum()
    }

    /// The id of the cause with this title.
    pub(crate) fn cause_id(&self, title: &str) -> String {
        let causes = self.json(&["why", "--state", "all"]);
        let cause = causes.iter().find(|cause| cause["title"] == title);
        word(cause.unwrap_or_else(|| panic!("no cause is called {title}: {causes:?}")), "id")
    }

    /// The ids that `list` prints, in alphabetical order.
    pub(crate) fn listed(&self, more: &[&str]) -> Vec<String> {
        let list = self.json(&[&["list", "--limit", LIMIT], more].concat());
        let mut ids: Vec<String> = list.iter().map(|letter| word(letter, "id")).collect();
        ids.sort();
        ids
    }

    /// The number of dead letters that `why --by` counts.
    pub(crate) fn total(&self, more: &[&str]) -> u64 {
        let done = self.run(&[&["why", "--by", "reason", "--output", "json"], more].concat());
        let sums: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        sums["letters"].as_u64().expect("a count")
    }
}

impl Stored {
    /// The GUID in the key.
    pub(crate) fn id(&self) -> String {
        let name = self.key.rsplit('/').next().and_then(|name| name.strip_suffix(".json"));
        name.expect("a dead letter is a JSON file").to_owned()
    }

    /// True if it is of this subscription.
    pub(crate) fn is_of(&self, subscription: &str) -> bool {
        self.key.strip_prefix(subscription).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The members that the function has added to the event.
    pub(crate) fn properties(&self) -> Value {
        let mut letter: Value = serde_json::from_str(&self.text).expect("JSON");
        letter["deadletterProperties"].take()
    }

    /// The time of the decision.
    pub(crate) fn decided_ms(&self) -> u64 {
        moment::parse(&word(&self.properties(), "decidedutc")).expect("a time")
    }
}

/// A text in JSON.
pub(crate) fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The dead letters below a folder, by key. What begins with `_` in the first folder is beside them.
fn stored_below(folder: &Path) -> Vec<Stored> {
    let mut stored = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in
            std::fs::read_dir(next).expect("a folder").map(|entry| entry.expect("an entry"))
        {
            let path = entry.path();
            let key = path.strip_prefix(folder).expect("below it").display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !key.starts_with('_') {
                stored.push(Stored { key, text: std::fs::read_to_string(&path).expect("text") });
            }
        }
    }
    stored.sort_by(|a, b| a.key.cmp(&b.key));
    stored
}

/// Leaves the container in a folder, to look at it with `lastmile console --container FOLDER`.
#[test]
#[ignore = "writes a folder for a person: NIGHT=FOLDER"]
fn the_night_is_left_in_a_folder() {
    let folder = PathBuf::from(std::env::var_os("NIGHT").expect("NIGHT names a folder"));
    for Stored { key, text } in lifetime::letters() {
        let path = folder.join(key);
        std::fs::create_dir_all(path.parent().expect("a key has folders")).expect("a folder");
        std::fs::write(path, text).expect("a file can be written");
    }
}
