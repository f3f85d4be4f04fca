//! The AWS Parameters and Secrets Lambda Extension: a process beside the function that reads
//! secrets for it.
//!
//! Separate because it is a foreign interface, and instead of two more AWS clients: one GET on the
//! loopback address, and the layer keeps what is needed to talk to Secrets Manager and Parameter
//! Store. Everything is bounded: no proxy, no redirects, one deadline over all tries, and no more
//! than 128 KiB of an answer.
//! <https://docs.aws.amazon.com/systems-manager/latest/userguide/ps-integration-lambda-extensions.html>
//!
//! Promises that no error quotes an answer, whatever its status. Does not remember anything.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use delivery::ports::Clock;
use delivery::subscription::secret::Secret;
use reqwest::header::HeaderValue;
use reqwest::{Client, Response, StatusCode, redirect};
use serde_json::value::RawValue;
use thiserror::Error;
use url::Url;

/// The variable with the port of the extension.
pub const PORT: &str = "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT";
/// The variable with the token that shows the extension that we live beside it.
pub const TOKEN: &str = "AWS_SESSION_TOKEN";

/// Where it listens unless the variable says otherwise.
const DEFAULT_PORT: &str = "2773";
/// The header that the token travels in.
const TOKEN_HEADER: &str = "x-aws-parameters-secrets-token";
/// All tries of one question together end within this: it is asked before an attempt, in the time
/// of an invocation.
const DEADLINE: Duration = Duration::from_secs(3);
/// A secret has at most 64 KiB, which JSON may escape.
/// <https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html>
const ANSWER_MAX_BYTES: usize = 128 * 1_024;
/// What it answers, with a status of 400, until the runtime has said that it is ready. Nothing else
/// tells this from a wrong request.
const NOT_READY: &[u8] = b"not ready to serve traffic";
/// The wait before it is asked again then.
const NOT_READY_WAIT_MS: u64 = 100;
/// How often it is asked while it is not ready; the deadline comes about then.
const NOT_READY_TRIES: u32 = 25;

/// What the extension can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stored {
    /// A secret of Secrets Manager, by name or ARN.
    Secret(String),
    /// A parameter of Parameter Store, by name or ARN.
    Parameter(String),
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(id) => write!(f, "secretsmanager:{id}"),
            Self::Parameter(name) => write!(f, "ssm:{name}"),
        }
    }
}

/// Why the extension gave no value. No variant holds anything of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ExtensionError {
    #[error("{PORT} is no port")]
    NoPort,
    #[error(
        "nothing listens on 127.0.0.1:{0}, where the AWS Parameters and Secrets extension should be: set the template \
         parameter SecretsExtensionLayerArn to the ARN of its layer"
    )]
    Absent(u16),
    #[error("the connection to the secrets extension broke")]
    Broken,
    #[error("the secrets extension did not answer within {} seconds", DEADLINE.as_secs())]
    TimedOut,
    #[error("the secrets extension does not become ready")]
    NotReady,
    #[error(
        "the secrets extension answered with status {0}: perhaps it does not exist, or the template parameter \
         SecretArns does not name it"
    )]
    Refused(u16),
    #[error("its answer is longer than {ANSWER_MAX_BYTES} bytes")]
    TooLong,
    #[error("it holds bytes (SecretBinary), and only text can be used")]
    Binary,
    #[error("the secrets extension gave an answer that cannot be read")]
    Unreadable,
}

/// What came of one try.
enum Answer {
    Value(Secret),
    NotReady,
}

/// The extension beside this function.
pub(super) struct Extension {
    client: Client,
    /// `None` when the variable holds no port.
    port: Option<u16>,
    token: Option<HeaderValue>,
}

impl Extension {
    /// The extension as the environment describes it.
    pub(super) fn new(
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            // Plain HTTP only: no certificate is trusted, and none is read from the disk at a cold
            // start.
            .tls_certs_only([])
            // Asked every few minutes, with freezes between: a connection kept open would be a
            // broken one.
            .pool_max_idle_per_host(0)
            .build()?;
        let set = |name: &str| environment(name).filter(|text| !text.is_empty());
        let port = set(PORT).unwrap_or_else(|| DEFAULT_PORT.to_owned()).parse().ok();
        let token =
            set(TOKEN).and_then(|token| HeaderValue::from_str(&token).ok()).map(|mut token| {
                token.set_sensitive(true);
                token
            });
        Ok(Self { client, port, token })
    }

    /// The text of what is stored.
    pub(super) async fn ask(
        &self,
        stored: &Stored,
        clock: &impl Clock,
    ) -> Result<Secret, ExtensionError> {
        let port = self.port.ok_or(ExtensionError::NoPort)?;
        let until_ready = async {
            for _ in 0..NOT_READY_TRIES {
                match self.ask_once(stored, port).await? {
                    Answer::Value(value) => return Ok(value),
                    Answer::NotReady => clock.sleep(NOT_READY_WAIT_MS).await,
                }
            }
            Err(ExtensionError::NotReady)
        };
        tokio::time::timeout(DEADLINE, until_ready).await.unwrap_or(Err(ExtensionError::TimedOut))
    }

    async fn ask_once(&self, stored: &Stored, port: u16) -> Result<Answer, ExtensionError> {
        let mut request = self.client.get(question(stored, port)?);
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
            return value(stored, &body).map(Answer::Value);
        }
        let is_not_ready = body.windows(NOT_READY.len()).any(|window| window == NOT_READY);
        if status == StatusCode::BAD_REQUEST && is_not_ready {
            return Ok(Answer::NotReady);
        }
        Err(ExtensionError::Refused(status.as_u16()))
    }
}

/// The address that stands for a stored text. Slashes and colons of names are encoded, as the
/// extension wants it.
fn question(stored: &Stored, port: u16) -> Result<Url, ExtensionError> {
    let (path, pairs) = match stored {
        Stored::Secret(id) => ("secretsmanager/get", vec![("secretId", id.as_str())]),
        Stored::Parameter(name) => (
            "systemsmanager/parameters/get",
            vec![("name", name.as_str()), ("withDecryption", "true")],
        ),
    };
    Url::parse_with_params(&format!("http://127.0.0.1:{port}/{path}"), pairs)
        .map_err(|_| ExtensionError::NoPort)
}

/// The whole body, if it is not too long.
async fn body(mut response: Response) -> Result<Vec<u8>, ExtensionError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| ExtensionError::Broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_MAX_BYTES {
            return Err(ExtensionError::TooLong);
        }
    }
    Ok(body)
}

/// The value in an answer: that of `GetSecretValue` or of `GetParameter`, as the service gave it.
fn value(stored: &Stored, body: &[u8]) -> Result<Secret, ExtensionError> {
    let answer = members(body).ok_or(ExtensionError::Unreadable)?;
    let value = match stored {
        Stored::Secret(_) => match text(&answer, "SecretString") {
            None if text(&answer, "SecretBinary").is_some() => return Err(ExtensionError::Binary),
            value => value,
        },
        Stored::Parameter(_) => {
            let parameter =
                answer.get("Parameter").and_then(|parameter| members(parameter.get().as_bytes()));
            parameter.and_then(|parameter| text(&parameter, "Value"))
        }
    };
    value.map(Secret::new).ok_or(ExtensionError::Unreadable)
}

fn members(json: &[u8]) -> Option<BTreeMap<String, Box<RawValue>>> {
    serde_json::from_slice(json).ok()
}

fn text(members: &BTreeMap<String, Box<RawValue>>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stored: &Stored, body: &str) -> Result<String, ExtensionError> {
        value(stored, body.as_bytes()).map(|value| value.expose().to_owned())
    }

    #[test]
    fn a_value_is_found_where_each_service_puts_it() {
        let secret = Stored::Secret("s".to_owned());
        let parameter = Stored::Parameter("p".to_owned());
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
            (&parameter, "[]", Err(ExtensionError::Unreadable)),
            (&parameter, "", Err(ExtensionError::Unreadable)),
        ] {
            assert_eq!(read(stored, body), expected, "{stored}: {body}");
        }
    }

    #[test]
    fn names_travel_encoded() {
        let arn = "arn:aws:secretsmanager:eu-west-1:1:secret:a/b+c-AbCdEf";
        let asked = |stored| question(&stored, 2773).map(String::from);
        assert_eq!(
            asked(Stored::Secret(arn.to_owned())).as_deref(),
            Ok("http://127.0.0.1:2773/secretsmanager/get\
                ?secretId=arn%3Aaws%3Asecretsmanager%3Aeu-west-1%3A1%3Asecret%3Aa%2Fb%2Bc-AbCdEf")
        );
        assert_eq!(
            asked(Stored::Parameter("/a&b/c".to_owned())).as_deref(),
            Ok(
                "http://127.0.0.1:2773/systemsmanager/parameters/get?name=%2Fa%26b%2Fc&withDecryption=true"
            )
        );
    }
}
