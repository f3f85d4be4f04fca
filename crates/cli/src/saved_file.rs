//! A file of subscriptions that is read again whenever it is saved.
//!
//! Separate from the functions, which look at the file themselves when they need it: this says at once
//! what was saved, or what is wrong in it, to whoever saved it. It asks for modification time and length
//! a few times a second, which every editor and file system changes. A save is read once two looks in a row
//! have seen the same, since editors write in several steps.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use adapters::file_text;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use dialects::{Finding, Source};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::files::{have_errors, sort_findings};
use crate::unset_secrets::all_unset_here;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A file that is not there for so many looks was not just being replaced.
const MISSING_LOOKS: u32 = 10;

/// A file that is looked at.
#[derive(Debug)]
pub(crate) struct SavedFile {
    path: PathBuf,
    looks: Interval,
    /// As it was read last.
    read: Stamp,
    /// As it was seen last, in so many looks.
    seen: (Stamp, u32),
    subscriptions: Subscriptions,
}

/// What changes with each save; `None` where there is no file.
type Stamp = Option<(Option<SystemTime>, u64)>;

type Subscriptions = BTreeMap<SubscriptionName, Arc<Subscription>>;

/// What a save came to.
#[derive(Debug)]
pub(crate) enum Saved {
    /// It is in use.
    Loaded {
        /// What it has.
        catalogue: Catalogue,
        /// How many subscriptions were added, removed or changed.
        changed: usize,
        /// Warnings, also about variables that are not set.
        findings: Vec<Finding>,
    },
    /// What was read before stays in use.
    Broken(Vec<Finding>),
    /// It cannot be read; what was read before stays in use.
    Unreadable(String),
}

impl SavedFile {
    /// One that has this content now.
    pub(crate) fn new(path: PathBuf, catalogue: &Catalogue) -> Self {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stamp = stamp(&path);
        Self { path, looks, read: stamp, seen: (stamp, 1), subscriptions: subscriptions(catalogue) }
    }

    /// Waits for the next save. Dropping the future misses none.
    pub(crate) async fn saved(&mut self) -> Saved {
        loop {
            self.looks.tick().await;
            if let Some(saved) = self.look() {
                return saved;
            }
        }
    }

    fn look(&mut self) -> Option<Saved> {
        let stamp = stamp(&self.path);
        self.seen = if self.seen.0 == stamp { (stamp, self.seen.1 + 1) } else { (stamp, 1) };
        let looks = if stamp.is_some() { 2 } else { MISSING_LOOKS };
        if stamp == self.read || self.seen.1 < looks {
            return None;
        }
        self.read = stamp;
        Some(self.read_again())
    }

    fn read_again(&mut self) -> Saved {
        let name = self.path.display().to_string();
        let text = match file_text::read(&self.path) {
            Ok(text) => text,
            Err(error) => return Saved::Unreadable(format!("{name} cannot be read: {error}")),
        };
        let source = Source { name: &name, text: &text };
        let mut reading = dialects::read(&[source]);
        reading.findings.extend(dialects::blank(source));
        if have_errors(&reading.findings) {
            return Saved::Broken(reading.findings);
        }
        let unset = all_unset_here(&reading);
        let (catalogue, mut findings) = (reading.catalogue, reading.findings);
        findings.extend(unset);
        sort_findings(std::iter::once(name.as_str()), &mut findings);
        let now = subscriptions(&catalogue);
        let changed = changes(&self.subscriptions, &now);
        self.subscriptions = now;
        Saved::Loaded { catalogue, changed, findings }
    }
}

/// What the file looks like from outside.
fn stamp(path: &PathBuf) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

fn subscriptions(catalogue: &Catalogue) -> Subscriptions {
    let all = catalogue.subscriptions();
    all.map(|subscription| (subscription.name.clone(), Arc::clone(subscription))).collect()
}

/// How many were added, removed or changed.
fn changes(before: &Subscriptions, now: &Subscriptions) -> usize {
    let different = now.iter().filter(|(name, of)| before.get(name) != Some(of)).count();
    different + before.keys().filter(|name| !now.contains_key(name)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, url: &str) -> String {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: n, topic: t, name: {name}}}\nspec: {{destination: {{url: \"{url}\"}}}}\n"
        )
    }

    fn write(file: &SavedFile, text: &str) {
        std::fs::write(&file.path, text).expect("a file can be written");
    }

    fn started(folder: &tempfile::TempDir, text: &str) -> SavedFile {
        let path = folder.path().join("s.yaml");
        std::fs::write(&path, text).expect("a file can be written");
        let catalogue = dialects::read(&[Source { name: "s", text }]).catalogue;
        SavedFile::new(path, &catalogue)
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
            let Saved::Loaded { catalogue, changed, .. } = file.saved().await else { panic!() };
            assert_eq!((catalogue.subscriptions().count(), changed), (count, expected), "{text}");
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
        let Saved::Loaded { changed, .. } = file.saved().await else { panic!() };
        assert_eq!(changed, 0);
    }

    #[tokio::test]
    async fn a_file_that_became_empty_is_broken_and_one_without_subscriptions_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = started(&folder, &document("a", "https://a.example.com/"));
        for (text, message) in
            [("", "the file is empty"), ("# later\n", "there is nothing but comments here")]
        {
            write(&file, text);
            let Saved::Broken(findings) = file.saved().await else { panic!() };
            assert_eq!(findings[0].message, message);
        }
        let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: n, name: t}\n";
        write(&file, topic);
        let Saved::Loaded { changed, .. } = file.saved().await else { panic!() };
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
        assert!(matches!(file.look(), Some(Saved::Loaded { changed: 0, .. })));
        assert!(file.look().is_none());
        // An editor that replaces the file.
        std::fs::remove_file(&file.path).expect("a file can be removed");
        assert!((1..MISSING_LOOKS).all(|_| file.look().is_none()));
        let Some(Saved::Unreadable(problem)) = file.look() else { panic!() };
        assert!(problem.contains("s.yaml cannot be read"), "{problem}");
        assert!(file.look().is_none());
        write(&file, &good);
        assert!(file.look().is_none());
        assert!(matches!(file.look(), Some(Saved::Loaded { .. })));
    }
}
