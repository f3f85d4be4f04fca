//! `Secrets`: every name that was asked for is in the keyring, with a value that was right a few
//! minutes ago; no value is ever shown.
//!
//! The extension of AWS is a scripted server here, and the clock stands still until a test moves
//! it.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use adapters::machine::Machine;
use adapters::secrets::{PORT, SecretStores, TOKEN};
use delivery::ports::{Clock, SecretError, Secrets};
use delivery::subscription::secret::{Secret, SecretName};
use futures::future::join_all;
use lastmile_tests::scripted::{Asked, Scripted, Step, answer};
use tokio::net::TcpListener;

/// What no message may show.
const HUSH: &str = "hush-hush";
/// A value is used for this long, less a moment.
const FRESH_MS: u64 = 5 * 60 * 1_000 - 1;
/// A failure without a last value is remembered no longer.
const FAILED_MS: u64 = 5_000;
/// A look-up may outlast its deadline of three seconds by this much, on a busy machine.
const DEADLINE_MS: u64 = 3_000;
const GRACE_MS: u64 = 1_500;

/// A clock that moves when it is told to, or slept by.
#[derive(Clone, Default)]
struct Standing(Arc<AtomicU64>);

impl Standing {
    fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Standing {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    async fn sleep(&self, wait_ms: u64) {
        self.pass(wait_ms);
        tokio::task::yield_now().await;
    }
}

/// An extension, what it answers from now on, and stores that ask it.
struct Beside {
    server: Scripted,
    says: Arc<Mutex<Vec<Step>>>,
    clock: Standing,
    stores: SecretStores<Standing>,
}

impl Beside {
    async fn saying(step: Step) -> Self {
        let says = Arc::new(Mutex::new(vec![step]));
        let script = Arc::clone(&says);
        let server = Scripted::start(move |_| script.lock().expect("no panic").clone())
            .await
            .expect("a free port");
        let clock = Standing::default();
        let stores = stores(&server, clock.clone());
        Self { server, says, clock, stores }
    }

    fn says(&self, step: Step) {
        *self.says.lock().expect("no panic") = vec![step];
    }

    fn asked(&self) -> Vec<Asked> {
        self.server.asked()
    }
}

fn stores<C: Clock + Send + Sync>(server: &Scripted, clock: C) -> SecretStores<C> {
    let endpoint = server.endpoint();
    let port = endpoint.rsplit(':').next().expect("a port").to_owned();
    stores_at(port, clock)
}

fn stores_at<C: Clock + Send + Sync>(port: String, clock: C) -> SecretStores<C> {
    let environment = move |name: &str| match name {
        PORT => Some(port.clone()),
        TOKEN => Some("session/token==".to_owned()),
        "BILLING" => Some("from-the-environment".to_owned()),
        "EMPTY" => Some(String::new()),
        "AWS_SECRET_ACCESS_KEY" => Some(HUSH.to_owned()),
        _ => None,
    };
    SecretStores::with_clock(environment, clock).expect("TLS works")
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap_or_else(|problem| panic!("{problem}"))
}

async fn value(secrets: &impl Secrets, text: &str) -> Result<String, SecretError> {
    let name = name(text);
    let keyring = secrets.keyring(&[&name]).await?;
    Ok(keyring.get(&name).map(Secret::expose).expect("what was asked for is there").to_owned())
}

/// What is told about a secret that cannot be had: its name, and nothing of what was answered.
async fn problem(secrets: &impl Secrets, text: &str) -> String {
    let error = value(secrets, text).await.expect_err(text);
    assert_eq!(error.name, name(text));
    let said = format!("{error} {error:?}");
    assert!(!said.contains(HUSH), "{said}");
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
    answer(status, &[], HUSH.as_bytes())
}

#[tokio::test]
async fn a_variable_is_read_from_the_environment() {
    let beside = Beside::saying(refusal("500 Oh")).await;
    assert_eq!(value(&beside.stores, "env:BILLING").await, Ok("from-the-environment".to_owned()));
    assert!(problem(&beside.stores, "env:ABSENT").await.contains("no such variable"));
    assert!(problem(&beside.stores, "env:EMPTY").await.contains("empty"));
    assert_eq!(beside.asked(), []);
}

#[tokio::test]
async fn the_function_s_own_credentials_are_no_secret_to_send() {
    let beside = Beside::saying(refusal("500 Oh")).await;
    // No file can name them; should anybody else, they are refused once more.
    for variable in ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "aws_session_token"] {
        let name = SecretName::Environment(variable.to_owned());
        assert!(format!("env:{variable}").parse::<SecretName>().is_err());
        let error = beside.stores.keyring(&[&name]).await.expect_err(variable);
        assert!(error.problem.contains("AWS_") && !error.problem.contains(HUSH), "{error}");
    }
}

#[tokio::test]
async fn a_secret_is_asked_for_with_its_name_encoded_and_the_token() {
    let beside = Beside::saying(secret_string("token-1")).await;
    let text =
        "secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/billing-AbCdEf";
    assert_eq!(value(&beside.stores, text).await, Ok("token-1".to_owned()));
    let [asked] = &beside.asked()[..] else { panic!("one request is expected") };
    let line = "GET /secretsmanager/get?secretId=arn%3Aaws%3Asecretsmanager%3Aeu-west-1%3A123456789012%3Asecret%3A\
                prod%2Fbilling-AbCdEf HTTP/1.1\r\n";
    assert!(asked.head.starts_with(line), "{}", asked.head);
    assert_eq!(asked.header("x-aws-parameters-secrets-token"), Some("session/token=="));
}

#[tokio::test]
async fn a_parameter_is_asked_for_decrypted() {
    let beside = Beside::saying(parameter("token-2")).await;
    assert_eq!(value(&beside.stores, "ssm:/billing/token").await, Ok("token-2".to_owned()));
    let [asked] = &beside.asked()[..] else { panic!("one request is expected") };
    let line = "GET /systemsmanager/parameters/get?name=%2Fbilling%2Ftoken&withDecryption=true HTTP/1.1\r\n";
    assert!(asked.head.starts_with(line), "{}", asked.head);
    assert_eq!(asked.header("x-aws-parameters-secrets-token"), Some("session/token=="));
}

#[tokio::test]
async fn the_members_of_one_secret_are_one_look_up() {
    let beside =
        Beside::saying(secret_string(r#"{"user": "acme", "pin": 0042e1, "hush-hush": []}"#)).await;
    assert!(
        problem(&beside.stores, "secretsmanager:billing#user").await.contains("not a JSON object")
    );
    beside.clock.pass(FRESH_MS + 1);
    beside.says(secret_string(r#"{"user": "acme", "pin": 42.0, "list": ["hush-hush"]}"#));
    let names =
        ["env:BILLING", "secretsmanager:billing#user", "secretsmanager:billing#pin"].map(name);
    let keyring =
        beside.stores.keyring(&names.iter().collect::<Vec<_>>()).await.expect("all are there");
    let values = names.iter().map(|name| keyring.get(name).map(Secret::expose)).collect::<Vec<_>>();
    assert_eq!(values, [Some("from-the-environment"), Some("acme"), Some("42.0")]);
    assert!(
        problem(&beside.stores, "secretsmanager:billing#password").await.contains("no such member")
    );
    assert!(problem(&beside.stores, "secretsmanager:billing#list").await.contains("not a string"));
    assert_eq!(beside.asked().len(), 2);
}

#[tokio::test]
async fn a_refusal_tells_its_status_and_nothing_of_its_text() {
    for (status, code) in [
        ("400 Bad Request", "400"),
        ("401 Unauthorized", "401"),
        ("500 Oh", "500"),
        ("302 Go", "302"),
    ] {
        let beside =
            Beside::saying(answer(status, &[("location", "/secretsmanager/get")], HUSH.as_bytes()))
                .await;
        let problem = problem(&beside.stores, "secretsmanager:billing").await;
        assert!(problem.contains(code) && problem.contains("SecretArns"), "{problem}");
        assert_eq!(beside.asked().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_is_no_text_is_no_secret() {
    let long = format!(r#"{{"SecretString": "{}"}}"#, HUSH.repeat(20_000));
    for (body, says) in [
        (r#"{"SecretBinary": "aHVzaC1odXNo", "SecretString": null}"#, "SecretBinary"),
        (r#"{"SecretString": "hush-hush"#, "cannot be read"),
        (r#"{"SecretString": ["hush-hush"]}"#, "cannot be read"),
        ("hush-hush", "cannot be read"),
        (r#"{"SecretString": ""}"#, "empty"),
        (&long, "longer than"),
    ] {
        let beside = Beside::saying(answer("200 OK", &[], body.as_bytes())).await;
        let problem = problem(&beside.stores, "secretsmanager:billing").await;
        assert!(problem.contains(says), "{problem}");
    }
}

#[tokio::test]
async fn without_the_extension_the_problem_says_how_to_add_it() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let problem_at =
        async |port: String| problem(&stores_at(port, Machine), "ssm:/billing/token").await;
    let problem = problem_at(port.to_string()).await;
    assert!(
        problem.contains(&format!("127.0.0.1:{port}"))
            && problem.contains("SecretsExtensionLayerArn"),
        "{problem}"
    );
    assert!(problem_at("27730000".to_owned()).await.contains(PORT));
}

#[tokio::test]
async fn an_extension_that_is_not_ready_is_asked_again() {
    let tries = AtomicU64::new(0);
    let not_ready = || answer("400 Bad Request", &[], b"not ready to serve traffic, please wait");
    let script = move |_: &Asked| {
        let is_ready = tries.fetch_add(1, Ordering::SeqCst) == 3;
        vec![if is_ready { parameter("token-3") } else { not_ready() }]
    };
    let server = Scripted::start(script).await.expect("a free port");
    assert_eq!(value(&stores(&server, Machine), "ssm:token").await, Ok("token-3".to_owned()));
    assert_eq!(server.asked().len(), 4);

    let never = Beside::saying(not_ready()).await;
    assert!(problem(&never.stores, "ssm:token").await.contains("ready"));
}

#[tokio::test]
async fn a_look_up_ends_within_its_deadline() {
    let drip = [answer_head(), Step::Drip(b' ')];
    join_all([vec![Step::Silence], drip.to_vec()].map(async |steps| {
        let server = Scripted::start(move |_| steps.clone()).await.expect("a free port");
        let stores = stores(&server, Machine);
        let before_ms = Machine.now_ms();
        assert!(problem(&stores, "ssm:token").await.contains("within 3 seconds"));
        let took_ms = Machine.now_ms() - before_ms;
        assert!((DEADLINE_MS..=DEADLINE_MS + GRACE_MS).contains(&took_ms), "{took_ms} ms");
    }))
    .await;
}

/// The head of an answer whose body does not come to its end.
fn answer_head() -> Step {
    Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_vec())
}

#[tokio::test]
async fn a_hundred_who_ask_at_once_share_one_look_up() {
    let beside = Beside::saying(secret_string("token-4")).await;
    let asked = join_all((0..100).map(|_| value(&beside.stores, "secretsmanager:billing"))).await;
    assert!(asked.iter().all(|value| value.as_deref() == Ok("token-4")), "{asked:?}");
    assert_eq!(beside.asked().len(), 1);
}

#[tokio::test]
async fn an_asker_who_leaves_takes_no_answer_with_it() {
    let beside = Beside::saying(Step::Silence).await;
    {
        let impatient = value(&beside.stores, "secretsmanager:billing");
        let gone = tokio::time::timeout(std::time::Duration::from_millis(50), impatient).await;
        assert!(gone.is_err(), "{gone:?}");
    }
    beside.says(secret_string("token-5"));
    assert_eq!(value(&beside.stores, "secretsmanager:billing").await, Ok("token-5".to_owned()));
}

#[tokio::test]
async fn a_value_is_used_for_five_minutes_and_then_asked_for_again() {
    let beside = Beside::saying(secret_string("old")).await;
    assert_eq!(value(&beside.stores, "secretsmanager:billing").await, Ok("old".to_owned()));
    beside.says(secret_string("new"));
    beside.clock.pass(FRESH_MS);
    assert_eq!(value(&beside.stores, "secretsmanager:billing").await, Ok("old".to_owned()));
    beside.clock.pass(1);
    let asked = join_all((0..100).map(|_| value(&beside.stores, "secretsmanager:billing"))).await;
    assert!(asked.iter().all(|value| value.as_deref() == Ok("new")), "{asked:?}");
    assert_eq!(beside.asked().len(), 2);
}

#[tokio::test]
async fn a_failure_is_remembered_for_a_few_seconds() {
    let beside = Beside::saying(refusal("500 Oh")).await;
    for failed in join_all((0..100).map(|_| value(&beside.stores, "ssm:token"))).await {
        assert!(failed.is_err());
    }
    assert_eq!(beside.asked().len(), 1);
    beside.says(parameter("token-6"));
    beside.clock.pass(FAILED_MS);
    assert_eq!(value(&beside.stores, "ssm:token").await, Ok("token-6".to_owned()));
}

#[tokio::test]
async fn the_last_value_is_used_while_there_is_no_newer_one() {
    let beside = Beside::saying(parameter("last")).await;
    assert_eq!(value(&beside.stores, "ssm:token").await, Ok("last".to_owned()));
    beside.says(refusal("500 Oh"));
    beside.clock.pass(FRESH_MS + 1);
    for used in join_all((0..100).map(|_| value(&beside.stores, "ssm:token"))).await {
        assert_eq!(used, Ok("last".to_owned()));
    }
    assert_eq!(beside.asked().len(), 2);
    beside.says(parameter("newer"));
    beside.clock.pass(60_000);
    assert_eq!(value(&beside.stores, "ssm:token").await, Ok("newer".to_owned()));
}

#[tokio::test]
async fn of_several_names_the_first_that_cannot_be_had_is_told() {
    let beside = Beside::saying(secret_string("token-7")).await;
    let names = ["secretsmanager:billing", "env:ABSENT", "env:EMPTY"].map(name);
    let error = beside
        .stores
        .keyring(&names.iter().collect::<Vec<_>>())
        .await
        .expect_err("two are missing");
    assert_eq!(error.name, names[1]);
}

#[tokio::test]
async fn nothing_that_prints_the_stores_shows_a_secret() {
    let beside = Beside::saying(secret_string(HUSH)).await;
    assert_eq!(value(&beside.stores, "secretsmanager:billing").await, Ok(HUSH.to_owned()));
    let name = name("secretsmanager:billing");
    let keyring = beside.stores.keyring(&[&name]).await;
    let shown = format!("{:?} {keyring:?}", beside.stores);
    assert!(!shown.contains(HUSH) && !shown.contains("session/token"), "{shown}");
}
