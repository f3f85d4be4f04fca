//! Secrets, from this function's environment, Secrets Manager or Parameter Store.
//!
//! Separate because a value may leave the process only inside a request: nothing here prints one,
//! no error quotes one, and a response that is not a secret is discarded.
//!
//! Promises: a value is cached for five minutes. Concurrent lookups of one secret share one
//! request, and so do two members of one JSON secret. When a value cannot be refreshed, the last one
//! is used and a warning is logged: if it is no longer valid, the endpoint will say so, and not
//! delivering helps no delivery. A failure without a last value is cached for a few seconds, so a
//! batch of a thousand records makes one request.
//!
//! Does not talk to AWS itself: see [`extension`]. Does not decide what a missing secret means for
//! a delivery.

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

/// A value is refreshed after this time: a rotated secret is in use everywhere within five minutes, and Secrets Manager charges per ten
/// thousand calls.
const FRESH_MS: u64 = 5 * 60 * 1_000;

/// A variable, for requests to this address; `None` for what the stores themselves need.
type Lookup = Box<dyn Fn(&str, Option<&Url>) -> Option<String> + Send + Sync>;

/// The stores of one function's secrets.
pub struct SecretStores<C = Machine> {
    environment: Lookup,
    extension: Extension,
    /// The values of the extension.
    stored: Refreshing<SecretId, Secret, ExtensionError>,
    clock: C,
}

impl<C> fmt::Debug for SecretStores<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretStores(…)")
    }
}

impl<C: Clock + Send + Sync> SecretStores<C> {
    /// The stores of this function, whose environment is read through a lookup such as `|name, _|
    /// std::env::var(name).ok()`, which is told the address that a variable is sent to, and nothing for
    /// what the stores themselves need; cached values expire by the clock.
    ///
    /// # Errors
    /// When no HTTP client can be built on this machine.
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
        // An empty key signs nothing and an empty token grants nothing: it was probably not
        // filled in.
        if secret.expose().trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(secret) }
    }

    /// A variable of the environment; not cached, because it does not change while we run.
    fn variable(&self, name: &str, to: Option<&Url>) -> Result<Secret, String> {
        // Also a name that was not read from a file.
        if is_reserved_variable(name) {
            return Err(format!("it is the function's own and is not sent: {VARIABLE_RULE}"));
        }
        (self.environment)(name, to)
            .map(Secret::new)
            .ok_or_else(|| "the function has no such variable".to_owned())
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
            // They are compared here and sent nowhere.
            let key = self.secret(name, None).await;
            key.map_err(|problem| SecretError { name: name.clone(), problem })
        });
        join_all(keys).await
    }
}
