//! `lastmile explain --event`: which subscriptions get an event, and why not.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::deployments::{apply, subscription, uri};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"order.created","subject":"us/1","priority":"high","data":{"total":5}}"#;

/// A broker with triggers of every dialect of filters, and a subscription of Event Grid and one of ours.
const FILES: &str = "apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: orders, namespace: shop}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: all, namespace: shop}
spec: {broker: orders, subscriber: {uri: 'https://a.example.com/in'}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: eu, namespace: shop}
spec:
  broker: orders
  filters: [{exact: {type: order.created}}, {prefix: {subject: eu/}}]
  subscriber: {uri: 'https://b.example.com/in'}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: sql, namespace: shop}
spec:
  broker: orders
  filters: [{cesql: \"type = 'order.created' AND INT(priority) > 3\"}]
  subscriber: {uri: 'https://c.example.com/in'}
---
lastmile: {topic: shop/orders, name: grid}
properties:
  destination: {endpointType: WebHook, properties: {endpointUrl: 'https://d.example.com/in'}}
  filter: {advancedFilters: [{operatorType: NumberGreaterThan, key: data.total, value: 9}]}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: lost, name: other}
spec: {destination: {url: 'https://e.example.com/in'}, filter: {exact: {type: order.lost}}, paused: true}
";

/// What the program prints on its output, what it notes, and its code.
fn run(folder: &Path, arguments: &[&str], input: Option<&str>) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = pipes.spawn().expect("the program runs");
    let mut to = program.stdin.take().expect("a pipe");
    // A program that needs no input may have ended.
    let _ = to.write_all(input.unwrap_or_default().as_bytes());
    drop(to);
    let output = program.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("files.yaml", FILES), ("event.json", EVENT)] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

const OF_TOPIC: [&str; 7] =
    ["explain", "-f", "files.yaml", "--event", "event.json", "--topic", "shop/orders"];

#[test]
fn each_filter_says_what_it_wants_and_what_the_event_has() {
    let (printed, noted, code) = run(folder().path(), &OF_TOPIC, None);
    assert_eq!(code, Some(0), "{printed}{noted}");
    assert_eq!(
        printed,
        "event 1, id 1, type order.created
shop/orders: 1 of 4 subscriptions gets it

yes  shop/orders/all -> https://a.example.com/in
  yes  every event

no   shop/orders/eu -> https://b.example.com/in
  no   all of these
    yes  type is \"order.created\"    [type: \"order.created\"]
    no   subject begins with \"eu/\"    [subject: \"us/1\"]

no   shop/orders/grid -> https://d.example.com/in
  no   all of these
    no   data.total NumberGreaterThan 9    [data.total: 5]

no   shop/orders/sql -> https://c.example.com/in
  no   type = 'order.created' AND INT(priority) > 3    [type: \"order.created\", priority: \"high\"]
                                  ^ character 28: a value cannot be converted to the type that is needed: INT(priority)
"
    );
}

#[test]
fn tools_get_the_same_as_json() {
    let (printed, _, code) =
        run(folder().path(), &[&OF_TOPIC[..], &["--output", "json"]].concat(), None);
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        (code, &report["topic"], &report["problem"]),
        (Some(0), &json!("shop/orders"), &json!(null))
    );
    assert_eq!(
        (&report["event"], &report["id"], &report["type"]),
        (&json!(1), &json!("1"), &json!("order.created"))
    );
    let subscriptions = report["subscriptions"].as_array().expect("an array");
    let matches: Vec<&Value> = subscriptions.iter().map(|of| &of["matches"]).collect();
    assert_eq!(matches, [true, false, false, false]);
    assert_eq!(
        subscriptions[2],
        json!({
            "subscription": "shop/orders/grid", "matches": false, "expired": false, "paused": false, "not_before": null,
            "destination": "https://d.example.com/in",
            "filter": {
                "condition": "all of these", "matches": false, "found": [], "problem": null, "column": null,
                "parts": [{
                    "condition": "data.total NumberGreaterThan 9", "matches": false,
                    "found": [{"name": "data.total", "value": "5"}], "problem": null, "column": null, "parts": []
                }]
            },
            "changed_headers": []
        })
    );
    assert_eq!(subscriptions[3]["filter"]["column"], 28);
}

/// One subscription whose templates can be rendered, and one that needs what the event has not.
const TEMPLATES: &str = "apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: chat}
spec:
  destination:
    url: 'https://a.example.com/rooms/{{ event.subject }}'
    query: {room: '{{ event.data.total }} & more', token: \"{{ secret('env:CHAT_TOKEN') }}\"}
    headers: [{name: x-kind, value: '{{ event.type }}'}, {name: x-key, secret: 'env:CHAT_KEY'}]
    body: {text: 'Total: {{ event.data.total }}', total: '{{ event.data.total }}'}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: ledger}
spec: {destination: {url: 'https://b.example.com/in', body: {who: '{{ event.data.customer.name }}'}}}
";

#[test]
fn templates_are_rendered_with_the_event_and_no_secret_is_read() {
    let folder = folder();
    std::fs::write(folder.path().join("templates.yaml"), TEMPLATES).expect("a file");
    let of = ["explain", "-f", "templates.yaml", "--event", "event.json"];
    let (printed, noted, code) = run(folder.path(), &of, None);
    assert_eq!(code, Some(0), "{printed}{noted}");
    let without_trace = printed.lines().filter(|line| !line.contains("traceparent: "));
    assert_eq!(
        without_trace.collect::<Vec<_>>().join("\n"),
        format!(
            "event 1, id 1, type order.created
received:
  {EVENT}
shop/orders: 2 of 2 subscriptions get it

yes  shop/orders/chat -> https://a.example.com/rooms/{{{{ event.subject }}}}
  yes  every event
  request:
    POST https://a.example.com/rooms/us%2F1?room=5+%26+more&token=[secret]
    content-type: application/json; charset=utf-8
    x-kind: order.created

    {{\"text\":\"Total: 5\",\"total\":5}}

yes  shop/orders/ledger -> https://b.example.com/in
  yes  every event
  no request, so it becomes a dead letter: destination.body.who: `{{{{ event.data.customer.name }}}}`: \
`event.data.customer.name` does not exist; add `| default(…)` if it may be missing"
        )
    );
    let (printed, ..) = run(folder.path(), &[&of[..], &["--output", "json"]].concat(), None);
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    let requests = [&report["subscriptions"][0]["request"], &report["subscriptions"][1]["request"]];
    assert_eq!(requests[0]["body"], "{\"text\":\"Total: 5\",\"total\":5}");
    assert!(
        requests[1]["problem"].as_str().is_some_and(|why| why.contains("customer")),
        "{report}"
    );
    assert_eq!(report["received"], EVENT);
}

#[test]
fn the_answer_is_no_if_no_subscription_gets_the_event() {
    let of = |rest: &[&str], input| {
        run(folder().path(), &[&["explain", "-f", "files.yaml"], rest].concat(), Some(input))
    };
    let lost = EVENT.replace("order.created", "order.lost");
    for (input, rest, code, part) in [
        (
            EVENT,
            &["--event", "-", "--subscription", "shop/orders/eu"][..],
            1,
            "0 of 1 subscriptions get it",
        ),
        (
            EVENT,
            &["--event", "-", "--subscription", "shop/orders/all"],
            0,
            "1 of 1 subscriptions gets it",
        ),
        (
            &lost,
            &["--event", "-", "--topic", "shop/lost"],
            0,
            "/in, is paused: the delivery becomes a dead letter\n",
        ),
        (
            "{\"specversion\":\"1.0\"}",
            &["--event", "-", "--topic", "shop/lost"],
            1,
            "no event, so it becomes a dead letter: ",
        ),
    ] {
        let (printed, noted, found) = of(rest, input);
        assert_eq!(found, Some(code), "{printed}{noted}");
        assert!(printed.contains(part), "{printed}{noted}");
    }
}

#[test]
fn every_event_of_a_file_is_explained_for_every_topic() {
    let events = format!("{EVENT}\n{}\n", EVENT.replace("order.created", "order.lost"));
    let arguments = ["explain", "-f", "files.yaml", "--event", "-", "--output", "json"];
    let (printed, noted, code) = run(folder().path(), &arguments, Some(&events));
    assert_eq!(code, Some(0), "{noted}");
    let reports: Value = serde_json::from_str(&printed).expect("JSON");
    let reports: Vec<(&Value, &Value)> = reports
        .as_array()
        .expect("an array")
        .iter()
        .map(|of| (&of["topic"], &of["event"]))
        .collect();
    let of = |topic: &str, event: u8| (json!(topic), json!(event));
    let expected =
        [of("shop/lost", 1), of("shop/lost", 2), of("shop/orders", 1), of("shop/orders", 2)];
    assert_eq!(reports, expected.each_ref().map(|(topic, event)| (topic, event)));
}

#[test]
fn an_event_is_explained_for_a_deployed_topic() {
    let folder = folder();
    apply(
        folder.path(),
        "team",
        &[subscription("a", "}, filter: {exact: {type: order.created}"), subscription("b", "")],
    );
    let to = uri(folder.path());
    let arguments = ["explain", "shop/orders", "--to", &to, "--event", "event.json"];
    let (printed, noted, code) = run(folder.path(), &arguments, None);
    assert_eq!(code, Some(0), "{noted}");
    assert!(printed.contains("shop/orders: 2 of 2 subscriptions get it"), "{printed}");
    assert!(
        printed.contains("type is \"order.created\"    [type: \"order.created\"]"),
        "{printed}"
    );
}

#[test]
fn what_cannot_be_explained_is_a_usage_error() {
    for (rest, part) in [
        (
            &["--event", "event.json", "--topic", "shop/none"][..],
            "there is no topic shop/none; there are\n  shop/lost",
        ),
        (&["--event", "event.json", "--origins"], "--origins"),
        (&["--event", "none.json"], "none.json cannot be read"),
        (&["--event", "-"], "- contains no event"),
        (&["--topic", "shop/orders"], "--event <FILE>"),
        (&["--event", "event.json", "--outcome", "500"], "--outcome"),
    ] {
        let (_, noted, code) =
            run(folder().path(), &[&["explain", "-f", "files.yaml"], rest].concat(), None);
        assert_eq!(code, Some(2), "{noted}");
        assert!(noted.contains(part), "{noted}");
    }
}

#[test]
fn headers_that_are_changed_so_that_they_can_be_sent_are_shown() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: shop, topic: orders, name: a}\n\
                spec:\n  destination:\n    url: https://a.example.com/in\n    headers:\n    - {name: x-note, path: $.data.note}\n    \
                - {name: x-plain, path: $.data.plain}\n";
    std::fs::write(folder.path().join("one.yaml"), file).expect("a file");
    let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"note":"größe\n","plain":"a"}}"#;
    let arguments = ["explain", "-f", "one.yaml", "--event", "-", "--topic", "shop/orders"];
    let (printed, noted, code) = run(folder.path(), &arguments, Some(event));
    assert_eq!(code, Some(0), "{noted}");
    let line = "  header x-note is sent as \"gr%C3%B6%C3%9Fe\": white space around it is removed, characters other \
                than ASCII are percent-encoded\n";
    assert!(printed.contains(line) && !printed.contains("x-plain"), "{printed}");
    let (json, _, _) =
        run(folder.path(), &[&arguments[..], &["--output", "json"]].concat(), Some(event));
    assert!(
        json.contains(r#""changed_headers":[{"name":"x-note","value":"gr%C3%B6%C3%9Fe""#),
        "{json}"
    );
}

#[test]
fn a_message_of_another_service_is_read_as_such_only_where_the_topic_has_it_in_from() {
    let folder = folder();
    let message = r#"{"version":"0","id":"7","detail-type":"order.created","source":"com.example.shop","account":"1","time":"2026-11-20T07:03:00Z","region":"eu-west-1","resources":[],"detail":{}}"#;
    let topic = |from: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\nspec: {{{from}}}\n---\n\
             apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
             spec: {{destination: {{url: 'https://a.example.com/in'}}, filter: {{exact: {{type: order.created}}}}}}\n"
        )
    };
    for (from, code) in [("from: [{eventSource: com.example.shop}]", 0), ("input: auto", 1)] {
        std::fs::write(folder.path().join("one.yaml"), topic(from)).expect("a file");
        let arguments = ["explain", "-f", "one.yaml", "--event", "-", "--topic", "shop/orders"];
        let (printed, noted, found) = run(folder.path(), &arguments, Some(message));
        assert_eq!(found, Some(code), "{from}: {printed}{noted}");
    }
}

/// A broker whose events go on to another by a trigger, from there to a third, and back; and to a broker beside that.
fn chain() -> String {
    let reference = |name: &str| {
        format!(
            "{{ref: {{apiVersion: eventing.knative.dev/v1, kind: Broker, name: {name}, namespace: shop}}}}"
        )
    };
    let broker = |name: &str| {
        format!(
            "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {{name: {name}, namespace: shop}}\n---\n"
        )
    };
    let trigger = |of: &str, name: &str, filter: &str, to: &str| {
        format!(
            "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec: {{broker: {of}, filter: {{attributes: {{{filter}}}}}, subscriber: {to}}}\n---\n"
        )
    };
    let brokers: String = ["orders", "audit", "archive", "never"].map(broker).concat();
    let triggers = [
        trigger("orders", "all", "type: order.created", &reference("audit")),
        trigger("orders", "others", "type: order.lost", &reference("never")),
        trigger("audit", "keep", "source: /s", &reference("archive")),
        trigger("audit", "tell", "subject: eu/1", "{uri: 'https://a.example.com/in'}"),
        trigger("archive", "again", "id: '1'", &reference("orders")),
        trigger("archive", "store", "id: '1'", "{uri: 'https://b.example.com/in'}"),
    ];
    format!("{brokers}{}", triggers.concat()).trim_end_matches("---\n").to_owned()
}

#[test]
fn an_event_is_followed_to_the_topics_that_it_goes_on_to() {
    let folder = folder();
    std::fs::write(folder.path().join("files.yaml"), chain()).expect("a file");
    let (printed, noted, code) = run(folder.path(), &OF_TOPIC, None);
    assert_eq!(code, Some(0), "{noted}");
    assert_eq!(
        printed,
        "event 1, id 1, type order.created
shop/orders: 1 of 2 subscriptions gets it

yes  shop/orders/all -> topic:shop/audit
  yes  type is \"order.created\"    [type: \"order.created\"]

no   shop/orders/others -> topic:shop/never
  no   type is \"order.lost\"    [type: \"order.created\"]

it goes on to shop/audit: 1 of 2 subscriptions gets it

yes  shop/audit/keep -> topic:shop/archive
  yes  source is \"/s\"    [source: \"/s\"]

no   shop/audit/tell -> https://a.example.com/in
  no   subject is \"eu/1\"    [subject: \"us/1\"]

it goes on to shop/archive: 2 of 2 subscriptions get it

yes  shop/archive/again -> topic:shop/orders
  yes  id is \"1\"    [id: \"1\"]

yes  shop/archive/store -> https://b.example.com/in
  yes  id is \"1\"    [id: \"1\"]
"
    );
    let (printed, _, _) =
        run(folder.path(), &[&OF_TOPIC[..], &["--output", "json"]].concat(), None);
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    let onward = report["onward"].as_array().expect("an array");
    let topics: Vec<&Value> = onward.iter().map(|of| &of["topic"]).collect();
    assert_eq!(topics, ["shop/audit", "shop/archive"]);
    assert_eq!(onward[0]["problem"], json!(null));
    assert_eq!(onward[1]["subscriptions"][1]["subscription"], "shop/archive/store");
}

#[test]
fn without_an_event_a_destination_that_is_a_topic_has_no_attempts() {
    let folder = folder();
    std::fs::write(folder.path().join("files.yaml"), chain()).expect("a file");
    let arguments = ["explain", "-f", "files.yaml", "--subscription", "shop/orders/all"];
    let (printed, noted, code) = run(folder.path(), &arguments, None);
    assert_eq!(code, Some(0), "{noted}");
    assert!(printed.contains("its events go on to the subscriptions of shop/audit"), "{printed}");
    assert!(!printed.contains("attempt  "), "{printed}");
}

#[test]
fn the_subscriptions_of_a_deployment_that_get_an_event_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    apply(folder.path(), "team", &[FILES.to_owned(), subscription("plain", "")]);
    std::fs::write(folder.path().join("event.json"), EVENT).expect("a file");
    let to = uri(folder.path());
    let list = |name: &str, file: &str, input| {
        let options = ["subscriptions", "list", name, "--who-gets", file, "--to", &to];
        let (printed, notes, code) =
            run(folder.path(), &[&options[..], &["--output", "json"]].concat(), input);
        let listed: Vec<Value> = serde_json::from_str(&printed).unwrap_or_default();
        let names = listed.iter().map(|of| of["name"].as_str().unwrap_or_default().to_owned());
        (names.collect::<Vec<_>>(), notes, code)
    };
    let (names, notes, code) = list("shop/orders", "event.json", None);
    assert_eq!(names, ["shop/orders/all", "shop/orders/plain"], "{notes}");
    assert_eq!(code, Some(0), "{notes}");
    // Several events, for all topics of a namespace.
    let lost = EVENT.replace("order.created", "order.lost").replace("us/1", "eu/1");
    let both = format!("{EVENT}\n{lost}");
    let (names, notes, code) = list("shop", "-", Some(&both));
    let expected = ["shop/lost/other", "shop/orders/all", "shop/orders/plain"];
    assert_eq!((names, code), (expected.map(str::to_owned).to_vec(), Some(0)), "{notes}");
    let (names, notes, code) = list("shop/lost", "event.json", None);
    assert_eq!((names.len(), code), (0, Some(1)), "{notes}");
    assert!(notes.contains("there is no subscription of shop/lost in "), "{notes}");
    assert!(notes.contains(" that gets the event"), "{notes}");
    let (_, notes, code) = list("shop/orders", "-", Some("no event"));
    assert_eq!(code, Some(2), "{notes}");
    assert!(notes.contains("-: event 1 cannot be read for shop/orders: "), "{notes}");
}
