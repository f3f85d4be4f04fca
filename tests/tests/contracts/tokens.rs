//! `Tokens` with a token server that hangs, floods, redirects, or is at a forbidden address. Such a
//! server is bounded, refused and reported.

use delivery::subscription::Tls;
use std::time::Duration;

use adapters::aws_identity::Identity;
use adapters::http::HttpSender;
use adapters::machine::Machine;
use adapters::secrets::SecretStores;
use adapters::tokens::{CommandPorts, Tokens};
use delivery::ports::{AwsIdentity as _, Clock as _};
use delivery::request::ANSWER_MAX_BYTES;
use delivery::subscription::Destination;
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::oauth2::{ClientCredentials, Style};
use delivery::subscription::secret::Secret;
use delivery::subscription::tls::CaBundle;
use futures::future::join_all;
use lastmile_tests::scripted::{Scripted, Step, answer};

use crate::http::sender;

const SECRET: &str = "hush-hush";

fn ports(sender: HttpSender) -> CommandPorts {
    let secrets = SecretStores::new(|_, _| Some(SECRET.to_owned()), Machine);
    let secrets = secrets.expect("an HTTP client can be built");
    CommandPorts { sender, secrets, identity: Identity::of_person(|_| true) }
}

fn destination(server: &str, timeout_ms: u64) -> Destination {
    let client = ClientCredentials {
        token_url: format!("{server}/token").parse().expect("a URL"),
        client_id: "acme".to_owned(),
        client_secret: "env:CLIENT".parse().expect("a name"),
        scope: None,
        audience: None,
        resource: None,
        style: Style::Post,
        parameters: Vec::new(),
    };
    let url = "https://destination.example.com/".parse().expect("a URL");
    Destination { auth: Some(Auth::OAuth2(Box::new(client))), ..Destination::new(url, timeout_ms) }
}

/// The identity of a person who runs a command is shown only to hosts that this person allows.
#[test]
fn who_is_calling_is_shown_to_those_alone_whom_a_person_allows() {
    let identity = Identity::of_person(|to| to.host() == "own.example.com");
    let ports = CommandPorts { identity, ..ports(sender()) };
    let to = |url: &str| Destination::new(url.parse().expect("a URL"), 1_000);
    assert_eq!(ports.identity.may_show(&to("https://own.example.com/")), Ok(()));
    let refused =
        ports.identity.may_show(&to("https://other.example.com/")).expect_err("it is not allowed");
    assert!(refused.contains("other.example.com") && refused.contains("--identity"), "{refused}");
}

#[test]
fn a_command_has_the_time_of_its_machine() {
    let (before_ms, now_ms) = (Machine.now_ms(), ports(sender()).now_ms());
    assert!((before_ms..=Machine.now_ms()).contains(&now_ms), "{now_ms}");
}

async fn token(server: &str, timeout_ms: u64) -> Result<String, String> {
    let destination = destination(server, timeout_ms);
    let keyring = Tokens::default().keyring(&ports(sender()), &destination).await?;
    Ok(keyring.token().map(Secret::expose).unwrap_or_default().to_owned())
}

/// The reason why a server that runs these steps after each request gives no token.
async fn refusal(steps: &[Step], timeout_ms: u64) -> String {
    let script = steps.to_vec();
    let server = Scripted::start(move |_| script.clone()).await.expect("a free port");
    let why = token(&server.endpoint(), timeout_ms).await.expect_err("no token");
    assert!(why.starts_with("no token from 127.0.0.1:") && !why.contains(SECRET), "{why}");
    assert_eq!(server.requests().len(), 1);
    why
}

#[tokio::test]
async fn a_token_server_that_lies_is_bounded_refused_and_told() {
    let hangs = refusal(&[Step::Silence], 300).await;
    assert!(hangs.contains(" within 300 ms"), "{hangs}");
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{{", 10 * 1_024 * 1_024);
    let floods = [Step::Write(head.into_bytes()), Step::Flood(vec![b' '; 1_024])];
    let floods = refusal(&floods, 60_000).await;
    assert!(floods.contains(&format!("more than {ANSWER_MAX_BYTES} bytes")), "{floods}");
    let to = [("location", "http://169.254.169.254/latest/meta-data/")];
    let redirects = refusal(&[answer("302 Found", &to, b"")], 60_000).await;
    assert!(redirects.contains("responded with 302"), "{redirects}");
    let echoes = format!("{{\"error\": \"{SECRET}\"}}");
    let echoes = refusal(&[answer("400 Bad Request", &[], echoes.as_bytes())], 60_000).await;
    assert!(echoes.contains("responded with 400"), "{echoes}");
}

#[tokio::test]
async fn a_token_server_at_a_private_address_is_not_asked() {
    for server in ["http://10.0.0.1", "https://169.254.169.254", "http://[fd00::1]"] {
        let why = token(server, 60_000).await.expect_err("it is not allowed");
        assert!(why.starts_with("no token from "), "{why}");
    }
}

#[tokio::test]
async fn many_at_once_ask_once() {
    let body = br#"{"access_token":"one","token_type":"bearer","expires_in":3600}"#;
    let server = Scripted::start(|_| vec![answer("200 OK", &[], body)]).await.expect("a free port");
    let (ports, tokens) = (ports(sender()), Tokens::default());
    let destination = destination(&server.endpoint(), 60_000);
    let all = (0..1_000).map(|_| tokens.keyring(&ports, &destination));
    for keyring in join_all(all).await {
        assert_eq!(
            keyring.map(|keyring| keyring.token().map(|token| token.expose().to_owned())),
            Ok(Some("one".to_owned()))
        );
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let body = String::from_utf8_lossy(&requests[0].body).into_owned();
    assert_eq!(body, "grant_type=client_credentials&client_id=acme&client_secret=hush-hush");
}

/// A server that grants a token after this long.
async fn slow_server(wait: Duration) -> Scripted {
    let body = br#"{"access_token":"one","token_type":"bearer","expires_in":3600}"#;
    Scripted::start(move |_| vec![Step::Pause(wait), answer("200 OK", &[], body)])
        .await
        .expect("a free port")
}

#[tokio::test]
async fn who_gives_up_early_and_whom_other_authorities_vouch_for_is_no_failure_of_others() {
    let server = slow_server(Duration::from_secs(1)).await;
    let (ports, tokens) = (ports(sender()), Tokens::default());
    let [hasty, patient] = [100, 60_000].map(|ms| destination(&server.endpoint(), ms));
    let (first, second) =
        tokio::join!(tokens.keyring(&ports, &hasty), tokens.keyring(&ports, &patient));
    let why = first.expect_err("it waits for 100 ms");
    assert!(
        why.starts_with("no token from 127.0.0.1:") && why.ends_with(" within 100 ms"),
        "{why}"
    );
    assert!(second.expect("it waits").token().is_some());
    // The token is known now.
    assert!(tokens.keyring(&ports, &hasty).await.is_ok());
    // A destination that trusts other authorities gets its own token.
    let authority = lastmile_tests::certificates::Authority::new().expect("a key");
    let ca_bundle = CaBundle::new(&authority.pem()).expect("a certificate");
    let other = Destination { tls: Some(Tls { ca_bundle }), ..patient };
    assert!(tokens.keyring(&ports, &other).await.is_ok());
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn who_waits_behind_another_waits_no_longer_than_its_own_timeout() {
    let server = Scripted::start(|_| vec![Step::Silence]).await.expect("a free port");
    let (ports, tokens) = (ports(sender()), Tokens::default());
    let [patient, hasty] = [60_000, 100].map(|ms| destination(&server.endpoint(), ms));
    let asking = tokens.keyring(&ports, &patient);
    let waiting = tokens.keyring(&ports, &hasty);
    tokio::select! {
        biased;
        of_patient = asking => panic!("the server grants nothing: {of_patient:?}"),
        of_hasty = waiting => assert!(of_hasty.expect_err("no token").ends_with(" within 100 ms")),
    }
}
