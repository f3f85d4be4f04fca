use super::support::read_one;

fn places(text: &str) -> Vec<String> {
    let reading = read_one(text);
    assert!(reading.clone().into_result().is_ok(), "{:?}", reading.findings);
    let place = |named_secret: &delivery::native::NamedSecret| {
        format!("{} {} {}", named_secret.secret, named_secret.at, named_secret.field)
    };
    reading.secrets.iter().map(place).collect()
}

#[test]
fn a_secret_is_found_where_a_document_names_it() {
    let subscription = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                        metadata: {namespace: a, topic: b, name: c}\nspec:\n  destination:\n    url: https://h.test/\n";
    let topic = "---\napiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: a, name: b}\n\
                 spec: {delivery: {destination: {signing: {secrets: ['env:B']}}}}\n";
    let own = "    headers: [{name: x, value: y}, {name: k, secret: env:A}]\n";
    assert_eq!(
        places(&format!("{subscription}{own}{topic}")),
        [
            "env:A f:7:54 spec.destination.headers[1].secret",
            "env:B f:12:53 spec.delivery.destination.signing.secrets[0]",
        ]
    );
    let client =
        "    auth: {oauth2: {tokenUrl: 'https://t.test/', clientId: i, clientSecret: env:C}}\n";
    assert_eq!(
        places(&format!("{subscription}{client}")),
        ["env:C f:7:77 spec.destination.auth.oauth2.clientSecret"]
    );
}

#[test]
fn a_secret_of_a_destinations_entry_is_found_at_its_auth() {
    let text = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {namespace: n, name: t}\n\
                spec: {broker: b, subscriber: {uri: 'https://h.test/'}}\n---\n\
                apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {namespace: n, name: b}\n\
                spec: {delivery: {retry: 1, backoffPolicy: linear, backoffDelay: PT1S}}\n---\n\
                apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  'https://h.test/':\n    \
                auth: {oauth2: {tokenUrl: 'https://t.test/', clientId: i, clientSecret: env:C}}\n";
    assert_eq!(places(text), ["env:C f:15:77 spec.https://h.test/.auth.oauth2.clientSecret"]);
}
