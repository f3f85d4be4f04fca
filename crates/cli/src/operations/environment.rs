//! Decides which environment variables of this machine a command may send.
//!
//! A subscription can use any environment variable as a secret: `env:NAME`. The variables belong to
//! the person who runs the command, but the subscription and its address may come from someone
//! else. This module is separate because `try` and `dev` both send requests from a developer's
//! machine.
//!
//! The person's AWS identity needs the same protection. A signature is valid for one host only, but
//! a token is valid for every receiver that accepts its audience. The file sets the audience too.
//! An AWS target needs no consent: `AWS_TARGETS` lists the allowed targets, and only AWS sees the
//! signature.
//!
//! Promises: a variable is sent only if the person named it with `--env` (then to any host), or
//! agreed to send it to the hosts shown in the question. `dev` may also send it to this machine.
//! The decision is made for each request by its address, because the file may change while `dev`
//! runs.
//!
//! The module does not ask about stored secrets, because only a Lambda extension reads them, and
//! people configure its port on purpose. It does not restrict the deployed function, whose
//! environment contains only its own variables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use adapters::aws_identity::Identity;
use delivery::subscription::auth::TokenSource;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::secret::SecretName;
use delivery::subscription::{Destination, SignatureScope, Subscription, host_of};

use crate::operations::shell;
use crate::operations::this_machine::is_here;
use crate::terminal::confirm::is_confirmed;
use crate::terminal::output::note;
use crate::terminal::text;
use crate::terminal::usage::usage_error;
use url::Url;

/// The options that allow variables and the AWS identity without confirmation.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnvironmentArgs {
    /// Do not ask before sending this environment variable, which a subscription uses as env:NAME.
    /// Repeatable
    ///
    /// Stored secrets (secretsmanager:ID, ssm:NAME) need no confirmation.
    #[arg(long = "env", value_name = "NAME")]
    allowed: Vec<String>,
    /// Do not ask before using your AWS identity (sigv4, awsIdentity) for requests to other
    /// machines
    #[arg(long)]
    identity: bool,
}

/// The destinations that may receive requests with the user's AWS identity. Destinations on this
/// machine may always receive them.
#[derive(Debug, Default)]
struct Shows {
    all: bool,
    /// The descriptions of receivers, from [`shown`], that the user has accepted.
    agreed: BTreeSet<String>,
}

impl Shows {
    /// Returns true if requests to this destination may contain the user's AWS identity.
    fn has(&self, to: &Destination) -> bool {
        self.all
            || is_here(&to.url)
            || to.aws.is_some()
            || shown(to).is_some_and(|description| self.agreed.contains(&description))
    }
}

/// The environment variables that may be sent, and the hosts that may receive them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Allowed {
    /// The names of variables that any host may receive.
    names: BTreeSet<String>,
    /// The variables that only certain hosts may receive.
    hosts: Receivers,
}

/// The hosts that would receive each variable, by the variable's name.
pub(crate) type Receivers = BTreeMap<String, BTreeSet<String>>;

/// Returns the environment variables that these subscriptions use as secrets, and the hosts that
/// would receive them.
pub(crate) fn receivers<'a>(
    subscriptions: impl IntoIterator<Item = &'a Subscription>,
) -> Receivers {
    let mut receivers = Receivers::new();
    for Subscription { destination, .. } in subscriptions {
        for (secret, to) in destination.secrets_with_addresses() {
            if let SecretName::Environment(name) = secret {
                receivers.entry(name.clone()).or_default().insert(host_of(to));
            }
        }
    }
    receivers
}

impl EnvironmentArgs {
    /// Refuses `NAME=VALUE`. Clap does not check this, because its message would print the value.
    ///
    /// # Errors
    /// A usage error with the name.
    pub(crate) fn check_names(&self) -> anyhow::Result<()> {
        let Some((name, _)) = self.allowed.iter().find_map(|text| text.split_once('=')) else {
            return Ok(());
        };
        let name = text::line(name);
        Err(usage_error(format!(
            "--env takes only the name {name}; set its value before the command: {name}=… lastmile …"
        )))
    }

    /// Decides which variables may be sent: those that options name, and others if the user agrees.
    ///
    /// # Errors
    /// A usage error with the receivers, if the user declines, or there is no terminal for the
    /// question.
    pub(crate) fn allow(&self, receivers: &Receivers) -> anyhow::Result<Allowed> {
        let names: BTreeSet<String> = self.allowed.iter().cloned().collect();
        let mut hosts = receivers.clone();
        hosts.retain(|name, _| !names.contains(name));
        if hosts.is_empty() {
            return Ok(Allowed { names, hosts });
        }
        let listed: String = hosts.iter().map(|(name, hosts)| sends(name, hosts)).collect();
        let options: String =
            hosts.keys().map(|name| format!(" --env {}", shell::typed(name))).collect();
        let explanation =
            format!("the files use environment variables of this machine as secrets:\n{listed}");
        let otherwise = format!(
            "{explanation}nothing was sent; to send the values, add{}",
            text::line(&options)
        );
        let question = format!("{explanation}send the values?");
        if !is_confirmed(&question, &otherwise)? {
            return Err(usage_error("nothing was sent"));
        }
        Ok(Allowed { names, hosts })
    }

    /// Returns the user's AWS identity. Requests to another machine contain it only if the user
    /// agrees, with the option or on the terminal.
    ///
    /// # Errors
    /// A usage error with the hosts, if the user declines, or there is no terminal for the
    /// question.
    pub(crate) fn identity<'a>(
        &self,
        subscriptions: impl IntoIterator<Item = &'a Subscription>,
    ) -> anyhow::Result<Identity> {
        let shows = self.shows(subscriptions)?;
        Ok(Identity::of_person(move |to| shows.has(to)))
    }

    fn shows<'a>(
        &self,
        subscriptions: impl IntoIterator<Item = &'a Subscription>,
    ) -> anyhow::Result<Shows> {
        let agreed = shown_elsewhere(subscriptions);
        if agreed.is_empty() {
            return Ok(Shows { all: self.identity, agreed });
        }
        let listed: String =
            agreed.iter().map(|description| format!("  {}\n", text::line(description))).collect();
        if self.identity {
            note(format_args!("requests contain your AWS identity:\n{}", listed.trim_end()));
            return Ok(Shows { all: true, agreed });
        }
        let explanation = format!(
            "the requests that these files define would contain your AWS identity:\n{listed}"
        );
        let otherwise =
            format!("{explanation}nothing was sent; to send your identity, add --identity");
        if !is_confirmed(&format!("{explanation}send it?"), &otherwise)? {
            return Err(usage_error("nothing was sent"));
        }
        Ok(Shows { all: false, agreed })
    }
}

impl Allowed {
    /// Returns true if a variable may be sent to this address.
    fn has(&self, name: &str, to: &Url) -> bool {
        let has_host = |hosts: &BTreeSet<String>| hosts.contains(&host_of(to));
        self.names.contains(name) || self.hosts.get(name).is_some_and(has_host)
    }
}

/// Describes the receivers of a variable on one line.
fn sends(name: &str, hosts: &BTreeSet<String>) -> String {
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    format!("  {} to {}\n", text::line(name), text::line(&hosts.join(", ")))
}

/// Creates a function that looks up variables, and checks the address that would receive them. If
/// `also_here`, this machine may receive any variable.
pub(crate) fn lookup(
    allowed: Allowed,
    also_here: bool,
) -> impl Fn(&str, Option<&Url>) -> Option<String> {
    let reported = Mutex::new(BTreeSet::new());
    move |name, to| {
        // The secret store needs this variable for itself, and sends it nowhere.
        let Some(to) = to else { return std::env::var(name).ok() };
        if allowed.has(name, to) || (also_here && is_here(to)) {
            return std::env::var(name).ok();
        }
        if reported.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
            let (option, host) = (shell::command(&["--env", name]), text::line(&host_of(to)));
            let name = text::line(name);
            note(format_args!(
                "{name} is not sent to {host}; start again with {option} to allow it"
            ));
        }
        None
    }
}

/// Returns the hosts that would receive variables. Ignores subscriptions that send variables only
/// to this machine.
pub(crate) fn receivers_elsewhere(catalogue: &Catalogue) -> Receivers {
    let all = catalogue.subscriptions().map(AsRef::as_ref);
    let is_elsewhere = |subscription: &&Subscription| {
        subscription.destination.secrets_with_addresses().any(|(_, to)| !is_here(to))
    };
    receivers(all.filter(is_elsewhere))
}

/// Describes the hosts other than this machine that would receive the AWS identity.
fn shown_elsewhere<'a>(
    subscriptions: impl IntoIterator<Item = &'a Subscription>,
) -> BTreeSet<String> {
    let destinations = subscriptions.into_iter().map(|subscription| &subscription.destination);
    let is_asked =
        |destination: &&Destination| !is_here(&destination.url) && destination.aws.is_none();
    destinations.filter(is_asked).filter_map(shown).collect()
}

/// Describes how a destination would receive the AWS identity; `None` if requests to the
/// destination do not contain it.
fn shown(destination: &Destination) -> Option<String> {
    let host = destination.host();
    if let Some(SignatureScope { service, region, .. }) = destination.signing_scope() {
        return Some(format!("{host}: a signature for {service} in {region}"));
    }
    match destination.token_source()? {
        TokenSource::Aws(identity) => Some(format!("{host}: a token for {}", identity.audience)),
        TokenSource::Client(_) => None,
    }
}

/// Prints the hosts that receive each variable.
pub(crate) fn report(receivers: &Receivers) {
    if !receivers.is_empty() {
        let lines: String = receivers.iter().map(|(name, hosts)| sends(name, hosts)).collect();
        note(format_args!("these environment variables are sent:\n{}", lines.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use delivery::subscription::auth::Auth;
    use delivery::subscription::auth::identity::WebIdentity;
    use dialects::Source;

    use super::*;

    const FILE: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                        metadata: {namespace: n, topic: t, name: NAME}\n\
                        spec: {destination: {url: 'URL', headers: [{name: a, secret: 'env:TOKEN'}]}}\n";

    fn catalogue(documents: &[(&str, &str)]) -> Catalogue {
        let text: Vec<String> = documents
            .iter()
            .map(|(name, url)| FILE.replace("NAME", name).replace("URL", url))
            .collect();
        dialects::read(&[Source { name: "f", text: &text.join("---\n") }]).catalogue
    }

    #[test]
    fn a_variable_is_found_only_for_addresses_that_may_have_it() {
        // Every test process has the variable `PATH`.
        let found = |allowed: Allowed, also_here: bool, to: &str| {
            lookup(allowed, also_here)("PATH", Some(&to.parse().unwrap())).is_some()
        };
        let (here, there) = ("http://127.0.0.1:9180/", "https://b.example.com:8443/in");
        let by_name = || Allowed { names: ["PATH".to_owned()].into(), ..Allowed::default() };
        let by_host = || {
            let hosts = BTreeSet::from(["b.example.com:8443".to_owned()]);
            Allowed { hosts: [("PATH".to_owned(), hosts)].into(), ..Allowed::default() }
        };
        assert!(found(by_name(), false, here) && found(by_name(), false, there));
        assert!(found(by_host(), false, there) && !found(by_host(), false, here));
        for other in
            ["https://b.example.com/", "https://evil.example/", "https://b.example.com.evil:8443/"]
        {
            assert!(!found(by_host(), true, other), "{other}");
        }
        assert!(!found(Allowed::default(), false, here) && found(Allowed::default(), true, here));
        assert!(!found(Allowed::default(), true, "http://127.0.0.1.example.com/"));
        assert!(lookup(Allowed::default(), false)("PATH", None).is_some(), "for the stores");
    }

    #[test]
    fn hosts_that_receive_a_variable_are_listed_by_its_name() {
        let documents = [
            ("a", "https://a.example.com/"),
            ("b", "https://b.example.com:8443/"),
            ("c", "http://[::1]/"),
        ];
        let receivers = receivers_elsewhere(&catalogue(&documents));
        let lines: Vec<String> = receivers.iter().map(|(name, hosts)| sends(name, hosts)).collect();
        assert_eq!(lines, ["  TOKEN to a.example.com, b.example.com:8443\n"]);
    }

    #[test]
    fn hosts_that_would_see_who_is_calling_are_asked_about_but_not_this_machine() {
        let signed = "auth: {sigv4: {service: lambda, region: eu-west-1}}";
        let text: Vec<String> = [("a", "https://a.example.com/"), ("c", "http://127.0.0.1:1/")]
            .iter()
            .map(|(name, url)| FILE.replace("NAME", name).replace("URL", url))
            .map(|text| text.replace("headers: [{name: a, secret: 'env:TOKEN'}]", signed))
            .collect();
        let sources = [Source { name: "f", text: &text.join("---\n") }];
        let catalogue = dialects::read(&sources).catalogue;
        let all = || catalogue.subscriptions().map(AsRef::as_ref);
        let seen = "a.example.com: a signature for lambda in eu-west-1";
        assert_eq!(shown_elsewhere(all()), BTreeSet::from([seen.to_owned()]));
        let args = |identity| EnvironmentArgs { allowed: Vec::new(), identity };
        let everybody = args(true).shows(all()).unwrap();
        let agreed = Shows { all: false, agreed: shown_elsewhere(all()) };
        let destinations: Vec<_> =
            all().map(|subscription| subscription.destination.clone()).collect();
        // Agreement to a signature for a host does not include a token for the same host.
        let identity = WebIdentity { audience: "https://bank/".to_owned(), lifetime_ms: 300_000 };
        let other =
            Destination { auth: Some(Auth::AwsIdentity(identity)), ..destinations[0].clone() };
        assert!(
            destinations
                .iter()
                .all(|destination| everybody.has(destination) && agreed.has(destination))
        );
        assert!(everybody.has(&other) && !agreed.has(&other));
    }
}
