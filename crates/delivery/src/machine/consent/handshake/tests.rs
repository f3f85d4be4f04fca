//! The validation requests, compared byte by byte, and every kind of response.

use super::*;
use crate::delivery::outcome::{Content, TransportResult};
use crate::subscription::CloudEventsHandshake;
use crate::subscription::NoFields;
use crate::subscription::Signing;
use crate::subscription::auth::Auth;
use crate::subscription::auth::Bearer;
use crate::subscription::header::{Header, Value as HeaderValue};
use crate::subscription::profile::Dialect;
use crate::subscription::secret::{Keyring, Secret};

const CODE: &str = "00000001-0002-4003-8004-000500060007";

fn question(confirm: Option<&str>) -> Question {
    let question = Question::new(
        [1, 0x0002_0003, 0x0004_0005, 0x0006_0007],
        confirm.map(|url| url.parse().unwrap()),
    );
    assert_eq!(question.code.get_version_num(), 4);
    Question { code: CODE.parse().unwrap(), ..question }
}

fn subscription() -> Subscription {
    let url = "https://billing.example.com/in?code=1".parse().unwrap();
    Subscription::new("shop/orders/billing".parse().unwrap(), Dialect::Native, url)
}

fn cloud_events(rate: Option<u32>) -> Consent {
    Consent::CloudEvents(CloudEventsHandshake { origin: "events.example.com".to_owned(), rate })
}

fn asked(subscription: &Subscription, consent: &Consent, confirm: Option<&str>) -> Request {
    let keyring: Keyring =
        [("env:TOKEN".parse().unwrap(), Secret::new("hush".to_owned()))].into_iter().collect();
    let context = AttemptContext { keyring: &keyring, now_ms: 1_795_158_180_123, timeout_ms: 5 };
    ask(subscription, consent, &question(confirm), context).unwrap()
}

fn pairs(request: &Request) -> Vec<(&str, &str)> {
    request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn event_grid_posts_an_array_of_one_validation_event() {
    let request = asked(
        &subscription(),
        &Consent::EventGrid(NoFields),
        Some("https://me.example.com/confirm/1"),
    );
    assert_eq!(
        (request.method, request.url.as_str()),
        (Method::Post, "https://billing.example.com/in?code=1")
    );
    let headers = [
        ("content-type", "application/json; charset=utf-8"),
        ("aeg-event-type", "SubscriptionValidation"),
        ("aeg-subscription-name", "BILLING"),
        ("aeg-delivery-count", "0"),
    ];
    assert_eq!(pairs(&request), headers);
    let body = format!(
        r#"[{{"id":"{CODE}","topic":"shop/orders","subject":"","data":{{"validationCode":"{CODE}","validationUrl":"https://me.example.com/confirm/1"}},"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"2026-11-20T07:03:00.1230000Z","metadataVersion":"1","dataVersion":"1"}}]"#
    );
    assert_eq!(String::from_utf8_lossy(&request.body), body);
    let alone = asked(&subscription(), &Consent::EventGrid(NoFields), None);
    assert!(!String::from_utf8_lossy(&alone.body).contains("validationUrl"));
}

#[test]
fn cloud_events_asks_with_options_and_nothing_in_the_body() {
    let request =
        asked(&subscription(), &cloud_events(Some(120)), Some("https://me.example.com/confirm/1"));
    assert_eq!(
        (request.method, request.url.as_str()),
        (Method::Options, "https://billing.example.com/in?code=1")
    );
    let headers = [
        ("WebHook-Request-Origin", "events.example.com"),
        ("WebHook-Request-Rate", "120"),
        ("WebHook-Request-Callback", "https://me.example.com/confirm/1"),
    ];
    assert_eq!((pairs(&request), request.body.len()), (headers.to_vec(), 0));
    let least = asked(&subscription(), &cloud_events(None), None);
    assert_eq!(pairs(&least), headers[..1]);
}

#[test]
fn a_question_carries_the_headers_that_need_no_event_and_the_signature() {
    let mut subscription = subscription();
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    subscription.destination.headers = vec![
        header("x-tenant", HeaderValue::Static("acme".to_owned())),
        header("authorization", HeaderValue::Secret("env:TOKEN".parse().unwrap())),
        header("x-order", HeaderValue::Path("$.data.orderId".parse().unwrap())),
    ];
    let request = asked(&subscription, &cloud_events(None), None);
    assert_eq!(pairs(&request)[1..], [("x-tenant", "acme"), ("authorization", "hush")]);
    // The header of `auth` replaces a header with the same name.
    let auth = Auth::Bearer(Bearer { token: "env:TOKEN".parse().unwrap() });
    subscription.destination.auth = Some(auth);
    let request = asked(&subscription, &cloud_events(None), None);
    assert_eq!(pairs(&request)[1..], [("x-tenant", "acme"), ("authorization", "Bearer hush")]);
    subscription.destination.signing =
        Some(Signing { secrets: vec!["env:OTHER".parse().unwrap()], public_keys: None });
    let context = AttemptContext { keyring: &Keyring::default(), now_ms: 0, timeout_ms: 1 };
    let problem =
        ask(&subscription, &Consent::EventGrid(NoFields), &question(None), context).unwrap_err();
    assert!(matches!(problem, Unsendable::Unready(_)), "{problem}");
}

fn answered(status: u16, headers: &[(&str, &str)], body: &str) -> Exchange {
    let result =
        TransportResult::Answered { status, retry_after: None, body: body.as_bytes().to_vec() };
    let webhook =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Exchange {
        content: Some(Content { webhook, ..Content::default() }),
        ..Exchange::new(result, 0, 0)
    }
}

fn refusal(answer: Answer) -> String {
    match answer {
        Answer::Refused(why) => why,
        Answer::Granted(_) | Answer::Pending => panic!("{answer:?}"),
    }
}

#[test]
fn a_refusal_that_quotes_a_credential_hides_it() {
    let mut subscription = subscription();
    let url = "https://user:pass-word@billing.example.com/in?code=hush-hush";
    subscription.destination.url = url.parse().unwrap();
    let credentials = subscription.destination.credentials(&Keyring::default(), None);
    let echo = answered(200, &[("allowed-origin", "hush-hush by dXNlcjpwYXNzLXdvcmQ=")], "");
    let answer = judge(&cloud_events(None), &question(None), &echo).redact(&credentials);
    assert_eq!(
        refusal(answer),
        "the endpoint allows the origin \"[secret] by [secret]\", not \"events.example.com\""
    );
}

#[test]
fn event_grid_consents_by_echoing_the_code_with_a_200_and_by_nothing_else() {
    let judged = |status, body: &str, confirm| {
        judge(
            &Consent::EventGrid(NoFields),
            &question(confirm),
            &answered(status, &[], &body.replace("CODE", CODE)),
        )
    };
    for right in [
        r#"{"validationResponse":"CODE"}"#,
        r#"{"ValidationResponse":"CODE","more":1}"#,
        "{\"validationResponse\" : \" CODE\"}",
    ] {
        assert_eq!(judged(200, right, None), Answer::Granted(Rate::Unlimited), "{right}");
        for (status, says) in [(202, "202"), (201, "201"), (500, "500"), (301, "redirects")] {
            assert!(refusal(judged(status, right, Some("https://me/"))).contains(says), "{status}");
        }
    }
    let wrong = r#"{"validationResponse":"00000000-0000-4000-8000-000000000000"}"#;
    assert!(refusal(judged(200, wrong, Some("https://me/"))).contains("wrong validation code"));
    for silent in [
        "",
        "ok",
        "CODE",
        "[]",
        "{}",
        r#"{"validationResponse":7}"#,
        r#"{"validationCode":"CODE"}"#,
    ] {
        assert_eq!(judged(200, silent, Some("https://me/")), Answer::Pending, "{silent}");
        assert!(refusal(judged(200, silent, None)).contains("validationResponse"), "{silent}");
    }
}

#[test]
fn cloud_events_consents_by_naming_the_origin_and_a_rate() {
    let limit = |rate: &str| Answer::Granted(Rate::parse(rate).unwrap());
    let judged = |asked, headers: &[(&str, &str)]| {
        judge(&cloud_events(asked), &question(None), &answered(200, headers, ""))
    };
    let origin = ("allowed-origin", "events.example.com");
    assert_eq!(judged(None, &[origin, ("allowed-rate", "100")]), limit("100"));
    assert_eq!(judged(Some(50), &[origin, ("allowed-rate", "100")]), limit("100"));
    assert_eq!(judged(Some(50), &[("allowed-origin", "*"), ("allowed-rate", "*")]), limit("*"));
    assert_eq!(judged(Some(50), &[("allowed-origin", " Events.Example.com ")]), limit("50"));
    assert_eq!(judged(None, &[origin]), limit("*"));
    assert_eq!(judged(None, &[("allowed-origin", "a.example.com"), origin]), limit("*"));
    assert!(
        refusal(judged(None, &[("allowed-origin", "other.example.com")]))
            .contains("other.example.com")
    );
    assert!(
        refusal(judged(None, &[("allowed-origin", "events.example.com.evil.org")]))
            .contains("evil")
    );
    assert!(refusal(judged(None, &[origin, ("allowed-rate", "0")])).contains("rate"));
    assert!(refusal(judged(None, &[("allowed-rate", "*")])).contains("WebHook-Allowed-Origin"));
    assert!(refusal(judged(None, &[])).contains("WebHook-Allowed-Origin"));
}

#[test]
fn a_status_alone_is_no_consent_and_a_failure_is_none_whatever_it_says() {
    let allowed = [("allowed-origin", "*"), ("allowed-rate", "*")];
    for status in [200, 201, 204] {
        let judged = judge(&cloud_events(None), &question(None), &answered(status, &allowed, ""));
        assert_eq!(judged, Answer::Granted(Rate::Unlimited), "{status}");
    }
    for status in [301, 400, 401, 403, 404, 405, 410, 429, 500, 503] {
        for confirm in [None, Some("https://me/")] {
            let judged =
                judge(&cloud_events(None), &question(confirm), &answered(status, &allowed, ""));
            assert!(refusal(judged).contains(&status.to_string()), "{status}");
        }
    }
}

#[test]
fn an_origin_that_is_withheld_may_still_come_by_callback() {
    let judged = |status, headers: &[(&str, &str)], confirm| {
        judge(&cloud_events(None), &question(confirm), &answered(status, headers, ""))
    };
    for status in [200, 202, 204, 404, 405, 500] {
        assert_eq!(judged(status, &[], Some("https://me/")), Answer::Pending, "{status}");
        assert!(matches!(judged(status, &[], None), Answer::Refused(_)), "{status}");
    }
    assert!(matches!(judged(302, &[], Some("https://me/")), Answer::Refused(_)));
    assert!(matches!(
        judged(200, &[("allowed-origin", "x")], Some("https://me/")),
        Answer::Refused(_)
    ));
}

#[test]
fn an_endpoint_that_cannot_be_validated_has_not_consented() {
    for result in [
        TransportResult::TimedOut,
        TransportResult::SocketError,
        TransportResult::ResolutionError,
        TransportResult::TlsError,
        TransportResult::Blocked,
        TransportResult::Unsendable,
        TransportResult::Aborted,
    ] {
        let exchange = Exchange::new(result, 0, 0).with_detail("the reason");
        for consent in [Consent::EventGrid(NoFields), cloud_events(None)] {
            let why = refusal(judge(&consent, &question(Some("https://me/")), &exchange));
            assert!(why.contains("the reason"), "{why}");
        }
    }
}

#[test]
fn a_confirmation_grants_the_rate_it_names_or_the_requested_one() {
    let granted = |consent: &Consent, rate| confirm(consent, rate).map(|rate| rate.to_string());
    assert_eq!(granted(&Consent::EventGrid(NoFields), Some("many")), Ok("*".to_owned()));
    assert_eq!(granted(&cloud_events(Some(120)), Some("7")), Ok("7".to_owned()));
    assert_eq!(granted(&cloud_events(Some(120)), None), Ok("120".to_owned()));
    assert_eq!(granted(&cloud_events(None), None), Ok("*".to_owned()));
    assert!(granted(&cloud_events(None), Some("many")).is_err());
}
