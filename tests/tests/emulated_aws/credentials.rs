//! Destinations that accept only one caller. Each kind of `auth` delivers from the deployed
//! function, and a wrong secret ends as the policy states. No secret and no token is logged or
//! stored.
//!
//! The secrets are variables of the functions, which the emulated AWS takes from its own
//! environment.

pub(crate) mod of_aws;

use std::sync::{Arc, OnceLock};

use lastmile_tests::certificates::{Authority, ClientIdentity};
use lastmile_tests::scripted::{Script, Scripted, ScriptedRequest, Step, answer};

use super::{ARRIVAL_LIMIT, Deployment, event, now, on_deployment};

const PASSWORD: &str = "emulated-pass-word";
const TOKEN: &str = "emulated-t0ken";
const KEY: &str = "emulated-k3y/of+acme";
const CLIENT: &str = "emulated cl1ent: s+cret";
const GRANTED: &str = "emulated-granted-t0ken";
/// The kinds of `auth` that use a header: path, `auth` without the prefix of its variable, and the
/// header that the destination requires.
const KINDS: [(&str, &str, &str); 4] = [
    // printf 'acme:emulated-pass-word' | base64
    (
        "basic",
        "{basic: {user: acme, password: 'env:_PASSWORD'}}",
        "authorization: Basic YWNtZTplbXVsYXRlZC1wYXNzLXdvcmQ=",
    ),
    ("bearer", "{bearer: {token: 'env:_TOKEN'}}", "authorization: Bearer emulated-t0ken"),
    ("header", "{header: {name: x-partner, value: 'env:_KEY'}}", "x-partner: emulated-k3y/of+acme"),
    (
        "oauth2",
        "{oauth2: {tokenUrl: 'TOKENS', clientId: acme, clientSecret: 'env:_CLIENT', style: post}}",
        "authorization: Bearer emulated-granted-t0ken",
    ),
];
/// The part of the token request that has the right client secret.
const SHOWN_CLIENT: &str = "client_secret=emulated+cl1ent%3A+s%2Bcret";
const CERTIFICATE: &str =
    "{clientCertificate: {certificate: 'env:_CERTIFICATE', key: 'env:_CERTIFICATE_KEY'}}";

/// The destinations with access control.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Accepts requests with the right header, and grants tokens.
    plain: Scripted,
    /// Accepts requests with a client certificate.
    tls: Scripted,
}

/// The authorities of servers and clients, and a right and a wrong client certificate.
struct Certificates {
    servers: Authority,
    clients: Authority,
    right: ClientIdentity,
    wrong: ClientIdentity,
}

fn certificates() -> &'static Certificates {
    static CERTIFICATES: OnceLock<Certificates> = OnceLock::new();
    CERTIFICATES.get_or_init(|| {
        let [servers, clients, others] = [(); 3].map(|()| Authority::new().expect("a key"));
        let right = clients.client("right").expect("a key");
        let wrong = others.client("wrong").expect("a key");
        Certificates { servers, clients, right, wrong }
    })
}

/// Returns the variables of the functions: the right secrets and wrong ones.
pub(crate) fn variables() -> Vec<(String, String)> {
    let certificates = certificates();
    let named = |beginning: &str,
                 [password, token, key, client]: [&str; 4],
                 shown: &ClientIdentity| {
        let values = [("PASSWORD", password), ("TOKEN", token), ("KEY", key), ("CLIENT", client)];
        let certificate = [("CERTIFICATE", &*shown.certificate), ("CERTIFICATE_KEY", &*shown.key)];
        let all = values.into_iter().chain(certificate);
        all.map(|(name, value)| (format!("{beginning}_{name}"), value.to_owned()))
            .collect::<Vec<_>>()
    };
    let right = named("RIGHT", [PASSWORD, TOKEN, KEY, CLIENT], &certificates.right);
    let wrong = named("WRONG", ["wr0ng-1", "wr0ng-2", "wr0ng-3", "wr0ng-4"], &certificates.wrong);
    [right, wrong].concat()
}

/// Grants a token to the client and accepts requests with the right header. All others get 401 and
/// their own head.
fn decide(request: &ScriptedRequest) -> Vec<Step> {
    let body = String::from_utf8_lossy(&request.body);
    let json = [("content-type", "application/json")];
    if request.head.starts_with("POST /token ") {
        return vec![match body.contains(SHOWN_CLIENT) {
            true => answer(
                "200 OK",
                &json,
                format!(
                    r#"{{"access_token":"{GRANTED}","token_type":"Bearer","expires_in":3600}}"#
                )
                .as_bytes(),
            ),
            false => answer("401 Unauthorized", &json, br#"{"error":"invalid_client"}"#),
        }];
    }
    let is_accepted = |(kind, _, header): &(&str, &str, &str)| {
        request.head.starts_with(&format!("POST /{kind} ")) && request.head.contains(header)
    };
    vec![match KINDS.iter().any(is_accepted) || of_aws::is_accepted(request) {
        true => answer("200 OK", &[], b"welcome"),
        false => answer("401 Unauthorized", &[], format!("you sent {}", request.head).as_bytes()),
    }]
}

impl Peers {
    /// Starts the destinations on free ports.
    pub(crate) async fn start() -> Self {
        let plain = Scripted::start(decide).await.expect("a free port");
        let certificates = certificates();
        let config = certificates
            .servers
            .server_that_asks("127.0.0.1", &certificates.clients, true)
            .expect("a key");
        let script = Script::Answers(Arc::new(|_| vec![answer("200 OK", &[], b"welcome")]));
        let address = "127.0.0.1:0".parse().expect("an address");
        let tls = Scripted::serve(address, Some(config), script).await.expect("a free port");
        Self { plain, tls }
    }

    /// Returns a subscription of each kind with the right secret, and one with a wrong secret.
    pub(crate) fn subscriptions(&self) -> String {
        let subscription = |variables: &str, kind: &str, url: String, auth: &str, more: &str| {
            let auth = auth.replace("env:_", &format!("env:{variables}_"));
            let auth = auth.replace("TOKENS", &format!("{}/token", self.plain.endpoint()));
            let topic = variables.to_lowercase();
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: asked, topic: {topic}, name: {kind}}}\n\
                 spec:\n  destination: {{url: '{url}', auth: {auth}{more}}}\n  retry: {{maxAttempts: 1}}\n"
            )
        };
        let trusted = format!(", tls: {{caBundle: {:?}}}", certificates().servers.pem());
        let documents = |variables: &'static str| {
            let in_header = KINDS.map(|(kind, auth, _)| {
                subscription(variables, kind, format!("{}/{kind}", self.plain.endpoint()), auth, "")
            });
            let by_tls =
                subscription(variables, "certificate", self.tls.endpoint(), CERTIFICATE, &trusted);
            in_header.into_iter().chain([by_tls])
        };
        documents("RIGHT").chain(documents("WRONG")).collect::<Vec<_>>().join("---\n")
    }

    /// Returns the paths that received an event with the right header, and the number of events
    /// with the right certificate.
    fn accepted(&self) -> (Vec<&'static str>, usize) {
        let requests = self.plain.requests();
        let took = |(kind, _, header): &(&'static str, &str, &str)| {
            let is_accepted = |request: &ScriptedRequest| {
                request.head.starts_with(&format!("POST /{kind} ")) && request.head.contains(header)
            };
            requests.iter().any(is_accepted).then_some(*kind)
        };
        let right = &certificates().right.der;
        let by_tls = self
            .tls
            .requests()
            .into_iter()
            .filter(|request| request.certificate.as_ref() == Some(right));
        (KINDS.iter().filter_map(took).collect(), by_tls.count())
    }
}

#[test]
fn each_kind_of_auth_is_accepted_where_nobody_else_is_and_a_wrong_secret_is_a_dead_letter() {
    on_deployment(|Deployment { stack, peers, .. }: &Deployment| async move {
        stack.publish("asked/right", &event("asked-1")).await;
        stack.publish("asked/wrong", &event("asked-2")).await;
        let deadline = now() + ARRIVAL_LIMIT;
        let (mut letters, mut accepted) = (Vec::new(), (Vec::new(), 0));
        while now() < deadline
            && (letters.len() < KINDS.len() + 1
                || accepted.0.len() < KINDS.len()
                || accepted.1 == 0)
        {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            accepted = peers.accepted();
            letters = stack.dead_letters("asked/wrong/").await;
        }
        let refused_though_right = stack.dead_letters("asked/right/").await;
        assert!(refused_though_right.is_empty(), "{refused_though_right:#?}");
        assert_eq!(accepted, (KINDS.map(|(kind, ..)| kind).to_vec(), 1));
        let reasons: Vec<(String, String)> = letters
            .iter()
            .map(|(key, letter)| {
                let reason = &letter["deadletterProperties"]["deadletterreasoncode"];
                (key.split('/').take(3).collect::<Vec<_>>().join("/"), reason.to_string())
            })
            .collect();
        let unauthorized = "\"UndeliverableDueToHttpUnauthorized\"".to_owned();
        let exceeded = "\"MaxDeliveryAttemptsExceeded\"".to_owned();
        for (kind, reason) in [
            ("basic", &unauthorized),
            ("bearer", &unauthorized),
            ("header", &unauthorized),
            // Without a token, no request is made. The wrong certificate ends the connection.
            ("oauth2", &exceeded),
            ("certificate", &exceeded),
        ] {
            let expected = (format!("asked/wrong/{kind}"), reason.clone());
            assert!(reasons.contains(&expected), "{expected:?} in {reasons:?}");
        }
        assert_eq!(reasons.len(), KINDS.len() + 1);
        let written = format!("{letters:?}{}", stack.server_log());
        assert!(
            written.contains("no token from 127.0.0.1")
                && written.contains("the endpoint refused the client certificate"),
            "{letters:#?}"
        );
        let keys = [&certificates().right, &certificates().wrong]
            .map(|identity| identity.key.lines().nth(1).expect("its bytes"));
        let values =
            [PASSWORD, TOKEN, KEY, CLIENT, GRANTED, "YWNtZTplbXVsYXRlZC1wYXNzLXdvcmQ", "wr0ng-"];
        let found: Vec<&str> =
            values.into_iter().chain(keys).filter(|value| written.contains(value)).collect();
        assert!(found.is_empty(), "{found:?} is logged or stored");
    });
}
