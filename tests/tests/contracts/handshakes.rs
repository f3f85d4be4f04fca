//! Both consent handshakes over a real connection, with a scripted receiver.

use adapters::http::HttpSender;
use delivery::machine::consent::{Answer, Question, Rate, ask, judge};
use delivery::ports::SendHttp as _;
use delivery::request::AttemptContext;
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Consent, Subscription};
use lastmile_tests::scripted::{Asked, Scripted, Step, answer};

use crate::http::{LONG_MS, sender};

const CALLBACK: &str = "https://me.example.com/confirm/1";

fn cloud_events() -> Consent {
    Consent::CloudEvents { origin: "events.example.com".to_owned(), rate: Some(120) }
}

/// Runs a handshake with a server; returns its verdict and the request that the server received.
async fn asked(
    consent: &Consent,
    listens: bool,
    timeout_ms: u64,
    script: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static,
) -> (Answer, Option<Asked>) {
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
    (answer, server.asked().into_iter().next())
}

/// The validation code of a validation event.
fn code(asked: &Asked) -> String {
    let body: serde_json::Value = serde_json::from_slice(&asked.body).expect("JSON");
    body[0]["data"]["validationCode"].as_str().expect("a code").to_owned()
}

fn echo(status: &'static str) -> impl Fn(&Asked) -> Vec<Step> {
    move |asked| {
        let body = format!(r#"{{"validationResponse":"{}"}}"#, code(asked));
        vec![answer(status, &[("content-type", "application/json")], body.as_bytes())]
    }
}

fn says(status: &'static str, headers: &'static [(&str, &str)]) -> impl Fn(&Asked) -> Vec<Step> {
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
async fn event_grid_consents_by_the_code_that_was_posted() {
    let (answer, asked) = asked(&Consent::EventGrid, true, LONG_MS, echo("200 OK")).await;
    assert_eq!(answer, rate("*"));
    let asked = asked.expect("it was asked");
    assert!(asked.head.starts_with("POST /in?code=1 HTTP/1.1"), "{}", asked.head);
    assert_eq!(asked.header("aeg-event-type"), Some("SubscriptionValidation"));
    assert_eq!(asked.header("content-type"), Some("application/json; charset=utf-8"));
    let body: serde_json::Value = serde_json::from_slice(&asked.body).expect("JSON");
    assert_eq!(body[0]["data"]["validationUrl"], CALLBACK);
}

#[tokio::test]
async fn event_grid_does_not_take_another_code_another_status_or_a_redirect_for_a_consent() {
    let wrong = |_: &Asked| vec![answer("200 OK", &[], br#"{"validationResponse":"00000000"}"#)];
    is_refused(&asked(&Consent::EventGrid, true, LONG_MS, wrong).await.0, "another code");
    is_refused(&asked(&Consent::EventGrid, true, LONG_MS, echo("202 Accepted")).await.0, "202");
    is_refused(
        &asked(&Consent::EventGrid, true, LONG_MS, echo("307 Temporary Redirect")).await.0,
        "redirects",
    );
    let silent = || says("200 OK", &[]);
    assert_eq!(asked(&Consent::EventGrid, true, LONG_MS, silent()).await.0, Answer::Pending);
    is_refused(&asked(&Consent::EventGrid, false, LONG_MS, silent()).await.0, "validationResponse");
}

#[tokio::test]
async fn cloud_events_asks_with_options_and_learns_the_rate() {
    const ALLOWED: &[(&str, &str)] = &[
        ("Allow", "POST"),
        ("WebHook-Allowed-Origin", "events.example.com"),
        ("WebHook-Allowed-Rate", "100"),
    ];
    let (answer, asked) = asked(&cloud_events(), true, LONG_MS, says("200 OK", ALLOWED)).await;
    assert_eq!(answer, rate("100"));
    let asked = asked.expect("it was asked");
    assert!(asked.head.starts_with("OPTIONS /in?code=1 HTTP/1.1"), "{}", asked.head);
    assert_eq!(asked.header("webhook-request-origin"), Some("events.example.com"));
    assert_eq!(asked.header("webhook-request-rate"), Some("120"));
    assert_eq!(asked.header("webhook-request-callback"), Some(CALLBACK));
    assert_eq!((asked.header("content-type"), asked.body.len()), (None, 0));
}

#[tokio::test]
async fn cloud_events_consents_by_the_origin_and_by_no_status() {
    const EVERYBODY: &[(&str, &str)] =
        &[("webhook-allowed-origin", "*"), ("webhook-allowed-rate", "*")];
    const OTHER: &[(&str, &str)] =
        &[("webhook-allowed-origin", "other.example.com"), ("webhook-allowed-rate", "*")];
    const NO_RATE: &[(&str, &str)] = &[("webhook-allowed-origin", "events.example.com")];
    let told = async |listens, status, headers| {
        asked(&cloud_events(), listens, LONG_MS, says(status, headers)).await.0
    };
    assert_eq!(told(false, "204 No Content", EVERYBODY).await, rate("*"));
    assert_eq!(told(false, "200 OK", NO_RATE).await, rate("120"));
    is_refused(&told(true, "200 OK", OTHER).await, "other.example.com");
    is_refused(&told(false, "200 OK", &[]).await, "WebHook-Allowed-Origin");
    is_refused(&told(false, "405 Method Not Allowed", EVERYBODY).await, "405");
    is_refused(&told(true, "302 Found", EVERYBODY).await, "redirects");
    assert_eq!(told(true, "200 OK", &[]).await, Answer::Pending);
    assert_eq!(told(true, "405 Method Not Allowed", &[]).await, Answer::Pending);
}

#[tokio::test]
async fn who_does_not_answer_in_time_has_not_consented() {
    for consent in [Consent::EventGrid, cloud_events()] {
        is_refused(&asked(&consent, true, 200, |_| vec![Step::Silence]).await.0, "200 ms");
        is_refused(
            &asked(&consent, true, LONG_MS, |_| vec![Step::Reset]).await.0,
            "could not be asked",
        );
    }
}
