//! `check --write-destinations`: writes the `Destinations` document that foreign files need.
//!
//! Separate from `check`, which only reads. A file for a cluster or for Azure refers to objects
//! whose addresses `check` cannot determine. This module appends an entry with a placeholder
//! address for each reference, and never changes existing entries.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use dialects::{Finding, Needed, ReferenceUse};

use crate::operations::files::{Files, have_errors};
use crate::terminal::output::note;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The host of placeholder addresses. Names below `.invalid` never exist (RFC 6761, 6.4).
const PLACEHOLDER_HOST: &str = "replace-me.invalid";

/// The advice that is added if a destination uses tokens.
const TOKENS: &str = ", and add the OAuth clients";

/// Returns true if the destination of a subscription is a placeholder.
pub(crate) fn has_placeholder(subscription: &Subscription) -> bool {
    subscription.destination.url.host_str() == Some(PLACEHOLDER_HOST)
}

/// Prints an error and returns true if destinations are still placeholders. In this case, nothing
/// may be written.
pub(crate) fn report_placeholders(catalogue: &Catalogue) -> bool {
    let is_found = catalogue.subscriptions().any(|subscription| has_placeholder(subscription));
    if is_found {
        note(format_args!(
            "nothing is written: replace the placeholder addresses at {PLACEHOLDER_HOST} first"
        ));
    }
    is_found
}

/// Appends an entry to the `Destinations` file at `path` for each reference that has no entry. Adds
/// the file to `files` unless they already include it.
///
/// # Errors
/// If a file cannot be read, or the `Destinations` file cannot be written.
pub(crate) fn complete(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let is_new = std::fs::read_to_string(path).is_ok_and(|text| text.trim().is_empty())
        || !(path.exists() || path.is_symlink());
    if !is_new {
        only_destinations(path)?;
    } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        let path = text::path(path);
        return Err(usage_error(format!(
            "{path} was not written: use a file name that ends with .yaml"
        )));
    }
    let is_listed = is_among(path, files);
    let mut read = files.clone();
    if !is_listed && !is_new {
        read.push(path.to_owned());
    }
    let findings = Files::read(&read)?.reading().findings;
    let missing = missing(&findings);
    let problem = || format!("{} cannot be written", text::path(path));
    let entries = missing.values().filter(|entry| entry.is_entry()).count();
    // If only addresses for dead letters are missing, write their comments to a new file, but do
    // not change an existing file.
    if entries > 0 || (is_new && !missing.is_empty()) {
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).with_context(problem)?;
        file.write_all(document(&missing, is_new).as_bytes()).with_context(problem)?;
        note(written(&text::path(path), entries, &missing));
    }
    if !is_listed && path.exists() {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Describes the entries that were written, and the next step.
fn written(path: &str, entries: usize, missing: &BTreeMap<&str, Missing>) -> String {
    if entries == 0 {
        return format!(
            "{path} written: to set a sink for dead letters, remove the # before its line"
        );
    }
    let tokens = if missing.values().any(|entry| !entry.needs.is_empty()) { TOKENS } else { "" };
    let added = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    format!("{added} added to {path}: replace the addresses at {PLACEHOLDER_HOST}{tokens}")
}

/// Fails unless the file is valid YAML that contains only `Destinations` or comments.
fn only_destinations(path: &Path) -> anyhow::Result<()> {
    let is_yaml =
        matches!(path.extension().and_then(|extension| extension.to_str()), Some("yaml" | "yml"));
    let reading = Files::read(&[path.to_owned()])?.reading();
    let has_entries =
        !reading.destinations.is_empty() && reading.catalogue.subscriptions().next().is_none();
    // A file with only comments has an empty catalogue and no findings.
    let has_comments = reading.catalogue == Catalogue::default() && reading.findings.is_empty();
    let holds_them = has_entries || has_comments;
    if is_yaml && holds_them && !have_errors(&reading.findings) {
        return Ok(());
    }
    Err(usage_error(format!(
        "{} already exists, but is not a YAML file with only valid Destinations: use a new file",
        text::path(path)
    )))
}

/// Returns true if the path is one of these files, or below one of these folders.
fn is_among(path: &Path, files: &[PathBuf]) -> bool {
    let absolute = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let Some(wanted) = absolute(path) else { return false };
    let holds = |listed: &PathBuf| {
        listed.canonicalize().is_ok_and(|canonical| wanted.starts_with(canonical))
    };
    files.iter().any(holds)
}

/// The information that is missing for a reference.
#[derive(Default)]
struct Missing {
    /// True if events are sent to the reference, and its address is unknown.
    is_unknown: bool,
    /// The missing settings of a token; empty if the reference needs no token.
    needs: Vec<Needed>,
}

impl Missing {
    /// Returns true if the reference needs an entry in the file. A reference that is used only for
    /// dead letters needs none.
    fn is_entry(&self) -> bool {
        self.is_unknown || !self.needs.is_empty()
    }
}

/// Collects what is missing for each reference, from the findings.
fn missing(findings: &[Finding]) -> BTreeMap<&str, Missing> {
    let mut missing: BTreeMap<&str, Missing> = BTreeMap::new();
    for reference in findings.iter().filter_map(|finding| finding.reference.as_ref()) {
        let entry = missing.entry(reference.key.as_str()).or_default();
        match reference.used_for {
            ReferenceUse::Events => entry.is_unknown = true,
            ReferenceUse::DeadLetters => {}
            ReferenceUse::Token => entry.needs.clone_from(&reference.needs),
        }
    }
    missing
}

/// Formats a `Destinations` document with an entry for each reference. Token settings are comments,
/// because placeholders in active settings would make every request fail. References that are used
/// only for dead letters are comments too, and only a new file lists them.
fn document(missing: &BTreeMap<&str, Missing>, is_first: bool) -> String {
    let mut text = if is_first { String::new() } else { "\n---\n".to_owned() };
    text.push_str(
        "# The addresses of references in other files. Replace each placeholder with a real \
         address.\n",
    );
    text.push_str("apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:");
    let (events, dead_letters): (Vec<_>, Vec<_>) =
        missing.iter().partition(|(_, entry)| entry.is_entry());
    text.push('\n');
    for (key, entry) in events {
        let address = if entry.is_unknown { placeholder(key) } else { (*key).to_owned() };
        let (key, address) = (in_quotes(key), in_quotes(&address));
        let needs: Vec<&str> = entry.needs.iter().map(|needed| needed.example()).collect();
        text.push_str(&match needs.is_empty() {
            true => format!("  {key}: {address}\n"),
            false => format!(
                "  {key}:\n    url: {address}\n    # auth: {{oauth2: {{{}}}}}   # without auth, \
                 requests contain no token\n",
                needs.join(", ")
            ),
        });
    }
    for (key, _) in dead_letters.into_iter().filter(|_| is_first) {
        text.push_str(&format!(
            "  # {}: \"s3://bucket/prefix\"   # without this line, the default container\n",
            in_quotes(key)
        ));
    }
    text
}

/// Returns a placeholder address whose path is the reference.
fn placeholder(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._/".contains(c) { c } else { '-' };
    let path: String = key.trim_start_matches('/').chars().map(plain).collect();
    format!("https://{PLACEHOLDER_HOST}/{path}")
}

/// Formats a text as a JSON string, which is also valid YAML.
fn in_quotes(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
