//! Watches subscription files, and reads them again when a file is saved.
//!
//! Polls modification times and lengths several times a second, because saving a file changes them
//! in every editor and file system. A change is read once two consecutive checks show the same
//! state, because editors write in several steps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use dialects::{Finding, Reading};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::operations::aws_targets::refused_here;
use crate::operations::files::{Files, have_errors, is_of_subscriptions, sort_findings};
use crate::operations::unset_secrets::all_unset_here;

/// The interval at which the files are checked for changes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The number of consecutive checks after which a missing file counts as removed. Before that, an
/// editor may be replacing the file.
const MISSING_LOOKS: u32 = 10;

#[derive(Debug)]
pub(crate) struct SavedFiles {
    paths: Vec<PathBuf>,
    looks: Interval,
    /// The modification times and lengths when the files were last read.
    read: Stamps,
    /// The result of the last check, and the number of consecutive checks with this result.
    seen: (Stamps, u32),
    subscriptions: Subscriptions,
}

/// The modification time and the length of each file; `None` while a file is missing.
type Stamps = Option<Vec<(PathBuf, Option<SystemTime>, u64)>>;

type Subscriptions = BTreeMap<SubscriptionName, Arc<Subscription>>;

/// The result of reading the files after a save.
#[derive(Debug)]
pub(crate) enum Saved {
    /// The files have no errors. Their content replaces the earlier content.
    Valid {
        /// The content of the files, with warnings, such as those about unset variables.
        reading: Box<Reading>,
        /// The number of subscriptions that were added, removed or changed.
        changed: usize,
    },
    /// The files have errors. The earlier content stays in use.
    Broken(Vec<Finding>),
    /// A file cannot be read. The earlier content stays in use.
    Unreadable(String),
}

impl SavedFiles {
    /// Starts to watch these paths. Call this function before reading the files; otherwise, a save
    /// in between is missed.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let read = stamps(&paths);
        let seen = (read.clone(), 1);
        Self { paths, looks, read, seen, subscriptions: Subscriptions::new() }
    }

    /// Stores the current subscriptions, to count the changes of the next save.
    pub(crate) fn had(&mut self, catalogue: &Catalogue) {
        self.subscriptions = subscriptions(catalogue);
    }

    /// Waits for the next save, and reads the files. Cancel-safe: dropping the future misses no
    /// save.
    pub(crate) async fn saved(&mut self) -> Saved {
        loop {
            self.looks.tick().await;
            if let Some(saved) = self.look() {
                return saved;
            }
        }
    }

    fn look(&mut self) -> Option<Saved> {
        let stamps = stamps(&self.paths);
        let looks = if self.seen.0 == stamps { self.seen.1 + 1 } else { 1 };
        let enough = if stamps.is_some() { 2 } else { MISSING_LOOKS };
        self.seen = (stamps, looks);
        if self.seen.0 == self.read || looks < enough {
            return None;
        }
        self.read.clone_from(&self.seen.0);
        Some(self.read_again())
    }

    fn read_again(&mut self) -> Saved {
        let files = match Files::read(&self.paths) {
            Ok(files) => files,
            Err(error) => return Saved::Unreadable(error.to_string()),
        };
        let mut reading = files.reading_with_blank();
        if have_errors(&reading.findings) {
            return Saved::Broken(reading.findings);
        }
        let unset = all_unset_here(&reading);
        // `AWS_TARGETS` was valid when `dev` started, so ignore errors in it.
        let refused = refused_here(&reading).unwrap_or_default();
        reading.findings.extend(unset.into_iter().chain(refused));
        sort_findings(files.names(), &mut reading.findings);
        let now = subscriptions(&reading.catalogue);
        let changed = changes(&self.subscriptions, &now);
        self.subscriptions = now;
        Saved::Valid { reading: Box::new(reading), changed }
    }
}

/// Reads the modification times and lengths of the files; `None` if a file is missing.
fn stamps(paths: &[PathBuf]) -> Stamps {
    let mut stamps = Vec::new();
    paths.iter().try_for_each(|path| add_stamps(path, &mut stamps))?;
    Some(stamps)
}

/// Adds the modification time and length of a file, or of each file below a folder. Returns `None`
/// if a file is missing.
fn add_stamps(path: &Path, stamps: &mut Vec<(PathBuf, Option<SystemTime>, u64)>) -> Option<()> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_dir() {
        stamps.push((path.to_owned(), metadata.modified().ok(), metadata.len()));
        return Some(());
    }
    let mut below: Vec<PathBuf> =
        std::fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    below.sort();
    let is_looked_at = |path: &&PathBuf| {
        let is_hidden =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && (is_of_subscriptions(path) || (path.is_dir() && !path.is_symlink()))
    };
    below.iter().filter(is_looked_at).try_for_each(|path| add_stamps(path, stamps))
}

fn subscriptions(catalogue: &Catalogue) -> Subscriptions {
    let all = catalogue.subscriptions();
    all.map(|subscription| (subscription.name.clone(), Arc::clone(subscription))).collect()
}

/// Counts the subscriptions that were added, removed or changed.
fn changes(before: &Subscriptions, now: &Subscriptions) -> usize {
    let different =
        now.iter().filter(|(name, subscription)| before.get(name) != Some(subscription)).count();
    different + before.keys().filter(|name| !now.contains_key(name)).count()
}

#[cfg(test)]
mod tests {
    use dialects::Source;

    use super::*;

    fn document(name: &str, url: &str) -> String {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: n, topic: t, name: {name}}}\nspec: {{destination: {{url: \"{url}\"}}}}\n"
        )
    }

    fn write(file: &SavedFiles, text: &str) {
        std::fs::write(&file.paths[0], text).expect("a file can be written");
    }

    fn started(folder: &tempfile::TempDir, text: &str) -> SavedFiles {
        let path = folder.path().join("s.yaml");
        std::fs::write(&path, text).expect("a file can be written");
        let catalogue = dialects::read(&[Source { name: "s", text }]).catalogue;
        let mut files = SavedFiles::new(vec![path]);
        files.had(&catalogue);
        files
    }

    #[tokio::test]
    async fn a_save_is_compared_with_what_was_in_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let (a, b) =
            (document("a", "https://a.example.com/"), document("b", "https://b.example.com/"));
        let mut file = started(&folder, &format!("{a}---\n{b}"));
        let moved = document("b", "https://elsewhere.example.com/");
        for (text, count, expected) in [
            (format!("{a}---\n{moved}"), 2, 1),
            // Comments change nothing.
            (format!("# a comment\n{a}---\n{moved}"), 2, 0),
            (a.clone(), 1, 1),
            (document("c", "https://a.example.com/longer"), 1, 2),
        ] {
            write(&file, &text);
            let Saved::Valid { reading, changed } = file.saved().await else { panic!() };
            assert_eq!(
                (reading.catalogue.subscriptions().count(), changed),
                (count, expected),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn of_a_broken_save_the_place_is_named_and_the_next_one_is_compared_with_the_last_good_one()
     {
        let folder = tempfile::tempdir().expect("a folder");
        let good = document("a", "https://a.example.com/");
        let mut file = started(&folder, &good);
        write(&file, &document("a", "nowhere"));
        let Saved::Broken(findings) = file.saved().await else { panic!() };
        assert_eq!((findings.len(), findings[0].line), (1, 4), "{findings:?}");
        write(&file, &format!("{good}# again\n"));
        let Saved::Valid { changed, .. } = file.saved().await else { panic!() };
        assert_eq!(changed, 0);
    }

    #[tokio::test]
    async fn a_file_that_became_empty_is_broken_and_one_without_subscriptions_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = started(&folder, &document("a", "https://a.example.com/"));
        for (text, message) in [
            ("", "the file is empty"),
            ("# later\n", "the file contains only comments"),
            ("null\n", "the file contains no document, only null or an empty list"),
        ] {
            write(&file, text);
            let Saved::Broken(findings) = file.saved().await else { panic!() };
            assert_eq!(findings[0].message, message);
        }
        let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: n, name: t}\n";
        write(&file, topic);
        let Saved::Valid { changed, .. } = file.saved().await else { panic!() };
        assert_eq!(changed, 1);
    }

    #[test]
    fn a_file_is_read_when_it_rests_and_missed_when_it_stays_away() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        let _entered = runtime.enter();
        let folder = tempfile::tempdir().expect("a folder");
        let good = document("a", "https://a.example.com/");
        let mut file = started(&folder, &good);
        write(&file, "half of");
        assert!(file.look().is_none());
        write(&file, &format!("{good}# whole\n"));
        assert!(file.look().is_none());
        assert!(matches!(file.look(), Some(Saved::Valid { changed: 0, .. })));
        assert!(file.look().is_none());
        // An editor may remove the file before it writes the new version.
        std::fs::remove_file(&file.paths[0]).expect("a file can be removed");
        assert!((1..MISSING_LOOKS).all(|_| file.look().is_none()));
        let Some(Saved::Unreadable(problem)) = file.look() else { panic!() };
        assert!(problem.contains("s.yaml cannot be read"), "{problem}");
        assert!(file.look().is_none());
        write(&file, &good);
        assert!(file.look().is_none());
        assert!(matches!(file.look(), Some(Saved::Valid { .. })));
    }
}
