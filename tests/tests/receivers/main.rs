//! Real subscribers: the CloudEvents SDKs for Python and JavaScript, Fastify, and the reference
//! libraries of Standard Webhooks.
//!
//! Our own tests share our reading of the specification, so these receivers check it independently.
//! Each event of a table is sent in both modes, over a real connection. The receiver reports the
//! bytes that it received and the event that its SDK read. SDKs have bugs too, so the bytes are
//! compared as well, and each known bug is listed (`deviations`).
//!
//! The first run installs both libraries from PyPI and npm. A machine without Node, for example,
//! skips the tests of JavaScript and reports that.

mod consent;
mod deviations;
mod events;
mod examples;
mod fastify;
mod receiver;

use delivery::subscription::Signing;
use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::http::HttpSender;
use adapters::machine::Machine;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::delivery::outcome::{TransportResult, Unsendable};
use delivery::delivery::{Delivery, Origin};
use delivery::event::mapping::{Field, Mapping};
use delivery::event::{Event, Input};
use delivery::ports::{Clock as _, SendHttp as _};
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::Subscription;
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::{Keyring, Secret};
use deviations::{Deviation, Difference, instant_ns};
use events::{Mode, Sent};
use lastmile_tests::conformance::{Results, SUITES_HEAD, WEBHOOKS};
use lastmile_tests::document::assert_table;
use receiver::Sdk;
use serde_json::{Map, Value};

/// A secret that the receivers use for verification, and a secret that they do not have.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// The key pairs of RFC 8037, appendix A, and of RFC 8032, 7.1, test 2. The receivers have only the
/// first public key.
const PRIVATE_KEY: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PUBLIC_KEY: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const OTHER_PRIVATE_KEY: &str = "whsk_TM0Imyj/ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U+4pvs=";

/// The publication time of all events.
const PUBLISHED_MS: u64 = 1_795_158_180_123;
const TIMEOUT_MS: u64 = 60_000;

/// A receiver's report about a request.
struct Report {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    event: Map<String, Value>,
    signature: String,
    /// The text of the report, in which numbers are as the receiver wrote them.
    text: String,
}

fn mapping() -> Mapping {
    let at = |path: &str| Field { path: Some(path.parse().expect("a path")), default: None };
    let none = Field { path: None, default: Some("none".to_owned()) };
    Mapping {
        id: at("orderId"),
        event_type: at("kind"),
        event_time: at("$.nested.at"),
        subject: none,
        ..Mapping::default()
    }
}

/// The subscription of a receiver.
fn subscribed(endpoint: &str, mode: Mode, secrets: &[&str]) -> Subscription {
    let url = format!("{endpoint}/in").parse().expect("a URL");
    let mut subscription =
        Subscription::new("shop/orders/billing".parse().expect("a name"), Dialect::Native, url);
    subscription.destination.schema = Some(mode.schema());
    subscription.mapping = Arc::new(mapping());
    let secrets: Vec<_> = secrets.iter().map(|name| name.parse().expect("a name")).collect();
    subscription.destination.signing =
        (!secrets.is_empty()).then_some(Signing { secrets, public_keys: None });
    subscription
}

/// Returns the request of the first attempt, signed with these secrets.
fn composed(endpoint: &str, published: &str, mode: Mode, secrets: &[&str]) -> Request {
    composed_for(&subscribed(endpoint, mode, secrets), published)
}

fn composed_for(subscription: &Subscription, published: &str) -> Request {
    attempted(subscription, published).unwrap_or_else(|problem| panic!("{published}: {problem}"))
}

/// Returns the request of the first attempt, or the reason why it cannot be sent.
fn attempted(subscription: &Subscription, published: &str) -> Result<Request, Unsendable> {
    let known = [
        ("env:SIGNING", SECRET),
        ("env:OTHER", OTHER_SECRET),
        ("env:PRIVATE", PRIVATE_KEY),
        ("env:OTHER_PRIVATE", OTHER_PRIVATE_KEY),
    ];
    let keyring: Keyring = known
        .map(|(name, value)| (name.parse().expect("a name"), Secret::new(value.to_owned())))
        .into_iter()
        .collect();
    let origin = Origin { message: "4c2b1f5e-9a3d-4e0b-8f6a-7d1c2e3f4a5b".to_owned(), index: 0 };
    let event = Event::recall(&published.into(), Input::Auto);
    let delivery = Delivery::new(event, subscription.name.clone(), origin, PUBLISHED_MS);
    let context =
        AttemptContext { keyring: &keyring, now_ms: Machine.now_ms(), timeout_ms: TIMEOUT_MS };
    compose(subscription, &[&delivery], context)
}

/// Returns a sender like that of the functions, which may connect to the receivers.
fn sender() -> HttpSender {
    let private = PrivateDestinations::parse("127.0.0.1").expect("destinations");
    HttpSender::new(AddressPolicy::new(private, OwnAddresses::default())).expect("TLS works")
}

/// Sends a request and returns its receiver's report.
async fn send(sender: &HttpSender, request: &Request) -> Report {
    let made = sender.exchange(request).await;
    let TransportResult::Answered { status: 200, body, .. } = made.result else {
        panic!("{made:?}")
    };
    let text = String::from_utf8(body).expect("an answer is text");
    let answer: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let text_of = |value: &Value| value.as_str().expect("a text").to_owned();
    let headers = answer["headers"].as_array().expect("a list").iter();
    Report {
        headers: headers.map(|pair| (text_of(&pair[0]), text_of(&pair[1]))).collect(),
        body: STANDARD.decode(text_of(&answer["body"])).expect("base64"),
        event: answer["event"].as_object().expect("an object").clone(),
        signature: text_of(&answer["signature"]),
        text,
    }
}

impl Report {
    fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let value = named.next().map(|(_, value)| value.as_str());
        assert!(named.next().is_none(), "{name} is present twice: {:?}", self.headers);
        value
    }
}

/// Returns the differences between the sent event and the SDK's event.
fn differences(sdk: Sdk, mode: Mode, sent: &'static Sent, report: &Report) -> Vec<Difference> {
    let differs = |field: &str, sent_value: Option<&Value>, seen: Option<&Value>| Difference {
        sdk,
        mode,
        event: sent.name,
        field: field.to_owned(),
        sent: sent_value.cloned().unwrap_or_default(),
        seen: seen.cloned().unwrap_or_default(),
    };
    let mut found = Vec::new();
    if report.signature != "verified" {
        found.push(differs("$signature", None, Some(&report.signature.as_str().into())));
    }
    if let Some(why) = report.event.get("$refused") {
        found.push(differs("$refused", None, Some(why)));
        return found;
    }
    let meaning = sent.meaning(mode);
    let fields: BTreeSet<&String> = meaning.keys().chain(report.event.keys()).collect();
    for field in fields {
        let (sent_value, seen) =
            (meaning.get(field), report.event.get(field).filter(|value| !value.is_null()));
        let moments = (sent_value.and_then(instant_ns), seen.and_then(instant_ns));
        let same_moment = field == "time" && moments.0.is_some() && moments.0 == moments.1;
        if sent_value != seen && !same_moment {
            found.push(differs(field, sent_value, seen));
        }
    }
    found
}

/// Sends every event in every mode to one SDK. The bytes must be right, and each difference must be
/// known.
async fn understands_every_event(sdk: Sdk) {
    let Some(endpoint) = sdk.endpoint() else { return };
    let sender = sender();
    let (mut unknown, mut needed) = (Vec::new(), BTreeSet::new());
    for sent in events::all() {
        for mode in Mode::ALL {
            let report =
                send(&sender, &composed(endpoint, sent.published, mode, &["env:SIGNING"])).await;
            let name = format!("{} {}", sent.name, mode.as_str());
            assert_eq!(
                String::from_utf8_lossy(&report.body),
                String::from_utf8_lossy(sent.body(mode)),
                "{name}"
            );
            assert_eq!(report.body, sent.body(mode), "{name}");
            assert_eq!(report.header("content-type"), sent.content_type(mode), "{name}");
            for difference in differences(sdk, mode, sent, &report) {
                match deviations::all().position(|known| known.explains(&difference)) {
                    Some(at) => drop(needed.insert((at, mode, sent.name))),
                    None => unknown.push(difference),
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    let listed = deviations::all().enumerate().filter(|(_, known)| known.sdk == sdk).flat_map(
        |(at, known)| {
            let modes = known.modes.iter();
            modes.flat_map(move |mode| known.events.iter().map(move |event| (at, *mode, *event)))
        },
    );
    let idle: Vec<_> = listed.filter(|listed| !needed.contains(listed)).collect();
    assert!(idle.is_empty(), "the SDK does not do this any more: {idle:?}");
}

#[tokio::test]
async fn the_python_sdk_understands_every_event_except_for_the_listed_deviations() {
    understands_every_event(Sdk::Python).await;
}

#[tokio::test]
async fn the_node_sdk_understands_every_event_except_for_the_listed_deviations() {
    understands_every_event(Sdk::Node).await;
}

/// npm's SDK infers the mode from the content type and reads the data as the event, which the
/// filter has not seen. PyPI's SDK reads the headers first.
#[tokio::test]
async fn an_event_of_events_is_not_sent_in_binary_mode_because_sdks_read_the_inner_one() {
    const INNER: &str =
        r#"{"specversion":"1.0","type":"order.refund-everything","source":"/evil","id":"2"}"#;
    let sender = sender();
    for format in ["application/cloudevents+json", "application/cloudevents+json; charset=utf-8"] {
        let event = format!(
            r#"{{"specversion":"1.0","type":"order.read","source":"/s","id":"1","datacontenttype":"{format}","data":{INNER}}}"#
        );
        let subscription = subscribed("http://127.0.0.1:1", Mode::Binary, &[]);
        let why = attempted(&subscription, &event).expect_err("it is not sent").to_string();
        assert!(why.contains("in binary mode"), "{why}");
        for sdk in Sdk::ALL {
            let Some(endpoint) = sdk.endpoint() else { continue };
            let harmless = event.replace(format, "application/json");
            let mut request = composed(endpoint, &harmless, Mode::Binary, &[]);
            for (name, value) in &mut request.headers {
                if name == "content-type" {
                    format.clone_into(value);
                }
            }
            let read = send(&sender, &request).await.event;
            let seen = match sdk {
                Sdk::Python => "order.read",
                Sdk::Node => "order.refund-everything",
            };
            assert_eq!(read["type"], seen, "{sdk:?} {read:?}");
            // In structured mode, the SDKs read the outer event.
            let report = send(&sender, &composed(endpoint, &event, Mode::Structured, &[])).await;
            assert_eq!(report.event["type"], "order.read", "{sdk:?}");
        }
    }
}

#[tokio::test]
async fn a_subject_is_sent_percent_encoded_and_the_python_sdk_decodes_it() {
    const ENCODED: &str = "Euro%20%E2%82%AC%20%F0%9F%98%80";
    let sender = sender();
    for sdk in Sdk::ALL {
        let Some(endpoint) = sdk.endpoint() else { continue };
        let report = send(&sender, &composed(endpoint, events::EXACT, Mode::Binary, &[])).await;
        assert_eq!(report.header("ce-subject"), Some(ENCODED), "{sdk:?}");
        // The SDK for JavaScript does not decode; its users must (CloudEvents, HTTP binding,
        // 3.1.3.2).
        let understood = match sdk {
            Sdk::Python => "Euro € 😀",
            Sdk::Node => ENCODED,
        };
        assert_eq!(report.event["subject"], understood, "{sdk:?}");
    }
}

/// Counts the verdicts of a reference library on signatures in one mode: of every event, and of
/// wrong secrets and a changed body.
async fn count_signatures(results: &mut Results, sdk: Sdk, endpoint: &str, mode: Mode) {
    let sender = sender();
    for sent in events::all() {
        let request = composed(endpoint, sent.published, mode, &["env:SIGNING"]);
        let says = send(&sender, &request).await.signature;
        let departs = std::str::from_utf8(&request.body).is_err().then_some("utf-8-bodies");
        let case = format!("{sdk:?} {mode:?} {}: {says}", sent.name);
        results.check(&case, says == "verified", departs);
    }
    for (secrets, expected) in [
        ([].as_slice(), "unsigned"),
        (&["env:SIGNING"], "verified"),
        (&["env:OTHER", "env:SIGNING"], "verified"),
        (&["env:SIGNING", "env:OTHER"], "verified"),
        (&["env:OTHER"], "No matching signature found"),
    ] {
        let request = composed(endpoint, events::EXACT, mode, secrets);
        let says = send(&sender, &request).await.signature;
        let case = format!("{sdk:?} {mode:?} {secrets:?}: {says}");
        results.check(&case, says.contains(expected), None);
    }
    let mut tampered = composed(endpoint, events::EXACT, mode, &["env:SIGNING"]);
    tampered.body = [&tampered.body[..], b" "].concat().into();
    let says = send(&sender, &tampered).await.signature;
    let is_refused = says.contains("No matching signature found");
    results.check(&format!("{sdk:?} {mode:?} tampered: {says}"), is_refused, None);
}

/// The libraries of npm and PyPI verify only `v1`, so they must skip the other signatures. Node's
/// Ed25519, which is that of OpenSSL, verifies `v1a` with the key set that `apply` writes.
#[tokio::test]
async fn a_private_key_signs_beside_a_secret_and_its_key_set_verifies_it() {
    let sender = sender();
    for sdk in Sdk::ALL {
        let Some(endpoint) = sdk.endpoint() else { continue };
        for (secrets, signature, verified) in [
            (&["env:SIGNING", "env:PRIVATE"][..], "verified", 1),
            (&["env:PRIVATE", "env:SIGNING"], "verified", 1),
            (&["env:OTHER_PRIVATE", "env:PRIVATE"], "No matching signature found", 1),
            (&["env:OTHER_PRIVATE", "env:SIGNING"], "verified", 0),
            (&["env:SIGNING"], "verified", 0),
        ] {
            for mode in Mode::ALL {
                let mut request = composed(endpoint, events::EXACT, mode, secrets);
                let report = send(&sender, &request).await;
                let case = format!("{sdk:?} {mode:?} {secrets:?}: {}", report.text);
                assert!(report.signature.contains(signature), "{case}");
                if sdk == Sdk::Python {
                    continue;
                }
                let asymmetric = |text: &str| {
                    serde_json::from_str::<Value>(text).expect("JSON")["asymmetric"].clone()
                };
                assert_eq!(asymmetric(&report.text), verified, "{case}");
                request.body = [&request.body[..], b" "].concat().into();
                assert_eq!(asymmetric(&send(&sender, &request).await.text), 0, "{case}, tampered");
            }
        }
    }
}

#[tokio::test]
async fn conformance_the_docs_show_what_the_reference_libraries_say_of_signatures() {
    let mut results = Results::new(WEBHOOKS);
    let mut missing = false;
    for sdk in Sdk::ALL {
        let Some(endpoint) = sdk.endpoint() else {
            missing = true;
            continue;
        };
        for mode in Mode::ALL {
            count_signatures(&mut results, sdk, endpoint, mode).await;
        }
    }
    if !missing {
        assert_table(
            "reference/conformance.md",
            "suites-of-libraries",
            SUITES_HEAD,
            &[results.row()],
        );
    }
}

#[tokio::test]
async fn a_number_of_23_digits_arrives_and_its_parsing_is_up_to_the_subscriber() {
    const NUMBER: &str = "12345678901234567890123";
    let event = format!(
        r#"{{"specversion":"1.0","type":"t","source":"/s","id":"1","data":{{"n":{NUMBER}}}}}"#
    );
    let sender = sender();
    for sdk in Sdk::ALL {
        let Some(endpoint) = sdk.endpoint() else { continue };
        for mode in Mode::ALL {
            let report = send(&sender, &composed(endpoint, &event, mode, &[])).await;
            assert!(String::from_utf8_lossy(&report.body).contains(&format!("{{\"n\":{NUMBER}}}")));
            let kept = match sdk {
                Sdk::Python => NUMBER,
                Sdk::Node => "1.2345678901234568e+22",
            };
            assert!(report.text.contains(kept), "{sdk:?}: {}", report.text);
        }
    }
}

#[test]
fn the_docs_list_the_deviations_of_the_sdks() {
    let rows: Vec<String> = deviations::all().map(row).collect();
    assert_table(
        "reference/conformance.md",
        "deviations",
        "| SDK | mode | what it does | seen with |",
        &rows,
    );
}

fn row(known: &Deviation) -> String {
    let modes: Vec<&str> = known.modes.iter().map(|mode| mode.as_str()).collect();
    format!(
        "| {} | {} | {} | {} |",
        known.sdk.as_str(),
        modes.join(", "),
        known.behaviour,
        known.events.join(", ")
    )
}
