//! Destinations that identify callers by AWS: a function URL and a server. The URL accepts requests
//! signed with credentials of a role. The server accepts a token about the function's own role.
//!
//! The emulated AWS verifies the signatures itself. Its tokens are signed with a well-known key
//! that everybody can use.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use delivery::subscription::aws::AwsService;
use hmac::{Hmac, KeyInit as _, Mac as _};
use lastmile_tests::scripted::ScriptedRequest;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::OnceCell;

use crate::stack::{Stack, script};
use crate::{ARRIVAL_LIMIT, Deployment, event, now, on_deployment};

const AUDIENCE: &str = "https://asked.example.com/";
/// The role of the template's parameter `InvokeRoleArn`.
const ROLE: &str = "calls-destinations";
/// The call that requests a token.
pub(crate) const TOKEN_CALL: &str = "sts:GetWebIdentityToken";
/// The beginning of all tokens of the emulated AWS: `{"alg":"HS256","typ":"JWT"}`.
const TOKEN_HEAD: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.";
const TOKEN_KEY: &[u8] = b"ministack-fake-key";

/// Returns these subscriptions:
///
/// - to the stack's own ingress, with and without a signature;
/// - with a token, and with an audience that the template does not allow;
/// - to the topic of the events that the ingress accepts.
pub(crate) fn subscriptions(stack: &Stack, peers: &super::Peers) -> String {
    let endpoint = peers.plain.endpoint();
    let url = stack.output("IngressUrl").trim_start_matches("https://");
    let (id, _) = url.split_once('.').expect("the name of the URL's host");
    // The path form of the emulated URL, because its host name would have to be resolved.
    let ingress = format!("{}/_aws/lambda-url/{id}/topics/asked/taken", stack.endpoint);
    let signed = "auth: {sigv4: {service: lambda, region: us-east-1}}".to_owned();
    let shown = |audience: &str| format!("auth: {{awsIdentity: {{audience: '{audience}'}}}}");
    let documents = [
        ("aws", "signed", ingress.clone(), signed),
        ("foreign", "unsigned", ingress, "probation: false".to_owned()),
        ("aws", "shown", format!("{endpoint}/shown"), shown(AUDIENCE)),
        ("foreign", "shown", format!("{endpoint}/shown"), shown("https://foreign.example.com/")),
        ("taken", "all", format!("{endpoint}/taken"), "probation: false".to_owned()),
    ]
    .map(|(topic, name, url, more)| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: asked, topic: {topic}, name: {name}}}\n\
             spec:\n  destination: {{url: '{url}', {more}}}\n  retry: {{maxAttempts: 3, schedule: {{kind: constant, delay: PT1S}}}}\n"
        )
    });
    documents.join("---\n")
}

/// Returns true if a request identifies the caller as its destination requires.
pub(super) fn is_accepted(request: &ScriptedRequest) -> bool {
    match request.head.split(' ').nth(1) {
        Some("/taken") => true,
        Some("/shown") => claims(request).is_some_and(|claims| claims["aud"] == AUDIENCE),
        Some(_) | None => false,
    }
}

fn header<'a>(request: &'a ScriptedRequest, name: &str) -> Option<&'a str> {
    let lines = request.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

/// Returns the verified claims of a token of the emulated AWS.
fn claims(request: &ScriptedRequest) -> Option<Value> {
    let token = header(request, "authorization")?.strip_prefix("Bearer ")?;
    let (signed, signature) = token.rsplit_once('.')?;
    let mut key = Hmac::<Sha256>::new_from_slice(TOKEN_KEY).ok()?;
    key.update(signed.as_bytes());
    key.verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
    let payload = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
    serde_json::from_slice(&payload).ok()
}

/// Creates the role for requests to destinations, once for all tests. It may use all AWS targets of
/// the tests but one.
pub(crate) async fn make_role(stack: &Stack) {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(|| async {
        let port = stack.endpoint.rsplit(':').next().expect("a port").to_owned();
        let invoke =
            json!({"Effect": "Allow", "Action": "lambda:InvokeFunctionUrl", "Resource": "*"});
        let actions = AwsService::ALL.map(AwsService::iam_action);
        let resources = ["*target*", "function:target", "stateMachine:target"];
        let resources =
            resources.map(|resource| format!("arn:aws:*:us-east-1:000000000000:{resource}"));
        let deliver = json!({"Effect": "Allow", "Action": actions, "Resource": resources});
        let policy = json!({"Version": "2012-10-17", "Statement": [invoke, deliver]}).to_string();
        let made = tokio::task::spawn_blocking(move || script("role.sh", &[&port, ROLE, &policy]));
        made.await.expect("role.sh runs");
    })
    .await;
}

#[test]
fn a_signature_of_the_role_and_a_token_of_the_function_are_accepted_and_nothing_else() {
    on_deployment(|Deployment { stack, peers, .. }: &Deployment| async move {
        make_role(stack).await;
        stack.publish("asked/aws", &event("asked-3")).await;
        stack.publish("asked/foreign", &event("asked-4")).await;
        let deadline = now() + ARRIVAL_LIMIT;
        let (mut taken, mut shown, mut letters) = (0, 0, Vec::new());
        while now() < deadline && (taken == 0 || shown == 0 || letters.len() < 2) {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            let requests = peers.plain.requests();
            let at = |path: &str| {
                let start = format!("POST {path} ");
                let of_kind = |request: &&ScriptedRequest| request.head.starts_with(&start);
                requests.iter().filter(of_kind).filter(|request| is_accepted(request)).count()
            };
            (taken, shown) = (at("/taken"), at("/shown"));
            letters = stack.dead_letters("asked/foreign/").await;
        }
        // Only the signed event passed the ingress.
        assert_eq!((taken, shown), (1, 1));
        let stored: Vec<String> = letters.iter().map(|(_, letter)| letter.to_string()).collect();
        let stored = stored.join("\n");
        for part in [
            "UndeliverableDueToHttpForbidden",
            "no token for https://foreign.example.com/: AccessDenied",
        ] {
            assert!(stored.contains(part), "{part} is not in {stored}");
        }
        let calls = stack.function_calls();
        let called = |action: &str, is_allowed: bool| {
            calls.iter().any(|call| call["action"] == action && call["allowed"] == is_allowed)
        };
        assert!(called("sts:AssumeRole", true), "{calls:#?}");
        assert!(called(TOKEN_CALL, true) && called(TOKEN_CALL, false), "{calls:#?}");
        let log = stack.server_log();
        for secret in ["AWS4-HMAC-SHA256 Credential=", TOKEN_HEAD] {
            assert!(
                !log.contains(secret) && !stored.contains(secret),
                "{secret} is logged or stored"
            );
        }
    });
}
