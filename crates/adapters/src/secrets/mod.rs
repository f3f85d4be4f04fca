//! Looks up secrets in this function's environment, Secrets Manager or Parameter Store.
//!
//! Separate because a value may leave the process only inside a request. No code here prints a
//! value, no error quotes one, and a response that is not a secret is discarded.
//!
//! Promises: a value is cached for five minutes. Concurrent lookups of one secret share one
//! request, as do lookups of two members of one JSON secret. If a refresh fails, the last value is
//! used and a warning is logged. Deferring the delivery would gain nothing, and the endpoint
//! refuses a value that is no longer valid. A failure without a last value is cached for a few
//! seconds, so a batch of a thousand records makes one request.
//!
//! Does not call AWS itself: see [`extension`]. Does not decide how a missing secret affects a
//! delivery.

mod extension;
mod member;

use std::fmt;

use delivery::ports::{Clock, PublisherKeys, SecretError, Secrets};
use delivery::subscription::secret::{
    Keyring, Secret, SecretName, VARIABLE_RULE, is_reserved_variable,
};
use extension::{Extension, ExtensionError, SecretId};
pub use extension::{PORT, TOKEN};
use futures::future::join_all;
use member::member;
use url::Url;

use crate::machine::Machine;
use crate::refreshing::Refreshing;

/// Age at which a cached value is refreshed. A rotated secret is in use everywhere within five
/// minutes. A lower age would cost more, because Secrets Manager charges for every ten thousand
/// calls.
const FRESH_MS: u64 = 5 * 60 * 1_000;

/// Returns the value of an environment variable. The second argument is the address to which the
/// value will be sent; `None` for a value that is not sent to a destination, such as a publisher's
/// key.
type Lookup = Box<dyn Fn(&str, Option<&Url>) -> Option<String> + Send + Sync>;

/// Looks up the secrets of one function.
pub struct SecretStores<C = Machine> {
    environment: Lookup,
    extension: Extension,
    /// Cached values from the extension.
    stored: Refreshing<SecretId, Secret, ExtensionError>,
    clock: C,
}

impl<C> fmt::Debug for SecretStores<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretStores(…)")
    }
}

impl<C: Clock + Send + Sync> SecretStores<C> {
    /// Creates the stores of this function. `environment` is a lookup such as `|name, _|
    /// std::env::var(name).ok()`. Its second argument is the address to which the value will be
    /// sent, or `None` for a value that is not sent to a destination. The age of cached values is
    /// measured with `clock`.
    ///
    /// # Errors
    /// Fails if no HTTP client can be built on this machine.
    pub fn new(
        environment: impl Fn(&str, Option<&Url>) -> Option<String> + Send + Sync + 'static,
        clock: C,
    ) -> Result<Self, reqwest::Error> {
        let extension = Extension::new(|name| environment(name, None))?;
        let stored = Refreshing::new(|_| FRESH_MS, |_| true);
        Ok(Self { environment: Box::new(environment), extension, stored, clock })
    }

    async fn secret(&self, name: &SecretName, to: Option<&Url>) -> Result<Secret, String> {
        let secret = match name {
            SecretName::Environment(variable) => self.variable(variable, to)?,
            SecretName::Parameter(name) => self.stored(SecretId::Parameter(name.clone())).await?,
            SecretName::SecretsManager { id, member: None } => {
                self.stored(SecretId::Secret(id.clone())).await?
            }
            SecretName::SecretsManager { id, member: Some(name) } => {
                let whole = self.stored(SecretId::Secret(id.clone())).await?;
                Secret::new(member(whole.expose(), name)?)
            }
        };
        // An empty key signs nothing and an empty token grants nothing, so an empty value is
        // probably a mistake.
        if secret.expose().trim().is_empty() {
            Err("the value is empty".to_owned())
        } else {
            Ok(secret)
        }
    }

    /// Reads an environment variable. The value is not cached, because the environment does not
    /// change.
    fn variable(&self, name: &str, to: Option<&Url>) -> Result<Secret, String> {
        // Check here too, because not every name comes from a file.
        if is_reserved_variable(name) {
            return Err(format!("the variable is reserved and is not sent: {VARIABLE_RULE}"));
        }
        (self.environment)(name, to)
            .map(Secret::new)
            .ok_or_else(|| "the environment variable is not set".to_owned())
    }

    async fn stored(&self, id: SecretId) -> Result<Secret, String> {
        let fetch = async || self.extension.fetch(&id, &self.clock).await;
        let warn = |problem: &ExtensionError| {
            tracing::warn!(secret = %id, problem = %problem, "secret.stale");
        };
        let stored = self.stored.get(&id, &self.clock, fetch, warn).await;
        stored.map_err(|error| error.to_string())
    }
}

impl<C: Clock + Send + Sync> Secrets for SecretStores<C> {
    async fn keyring(&self, names: &[&SecretName], to: &Url) -> Result<Keyring, SecretError> {
        // Concurrently, so that many names take no longer than one.
        let secrets = names.iter().map(|name| async move {
            let secret = self.secret(name, Some(to)).await;
            let secret =
                secret.map_err(|problem| SecretError { name: SecretName::clone(name), problem })?;
            Ok((SecretName::clone(name), secret))
        });
        join_all(secrets).await.into_iter().collect()
    }
}

impl<C: Clock + Send + Sync> PublisherKeys for SecretStores<C> {
    async fn publisher_keys(&self, names: &[SecretName]) -> Vec<Result<Secret, SecretError>> {
        let keys = names.iter().map(|name| async move {
            // These keys are only compared, and never sent.
            let key = self.secret(name, None).await;
            key.map_err(|problem| SecretError { name: name.clone(), problem })
        });
        join_all(keys).await
    }
}
