//! In a catalogue: one owner's entries of a namespace become those of an earlier version.
//!
//! Separate from files, which are restored whole: here others have entries too, and theirs stay as they are. The change
//! is made in the newest version. If this owner's entries have changed since they were shown, nothing is.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use adapters::live_catalogue::entries::{
    DEPLOYMENT, SETTINGS, is_of_topic, is_owned_by, owner_of, settings_of, topics_of,
};
use adapters::live_catalogue::mappings::mappings_of;
use adapters::machine::Machine;
use adapters::subscriptions::Location;
use anyhow::{Context as _, bail};
use catalogue::{Changes, Entry, ReadError, Snapshot, Version};
use delivery::subscription::catalogue::Catalogue;
use futures::TryStreamExt as _;
use thiserror::Error;

use super::Arguments;
use crate::commands::apply::{may_replace, print_changes, print_committed};
use crate::commands::subscriptions::{OpenCatalogue, history};
use crate::comparison::{catalogue_of, failed, find, newest_entries, who};
use crate::deployment::{new_problems, print_mappings};
use crate::files::usage_error;
use crate::key_sets;
use crate::output::{Output, out};
use crate::text;

/// Why entries are not restored.
#[derive(Debug, Error)]
enum NotRestored {
    #[error("{key} belongs to {owner:?} now: nothing is restored")]
    Foreign { key: Arc<str>, owner: String },
    #[error("the entries of {0:?} have changed meanwhile: nothing is restored, look at them again")]
    Changed(String),
    #[error(transparent)]
    Unread(#[from] ReadError),
}

pub(super) async fn run(arguments: Arguments, location: &Location) -> anyhow::Result<ExitCode> {
    let Arguments { namespace, owner, version, list, yes, target: _ } = arguments;
    let number = version.map(|number| number.parse::<u64>()).transpose();
    let number = number
        .map_err(|_| usage_error("in a catalogue, --version takes the number of a version"))?;
    let Some(name) = namespace else {
        return Err(usage_error("this is a catalogue: --namespace is required"));
    };
    let catalogue = OpenCatalogue::at(location).await?;
    if list {
        return history::print(&catalogue, &name, history::LIMIT, Output::Table).await;
    }
    let Some(owner) = owner else {
        return Err(usage_error(
            "this is a catalogue: --owner is required; without one, apply and put write as \"files\"",
        ));
    };
    let version = version_of(&catalogue, &name, number).await?;
    restore(&catalogue, &name, &owner, &version, yes).await
}

/// The version of this number, or the one before the newest.
async fn version_of(
    catalogue: &OpenCatalogue,
    name: &str,
    number: Option<u64>,
) -> anyhow::Result<Version> {
    let namespace = catalogue.namespace(name);
    let Some((snapshot, Version { number: newest, .. })) = namespace.load_to_change().await? else {
        bail!("there is no namespace {name}");
    };
    if snapshot.is_without_pointer() {
        bail!(
            "the pointer of the namespace {name} is missing: restore it first, by lastmile apply"
        );
    }
    let wanted = number.unwrap_or(newest.saturating_sub(1));
    if wanted == 0 || wanted > newest {
        bail!("{name} has no version {wanted}: its newest is version {newest}");
    }
    let oldest = namespace.history_down_to(wanted).await?.pop();
    oldest.filter(|version| version.number == wanted).with_context(|| removed(name, wanted))
}

fn removed(name: &str, number: u64) -> String {
    format!(
        "version {number} of {name} is no longer there: versions can be restored for 30 days after a newer one took \
         their place"
    )
}

async fn restore(
    catalogue: &OpenCatalogue,
    name: &str,
    owner: &str,
    version: &Version,
    yes: bool,
) -> anyhow::Result<ExitCode> {
    let number = version.number;
    let namespace = catalogue.namespace(name);
    let (_, current) = newest_entries(&namespace).await?;
    let earlier = entries_of(catalogue, name, version).await?;
    if !current.iter().chain(&earlier).any(|entry| is_owned_by(entry, owner)) {
        bail!("{owner:?} has no entries in {name}, neither now nor in version {number}");
    }
    let after = restored(&current, &earlier, owner)?;
    let shown = changes(&current, &after);
    let done = format!("the entries of {owner:?} in {name} are those of version {number}");
    if shown == Changes::default() {
        out(&format!("nothing to do, {done}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let others = others(catalogue, name).await?;
    let [before, restored] = show(name, [&current, &after], &others)?;
    let what = format!("the entries of {owner:?} in {name} with those of version {number}");
    if !may_replace(yes, &what)? {
        return Ok(ExitCode::FAILURE);
    }
    let change = async |newest: Snapshot| {
        confirmed(&entries(catalogue, name, &newest).await?, &earlier, owner, &shown)
    };
    key_sets::write(&catalogue.folder.storage, &before, &restored).await?;
    let committed = namespace.commit(&Machine, &who(owner), change).await;
    let committed = committed.map_err(|error| failed(name, error))?;
    print_committed(name, &committed)?;
    out(&format!("{done}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The entries of an earlier version.
async fn entries_of(
    catalogue: &OpenCatalogue,
    name: &str,
    version: &Version,
) -> anyhow::Result<Vec<Entry>> {
    let read = match catalogue.namespace(name).of_version(version.id).await {
        Ok(snapshot) => entries(catalogue, name, &snapshot).await,
        Err(error) => Err(error),
    };
    read.map_err(|error| match error {
        ReadError::Missing { .. } => {
            anyhow::Error::new(error).context(removed(name, version.number))
        }
        ReadError::Store(_)
        | ReadError::Damaged { .. }
        | ReadError::SeveralNewest { .. }
        | ReadError::NewerFormat { .. } => error.into(),
    })
}

async fn entries(
    catalogue: &OpenCatalogue,
    name: &str,
    snapshot: &Snapshot,
) -> Result<Vec<Entry>, ReadError> {
    catalogue.namespace(name).entries(snapshot).try_collect().await
}

/// The current entries, with those of this owner as they were in an earlier version; in the order of their keys.
fn restored(current: &[Entry], earlier: &[Entry], owner: &str) -> Result<Vec<Entry>, NotRestored> {
    let others = current.iter().filter(|entry| !is_owned_by(entry, owner));
    let mut all: BTreeMap<&str, &Entry> = others.map(|entry| (&*entry.key, entry)).collect();
    for entry in earlier.iter().filter(|entry| is_owned_by(entry, owner)) {
        if let Some(foreign) = all.insert(&entry.key, entry) {
            let owner = owner_of(&foreign.value).unwrap_or_default();
            return Err(NotRestored::Foreign { key: entry.key.clone(), owner });
        }
    }
    Ok(all.into_values().cloned().collect())
}

/// What makes the current entries these, as long as those that change are still as they are.
fn changes(current: &[Entry], after: &[Entry]) -> Changes {
    let mut changes = Changes::default();
    for entry in current.iter().filter(|entry| find(after, &entry.key).is_none()) {
        changes.expect(entry.key.clone(), Some(&entry.value)).remove(entry.key.clone());
    }
    for entry in after {
        let before = find(current, &entry.key);
        if before != Some(entry) {
            changes.expect(entry.key.clone(), before.map(|before| &*before.value));
            changes.put(entry.key.clone(), entry.value.clone());
        }
    }
    changes
}

/// What was shown, if that still restores this owner's entries. Others may have changed theirs.
fn confirmed(
    current: &[Entry],
    earlier: &[Entry],
    owner: &str,
    shown: &Changes,
) -> Result<Changes, NotRestored> {
    let changes = changes(current, &restored(current, earlier, owner)?);
    if changes == *shown { Ok(changes) } else { Err(NotRestored::Changed(owner.to_owned())) }
}

/// What a namespace has to suit, or is to be suited by: the deployment's settings, or of these all namespaces.
async fn others(
    catalogue: &OpenCatalogue,
    name: &str,
) -> anyhow::Result<Vec<(String, Vec<Entry>)>> {
    let names = match name {
        DEPLOYMENT => catalogue.objects.namespaces().await?,
        _ => vec![DEPLOYMENT.to_owned()],
    };
    let mut others = Vec::new();
    for other in names.into_iter().filter(|other| other != name) {
        let read = newest_entries(&catalogue.namespace(&other)).await;
        let (_, read) = read.with_context(|| format!("the namespace {other} cannot be read"))?;
        others.push((other, read));
    }
    Ok(others)
}

/// Shows what changes.
///
/// # Errors
/// When an entry that would be restored cannot be read, because it may be older than a rule that it breaks now;
/// when it does not suit what others have, or theirs would not suit it.
fn show(
    name: &str,
    [current, after]: [&[Entry]; 2],
    others: &[(String, Vec<Entry>)],
) -> anyhow::Result<[Catalogue; 2]> {
    let before = problems(name, current);
    if let Some(problem) = problems(name, after).into_iter().find(|it| !before.contains(it)) {
        bail!("{problem}: the version has errors and is not restored");
    }
    let catalogue = |entries: &[Entry]| {
        let others = others.iter().map(|(name, entries)| (name.as_str(), entries.clone()));
        catalogue_of(others.chain([(name, entries.to_vec())]))
    };
    let (before, restored) = (catalogue(current), catalogue(after));
    let unsuited = new_problems(&before, &restored, &BTreeSet::new());
    if !unsuited.is_empty() {
        bail!("{}\nthe version is not restored", unsuited.join("\n"));
    }
    print_changes(&before, &restored)?;
    if name == DEPLOYMENT {
        show_settings(current, after)?;
    }
    Ok([before, restored])
}

fn problems(name: &str, entries: &[Entry]) -> Vec<String> {
    if name == DEPLOYMENT {
        return settings_of(entries).err().into_iter().collect();
    }
    topics_of(name, entries).into_iter().filter_map(Result::err).collect()
}

/// Settings name topics of other namespaces, so they are shown as they are stored. Not so addresses of references,
/// which may have credentials in them.
fn show_settings(current: &[Entry], after: &[Entry]) -> anyhow::Result<()> {
    let [old, new] = [current, after].map(mappings_of);
    print_mappings([&old.map_err(anyhow::Error::msg)?, &new.map_err(anyhow::Error::msg)?])?;
    let settings = |entries: &[Entry]| -> Vec<Entry> {
        entries.iter().filter(|entry| is_of_topic(entry, SETTINGS)).cloned().collect()
    };
    let (current, after) = (&settings(current), &settings(after));
    let line = |mark: &str, Entry { key, value }: &Entry| {
        out(&format!("{}\n", text::line(&format!("{mark} {key} {value}"))))
    };
    for entry in current.iter().filter(|entry| find(after, &entry.key).is_none()) {
        line("-", entry)?;
    }
    for entry in after.iter().filter(|entry| find(current, &entry.key) != Some(*entry)) {
        let mark = if find(current, &entry.key).is_some() { "~" } else { "+" };
        line(mark, entry)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of these keys, owners and texts.
    fn entries(all: &[(&str, &str, &str)]) -> Vec<Entry> {
        let entry = |(key, owner, text): &(&str, &str, &str)| Entry {
            key: (*key).into(),
            value: format!(r#"{{"owner":"{owner}","is":"{text}"}}"#).into(),
        };
        all.iter().map(entry).collect()
    }

    #[test]
    fn one_owners_entries_are_restored_and_those_of_others_stay() {
        let earlier = entries(&[("t/a", "one", "1"), ("t/b", "one", "1"), ("t/x", "two", "1")]);
        let current = entries(&[("t/a", "one", "2"), ("t/c", "one", "1"), ("t/x", "two", "2")]);
        let after = restored(&current, &earlier, "one").expect("nothing is foreign");
        let wanted = entries(&[("t/a", "one", "1"), ("t/b", "one", "1"), ("t/x", "two", "2")]);
        assert_eq!(after, wanted);
        let mut wanted = Changes::default();
        wanted.remove("t/c").expect("t/c", Some(&current[1].value));
        wanted.put("t/a", after[0].value.clone()).expect("t/a", Some(&current[0].value));
        wanted.put("t/b", after[1].value.clone()).expect("t/b", None);
        assert_eq!(changes(&current, &after), wanted);
        assert_eq!(changes(&after, &after), Changes::default());
    }

    #[test]
    fn what_belongs_to_somebody_else_by_now_is_named() {
        let earlier = entries(&[("t/a", "one", "1")]);
        let current = entries(&[("t/a", "two", "1")]);
        let refused = restored(&current, &earlier, "one").expect_err("it is foreign");
        assert_eq!(refused.to_string(), r#"t/a belongs to "two" now: nothing is restored"#);
    }

    #[test]
    fn what_was_shown_is_done_beside_changes_of_others_and_not_over_those_of_the_same_owner() {
        let earlier = entries(&[("t/a", "one", "1")]);
        let current = entries(&[("t/a", "one", "2"), ("t/x", "two", "1")]);
        let shown = changes(&current, &restored(&current, &earlier, "one").expect("all are own"));
        let of_two = entries(&[("t/a", "one", "2"), ("t/y", "two", "1")]);
        assert_eq!(confirmed(&of_two, &earlier, "one", &shown).expect("as shown"), shown);
        for of_one in
            [[("t/a", "one", "3"), ("t/x", "two", "1")], [("t/a", "one", "2"), ("t/b", "one", "1")]]
        {
            let refused = confirmed(&entries(&of_one), &earlier, "one", &shown);
            assert!(matches!(refused, Err(NotRestored::Changed(_))), "{of_one:?}");
        }
    }
}
