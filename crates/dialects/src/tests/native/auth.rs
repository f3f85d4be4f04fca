//! `auth` of a destination, stated by a Subscription or by its Topic.

use super::{HEAD, TOPIC, subscription};
use crate::tests::support::{read_one, shown};
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::Basic;
use delivery::subscription::auth::Bearer;
use delivery::subscription::auth::ClientCertificate;
use delivery::subscription::auth::SecretHeader;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::auth::oauth2::{ClientCredentials, Style};
use delivery::subscription::auth::sigv4::{SigningScope, SigningService};

#[test]
fn each_kind_is_read() {
    let secret = |name: &str| name.parse().expect("the name of a secret");
    let basic = Auth::Basic(Basic { user: "acme".to_owned(), password: secret("env:P") });
    let client = ClientCredentials {
        token_url: "https://login.example.com/t".parse().expect("a URL"),
        client_id: "acme".to_owned(),
        client_secret: secret("env:C"),
        scope: None,
        audience: None,
        resource: None,
        style: Style::Basic,
        parameters: Vec::new(),
    };
    for (text, auth) in [
        ("{basic: {user: acme, password: env:P}}", Some(basic)),
        ("{bearer: {token: ssm:/t}}", Some(Auth::Bearer(Bearer { token: secret("ssm:/t") }))),
        (
            "{header: {name: X-Key, value: env:K}}",
            Some(Auth::Header(SecretHeader { name: "X-Key".to_owned(), value: secret("env:K") })),
        ),
        (
            "{oauth2: {tokenUrl: 'https://login.example.com/t', clientId: acme, clientSecret: env:C}}",
            Some(Auth::OAuth2(Box::new(client.clone()))),
        ),
        (
            "{oauth2: {tokenUrl: 'https://login.example.com/t', clientId: acme, clientSecret: env:C, scope: a b, \
             audience: them, resource: 'urn:them', style: post, parameters: {tenant: 7}}}",
            Some(Auth::OAuth2(Box::new(ClientCredentials {
                scope: Some("a b".to_owned()),
                audience: Some("them".to_owned()),
                resource: Some("urn:them".to_owned()),
                style: Style::Post,
                parameters: vec![("tenant".to_owned(), "7".to_owned())],
                ..client
            }))),
        ),
        (
            "{clientCertificate: {certificate: env:C, key: env:K}}",
            Some(Auth::ClientCertificate(ClientCertificate {
                certificate: secret("env:C"),
                key: secret("env:K"),
            })),
        ),
        (
            "{sigv4: {service: vpc-lattice-svcs, region: eu-west-1}}",
            Some(Auth::Sigv4(SigningScope {
                service: SigningService::VpcLattice,
                region: "eu-west-1".to_owned(),
            })),
        ),
        (
            "{awsIdentity: {audience: 'https://them/'}}",
            Some(Auth::AwsIdentity(WebIdentity {
                audience: "https://them/".to_owned(),
                lifetime_ms: 300_000,
            })),
        ),
        (
            "{awsIdentity: {audience: them, lifetime: PT1H}}",
            Some(Auth::AwsIdentity(WebIdentity {
                audience: "them".to_owned(),
                lifetime_ms: 3_600_000,
            })),
        ),
        ("null", None),
    ] {
        let destination = format!("  destination: {{url: 'https://h/', auth: {text}}}\n");
        let subscription = subscription(&format!("{HEAD}{destination}"));
        assert_eq!(subscription.destination.auth, auth, "{text}");
    }
}

#[test]
fn a_subscription_replaces_the_kind_of_its_topic() {
    let of_topic = |own: &str| {
        let delivery = "{destination: {auth: {bearer: {token: env:T}}}}";
        read_one(&format!(
            "{TOPIC}spec: {{delivery: {delivery}}}\n---\n{HEAD}  destination: {{url: 'http://h/', {own}}}\n"
        ))
    };
    for (own, kind) in
        [("timeout: PT1S", "bearer"), ("auth: {header: {name: a, value: env:K}}", "header")]
    {
        let reading = of_topic(own);
        assert_eq!(shown(&reading), Vec::<String>::new(), "{own}");
        let subscription = reading.catalogue.subscriptions().next().expect("it is valid");
        assert_eq!(subscription.destination.auth.as_ref().map(Auth::kind), Some(kind), "{own}");
    }
    // The header of the topic's kind is listed by the subscription.
    let reading = of_topic("headers: [{name: Authorization, secret: env:A}]");
    let found = shown(&reading);
    assert!(
        matches!(&found[..], [finding] if finding.starts_with("f:10:") && finding.contains("auth also sets the header \"authorization\"")),
        "{found:?}"
    );
    assert_eq!(reading.catalogue.subscriptions().count(), 0);
}
