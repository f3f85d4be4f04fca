//! Fetches the secrets, the token and the signing credentials of a request, if the deployment's
//! policies allow them for its destination.
//!
//! The secret policy comes from the newest subscriptions in this process, not from those of the
//! invocation. The author of a subscription may differ from the author of the policy, and an
//! invocation may have begun before a new policy. If the policy forbids a secret, the attempt fails
//! and is retried, because an operator can repair the policy. An unreadable secret and a failed
//! token request have the same effect.

use std::sync::Arc;

use adapters::tokens::Tokens;
use delivery::delivery::outcome::{Exchange, Outcome, Unsendable};
use delivery::ports::{DispatchPorts, SubscriptionSource as _};
use delivery::subscription::aws::policy::AwsPolicy;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Destination, Subscription};

use crate::deadline::Deadline;

/// Fetches the credentials of requests, and caches tokens.
#[derive(Debug)]
pub(crate) struct Credentials<P> {
    ports: Arc<P>,
    targets: AwsPolicy,
    tokens: Tokens,
}

impl<P: DispatchPorts> Credentials<P> {
    pub(crate) fn new(ports: Arc<P>, targets: AwsPolicy) -> Self {
        Self { ports, targets, tokens: Tokens::default() }
    }

    /// Fetches secrets, token and signing credentials for the destination of a subscription.
    ///
    /// # Errors
    /// - [`Unsendable::Unready`] if the policy forbids a secret, or a credential is unavailable
    /// - [`Unsendable::Blocked`] if the deployment does not allow the AWS target
    pub(crate) async fn keyring(
        &self,
        subscription: &Subscription,
        deadline: &Deadline,
    ) -> Result<Keyring, Unsendable> {
        let (namespace, destination) =
            (&subscription.name.topic.namespace, &subscription.destination);
        // The command line makes the same check in files, but another program may have written the
        // object of a topic.
        let refusal = destination.aws.as_ref().and_then(|to| self.targets.refusal(namespace, to));
        if let Some(refusal) = refusal {
            return Err(Unsendable::Blocked(refusal.to_string()));
        }
        let looked_up = deadline.in_time(&*self.ports, Box::pin(self.look_up(destination))).await;
        looked_up.unwrap_or_else(|| {
            Err(Unsendable::Unready("secrets or a token could not be read in time".to_owned()))
        })
    }

    async fn look_up(&self, destination: &Destination) -> Result<Keyring, Unsendable> {
        self.check_policy(destination).await?;
        let keyring = self.tokens.keyring(&*self.ports, destination).await;
        keyring.map_err(Unsendable::Unready)
    }

    async fn check_policy(&self, destination: &Destination) -> Result<(), Unsendable> {
        let newest = self.ports.subscriptions().current().await.map_err(|problem| {
            Unsendable::Unready(format!("the secret policy cannot be read: {problem}"))
        })?;
        match newest.settings().secrets.refusal_for(destination) {
            Some(refusal) => Err(Unsendable::Unready(refusal.to_string())),
            None => Ok(()),
        }
    }

    /// Returns the secrets in `keyring` with a new token. Returns `None` if the destination did not
    /// refuse the token, or if no different token exists.
    ///
    /// # Errors
    /// [`Unsendable::Unready`] if the policy cannot be read or forbids a secret, or if the token
    /// request fails.
    pub(crate) async fn keyring_after(
        &self,
        exchange: &Exchange,
        keyring: &Keyring,
        subscription: &Subscription,
        until_ms: u64,
        deadline: &Deadline,
    ) -> Result<Option<Keyring>, Unsendable> {
        if exchange.outcome(&subscription.retry) != Outcome::Unauthorized {
            return Ok(None);
        }
        let ports = &*self.ports;
        let renewed = async {
            // The time limit of the token includes the read of the policy.
            self.check_policy(&subscription.destination).await?;
            let timeout_ms = until_ms.saturating_sub(ports.now_ms());
            let after =
                self.tokens.keyring_after(ports, exchange, keyring, subscription, timeout_ms);
            after.await.map_err(Unsendable::Unready)
        };
        let renewed = deadline.in_time(ports, renewed).await;
        renewed.unwrap_or_else(|| {
            Err(Unsendable::Unready("a new token could not be fetched in time".to_owned()))
        })
    }
}
