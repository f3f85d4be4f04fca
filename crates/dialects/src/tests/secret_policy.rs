use super::support::{read_one, shown};

/// Returns the findings about a policy with these entries and a subscription that sends these
/// secrets to this URL.
fn findings(policy: &str, url: &str, destination: &str) -> Vec<String> {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: a, topic: b, name: c}}\n\
         spec:\n  destination: {{url: '{url}', {destination}}}\n---\n\
         apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec:\n  secrets: {policy}\n"
    );
    let reading = read_one(&text);
    let found = shown(&reading);
    let refused = found.iter().any(|finding| finding.contains("may not be sent"));
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
        ("secretsmanager:s", "secretsmanager:arn:aws:secretsmanager:r:1:secret:s-AbCdEf", false),
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
            "f:5:122: error: spec.destination.signing.secrets[0]: the secret \"env:B\" may not be \
             sent to \"evil.test\"; no SecretPolicy lists the secret",
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
        (
            "[{name: hunter2, hosts: []}]",
            "secrets[0].name: not the name of a secret; expected env:NAME",
        ),
        (
            "[{name: '*', hosts: []}]",
            "secrets[0].name: not the name of a secret; expected env:NAME",
        ),
        (
            "[{name: 'env:*A', hosts: []}]",
            "secrets[0].name: not the name of a secret; expected env:NAME",
        ),
        (
            "[{name: env:A, hosts: ['*']}]",
            "hosts[0]: \"*\" is not a host; expected api.example.com, or *.example.com",
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
