//! A token for a destination: the request to its token server, what the answer means, and when another is fetched.
//!
//! OAuth 2.0 with the credentials of a client (RFC 6749, 4.4 and 5). Pure: the exchange with the token server is made
//! by whoever keeps a [`TokenState`], one at a time for each client.
//!
//! Promises: no error quotes more of an answer than the error code of RFC 6749, 5.2, and never a secret. A token is used
//! until a minute before its end, or for half of its life if that is shorter, and a day at most. A failure is remembered for a few seconds, so that
//! many deliveries at once ask once. After a token was refused another is fetched once a minute at most.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::tls::RequestTls;
use super::{ANSWER_MAX_BYTES, Method, Request};
use crate::delivery::outcome::{Exchange, TransportResult};
use crate::subscription::auth::oauth2::{ClientCredentials, Style};
use crate::subscription::credentials::Credentials;
use crate::subscription::host_of;
use crate::subscription::secret::{Keyring, Secret};
use crate::subscription::tls::CaBundle;
use crate::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};

/// A token server has this long to answer.
pub const TOKEN_TIMEOUT_MS: u64 = 10 * SECOND_MS;
/// A token is not used any more this long before it ends.
const ENDS_EARLY_MS: u64 = MINUTE_MS;
/// How long a token is used of which the server does not say when it ends.
const UNTOLD_LIFE_MS: u64 = 5 * MINUTE_MS;
/// A token is not used for longer, whatever its server says.
const LIFE_MAX_MS: u64 = DAY_MS;
/// However early a token ends, it is used for what waited for it.
const LIFE_MIN_MS: u64 = SECOND_MS;
/// After a failure the token server is not asked for this long.
const FAILED_FOR_MS: u64 = 5 * SECOND_MS;
/// A refused token is replaced at most once in this time.
const REPLACED_EVERY_MS: u64 = MINUTE_MS;
/// The longest token: with it the headers of a request are still accepted by most servers.
const TOKEN_MAX_BYTES: usize = 16 * 1_024;
/// The longest error code that is quoted.
const CODE_MAX_CHARS: usize = 60;

/// A token, and until when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    value: Secret,
    until_ms: u64,
}

/// What is known of the token of one client.
#[derive(Debug, Default)]
pub struct TokenState {
    token: Option<Token>,
    /// When no token could be had, and why.
    failed: Option<(u64, String)>,
    /// When a token was replaced that had been refused.
    replaced_ms: Option<u64>,
}

/// What follows from a token that a destination refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is another one by now.
    Use(Secret),
    /// There is none any more: as for any request that needs one.
    Ended,
    /// The refusal stands: another one was fetched a moment ago.
    Stands,
}

impl TokenState {
    /// The token, or why there is none; `None` when the server has to be asked.
    #[must_use]
    pub fn current(&self, now_ms: u64) -> Option<Result<Secret, String>> {
        match (&self.token, &self.failed) {
            (Some(token), _) if now_ms < token.until_ms => Some(Ok(token.value.clone())),
            (_, Some((failed_ms, why))) if now_ms.abs_diff(*failed_ms) < FAILED_FOR_MS => {
                Some(Err(why.clone()))
            }
            (_, _) => None,
        }
    }

    /// What follows from the refusal of this token, which nobody uses any more then, unless one was replaced a moment
    /// ago.
    pub fn refused(&mut self, token: &Secret, now_ms: u64) -> Refused {
        let Some(known) = &self.token else { return Refused::Ended };
        if known.value != *token {
            // It was fetched meanwhile.
            return Refused::Use(known.value.clone());
        }
        let is_early = |at_ms: u64| now_ms.abs_diff(at_ms) < REPLACED_EVERY_MS;
        if self.replaced_ms.is_some_and(is_early) {
            return Refused::Stands;
        }
        *self = Self { replaced_ms: Some(now_ms), ..Self::default() };
        Refused::Ended
    }

    /// Keeps what asking the server brought.
    pub fn keep(&mut self, fetched: Result<Token, String>, now_ms: u64) {
        match fetched {
            Ok(token) => (self.token, self.failed) = (Some(token), None),
            Err(why) => self.failed = Some((now_ms, why)),
        }
    }
}

/// The request for a token; it carries no delivery.
///
/// # Errors
/// When the secret of the client was not looked up.
pub fn ask(
    client: &ClientCredentials,
    ca_bundle: Option<&CaBundle>,
    keyring: &Keyring,
    timeout_ms: u64,
) -> Result<Request, String> {
    let secret = keyring.get(&client.client_secret);
    let secret = secret.map(|secret| secret.expose().trim());
    let secret = secret.ok_or_else(|| format!("{} was not looked up", client.client_secret))?;
    let mut headers = vec![
        ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ("accept".to_owned(), "application/json".to_owned()),
    ];
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    match client.style {
        Style::Basic => headers.push(("authorization".to_owned(), basic(client, secret))),
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
        timeout_ms,
        answer_max_bytes: ANSWER_MAX_BYTES,
        // Its server may be beside the destination.
        tls: RequestTls { ca_bundle: ca_bundle.cloned(), identity: None },
        deliveries: Vec::new(),
    })
}

/// Both are encoded as in a form before they are joined (RFC 6749, 2.3.1).
fn basic(client: &ClientCredentials, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(&client.client_id), encoded(secret));
    format!("Basic {}", STANDARD.encode(pair))
}

/// The token in the answer to [`ask`].
///
/// # Errors
/// Why there is none, with the host of the server, and without anything secret.
pub fn read(
    client: &ClientCredentials,
    keyring: &Keyring,
    exchange: &Exchange,
) -> Result<Token, String> {
    granted(exchange).map_err(|why| {
        let mut credentials = Credentials::default();
        if let Some(secret) = keyring.get(&client.client_secret) {
            credentials.add(secret.expose().trim().as_bytes());
            credentials.add_header(&basic(client, secret.expose().trim()));
        }
        let why = credentials.hide_in_text(why);
        format!("no token from {}: {why}", host_of(&client.token_url))
    })
}

fn granted(exchange: &Exchange) -> Result<Token, String> {
    let detail = |otherwise: &str| exchange.detail.clone().unwrap_or_else(|| otherwise.to_owned());
    let (status, body) = match &exchange.result {
        TransportResult::Answered { status, body, .. } => (*status, body),
        TransportResult::TimedOut => return Err(detail("no answer in time")),
        TransportResult::SocketError => return Err(detail("the connection was refused or broken")),
        TransportResult::ResolutionError => return Err(detail("its name does not resolve")),
        TransportResult::TlsError => return Err(detail("its certificate was refused")),
        TransportResult::Blocked => return Err(detail("its address is not allowed")),
        TransportResult::Unsendable | TransportResult::Aborted => {
            return Err(detail("the request was not sent"));
        }
    };
    if status != 200 {
        let code = error_code(body).map_or_else(String::new, |code| format!(", {code}"));
        return Err(format!("it answered {status}{code}"));
    }
    if exchange.content.as_ref().is_some_and(|content| !content.whole) {
        return Err(format!("its answer has more than {ANSWER_MAX_BYTES} bytes"));
    }
    token(body, exchange)
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<Value>,
}

/// The token of a successful answer (RFC 6749, 5.1).
fn token(body: &[u8], exchange: &Exchange) -> Result<Token, String> {
    // The error of the reader is dropped: it may quote the answer.
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|_| "its answer is not a JSON object with an access_token".to_owned())?;
    if answer.token_type.is_some_and(|of| !of.eq_ignore_ascii_case("bearer")) {
        return Err("its token is of another type than Bearer".to_owned());
    }
    let value = answer.access_token;
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("its access_token is not a text of visible characters".to_owned());
    }
    if value.len() > TOKEN_MAX_BYTES {
        return Err(format!("its access_token has more than {TOKEN_MAX_BYTES} bytes"));
    }
    let life_ms =
        answer.expires_in.as_ref().and_then(seconds).map(|of| of.saturating_mul(SECOND_MS));
    let until_ms = match life_ms {
        Some(life_ms) => {
            let used_ms = life_ms.saturating_sub(ENDS_EARLY_MS.min(life_ms / 2)).min(LIFE_MAX_MS);
            exchange.started_ms.saturating_add(used_ms)
        }
        None => exchange.started_ms.saturating_add(UNTOLD_LIFE_MS),
    };
    let until_ms = until_ms.max(exchange.ended_ms().saturating_add(LIFE_MIN_MS));
    Ok(Token { value: Secret::new(value), until_ms })
}

/// Seconds; some servers write them as text.
fn seconds(expires_in: &Value) -> Option<u64> {
    match expires_in {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The code of a refusal (RFC 6749, 5.2), if it looks like one.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let Refusal { error } = serde_json::from_slice(body).ok()?;
    let is_code = error.len() <= CODE_MAX_CHARS
        && error.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    is_code.then_some(error)
}

#[cfg(test)]
mod tests;
