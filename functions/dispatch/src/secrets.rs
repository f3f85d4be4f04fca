//! The secrets of a request, its token and the credentials that sign it, unless the deployment's policy keeps them from its destination.
//!
//! The policy is that of the newest subscriptions which this process has read, and not that of the
//! invocation: in a catalogue, whoever may write a subscription need not be who wrote the policy, and an
//! invocation may have begun before it. A secret that is not allowed is a failed attempt, as one that cannot
//! be read, or a token that cannot be had: an operator can repair each.

use delivery::delivery::outcome::{Exchange, Outcome, Unsendable};
use delivery::ports::DispatchPorts;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Destination, Subscription};

use crate::deadline::Deadline;
use crate::dispatch::Dispatch;

impl<P: DispatchPorts> Dispatch<P> {
    /// The secrets, the token and the credentials for requests to a destination.
    ///
    /// # Errors
    /// [`Unsendable::Unready`] when one of them may not be sent there or cannot be had.
    pub(crate) async fn keyring(
        &self,
        destination: &Destination,
        deadline: &Deadline,
    ) -> Result<Keyring, Unsendable> {
        let looked_up = self.in_time(Box::pin(self.look_up(destination)), deadline).await;
        looked_up.unwrap_or_else(|| {
            Err(Unsendable::Unready("secrets, or a token, could not be had in time".to_owned()))
        })
    }

    async fn look_up(&self, destination: &Destination) -> Result<Keyring, Unsendable> {
        self.check_policy(destination).await?;
        let keyring = self.tokens.keyring(&self.ports, destination).await;
        keyring.map_err(Unsendable::Unready)
    }

    async fn check_policy(&self, destination: &Destination) -> Result<(), Unsendable> {
        let newest = self.ports.current().await.map_err(|problem| {
            Unsendable::Unready(format!("where secrets may be sent is not known: {problem}"))
        })?;
        match newest.settings().secrets.refusal_for(destination) {
            Some(refusal) => Err(Unsendable::Unready(refusal.to_string())),
            None => Ok(()),
        }
    }

    /// The same secrets with another token, if the destination refused that of its request and there is another one.
    ///
    /// # Errors
    /// [`Unsendable::Unready`] when none can be had.
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
        let renewed = async {
            // Time in which the policy is read is that of the token.
            self.check_policy(&subscription.destination).await?;
            let timeout_ms = until_ms.saturating_sub(self.ports.now_ms());
            let after =
                self.tokens.keyring_after(&self.ports, exchange, keyring, subscription, timeout_ms);
            after.await.map_err(Unsendable::Unready)
        };
        let renewed = self.in_time(renewed, deadline).await;
        renewed.unwrap_or_else(|| {
            Err(Unsendable::Unready("no token could be fetched in time".to_owned()))
        })
    }
}
