//! The differences between two catalogues, as text.

use delivery::explain::diff::{Change, Subject, diff};

use super::support::{native_subscription, native_topic, read_one};

/// The differences between the catalogues of two files.
fn differences(old: &str, new: &str) -> Vec<String> {
    let [old, new] = [old, new].map(|text| read_one(text).into_result().expect(text));
    let tell = |(subject, change): (Subject, Change)| match change {
        Change::Added(fields) => {
            fields.into_iter().map(|(field, text)| format!("+ {subject} {field}: {text}")).collect()
        }
        Change::Removed => vec![format!("- {subject}")],
        Change::Changed(fields) => fields
            .iter()
            .map(|change| format!("{subject} {}: {} -> {}", change.field, change.old, change.new))
            .collect(),
    };
    diff(&old, &new).into_iter().flat_map(tell).collect::<Vec<String>>()
}

const TO_A: &str = "destination: {url: 'https://a.example.com/'}";

/// The subscription `shop/orders/a` with this `spec`.
fn subscription(spec: &str) -> String {
    native_subscription("shop/orders/a", spec)
}

#[test]
fn what_is_added_changed_and_removed_is_reported_by_subscription_and_field() {
    let named = |name: &str, spec| native_subscription(&format!("shop/orders/{name}"), spec);
    let old = named("gone", TO_A) + &named("kept", TO_A) + &named("same", TO_A);
    let changed = "destination: {url: 'https://b.example.com/', timeout: PT5S}, retry: {maxAttempts: 3, neverRetry: [409]}, \
                   filter: {exact: {type: x}}, paused: true, deadLetter: {sink: 's3://letters/shop'}";
    let new = named("fresh", TO_A) + &named("kept", changed) + &named("same", TO_A);
    let expected = "\
+ subscription shop/orders/fresh destination.url: https://a.example.com/
- subscription shop/orders/gone
subscription shop/orders/kept deadLetter.sink: not set -> s3://letters/shop
subscription shop/orders/kept destination.timeout: PT30S -> PT5S
subscription shop/orders/kept destination.url: https://a.example.com/ -> https://b.example.com/
subscription shop/orders/kept filter.exact.type: not set -> x
subscription shop/orders/kept paused: false -> true
subscription shop/orders/kept retry.maxAttempts: 20 -> 3
subscription shop/orders/kept retry.neverRetry: [100-199, 300-401, 403-406, 410, 413-415, 422, 431, 451] -> \
[100-199, 300-401, 403-406, 409-410, 413-415, 422, 431, 451]";
    assert_eq!(differences(&old, &new).join("\n"), expected);
}

/// A title, two `spec`s of a subscription, and the differences.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

const SUBSCRIPTIONS: [Row; 11] = [
    (
        "a default that is written out",
        TO_A,
        "destination: {url: 'https://a.example.com/'}, retry: {maxAttempts: 20, jitterPercent: 10}, paused: false",
        &[],
    ),
    (
        "secrets in clear text",
        "destination: {url: 'https://u:hush1@a.example.com/in?code=hush1', headers: [{name: authorization, value: hush1}]}",
        "destination: {url: 'https://u:hush2@a.example.com/in?code=hush2', headers: [{name: authorization, value: hush2}]}",
        &[
            "destination.headers: [{name: authorization}] -> [{name: authorization}] (a hidden \
             part changed)",
            "destination.url: https://a.example.com/in -> https://a.example.com/in (a hidden part \
             changed)",
        ],
    ),
    (
        "a hidden part that changes with a shown one",
        "destination: {url: 'https://a.example.com/x?code=hush1', headers: [{name: x, value: hush1}]}",
        "destination: {url: 'https://a.example.com/y?code=hush2', headers: [{name: x, value: hush2}, {name: y, path: id}]}",
        &[
            "destination.headers: [{name: x}] -> [{name: x}, {name: y, path: $['id']}] (a hidden \
             part changed)",
            "destination.url: https://a.example.com/x -> https://a.example.com/y (a hidden part \
             changed)",
        ],
    ),
    (
        "a hidden part that stays the same",
        "destination: {url: 'https://a.example.com/x?code=hush1', headers: [{name: x, value: hush1}]}",
        "destination: {url: 'https://a.example.com/y?code=hush1', headers: [{name: x, value: hush1}, {name: y, path: id}]}",
        &[
            "destination.headers: [{name: x}] -> [{name: x}, {name: y, path: $['id']}]",
            "destination.url: https://a.example.com/x -> https://a.example.com/y",
        ],
    ),
    (
        "a concealed value",
        "destination: {url: 'https://a.example.com/', headers: [{name: k, value: hush1, hidden: true}]}",
        "destination: {url: 'https://a.example.com/', headers: [{name: k, value: hush2, hidden: true}]}",
        &["destination.headers: [{name: k}] -> [{name: k}] (a hidden part changed)"],
    ),
    (
        "a parameter of a token",
        "destination: {url: 'https://a.example.com/', auth: {oauth2: {tokenUrl: 'https://t.example.com/', clientId: a, clientSecret: 'env:A', parameters: {password: hush1}}}}",
        "destination: {url: 'https://a.example.com/', auth: {oauth2: {tokenUrl: 'https://t.example.com/', clientId: a, clientSecret: 'env:A', parameters: {password: hush2, x: hush}}}}",
        &[
            "destination.auth.oauth2.parameters.password: [secret] -> [secret] (a hidden part \
             changed)",
            "destination.auth.oauth2.parameters.x: not set -> [secret]",
        ],
    ),
    (
        "names of secrets, and what is sent",
        "destination: {url: 'https://a.example.com/', headers: [{name: k, secret: 'env:OLD'}]}",
        "destination: {url: 'https://a.example.com/', schema: eventgrid, maxConcurrency: 5, signing: {secrets: ['env:S', 'ssm:t']}, \
         headers: [{name: k, secret: 'env:NEW'}, {name: o, path: data.id}]}",
        &[
            "destination.headers: [{name: k, secret: env:OLD}] -> [{name: k, secret: env:NEW}, {name: o, path: $['data']['id']}]",
            "destination.maxConcurrency: not set -> 5",
            "destination.schema: not set -> eventgrid",
            "destination.signing.secrets: not set -> [env:S, ssm:t]",
        ],
    ),
    (
        "batches, late responses, probation and consent",
        TO_A,
        "destination: {url: 'https://a.example.com/', lateResponseWindow: PT3M, probation: false, \
         consent: {handshake: cloudevents, origin: events.example.com}}, batch: {maxEvents: 100, onRefused: all}",
        &[
            "batch.maxEvents: not set -> 100",
            "batch.onRefused: not set -> all",
            "destination.consent.handshake: not set -> cloudevents",
            "destination.consent.origin: not set -> events.example.com",
            "destination.lateResponseWindow: PT0S -> PT3M",
            "destination.probation: true -> false",
        ],
    ),
    (
        "an address that becomes a queue",
        "destination: {url: 'https://a.example.com/'}, deadLetter: {sink: 'https://u:hush1@lost.example.com/in?code=hush1'}",
        "destination: {url: 'https://a.example.com/'}, deadLetter: {sink: 'sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost'}",
        &[
            "deadLetter.sink: https://lost.example.com/in -> sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost",
        ],
    ),
    (
        "a queue that becomes a topic",
        "destination: {url: 'https://a.example.com/'}, deadLetter: {sink: 'sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost'}",
        "destination: {url: 'https://a.example.com/'}, deadLetter: {sink: {topic: shop/orders}}",
        &[
            "deadLetter.sink: sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost -> not set",
            "deadLetter.sink.topic: not set -> shop/orders",
        ],
    ),
    (
        "what the address of a sink hides",
        "destination: {url: 'https://a.example.com/'}, deadLetter: {sink: 'https://u:hush1@lost.example.com/in?code=hush1'}",
        "destination: {url: 'https://a.example.com/'}, deadLetter: {sink: 'https://u:hush2@lost.example.com/in?code=hush2'}",
        &["deadLetter.sink: https://lost.example.com/in -> https://lost.example.com/in (a hidden \
           part changed)"],
    ),
];

#[test]
fn settings_are_reported_field_by_field_and_values_that_may_be_secrets_are_not() {
    for (title, old, new, expected) in SUBSCRIPTIONS {
        let found = differences(&subscription(old), &subscription(new));
        let expected: Vec<String> =
            expected.iter().map(|line| format!("subscription shop/orders/a {line}")).collect();
        assert_eq!(found, expected, "{title}");
    }
}

#[test]
fn topics_notifications_and_policies_are_reported_too() {
    let topic = |spec: &str| native_topic("shop/a", spec);
    let mapping = "mapping: {id: {field: orderId}, eventType: {field: kind, default: order}, subject: {default: none}}";
    let notices = |topic: &str| {
        format!("apiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {{topic: {topic}}}\n")
    };
    let policy = |secrets: &str| {
        format!("apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {{secrets: [{secrets}]}}\n")
    };
    for (old, new, expected) in [
        (topic("input: cloudevents"), topic(""), &["topic shop/a input: cloudevents -> auto"][..]),
        (topic(""), native_topic("shop/b", ""), &["- topic shop/a"]),
        (
            topic(""),
            topic("from: [{bucket: uploads}]"),
            &["topic shop/a from: [] -> [{bucket: uploads}]"],
        ),
        (
            topic("from: [{eventSource: e}, {bucket: uploads}]"),
            topic("from: [{bucket: uploads}, {eventSource: e}]"),
            &[
                "topic shop/a from: [{eventSource: e}, {bucket: uploads}] -> [{bucket: uploads}, {eventSource: e}]",
            ],
        ),
        (
            // Once, at the topic, and not at each subscription.
            topic("") + &native_subscription("shop/a/s", TO_A),
            topic(mapping) + &native_subscription("shop/a/s", TO_A),
            &[
                "topic shop/a mapping.eventType.default: not set -> order",
                "topic shop/a mapping.eventType.field: not set -> $['kind']",
                "topic shop/a mapping.id.field: not set -> $['orderId']",
                "topic shop/a mapping.subject.default: not set -> none",
            ],
        ),
        (
            policy(
                "{name: env:A, hosts: [a.test]}, {name: env:B, hosts: []}, {name: env:C, hosts: [c.test]}",
            ),
            policy(
                "{name: env:A, hosts: [a.test, b.test]}, {name: 'ssm:*', hosts: ['*.a.test']}, {name: env:C, hosts: [c.test]}",
            ),
            &[
                "secret env:A hosts: a.test -> a.test, b.test",
                "- secret env:B",
                "+ secret ssm:* hosts: *.a.test",
            ],
        ),
        (topic(""), topic("") + &notices("shop/a"), &["+ Notifications topic: shop/a"]),
        (
            topic("") + &notices("shop/a"),
            topic("") + &notices("shop/b"),
            &["Notifications topic: shop/a -> shop/b"],
        ),
        (topic("") + &notices("shop/a"), topic(""), &["- Notifications"]),
    ] {
        assert_eq!(differences(&old, &new), expected, "{new}");
    }
}

const WITH_SECRETS: &str = "destination: {url: 'https://u:hush@HOST/in?code=hush', headers: \
                            [{name: authorization, secret: 'env:TOKEN'}, {name: x-tenant, value: hush}], \
                            signing: {secrets: ['ssm:/signing']}}, reply: 'https://u:hush@r.example.com/?k=hush', \
                            filter: {exact: {type: x}}, paused: true, \
                            deadLetter: {sink: 'https://lost.example.com/?k=hush'}";

#[test]
fn a_new_subscription_shows_its_settings_and_which_secrets_a_host_receives() {
    let [first, second] = ["a.example.com:8443", "b.example.com"]
        .map(|host| subscription(&WITH_SECRETS.replace("HOST", host)));
    let expected = "\
+ subscription shop/orders/a deadLetter.sink: https://lost.example.com/
+ subscription shop/orders/a destination.headers: [{name: authorization, secret: env:TOKEN}, {name: x-tenant}]
+ subscription shop/orders/a destination.signing.secrets: [ssm:/signing]
+ subscription shop/orders/a destination.url: https://a.example.com:8443/in
+ subscription shop/orders/a filter.exact.type: x
+ subscription shop/orders/a paused: true
+ subscription shop/orders/a reply: https://r.example.com/
+ subscription shop/orders/a secrets: env:TOKEN, ssm:/signing to a.example.com:8443";
    assert_eq!(differences("", &first).join("\n"), expected);
    let of_host = "subscription shop/orders/a secrets: env:TOKEN, ssm:/signing to a.example.com:8443 -> \
                   env:TOKEN, ssm:/signing to b.example.com";
    assert_eq!(differences(&first, &second)[1..], [of_host]);
}
