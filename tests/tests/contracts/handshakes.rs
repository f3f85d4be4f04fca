//! Both consent handshakes over a real connection, with a scripted receiver.

use adapters::http::HttpSender;
use delivery::machine::consent::{Answer, Question, Rate, ask, judge};
use delivery::ports::SendHttp as _;
use delivery::request::AttemptContext;
use delivery::subscription::CloudEventsHandshake;
use delivery::subscription::NoFields;
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Consent, Subscription};
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};

use crate::http::{LONG_MS, sender};

const CALLBACK: &str = "https://me.example.com/confirm/1";

fn cloud_events() -> Consent {
    Consent::CloudEvents(CloudEventsHandshake {
        origin: "events.example.com".to_owned(),
        rate: Some(120),
    })
}

/// Runs a handshake with a server; returns its verdict and the request that the server received.
async fn handshake(
    consent: &Consent,
    listens: bool,
    timeout_ms: u64,
    script: impl Fn(&ScriptedRequest) -> Vec<Step> + Send + Sync + 'static,
) -> (Answer, Option<ScriptedRequest>) {
    let server = Scripted::start(script).await.expect("a port is free");
    let url = format!("{}/in?code=1", server.endpoint()).parse().expect("a URL");
    let subscription =
        Subscription::new("shop/orders/billing".parse().expect("a name"), Dialect::Native, url);
    let question = Question::new([1, 2, 3, 4], listens.then(|| CALLBACK.parse().expect("a URL")));
    let context =
        AttemptContext { keyring: &Keyring::default(), now_ms: 1_795_158_180_000, timeout_ms };
    let request = ask(&subscription, consent, &question, context).expect("a request");
    let sender: HttpSender = sender();
    let answer = judge(consent, &question, &sender.exchange(&request).await);
    (answer, server.requests().into_iter().next())
}

/// The validation code of a validation event.
fn code(received: &ScriptedRequest) -> String {
    let body: serde_json::Value = serde_json::from_slice(&received.body).expect("JSON");
    body[0]["data"]["validationCode"].as_str().expect("a code").to_owned()
}

fn echo(status: &'static str) -> impl Fn(&ScriptedRequest) -> Vec<Step> {
    move |received| {
        let body = format!(r#"{{"validationResponse":"{}"}}"#, code(received));
        vec![answer(status, &[("content-type", "application/json")], body.as_bytes())]
    }
}

fn responds_with(
    status: &'static str,
    headers: &'static [(&str, &str)],
) -> impl Fn(&ScriptedRequest) -> Vec<Step> {
    move |_| vec![answer(status, headers, b"")]
}

fn rate(text: &str) -> Answer {
    Answer::Granted(Rate::parse(text).expect("a rate"))
}

fn is_refused(answer: &Answer, part: &str) {
    let Answer::Refused(why) = answer else { panic!("{answer:?} is not {part}") };
    assert!(why.contains(part), "{why}");
}

#[tokio::test]
async fn event_grid_consents_by_the_posted_code() {
    let (answer, received) =
        handshake(&Consent::EventGrid(NoFields), true, LONG_MS, echo("200 OK")).await;
    assert_eq!(answer, rate("*"));
    let received = received.expect("a request was received");
    assert!(received.head.starts_with("POST /in?code=1 HTTP/1.1"), "{}", received.head);
    assert_eq!(received.header("aeg-event-type"), Some("SubscriptionValidation"));
    assert_eq!(received.header("content-type"), Some("application/json; charset=utf-8"));
    let body: serde_json::Value = serde_json::from_slice(&received.body).expect("JSON");
    assert_eq!(body[0]["data"]["validationUrl"], CALLBACK);
}

#[tokio::test]
async fn another_code_another_status_or_a_redirect_is_no_event_grid_consent() {
    let invalid =
        |_: &ScriptedRequest| vec![answer("200 OK", &[], br#"{"validationResponse":"00000000"}"#)];
    is_refused(
        &handshake(&Consent::EventGrid(NoFields), true, LONG_MS, invalid).await.0,
        "wrong validation code",
    );
    is_refused(
        &handshake(&Consent::EventGrid(NoFields), true, LONG_MS, echo("202 Accepted")).await.0,
        "202",
    );
    is_refused(
        &handshake(&Consent::EventGrid(NoFields), true, LONG_MS, echo("307 Temporary Redirect"))
            .await
            .0,
        "redirects",
    );
    let no_headers = || responds_with("200 OK", &[]);
    assert_eq!(
        handshake(&Consent::EventGrid(NoFields), true, LONG_MS, no_headers()).await.0,
        Answer::Pending
    );
    is_refused(
        &handshake(&Consent::EventGrid(NoFields), false, LONG_MS, no_headers()).await.0,
        "validationResponse",
    );
}

#[tokio::test]
async fn a_cloud_events_handshake_uses_options_and_reads_the_rate() {
    const ALLOWED: &[(&str, &str)] = &[
        ("Allow", "POST"),
        ("WebHook-Allowed-Origin", "events.example.com"),
        ("WebHook-Allowed-Rate", "100"),
    ];
    let (answer, received) =
        handshake(&cloud_events(), true, LONG_MS, responds_with("200 OK", ALLOWED)).await;
    assert_eq!(answer, rate("100"));
    let received = received.expect("a request was received");
    assert!(received.head.starts_with("OPTIONS /in?code=1 HTTP/1.1"), "{}", received.head);
    assert_eq!(received.header("webhook-request-origin"), Some("events.example.com"));
    assert_eq!(received.header("webhook-request-rate"), Some("120"));
    assert_eq!(received.header("webhook-request-callback"), Some(CALLBACK));
    assert_eq!((received.header("content-type"), received.body.len()), (None, 0));
}

#[tokio::test]
async fn cloud_events_consents_by_the_origin_and_not_by_the_status() {
    const EVERYBODY: &[(&str, &str)] =
        &[("webhook-allowed-origin", "*"), ("webhook-allowed-rate", "*")];
    const OTHER: &[(&str, &str)] =
        &[("webhook-allowed-origin", "other.example.com"), ("webhook-allowed-rate", "*")];
    const NO_RATE: &[(&str, &str)] = &[("webhook-allowed-origin", "events.example.com")];
    let verdict_on = async |listens, status, headers| {
        handshake(&cloud_events(), listens, LONG_MS, responds_with(status, headers)).await.0
    };
    assert_eq!(verdict_on(false, "204 No Content", EVERYBODY).await, rate("*"));
    assert_eq!(verdict_on(false, "200 OK", NO_RATE).await, rate("120"));
    is_refused(&verdict_on(true, "200 OK", OTHER).await, "other.example.com");
    is_refused(&verdict_on(false, "200 OK", &[]).await, "WebHook-Allowed-Origin");
    is_refused(&verdict_on(false, "405 Method Not Allowed", EVERYBODY).await, "405");
    is_refused(&verdict_on(true, "302 Found", EVERYBODY).await, "redirects");
    assert_eq!(verdict_on(true, "200 OK", &[]).await, Answer::Pending);
    assert_eq!(verdict_on(true, "405 Method Not Allowed", &[]).await, Answer::Pending);
}

#[tokio::test]
async fn no_response_in_time_is_no_consent() {
    for consent in [Consent::EventGrid(NoFields), cloud_events()] {
        is_refused(&handshake(&consent, true, 200, |_| vec![Step::Silence]).await.0, "200 ms");
        is_refused(
            &handshake(&consent, true, LONG_MS, |_| vec![Step::Reset]).await.0,
            "the handshake request failed",
        );
    }
}
