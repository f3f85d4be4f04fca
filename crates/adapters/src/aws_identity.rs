//! The AWS identity that destinations see: credentials that sign requests, and tokens in which AWS
//! names the caller.
//!
//! Separate from the clients of the functions, whose role must not sign requests to destinations.
//! The role of a function may read every queue and bucket of the deployment, and the policy of
//! another account may name that role. A function assumes a separate role for destinations. A
//! command uses the person's own credentials. A token identifies the caller and grants nothing at
//! AWS.
//!
//! Promises: nothing is read and no client is created before it is needed. No error quotes a
//! credential. Does not cache: see `tokens`.

use std::fmt;
use std::time::SystemTime;

use aws_config::SdkConfig;
use aws_sdk_sts::config::{Credentials, ProvideCredentials as _};
use aws_sdk_sts::error::ProvideErrorMetadata as _;
use aws_sdk_sts::types::Credentials as Assumed;
use delivery::ports::{AwsIdentity, Clock as _};
use delivery::request::token::{self, Token};
use delivery::subscription::Destination;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::secret::{AwsCredentials, Secret};
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use serde_json::{Value as Json, json};
use tokio::sync::OnceCell;

use crate::aws_error::sentence;
use crate::machine::Machine;
use crate::settings::INVOKE_ROLE_ARN;
use crate::timeouts::aws_config;

/// The session name of the role, which appears in AWS logs.
const SESSION_NAME: &str = "lastmile";
/// The signature algorithm of requested tokens; every JWT library supports RS256.
const ALGORITHM: &str = "RS256";
/// AWS error code if outbound identity federation is disabled in the account.
const FEDERATION_OFF: &str = "OutboundWebIdentityFederationDisabledException";
/// Help shown if outbound identity federation is disabled in the account.
const FEDERATION_HELP: &str = "outbound identity federation is off in this account; turn it on \
                               with aws iam enable-outbound-web-identity-federation";
/// The lifetime assumed for credentials without an expiration time.
const UNTOLD_LIFE_MS: u64 = 5 * MINUTE_MS;

/// The identity with which requests to destinations are signed and tokens are requested.
pub struct Identity(By);

/// Returns true if requests to a destination may reveal the identity of the caller.
type Shows = dyn Fn(&Destination) -> bool + Send + Sync;

enum By {
    /// The role that a function assumes; `arn` is `None` if no role is configured.
    Role { config: SdkConfig, arn: Option<String>, session_policy: Option<String> },
    /// The person who runs a command. `shows` selects the destinations that may learn the person's
    /// identity.
    Person { config: OnceCell<SdkConfig>, shows: Box<Shows> },
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

impl Identity {
    /// Creates the identity of a function, which assumes the role `arn`.
    #[must_use]
    pub fn of_role(config: &SdkConfig, arn: Option<String>) -> Self {
        Self(By::Role { config: config.clone(), arn, session_policy: None })
    }

    /// Denies `resources` to the sessions of the role, whatever the policies of the role allow.
    #[must_use]
    pub fn denying<'r>(self, resources: impl Iterator<Item = &'r str>) -> Self {
        let denied: Vec<&str> = resources.collect();
        match self.0 {
            By::Role { config, arn, .. } => {
                let session_policy = (!denied.is_empty()).then(|| session_policy(&denied));
                Self(By::Role { config, arn, session_policy })
            }
            by @ By::Person { .. } => Self(by),
        }
    }

    /// Creates the identity of the person who runs a command, from the default credential chain.
    /// `shows` selects the destinations to which the identity may be shown.
    #[must_use]
    pub fn of_person(shows: impl Fn(&Destination) -> bool + Send + Sync + 'static) -> Self {
        Self(By::Person { config: OnceCell::new(), shows: Box::new(shows) })
    }
}

impl AwsIdentity for Identity {
    fn may_show(&self, to: &Destination) -> Result<(), String> {
        match &self.0 {
            By::Person { shows, .. } if !shows(to) => Err(format!(
                "{} may not receive your AWS identity: start again with --identity to allow it",
                to.host()
            )),
            By::Role { .. } | By::Person { .. } => Ok(()),
        }
    }

    async fn signing_credentials(&self) -> Result<Token<AwsCredentials>, String> {
        match &self.0 {
            By::Role { arn: None, .. } => Err(format!(
                "no role is set for signing requests: set the template parameter InvokeRoleArn, \
                 which sets the function's environment variable {INVOKE_ROLE_ARN}"
            )),
            By::Role { config, arn: Some(arn), session_policy } => {
                assumed(config, arn, session_policy.clone()).await
            }
            By::Person { config, .. } => of_person(config.get_or_init(aws_config).await).await,
        }
    }

    async fn web_identity_token(&self, identity: &WebIdentity) -> Result<Token, String> {
        let config = match &self.0 {
            By::Role { config, .. } => config,
            By::Person { config, .. } => config.get_or_init(aws_config).await,
        };
        web_identity(config, identity).await
    }
}

/// Returns a session policy that allows everything except the resources in `denied`. A session
/// policy only restricts the role, and its denials also override resource policies.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session>
fn session_policy(denied: &[&str]) -> String {
    let all = json!({ "Effect": "Allow", "Action": "*", "Resource": "*" });
    // The URL of the deployment's own ingress is a legitimate destination. A signed request to it
    // requires both of these actions.
    let by_url = ["lambda:InvokeFunction", "lambda:InvokeFunctionUrl"];
    let own = json!({ "Effect": "Deny", "NotAction": by_url, "Resource": denied });
    let functions: Vec<&str> =
        denied.iter().copied().filter(|arn| arn.contains(":function:")).collect();
    let is_direct = json!({ "BoolIfExists": { "lambda:InvokedViaFunctionUrl": "false" } });
    let called = json!({
        "Effect": "Deny",
        "Action": "lambda:InvokeFunction",
        "Resource": functions,
        "Condition": is_direct,
    });
    let called = (!functions.is_empty()).then_some(called);
    let statements: Vec<Json> = [all, own].into_iter().chain(called).collect();
    json!({ "Version": "2012-10-17", "Statement": statements }).to_string()
}

/// Assumes the role `arn` and returns its credentials.
async fn assumed(
    config: &SdkConfig,
    arn: &str,
    session_policy: Option<String>,
) -> Result<Token<AwsCredentials>, String> {
    let asked_ms = Machine.now_ms();
    // A new client for each call is cheap: clients share connections through the configuration, and
    // a role is assumed about once an hour.
    let sts = aws_sdk_sts::Client::new(config);
    let asked = sts.assume_role().role_arn(arn).role_session_name(SESSION_NAME);
    let answer = asked.set_policy(session_policy).send().await;
    let answer = answer
        .map_err(|error| format!("the role {arn} cannot be assumed: {}", sentence(&error)))?;
    let Assumed { access_key_id, secret_access_key, session_token, expiration, .. } = answer
        .credentials
        .ok_or_else(|| format!("AWS returned no credentials for the role {arn}"))?;
    let credentials = AwsCredentials {
        access_key_id,
        secret_access_key: Secret::new(secret_access_key),
        session_token: Some(Secret::new(session_token)),
    };
    let ends_ms = expiration.to_millis().ok().and_then(|at| u64::try_from(at).ok());
    Ok(Token::ending(credentials, asked_ms, Machine.now_ms(), ends_ms.unwrap_or(asked_ms)))
}

/// Requests a token that identifies the owner of the credentials in `config`.
async fn web_identity(config: &SdkConfig, identity: &WebIdentity) -> Result<Token, String> {
    let WebIdentity { audience, lifetime_ms } = identity;
    let asked_ms = Machine.now_ms();
    let seconds = i32::try_from(lifetime_ms / SECOND_MS).unwrap_or(i32::MAX);
    let sts = aws_sdk_sts::Client::new(config);
    let asked = sts.get_web_identity_token().audience(audience).duration_seconds(seconds);
    let answer = asked.signing_algorithm(ALGORITHM).send().await.map_err(|error| {
        let why = match error.code() {
            Some(FEDERATION_OFF) => FEDERATION_HELP.to_owned(),
            Some(_) | None => sentence(&error),
        };
        format!("no token for {audience}: {why}")
    })?;
    let token = answer.web_identity_token;
    let token = token
        .map_or_else(|| Err("the response of AWS contains no token".to_owned()), token::checked);
    let token = token.map_err(|why| format!("no token for {audience}: {why}"))?;
    let ends_ms = answer.expiration.and_then(|at| at.to_millis().ok());
    let ends_ms = ends_ms.and_then(|at| u64::try_from(at).ok());
    let ends_ms = ends_ms.unwrap_or_else(|| asked_ms.saturating_add(*lifetime_ms));
    Ok(Token::ending(token, asked_ms, Machine.now_ms(), ends_ms))
}

/// Returns the credentials of the person who runs a command.
async fn of_person(config: &SdkConfig) -> Result<Token<AwsCredentials>, String> {
    let asked_ms = Machine.now_ms();
    let Some(provider) = config.credentials_provider() else {
        return Err("there are no AWS credentials".to_owned());
    };
    let found = provider.provide_credentials().await;
    let found = found.map_err(|error| format!("no AWS credentials: {error}"))?;
    let ends_ms = found.expiry().and_then(unix_ms);
    let ends_ms = ends_ms.unwrap_or_else(|| asked_ms.saturating_add(UNTOLD_LIFE_MS));
    Ok(Token::ending(of_sdk(&found), asked_ms, Machine.now_ms(), ends_ms))
}

fn of_sdk(found: &Credentials) -> AwsCredentials {
    let secret = |text: &str| Secret::new(text.to_owned());
    AwsCredentials {
        access_key_id: found.access_key_id().to_owned(),
        secret_access_key: secret(found.secret_access_key()),
        session_token: found.session_token().map(secret),
    }
}

fn unix_ms(at: SystemTime) -> Option<u64> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_sts::config::SharedCredentialsProvider;
    use delivery::request::token::TokenState;

    use super::*;

    /// Returns true if a person's credentials with this lifetime are still used after this many
    /// minutes.
    async fn used(life: Option<Duration>, minutes: u64) -> bool {
        let (mut state, now_ms) = (TokenState::default(), Machine.now_ms());
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms);
        let ends = life.map(|life| now + life);
        let credentials = Credentials::new("key", "secret", None, ends, "test");
        let provider = SharedCredentialsProvider::new(credentials);
        let config = SdkConfig::builder().credentials_provider(provider).build();
        state.keep(of_person(&config).await, now_ms).expect("credentials");
        state.current(now_ms + minutes * MINUTE_MS).is_some()
    }

    #[tokio::test]
    async fn credentials_are_used_until_shortly_before_their_end_or_for_some_minutes() {
        let hour = Some(Duration::from_secs(3_600));
        assert_eq!([used(hour, 58).await, used(hour, 59).await], [true, false]);
        assert_eq!([used(None, 2).await, used(None, 5).await], [true, false]);
    }
}
