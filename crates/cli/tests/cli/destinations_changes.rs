//! `lastmile destinations disable`, `enable` and `probe`: the document and the digest are changed, and
//! nothing is lost that functions write at the same moment.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adapters::aws_ports::s3_client;
use adapters::machine::Machine;
use adapters::storage::{Replaced, Storage};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use delivery::delivery::health::notice::Transition;
use delivery::delivery::health::shared::{
    DestinationState, Digest, Document as _, digest_document,
};
use delivery::ports::Clock as _;
use delivery::subscription::Disabled;
use local::aws::{LocalAws, LocalAwsConfig, local_clients};
use tempfile::TempDir;

use crate::check_stack::cloud_formation;
use crate::deployments::deploy;
use crate::sample_destinations::{
    BILLING, CRM, Documents, MAIL, Printed, SEARCH, SUBSCRIPTIONS, destinations, disabled, failing,
    fails, key, lastmile, slow,
};

const KNOWN: &str =
    "functions know it within 5 minutes, within 30 seconds where something is unhealthy\n";

fn folder() -> (TempDir, Documents) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    deploy(folder.path(), SUBSCRIPTIONS);
    let documents = Documents::of_folder(folder.path());
    (folder, documents)
}

#[test]
fn what_goes_on_to_a_topic_makes_no_requests_to_stop_or_try() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let forward = "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: b, namespace: n}\n---\n\
                   apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: c, namespace: n}\n---\n\
                   apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t, namespace: n}\n\
                   spec: {broker: b, subscriber: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: c}}}\n";
    deploy(folder.path(), forward);
    for verb in ["disable", "probe"] {
        let printed = destinations(folder.path(), &[verb, "n/b/t"]);
        assert_eq!((printed.code, printed.out.as_str()), (Some(1), ""), "{}", printed.beside);
        let says = "n/b/t goes on to the topic n/c without a request, so there is nothing to stop or to try";
        assert!(printed.beside.contains(says), "{}", printed.beside);
    }
}

#[tokio::test]
async fn disable_and_enable_change_the_document_and_the_digest() {
    let (folder, documents) = folder();
    let run = |arguments: &[&str]| {
        let printed = destinations(folder.path(), arguments);
        assert_eq!((printed.code, printed.beside.as_str()), (Some(0), ""), "{arguments:?}");
        printed.out
    };
    // Nothing was known of it.
    let expected = format!(
        "https://billing.example.com/events: disabled: deliveries wait until it is enabled, for 14 days at most\n  \
         shop/orders/billing\n  shop/refunds/billing\n{KNOWN}"
    );
    assert_eq!(run(&["disable", "shop/orders/billing"]), expected);
    let state = documents.state(BILLING).await.expect("it is known");
    let by_operator = state.disabled.clone().expect("it is disabled");
    assert_eq!((by_operator.then, by_operator.why.as_str()), (Disabled::Hold, "by an operator"));
    assert_eq!(
        (state.destination.as_str(), state.subscription.as_str()),
        ("https://billing.example.com/events", "shop/orders/billing")
    );
    assert_eq!(documents.digest().await.get(key(BILLING)).disabled, Some(Disabled::Hold));

    let again = run(&["disable", "shop/orders/billing"]);
    assert!(again.contains("disabled already") && !again.contains(KNOWN), "{again}");
    assert_eq!(documents.state(BILLING).await, Some(state.clone()));
    let other = run(&["disable", BILLING, "--then", "deadletter"]);
    assert!(other.contains(": disabled: deliveries become dead letters until"), "{other}");
    let changed = documents.state(BILLING).await.and_then(|state| state.disabled).expect("still");
    assert_eq!((changed.since_ms, changed.then), (by_operator.since_ms, Disabled::DeadLetter));
    assert_eq!(documents.digest().await.get(key(BILLING)).disabled, Some(Disabled::DeadLetter));

    let enabled = run(&["enable", "https://billing.example.com/events"]);
    assert!(enabled.contains(": enabled: ") && enabled.ends_with(KNOWN), "{enabled}");
    assert_eq!(documents.state(BILLING).await.and_then(|state| state.disabled), None);
    assert_eq!(documents.digest().await.iter().count(), 0);
    let enabled = run(&["enable", BILLING]);
    assert!(enabled.contains(": enabled already\n") && !enabled.contains(KNOWN), "{enabled}");
}

#[tokio::test]
async fn who_wants_notices_gets_one_of_what_an_operator_changed() {
    let (folder, documents) = folder();
    let kinds = async || {
        let state = documents.state(CRM).await.expect("it is known");
        state.notices.iter().map(|notice| notice.kind).collect::<Vec<_>>()
    };
    let run = |verb: &str| {
        let printed = destinations(folder.path(), &[verb, "shop/orders/crm"]);
        assert_eq!((printed.code, printed.beside.as_str()), (Some(0), ""), "{verb}");
    };
    run("disable");
    assert_eq!(kinds().await, []);
    let of = |topic: &str| {
        let notifications = format!(
            "{SUBSCRIPTIONS}---\napiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {{topic: {topic}}}\n"
        );
        deploy(folder.path(), &notifications);
    };
    // A topic is not told of its own destinations.
    of("shop/orders");
    run("enable");
    assert_eq!(kinds().await, []);
    of("shop/refunds");
    run("disable");
    run("enable");
    assert_eq!(kinds().await, [Transition::Disabled, Transition::Enabled]);
}

#[tokio::test]
async fn enable_forgets_what_was_known_and_of_a_failing_one_says_that_it_is_enabled() {
    let (folder, documents) = folder();
    let state = failing(BILLING, "shop/orders/billing");
    documents.write_state(BILLING, &state).await;
    let printed = destinations(folder.path(), &["enable", "shop/orders/billing"]);
    assert!(
        printed.code == Some(0) && printed.out.contains("enabled already, but it is not healthy")
    );
    assert_eq!(documents.state(BILLING).await.as_ref(), Some(&state));
    let state = state.disabled_by_operator(Disabled::Hold, Machine.now_ms());
    documents.write_state(BILLING, &state).await;
    assert_eq!(destinations(folder.path(), &["enable", "shop/orders/billing"]).code, Some(0));
    let state = documents.state(BILLING).await.expect("it is there");
    assert!(state.is_healthy() && state.disabled.is_none() && state.attempts.len() == 3);
    // The digest is repaired, where it says something else than the document.
    documents
        .write(&key(CRM).document(), &DestinationState::healthy(CRM, "shop/orders/crm", 1))
        .await;
    let mut digest = Digest::default();
    digest.note(key(CRM), &disabled(CRM, "shop/orders/crm", Disabled::Hold), Machine.now_ms());
    documents.write(&digest_document(), &digest).await;
    let printed = destinations(folder.path(), &["enable", "shop/orders/crm"]);
    assert!(printed.out.contains("the digest said something else; "), "{}", printed.out);
    assert_eq!(documents.digest().await.get(key(CRM)).disabled, None);
}

#[tokio::test]
async fn probe_ends_the_wait_of_a_failing_destination() {
    let (folder, documents) = folder();
    documents.write_state(BILLING, &failing(BILLING, "shop/orders/billing")).await;
    let printed = destinations(folder.path(), &["probe", "shop/orders/billing"]);
    assert!(printed.out.contains("the next delivery that is due probes it;"), "{}", printed.beside);
    assert!(printed.code == Some(0) && printed.out.ends_with(KNOWN), "{}", printed.out);
    let state = documents.state(BILLING).await.expect("it is there");
    let until_ms = state.failing.expect("it still is failing").until_ms;
    assert!(until_ms <= Machine.now_ms());
    assert_eq!(documents.digest().await.get(key(BILLING)).failing, state.failing);
    let printed = destinations(folder.path(), &["probe", "shop/orders/billing"]);
    assert!(printed.out.contains("probes it anyway") && !printed.out.contains(KNOWN));
    assert_eq!(documents.state(BILLING).await, Some(state));
}

#[tokio::test]
async fn probe_says_where_there_is_nothing_to_probe() {
    let (folder, documents) = folder();
    documents.write_state(MAIL, &slow(MAIL, "shop/orders/mail")).await;
    let printed = destinations(folder.path(), &["probe", "shop/orders/mail"]);
    assert!(printed.code == Some(0) && printed.out.contains("it is slow but not failing"));
    let printed = destinations(folder.path(), &["probe", SEARCH]);
    assert!(printed.code == Some(0) && printed.out.contains("it is not failing"));
    assert_eq!(documents.state(SEARCH).await, None, "nothing is written");
    documents.write_state(CRM, &disabled(CRM, "shop/orders/crm", Disabled::Hold)).await;
    let printed = destinations(folder.path(), &["probe", "shop/orders/crm"]);
    let expected = "lastmile: https://crm.example.com/hooks is disabled, so nothing probes it; `lastmile destinations \
                    enable` ends that\n";
    assert_eq!((printed.beside.as_str(), printed.code), (expected, Some(1)));
}

#[tokio::test]
async fn a_digest_without_room_names_what_is_disabled_all_the_same() {
    let (folder, documents) = folder();
    let (mut digest, state) = (Digest::default(), failing(BILLING, "shop/orders/billing"));
    for number in 0..2_000 {
        digest.note(key(&format!("https://example.com/{number}")), &state, Machine.now_ms());
    }
    documents.write(&digest_document(), &digest).await;
    let printed = destinations(folder.path(), &["disable", "shop/orders/billing"]);
    assert_eq!((printed.beside.as_str(), printed.code), ("", Some(0)));
    assert_eq!(documents.digest().await.get(key(BILLING)).disabled, Some(Disabled::Hold));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_function_writes_again_and_again_is_kept() {
    let (folder, documents) = folder();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let function = tokio::spawn(async move {
        let (mut last_ms, document) = (0, key(BILLING).document());
        while !stopped.load(Ordering::SeqCst) {
            let (stored, etag) = documents.read::<DestinationState>(&document).await.unzip();
            let now_ms = Machine.now_ms().max(last_ms + 1);
            let findings = fails(BILLING, "shop/orders/billing", now_ms);
            let state = DestinationState::merged(stored, &findings, now_ms);
            let replaced = documents.0.replace(&document, state.write(), etag.as_deref()).await;
            if matches!(replaced, Ok(Replaced::Written { .. })) {
                last_ms = now_ms;
            }
            // Functions write it when an attempt shows something, not all the time.
            Machine.sleep(10).await;
        }
        (last_ms, documents)
    });
    for verb in ["disable", "enable", "disable"] {
        let printed = destinations(folder.path(), &[verb, "shop/orders/billing"]);
        assert_eq!(printed.code, Some(0), "{verb}: {}", printed.beside);
    }
    stop.store(true, Ordering::SeqCst);
    let (last_ms, documents) = function.await.expect("it does not panic");
    let state = documents.state(BILLING).await.expect("it is there");
    assert_eq!(state.attempts.last().map(|attempt| attempt.at_ms), Some(last_ms));
    assert!(state.disabled.is_some());
    assert_eq!(documents.digest().await.get(key(BILLING)).disabled, Some(Disabled::Hold));
}

/// A function that writes at the worst moments: the document before our first write of it arrives, and
/// the digest after it, with what it knew before.
struct RacingFunction {
    s3: String,
    documents: Documents,
    has_written: AtomicBool,
    has_noted: AtomicBool,
}

impl RacingFunction {
    /// An S3 in front of another one.
    async fn start(s3: String) -> String {
        let documents = Documents(bucket(&s3));
        let (has_written, has_noted) = (AtomicBool::new(false), AtomicBool::new(false));
        let function = Arc::new(Self { s3, documents, has_written, has_noted });
        let router = Router::new().fallback(Self::answer).with_state(function);
        serve(router).await
    }

    async fn answer(State(function): State<Arc<Self>>, request: Request) -> Response {
        let put = Some(request.uri().path().to_owned()).filter(|_| request.method() == Method::PUT);
        let is_put = |key: &str| put.as_deref() == Some(&format!("/config/{key}"));
        let document = key(BILLING).document();
        let (is_document, is_digest) = (is_put(&document), is_put(&digest_document()));
        if is_document && !function.has_written.swap(true, Ordering::SeqCst) {
            let found = failing(BILLING, "shop/orders/billing");
            function.documents.write(&document, &found).await;
        }
        let answer = function.forward(request).await;
        if is_digest && !function.has_noted.swap(true, Ordering::SeqCst) {
            let mut digest = Digest::default();
            let known = failing(BILLING, "shop/orders/billing");
            digest.note(key(BILLING), &known, Machine.now_ms());
            function.documents.write(&digest_document(), &digest).await;
        }
        answer
    }

    async fn forward(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let client = reqwest::Client::new();
        let sent = client.request(parts.method, format!("{}{}", self.s3, parts.uri));
        let answer = sent.headers(parts.headers).body(body).send().await.expect("an answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = Body::from(answer.bytes().await.expect("a body"));
        let mut response = body.into_response();
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

fn bucket(endpoint: &str) -> Storage {
    Storage::bucket(s3_client(&local_clients(endpoint), true), "config")
}

/// A local AWS with subscriptions in its bucket, its data, and what is in the bucket.
async fn local_aws() -> (LocalAws, TempDir, Documents) {
    let data = tempfile::tempdir().expect("a folder can be made");
    let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30);
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    let documents = Documents(bucket(&aws.endpoint()));
    deploy_in_bucket(&data, "shop/");
    (aws, data, documents)
}

/// Puts the subscriptions below this prefix of the bucket, whose objects are files.
fn deploy_in_bucket(data: &TempDir, prefix: &str) {
    let to = format!("file://{}/config/{prefix}", data.path().display());
    std::fs::write(data.path().join("applied.yaml"), SUBSCRIPTIONS).expect("a file");
    let apply = ["apply", "-f", "applied.yaml", "--to", &to, "--yes"];
    let applied = Printed::by(&mut lastmile(data.path(), &apply));
    assert_eq!(applied.code, Some(0), "{}", applied.beside);
}

/// The program with S3 here.
fn with_s3(folder: &TempDir, endpoint: &str, arguments: &[&str]) -> Command {
    let mut command = lastmile(folder.path(), &[&["destinations"], arguments].concat());
    command.env("AWS_ENDPOINT_URL_S3", endpoint);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_writes_between_read_and_write_loses_nothing_and_takes_nothing_back() {
    let (aws, data, documents) = local_aws().await;
    let racing = RacingFunction::start(aws.endpoint()).await;
    let arguments = ["disable", "shop/orders/billing", "--to", "s3://config/shop/"];
    let printed = Printed::by(&mut with_s3(&data, &racing, &arguments));
    assert_eq!((printed.code, printed.beside.as_str()), (Some(0), ""), "{}", printed.out);
    let state = documents.state(BILLING).await.expect("it is there");
    assert_eq!((state.attempts.len(), state.failing.is_some()), (3, true), "what it found is kept");
    assert!(state.disabled.is_some());
    let summary = documents.digest().await.get(key(BILLING));
    assert_eq!((summary.disabled, summary.failing), (Some(Disabled::Hold), state.failing));
    aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_says_where_its_destinations_are() {
    let (aws, data, documents) = local_aws().await;
    documents.write_state(BILLING, &failing(BILLING, "shop/orders/billing")).await;
    let described = "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>live</StackName>\
        <Outputs><member><OutputKey>ConfigBucketName</OutputKey><OutputValue>config</OutputValue>\
        </member></Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>";
    let cloud_formation = cloud_formation("200 OK", described.to_owned());
    deploy_in_bucket(&data, "subscriptions/");
    for place in [["--stack", "live"], ["--to", "s3://config"], ["--to", "s3://config/shop"]] {
        let mut list = with_s3(&data, &aws.endpoint(), &[&["list"], &place[..]].concat());
        let printed = Printed::by(list.env("AWS_ENDPOINT_URL_CLOUDFORMATION", &cloud_formation));
        assert_eq!(printed.code, Some(0), "{}", printed.beside);
        assert!(!printed.beside.contains("nothing is there yet"), "{}", printed.beside);
        assert!(printed.out.contains("shop/orders/billing"), "{}", printed.out);
    }
    let list = &mut with_s3(&data, &aws.endpoint(), &["list", "--to", "s3://config/elsewhere/"]);
    let printed = Printed::by(list);
    assert!(
        printed.beside.starts_with("s3://config/elsewhere/: nothing is there yet"),
        "{}",
        printed.beside
    );
    assert!(printed.out.contains("shop/orders/billing"), "{}", printed.out);
    let wrong = Printed::by(&mut with_s3(&data, "http://127.0.0.1:1", &["list", "--to", "s3://"]));
    assert!(
        wrong.code == Some(2) && wrong.beside.contains("s3://bucket/prefix/"),
        "{}",
        wrong.beside
    );
    aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_s3_name_the_object_and_what_it_takes() {
    let (aws, data, _) = local_aws().await;
    let run = |endpoint: &str, arguments: &[&str]| {
        let printed = Printed::by(&mut with_s3(&data, endpoint, arguments));
        assert_eq!((printed.code, printed.out.as_str()), (Some(1), ""), "{}", printed.beside);
        printed.beside
    };
    let missing = run(&aws.endpoint(), &["list", "--to", "s3://nowhere"]);
    let expected = "lastmile: s3://nowhere/_destinations/ cannot be listed: the bucket s3://nowhere does not exist\n";
    assert_eq!(missing, expected);
    let denied = (
        StatusCode::FORBIDDEN,
        "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
    );
    let refusing = serve(Router::new().fallback(move || async move { denied })).await;
    let refused = run(&refusing, &["list", "--to", "s3://config"]);
    let expected = "lastmile: s3://config/_destinations/ cannot be listed: AccessDenied: Access Denied; it takes \
                    s3:ListBucket on s3://config\n";
    assert_eq!(refused, expected);
    let refused = run(&refusing, &["disable", BILLING, "--to", "s3://config"]);
    let expected = format!(
        "lastmile: s3://config/_destinations/{}.json cannot be read: AccessDenied: Access Denied; it takes s3:GetObject \
         on it and, as it may not exist, s3:ListBucket on s3://config\n",
        key(BILLING)
    );
    assert_eq!(refused, expected);
    let unreachable = run("http://127.0.0.1:1", &["list", "--to", "s3://config"]);
    assert!(unreachable.contains("s3://config/_destinations/ cannot be listed: "), "{unreachable}");
    for debug in ["DispatchFailure", "ConnectorError", "{", "Some("] {
        assert!(!unreachable.contains(debug), "{debug} in {unreachable}");
    }
    aws.stop().await;
}
