//! Requests to AWS targets, compared with those that botocore makes of the same parameters: method, host, path, query, the
//! headers of the protocol, the body, and the signature. Of each action there are twenty cases: each of five places with each of
//! four bodies, and the sets of parameters of the action in turn.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use adapters::http::sigv4::Signed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::request::aws::failure_of;
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::Subscription;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret};
use dialects::Source;
use lastmile_tests::libraries;
use serde_json::{Map, Value as Json, json};

use crate::aws_parameters::{Action, actions};

/// 2026-11-23T12:00:00Z.
const AT_MS: u64 = 1_795_435_200_000;
const EVENT: &str = r#"{"specversion":"1.0","id":"e 1","source":"/shop","type":"order.created","subject":"orders/7","time":"2026-11-20T07:03:00.123Z","data":{"id":42,"delay":30,"text":"grüße, \"a\"&b=1+2%"}}"#;
/// The number of cases of each action: all places with all bodies.
const CASES: usize = PLACES.len() * BODIES.len();
/// The body as the subscription states it, and as it is sent.
const BODIES: [(&str, &str); 4] = [
    ("", EVENT),
    (
        r#", body: {order: "{{ event.data.id }}", text: "{{ event.data.text }}"}"#,
        r#"{"order":42,"text":"grüße, \"a\"&b=1+2%"}"#,
    ),
    (r#", bodyText: "id={{ event.data.id }}&t={{ event.type }} ä\n""#, "id=42&t=order.created ä\n"),
    (r#", body: []"#, "[]"),
];

/// The partition and the region of each of the five resources.
const PLACES: [(&str, &str); 5] = [
    ("aws", "eu-west-1"),
    ("aws", "us-east-1"),
    ("aws-cn", "cn-north-1"),
    ("aws-us-gov", "us-gov-west-1"),
    ("aws-eusc", "eusc-de-east-1"),
];

/// A case, as the script reads it.
fn case(action: &Action, index: usize, name: &str) -> Json {
    let place = index % PLACES.len();
    let ((partition, region), resource) = (PLACES[place], action.resources[place]);
    let (body, payload) = BODIES[(index / PLACES.len()) % BODIES.len()];
    let (stated, sent) = &action.parameters[index % action.parameters.len()];
    let arn = format!("arn:{partition}:{}:{region}:123456789012:{resource}", action.service);
    let subscription = subscription(&arn, name, stated, body);
    let delivery = delivery(&subscription);
    let request = composed(&subscription, &delivery);
    let mut parameters = sent.as_object().expect("a mapping").clone();
    add_defaults(&mut parameters, action.service, resource, &delivery);
    json!({
        "arn": arn,
        "parameters": parameters,
        "payload": STANDARD.encode(payload),
        "request": printed(&request),
    })
}

fn subscription(arn: &str, action: &str, parameters: &Json, body: &str) -> Subscription {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: target}}\n\
         spec: {{destination: {{aws: {{arn: '{arn}', action: {action}, parameters: {parameters}}}{body}}}}}\n"
    );
    let read = dialects::read(&[Source { name: "test", text: &text }]).into_result();
    let catalogue = read.unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
    let found = catalogue.subscriptions().next().expect("it has one");
    (**found).clone()
}

fn delivery(subscription: &Subscription) -> Delivery {
    let origin = Origin { message: "m".to_owned(), index: 0 };
    let event = Event::recall(&EVENT.into(), Input::Auto);
    Delivery::new(event, subscription.name.clone(), origin, AT_MS)
}

fn composed(subscription: &Subscription, delivery: &Delivery) -> Request {
    let keyring = Keyring::default().with_aws(AwsCredentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: Secret::new("secret".to_owned()),
        session_token: Some(Secret::new("session-token".to_owned())),
    });
    let context = AttemptContext { keyring: &keyring, now_ms: AT_MS, timeout_ms: 30_000 };
    compose(subscription, &[delivery], context).expect("it can be sent")
}

/// The parameters that are sent although no subscription states them.
fn add_defaults(
    parameters: &mut Map<String, Json>,
    service: &str,
    resource: &str,
    delivery: &Delivery,
) {
    let id = delivery.id.to_string();
    let defaults: Vec<(&str, Json)> = match service {
        "sqs" | "sns" if resource.ends_with(".fifo") => {
            vec![("MessageGroupId", "orders/7".into()), ("MessageDeduplicationId", id.into())]
        }
        "events" => vec![
            ("DetailType", "order.created".into()),
            ("Source", "/shop".into()),
            ("Time", "2026-11-20T07:03:00.123+00:00".into()),
        ],
        "states" => vec![("name", id.into())],
        "kinesis" => vec![("PartitionKey", "orders/7".into())],
        _ => Vec::new(),
    };
    for (name, value) in defaults {
        parameters.entry(name).or_insert(value);
    }
}

fn printed(request: &Request) -> Json {
    let signer = request.signer.as_ref().expect("it is signed");
    let signed = Signed::sign(request, signer, AT_MS).expect("it can be signed");
    json!({
        "method": request.method.as_str(),
        "url": request.url.as_str(),
        "headers": request.headers.iter().cloned().collect::<BTreeMap<String, String>>(),
        "signature": signed.headers.into_iter().collect::<BTreeMap<String, String>>(),
        "body": STANDARD.encode(&request.body),
    })
}

/// The output of the script, which is JSON; `None` if this machine lacks Python.
fn run(arguments: &[&str], input: &str) -> Option<Json> {
    let python = libraries::python("requests to AWS targets")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts/aws_requests.py");
    let mut command = Command::new(python);
    command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().expect("Python starts");
    let mut stdin = running.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("it reads its cases");
    drop(stdin);
    let output = running.wait_with_output().expect("it ends");
    Some(serde_json::from_slice(&output.stdout).expect("it prints JSON"))
}

#[test]
fn every_error_that_botocore_knows_has_a_meaning() {
    let Some(errors) = run(&["errors"], "") else { return };
    let errors: Vec<(String, String)> = serde_json::from_value(errors).expect("pairs");
    assert!(errors.len() > 80, "{errors:?}");
    let is_unknown = |(_, code): &&(String, String)| failure_of(code).is_none();
    let unknown: Vec<_> = errors.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_parameter_that_subscriptions_may_state_is_in_a_compared_request() {
    let schema = include_str!("../../../schemas/native.schema.json");
    let schema: Json = serde_json::from_str(schema).expect("JSON");
    let names = &schema["$defs"]["awsTarget"]["properties"]["parameters"]["propertyNames"]["enum"];
    let names = names.as_array().expect("the names of all services");
    let actions = actions();
    let compared: Vec<&str> = actions
        .iter()
        .flat_map(|action| action.parameters.iter().take(CASES))
        .flat_map(|(stated, _)| stated.as_object().expect("a mapping").keys())
        .map(String::as_str)
        .collect();
    let is_missing = |name: &&Json| name.as_str().is_none_or(|name| !compared.contains(&name));
    let missing: Vec<&Json> = names.iter().filter(is_missing).collect();
    assert!(!names.is_empty() && missing.is_empty(), "{missing:?}");
}

#[test]
fn requests_to_aws_targets_are_those_that_botocore_makes() {
    let names = [
        "SendMessage",
        "PutEvents",
        "Invoke",
        "Publish",
        "StartExecution",
        "PutRecord",
        "PutRecord",
    ];
    let actions = actions();
    let cases = actions.iter().zip(names);
    let cases: Vec<Json> = cases
        .flat_map(|(action, name)| (0..CASES).map(move |index| case(action, index, name)))
        .collect();
    let Some(compared) = run(&[], &Json::from(cases).to_string()) else { return };
    assert_eq!(compared["different"], json!([]), "{:#}", compared["different"]);
    for action in &actions {
        assert_eq!(compared["same"][action.service], json!(CASES), "{}", action.service);
    }
}
