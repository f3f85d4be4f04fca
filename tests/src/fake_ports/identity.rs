//! Fake secrets and fake AWS credentials.

use delivery::ports::{AwsIdentity, Clock as _, SecretError, Secrets};
use delivery::request::token::Token;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use reqwest::Url;

use super::FakePorts;

#[derive(Default)]
pub(super) struct Identity {
    /// The lifetime of the credentials; `None` if there is no role.
    life_ms: Option<u64>,
    asked: usize,
}

impl FakePorts {
    /// Sets the lifetime of AWS credentials; with `None`, there are no credentials.
    pub fn grant_credentials(&self, life_ms: Option<u64>) {
        self.state().identity.life_ms = life_ms;
    }

    /// The number of requests for AWS credentials.
    #[must_use]
    pub fn credentials_asked(&self) -> usize {
        self.state().identity.asked
    }
}

impl Secrets for FakePorts {
    /// The value of every secret is `hush`.
    async fn keyring(&self, names: &[&SecretName], _: &Url) -> Result<Keyring, SecretError> {
        Ok(names.iter().map(|name| ((*name).clone(), Secret::new("hush".to_owned()))).collect())
    }
}

impl AwsIdentity for FakePorts {
    async fn signing_credentials(&self) -> Result<Token<AwsCredentials>, String> {
        let (now_ms, identity) = (self.now_ms(), &mut self.state().identity);
        identity.asked += 1;
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("never-sent".to_owned()),
            session_token: Some(Secret::new(format!("session-t0ken-{}", identity.asked))),
        };
        let life_ms = identity.life_ms.ok_or("no role is set: InvokeRoleArn")?;
        Ok(Token::ending(credentials, now_ms, now_ms, now_ms + life_ms))
    }

    async fn web_identity_token(&self, web_identity: &WebIdentity) -> Result<Token, String> {
        let (now_ms, identity) = (self.now_ms(), &mut self.state().identity);
        identity.asked += 1;
        identity.life_ms.ok_or("outbound identity federation is off")?;
        let token = Secret::new(format!("jwt-for-{}-{}", web_identity.audience, identity.asked));
        Ok(Token::ending(token, now_ms, now_ms, now_ms + web_identity.lifetime_ms))
    }
}
