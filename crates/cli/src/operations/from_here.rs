//! Sends requests to destinations from this machine, with the secrets, tokens and addresses that
//! are allowed here.
//!
//! Separate because both `try` and the console send such requests. The core builds requests and
//! interprets responses. [`crate::operations::environment`] decides which secrets may be used. An
//! environment variable of this machine sets the address policy.
//!
//! Promises: as in dispatch, a secret is looked up for a destination only if the policy of the
//! subscriptions permits it. Tokens are only stored in memory.

use adapters::aws_identity::Identity;
use adapters::http::HttpSender;
use adapters::machine::Machine;
use adapters::secrets::SecretStores;
use adapters::tokens::{CommandPorts, Tokens};
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::delivery::outcome::{Exchange, Unsendable};
use delivery::ports::{Secrets as _, SendHttp as _};
use delivery::request::Request;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::subscription::{Destination, Subscription};
use url::Url;

use crate::operations::environment::{Allowed, lookup};
use crate::operations::this_machine::{allow_private, aws_endpoint};

/// The placeholder for a token or a key that was not fetched.
const NO_TOKEN: &str = "TOKEN";

pub(crate) struct FromHere {
    ports: CommandPorts,
    tokens: Tokens,
    /// The policy that decides which secrets may be sent to which hosts.
    policy: SecretPolicy,
}

impl FromHere {
    /// Creates a sender with these environment variables, this identity and this policy.
    pub(crate) fn new(
        allowed: Allowed,
        identity: Identity,
        policy: &SecretPolicy,
    ) -> anyhow::Result<Self> {
        Self::with(lookup(allowed, false), identity, policy)
    }

    /// Creates a sender with the rules of `lastmile dev`: any variable may be sent to this machine.
    pub(crate) fn as_dev(
        allowed: Allowed,
        identity: Identity,
        policy: &SecretPolicy,
    ) -> anyhow::Result<Self> {
        Self::with(lookup(allowed, true), identity, policy)
    }

    fn with(
        variable: impl Fn(&str, Option<&Url>) -> Option<String> + Send + Sync + 'static,
        identity: Identity,
        policy: &SecretPolicy,
    ) -> anyhow::Result<Self> {
        let private = PrivateDestinations::parse(&allow_private()).map_err(anyhow::Error::msg)?;
        let sender = HttpSender::new(AddressPolicy::new(private, OwnAddresses::default()))?;
        let secrets = SecretStores::new(variable, Machine)?;
        let sender = sender.keeping_headers().with_aws_endpoint(aws_endpoint()?);
        let ports = CommandPorts { sender, secrets, identity };
        Ok(Self { ports, tokens: Tokens::default(), policy: policy.clone() })
    }

    /// Fetches what requests to a destination need: its secrets, its token, and the credentials
    /// that sign requests.
    ///
    /// # Errors
    /// If one of them is unavailable, or may not be sent to the destination.
    pub(crate) async fn keyring(&self, destination: &Destination) -> Result<Keyring, Unsendable> {
        self.check(destination)?;
        let keyring = self.tokens.keyring(&self.ports, destination).await;
        keyring.map_err(Unsendable::Unready)
    }

    /// Reads the secrets for requests to a destination. Placeholders replace tokens and AWS
    /// credentials, so nothing is requested from a token server or from AWS.
    ///
    /// # Errors
    /// If a secret is unavailable, or may not be sent to the destination.
    pub(crate) async fn keyring_without_token(
        &self,
        destination: &Destination,
    ) -> Result<Keyring, Unsendable> {
        self.check(destination)?;
        let names: Vec<&SecretName> = destination.secrets().collect();
        let keyring = self.ports.secrets.keyring(&names, destination.receiver()).await;
        let keyring = keyring.map_err(|error| Unsendable::Unready(error.to_string()))?;
        let nothing = || Secret::new(NO_TOKEN.to_owned());
        let aws = AwsCredentials {
            access_key_id: NO_TOKEN.to_owned(),
            secret_access_key: nothing(),
            session_token: None,
        };
        Ok(keyring.with_token(nothing()).with_aws(aws))
    }

    /// Checks that the secret policy allows all secrets of a destination to be sent to their
    /// addresses. The subscription is not trusted, because its author and the author of the policy
    /// may be different people.
    fn check(&self, destination: &Destination) -> Result<(), Unsendable> {
        match self.policy.refusal_for(destination) {
            Some(refusal) => Err(Unsendable::Unready(refusal.to_string())),
            None => Ok(()),
        }
    }

    /// Fetches another token if the destination refused the token of its request. Returns the
    /// secrets with the new token.
    ///
    /// # Errors
    /// If no other token is available.
    pub(crate) async fn keyring_after(
        &self,
        exchange: &Exchange,
        keyring: &Keyring,
        subscription: &Subscription,
        timeout_ms: u64,
    ) -> Result<Option<Keyring>, Unsendable> {
        let after =
            self.tokens.keyring_after(&self.ports, exchange, keyring, subscription, timeout_ms);
        after.await.map_err(Unsendable::Unready)
    }

    /// Sends a request, and interprets the response as dispatch does.
    pub(crate) async fn exchange(&self, request: &Request) -> Exchange {
        request.understood(self.ports.sender.exchange(request).await)
    }
}
