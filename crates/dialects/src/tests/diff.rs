use delivery::explain::diff::{Change, Subject, diff};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::profile::Dialect;
use delivery::subscription::{ReplyTo, Subscription};

use super::super::{Source, read};

/// A catalogue of these subscriptions, each a name and the rest of its `spec`.
fn catalogue(subscriptions: &[(&str, &str)]) -> Catalogue {
    let document = |(name, spec): &(&str, &str)| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
             spec: {{{spec}}}\n---\n"
        )
    };
    let text: String = subscriptions.iter().map(document).collect();
    read(&[Source { name: "a.yaml", text: &text }]).into_result().expect("the documents are right")
}

fn texts(old: &Catalogue, new: &Catalogue) -> Vec<String> {
    let tell = |(subject, change): (Subject, Change)| match change {
        Change::Added(fields) => {
            let shown =
                fields.into_iter().map(|(field, text)| format!("+ {subject} {field}: {text}"));
            shown.collect()
        }
        Change::Removed => vec![format!("- {subject}")],
        Change::Changed(fields) => fields
            .iter()
            .map(|change| format!("{subject} {}: {} -> {}", change.field, change.old, change.new))
            .collect(),
    };
    diff(old, new).into_iter().flat_map(tell).collect()
}

const TO_A: &str = "destination: {url: 'https://a.example.com/'}";

#[test]
fn what_is_added_changed_and_removed_is_reported_by_subscription_and_field() {
    let old = catalogue(&[("gone", TO_A), ("kept", TO_A), ("same", TO_A)]);
    let changed = "destination: {url: 'https://b.example.com/', timeout: PT5S}, retry: {maxAttempts: 3, neverRetry: [409]}, \
                   filter: {exact: {type: x}}, paused: true, deadLetter: {sink: 's3://letters/shop'}";
    let new = catalogue(&[("fresh", TO_A), ("kept", changed), ("same", TO_A)]);
    let kept = "subscription shop/orders/kept";
    assert_eq!(
        texts(&old, &new),
        [
            "+ subscription shop/orders/fresh destination.url: https://a.example.com/".to_owned(),
            "- subscription shop/orders/gone".to_owned(),
            format!("{kept} deadLetter.sink: not set -> s3://letters/shop"),
            format!("{kept} destination.timeout: PT30S -> PT5S"),
            format!("{kept} destination.url: https://a.example.com/ -> https://b.example.com/"),
            format!("{kept} filter.exact.type: not set -> x"),
            format!("{kept} paused: false -> true"),
            format!("{kept} retry.maxAttempts: 20 -> 3"),
            format!(
                "{kept} retry.neverRetry: [100-199, 300-401, 403-406, 410, 413-415, 422, 431, 451] -> \
                 [100-199, 300-401, 403-406, 409-410, 413-415, 422, 431, 451]"
            ),
        ]
    );
}

#[test]
fn a_default_that_is_written_out_is_no_change() {
    let old = catalogue(&[("a", TO_A)]);
    let new = catalogue(&[(
        "a",
        &format!("{TO_A}, retry: {{maxAttempts: 20, jitterPercent: 10}}, paused: false"),
    )]);
    assert_eq!(texts(&old, &new), Vec::<String>::new());
}

#[test]
fn where_secrets_may_be_sent_is_reported_by_the_names_that_are_listed() {
    let policy = |secrets: &str| {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {{secrets: [{secrets}]}}\n"
        );
        read(&[Source { name: "a.yaml", text: &text }])
            .into_result()
            .expect("the document is right")
    };
    let old = policy(
        "{name: env:A, hosts: [a.test]}, {name: env:B, hosts: []}, {name: env:C, hosts: [c.test]}",
    );
    let new = policy(
        "{name: env:A, hosts: [a.test, b.test]}, {name: 'ssm:*', hosts: ['*.a.test']}, {name: env:C, hosts: [c.test]}",
    );
    assert_eq!(
        texts(&old, &new),
        [
            "secret env:A hosts: a.test -> a.test, b.test",
            "- secret env:B",
            "+ secret ssm:* hosts: *.a.test"
        ]
    );
}

#[test]
fn secrets_are_not_shown_but_their_change_is_reported() {
    let spec = |secret: &str| {
        format!(
            "destination: {{url: 'https://u:{secret}@a.example.com/in?code={secret}', \
             headers: [{{name: authorization, value: {secret}}}]}}"
        )
    };
    let texts = texts(&catalogue(&[("a", &spec("hush1"))]), &catalogue(&[("a", &spec("hush2"))]));
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts
            .iter()
            .all(|line| line.ends_with("(what is not shown changed)") && !line.contains("hush")),
        "{texts:?}"
    );
}

#[test]
fn sinks_are_reported_and_what_an_address_hides_is_not() {
    let sink = |sink: &str| catalogue(&[("a", &format!("{TO_A}, deadLetter: {{sink: {sink}}}"))]);
    let address =
        |secret: &str| sink(&format!("'https://u:{secret}@lost.example.com/in?code={secret}'"));
    let queue = sink("'sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost'");
    let topic = sink("{topic: shop/orders}");
    let field = "subscription shop/orders/a deadLetter.sink";
    let shown = "https://lost.example.com/in";
    let queue_shown = "sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost";
    assert_eq!(texts(&address("hush1"), &queue), [format!("{field}: {shown} -> {queue_shown}")]);
    assert_eq!(
        texts(&queue, &topic),
        [
            format!("{field}: {queue_shown} -> not set"),
            format!("{field}.topic: not set -> shop/orders")
        ]
    );
    assert_eq!(
        texts(&address("hush1"), &address("hush2")),
        [format!("{field}: {shown} -> {shown} (what is not shown changed)")]
    );
}

#[test]
fn an_added_removed_or_differently_read_topic_is_a_change() {
    let topics = |spec: &str, name: &str| {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: {name}}}\nspec: {{{spec}}}\n"
        );
        read(&[Source { name: "a.yaml", text: &text }])
            .into_result()
            .expect("the document is right")
    };
    let (old, read_otherwise) = (topics("input: cloudevents", "a"), topics("", "a"));
    assert_eq!(texts(&old, &read_otherwise), ["topic shop/a input: cloudevents -> auto"]);
    assert_eq!(texts(&old, &topics("", "b")), ["- topic shop/a"]);
}

#[test]
fn what_is_sent_is_reported_field_by_field_and_secrets_by_name() {
    let to = |rest: &str| format!("destination: {{url: 'https://a.example.com/'{rest}}}");
    let old = catalogue(&[("a", &to(", headers: [{name: k, secret: 'env:OLD'}]"))]);
    let sent = ", schema: eventgrid, maxConcurrency: 5, signing: {secrets: ['env:S', 'ssm:t']}, \
                headers: [{name: k, secret: 'env:NEW'}, {name: o, path: data.id}]";
    let a = "subscription shop/orders/a";
    assert_eq!(
        texts(&old, &catalogue(&[("a", &to(sent))])),
        [
            format!(
                "{a} destination.headers: [{{name: k, secret: env:OLD}}] -> [{{name: k, secret: env:NEW}}, \
                 {{name: o, path: $['data']['id']}}]"
            ),
            format!("{a} destination.maxConcurrency: not set -> 5"),
            format!("{a} destination.schema: not set -> eventgrid"),
            format!("{a} destination.signing.secrets: not set -> [env:S, ssm:t]"),
        ]
    );
}

#[test]
fn a_concealed_value_is_not_shown_but_its_change_is_reported() {
    let grid = |secret: &str| {
        let header =
            format!("{{name: k, type: Static, properties: {{value: {secret}, isSecret: true}}}}");
        let text = format!(
            "name: s\nlastmile: {{topic: shop/orders}}\nproperties: {{destination: {{endpointType: WebHook, properties: \
             {{endpointUrl: 'https://a.example.com/', deliveryAttributeMappings: [{header}]}}}}}}\n"
        );
        read(&[Source { name: "a.yaml", text: &text }])
            .into_result()
            .expect("the document is right")
    };
    let name = "subscription shop/orders/s";
    assert_eq!(
        texts(&grid("hush1"), &grid("hush2")),
        [format!(
            "{name} destination.headers: [{{name: k}}] -> [{{name: k}}] (what is not shown changed)"
        )]
    );
}

#[test]
fn batches_late_responses_probation_and_consent_are_reported_field_by_field() {
    let to = |rest: &str| format!("destination: {{url: 'https://a.example.com/'{rest}}}");
    let asked = ", lateResponseWindow: PT3M, probation: false, consent: {handshake: cloudevents, origin: events.example.com}";
    let new = catalogue(&[("a", &format!("{}, batch: {{maxEvents: 100}}", to(asked)))]);
    let a = "subscription shop/orders/a";
    assert_eq!(
        texts(&catalogue(&[("a", TO_A)]), &new),
        [
            format!("{a} batch.maxEvents: not set -> 100"),
            format!("{a} destination.consent.handshake: not set -> cloudevents"),
            format!("{a} destination.consent.origin: not set -> events.example.com"),
            format!("{a} destination.lateResponseWindow: PT0S -> PT3M"),
            format!("{a} destination.probation: true -> false"),
        ]
    );
    let strict =
        catalogue(&[("a", &format!("{}, batch: {{maxEvents: 100, onRefused: all}}", to(asked)))]);
    assert_eq!(texts(&new, &strict), [format!("{a} batch.onRefused: not set -> all")]);
}

#[test]
fn the_publishers_of_a_topic_are_reported_in_their_order() {
    let of = |from: &str| {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\nspec: {{from: {from}}}\n"
        );
        read(&[Source { name: "a.yaml", text: &text }])
            .into_result()
            .expect("the document is right")
    };
    let (one, two) =
        (of("[{bucket: uploads}]"), of("[{eventSource: com.example}, {bucket: uploads}]"));
    let both = "[{eventSource: com.example}, {bucket: uploads}]";
    assert_eq!(texts(&of("[]"), &one), ["topic shop/orders from: [] -> [{bucket: uploads}]"]);
    assert_eq!(
        texts(&one, &two),
        [format!("topic shop/orders from: [{{bucket: uploads}}] -> {both}")]
    );
    let swapped = of("[{bucket: uploads}, {eventSource: com.example}]");
    assert_eq!(
        texts(&two, &swapped),
        [format!(
            "topic shop/orders from: {both} -> [{{bucket: uploads}}, {{eventSource: com.example}}]"
        )]
    );
}

#[test]
fn a_mapping_is_reported_once_at_its_topic() {
    let of = |mapping: &str| {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\n\
             spec: {{mapping: {{{mapping}}}}}\n---\napiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: orders, name: a}}\nspec: {{{TO_A}}}\n"
        );
        read(&[Source { name: "a.yaml", text: &text }])
            .into_result()
            .expect("the documents are right")
    };
    let new = of(
        "id: {field: orderId}, eventType: {field: kind, default: order}, subject: {default: none}",
    );
    assert_eq!(
        texts(&of(""), &new),
        [
            "topic shop/orders mapping.eventType.default: not set -> order",
            "topic shop/orders mapping.eventType.field: not set -> $['kind']",
            "topic shop/orders mapping.id.field: not set -> $['orderId']",
            "topic shop/orders mapping.subject.default: not set -> none",
        ]
    );
}

const WITH_SECRETS: &str = "destination: {url: 'https://u:hush@HOST/in?code=hush', headers: \
                            [{name: authorization, secret: 'env:TOKEN'}, {name: x-tenant, value: hush}], \
                            signing: {secrets: ['ssm:/signing']}}, \
                            deadLetter: {sink: 'https://lost.example.com/?k=hush'}";

#[test]
fn of_a_new_subscription_is_shown_where_it_sends_what_and_nothing_that_may_be_a_secret() {
    let new = catalogue(&[("a", &WITH_SECRETS.replace("HOST", "a.example.com:8443"))]);
    let shown = texts(&Catalogue::default(), &new);
    let of = |field: &str, text: &str| format!("+ subscription shop/orders/a {field}: {text}");
    assert_eq!(
        shown,
        [
            of("deadLetter.sink", "https://lost.example.com/"),
            of(
                "destination.headers",
                "[{name: authorization, secret: env:TOKEN}, {name: x-tenant}]"
            ),
            of("destination.signing.secrets", "[ssm:/signing]"),
            of("destination.url", "https://a.example.com:8443/in"),
            of("secrets", "env:TOKEN, ssm:/signing to a.example.com:8443"),
        ]
    );
}

#[test]
fn a_new_host_shows_which_secrets_it_receives() {
    let [old, new] = ["a.example.com", "b.example.com"]
        .map(|host| catalogue(&[("a", &WITH_SECRETS.replace("HOST", host))]));
    let shown = texts(&old, &new);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(
        shown[1],
        "subscription shop/orders/a secrets: env:TOKEN, ssm:/signing to a.example.com -> \
         env:TOKEN, ssm:/signing to b.example.com"
    );
}

#[test]
fn a_new_subscription_shows_its_reply_address_filter_and_pause() {
    let (name, url) = ("shop/orders/a".parse().unwrap(), "https://h/".parse().unwrap());
    let reply = ReplyTo::Address("https://u:hush@r.example.com/?k=hush".parse().unwrap());
    let mut new = Catalogue::default();
    new.add_subscription(Subscription {
        reply: Some(reply),
        paused: true,
        ..Subscription::new(name, Dialect::Native, url)
    });
    let shown = texts(&Catalogue::default(), &new);
    assert!(shown.iter().any(|line| line.ends_with(" reply: https://r.example.com/")), "{shown:?}");
    assert!(shown.iter().any(|line| line.ends_with(" paused: true")), "{shown:?}");
    let new = catalogue(&[("a", &format!("{TO_A}, filter: {{exact: {{type: x}}}}"))]);
    let shown = texts(&Catalogue::default(), &new);
    assert!(shown.iter().any(|line| line.ends_with(" filter.exact.type: x")), "{shown:?}");
}

#[test]
fn where_notices_go_is_a_change() {
    let of = |topic: &str| {
        let text =
            format!("apiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {{topic: {topic}}}\n");
        read(&[Source { name: "a.yaml", text: &text }]).catalogue
    };
    let none = Catalogue::default();
    assert_eq!(texts(&none, &of("n/a")), ["+ Notifications topic: n/a"]);
    assert_eq!(texts(&of("n/a"), &of("n/b")), ["Notifications topic: n/a -> n/b"]);
    assert_eq!(texts(&of("n/a"), &none), ["- Notifications"]);
}

#[test]
fn a_hidden_part_that_changes_with_a_shown_one_is_reported_too() {
    let to = |url: &str, header: &str| {
        catalogue(&[("a", &format!("destination: {{url: '{url}', headers: [{header}]}}"))])
    };
    let old = to("https://a.example.com/x?code=hush1", "{name: x, value: hush1}");
    let new =
        to("https://a.example.com/y?code=hush2", "{name: x, value: hush2}, {name: y, path: id}");
    let found = texts(&old, &new);
    assert_eq!(found.len(), 2, "{found:?}");
    for line in found {
        assert!(line.ends_with(" (what is not shown changed)") && !line.contains("hush"), "{line}");
    }
    let same =
        to("https://a.example.com/y?code=hush1", "{name: x, value: hush1}, {name: y, path: id}");
    assert!(texts(&old, &same).iter().all(|line| !line.contains("not shown")));
}

#[test]
fn parameters_of_a_token_are_reported_without_their_values() {
    let of = |parameters: &str| {
        let auth = format!(
            "auth: {{oauth2: {{tokenUrl: 'https://t.example.com/', clientId: a, clientSecret: 'env:A'{parameters}}}}}"
        );
        catalogue(&[("a", &format!("destination: {{url: 'https://a.example.com/', {auth}}}"))])
    };
    let field = "subscription shop/orders/a destination.auth.oauth2.parameters.password";
    let (none, one, other) =
        (of(""), of(", parameters: {password: hush1}"), of(", parameters: {password: hush2}"));
    assert_eq!(texts(&none, &one), [format!("{field}: not set -> [secret]")]);
    assert_eq!(
        texts(&one, &other),
        [format!("{field}: [secret] -> [secret] (what is not shown changed)")]
    );
}
