//! Composes token requests, reads the responses, and decides when to fetch a new token.
//!
//! The protocol is OAuth 2.0 with client credentials (RFC 6749, 4.4 and 5). This module is pure.
//! The owner of a [`TokenState`] sends the requests, one at a time for each client.
//!
//! An error never quotes a secret. The only part of a response that it may quote is an error code
//! of RFC 6749, 5.2.

mod state;

use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

pub use self::state::{Refused, Token, TokenState};
use super::request::{ANSWER_MAX_BYTES, Needs, Request};
use super::tls::RequestTls;
use crate::delivery::outcome::{Exchange, TransportResult};
use crate::subscription::Method;
use crate::subscription::auth::oauth2::{ClientCredentials, Style};
use crate::subscription::credentials::Credentials;
use crate::subscription::host_of;
use crate::subscription::secret::{Keyring, Secret};
use crate::subscription::tls::CaBundle;
use crate::time::duration::{MINUTE_MS, SECOND_MS};

/// Timeout of a request to a token server.
pub const TOKEN_TIMEOUT_MS: u64 = 10 * SECOND_MS;
/// Time for which a token is used if the server does not state its lifetime.
const UNTOLD_LIFE_MS: u64 = 5 * MINUTE_MS;
/// Maximum length of a token. Most servers accept headers of this size.
const TOKEN_MAX_BYTES: usize = 16 * 1_024;
/// The error codes that messages quote. Other texts in a response may be secret (RFC 6749, 5.2 and
/// 4.1.2.1; RFC 8707, 2).
const CODES: [&str; 10] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "invalid_target",
    "unauthorized_client",
    "unsupported_grant_type",
    "access_denied",
    "server_error",
    "temporarily_unavailable",
];

/// Composes the request for a token.
///
/// # Errors
///
/// Fails if the secret of the client was not loaded.
pub fn ask(
    client: &ClientCredentials,
    ca_bundle: Option<&CaBundle>,
    keyring: &Keyring,
) -> Result<Request, String> {
    let secret = keyring.get(&client.client_secret);
    let secret = secret.map(|secret| secret.expose().trim());
    let secret = secret.ok_or_else(|| format!("{} was not loaded", client.client_secret))?;
    let mut headers = vec![
        ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ("accept".to_owned(), "application/json".to_owned()),
    ];
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    match client.style {
        Style::Basic => headers.push(("authorization".to_owned(), client.basic(secret))),
        Style::Post => {
            form.append_pair("client_id", &client.client_id).append_pair("client_secret", secret);
        }
    }
    let ClientCredentials { scope, audience, resource, parameters, .. } = client;
    for (name, value) in [("scope", scope), ("audience", audience), ("resource", resource)] {
        form.extend_pairs(value.iter().map(|value| (name, value)));
    }
    form.extend_pairs(parameters);
    Ok(Request {
        method: Method::Post,
        url: client.token_url.clone(),
        headers,
        body: form.finish().into(),
        timeout_ms: TOKEN_TIMEOUT_MS,
        needs: Needs::Body,
        answer_max_bytes: ANSWER_MAX_BYTES,
        // The certificate of the token server may be issued by the same authority as that of the
        // destination.
        tls: RequestTls { ca_bundle: ca_bundle.cloned(), identity: None },
        signer: None,
        hidden: Vec::new(),
        deliveries: Vec::new(),
    })
}

/// Returns the token in the response to a token request.
///
/// # Errors
/// The reason why there is no token. It contains the host of the server and no secrets.
pub fn read(
    client: &ClientCredentials,
    keyring: &Keyring,
    exchange: &Exchange,
) -> Result<Token, String> {
    granted(exchange).map_err(|why| {
        let mut credentials = Credentials::default();
        if let Some(secret) = keyring.get(&client.client_secret) {
            credentials.add(secret.expose().trim().as_bytes());
            credentials.add_header(&client.basic(secret.expose().trim()));
        }
        credentials.add_url(&client.token_url);
        client.parameters.iter().for_each(|(_, value)| credentials.add(value.as_bytes()));
        let why = credentials.hide_in_text(why);
        format!("no token from {}: {why}", host_of(&client.token_url))
    })
}

fn granted(exchange: &Exchange) -> Result<Token, String> {
    let detail = |otherwise: &str| exchange.detail.clone().unwrap_or_else(|| otherwise.to_owned());
    let (status, body) = match &exchange.result {
        TransportResult::Answered { status, body, .. } => (*status, body),
        TransportResult::TimedOut => return Err(detail("no response in time")),
        TransportResult::SocketError => return Err(detail("the connection was refused or closed")),
        TransportResult::ResolutionError => return Err(detail("the host name does not resolve")),
        TransportResult::TlsError => return Err(detail("the certificate was not accepted")),
        TransportResult::Blocked => return Err(detail("the address is not allowed")),
        TransportResult::Unsendable | TransportResult::Aborted => {
            return Err(detail("the request was not sent"));
        }
    };
    if status != 200 {
        let code = error_code(body).map_or_else(String::new, |code| format!(", {code}"));
        return Err(format!("the token server responded with {status}{code}"));
    }
    if exchange.content.as_ref().is_some_and(|content| !content.whole) {
        return Err(format!("the response has more than {ANSWER_MAX_BYTES} bytes"));
    }
    token(body, exchange)
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<Value>,
}

/// Returns the token in a successful response (RFC 6749, 5.1).
fn token(body: &[u8], exchange: &Exchange) -> Result<Token, String> {
    // The parser's error is dropped, because it may quote the response.
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|_| "the response is not a JSON object with an access_token".to_owned())?;
    if answer.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token type is not Bearer".to_owned());
    }
    let value = checked(answer.access_token)?;
    let life_ms = answer
        .expires_in
        .as_ref()
        .and_then(seconds)
        .map(|seconds| seconds.saturating_mul(SECOND_MS));
    let (asked_ms, answered_ms, value) = (exchange.started_ms, exchange.ended_ms(), value);
    Ok(match life_ms {
        Some(life_ms) => {
            Token::ending(value, asked_ms, answered_ms, asked_ms.saturating_add(life_ms))
        }
        None => Token::used_until(value, answered_ms, asked_ms.saturating_add(UNTOLD_LIFE_MS)),
    })
}

/// Checks that a header can contain the token.
///
/// # Errors
/// A description of the problem, without the token.
pub fn checked(token: String) -> Result<Secret, String> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "the token is empty, or contains characters other than visible ASCII".to_owned()
        );
    }
    if token.len() > TOKEN_MAX_BYTES {
        return Err(format!("the token has more than {TOKEN_MAX_BYTES} bytes"));
    }
    Ok(Secret::new(token))
}

/// Parses a number of seconds. Some servers send it as a string.
fn seconds(expires_in: &Value) -> Option<u64> {
    match expires_in {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the error code of a response if it is one of [`CODES`]. Any other text is dropped,
/// because it may be a secret.
fn error_code(body: &[u8]) -> Option<&'static str> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let Refusal { error } = serde_json::from_slice(body).ok()?;
    CODES.into_iter().find(|code| **code == error)
}

#[cfg(test)]
mod tests;
