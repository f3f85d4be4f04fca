//! `convert --objects`: writes the objects that `apply` would write for topics, so that other tools
//! can upload them.
//!
//! Separate from printing because it refuses the same files as `apply`. Deployment-wide objects may
//! contain parts of other owners, so only `apply` writes them.

use std::path::Path;
use std::process::ExitCode;

use adapters::live_topics::{PUBLISHERS, SETTINGS, TopicObjects};
use adapters::machine::Machine;
use adapters::storage::{Storage, StoredObject};
use anyhow::{Context as _, ensure};
use delivery::ports::Clock as _;
use delivery::topic_object::{DeploymentObjects, SettingsObject};
use dialects::Reading;

use super::NOTHING;
use crate::operations::files::{Files, have_errors, print_findings};
use crate::operations::lints::with_lints;
use crate::operations::missing_destinations::report_placeholders;
use crate::operations::topics::destinations_of;
use crate::terminal::output::{note, out};
use crate::terminal::text;

/// Writes the topics of these files as objects of an owner, in a folder. Overwrites earlier objects
/// of these topics, and keeps all other files in the folder.
///
/// # Errors
/// If a topic exceeds the size limit of an object, or a file cannot be written.
pub(super) async fn write(folder: &Path, owner: &str, files: &Files) -> anyhow::Result<ExitCode> {
    let reading = files.reading_with_blank();
    let findings = with_lints(&reading, files.names(), Machine.now_ms(), None)?;
    print_findings(&findings);
    if have_errors(&findings) || report_placeholders(&reading.catalogue) {
        return Ok(ExitCode::FAILURE);
    }
    let objects = DeploymentObjects::new(owner, &reading.catalogue);
    ensure!(!objects.topics.is_empty(), NOTHING);
    let mut texts = Vec::with_capacity(objects.topics.len());
    for (name, object) in &objects.topics {
        texts.push((name, object.to_text().with_context(|| format!("the topic {name}"))?));
    }
    let root = StoredObject { storage: Storage::folder(folder), key: String::new() };
    let root = TopicObjects::below(&root);
    for (name, object) in texts {
        let (key, bytes) = (root.key_of(name), object.len());
        let written = root.storage().put(&key, object.into_bytes()).await;
        written.with_context(|| format!("{} cannot be written", text::path(&folder.join(&key))))?;
        out(&format!("{key}: {bytes} bytes\n"))?;
    }
    let left_out = left_out(owner, &objects, &reading);
    if !left_out.is_empty() {
        let names = text::line(&left_out.join(", "));
        note(format_args!("omitted: {names}; use lastmile apply to write these objects"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of the deployment-wide objects that are not written, although these files have
/// content for them.
fn left_out(owner: &str, objects: &DeploymentObjects, reading: &Reading) -> Vec<String> {
    let all = [
        (SETTINGS.to_owned(), objects.settings != SettingsObject::default()),
        (PUBLISHERS.to_owned(), !objects.publishers.topics.is_empty()),
        (destinations_of(owner), !reading.destinations.is_empty()),
    ];
    all.into_iter().filter_map(|(name, is_left_out)| is_left_out.then_some(name)).collect()
}
