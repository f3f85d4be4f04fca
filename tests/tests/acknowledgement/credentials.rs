//! A destination may repeat its request. No credential is then in a message, a dead letter or a
//! line of the log.

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget};
use delivery::ports::{Message, QueueName, Record};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format, Response};
use delivery::subscription::header::{Header, Value as HeaderValue};
use delivery::subscription::profile::StatusSet;
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};
use lastmile_tests::fake_ports::reactions::{Reaction, answers, replies, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use lastmile_tests::spellings::{Spelling, spellings};
use serde_json::Value;

use super::json_log::log_lines;
use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_from, catalogue_of, deadletter, delivery, dispatch, letter,
    record, retry_record, subscription, subscriptions_with_destination,
};

/// The credentials that the subscription of these tests sends. The secret is that of the fake
/// ports.
const VALUES: [&str; 8] = [
    "Bearer static-t0ken",
    "static-t0ken",
    "k3y/of+all",
    "hush",
    "us3r-name",
    "p4ss-word",
    "c0de-of-function",
    "T0/B1/path-t0ken",
];

/// The topic shop/orders with the subscription s0, which sends credentials in every place.
fn subscriptions(dead_letter: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {{namespace: shop, topic: orders, name: s0}}
spec:
  destination:
    url: 'https://us3r-name:p4ss-word@s0.example.com/T0/B1/path-t0ken?code=c0de-of-function&v=7'
    hidePath: true
    headers:
      - {{name: authorization, value: Bearer static-t0ken}}
      - {{name: x-api-key, value: k3y/of+all}}
      - {{name: x-secret-value, secret: 'env:SECRET'}}
  retry: {{jitterPercent: 0}}
  deadLetter: {{{dead_letter}}}
"
    );
    catalogue_from(&text)
}

/// Everything that dispatch and deadletter send, store and log about an event with this response.
fn traces_of(dead_letter: &str, reaction: Reaction) -> String {
    traces_with(subscriptions(dead_letter), reaction)
}

/// Like `traces_of`, for these subscriptions.
fn traces_with(subscriptions: Catalogue, reaction: Reaction) -> String {
    let ports = FakePorts::new(subscriptions).with_reactions("s0.example.com", &[reaction]);
    traces(&ports, record("m1", EVENT))
}

/// Everything that dispatch and deadletter send, store and log about this record.
fn traces(ports: &FakePorts, record: Record) -> String {
    let lines = log_lines(tracing::Level::TRACE, || {
        assert_eq!(dispatch(ports, &[record], ENDS_MS), [""; 0]);
        for (queue, message) in ports.sent() {
            if queue == QueueName::DeadLetter {
                assert_eq!(deadletter(ports, &[dead_letter_of(&message)]), [""; 0]);
            }
        }
    });
    let sent = ports.sent().into_iter().map(|(_, message)| format!("{:?}", message.attribute));
    let stored = ports.blobs().into_iter().map(|(_, blob)| format!("{blob}\n{}", texts(&blob)));
    let logged = lines.iter().map(Value::to_string);
    sent.chain(stored).chain(logged).collect::<Vec<_>>().join("\n")
}

fn dead_letter_of(message: &Message) -> Record {
    let attribute = Some(message.attribute.clone());
    Record { queue: QueueName::DeadLetter, attribute, ..record("m1", &message.body) }
}

/// All texts in a JSON document, also in JSON inside a text, as their reader sees them.
fn texts(json: &str) -> String {
    fn collect(value: &Value, texts: &mut String) {
        match value {
            Value::String(text) => {
                texts.push_str(text);
                texts.push('\n');
                if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
                {
                    collect(&inner, texts);
                }
            }
            Value::Array(all) => all.iter().for_each(|element| collect(element, texts)),
            Value::Object(all) => all.values().for_each(|member| collect(member, texts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = String::new();
    collect(&serde_json::from_str(json).expect("a blob is JSON"), &mut found);
    found
}

fn assert_hidden(traces: &str, Spelling { echo, core }: &Spelling) {
    assert!(!traces.contains(core), "{echo} left {core} in {traces}");
}

#[test]
fn no_spelling_of_a_credential_is_in_a_dead_letter_or_its_log() {
    let all = VALUES.map(spellings);
    for number in 0..all[0].len() {
        let spelled = all.each_ref().map(|list| list[number].clone());
        let echoes = spelled.each_ref().map(|spelling| spelling.echo.as_str()).join("\", \"");
        let body = format!(r#"{{"error":["{echoes}","that was all"]}}"#);
        let traces = traces_of("format: namespace", answers(400).with_body(&body));
        assert!(traces.contains("that was all"), "the rest of the answer is kept: {traces}");
        spelled.iter().for_each(|spelling| assert_hidden(&traces, spelling));
    }
}

#[test]
fn no_credential_is_in_a_dead_letter_of_any_format() {
    for format in ["namespace", "cloudevents", "knative", "knative, errorData: base64"] {
        for value in VALUES {
            let body = format!("you sent {value}");
            let traces = traces_of(&format!("format: {format}"), answers(400).with_body(&body));
            assert_hidden(&traces, &Spelling { echo: body, core: value.to_owned() });
            assert!(traces.contains("https://s0.example.com/[secret]"), "{traces}");
        }
    }
}

#[test]
fn credentials_of_basic_bearer_and_header_authentication_are_hidden() {
    // The secret of the fake ports is `hush`.
    for (auth, values) in [
        ("{basic: {user: us3r-name, password: 'env:P'}}", &["dXMzci1uYW1lOmh1c2g=", "hush"][..]),
        ("{bearer: {token: 'env:T'}}", &["Bearer hush", "hush"]),
        ("{header: {name: x-partner, value: 'env:V'}}", &["hush"]),
    ] {
        for value in values {
            let catalogue = subscriptions_with_destination(&format!("auth: {auth}"));
            let body = format!(r#"{{"error":["{value}","that was all"]}}"#);
            let traces = traces_with(catalogue, answers(400).with_body(&body));
            assert!(traces.contains("that was all"), "the rest of the answer is kept: {traces}");
            assert!(!traces.contains(value), "{value} in {traces}");
        }
    }
}

/// The reply address refuses the reply, and the sink refuses the dead letter. Both responses quote
/// the path of the address.
#[test]
fn a_hidden_path_of_a_reply_address_or_a_sink_is_in_no_dead_letter_and_no_log() {
    let address = |host: &str| format!("https://{host}.example.com/T0/path-t0ken").parse();
    let mut subscription = subscription("shop/orders/s0");
    subscription.reply = Some(ReplyTo::Address(address("r").expect("a URL")));
    subscription.destination.hide_path = true;
    subscription.dead_letter.format = DeadLetterFormat::Fixed(Format::Knative);
    let reply = Delivery { target: DeliveryTarget::Reply, ..delivery("shop/orders/s0") };
    let mut with_sink = subscription.clone();
    with_sink.dead_letter.sink = Sink::Address(address("sink").expect("a URL"));
    with_sink.dead_letter.hide_path = true;
    let failed = delivery("shop/orders/s0");
    let letter = DeadLetter::new(failed.clone(), &with_sink, Reason::of_status(400), NOW_MS);
    let to_sink = Delivery { target: DeliveryTarget::Sink(Box::new(letter)), ..failed };
    for (host, subscription, delivery) in [("r", subscription, reply), ("sink", with_sink, to_sink)]
    {
        let ports = FakePorts::new(catalogue_of([subscription]))
            .with_reactions(host, &[answers(400).with_body("no path-t0ken, please")]);
        let traces = traces(&ports, retry_record(&delivery));
        assert!(ports.requests() == 1 && !traces.contains("t0ken"), "{traces}");
        assert!(traces.contains(&format!("https://{host}.example.com/[secret]")), "{traces}");
    }
}

#[test]
fn a_retried_delivery_carries_no_credential_either() {
    let ports = FakePorts::new(subscriptions("format: namespace"))
        .with_reactions("s0", &[answers(503).with_body("no static-t0ken, please")]);
    dispatch(&ports, &[record("m1", EVENT)], ENDS_MS);
    let (queue, message) = ports.sent().remove(0);
    let last_response = carried(&message).last_response.expect("there was an answer");
    assert_eq!(
        (queue, String::from_utf8_lossy(&last_response).as_ref()),
        (QueueName::Retry, "no [secret], please")
    );
}

#[test]
fn without_a_response_nothing_of_the_body_is_stored() {
    for format in ["namespace", "eventgrid", "cloudevents", "custom", "knative"] {
        let settings = format!("format: {format}, response: none");
        // 503 leads to a retry, and 400 to a dead letter.
        for status in [503, 400] {
            let traces = traces_of(&settings, answers(status).with_body("what nobody may read"));
            for absent in ["nobody", "lastresponse", "knativeerrordata"] {
                assert!(!traces.contains(absent), "{absent} in {traces}");
            }
            assert!(traces.contains(&status.to_string()), "{traces}");
        }
    }
}

#[test]
fn without_a_response_nothing_is_stored_of_a_reply_that_is_no_event_or_of_what_a_sink_answers() {
    let mut subscription = with_replies();
    subscription.dead_letter.response = Response::None;
    let no_version = r#"{"specversion":"nobody","id":"r","source":"/s0","type":"t"}"#;
    for body in [r#"{"specversion":"1.0","id":"nobody""#, no_version] {
        let traces = traces_with(catalogue_of([subscription.clone()]), replies(body));
        assert!(!traces.contains("nobody") && traces.contains("MalformedEvent"), "{traces}");
        assert!(
            traces.contains(
                "the subscriber's reply is not a valid event: the reply cannot be read; its \
                 content is not stored"
            ),
            "{traces}"
        );
    }
    subscription.dead_letter.sink = Sink::Address("https://sink.example.com/".parse().unwrap());
    let failed = delivery("shop/orders/s0");
    let letter = DeadLetter::new(failed.clone(), &subscription, Reason::of_status(400), NOW_MS);
    let to_sink = Delivery { target: DeliveryTarget::Sink(Box::new(letter)), ..failed };
    for status in [503, 400] {
        let ports = FakePorts::new(catalogue_of([subscription.clone()]))
            .with_reactions("sink", &[answers(status).with_body("what nobody may read")]);
        let traces = traces(&ports, retry_record(&to_sink));
        assert!(ports.requests() == 1 && !traces.contains("nobody"), "{traces}");
    }
}

/// A subscription that accepts replies, with a query and with a credential in a header.
fn with_replies() -> Subscription {
    let mut subscription = subscription("shop/orders/s0");
    subscription.reply = Some(ReplyTo::Address("https://r.example.com/".parse().expect("a URL")));
    let destination = &mut subscription.destination;
    let url = "https://us3r:p4ss-word@s0.example.com/?tenant=acme-corporation&v=7&code=c0de-of-function&f=json";
    destination.url = url.parse().expect("a URL");
    let value = HeaderValue::Static("Bearer static-t0ken".to_owned());
    destination.headers = vec![Header { name: "authorization".to_owned(), value }];
    destination.response_timeout_ms = 1_000;
    destination.late_window_ms = 10_000;
    subscription
}

#[test]
fn a_reply_hides_credentials_but_no_values_that_any_event_may_have() {
    let event = |data: &str| {
        let members = r#""specversion":"1.0","id":"r","source":"/s0","type":"t""#;
        format!(r#"{{{members},"data":{{"n":7,"tenant":"acme-corporation","echo":"{data}"}}}}"#)
    };
    let late = times_out_after(1_000).and_late(2_000, replies(&event("static-t0ken")));
    let echoes =
        ["static-t0ken", "p4ss-word", "c0de-of-function"].map(|echo| replies(&event(echo)));
    for reaction in echoes.into_iter().chain([late]) {
        let ports = FakePorts::new(catalogue_of([with_replies()]))
            .with_reactions("s0.example.com", &[reaction]);
        dispatch(&ports, &[record("m1", EVENT)], ENDS_MS);
        let (queue, message) = ports.sent().remove(0);
        assert_eq!((queue, message.body.as_ref()), (QueueName::Retry, event("[secret]").as_str()));
    }
}

#[test]
fn a_reply_that_is_no_event_hides_every_credential() {
    let ports = FakePorts::new(catalogue_of([with_replies()]))
        .with_reactions("s0.example.com", &[replies("acme-corporation 7 static-t0ken")]);
    // Nothing is hidden in the content type, although the address contains "json".
    dispatch(&ports, &[record("m1", EVENT)], ENDS_MS);
    let (_, message) = ports.sent().remove(0);
    assert_eq!(letter(&message).delivery.event.text().as_ref(), "[secret] [secret] [secret]");
}

/// This response is a failure for its subscription, and not a reply. The event in it need not
/// survive.
#[test]
fn a_failure_that_looks_like_a_reply_hides_every_credential() {
    let event = r#"{"specversion":"1.0","id":"r","source":"/s0","type":"t","data":"acme-corporation, v 7"}"#;
    for never_retry in [StatusSet::new([200..=200]), StatusSet::default()] {
        let mut subscription = with_replies();
        subscription.retry.success = StatusSet::new([204..=204]);
        subscription.retry.never_retry = never_retry;
        subscription.retry.max_attempts = 1;
        let ports = FakePorts::new(catalogue_of([subscription]))
            .with_reactions("s0.example.com", &[replies(event)]);
        dispatch(&ports, &[record("m1", EVENT)], ENDS_MS);
        let (_, message) = ports.sent().remove(0);
        let kept = letter(&message).delivery.last_response.expect("an answer");
        let kept = String::from_utf8(kept).expect("text");
        assert!(kept.contains(r#""data":"[secret], v [secret]""#), "{kept}");
    }
}

/// A subscription with these fields of its destination, whose templates render a credential of the
/// event.
fn rendering(destination: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: orders, name: s0}}\n\
         spec:\n  retry: {{jitterPercent: 0}}\n  destination: {{{destination}}}\n"
    );
    catalogue_from(&text)
}

/// Everything that is sent, stored and logged about this event.
fn traces_of_event(subscriptions: Catalogue, event: &str, reaction: Reaction) -> String {
    let ports = FakePorts::new(subscriptions).with_reactions("s0.example.com", &[reaction]);
    traces(&ports, record("m1", event))
}

#[test]
fn a_credential_of_an_event_that_a_template_sends_is_hidden_in_answers() {
    let event =
        r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"of":"t0ken-of-event"}}"#;
    let url = "url: 'https://s0.example.com/in'";
    let template = "{{ event.data.of }}";
    for (destination, is_hidden) in [
        (format!("{url}, headers: [{{name: authorization, value: 'Bearer {template}'}}]"), true),
        (format!("{url}, query: {{api_key: '{template}'}}"), true),
        (format!("url: 'https://s0.example.com/{template}/in', hidePath: true"), true),
        (format!("{url}, headers: [{{name: x-order, value: '{template}'}}]"), false),
        (format!("{url}, query: {{order: '{template}'}}"), false),
        (format!("url: 'https://s0.example.com/{template}/in'"), false),
    ] {
        let answer = answers(400).with_body("you sent t0ken-of-event, no");
        let kept = traces_of_event(rendering(&destination), event, answer);
        let expected =
            if is_hidden { "you sent [secret], no" } else { "you sent t0ken-of-event, no" };
        assert!(kept.contains(expected), "{destination}: {kept}");
    }
}

#[test]
fn the_error_of_a_template_is_not_masked_by_credentials_that_are_words() {
    let fields = "url: 'https://s0.example.com/value/body?code=data', hidePath: true, body: {a: '{{ event.data.of }}'}";
    let kept = traces_of_event(rendering(fields), EVENT, answers(200));
    assert!(kept.contains("destination.body.a: `{{ event.data.of }}`: "), "{kept}");
    let fields = "url: 'https://s0.example.com/', headers: [{name: authorization, value: \"{{ 'static-t0ken' ~ event.data.of }}\"}]";
    let kept = traces_of_event(rendering(fields), EVENT, answers(200));
    assert!(kept.contains("destination.headers.authorization: "), "{kept}");
    assert!(!kept.contains("static-t0ken"), "{kept}");
}
