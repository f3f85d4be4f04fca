//! The examples of `examples/bodies`, delivered to receivers that check what Slack, Teams, PagerDuty, Discord and Stripe accept.
//!
//! A receiver checks each request by the published rules of its service, which `services/*.json` state in our words, and
//! answers as the service does. So an example that its service would refuse becomes a dead letter here.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use jsonschema::Validator;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use crate::app_fixture::AppFixture;

const EVENTS: [(&str, &str); 3] = [
    ("shop/orders", r#""com.example.order.created""#),
    ("shop/orders", r#""com.example.order.failed""#),
    ("shop/customers", r#""com.example.customer.created""#),
];
const DATA: &str = r#"{"id":"o/7 \"ä\" & <b>","total":1250,"currency":"EUR","customer":{"name":"Zoë\n{{ x }}"},
    "items":[{"count":2,"name":"tea"},{"count":1,"name":"cup"}],"email":"zoe+shop@example.com","name":"Zoë & Co"}"#;

/// A service as its receiver knows it.
struct Service {
    name: &'static str,
    /// The text of its schema.
    schema: &'static str,
    /// The host in its example, and the path and the query that the service expects.
    host: &'static str,
    target: &'static str,
    /// The status and the body of its answer to a valid request.
    answer: (u16, &'static str),
}

const SERVICES: [Service; 5] = [
    Service {
        name: "slack",
        schema: include_str!("services/slack.json"),
        host: "https://hooks.slack.com",
        target: "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        answer: (200, "ok"),
    },
    Service {
        name: "teams",
        schema: include_str!("services/teams.json"),
        host: "https://prod-01.westeurope.logic.azure.com",
        target: "/workflows/abc/triggers/manual/paths/invoke?api-version=2016-06-01&sig=s1g%2Bn",
        answer: (202, ""),
    },
    Service {
        name: "pagerduty",
        schema: include_str!("services/pagerduty.json"),
        host: "https://events.pagerduty.com",
        target: "/v2/enqueue",
        answer: (202, r#"{"status":"success","message":"Event processed","dedup_key":"x"}"#),
    },
    Service {
        name: "discord",
        schema: include_str!("services/discord.json"),
        host: "https://discord.com",
        target: "/api/webhooks/1000000000000000000/XXXXXXXXXXXXXXXXXXXXXXXX?wait=true",
        answer: (200, r#"{"id":"1","type":0}"#),
    },
    Service {
        name: "stripe",
        schema: include_str!("services/stripe.json"),
        host: "https://api.stripe.com",
        target: "/v1/customers",
        answer: (200, r#"{"id":"cus_1","object":"customer"}"#),
    },
];

/// The values of the secrets that the examples name.
pub(crate) fn secret(name: &str) -> Option<String> {
    let value = match name {
        "TEAMS_SIGNATURE" => "s1g+n",
        "PAGERDUTY_ROUTING_KEY" => "0123456789abcdef0123456789abcdef",
        "STRIPE_AUTHORIZATION" => "Bearer sk_test_1",
        _ => return std::env::var(name).ok(),
    };
    Some(value.to_owned())
}

/// The example of a service, with the receiver as its host.
fn example(service: &Service) -> String {
    let file = format!("{}/../examples/bodies/{}.yaml", env!("CARGO_MANIFEST_DIR"), service.name);
    let text = std::fs::read_to_string(file).expect("the example is there");
    assert!(text.contains(service.host), "{text}");
    text.replace(service.host, "http://127.0.0.1:PORT")
}

/// Fields of a form, in which `a[b]=c` is a field of an object.
fn form(body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the form is no UTF-8")?;
    let query = Url::parse(&format!("http://x/?{text}")).map_err(|error| error.to_string())?;
    let mut fields = json!({});
    for (name, value) in query.query_pairs() {
        let field = match name.split_once('[') {
            Some((object, key)) => {
                let key = key.strip_suffix(']').ok_or("a bracket is open")?;
                &mut fields[object][key]
            }
            None => &mut fields[&*name],
        };
        if !field.is_null() {
            return Err(format!("{name} is there twice"));
        }
        *field = json!(value);
    }
    Ok(fields)
}

/// Checks a request as its service does.
fn check(
    service: &Service,
    target: &str,
    method: &Method,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if method != Method::POST || target != service.target {
        return Err(format!("no such resource: {method} {target}"));
    }
    let content_type = header("content-type").unwrap_or_default();
    let body = if service.name == "stripe" {
        let is_key = |value: &str| value.starts_with("Bearer sk_");
        if !header("authorization").is_some_and(is_key) {
            return Err("no API key".to_owned());
        }
        if header("idempotency-key").is_none_or(|key| key.is_empty() || key.len() > 255) {
            return Err("no idempotency key".to_owned());
        }
        (content_type == "application/x-www-form-urlencoded").then(|| form(body))
    } else {
        let is_json = content_type.split(';').next() == Some("application/json");
        is_json.then(|| serde_json::from_slice(body).map_err(|error| error.to_string()))
    };
    let body = body.ok_or_else(|| format!("the content type is {content_type}"))??;
    let schema: Value = serde_json::from_str(service.schema).expect("JSON");
    let validator: Validator = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&schema)
        .expect("the schema is a schema");
    let problems = validator.iter_errors(&body);
    let problems: Vec<String> =
        problems.map(|error| format!("{}: {error}", error.instance_path())).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// The decisions of the receiver: the service of each request, and the reason of a refusal.
type Decisions = Arc<Mutex<Vec<(&'static str, Result<(), String>)>>>;

/// Listens for all services until the test ends; returns the port.
async fn receive(decisions: Decisions) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    let answer = async move |request: Request| {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.expect("a whole request");
        let target = head.uri.path_and_query().expect("a target").to_string();
        let path = |target: &str| target.split('?').next().map(str::to_owned);
        let service = SERVICES.iter().find(|service| path(service.target) == path(&target));
        let service = service.unwrap_or_else(|| panic!("{target} is of no service"));
        let decision = check(service, &target, &head.method, &head.headers, &body);
        let (status, text) = match &decision {
            Ok(()) => (service.answer.0, service.answer.1.to_owned()),
            Err(problem) => (400, problem.clone()),
        };
        decisions.lock().unwrap_or_else(PoisonError::into_inner).push((service.name, decision));
        (StatusCode::from_u16(status).expect("a status"), text)
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    port
}

/// Delivers all events to these subscriptions; what the receiver decided, and the dead letters.
async fn delivered(
    subscriptions: &[String],
) -> (Vec<(&'static str, Result<(), String>)>, Vec<(String, Value)>) {
    let decisions = Decisions::default();
    let port = receive(Arc::clone(&decisions)).await;
    let app = AppFixture::with_port(subscriptions, port).await;
    for (number, (topic, event_type)) in EVENTS.into_iter().enumerate() {
        let event = format!(
            r#"{{"specversion":"1.0","id":"e-{number}","source":"/shop","type":{event_type},
            "time":"2026-11-20T07:03:00Z","datacontenttype":"application/json","data":{DATA}}}"#
        );
        app.publish(topic, &event).await;
    }
    let letters = app.dead_letters_when_idle().await;
    let decisions = decisions.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (decisions, letters)
}

#[tokio::test]
async fn each_example_is_accepted_by_its_service() {
    let examples: Vec<String> = SERVICES.iter().map(example).collect();
    let (mut decisions, letters) = delivered(&examples).await;
    assert_eq!(letters, [], "{decisions:#?}");
    decisions.sort_by_key(|(name, _)| *name);
    let accepted = |name| (name, Ok(()));
    assert_eq!(decisions, ["discord", "pagerduty", "slack", "stripe", "teams"].map(accepted));
}

#[tokio::test]
async fn a_broken_example_is_refused_by_its_service() {
    let broken = [
        (
            "slack",
            "{type: mrkdwn, text: \"*Order",
            "{type: markdown, text: \"*Order",
            "\"markdown\" is not one of",
        ),
        ("slack", "type: context", "type: contextual", "\"contextual\" is not one of"),
        ("teams", "title: Total, value: ", "title: Total, text: ", "is not valid under any of"),
        ("teams", "api-version: \"2016-06-01\", ", "", "no such resource"),
        ("pagerduty", "'critical' if", "'urgent' if", "\"urgent\" is not one of"),
        (
            "pagerduty",
            "custom_details: \"{{ event.data }}\"",
            "custom_details: \"{{ event.data.id }}\"",
            "is not of type \"object\"",
        ),
        ("discord", "color: 5763719", "color: \"5763719\"", "\"5763719\" is not of type"),
        (
            "discord",
            "value: \"{{ event.data.total }} ",
            "worth: \"{{ event.data.total }} ",
            "\"value\" is a required property",
        ),
        ("stripe", "email={{", "e-mail={{", "Additional properties are not allowed"),
        (
            "stripe",
            "{{ event.data.name | urlencode }}",
            "{{ event.data.name }}",
            "Additional properties are not allowed",
        ),
        (
            "stripe",
            "contentType: application/x-www-form-urlencoded",
            "contentType: text/plain",
            "the content type is text/plain",
        ),
    ];
    let text_of = |(number, (name, right, wrong, _)): (usize, &(&str, &str, &str, &str))| {
        let service = SERVICES.iter().find(|service| service.name == *name).expect("a service");
        let example = example(service);
        assert!(example.contains(right), "{name}: {right}");
        let text = example.replacen(right, wrong, 1);
        text.replace(&format!("name: {name}}}"), &format!("name: {name}-{number}}}"))
    };
    let texts: Vec<String> = broken.iter().enumerate().map(text_of).collect();
    let (decisions, letters) = delivered(&texts).await;
    assert!(decisions.iter().all(|(_, decision)| decision.is_err()), "{decisions:#?}");
    assert_eq!((decisions.len(), letters.len()), (broken.len(), broken.len()), "{decisions:#?}");
    for (number, (name, _, _, problem)) in broken.iter().enumerate() {
        let is_its = |letter: &&Value| {
            let subscription = letter["deadletterProperties"]["subscription"].as_str();
            subscription
                .is_some_and(|subscription| subscription.ends_with(&format!("/{name}-{number}")))
        };
        let letter = letters.iter().map(|(_, letter)| letter).find(is_its).expect("a dead letter");
        let properties = &letter["deadletterProperties"];
        assert_eq!(properties["deadletterreasoncode"], "UndeliverableDueToHttpBadRequest");
        let refused = |(service, decision): &&(&str, Result<(), String>)| {
            service == name && decision.as_ref().is_err_and(|why| why.contains(problem))
        };
        assert!(
            decisions.iter().any(|decision| refused(&decision)),
            "{name}: {problem}: {decisions:#?}"
        );
    }
}
