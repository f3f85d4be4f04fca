//! The AWS Parameters and Secrets Lambda Extension: a process beside the function that reads
//! secrets for it.
//!
//! Separate because it is an interface of AWS. The extension makes two more AWS clients
//! unnecessary: the function sends one GET to the loopback address, and the extension calls Secrets
//! Manager or Parameter Store.
//! <https://docs.aws.amazon.com/systems-manager/latest/userguide/ps-integration-lambda-extensions.html>
//!
//! Promises: no proxy, no redirects, one deadline over all tries, at most 128 KiB of a response. No
//! error quotes a response, whatever its status. Does not cache.

use std::fmt;
use std::time::Duration;

use delivery::ports::Clock;
use delivery::subscription::secret::Secret;
use reqwest::header::HeaderValue;
use reqwest::{Client, StatusCode, redirect};
use serde_json::Value;
use thiserror::Error;
use url::Url;

use crate::settings::{EXTENSION_PORT_DEFAULT, PARAMETERS_SECRETS_EXTENSION_HTTP_PORT};

/// Name of the variable with the port of the extension.
pub const PORT: &str = PARAMETERS_SECRETS_EXTENSION_HTTP_PORT;
/// Name of the variable with the token that authenticates the caller to the extension.
pub const TOKEN: &str = "AWS_SESSION_TOKEN";

const TOKEN_HEADER: &str = "x-aws-parameters-secrets-token";
/// Timeout of all tries together. Short, because the invocation waits for the secret.
const DEADLINE: Duration = Duration::from_secs(3);
/// Maximum size of a response. A secret is at most 64 KiB before JSON escapes it.
/// <https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html>
const RESPONSE_MAX_BYTES: usize = 128 * 1_024;
/// Body of the response with status 400 if the extension is not ready. Only this text distinguishes
/// it from the response to an invalid request.
const NOT_READY: &[u8] = b"not ready to serve traffic";
/// Wait before the next try if the extension is not ready.
const NOT_READY_WAIT_MS: u64 = 100;
/// Maximum number of tries while the extension is not ready. With the waits between them they take
/// at least 2.5 seconds, a little less than [`DEADLINE`].
const NOT_READY_TRIES: u32 = 25;

/// A secret that the extension can read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SecretId {
    /// The name or ARN of a secret in Secrets Manager.
    Secret(String),
    /// The name or ARN of a parameter in Parameter Store.
    Parameter(String),
}

impl fmt::Display for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(id) => write!(f, "secretsmanager:{id}"),
            Self::Parameter(name) => write!(f, "ssm:{name}"),
        }
    }
}

/// The reason why the extension returned no value. No variant contains any part of a response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ExtensionError {
    #[error("{PORT} is not a valid port")]
    NoPort,
    #[error(
        "the AWS Parameters and Secrets extension does not listen on 127.0.0.1:{0}: set the \
         template parameter SecretsExtensionLayerArn to the ARN of its layer; outside Lambda, use \
         env:NAME"
    )]
    Absent(u16),
    #[error("the connection to the secrets extension was lost")]
    Broken,
    #[error("the secrets extension did not respond within {} s", DEADLINE.as_secs())]
    TimedOut,
    #[error("the secrets extension did not become ready")]
    NotReady,
    #[error(
        "the secrets extension responded with status {0}: the secret may not exist, or the \
         template parameter SecretArns may not list it"
    )]
    Refused(u16),
    #[error("the response of the secrets extension is longer than {RESPONSE_MAX_BYTES} bytes")]
    TooLong,
    #[error("the secret is binary (SecretBinary); only text (SecretString) is supported")]
    Binary,
    #[error("the response of the secrets extension cannot be read")]
    Unreadable,
}

/// A client of the extension that runs beside this function.
pub(super) struct Extension {
    client: Client,
    /// The port of the extension; `None` if its variable is not a port.
    port: Option<u16>,
    token: Option<HeaderValue>,
}

impl Extension {
    /// Creates the client with the port and the token in the environment.
    pub(super) fn new(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            // Plain HTTP only: trust no certificates, so that none is read from the disk at a cold
            // start.
            .tls_certs_only([])
            // Calls are minutes apart, and the function is frozen in between. A pooled connection
            // would be broken by then.
            .pool_max_idle_per_host(0)
            .build()?;
        let set = |name: &str| environment(name).filter(|text| !text.is_empty());
        let port = set(PORT).unwrap_or_else(|| EXTENSION_PORT_DEFAULT.to_owned()).parse().ok();
        let mut token = set(TOKEN).and_then(|token| HeaderValue::from_str(&token).ok());
        // Keeps the value out of `Debug` output.
        token.iter_mut().for_each(|token| token.set_sensitive(true));
        Ok(Self { client, port, token })
    }

    /// Fetches the value of a secret.
    pub(super) async fn fetch(
        &self,
        id: &SecretId,
        clock: &impl Clock,
    ) -> Result<Secret, ExtensionError> {
        let port = self.port.ok_or(ExtensionError::NoPort)?;
        let until_ready = async {
            for _ in 0..NOT_READY_TRIES {
                if let Some(value) = self.fetch_once(id, port).await? {
                    return Ok(value);
                }
                // The extension starts at the same time as the function, so the first call may come
                // too early.
                clock.sleep(NOT_READY_WAIT_MS).await;
            }
            Err(ExtensionError::NotReady)
        };
        // The timeout covers the loop, because a single try has no limit of its own.
        tokio::time::timeout(DEADLINE, until_ready).await.unwrap_or(Err(ExtensionError::TimedOut))
    }

    /// Makes one try to fetch a secret; returns `None` if the extension is not ready.
    async fn fetch_once(&self, id: &SecretId, port: u16) -> Result<Option<Secret>, ExtensionError> {
        let mut request = self.client.get(url(id, port)?);
        if let Some(token) = &self.token {
            request = request.header(TOKEN_HEADER, token.clone());
        }
        let failed = |error: reqwest::Error| {
            if error.is_connect() { ExtensionError::Absent(port) } else { ExtensionError::Broken }
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let body = body(response).await?;
        if status == StatusCode::OK {
            return value(id, &body).map(Some);
        }
        let is_not_ready = body.windows(NOT_READY.len()).any(|window| window == NOT_READY);
        if status == StatusCode::BAD_REQUEST && is_not_ready {
            return Ok(None);
        }
        Err(ExtensionError::Refused(status.as_u16()))
    }
}

/// Returns the URL of a secret. Slashes and colons in names are encoded, as the extension requires.
fn url(id: &SecretId, port: u16) -> Result<Url, ExtensionError> {
    let (path, pairs) = match id {
        SecretId::Secret(id) => ("secretsmanager/get", vec![("secretId", id.as_str())]),
        SecretId::Parameter(name) => (
            "systemsmanager/parameters/get",
            vec![("name", name.as_str()), ("withDecryption", "true")],
        ),
    };
    Url::parse_with_params(&format!("http://127.0.0.1:{port}/{path}"), pairs)
        .map_err(|_| ExtensionError::NoPort)
}

/// Reads the whole body of a response, up to the limit.
async fn body(mut response: reqwest::Response) -> Result<Vec<u8>, ExtensionError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| ExtensionError::Broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > RESPONSE_MAX_BYTES {
            return Err(ExtensionError::TooLong);
        }
    }
    Ok(body)
}

/// Extracts the value from a response in the format of `GetSecretValue` or `GetParameter`.
fn value(id: &SecretId, body: &[u8]) -> Result<Secret, ExtensionError> {
    // Drop the error, because it might quote the response.
    let response: Value = serde_json::from_slice(body).map_err(|_| ExtensionError::Unreadable)?;
    let value = match id {
        SecretId::Secret(_) => &response["SecretString"],
        SecretId::Parameter(_) => &response["Parameter"]["Value"],
    };
    match (value.as_str(), id) {
        (Some(value), _) => Ok(Secret::new(value.to_owned())),
        // Parameters cannot be binary, so for them this member proves nothing.
        (None, SecretId::Secret(_)) if response["SecretBinary"].is_string() => {
            Err(ExtensionError::Binary)
        }
        (None, _) => Err(ExtensionError::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: &SecretId, body: &str) -> Result<String, ExtensionError> {
        value(id, body.as_bytes()).map(|value| value.expose().to_owned())
    }

    #[test]
    fn a_value_is_found_where_each_service_puts_it() {
        let secret = SecretId::Secret("s".to_owned());
        let parameter = SecretId::Parameter("p".to_owned());
        for (stored, body, expected) in [
            (
                &secret,
                r#"{"ARN":"a","SecretBinary":null,"SecretString":"gr\u00fc\"n"}"#,
                Ok("grü\"n".to_owned()),
            ),
            (
                &secret,
                r#"{"SecretBinary":"aHVzaA==","SecretString":null}"#,
                Err(ExtensionError::Binary),
            ),
            (&secret, r#"{"SecretBinary":"aHVzaA=="}"#, Err(ExtensionError::Binary)),
            (&secret, r#"{"Parameter":{"Value":"v"}}"#, Err(ExtensionError::Unreadable)),
            (
                &parameter,
                r#"{"Parameter":{"Name":"p","Value":"v","Version":1}}"#,
                Ok("v".to_owned()),
            ),
            (&parameter, r#"{"Parameter":"v"}"#, Err(ExtensionError::Unreadable)),
            (&parameter, r#"{"SecretBinary":"aHVzaA=="}"#, Err(ExtensionError::Unreadable)),
            (&parameter, "[]", Err(ExtensionError::Unreadable)),
            (&parameter, "", Err(ExtensionError::Unreadable)),
        ] {
            assert_eq!(read(stored, body), expected, "{stored}: {body}");
        }
    }

    #[test]
    fn names_are_encoded() {
        let arn = "arn:aws:secretsmanager:eu-west-1:1:secret:a/b+c-AbCdEf";
        let url = |id| url(&id, 2773).map(String::from);
        assert_eq!(
            url(SecretId::Secret(arn.to_owned())).as_deref(),
            Ok("http://127.0.0.1:2773/secretsmanager/get\
                ?secretId=arn%3Aaws%3Asecretsmanager%3Aeu-west-1%3A1%3Asecret%3Aa%2Fb%2Bc-AbCdEf")
        );
        assert_eq!(
            url(SecretId::Parameter("/a&b/c".to_owned())).as_deref(),
            Ok(
                "http://127.0.0.1:2773/systemsmanager/parameters/get?name=%2Fa%26b%2Fc&withDecryption=true"
            )
        );
    }
}
