//! Requests to destinations from this machine: with the secrets, tokens and addresses that are allowed here.
//!
//! Separate because `try` and the console both make them. What a request is, and what its answer means, is the core's; where
//! secrets come from is decided by [`crate::operations::environment`]. The address policy is that of this machine.
//!
//! Promises: a secret is looked up for a destination only if the policy of the subscriptions lets it have that, as in
//! dispatch. A token is in memory only.

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

/// What stands in place of a token or a key that nobody fetched.
const NO_TOKEN: &str = "TOKEN";

/// Makes requests from this machine.
pub(crate) struct FromHere {
    ports: CommandPorts,
    tokens: Tokens,
    /// Where secrets may be sent.
    policy: SecretPolicy,
}

impl FromHere {
    /// With these variables of the environment, this identity, under this policy.
    pub(crate) fn new(
        allowed: Allowed,
        identity: Identity,
        policy: &SecretPolicy,
    ) -> anyhow::Result<Self> {
        Self::with(lookup(allowed, false), identity, policy)
    }

    /// Reads variables as `lastmile dev` does: any variable may be sent to this machine.
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

    /// The secrets and the token for requests to a destination, and the credentials that sign them.
    ///
    /// # Errors
    /// When one of them may not be sent there or cannot be had.
    pub(crate) async fn keyring(&self, destination: &Destination) -> Result<Keyring, Unsendable> {
        self.check(destination)?;
        let keyring = self.tokens.keyring(&self.ports, destination).await;
        keyring.map_err(Unsendable::Unready)
    }

    /// The same without a request to a token server or to AWS: words stand in place of what they would give.
    ///
    /// # Errors
    /// When a secret may not be sent there or cannot be had.
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

    /// Others than the owner of the subscription may have written the policy.
    fn check(&self, destination: &Destination) -> Result<(), Unsendable> {
        match self.policy.refusal_for(destination) {
            Some(refusal) => Err(Unsendable::Unready(refusal.to_string())),
            None => Ok(()),
        }
    }

    /// The same secrets with another token, if the destination refused that of its request and there is another one.
    ///
    /// # Errors
    /// When none can be had.
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

    /// Sends a request, and reads the answer as dispatch does.
    pub(crate) async fn exchange(&self, request: &Request) -> Exchange {
        request.understood(self.ports.sender.exchange(request).await)
    }
}
