//! The whole application on this machine: real functions, real HTTP, queues and storage of the
//! local AWS.
//!
//! These tests see what a user sees from outside: requests that arrive, and dead letters as files.

#![recursion_limit = "256"] // the futures of the AWS clients nest deeply

mod address_policy;
mod app_fixture;
mod applied;
mod batches;
mod eventbridge;
mod publishing;
mod reactions;
mod replies;
mod services;
mod sinks;
mod slow;
mod trust;

use axum::http::StatusCode;
use dialects::{Source, read};
use serde_json::Value;

use crate::app_fixture::AppFixture;

const CLOUD_EVENT: &str = "{ \"specversion\":\"1.0\", \"id\":\"1\",\"source\":\"s\",\"type\":\"t\",\"time\":\"2026-11-20T07:03:00.1234567Z\",\"big\":12345678901234567890123,\"data\":{\"a\":1,\"a\":\"€ 😀\"} }\n";

fn subscription(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec:\n  destination: {{url: \"http://127.0.0.1:PORT{path}\"}}\n{more}\n"
    )
}

const THREE_QUICK_ATTEMPTS: &str =
    "  retry: {maxAttempts: 3, schedule: {kind: waits, waits: [PT1S, PT0.3S]}, jitterPercent: 0}";

#[tokio::test]
async fn a_busy_endpoint_is_retried_after_its_waits_never_early_and_gets_the_published_bytes() {
    let app = AppFixture::start(
        &[subscription("billing", "/in", THREE_QUICK_ATTEMPTS)],
        &[503, 503, 200],
    )
    .await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let received = app.received(3).await;
    for request in &received {
        assert_eq!(request.body, CLOUD_EVENT);
        assert_eq!(request.headers["content-type"], "application/cloudevents+json; charset=utf-8");
    }
    assert!(received[1].at_ms - received[0].at_ms >= 1_000);
    assert!(received[2].at_ms - received[1].at_ms >= 300);
    assert_eq!(app.dead_letters_when_idle().await, Vec::<(String, Value)>::new());
}

#[tokio::test]
async fn an_endpoint_that_always_fails_leads_to_one_dead_letter_with_its_whole_history() {
    let app =
        AppFixture::start(&[subscription("billing", "/in", THREE_QUICK_ATTEMPTS)], &[503]).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let (key, letter) = app.dead_letters(1).await.remove(0);
    assert_eq!(app.received(3).await.len(), 3);
    assert!(is_key_of("shop/orders/billing", &key), "{key}");
    let properties = &letter["deadletterProperties"];
    assert_eq!(properties["deadletterreasoncode"], "MaxDeliveryAttemptsExceeded");
    assert_eq!(properties["deliveryattempts"], 3);
    assert_eq!(properties["history"].as_array().map(Vec::len), Some(3));
    assert!(properties["history"].as_array().unwrap().iter().all(|entry| entry["status"] == 503));
}

#[tokio::test]
async fn a_refusal_that_is_not_retried_is_one_request_and_one_dead_letter() {
    let app = AppFixture::start(&[subscription("billing", "/in", "")], &[400]).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let letters = app.dead_letters(1).await;
    assert_eq!(
        letters[0].1["deadletterProperties"]["deadletterreasoncode"],
        "UndeliverableDueToHttpBadRequest"
    );
    assert_eq!((app.dead_letters_when_idle().await.len(), app.received(1).await.len()), (1, 1));
}

#[tokio::test]
async fn malformed_events_and_unknown_topics_are_stored_with_their_text_and_the_rest_is_delivered()
{
    let app = AppFixture::start(&[subscription("billing", "/in", "")], &[200]).await;
    let array = format!(r#"[{}, {{"x":1,"x":2}}]"#, CLOUD_EVENT.trim());
    app.publish("shop/orders", &array).await;
    app.publish("shop/orders", "no JSON at all").await;
    app.publish("shop/nowhere", CLOUD_EVENT).await;
    let letters = app.dead_letters(3).await;
    assert_eq!(app.received(1).await[0].body, CLOUD_EVENT.trim());
    let summaries: Vec<(String, &Value, &Value)> = letters
        .iter()
        .map(|(key, letter)| {
            let place = key.split('/').take(3).collect::<Vec<_>>().join("/");
            (place, &letter["deadletterProperties"]["deadletterreasoncode"], &letter["event"])
        })
        .collect();
    assert_eq!(
        (summaries[0].0.as_str(), summaries[0].1),
        ("shop/nowhere/_unknown", &Value::from("TopicNotFound"))
    );
    assert_eq!(summaries[0].2["id"], "1");
    let malformed: Vec<&Value> = summaries[1..].iter().map(|(_, _, event)| *event).collect();
    assert!(
        malformed.contains(&&Value::from("no JSON at all"))
            && malformed.contains(&&Value::from(r#"{"x":1,"x":2}"#))
    );
    assert!(summaries[1..].iter().all(
        |(place, reason, _)| place == "shop/orders/_malformed" && **reason == "MalformedEvent"
    ));
}

#[tokio::test]
async fn a_record_with_many_deliveries_is_split_and_each_arrives_once() {
    let subscriptions: Vec<String> =
        (0..7).map(|n| subscription(&format!("s{n}"), &format!("/{n}"), "")).collect();
    let app = AppFixture::start(&subscriptions, &[200]).await;
    app.publish("shop/orders", &format!("[{0},{0},{0}]", CLOUD_EVENT.trim())).await;
    let mut paths: Vec<String> =
        app.received(21).await.iter().map(|request| request.path.clone()).collect();
    paths.sort();
    let each_three_times: Vec<String> =
        (0..7).flat_map(|n| std::iter::repeat_n(format!("/{n}"), 3)).collect();
    assert_eq!(paths, each_three_times);
    assert_eq!(app.dead_letters_when_idle().await.len(), 0);
    assert_eq!(app.received(21).await.len(), 21);
}

#[tokio::test]
async fn each_event_shape_is_sent_with_its_content_type() {
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: notes}\nspec: {input: opaque}\n";
    let notes = subscription("notes", "/notes", "").replace("topic: orders", "topic: notes");
    let app =
        AppFixture::start(&[subscription("all", "/in", ""), topic.to_owned(), notes], &[200]).await;
    let grid = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13.1647262Z","data":{}}"#;
    for (topic, body, sent, content_type) in [
        ("shop/orders", grid, format!("[{grid}]"), "application/json; charset=utf-8"),
        (
            "shop/orders",
            r#"{"orderId": 7}"#,
            r#"{"orderId": 7}"#.to_owned(),
            "application/json; charset=utf-8",
        ),
        ("shop/notes", "plain <text>", "plain <text>".to_owned(), "text/plain; charset=utf-8"),
    ] {
        let before = app.received(0).await.len();
        app.publish(topic, body).await;
        let request = &app.received(before + 1).await[before];
        assert_eq!(
            (request.body.as_ref(), request.headers["content-type"].to_str().unwrap()),
            (sent.as_bytes(), content_type)
        );
    }
}

#[tokio::test]
async fn the_example_of_each_dialect_delivers_to_a_real_subscriber() {
    for file in [
        "demo.yaml",
        "native.yaml",
        "knative.yaml",
        "eventgrid.json",
        "eventgrid-namespace.json",
        "eventgrid-kubernetes.json",
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
        let text = std::fs::read_to_string(path).expect("the example can be read");
        let text = text
            .replace("127.0.0.1:9180", "127.0.0.1:PORT")
            .replace("https://audit.example.com/", "http://127.0.0.1:PORT/");
        let with_port = text.replace("PORT", "1");
        let catalogue = read(&[Source { name: file, text: &with_port }])
            .into_result()
            .expect("the example is valid");
        let app = AppFixture::start(&[text], &[200]).await;
        let cloud_event = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created","subject":"eu/orders/1"}"#;
        // A resource that asks for the Event Grid schema gets events of that schema, in an array.
        let grid = r#"{"id":"1","eventType":"order.created","subject":"eu/orders/1","eventTime":"2026-11-20T07:03:00Z"}"#;
        let (event, body) = match file {
            "eventgrid.json" => (grid, format!("[{grid}]")),
            _ => (cloud_event, cloud_event.to_owned()),
        };
        for topic in catalogue.topics() {
            app.publish(&topic.name.to_string(), event).await;
        }
        let subscriptions = catalogue.subscriptions().count();
        assert!(subscriptions > 0);
        let received = app.received(subscriptions).await;
        assert!(received.iter().all(|request| request.body == body), "{file}: {received:?}");
        assert_eq!(app.dead_letters_when_idle().await, [], "{file}");
    }
}

const ORDERS: &str = "/topics/shop/orders";

/// Requests that the ingress refuses: path, content type, body, status, and part of the error.
const REFUSED: [(&str, &str, &str, u16, &str); 10] = [
    (ORDERS, "application/cloudevents+json", "{", 400, "not JSON"),
    (
        ORDERS,
        "application/cloudevents+json",
        r#"{"specversion":"1.0","id":"","source":"s","type":"t"}"#,
        400,
        "id",
    ),
    (
        ORDERS,
        "application/cloudevents+json",
        r#"{"id":"1","source":"s","type":"t"}"#,
        400,
        "specversion",
    ),
    (ORDERS, "application/cloudevents-batch+json", "[1,2]", 400, "event 1"),
    (
        ORDERS,
        "application/json",
        r#"[{"id":"","subject":"s","eventType":"t","eventTime":"x"}]"#,
        400,
        "id",
    ),
    ("/topics/%ff/orders", "application/json", "{}", 400, "UTF-8"),
    (ORDERS, "application/cloudevents+json", "[]", 400, "application/cloudevents-batch+json"),
    (ORDERS, "text/plain", "hello", 415, "application/cloudevents+json"),
    ("/topics/shop/nowhere", "application/json", "{}", 404, "shop/orders"),
    ("/elsewhere", "application/json", "{}", 404, "POST /topics"),
];

#[tokio::test]
async fn the_ingress_accepts_events_in_every_form_and_says_what_is_wrong_with_others() {
    let app = AppFixture::start(&[subscription("billing", "/in", "")], &[200]).await;
    let (address, client) = (app.ingress().await, reqwest::Client::new());
    let post = async |path: &str, content_type: &str, headers: &[(&str, &str)], body: String| {
        let mut post =
            client.post(format!("{address}{path}")).header("content-type", content_type).body(body);
        for (name, value) in headers {
            post = post.header(*name, *value);
        }
        let answer = post.send().await.expect("it answers");
        let status = answer.status();
        let body = answer.bytes().await.expect("it answers");
        (status, serde_json::from_slice::<Value>(&body).expect("it answers in JSON"))
    };
    let event = CLOUD_EVENT.trim();
    let binary =
        [("ce-specversion", "1.0"), ("ce-id", "b"), ("ce-source", "s"), ("ce-type", "t%20t")];
    for (content_type, headers, body) in [
        ("application/cloudevents+json", &[][..], event.to_owned()),
        ("application/cloudevents-batch+json; charset=utf-8", &[][..], format!("[{event}]")),
        (
            "application/json",
            &[][..],
            r#"[{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13Z","data":{}}]"#.to_owned(),
        ),
        ("application/json", &[][..], r#"{"orderId":7}"#.to_owned()),
        ("application/json", &binary[..], r#"{"a": 1.0}"#.to_owned()),
    ] {
        assert_eq!(post(ORDERS, content_type, headers, body).await.0, StatusCode::ACCEPTED, "{content_type}");
    }
    let bodies: Vec<_> = app.received(5).await.into_iter().map(|request| request.body).collect();
    let structured = r#"{"specversion":"1.0","type":"t t","source":"s","id":"b","datacontenttype":"application/json","data":{"a": 1.0}}"#;
    assert!(bodies.iter().any(|body| body == structured), "{bodies:?}");

    for (path, content_type, body, status, says) in REFUSED {
        let (answered, error) = post(path, content_type, &[], body.to_owned()).await;
        assert_eq!(answered.as_u16(), status, "{path} {content_type} {body}");
        assert!(error["error"].as_str().is_some_and(|text| text.contains(says)), "{error}");
    }
    let large =
        post(ORDERS, "application/json", &[], format!("\"{}\"", "x".repeat(1_048_577))).await;
    let large_with_topic =
        post(ORDERS, "application/json", &[], format!("\"{}\"", "x".repeat(1_048_570))).await;
    assert_eq!(
        (large.0, large_with_topic.0),
        (StatusCode::PAYLOAD_TOO_LARGE, StatusCode::PAYLOAD_TOO_LARGE)
    );
    // Publishers to the queue ask elsewhere about a topic.
    let asked = client.get(format!("{address}/_topics/shop/orders")).send().await;
    assert_eq!(asked.expect("it answers").status(), StatusCode::OK);
    for method in [reqwest::Method::GET, reqwest::Method::HEAD, reqwest::Method::DELETE] {
        let got = client.request(method, format!("{address}{ORDERS}")).send().await;
        let got = got.expect("it answers");
        assert_eq!(got.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(got.headers()["allow"], "POST");
    }
}

#[tokio::test]
async fn stopping_reports_the_messages_left_in_the_queues() {
    let waits = "  retry: {schedule: {kind: constant, delay: PT1H}}";
    let app = AppFixture::start(&[subscription("billing", "/in", waits)], &[503]).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(1).await;
    assert_eq!(app.stack.stop().await.expect("it stops"), [("retry".to_owned(), 1)]);
}

#[tokio::test]
async fn stopping_stores_the_delayed_dead_letter_of_an_invocation_that_still_runs() {
    let once_more = "  retry: {maxAttempts: 2, schedule: {kind: waits, waits: [PT0.3S]}, jitterPercent: 0}\n  \
                     deadLetter: {delay: PT5M}";
    let app = AppFixture::start(&[subscription("billing", "/in", once_more)], &[503]).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    // The invocation waits in place for the second attempt.
    app.received(1).await;
    assert_eq!(app.stack.stop().await.expect("it stops"), []);
}

/// `<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`, numbers without leading zeros.
fn is_key_of(subscription: &str, key: &str) -> bool {
    let segments: Vec<&str> =
        key.strip_prefix(subscription).unwrap_or_default().split('/').skip(1).collect();
    let [hour @ .., name] = &segments[..] else { return false };
    let plain = |text: &&str| text.parse::<u32>().is_ok_and(|number| number.to_string() == **text);
    let guid = name.strip_suffix(".json").is_some_and(|guid| uuid::Uuid::parse_str(guid).is_ok());
    hour.len() == 4 && hour.iter().all(plain) && guid
}

#[tokio::test]
async fn a_destination_is_validated_once_before_the_first_delivery_and_every_delivery_names_the_origin()
 {
    const ORIGIN: &str = "events.example.com";
    let consents = |name: &str, consent: &str| {
        subscription(name, "", "")
            .replace("PORT\"}", &format!("PORT/{name}\", consent: {{{consent}}}}}"))
    };
    let subscriptions = [
        consents("cloud", &format!("handshake: cloudevents, origin: {ORIGIN}, rate: 6000")),
        consents("grid", "handshake: eventgrid"),
    ];
    let app = AppFixture::start(&subscriptions, &[200]).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(4).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let received = app.received(6).await;
    let requests_to =
        |path: &str| received.iter().filter(|request| request.path == path).collect::<Vec<_>>();
    let cloud = requests_to("/cloud");
    assert_eq!(
        cloud.iter().map(|request| request.method.as_str()).collect::<Vec<_>>(),
        ["OPTIONS", "POST", "POST"]
    );
    assert!(cloud.iter().all(|request| request.headers["webhook-request-origin"] == ORIGIN));
    let validations = requests_to("/grid")
        .iter()
        .map(|request| request.headers.contains_key("aeg-event-type"))
        .collect::<Vec<_>>();
    assert_eq!(validations, [true, false, false]);
    assert_eq!(app.dead_letters_when_idle().await, Vec::<(String, Value)>::new());
}
