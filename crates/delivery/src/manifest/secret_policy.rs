//! `SecretPolicy` documents.
//!
//! Separate because they belong to the deployment, and to no family of dialects: what they mean is
//! `subscription::secret_policy`.
//!
//! Promises: with a document of this kind, no subscription is read that sends a secret to a host which
//! is not listed for it.

use std::collections::BTreeSet;

use super::Described;
use super::findings::{Message, quoted};
use super::reader::{Cursor, Fields, read_each};
use crate::subscription::display;
use crate::subscription::secret_policy::{
    HOST_PATTERN_RULE, HostPattern, NAME_PATTERN_RULE, SecretPolicy, SecretRefusal, SecretRule,
};

/// Reads the documents; their entries count together. Where one has an error nothing is refused, since
/// nobody knows what it would allow: the files are not used as they are.
pub(super) fn read(documents: &[Cursor<'_>]) -> SecretPolicy {
    let of_document = |document: &Cursor<'_>| {
        document.without_error(|| {
            document.mapping(|fields| {
                fields.accept(&["apiVersion", "kind"]);
                fields.required("spec")?.mapping(|spec| spec.required("secrets")?.each(rule))?
            })?
        })
    };
    let mut policy = SecretPolicy::default();
    if let Some(rules) = read_each(documents, of_document).filter(|rules| !rules.is_empty()) {
        policy.begin();
        rules.into_iter().flatten().for_each(|rule| policy.add(rule));
    }
    policy
}

impl From<SecretRefusal> for Message {
    fn from(refusal: SecretRefusal) -> Self {
        Self::new(refusal.problem()).help(refusal.help())
    }
}

/// Whether the destination of a subscription may have all secrets that requests to it carry. Reported
/// where a secret is named, else at the subscription's name, once for each position and destination.
pub(super) fn may_have_secrets<'a>(
    described: &Described<'a>,
    policy: &SecretPolicy,
    named_at: Option<&Cursor<'a>>,
    reported_at: &mut BTreeSet<String>,
) -> bool {
    let Described { subscription, secrets_at, .. } = described;
    let destination = &subscription.destination;
    let mut may_have_all = true;
    for (secret, to) in destination.secrets_with_addresses() {
        let Some(message) = policy.refusal(secret, to) else { continue };
        may_have_all = false;
        let name = secret.to_string();
        let at = secrets_at.iter().find(|at| at.peek_text() == Some(&name)).or(named_at);
        let once =
            |at: &&Cursor<'a>| reported_at.insert(format!("{} {}", at.location(), display(to)));
        if let Some(at) = at.filter(once) {
            at.error(message);
        }
    }
    may_have_all
}

fn rule(at: &Cursor<'_>) -> Option<SecretRule> {
    at.mapping(|fields: &Fields<'_>| {
        let name = fields
            .required("name")
            .and_then(|at| at.parsed("the name of a secret", NAME_PATTERN_RULE));
        let hosts = fields.required("hosts").and_then(|at| at.each(host));
        Some(SecretRule { name: name?, hosts: hosts? })
    })?
}

fn host(at: &Cursor<'_>) -> Option<HostPattern> {
    let text = at.text()?;
    let message =
        || Message::new(format!("{} is not a host", quoted(text))).help(HOST_PATTERN_RULE);
    text.parse().ok().or_else(|| at.refuse(message()))
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
