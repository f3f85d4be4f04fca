use std::collections::BTreeMap;

use super::super::{Deployment, ReferenceUse, Source, parse, read_parsed};
use crate::tests::support::{read_one, shown};
use delivery::subscription::Destination;
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::oauth2::{ClientCredentials, Style};

const PEM: &str = include_str!("../../../../tests/golden/tls/untrusted-certificate.pem");
const ADDRESS: &str = "https://partner.example.com/in";
const CLIENT: &str = "clientId: lastmile, clientSecret: 'env:CLIENT'";
const AZURE: &str =
    "azureActiveDirectoryTenantId: 11-22, azureActiveDirectoryApplicationIdOrUri: 'api://them'";

/// The class of the Broker, stated so that it causes no finding.
const KAFKA: &str = "eventing.knative.dev/broker.class: Kafka";

/// A Trigger whose subscriber has these fields.
fn trigger(subscriber: &str) -> String {
    format!(
        "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {{name: b, annotations: {{{KAFKA}}}}}\nspec: {{delivery: {{}}}}\n---\n\
         apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {{name: t}}\nspec:\n  broker: b\n  subscriber: {{{subscriber}}}\n"
    )
}

/// A webhook with these additional fields, and additional properties.
fn webhook(fields: &str, around: &str) -> String {
    format!(
        "{{name: s, lastmile: {{topic: n/t}}, properties: {{destination: {{endpointType: WebHook, properties: \
         {{endpointUrl: '{ADDRESS}', {fields}}}}}{around}}}}}\n"
    )
}

/// A `Destinations` document with this entry for a key.
fn entry(key: &str, entry: &str) -> String {
    format!("---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  \"{key}\": {entry}\n")
}

fn supplied(client: &str) -> String {
    entry(ADDRESS, &format!("{{auth: {{oauth2: {{{client}}}}}}}"))
}

/// Returns the first destination of a text, and the findings.
fn destination(text: &str) -> (Destination, Vec<String>) {
    let reading = read_one(text);
    let found = shown(&reading);
    let first = reading.catalogue.subscriptions().next();
    (first.unwrap_or_else(|| panic!("{text}\n{found:#?}")).destination.clone(), found)
}

fn client(text: &str) -> ClientCredentials {
    let (destination, found) = destination(text);
    assert_eq!(found, [""; 0]);
    let Some(Auth::OAuth2(client)) = destination.auth else { panic!("{:?}", destination.auth) };
    *client
}

/// Returns the only finding of a text without a subscription.
fn refused(text: &str) -> String {
    let reading = read_one(text);
    let found = shown(&reading);
    assert_eq!((reading.catalogue.subscriptions().count(), found.len()), (0, 1), "{found:#?}");
    found.concat()
}

#[test]
fn the_audience_of_knative_is_that_of_the_token_of_its_entry() {
    let asking = trigger(&format!("uri: '{ADDRESS}', audience: them"));
    let whole = format!("tokenUrl: 'https://login.example.com/t', {CLIENT}");
    let credentials = client(&format!("{asking}{}", supplied(&whole)));
    assert_eq!(
        credentials,
        ClientCredentials {
            token_url: "https://login.example.com/t".parse().unwrap(),
            client_id: "lastmile".to_owned(),
            client_secret: "env:CLIENT".parse().unwrap(),
            scope: None,
            audience: Some("them".to_owned()),
            resource: None,
            style: Style::Basic,
            parameters: Vec::new(),
        }
    );
    // A value of the entry takes precedence.
    let named =
        client(&format!("{asking}{}", supplied(&format!("{whole}, audience: us, style: post"))));
    assert_eq!((named.audience.as_deref(), named.style), (Some("us"), Style::Post));
    let resource =
        client(&format!("{asking}{}", supplied(&format!("{whole}, resource: 'urn:us'"))));
    assert_eq!((resource.audience, resource.resource.as_deref()), (None, Some("urn:us")));
    let lacking = refused(&format!("{asking}{}", supplied(CLIENT)));
    assert!(
        lacking.contains(
            "spec.subscriber.uri: tokenUrl of oauth2 is missing, both in the Destinations document \
             at f:"
        ) && lacking.contains("and in this file"),
        "{lacking}"
    );
}

#[test]
fn the_fields_of_entra_id_are_where_a_token_is_fetched_and_for_what() {
    let credentials = client(&format!("{}{}", webhook(AZURE, ""), supplied(CLIENT)));
    assert_eq!(
        credentials.token_url.as_str(),
        "https://login.microsoftonline.com/11-22/oauth2/v2.0/token"
    );
    assert_eq!(
        (credentials.scope.as_deref(), credentials.audience, credentials.style),
        (Some("api://them/.default"), None, Style::Post)
    );
    let own = format!("{CLIENT}, tokenUrl: 'https://login.example.com/t', scope: s, style: basic");
    let credentials = client(&format!("{}{}", webhook(AZURE, ""), supplied(&own)));
    assert_eq!(
        (credentials.token_url.as_str(), credentials.scope.as_deref(), credentials.style),
        ("https://login.example.com/t", Some("s"), Style::Basic)
    );
    let tenant = "azureActiveDirectoryTenantId: 11-22";
    let lacking = refused(&format!("{}{}", webhook(tenant, ""), supplied(CLIENT)));
    assert!(lacking.contains("scope of oauth2 is missing"), "{lacking}");
    for wrong in ["11/22", "..", "11?x", "''", "'a b'"] {
        let found = refused(&webhook(&format!("azureActiveDirectoryTenantId: {wrong}"), ""));
        assert!(found.contains("azureActiveDirectoryTenantId: "), "{found}");
    }
    assert!(destination(&webhook("azureActiveDirectoryTenantId: null", "")).1.is_empty());
}

#[test]
fn what_nothing_supplies_is_a_warning_that_says_what_is_missing() {
    let whole = "tokenUrl: \"https://…\", clientId: \"…\", clientSecret: \"env:…\"";
    let of_client = "clientId: \"…\", clientSecret: \"env:…\"";
    let application = "azureActiveDirectoryApplicationIdOrUri: 'api://them'";
    let tenant = "azureActiveDirectoryTenantId: 11-22";
    for (text, names, example) in [
        (
            trigger(&format!("uri: '{ADDRESS}', audience: them")),
            "tokenUrl, clientId, clientSecret",
            whole.to_owned(),
        ),
        (webhook(AZURE, ""), "clientId, clientSecret", of_client.to_owned()),
        (webhook(application, ""), "tokenUrl, clientId, clientSecret", whole.to_owned()),
        (
            webhook(tenant, ""),
            "clientId, clientSecret, scope",
            format!("{of_client}, scope: \"…\""),
        ),
    ] {
        let (destination, found) = destination(&text);
        assert_eq!((destination.auth, found.len()), (None, 1), "{found:#?}");
        let message = format!(
            "requests contain no token, because the settings of the OAuth client are missing: \
             {names}; add to the spec of a Destinations document: {{\"{ADDRESS}\": {{url: \
             \"https://…\", auth: {{oauth2: {{{example}}}}}}}}}"
        );
        assert!(
            found[0].contains(": warning: ") && found[0].ends_with(&message),
            "{}\n{message}",
            found[0]
        );
        let reading = read_one(&text);
        let reference = reading.findings[0].reference.as_ref().expect("it can be added");
        assert_eq!((reference.key.as_str(), reference.used_for), (ADDRESS, ReferenceUse::Token));
        let needs: Vec<&str> = reference.needs.iter().map(|need| need.as_str()).collect();
        assert_eq!(needs.join(", "), names);
    }
    // The finding does not quote a URL that may contain a secret.
    let secret = trigger("uri: 'https://partner.example.com/in?code=hush', audience: them");
    let reading = read_one(&secret);
    assert_eq!(reading.findings.len(), 1);
    assert!(!format!("{:?}", reading.findings).contains("hush"), "{:?}", reading.findings);
    // Any other authentication suffices.
    let basic = entry(ADDRESS, "{auth: {basic: {user: a, password: 'env:P'}}}");
    let (shown, found) = destination(&format!("{}{basic}", webhook(AZURE, "")));
    assert!(matches!(shown.auth, Some(Auth::Basic(_))) && found.is_empty(), "{found:?}");
}

#[test]
fn authorities_of_a_file_are_trusted_unless_its_entry_has_others() {
    let pem = serde_json::to_string(PEM).unwrap();
    let other = serde_json::to_string(&PEM.repeat(2)).unwrap();
    let asking = trigger(&format!("uri: '{ADDRESS}', CACerts: {pem}"));
    let bundle = |text: &str| destination(text).0.ca_bundle().expect("a bundle").pem().to_owned();
    assert_eq!(bundle(&asking), PEM);
    let of_entry = entry(ADDRESS, &format!("{{tls: {{caBundle: {other}}}}}"));
    assert_eq!(bundle(&format!("{asking}{of_entry}")), PEM.repeat(2));
    assert_eq!(bundle(&format!("{}{of_entry}", webhook("", ""))), PEM.repeat(2));
    let origins = read_one(&asking).origins;
    assert!(origins.values().all(|fields| fields.contains_key("tls")), "{origins:?}");
    let broken = refused(&trigger(&format!("uri: '{ADDRESS}', CACerts: hush")));
    assert!(broken.contains("spec.subscriber.CACerts: not certificates in PEM form"), "{broken}");
}

#[test]
fn what_has_no_use_is_said() {
    let unused = |text: &str, expected: &[&str]| {
        let found = shown(&read_one(text));
        for part in expected {
            assert!(
                found
                    .iter()
                    .any(|finding| finding.contains(": warning: ") && finding.contains(part)),
                "{part}\n{found:#?}"
            );
        }
        assert_eq!(found.len(), expected.len(), "{found:#?}");
    };
    let pem = serde_json::to_string(PEM).unwrap();
    let sink = format!(
        "uri: '{ADDRESS}'}}\n  delivery: {{deadLetterSink: {{uri: 'https://lost.example.com/', audience: them, CACerts: {pem}}}"
    );
    unused(
        &trigger(&sink),
        &[
            "deadLetterSink.audience: no effect: dead letters are sent without tokens",
            "deadLetterSink.CACerts: no effect: dead letters",
        ],
    );
    let entry_of_sink = entry("https://lost.example.com/", "{auth: {bearer: {token: 'env:T'}}}");
    let sink = trigger(&format!(
        "uri: '{ADDRESS}'}}\n  delivery: {{deadLetterSink: {{uri: 'https://lost.example.com/'}}"
    ));
    unused(
        &format!("{sink}{entry_of_sink}"),
        &["auth of its Destinations entry is not used: dead letters"],
    );
    let reply = format!(
        "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {{name: c}}\nspec: {{}}\n---\n\
         apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s}}\nspec:\n  \
         channel: {{apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: c}}\n  \
         subscriber: {{uri: '{ADDRESS}'}}\n  reply: {{uri: 'https://lost.example.com/', audience: them}}\n"
    );
    unused(
        &format!("{reply}{entry_of_sink}"),
        &[
            "spec.reply.audience: no effect: replies are sent without tokens",
            "auth of its Destinations entry is not used: replies",
        ],
    );
    let broker = "ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: c}, audience: them}\n---\n\
                  apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: c}\nspec: {";
    unused(&trigger(broker), &["spec.subscriber.audience: no effect: the destination is a topic"]);
}

#[test]
fn a_place_for_who_is_calling_does_not_complete_an_exported_address() {
    let exported = webhook("", "").replace("endpointUrl", "endpointBaseUrl");
    let warns = |entry_of: &str| {
        let found = shown(&read_one(&format!("{exported}{}", entry(ADDRESS, entry_of))));
        found.iter().any(|finding| finding.contains("an exported URL has no query"))
    };
    let auth = "{auth: {basic: {user: a, password: 'env:P'}}}";
    let own = format!("{{url: '{ADDRESS}'}}");
    for (entry_of, expected) in [
        (own.as_str(), true),
        (auth, false),
        (ADDRESS, false),
        ("'https://partner.example.com/in?code=hush'", false),
        ("{url: 'https://partner.example.com/in?code=hush'}", false),
    ] {
        assert_eq!(warns(entry_of), expected, "{entry_of}");
    }
}

#[test]
fn an_entry_that_cannot_be_shown_is_refused_where_the_file_prevents_it() {
    let listed =
        "deliveryAttributeMappings: [{name: Authorization, type: Static, properties: {value: x}}]";
    let found =
        refused(&format!("{}{}", webhook(&format!("{AZURE}, {listed}"), ""), supplied(CLIENT)));
    assert!(
        found.contains("deliveryAttributeMappings: auth also sets the header \"authorization\""),
        "{found}"
    );
    let certificate =
        entry("http://h/", "{auth: {clientCertificate: {certificate: 'env:C', key: 'env:K'}}}");
    let found = refused(&format!("{}{certificate}", trigger("uri: 'http://h/'")));
    assert!(found.contains("spec.subscriber.uri: a client certificate requires https"), "{found}");
}

#[test]
fn a_subscription_of_ours_has_what_its_entry_supplies_unless_it_states_it() {
    let native = |more: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: s}}\n\
                 spec: {{destination: {{url: partner{more}}}}}\n{}",
            entry(
                "partner",
                &format!("{{url: '{ADDRESS}', auth: {{bearer: {{token: 'env:T'}}}}}}")
            )
        )
    };
    let bearer = destination(&native("")).0;
    assert_eq!(
        (bearer.url.as_str(), matches!(bearer.auth, Some(Auth::Bearer(_)))),
        (ADDRESS, true)
    );
    assert!(read_one(&native("")).origins.values().all(|fields| fields["auth"].starts_with("f:")));
    let own = destination(&native(", auth: {basic: {user: a, password: 'env:P'}}")).0;
    assert!(matches!(own.auth, Some(Auth::Basic(_))));
    let found = refused(&format!(
        "{}---\napiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {{secrets: [{{name: 'env:T', hosts: [h]}}]}}\n",
        native("")
    ));
    assert!(
        found.contains("the secret \"env:T\" may not be sent to \"partner.example.com\""),
        "{found}"
    );
}

#[test]
fn entries_of_a_deployment_supply_as_much_as_those_of_files() {
    let asking = trigger(&format!("uri: '{ADDRESS}', audience: them"));
    let whole = format!("tokenUrl: 'https://login.example.com/t', {CLIENT}");
    let destinations = read_one(&supplied(&whole)).destinations;
    let in_file = client(&format!("{asking}{}", supplied(&whole)));
    let read_for = |destinations: BTreeMap<String, String>| {
        let deployment = Deployment { destinations, ..Deployment::default() };
        read_parsed(&deployment, vec![parse(Source { name: "f", text: &asking })])
    };
    let reading = read_for(destinations.clone());
    assert_eq!((shown(&reading), reading.destinations.len()), (Vec::new(), 0));
    let subscription = reading.catalogue.subscriptions().next().expect("one");
    assert_eq!(subscription.destination.auth, Some(Auth::OAuth2(Box::new(in_file))));
    // The entry may be of a later version. An unknown entry must not be ignored.
    let later = destinations.into_iter().map(|(key, text)| (key, text.replace("oauth2", "oauth3")));
    let reading = read_for(later.collect());
    let found = shown(&reading);
    assert!(
        found.iter().any(|finding| finding.starts_with("Destinations of the deployment:1:")
            && finding.contains(": error: ")),
        "{found:?}"
    );
    assert!(reading.into_result().is_err());
}
