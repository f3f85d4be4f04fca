//! `SecretPolicy`: the hosts to which each secret may be sent.
//!
//! Separate because it belongs to the deployment, and to no family of dialects. Without it, whoever may
//! write subscriptions can send every secret that dispatch may read to any host.
//!
//! Promises: with a document of this kind, no subscription is read that sends a secret to a host which
//! is not listed for it, and a secret that is not listed is sent nowhere. Another spelling of a secret,
//! its ARN for its name, is another name. Does not look at ports, nor at values that stand in files.

use url::{Host, Url};

use super::findings::{Message, quoted};
use super::reader::{Cursor, Fields, read_each};
use crate::subscription::secret::SecretName;

/// The rule for names of secrets in policies.
const NAME_RULE: &str =
    "env:NAME, secretsmanager:ID or ssm:NAME, or the beginning of names and a *";
/// The rule for hosts.
const HOST_RULE: &str = "api.example.com, or *.example.com for all below it";

/// Where each secret may be sent.
#[derive(Default)]
pub(super) struct SecretPolicy {
    /// `None` without a document that can be read: then every secret may be sent anywhere.
    entries: Option<Vec<Entry>>,
}

/// Some secrets, and the hosts to which they may be sent.
struct Entry {
    name: NamePattern,
    hosts: Vec<HostPattern>,
}

/// Which secrets are meant.
enum NamePattern {
    /// One, with every member of its JSON if no member is named.
    Name(String),
    /// Those that begin so.
    Beginning(String),
}

/// Which hosts are meant, as URLs write them.
enum HostPattern {
    Host(String),
    /// All that end so, with a point before it.
    Below(String),
}

impl SecretPolicy {
    /// Reads the documents; their entries count together. Where one has an error nothing is refused, since
    /// nobody knows what it would allow: the files are not used as they are.
    pub(super) fn read(documents: &[Cursor<'_>]) -> Self {
        if documents.is_empty() {
            return Self::default();
        }
        let of_document = |document: &Cursor<'_>| {
            document.without_error(|| {
                document.mapping(|fields| {
                    fields.accept(&["apiVersion", "kind"]);
                    fields
                        .required("spec")?
                        .mapping(|spec| spec.required("secrets")?.each(entry))?
                })?
            })
        };
        let entries = read_each(documents, of_document);
        Self { entries: entries.map(|entries| entries.into_iter().flatten().collect()) }
    }

    /// Why this secret may not be sent to this address, if it may not.
    pub(super) fn refusal(&self, secret: &SecretName, to: &Url) -> Option<Message> {
        let name = secret.to_string();
        let host = to.host_str().unwrap_or_default();
        let of_secret = self.entries.as_ref()?.iter().filter(|entry| entry.name.matches(&name));
        let hosts: Vec<&HostPattern> = of_secret.flat_map(|entry| &entry.hosts).collect();
        if hosts.iter().any(|allowed| allowed.matches(host)) {
            return None;
        }
        let message = format!("the secret {} may not be sent to {}", quoted(&name), quoted(host));
        let listed: Vec<String> = hosts.into_iter().map(HostPattern::text).collect();
        Some(Message::new(message).help(if listed.is_empty() {
            "no SecretPolicy names it".to_owned()
        } else {
            format!("SecretPolicy allows {}", listed.join(", "))
        }))
    }
}

impl NamePattern {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Beginning(beginning) => name.starts_with(beginning),
            Self::Name(listed) => {
                let rest = name.strip_prefix(listed);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
            }
        }
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Host(listed) => host == listed,
            Self::Below(domain) => {
                let below = host.strip_suffix(domain);
                below.is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Host(host) => host.clone(),
            Self::Below(domain) => format!("*.{domain}"),
        }
    }
}

fn entry(at: &Cursor<'_>) -> Option<Entry> {
    at.mapping(|fields: &Fields<'_>| {
        let name = fields.required("name").and_then(|at| name_pattern(&at));
        let hosts = fields.required("hosts").and_then(|at| at.each(host_pattern));
        Some(Entry { name: name?, hosts: hosts? })
    })?
}

fn name_pattern(at: &Cursor<'_>) -> Option<NamePattern> {
    let text = at.text()?;
    let is_name = |text: &str| text.parse::<SecretName>().is_ok() && !text.contains('*');
    match text.strip_suffix('*') {
        // `ssm:` alone is no name, and `ssm:*` all of them.
        Some(beginning) if is_name(&format!("{beginning}x")) => {
            Some(NamePattern::Beginning(beginning.to_owned()))
        }
        None if is_name(text) => Some(NamePattern::Name(text.to_owned())),
        // Not quoted: it may be a secret by mistake.
        Some(_) | None => at.refuse(Message::new("not the name of a secret").help(NAME_RULE)),
    }
}

fn host_pattern(at: &Cursor<'_>) -> Option<HostPattern> {
    let text = at.text()?;
    let domain = text.strip_prefix("*.");
    let host = domain.unwrap_or(text);
    let parsed = Host::parse(host).ok().filter(|_| !host.contains('*'));
    let pattern = parsed.and_then(|host| match (host, domain) {
        (host, None) => Some(HostPattern::Host(host.to_string())),
        (Host::Domain(domain), Some(_)) => Some(HostPattern::Below(domain)),
        (Host::Ipv4(_) | Host::Ipv6(_), Some(_)) => None,
    });
    let message = || Message::new(format!("{} is not a host", quoted(text))).help(HOST_RULE);
    pattern.or_else(|| at.refuse(message()))
}

#[cfg(test)]
mod tests {
    use super::super::{Source, read};

    /// What is found in a policy with these entries, and a subscription that sends these secrets to this
    /// address.
    fn findings(policy: &str, url: &str, destination: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: a, topic: b, name: c}}\n\
             spec:\n  destination: {{url: '{url}', {destination}}}\n---\n\
             apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec:\n  secrets: {policy}\n"
        );
        let reading = read(&[Source { name: "f", text: &text }]);
        let found: Vec<String> = reading.findings.iter().map(ToString::to_string).collect();
        let refused = found.iter().any(|one| one.contains("may not be sent"));
        assert_eq!(reading.catalogue.subscriptions().count(), usize::from(!refused), "{found:?}");
        found
    }

    fn is_allowed(listed: &str, hosts: &str, secret: &str, url: &str) -> bool {
        let policy = format!("[{{name: '{listed}', hosts: [{hosts}]}}]");
        findings(&policy, url, &format!("signing: {{secrets: ['{secret}']}}")).is_empty()
    }

    #[test]
    fn a_secret_is_sent_to_the_hosts_that_are_listed_for_it_and_to_no_other() {
        for (hosts, url, expected) in [
            ("api.example.com", "https://api.example.com/in", true),
            ("API.example.com", "https://Api.Example.com:8443/in", true),
            ("bücher.example", "https://xn--bcher-kva.example/", true),
            ("a.example, api.example.com", "https://api.example.com/", true),
            ("10.0.0.1", "http://10.1/", true),
            ("10.0.0.1", "http://0x0a000001/", true),
            ("'[::1]'", "http://[0:0::1]/", true),
            ("'*.example.com'", "https://api.example.com/", true),
            ("'*.example.com'", "https://a.b.example.com/", true),
            ("'*.example.com'", "https://example.com/", false),
            ("'*.example.com'", "https://evilexample.com/", false),
            ("'*.example.com'", "https://api.example.com.evil.test/", false),
            ("api.example.com", "https://api.example.com@evil.test/", false),
            ("api.example.com", "https://evil.test/api.example.com", false),
            ("api.example.com", "https://a.api.example.com/", false),
            ("", "https://api.example.com/", false),
        ] {
            assert_eq!(is_allowed("env:A", hosts, "env:A", url), expected, "{hosts} {url}");
        }
    }

    #[test]
    fn an_entry_names_a_secret_with_its_members_or_the_beginning_of_names() {
        for (listed, secret, expected) in [
            ("env:A", "env:A", true),
            ("env:A", "env:AB", false),
            ("env:A", "ssm:A", false),
            ("env:A*", "env:AB", true),
            ("ssm:/billing/*", "ssm:/billing/token", true),
            ("ssm:/billing/*", "ssm:/billing", false),
            ("ssm:*", "ssm:/any", true),
            ("secretsmanager:s", "secretsmanager:s#token", true),
            ("secretsmanager:s#token", "secretsmanager:s#token", true),
            ("secretsmanager:s#token", "secretsmanager:s#key", false),
            ("secretsmanager:s#token", "secretsmanager:s", false),
            (
                "secretsmanager:s",
                "secretsmanager:arn:aws:secretsmanager:r:1:secret:s-AbCdEf",
                false,
            ),
        ] {
            assert_eq!(
                is_allowed(listed, "h.test", secret, "https://h.test/"),
                expected,
                "{listed} {secret}"
            );
        }
    }

    #[test]
    fn the_entries_of_all_documents_count_together() {
        let more = "[{name: env:A, hosts: [a.test]}]\n---\napiVersion: lastmile.dev/v1\nkind: SecretPolicy\n\
                    spec: {secrets: [{name: 'env:*', hosts: [b.test]}]}";
        for url in ["https://a.test/", "https://b.test/"] {
            assert_eq!(findings(more, url, "signing: {secrets: [env:A]}"), [""; 0]);
        }
    }

    #[test]
    fn a_refused_secret_is_reported_where_it_is_named() {
        let listed = "[{name: env:A, hosts: [a.test, '*.b.test']}]";
        let destination =
            "headers: [{name: x, value: y}, {name: k, secret: env:A}], signing: {secrets: [env:B]}";
        assert_eq!(
            findings(listed, "https://evil.test/", destination),
            [
                "f:5:93: error: spec.destination.headers[1].secret: the secret \"env:A\" may not be sent to \
                 \"evil.test\"; SecretPolicy allows a.test, *.b.test",
                "f:5:122: error: spec.destination.signing.secrets[0]: the secret \"env:B\" may not be sent \
                 to \"evil.test\"; no SecretPolicy names it",
            ]
        );
    }

    #[test]
    fn a_secret_of_a_topic_is_checked_for_each_of_its_subscriptions() {
        let topic = "[{name: env:A, hosts: [a.test]}]\n---\napiVersion: lastmile.dev/v1\nkind: Topic\n\
                     metadata: {namespace: a, name: b}\nspec: {delivery: {destination: {signing: {secrets: [env:A]}}}}";
        assert_eq!(findings(topic, "https://a.test/", ""), [""; 0]);
        let found = findings(topic, "https://evil.test/", "");
        assert!(found.len() == 1 && found[0].contains("may not be sent"), "{found:?}");
    }

    #[test]
    fn a_policy_that_cannot_be_read_says_what_would_be_right() {
        for (policy, expected) in [
            ("7", "spec.secrets: expected a list, found a whole number"),
            ("[{name: env:A}]", "spec.secrets[0].hosts: hosts is missing"),
            ("[{hosts: [a.test]}]", "spec.secrets[0].name: name is missing"),
            (
                "[{name: env:A, hosts: [a.test], host: b}]",
                "unknown field \"host\"; did you mean hosts?",
            ),
            ("[{name: hunter2, hosts: []}]", "secrets[0].name: not the name of a secret; env:NAME"),
            ("[{name: '*', hosts: []}]", "secrets[0].name: not the name of a secret; env:NAME"),
            (
                "[{name: 'env:*A', hosts: []}]",
                "secrets[0].name: not the name of a secret; env:NAME",
            ),
            (
                "[{name: env:A, hosts: ['*']}]",
                "hosts[0]: \"*\" is not a host; api.example.com, or *.example.com",
            ),
            ("[{name: env:A, hosts: ['*.*.a']}]", "hosts[0]: \"*.*.a\" is not a host"),
            ("[{name: env:A, hosts: ['a.*']}]", "hosts[0]: \"a.*\" is not a host"),
            ("[{name: env:A, hosts: ['https://a/']}]", "hosts[0]: \"https://a/\" is not a host"),
            ("[{name: env:A, hosts: ['*.10.0.0.1']}]", "hosts[0]: \"*.10.0.0.1\" is not a host"),
        ] {
            let found = findings(policy, "https://h.test/", "signing: {secrets: [env:A]}");
            assert!(found.len() == 1 && found[0].contains(expected), "{policy}: {found:?}");
        }
    }
}
