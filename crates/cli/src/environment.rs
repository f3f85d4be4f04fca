//! Which variables of this machine's environment a command may send.
//!
//! A subscription names its secrets, and `env:NAME` may be any variable of whoever runs a command. The
//! file may be somebody else's, and so may the address. Separate because `validate` and `dev` both
//! send requests from the machine of a developer.
//!
//! Promises: a variable is sent only if the person named it with `--env` or agreed when asked, after
//! reading who receives it; `dev` also lets this machine have it.
//!
//! Does not restrict the deployed function, whose environment holds what was meant for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use adapters::secrets::{PORT, TOKEN};
use delivery::subscription::Subscription;
use delivery::subscription::secret::SecretName;

use crate::confirm::is_confirmed;
use crate::files::{Files, have_errors, usage_error};
use crate::output::note;
use crate::text;
use crate::this_machine::is_here;

/// Which variables may be sent.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnvironmentArgs {
    /// Send this variable of your environment where a subscription names it as env:NAME, without
    /// asking; can be repeated
    #[arg(long = "env", value_name = "NAME")]
    allowed: Vec<String>,
}

/// Who receives each variable: the hosts, by its name.
pub(crate) type Receivers = BTreeMap<String, BTreeSet<String>>;

/// Who receives the variables that these subscriptions name.
pub(crate) fn receivers<'a>(
    subscriptions: impl IntoIterator<Item = &'a Subscription>,
) -> Receivers {
    let mut receivers = Receivers::new();
    for Subscription { destination, .. } in subscriptions {
        for secret in destination.secrets() {
            if let SecretName::Environment(name) = secret {
                receivers.entry(name.clone()).or_default().insert(destination.host());
            }
        }
    }
    receivers
}

impl EnvironmentArgs {
    /// The variables that may be sent: the named ones, and the others if a person agrees.
    ///
    /// # Errors
    /// A usage error that lists who would receive what, if nobody can be asked or the answer is no.
    pub(crate) fn allow(&self, receivers: &Receivers) -> anyhow::Result<BTreeSet<String>> {
        let mut allowed: BTreeSet<String> = self.allowed.iter().cloned().collect();
        let open: Vec<(&String, &BTreeSet<String>)> =
            receivers.iter().filter(|(name, _)| !allowed.contains(*name)).collect();
        if open.is_empty() {
            return Ok(allowed);
        }
        let listed: String = open.iter().map(|(name, hosts)| sends(name, hosts)).collect();
        let options: String = open.iter().map(|(name, _)| format!(" --env {name}")).collect();
        let what = format!("the files name variables of your environment as secrets:\n{listed}");
        let otherwise = format!("{what}nothing was sent; this allows it:{}", text::line(&options));
        let question = format!("{what}send them?");
        if !is_confirmed(&question, &otherwise)? {
            return Err(usage_error("nothing was sent"));
        }
        allowed.extend(open.into_iter().map(|(name, _)| name.clone()));
        Ok(allowed)
    }
}

/// A line about who receives a variable.
fn sends(name: &str, hosts: &BTreeSet<String>) -> String {
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    format!("  {} to {}\n", text::line(name), text::line(&hosts.join(", ")))
}

/// A lookup of these variables, and of no other.
pub(crate) fn only(allowed: BTreeSet<String>) -> impl Fn(&str) -> Option<String> {
    move |name| allowed.contains(name).then(|| std::env::var(name).ok()).flatten()
}

/// A lookup of these variables, and of those that only destinations on this machine receive. The file
/// is read again each time: while `dev` runs it may change, and nobody is asked again.
pub(crate) fn also_here(
    allowed: BTreeSet<String>,
    file: PathBuf,
) -> impl Fn(&str) -> Option<String> {
    let reported = Mutex::new(BTreeSet::new());
    move |name| {
        // Where the store of secrets is; no subscription can name them.
        let is_own = [PORT, TOKEN].contains(&name);
        if is_own || allowed.contains(name) || stays_here(name, &file) {
            return std::env::var(name).ok();
        }
        if reported.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
            let name = text::line(name);
            note(format_args!("{name} is not sent: start again with --env {name} to allow that"));
        }
        None
    }
}

/// Whether the file names a variable, and only for destinations on this machine.
fn stays_here(name: &str, file: &PathBuf) -> bool {
    let Ok(files) = Files::read(std::slice::from_ref(file)) else { return false };
    let reading = files.reading();
    if have_errors(&reading.findings) {
        return false;
    }
    let all = reading.catalogue.subscriptions();
    let mut naming = all
        .filter(|of| {
            let mut secrets = of.destination.secrets();
            secrets.any(|secret| matches!(secret, SecretName::Environment(of) if of == name))
        })
        .peekable();
    naming.peek().is_some() && naming.all(|of| is_here(&of.destination.url))
}

/// Who receives the variables that a file of subscriptions sends to other machines.
///
/// # Errors
/// A usage error when it cannot be read.
pub(crate) fn receivers_elsewhere(file: &PathBuf) -> anyhow::Result<Receivers> {
    let reading = Files::read(std::slice::from_ref(file))?.reading();
    let all = reading.catalogue.subscriptions().map(AsRef::as_ref);
    Ok(receivers(all.filter(|of: &&Subscription| !is_here(&of.destination.url))))
}

/// Says who receives which variables.
pub(crate) fn report(receivers: &Receivers) {
    if !receivers.is_empty() {
        let lines: String = receivers.iter().map(|(name, hosts)| sends(name, hosts)).collect();
        note(format_args!("variables of your environment are sent:\n{}", lines.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                        metadata: {namespace: n, topic: t, name: NAME}\n\
                        spec: {destination: {url: 'URL', headers: [{name: a, secret: 'env:TOKEN'}]}}\n";

    fn file(folder: &tempfile::TempDir, documents: &[(&str, &str)]) -> PathBuf {
        let path = folder.path().join("s.yaml");
        let text: Vec<String> = documents
            .iter()
            .map(|(name, url)| FILE.replace("NAME", name).replace("URL", url))
            .collect();
        std::fs::write(&path, text.join("---\n")).unwrap();
        path
    }

    #[test]
    fn a_variable_stays_here_only_while_every_destination_that_names_it_is_here() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (("a", "http://127.0.0.1:9180/"), ("b", "https://b.example.com/"));
        for (documents, stays) in [
            (&[here][..], true),
            (&[here, ("b", "http://localhost/")], true),
            (&[here, there], false),
            (&[there], false),
            (&[("a", "http://127.0.0.1.example.com/")], false),
            (&[here, ("b", "not an address")], false),
        ] {
            let path = file(&folder, documents);
            assert_eq!(stays_here("TOKEN", &path), stays, "{documents:?}");
            assert!(!stays_here("OTHER", &path));
        }
        std::fs::remove_file(folder.path().join("s.yaml")).unwrap();
        assert!(!stays_here("TOKEN", &folder.path().join("s.yaml")));
    }

    #[test]
    fn a_lookup_finds_only_what_was_allowed() {
        // Every process of a test has this variable.
        let allowed = || BTreeSet::from(["PATH".to_owned()]);
        assert!(only(allowed())("PATH").is_some());
        assert_eq!(only(BTreeSet::new())("PATH"), None);
        let missing = PathBuf::from("no-such-file.yaml");
        assert!(also_here(allowed(), missing.clone())("PATH").is_some());
        assert_eq!(also_here(BTreeSet::new(), missing)("PATH"), None);
    }

    #[test]
    fn hosts_that_receive_a_variable_are_listed_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let documents = [
            ("a", "https://a.example.com/"),
            ("b", "https://b.example.com:8443/"),
            ("c", "http://[::1]/"),
        ];
        let receivers = receivers_elsewhere(&file(&folder, &documents)).unwrap();
        let lines: Vec<String> = receivers.iter().map(|(name, hosts)| sends(name, hosts)).collect();
        assert_eq!(lines, ["  TOKEN to a.example.com, b.example.com:8443\n"]);
    }
}
