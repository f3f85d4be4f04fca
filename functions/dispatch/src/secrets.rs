//! The secrets of a request, unless the deployment's policy keeps them from its destination.
//!
//! The policy is that of the newest subscriptions which this process has read, and not that of the
//! invocation: in a catalogue, whoever may write a subscription need not be who wrote the policy, and an
//! invocation may have begun before it. A secret that is not allowed is a failed attempt, as one that cannot
//! be read: an operator can repair both.

use delivery::delivery::outcome::Unsendable;
use delivery::ports::DispatchPorts;
use delivery::subscription::Destination;
use delivery::subscription::secret::{Keyring, SecretName};

use crate::deadline::Deadline;
use crate::dispatch::Dispatch;

impl<P: DispatchPorts> Dispatch<P> {
    /// The secrets of these names, for requests to a destination.
    ///
    /// # Errors
    /// [`Unsendable::Unready`] when one of them may not be sent there or cannot be read.
    pub(crate) async fn keyring(
        &self,
        names: &[&SecretName],
        destination: &Destination,
        deadline: &Deadline,
    ) -> Result<Keyring, Unsendable> {
        if names.is_empty() {
            return Ok(Keyring::default());
        }
        let looked_up = self.in_time(self.look_up(names, destination), deadline).await;
        looked_up.unwrap_or_else(|| {
            Err(Unsendable::Unready("secrets could not be read in time".to_owned()))
        })
    }

    async fn look_up(
        &self,
        names: &[&SecretName],
        destination: &Destination,
    ) -> Result<Keyring, Unsendable> {
        let newest = self.ports.current().await.map_err(|problem| {
            Unsendable::Unready(format!("where secrets may be sent is not known: {problem}"))
        })?;
        let policy = &newest.settings().secrets;
        let refusal = names.iter().find_map(|name| policy.refusal(name, &destination.url));
        if let Some(refusal) = refusal {
            return Err(Unsendable::Unready(refusal.to_string()));
        }
        let keyring = self.ports.keyring(names, &destination.url).await;
        keyring.map_err(|error| Unsendable::Unready(error.to_string()))
    }
}
