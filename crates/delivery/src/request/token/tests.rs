use super::*;
use crate::delivery::outcome::Content;

const SECRET: &str = "p+ss w/rd";

fn client(style: Style) -> ClientCredentials {
    ClientCredentials {
        token_url: "https://login.example.com:8443/token?tenant=acme".parse().expect("a URL"),
        client_id: "acme:größe".to_owned(),
        client_secret: "env:CLIENT".parse().expect("a name"),
        scope: Some("orders.write orders.read".to_owned()),
        audience: None,
        resource: Some("https://api.example.com/".to_owned()),
        style,
        parameters: vec![("tenant".to_owned(), "a&b".to_owned())],
    }
}

fn keyring() -> Keyring {
    let name = "env:CLIENT".parse().expect("a name");
    // A secret that was stored from a file often ends with a line feed.
    [(name, Secret::new(format!("{SECRET}\n")))].into_iter().collect()
}

fn answered(status: u16, body: &str) -> Exchange {
    let body = body.as_bytes().to_vec();
    let result = TransportResult::Answered { status, retry_after: None, body };
    let content = Content { whole: true, ..Content::default() };
    Exchange { content: Some(content), ..Exchange::new(result, 1_000, 50) }
}

fn granted_by(body: &str) -> Result<(String, u64), String> {
    let token = read(&client(Style::Basic), &keyring(), &answered(200, body))?;
    Ok((token.value.expose().to_owned(), token.until_ms))
}

#[test]
fn the_secret_of_a_client_is_in_the_header_or_in_the_form() {
    let asked = |style| ask(&client(style), None, &keyring()).expect("the secret is there");
    let rest =
        "scope=orders.write+orders.read&resource=https%3A%2F%2Fapi.example.com%2F&tenant=a%26b";
    let basic = asked(Style::Basic);
    assert_eq!(basic.body, format!("grant_type=client_credentials&{rest}"));
    // printf 'acme%%3Agr%%C3%%B6%%C3%%9Fe:p%%2Bss+w%%2Frd' | base64
    let header = "Basic YWNtZSUzQWdyJUMzJUI2JUMzJTlGZTpwJTJCc3MrdyUyRnJk";
    assert_eq!(basic.headers.last().map(|(_, value)| value.as_str()), Some(header));
    let post = asked(Style::Post);
    let of_client = "client_id=acme%3Agr%C3%B6%C3%9Fe&client_secret=p%2Bss+w%2Frd";
    assert_eq!(post.body, format!("grant_type=client_credentials&{of_client}&{rest}"));
    assert!(!post.headers.iter().any(|(name, _)| name == "authorization"));
    for request in [basic, post] {
        assert_eq!((request.timeout_ms, request.deliveries.len()), (TOKEN_TIMEOUT_MS, 0));
        assert_eq!(request.url, client(Style::Basic).token_url);
    }
    assert!(ask(&client(Style::Post), None, &Keyring::default()).is_err());
}

#[test]
fn a_token_is_used_until_a_minute_before_its_end() {
    for (expires_in, until_ms) in [
        ("3600", 1_000 + 3_540_000),
        ("\"3600\"", 1_000 + 3_540_000),
        ("120", 61_000),
        ("60", 31_000),
        ("10", 6_000),
        // These lifetimes are implausible. The token serves the waiting requests, or is used until
        // it is refused.
        ("0", 2_050),
        ("-5", 301_000),
        ("null", 301_000),
        ("1e3", 301_000),
        ("86400", 1_000 + 86_340_000),
        ("90000", 1_000 + 86_400_000),
        ("18446744073709551615", 1_000 + 86_400_000),
    ] {
        let body =
            format!(r#"{{"access_token":"t","token_type":"bearer","expires_in":{expires_in}}}"#);
        assert_eq!(granted_by(&body), Ok(("t".to_owned(), until_ms)), "{expires_in}");
    }
    let untold = granted_by(r#"{"access_token":"t.o-k~e+n/=="}"#);
    assert_eq!(untold, Ok(("t.o-k~e+n/==".to_owned(), 301_000)));
}

#[test]
fn why_there_is_no_token_is_told_without_a_secret() {
    let long = format!(r#"{{"access_token":"{}"}}"#, "x".repeat(TOKEN_MAX_BYTES + 1));
    for (body, why) in [
        ("", "the response is not a JSON object with an access_token"),
        (r#"{"token":"t"}"#, "the response is not a JSON object with an access_token"),
        (r#"{"access_token":7}"#, "the response is not a JSON object with an access_token"),
        (
            r#"{"access_token":""}"#,
            "the token is empty, or contains characters other than visible ASCII",
        ),
        (
            r#"{"access_token":"a b"}"#,
            "the token is empty, or contains characters other than visible ASCII",
        ),
        (
            r#"{"access_token":"a\r\nx: y"}"#,
            "the token is empty, or contains characters other than visible ASCII",
        ),
        (r#"{"access_token":"t","token_type":"DPoP"}"#, "the token type is not Bearer"),
        (&long, "the token has more than 16384 bytes"),
    ] {
        let problem = format!("no token from login.example.com:8443: {why}");
        assert_eq!(granted_by(body), Err(problem), "{body}");
    }
    let problem = |exchange: &Exchange| {
        read(&client(Style::Basic), &keyring(), exchange).expect_err("there is no token")
    };
    for (status, body, why) in [
        (
            401,
            r#"{"error":"invalid_client","error_description":"no p+ss w/rd"}"#,
            "the token server responded with 401, invalid_client",
        ),
        (400, r#"{"error":"no p+ss w/rd"}"#, "the token server responded with 400"),
        (302, "", "the token server responded with 302"),
        (204, "", "the token server responded with 204"),
        (500, "<html>", "the token server responded with 500"),
    ] {
        let problem = problem(&answered(status, body));
        assert_eq!(problem, format!("no token from login.example.com:8443: {why}"), "{body}");
    }
    let cut = Content { whole: false, ..Content::default() };
    let cut = Exchange { content: Some(cut), ..answered(200, r#"{"access_token":"t"}"#) };
    assert!(problem(&cut).ends_with("the response has more than 65536 bytes"));
    let broken =
        Exchange::new(TransportResult::SocketError, 0, 0).with_detail("p+ss w/rd was refused");
    assert!(problem(&broken).ends_with(": [secret] was refused"));
    let blocked = Exchange::new(TransportResult::Blocked, 0, 0);
    assert!(problem(&blocked).ends_with("the address is not allowed"));
}

#[test]
fn an_error_code_that_nobody_knows_is_not_quoted() {
    for code in ["hush-hush", "hsuh", "p+ss", "invalid_client2"] {
        let body = format!(r#"{{"error":"{code}"}}"#);
        let problem = read(&client(Style::Post), &keyring(), &answered(400, &body));
        let why = "no token from login.example.com:8443: the token server responded with 400";
        assert_eq!(problem, Err(why.to_owned()), "{code}");
    }
}

fn secret(value: &str) -> Secret {
    Secret::new(value.to_owned())
}

fn token(value: &str, until_ms: u64) -> Token {
    Token { value: secret(value), until_ms }
}

/// Stores the result of a token request, as the caller does.
fn keep(state: &mut TokenState, brought: Result<Token, String>, now_ms: u64) {
    let _ = state.keep(brought, now_ms);
}

#[test]
fn a_token_is_kept_until_it_ends_and_a_failure_for_seconds() {
    let mut state = TokenState::default();
    assert_eq!(state.current(0), None);
    keep(&mut state, Err("why".to_owned()), 1_000);
    assert_eq!(state.current(1_000), Some(Err("why".to_owned())));
    assert_eq!(state.current(5_999), Some(Err("why".to_owned())));
    assert_eq!(state.current(6_000), None);
    assert_eq!(state.keep(Ok(token("a", 60_000)), 6_000), Ok(secret("a")));
    assert_eq!(state.current(6_000), Some(Ok(secret("a"))));
    assert_eq!(state.current(59_999), Some(Ok(secret("a"))));
    assert_eq!(state.current(60_000), None);
}

#[test]
fn a_question_that_nobody_waited_for_is_asked_again_after_seconds() {
    let mut state = TokenState::default();
    assert_eq!(state.wait_ms(0), 0);
    state.ask(1_000);
    assert_eq!((state.current(1_001), state.wait_ms(1_001)), (None, 4_999));
    assert_eq!((state.current(6_000), state.wait_ms(6_000)), (None, 0));
    state.ask(6_000);
    assert_eq!(state.wait_ms(7_000), 4_000);
    keep(&mut state, Ok(token("a", 60_000)), 8_000);
    assert_eq!((state.current(8_000), state.wait_ms(8_000)), (Some(Ok(secret("a"))), 0));
}

#[test]
fn a_refused_token_is_replaced_once_a_minute_and_used_by_others_meanwhile() {
    let mut state = TokenState::default();
    keep(&mut state, Ok(token("a", 200_000)), 0);
    assert_eq!(state.refused(&secret("a"), 1_000), Refused::Ended);
    assert_eq!(state.current(1_000), Some(Ok(secret("a"))), "others may be accepted with it");
    keep(&mut state, Err("down".to_owned()), 1_050);
    assert_eq!(state.current(1_060), Some(Ok(secret("a"))));
    assert_eq!(state.refused(&secret("a"), 1_060), Refused::Stands);
    assert_eq!(state.refused(&secret("a"), 61_000), Refused::Ended);
    keep(&mut state, Ok(token("b", 200_000)), 61_100);
    // A request that was refused with the old token uses the new one.
    assert_eq!(state.refused(&secret("a"), 61_200), Refused::Use(secret("b")));
    assert_eq!(state.refused(&secret("b"), 61_200), Refused::Stands);
    assert_eq!(state.current(61_200), Some(Ok(secret("b"))));
    assert_eq!(state.refused(&secret("b"), 120_999), Refused::Stands);
    assert_eq!(state.refused(&secret("b"), 121_000), Refused::Ended);
    // An expired token is not reused.
    assert_eq!(state.refused(&secret("a"), 200_000), Refused::Ended);
}
