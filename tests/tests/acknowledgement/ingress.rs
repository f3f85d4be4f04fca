//! The ingress function: it answers success only when the queue has the message, and sends nothing
//! of a refused request.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use delivery::ports::{
    Clock, IngressPorts, PublishEvents, PublisherKeys, PublishingError, SecretError,
};
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::{Secret, SecretName};
use ingress::Ingress;
use ingress::invocation::Invocation;
use lastmile_tests::fake_ports::NOW_MS;
use lastmile_tests::manual_clock::ManualClock;
use serde_json::{Value, json};
use tracing::Level;

use crate::json_log::log_lines;

const KEY: &str = "c2hvcC1vcmRlcnMta2V5LW9uZQ==";
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"t"}"#;

/// The ports of the ingress: a queue with this answer, and the keys.
struct FakeIngress {
    answer: Result<String, PublishingError>,
    keys: Vec<Result<Secret, SecretError>>,
    sent: Mutex<Vec<(String, String)>>,
    /// The number of reads of the keys.
    reads: AtomicUsize,
    clock: ManualClock,
}

impl Default for FakeIngress {
    fn default() -> Self {
        let keys = vec![Ok(Secret::new(KEY.to_owned()))];
        let (sent, reads, clock) = (Mutex::default(), AtomicUsize::new(0), ManualClock::default());
        clock.advance(NOW_MS);
        Self { answer: Ok("m1".to_owned()), keys, sent, reads, clock }
    }
}

impl PublishEvents for FakeIngress {
    async fn publish(&self, topic: &TopicName, body: &str) -> Result<String, PublishingError> {
        let message = (topic.to_string(), body.to_owned());
        self.sent.lock().expect("no panic").push(message);
        self.answer.clone()
    }
}

impl PublisherKeys for FakeIngress {
    async fn publisher_keys(&self, names: &[SecretName]) -> Vec<Result<Secret, SecretError>> {
        assert_eq!(names, [name()]);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.keys.clone()
    }
}

impl Clock for &FakeIngress {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    async fn sleep(&self, wait_ms: u64) {
        self.clock.sleep(wait_ms).await;
    }
}

impl IngressPorts for &FakeIngress {
    type Events = FakeIngress;
    type Keys = FakeIngress;

    fn events(&self) -> &FakeIngress {
        self
    }

    fn keys(&self) -> &FakeIngress {
        self
    }
}

fn unread() -> Result<Secret, SecretError> {
    let problem = "the secrets extension responded with status 400".to_owned();
    Err(SecretError { name: name(), problem })
}

fn name() -> SecretName {
    "ssm:/publishers/one".parse().expect("a name")
}

/// A request as a function URL forwards it, with these changes.
fn request(changes: Value) -> Invocation {
    let headers = json!({"content-type": "application/cloudevents+json", "aeg-sas-key": KEY});
    let mut request = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": "/topics/shop/orders", "rawQueryString": "",
        "headers": headers, "requestContext": {"http": {"method": "POST", "path": "/"}, "stage": "$default"},
        "body": EVENT, "isBase64Encoded": false
    });
    let members = request.as_object_mut().expect("an object");
    members.extend(changes.as_object().expect("an object").clone());
    serde_json::from_value(request).expect("it is read")
}

/// Status, body and `www-authenticate` of the response. The function requires a key if `with_keys`
/// is true.
async fn answer(ports: &FakeIngress, with_keys: bool, changes: Value) -> (u64, Value, Value) {
    let keys = if with_keys { vec![name()] } else { Vec::new() };
    let default = Some("shop/orders".parse().expect("a topic"));
    let response = Ingress::new(ports, default, keys).handle(&request(changes)).await;
    let response = serde_json::to_value(response).expect("JSON");
    assert_eq!(response["headers"]["content-type"], "application/json");
    let body = response["body"].as_str().expect("a text");
    let body = serde_json::from_str(body).expect("JSON");
    let status = response["statusCode"].as_u64().expect("a status");
    (status, body, response["headers"]["www-authenticate"].clone())
}

#[tokio::test]
async fn a_request_is_one_message_whatever_its_form() {
    let batch = format!("[{EVENT},{EVENT}]");
    for (changes, topic, body, status, events) in [
        (json!({}), "shop/orders", EVENT, 200, 1),
        (json!({"rawPath": "/topics/returns:publish"}), "shop/returns", EVENT, 200, 1),
        (json!({"rawPath": "/"}), "shop/orders", EVENT, 200, 1),
        (
            json!({"rawPath": "/prod/home/lights", "requestContext": {"http": {"method": "POST"}, "stage": "prod"},
                "headers": {"authorization": format!("Bearer {KEY}"), "content-type": "application/json"}}),
            "home/lights",
            EVENT,
            202,
            1,
        ),
        (
            json!({"body": batch, "headers": {"Authorization": format!("Bearer {KEY}"),
                "Content-Type": "application/cloudevents-batch+json"}}),
            "shop/orders",
            batch.as_str(),
            202,
            2,
        ),
        // A client of Event Grid, which treats 202 as a failure.
        (
            json!({"rawQueryString": "api-version=2018-01-01", "headers": {"authorization": format!("Bearer {KEY}"),
                "content-type": "application/cloudevents+json"}}),
            "shop/orders",
            EVENT,
            200,
            1,
        ),
        (
            json!({"body": "aGk=", "isBase64Encoded": true, "headers": {"aeg-sas-key": KEY, "ce-specversion": "1.0",
                "ce-id": "1", "ce-source": "/s", "ce-type": "t", "content-type": "image/png"}}),
            "shop/orders",
            r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","datacontenttype":"image/png","data_base64":"aGk="}"#,
            200,
            1,
        ),
    ] {
        let ports = FakeIngress::default();
        let (answered, answer, _) = answer(&ports, true, changes.clone()).await;
        assert_eq!((answered, answer), (status, json!({"messageId": "m1", "events": events})));
        let sent = ports.sent.into_inner().expect("no panic");
        assert_eq!(sent, [(topic.to_owned(), body.to_owned())], "{changes}");
    }
}

#[tokio::test]
async fn a_refused_request_publishes_nothing() {
    let without_key = json!({"content-type": "application/cloudevents+json"});
    for (changes, status) in [
        (json!({"headers": without_key}), 401),
        (json!({"headers": {"aeg-sas-key": "another"}}), 401),
        (json!({"rawPath": "/a/b/c"}), 404),
        (json!({"requestContext": {"http": {"method": "GET"}}}), 405),
        (json!({"body": "{}"}), 400),
        (json!({"body": "%", "isBase64Encoded": true}), 400),
        (json!({"body": null}), 400),
        (json!({"body": format!("\"{}\"", "x".repeat(1_048_576))}), 413),
    ] {
        let ports = FakeIngress::default();
        let (answered, answer, challenge) = answer(&ports, true, changes.clone()).await;
        assert_eq!(answered, status, "{answer}");
        assert!(answer["error"].as_str().is_some_and(|text| !text.contains(KEY)), "{answer}");
        assert_eq!(challenge.is_string(), status == 401);
        assert_eq!(ports.sent.into_inner().expect("no panic"), [], "{changes}");
    }
}

/// Strangers must not cause calls of a secret store, because those take time and cost money.
#[tokio::test]
async fn keys_are_read_only_for_a_request_that_shows_one() {
    for (headers, reads) in [
        (json!({}), 0),
        (json!({"authorization": "Basic c2hvcA=="}), 0),
        (json!({"aeg-sas-key": "another"}), 1),
    ] {
        let ports = FakeIngress::default();
        assert_eq!(answer(&ports, true, json!({"headers": headers})).await.0, 401);
        assert_eq!(ports.reads.into_inner(), reads, "{headers}");
    }
}

#[tokio::test]
async fn a_handshake_needs_no_key_and_publishes_nothing() {
    let ports = FakeIngress::default();
    let ingress = Ingress::new(&ports, Some("shop/orders".parse().expect("a topic")), vec![name()])
        .allowing("eventgrid.azure.net".parse().expect("an origin"));
    let asked = async |changes: Value| {
        let response = ingress.handle(&request(changes)).await;
        serde_json::to_value(response).expect("JSON")
    };
    let options = |origin: &str| json!({"requestContext": {"http": {"method": "OPTIONS"}}, "headers": {"webhook-request-origin": origin}});
    let granted = asked(options("eventgrid.azure.net")).await;
    assert_eq!(granted["statusCode"], 200);
    assert_eq!(granted["headers"]["webhook-allowed-origin"], "eventgrid.azure.net");
    assert_eq!(asked(options("evil.example.com")).await["statusCode"], 403);
    let unknown_path = json!({"rawPath": "/a/b/c", "requestContext": {"http": {"method": "OPTIONS"}},
        "headers": {"webhook-request-origin": "eventgrid.azure.net"}});
    assert_eq!(asked(unknown_path).await["statusCode"], 404);
    let get = asked(json!({"requestContext": {"http": {"method": "GET"}}, "headers": {}})).await;
    assert_eq!(
        (&get["statusCode"], &get["headers"]["allow"]),
        (&405.into(), &"POST, OPTIONS".into())
    );
    let event = r#"[{"id":"1","topic":"/t","subject":"","eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"2026-11-20T07:03:00Z","data":{"validationCode":"c-1"},"dataVersion":"1"}]"#;
    let validation =
        json!({"headers": {"aeg-event-type": "SubscriptionValidation"}, "body": event});
    let mut elsewhere = validation.clone();
    elsewhere["rawPath"] = "/a/b/c".into();
    assert_eq!(asked(elsewhere).await["statusCode"], 404);
    let answered = asked(validation).await;
    assert_eq!(answered["statusCode"], 200);
    assert_eq!(answered["body"], r#"{"validationResponse":"c-1"}"#);
    assert_eq!(ports.sent.into_inner().expect("no panic"), []);
}

#[tokio::test]
async fn without_keys_whoever_was_let_in_may_publish() {
    let ports = FakeIngress::default();
    let changes = json!({"headers": {"content-type": "application/cloudevents+json",
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20261120/eu-west-1/lambda/aws4_request"}});
    assert_eq!(answer(&ports, false, changes).await.0, 202);
}

#[tokio::test]
async fn a_message_that_the_queue_may_not_have_is_no_success() {
    for (error, status) in [
        (PublishingError::Refused("InvalidMessageContents".to_owned()), 422),
        (PublishingError::Unavailable("RequestThrottled".to_owned()), 503),
    ] {
        let ports = FakeIngress { answer: Err(error), ..FakeIngress::default() };
        let (answered, answer, _) = answer(&ports, true, json!({})).await;
        assert_eq!(answered, status, "{answer}");
    }
}

#[tokio::test]
async fn while_a_key_cannot_be_read_those_of_the_others_are_valid() {
    let key = || Ok(Secret::new(KEY.to_owned()));
    let shown =
        |key: &str| json!({"headers": {"content-type": "application/json", "aeg-sas-key": key}});
    for (keys, changes, status) in [
        (vec![unread(), key()], shown(KEY), 200),
        // This key may be the one that cannot be read.
        (vec![unread(), key()], shown("another"), 503),
        (vec![unread(), unread()], shown(KEY), 503),
        (vec![unread(), key()], json!({"headers": {"content-type": "application/json"}}), 401),
        (vec![unread()], json!({"headers": {"content-type": "application/json"}}), 401),
    ] {
        let ports = FakeIngress { keys, ..FakeIngress::default() };
        let (answered, answer, _) = answer(&ports, true, changes.clone()).await;
        assert_eq!(answered, status, "{changes}: {answer}");
        assert!(!answer.to_string().contains("publishers"), "{answer}");
        let sent = ports.sent.into_inner().expect("no panic");
        assert_eq!(sent.len(), usize::from(status == 200), "{changes}");
    }
}

/// A busy address would otherwise log the problem with every request.
#[test]
fn a_key_that_cannot_be_read_is_logged_once_a_minute() {
    let ports = FakeIngress { keys: vec![unread(), unread()], ..FakeIngress::default() };
    let ingress = Ingress::new(&ports, None, vec![name()]);
    let after = |seconds: u64| {
        ports.clock.advance(seconds * 1_000);
        let request = request(json!({}));
        let lines = log_lines(Level::ERROR, || {
            drop(futures::executor::block_on(ingress.handle(&request)));
        });
        lines.iter().filter(|line| line["message"] == "request.keys_unreadable").count()
    };
    assert_eq!([0, 1, 58, 1, 1, 58, 1].map(after), [2, 0, 0, 2, 0, 0, 2]);
}
