//! `Secrets`: every requested name is in the keyring, with a value that was valid a few minutes
//! ago; no value is ever printed.
//!
//! The AWS extension is a scripted server here, and the clock stands still until a test advances
//! it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use adapters::machine::Machine;
use adapters::secrets::{PORT, SecretStores, TOKEN};
use delivery::ports::{Clock, PublisherKeys as _, SecretError, Secrets};
use delivery::subscription::secret::{Secret, SecretName};
use futures::future::join_all;
use lastmile_tests::logs::Logged;
use lastmile_tests::manual_clock::ManualClock;
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};
use reqwest::Url;
use tracing::Level;

/// A value that no error or log may contain.
const SECRET_VALUE: &str = "hush-hush";
/// Slightly less than the time that a value is used.
const FRESH_MS: u64 = 5 * 60 * 1_000 - 1;
/// The longest time that a failure without an earlier value is remembered.
const FAILED_MS: u64 = 3_000;
/// A lookup may exceed its deadline of three seconds by this much on a busy machine.
const DEADLINE_MS: u64 = 3_000;
const GRACE_MS: u64 = 60_000;

/// A scripted extension, its current response, and stores that use it.
struct ScriptedExtension {
    server: Scripted,
    set_step: Arc<Mutex<Vec<Step>>>,
    clock: ManualClock,
    stores: SecretStores<ManualClock>,
}

impl ScriptedExtension {
    async fn responding(step: Step) -> Self {
        let set_step = Arc::new(Mutex::new(vec![step]));
        let script = Arc::clone(&set_step);
        let server = Scripted::start(move |_| script.lock().expect("no panic").clone())
            .await
            .expect("a free port");
        let clock = ManualClock::default();
        let stores = stores(&server, clock.clone());
        Self { server, set_step, clock, stores }
    }

    fn set_step(&self, step: Step) {
        *self.set_step.lock().expect("no panic") = vec![step];
    }

    fn requests(&self) -> Vec<ScriptedRequest> {
        self.server.requests()
    }
}

fn stores<C: Clock + Send + Sync>(server: &Scripted, clock: C) -> SecretStores<C> {
    let endpoint = server.endpoint();
    let port = endpoint.rsplit(':').next().expect("a port").to_owned();
    stores_at(port, clock)
}

fn stores_at<C: Clock + Send + Sync>(port: String, clock: C) -> SecretStores<C> {
    let environment = move |name: &str, _: Option<&Url>| match name {
        PORT => Some(port.clone()),
        TOKEN => Some("session/token==".to_owned()),
        "BILLING" => Some("from-the-environment".to_owned()),
        "EMPTY" => Some(String::new()),
        "AWS_SECRET_ACCESS_KEY" => Some(SECRET_VALUE.to_owned()),
        _ => None,
    };
    SecretStores::new(environment, clock).expect("TLS works")
}

fn destination() -> Url {
    "https://hooks.example.com/".parse().expect("a URL")
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap_or_else(|problem| panic!("{problem}"))
}

async fn value(secrets: &impl Secrets, text: &str) -> Result<String, SecretError> {
    let name = name(text);
    let keyring = secrets.keyring(&[&name], &destination()).await?;
    Ok(keyring
        .get(&name)
        .map(Secret::expose)
        .expect("the keyring has every requested secret")
        .to_owned())
}

/// The error for a secret that is not available: it has the name, and nothing of the response.
async fn problem(secrets: &impl Secrets, text: &str) -> String {
    let error = value(secrets, text).await.expect_err(text);
    assert_eq!(error.name, name(text));
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(SECRET_VALUE), "{shown}");
    error.problem
}

fn secret_string(value: &str) -> Step {
    let body = serde_json::json!({"ARN": "arn:…", "Name": "billing", "SecretBinary": null, "SecretString": value});
    answer("200 OK", &[("content-type", "application/json")], body.to_string().as_bytes())
}

fn parameter(value: &str) -> Step {
    let body = serde_json::json!({"Parameter": {"Name": "/billing/token", "Value": value}, "ResultMetadata": {}});
    answer("200 OK", &[], body.to_string().as_bytes())
}

fn refusal(status: &str) -> Step {
    answer(status, &[], SECRET_VALUE.as_bytes())
}

#[tokio::test]
async fn an_environment_variable_is_a_secret() {
    let extension = ScriptedExtension::responding(refusal("500 Oh")).await;
    assert_eq!(
        value(&extension.stores, "env:BILLING").await,
        Ok("from-the-environment".to_owned())
    );
    assert!(
        problem(&extension.stores, "env:ABSENT").await.contains("environment variable is not set")
    );
    assert!(problem(&extension.stores, "env:EMPTY").await.contains("empty"));
    assert_eq!(extension.requests(), []);
}

#[tokio::test]
async fn the_functions_own_credentials_are_never_a_secret_to_send() {
    let extension = ScriptedExtension::responding(refusal("500 Oh")).await;
    // No subscription file can name them; if they are requested anyway, they are refused here too.
    for variable in
        ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "aws_session_token", "PATH", "_HANDLER"]
    {
        let name = SecretName::Environment(variable.to_owned());
        assert!(format!("env:{variable}").parse::<SecretName>().is_err());
        let error = extension.stores.keyring(&[&name], &destination()).await.expect_err(variable);
        assert!(error.problem.contains("AWS_") && !error.problem.contains(SECRET_VALUE), "{error}");
    }
}

#[tokio::test]
async fn a_secret_is_requested_with_its_name_encoded_and_the_token() {
    let extension = ScriptedExtension::responding(secret_string("token-1")).await;
    let text =
        "secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/billing-AbCdEf";
    assert_eq!(value(&extension.stores, text).await, Ok("token-1".to_owned()));
    let [received] = &extension.requests()[..] else { panic!("one request is expected") };
    let line = "GET /secretsmanager/get?secretId=arn%3Aaws%3Asecretsmanager%3Aeu-west-1%3A123456789012%3Asecret%3A\
                prod%2Fbilling-AbCdEf HTTP/1.1\r\n";
    assert!(received.head.starts_with(line), "{}", received.head);
    assert_eq!(received.header("x-aws-parameters-secrets-token"), Some("session/token=="));
}

#[tokio::test]
async fn a_parameter_is_requested_decrypted() {
    let extension = ScriptedExtension::responding(parameter("token-2")).await;
    assert_eq!(value(&extension.stores, "ssm:/billing/token").await, Ok("token-2".to_owned()));
    let [received] = &extension.requests()[..] else { panic!("one request is expected") };
    let line = "GET /systemsmanager/parameters/get?name=%2Fbilling%2Ftoken&withDecryption=true HTTP/1.1\r\n";
    assert!(received.head.starts_with(line), "{}", received.head);
    assert_eq!(received.header("x-aws-parameters-secrets-token"), Some("session/token=="));
}

#[tokio::test]
async fn the_members_of_one_secret_share_one_lookup() {
    let extension = ScriptedExtension::responding(secret_string(
        r#"{"user": "acme", "pin": 0042e1, "hush-hush": []}"#,
    ))
    .await;
    assert!(
        problem(&extension.stores, "secretsmanager:billing#user")
            .await
            .contains("not a JSON object")
    );
    extension.clock.advance(FRESH_MS + 1);
    extension.set_step(secret_string(r#"{"user": "acme", "pin": 42.0, "list": ["hush-hush"]}"#));
    let names =
        ["env:BILLING", "secretsmanager:billing#user", "secretsmanager:billing#pin"].map(name);
    let keyring = extension
        .stores
        .keyring(&names.iter().collect::<Vec<_>>(), &destination())
        .await
        .expect("all are there");
    let values = names.iter().map(|name| keyring.get(name).map(Secret::expose)).collect::<Vec<_>>();
    assert_eq!(values, [Some("from-the-environment"), Some("acme"), Some("42.0")]);
    assert!(
        problem(&extension.stores, "secretsmanager:billing#password")
            .await
            .contains("no such member")
    );
    assert!(
        problem(&extension.stores, "secretsmanager:billing#list").await.contains("not a string")
    );
    assert_eq!(extension.requests().len(), 2);
}

#[tokio::test]
async fn each_key_of_publishers_is_looked_up_by_itself() {
    let stores = stores_at("1".to_owned(), Machine);
    let names = ["env:BILLING", "env:MISSING", "env:EMPTY"].map(name);
    let keys = stores.publisher_keys(&names).await;
    let [Ok(found), Err(missing), Err(empty)] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!(found.expose(), "from-the-environment");
    assert_eq!([&missing.name, &empty.name], [&names[1], &names[2]]);
}

#[tokio::test]
async fn a_refusal_reports_its_status_and_nothing_of_its_text() {
    let text = format!("nobody may read the secret billing, which is {SECRET_VALUE}");
    for (status, code) in [
        ("400 Bad Request", "400"),
        ("401 Unauthorized", "401"),
        ("500 Oh", "500"),
        ("302 Go", "302"),
    ] {
        let extension = ScriptedExtension::responding(answer(
            status,
            &[("location", "/secretsmanager/get")],
            text.as_bytes(),
        ))
        .await;
        let problem = problem(&extension.stores, "secretsmanager:billing").await;
        assert!(problem.contains(code) && problem.contains("SecretArns"), "{problem}");
        assert!(!problem.contains("nobody may read"), "{problem}");
        assert_eq!(extension.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_response_that_is_no_text_is_no_secret() {
    let long = format!(r#"{{"SecretString": "{}"}}"#, SECRET_VALUE.repeat(20_000));
    for (body, set_step) in [
        (r#"{"SecretBinary": "aHVzaC1odXNo", "SecretString": null}"#, "SecretBinary"),
        (r#"{"SecretString": "hush-hush"#, "cannot be read"),
        (r#"{"SecretString": ["hush-hush"]}"#, "cannot be read"),
        ("hush-hush", "cannot be read"),
        (r#"{"SecretString": ""}"#, "empty"),
        (&long, "longer than"),
    ] {
        let extension = ScriptedExtension::responding(answer("200 OK", &[], body.as_bytes())).await;
        let problem = problem(&extension.stores, "secretsmanager:billing").await;
        assert!(problem.contains(set_step), "{problem}");
    }
}

#[tokio::test]
async fn the_longest_response_has_128_kib() {
    let room = 128 * 1_024 - r#"{"SecretString": ""}"#.len();
    let [fits, longer] = [room, room + 1].map(|bytes| "x".repeat(bytes));
    let response =
        |value: &str| answer("200 OK", &[], format!(r#"{{"SecretString": "{value}"}}"#).as_bytes());
    let extension = ScriptedExtension::responding(response(&fits)).await;
    assert_eq!(value(&extension.stores, "secretsmanager:billing").await, Ok(fits));
    extension.set_step(response(&longer));
    let problem = problem(&extension.stores, "secretsmanager:another").await;
    assert!(problem.contains("longer than 131072 bytes"), "{problem}");
}

#[tokio::test]
async fn without_the_extension_the_error_says_how_to_add_it() {
    let problem_at = async |port: &str| {
        problem(&stores_at(port.to_owned(), Machine), "ssm:/billing/token").await
    };
    let problem = problem_at("1").await;
    assert!(
        problem.contains("127.0.0.1:1") && problem.contains("SecretsExtensionLayerArn"),
        "{problem}"
    );
    assert!(problem_at("27730000").await.contains(PORT));
}

#[tokio::test]
async fn an_extension_that_is_not_ready_is_retried() {
    let tries = AtomicU64::new(0);
    let not_ready = || answer("400 Bad Request", &[], b"not ready to serve traffic, please wait");
    let script = move |_: &ScriptedRequest| {
        let is_ready = tries.fetch_add(1, Ordering::SeqCst) == 3;
        vec![if is_ready { parameter("token-3") } else { not_ready() }]
    };
    let server = Scripted::start(script).await.expect("a free port");
    assert_eq!(value(&stores(&server, Machine), "ssm:token").await, Ok("token-3".to_owned()));
    assert_eq!(server.requests().len(), 4);

    let never = ScriptedExtension::responding(not_ready()).await;
    assert!(problem(&never.stores, "ssm:token").await.contains("ready"));
}

#[tokio::test]
async fn a_lookup_ends_within_its_deadline() {
    let drip = [answer_head(), Step::Drip(b' ')];
    join_all([vec![Step::Silence], drip.to_vec()].map(async |steps| {
        let server = Scripted::start(move |_| steps.clone()).await.expect("a free port");
        let stores = stores(&server, Machine);
        let before_ms = Machine.now_ms();
        assert!(problem(&stores, "ssm:token").await.contains("within 3 s"));
        let took_ms = Machine.now_ms() - before_ms;
        assert!((DEADLINE_MS..=DEADLINE_MS + GRACE_MS).contains(&took_ms), "{took_ms} ms");
    }))
    .await;
}

/// The head of a response whose body never ends.
fn answer_head() -> Step {
    Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_vec())
}

#[tokio::test]
async fn a_hundred_concurrent_requests_share_one_lookup() {
    let extension = ScriptedExtension::responding(secret_string("token-4")).await;
    let received =
        join_all((0..100).map(|_| value(&extension.stores, "secretsmanager:billing"))).await;
    assert!(received.iter().all(|value| value.as_deref() == Ok("token-4")), "{received:?}");
    assert_eq!(extension.requests().len(), 1);
}

#[tokio::test]
async fn a_cancelled_request_does_not_cancel_the_lookup() {
    let extension = ScriptedExtension::responding(Step::Silence).await;
    {
        let impatient = value(&extension.stores, "secretsmanager:billing");
        let gone = tokio::time::timeout(std::time::Duration::from_millis(50), impatient).await;
        assert!(gone.is_err(), "{gone:?}");
    }
    extension.set_step(secret_string("token-5"));
    assert_eq!(value(&extension.stores, "secretsmanager:billing").await, Ok("token-5".to_owned()));
}

#[tokio::test]
async fn a_value_is_used_for_five_minutes_and_then_read_again() {
    let extension = ScriptedExtension::responding(secret_string("old")).await;
    assert_eq!(value(&extension.stores, "secretsmanager:billing").await, Ok("old".to_owned()));
    extension.set_step(secret_string("new"));
    extension.clock.advance(FRESH_MS);
    assert_eq!(value(&extension.stores, "secretsmanager:billing").await, Ok("old".to_owned()));
    extension.clock.advance(1);
    let received =
        join_all((0..100).map(|_| value(&extension.stores, "secretsmanager:billing"))).await;
    assert!(received.iter().all(|value| value.as_deref() == Ok("new")), "{received:?}");
    assert_eq!(extension.requests().len(), 2);
}

#[tokio::test]
async fn a_failure_is_remembered_for_a_few_seconds() {
    let extension = ScriptedExtension::responding(refusal("500 Oh")).await;
    for failed in join_all((0..100).map(|_| value(&extension.stores, "ssm:token"))).await {
        assert!(failed.is_err());
    }
    assert_eq!(extension.requests().len(), 1);
    extension.set_step(parameter("token-6"));
    extension.clock.advance(FAILED_MS - 1);
    assert!(value(&extension.stores, "ssm:token").await.is_err());
    extension.clock.advance(1);
    assert_eq!(value(&extension.stores, "ssm:token").await, Ok("token-6".to_owned()));
}

#[tokio::test]
async fn the_last_value_is_used_while_a_newer_one_is_unavailable() {
    let extension = ScriptedExtension::responding(parameter("last")).await;
    assert_eq!(value(&extension.stores, "ssm:token").await, Ok("last".to_owned()));
    extension.set_step(refusal("500 Oh"));
    extension.clock.advance(FRESH_MS + 1);
    let logged = Logged::at(Level::WARN);
    for used in join_all((0..100).map(|_| value(&extension.stores, "ssm:token"))).await {
        assert_eq!(used, Ok("last".to_owned()));
    }
    assert_eq!(extension.requests().len(), 2);
    let [line] = &logged.lines()[..] else { panic!("one warning") };
    assert_eq!((&line["message"], &line["secret"]), (&"secret.stale".into(), &"ssm:token".into()));
    extension.set_step(parameter("newer"));
    extension.clock.advance(29_999);
    assert_eq!(value(&extension.stores, "ssm:token").await, Ok("last".to_owned()));
    extension.clock.advance(1);
    assert_eq!(value(&extension.stores, "ssm:token").await, Ok("newer".to_owned()));
}

#[tokio::test]
async fn of_several_missing_secrets_the_first_is_reported() {
    let extension = ScriptedExtension::responding(secret_string("token-7")).await;
    let names = ["secretsmanager:billing", "env:ABSENT", "env:EMPTY"].map(name);
    let error = extension
        .stores
        .keyring(&names.iter().collect::<Vec<_>>(), &destination())
        .await
        .expect_err("two are missing");
    assert_eq!(error.name, names[1]);
}

#[tokio::test]
async fn debug_output_of_the_stores_shows_no_secret() {
    let extension = ScriptedExtension::responding(secret_string(SECRET_VALUE)).await;
    assert_eq!(
        value(&extension.stores, "secretsmanager:billing").await,
        Ok(SECRET_VALUE.to_owned())
    );
    let name = name("secretsmanager:billing");
    let keyring = extension.stores.keyring(&[&name], &destination()).await;
    let shown = format!("{:?} {keyring:?}", extension.stores);
    assert!(!shown.contains(SECRET_VALUE) && !shown.contains("session/token"), "{shown}");
}
