//! Requests that the sender signs, the role whose credentials it signs with, and tokens in which AWS says who is calling.
//!
//! The signatures below are those that botocore 1.43.127 makes of the same requests. What it makes of others, in a process
//! of its own, is compared in `crates/cli/tests/cli/sigv4.rs`.

use adapters::aws_identity::Identity;
use adapters::http::sigv4::Signed;
use adapters::machine::Machine;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use delivery::delivery::outcome::TransportResult;
use delivery::ports::{AwsIdentity as _, Clock as _};
use delivery::request::Request;
use delivery::request::signer::Signer;
use delivery::request::token::TokenState;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::auth::sigv4::{SigningScope, SigningService};
use delivery::subscription::secret::{AwsCredentials, Secret};
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use delivery::time::moment;
use lastmile_tests::scripted::{Scripted, answer};
use serde_json::json;

use crate::http::{LONG_MS, exchange_with, request, sender};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "session-t0ken/of+acme==";
/// 2026-11-23T12:00:00Z.
const AT_MS: u64 = 1_795_435_200_000;
const ROLE: &str = "arn:aws:iam::123456789012:role/invoke";

fn signer(service: SigningService, token: Option<&str>) -> Signer {
    Signer {
        scope: (&SigningScope { service, region: "eu-west-1".to_owned() }).into(),
        credentials: AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new(SECRET.to_owned()),
            session_token: token.map(|token| Secret::new(token.to_owned())),
        },
    }
}

#[test]
fn signatures_are_those_of_botocore() {
    let (of_token, token) = ("x-amz-date;x-amz-security-token", Some(TOKEN));
    for (service, url, token, names, signature) in [
        (
            SigningService::ExecuteApi,
            "https://abc.execute-api.eu-west-1.amazonaws.com/prod/a%20b/%C3%BC?b=2&a=1%20/",
            token,
            format!("content-type;host;{of_token}"),
            "650c3e62097c3a27d18936583b2c627d9b43e89d00aa2b3cd9681b1de18199fd",
        ),
        (
            SigningService::Lambda,
            "https://abc.lambda-url.eu-west-1.on.aws/",
            None,
            "content-type;host;x-amz-date".to_owned(),
            "5b842d5958ce913bc4d1a75e43511a830cc21eb0dc395c073e1990103662344c",
        ),
        // A user is no part of the host.
        (
            SigningService::Lambda,
            "https://user:pass@abc.lambda-url.eu-west-1.on.aws:443/",
            None,
            "content-type;host;x-amz-date".to_owned(),
            "5b842d5958ce913bc4d1a75e43511a830cc21eb0dc395c073e1990103662344c",
        ),
        (
            SigningService::VpcLattice,
            "https://svc.example.com:8443/in",
            token,
            format!("content-type;host;x-amz-content-sha256;{of_token}"),
            "896777da459ed8b08f3cc803cbf2386d44d94d9a92bf596e9e3ca883bcbbeb14",
        ),
    ] {
        let signed = Signed::sign(&request(url, 1), &signer(service, token), AT_MS);
        let headers = signed.expect("it can be signed").headers;
        let value = |wanted: &str| {
            headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        let scope = format!("AKIDEXAMPLE/20261123/eu-west-1/{}/aws4_request", service.as_str());
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signature}"
        );
        assert_eq!(value("authorization"), Some(expected.as_str()));
        assert_eq!(value("x-amz-security-token"), token);
        assert_eq!(value("x-amz-date"), Some("20261123T120000Z"));
        let unsigned = (!service.signs_body()).then_some("UNSIGNED-PAYLOAD");
        assert_eq!(value("x-amz-content-sha256"), unsigned, "{}", service.as_str());
    }
}

#[tokio::test]
async fn what_the_sender_adds_is_sent_once_and_hidden_in_what_comes_back() {
    let echo = |received: &lastmile_tests::scripted::ScriptedRequest| {
        let body = format!("{}\r\nthat was all", received.head);
        vec![answer("403 Forbidden", &[("location", "/elsewhere")], body.as_bytes())]
    };
    let server = Scripted::start(echo).await.expect("a free port");
    let signer = Some(signer(SigningService::Lambda, Some(TOKEN)));
    let mut request = Request { signer, ..request(&server.endpoint(), LONG_MS) };
    // Its own headers are sent, but for those that a signature adds.
    let own = [("x-own", "1"), ("authorization", "Bearer other"), ("X-Amz-Date", "then")];
    request.headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let exchange = exchange_with(&sender(), &request).await;
    let received = server.requests();
    let head = &received[0].head;
    assert_eq!(received[0].header("x-own"), Some("1"));
    assert!(received[0].header("authorization").is_some_and(|value| value.starts_with("AWS4-")));
    for (name, times) in
        [("authorization:", 1), ("x-amz-security-token:", 1), ("x-amz-date:", 1), ("host:", 1)]
    {
        assert_eq!(head.to_lowercase().matches(&format!("\r\n{name}")).count(), times, "{head}");
    }
    let TransportResult::Answered { status: 403, body, .. } = &exchange.result else {
        panic!("{exchange:?}")
    };
    let body = String::from_utf8_lossy(body);
    assert!(body.contains("that was all"), "{body}");
    let (_, signature) = received[0].header("authorization").unwrap().rsplit_once('=').unwrap();
    for value in [signature, SECRET, "Signature=", "AKIDEXAMPLE"] {
        assert!(!body.contains(value), "{value} in {body}");
    }
}

/// Clients of the function, with STS at this address.
fn config(endpoint: &str) -> SdkConfig {
    let own =
        Credentials::new("AKIDFUNCTION", "own-secret", Some("own-token".to_owned()), None, "");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(own))
        .build()
}

/// An answer of STS.
fn assumed(expires: &str) -> Vec<u8> {
    format!(
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials>\
         <AccessKeyId>AKIDROLE</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>\
         <SessionToken>{TOKEN}</SessionToken><Expiration>{expires}</Expiration>\
         </Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
    .into_bytes()
}

#[tokio::test]
async fn a_function_signs_as_the_role_it_assumes_and_never_as_itself() {
    let end_ms = in_an_hour_ms();
    let answers = move |_: &_| vec![answer("200 OK", &[], &assumed(&moment::rfc3339(end_ms)))];
    let sts = Scripted::start(answers).await.expect("a free port");
    let identity = Identity::of_role(&config(&sts.endpoint()), Some(ROLE.to_owned()));
    assert_eq!(sts.connections(), 0, "nobody is asked before it is needed");
    let granted = identity.signing_credentials().await;
    let mut state = TokenState::default();
    state.keep(granted, 0).expect("granted");
    let credentials = state.current(end_ms - 60_001).expect("known").expect("granted");
    assert_eq!(credentials.access_key_id, "AKIDROLE");
    assert_eq!(credentials.session_token, Some(Secret::new(TOKEN.to_owned())));
    assert_eq!(state.current(end_ms - 60_000), None, "not in its last minute");
    let requests = sts.requests();
    let form = String::from_utf8_lossy(&requests[0].body).into_owned();
    let role = ROLE.replace(':', "%3A").replace('/', "%2F");
    assert!(form.contains("Action=AssumeRole&") && form.contains(&role), "{form}");
    assert!(form.contains("RoleSessionName=lastmile"), "{form}");
    assert!(requests[0].head.contains("AKIDFUNCTION"), "its own role asks");
}

#[tokio::test]
async fn a_session_of_the_role_is_denied_the_resources_of_the_deployment() {
    let answers = |_: &_| vec![answer("200 OK", &[], &assumed(&moment::rfc3339(in_an_hour_ms())))];
    let sts = Scripted::start(answers).await.expect("a free port");
    let function = "arn:aws:lambda:eu-west-1:123456789012:function:own*";
    let own = ["arn:aws:sqs:eu-west-1:123456789012:own-*", function, "arn:aws:s3:::own"];
    for denied in [&own[..], &[]] {
        let identity = Identity::of_role(&config(&sts.endpoint()), Some(ROLE.to_owned()));
        let identity = identity.denying(denied.iter().copied());
        identity.signing_credentials().await.expect("granted");
    }
    let policy = |index: usize| {
        let form = &sts.requests()[index].body;
        let mut fields = url::form_urlencoded::parse(form);
        let policy = fields.find(|(name, _)| name == "Policy").map(|(_, value)| value.into_owned());
        policy.map(|text| serde_json::from_str::<serde_json::Value>(&text).expect("JSON"))
    };
    let statements = policy(0).expect("a policy")["Statement"].clone();
    let all = json!({ "Effect": "Allow", "Action": "*", "Resource": "*" });
    let by_url = ["lambda:InvokeFunction", "lambda:InvokeFunctionUrl"];
    let denied = json!({ "Effect": "Deny", "NotAction": by_url, "Resource": own });
    let called = json!({
        "Effect": "Deny",
        "Action": "lambda:InvokeFunction",
        "Resource": [function],
        "Condition": { "BoolIfExists": { "lambda:InvokedViaFunctionUrl": "false" } },
    });
    assert_eq!(statements, json!([all, denied, called]));
    assert_eq!(policy(1), None);
}

#[tokio::test]
async fn why_there_are_no_credentials_is_told() {
    let denied = b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>\
                   <Message>not you</Message></Error></ErrorResponse>";
    let sts =
        Scripted::start(|_| vec![answer("403 Forbidden", &[], denied)]).await.expect("a port");
    for (role, why) in [
        (
            None,
            "no role is set for signing requests: set the template parameter InvokeRoleArn, which \
             sets the function's environment variable INVOKE_ROLE_ARN"
                .to_owned(),
        ),
        (Some(ROLE), format!("the role {ROLE} cannot be assumed: AccessDenied: not you")),
    ] {
        let identity = Identity::of_role(&config(&sts.endpoint()), role.map(ToOwned::to_owned));
        assert_eq!(identity.signing_credentials().await.expect_err("none"), why);
    }
    assert_eq!(sts.requests().len(), 1);
}

/// In whole seconds.
fn in_an_hour_ms() -> u64 {
    Machine.now_ms() / SECOND_MS * SECOND_MS + HOUR_MS
}

fn identity_of(audience: &str) -> WebIdentity {
    WebIdentity { audience: audience.to_owned(), lifetime_ms: 600_000 }
}

#[tokio::test]
async fn a_token_is_asked_for_by_the_functions_own_role_for_one_audience() {
    let end_ms = in_an_hour_ms();
    let expires = moment::rfc3339(end_ms);
    let body = format!(
        "<GetWebIdentityTokenResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetWebIdentityTokenResult>\
         <WebIdentityToken>{TOKEN}</WebIdentityToken><Expiration>{expires}</Expiration>\
         </GetWebIdentityTokenResult></GetWebIdentityTokenResponse>"
    );
    let answers = move |_: &_| vec![answer("200 OK", &[], body.as_bytes())];
    let sts = Scripted::start(answers).await.expect("a free port");
    let identity = Identity::of_role(&config(&sts.endpoint()), None);
    let mut state = TokenState::default();
    let granted = identity.web_identity_token(&identity_of("https://them/")).await;
    state.keep(granted, 0).expect("granted");
    let token = Ok(Secret::new(TOKEN.to_owned()));
    assert_eq!(state.current(end_ms - 60_001), Some(token));
    assert_eq!(state.current(end_ms - 60_000), None, "not in its last minute");
    let requests = sts.requests();
    let form = String::from_utf8_lossy(&requests[0].body).into_owned();
    assert_eq!(
        form,
        "Action=GetWebIdentityToken&Version=2011-06-15&Audience.member.1=https%3A%2F%2Fthem%2F\
         &DurationSeconds=600&SigningAlgorithm=RS256"
    );
    assert!(requests[0].head.contains("AKIDFUNCTION"), "its own role asks");
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_told() {
    let long = "x".repeat(20_000);
    for (token, why) in [
        (
            "",
            "no token for them: the token is empty, or contains characters other than visible ASCII",
        ),
        (
            "a b",
            "no token for them: the token is empty, or contains characters other than visible ASCII",
        ),
        (long.as_str(), "no token for them: the token has more than 16384 bytes"),
    ] {
        let body = format!(
            "<GetWebIdentityTokenResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetWebIdentityTokenResult>\
             <WebIdentityToken>{token}</WebIdentityToken></GetWebIdentityTokenResult></GetWebIdentityTokenResponse>"
        );
        let answers = move |_: &_| vec![answer("200 OK", &[], body.as_bytes())];
        let sts = Scripted::start(answers).await.expect("a free port");
        let identity = Identity::of_role(&config(&sts.endpoint()), None);
        let error = identity.web_identity_token(&identity_of("them")).await.expect_err("none");
        assert_eq!(error, why);
    }
}

#[tokio::test]
async fn an_account_without_federation_is_told() {
    for (code, why) in [
        (
            "OutboundWebIdentityFederationDisabledException",
            "no token for them: outbound identity federation is off in this account; turn it on \
             with aws iam enable-outbound-web-identity-federation",
        ),
        ("AccessDenied", "no token for them: AccessDenied: not you"),
    ] {
        let body = format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>not you</Message></Error></ErrorResponse>"
        );
        let answers = move |_: &_| vec![answer("403 Forbidden", &[], body.as_bytes())];
        let sts = Scripted::start(answers).await.expect("a free port");
        let identity = Identity::of_role(&config(&sts.endpoint()), None);
        let error = identity.web_identity_token(&identity_of("them")).await.expect_err("none");
        assert_eq!(error, why);
    }
}
