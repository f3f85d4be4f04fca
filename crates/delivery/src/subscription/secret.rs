//! Secrets: their names in subscriptions, and their values once they are loaded.
//!
//! This module is separate because a secret's value must never reach a log, a message or a dead
//! letter. Documents contain only [`SecretName`]s. The values are put in a [`Keyring`] just before
//! a request is composed, and are dropped with the keyring. Printing a [`Secret`] or a [`Keyring`]
//! shows no value. The port `ports::Secrets` loads values.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The name of a secret, which includes its store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretName {
    /// `env:NAME`: an environment variable of the dispatch function.
    Environment(String),
    /// `secretsmanager:ID` or `secretsmanager:ID#MEMBER`: the whole text of a secret in AWS Secrets
    /// Manager, or one member of its JSON.
    SecretsManager {
        /// The name or ARN of the secret in Secrets Manager.
        id: String,
        /// The member of the JSON object in the secret; `None` for the whole text.
        member: Option<String>,
    },
    /// `ssm:NAME`: a decrypted parameter of AWS Systems Manager Parameter Store.
    Parameter(String),
}

/// The syntax of secret names, for error messages.
pub const SECRET_NAME_RULE: &str =
    "a secret is env:NAME, secretsmanager:ID, secretsmanager:ID#MEMBER or ssm:NAME";

/// Prefixes of variables that Lambda, the AWS SDK or the dynamic loader set or read. Some of these
/// variables contain the function's credentials.
const RESERVED_PREFIXES: [&str; 5] = ["AWS_", "LAMBDA_", "LD_", "LC_", "_X_AMZN_"];
/// Names of other variables that Lambda sets or reads. They have no common prefix.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
const RESERVED_NAMES: [&str; 7] = ["_HANDLER", "LANG", "LANGUAGE", "PATH", "PWD", "TZ", "_"];

/// The rule for names of environment variables, for error messages.
pub const VARIABLE_RULE: &str = "choose a variable that Lambda and the AWS SDK do not use: not AWS_…, LAMBDA_…, LD_…, LC_…, _X_AMZN_…, \
     _HANDLER, LANG, LANGUAGE, PATH, PWD, TZ or _";

/// Returns true if an environment variable must never be sent as a secret. Case is ignored.
#[must_use]
pub fn is_reserved_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || RESERVED_NAMES.contains(&name.as_str())
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "env:{name}"),
            Self::SecretsManager { id, member: None } => write!(f, "secretsmanager:{id}"),
            Self::SecretsManager { id, member: Some(member) } => {
                write!(f, "secretsmanager:{id}#{member}")
            }
            Self::Parameter(name) => write!(f, "ssm:{name}"),
        }
    }
}

impl FromStr for SecretName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || Err(format!("\"{text}\" is not the name of a secret: {SECRET_NAME_RULE}"));
        let printable = text.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        match text.split_once(':') {
            Some((_, "")) | None => invalid(),
            Some(_) if !printable => invalid(),
            Some(("env", name)) if is_reserved_variable(name) => {
                Err(format!("the variable \"{text}\" is reserved and is not sent: {VARIABLE_RULE}"))
            }
            Some(("env", name)) if !name.contains('=') => Ok(Self::Environment(name.to_owned())),
            Some(("ssm", name)) => Ok(Self::Parameter(name.to_owned())),
            Some(("secretsmanager", id)) => match id.split_once('#') {
                None => Ok(Self::SecretsManager { id: id.to_owned(), member: None }),
                Some(("", _) | (_, "")) => invalid(),
                Some((id, member)) => {
                    Ok(Self::SecretsManager { id: id.to_owned(), member: Some(member.to_owned()) })
                }
            },
            Some(_) => invalid(),
        }
    }
}

/// The value of a secret. Its `Debug` output hides the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the value of a secret, so that it is not printed.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// Returns the value of the secret, for the request that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// AWS credentials. Their `Debug` output contains none of their values.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsCredentials {
    /// The access key id. It is not secret.
    pub access_key_id: String,
    /// The secret access key, which signs requests.
    pub secret_access_key: Secret,
    /// The session token, which each request must contain; `None` for permanent credentials.
    pub session_token: Option<Secret>,
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsCredentials(…)")
    }
}

/// The secrets for one request, the token that was fetched for it, and the AWS credentials that
/// sign it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keyring {
    secrets: BTreeMap<SecretName, Secret>,
    token: Option<Secret>,
    /// Tokens that the destination refused. They are kept to hide them in responses that repeat
    /// them.
    refused: Vec<Secret>,
    aws: Option<AwsCredentials>,
}

impl Keyring {
    /// Returns the value of the secret with this name; `None` if it was not loaded.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<&Secret> {
        self.secrets.get(name)
    }

    /// Returns the token for the next request; `None` if no token was fetched.
    #[must_use]
    pub fn token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// Sets the token for the next request. The previous token counts as refused.
    #[must_use]
    pub fn with_token(self, token: Secret) -> Self {
        let refused = self.refused.into_iter().chain(self.token).collect();
        Self { token: Some(token), refused, ..self }
    }

    /// Returns the tokens that the destination refused.
    #[must_use]
    pub fn refused(&self) -> &[Secret] {
        &self.refused
    }

    /// Returns the AWS credentials; `None` if they were not loaded.
    #[must_use]
    pub fn aws(&self) -> Option<&AwsCredentials> {
        self.aws.as_ref()
    }

    /// Returns the keyring with these AWS credentials.
    #[must_use]
    pub fn with_aws(self, aws: AwsCredentials) -> Self {
        Self { aws: Some(aws), ..self }
    }
}

impl FromIterator<(SecretName, Secret)> for Keyring {
    fn from_iter<T: IntoIterator<Item = (SecretName, Secret)>>(secrets: T) -> Self {
        Self { secrets: secrets.into_iter().collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_from_what_it_prints() {
        for text in [
            "env:BILLING_TOKEN",
            "secretsmanager:prod/billing",
            "secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:billing-AbCdEf#token",
            "ssm:/billing/token",
        ] {
            assert_eq!(
                text.parse::<SecretName>().map(|name| name.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn an_invalid_name_of_a_secret_is_reported_with_the_rule() {
        for text in [
            "",
            "env:",
            "BILLING_TOKEN",
            "vault:x",
            "ssm:",
            "secretsmanager:#m",
            "secretsmanager:x#",
            "env:a b",
            "env:A=b",
        ] {
            assert!(
                text.parse::<SecretName>().expect_err(text).contains("secretsmanager:ID#MEMBER")
            );
        }
    }

    #[test]
    fn a_variable_of_the_runtime_cannot_be_named_as_a_secret() {
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "aws_session_token",
            "LAMBDA_TASK_ROOT",
            "LD_PRELOAD",
            "LC_ALL",
            "_X_AMZN_TRACE_ID",
            "_HANDLER",
            "PATH",
            "Path",
            "TZ",
            "LANG",
            "PWD",
            "_",
        ] {
            let error = format!("env:{name}").parse::<SecretName>().expect_err(name);
            assert!(error.contains(name) && error.ends_with(VARIABLE_RULE), "{error}");
        }
        for name in ["BILLING_TOKEN", "_TOKEN", "PATH_TOKEN", "TZ_KEY", "AWSKEY"] {
            assert!(format!("env:{name}").parse::<SecretName>().is_ok(), "{name}");
        }
        for name in RESERVED_PREFIXES.iter().chain(&RESERVED_NAMES) {
            assert!(VARIABLE_RULE.contains(name), "{name}");
        }
    }

    #[test]
    fn nothing_that_prints_a_secret_shows_it() {
        let keyring: Keyring =
            [("env:A".parse().unwrap(), Secret::new("hush".to_owned()))].into_iter().collect();
        assert!(!format!("{keyring:?}").contains("hush"));
        assert_eq!(keyring.get(&"env:A".parse().unwrap()).map(Secret::expose), Some("hush"));
        let hush = || Secret::new("hush".to_owned());
        let aws = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: hush(),
            session_token: Some(hush()),
        };
        assert!(!format!("{:?}", keyring.with_aws(aws)).contains("hush"));
    }
}
