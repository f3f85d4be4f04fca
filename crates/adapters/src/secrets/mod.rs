//! Secrets, from wherever they are kept: this function's environment, Secrets Manager, Parameter
//! Store.
//!
//! Separate because a value must not leave but inside a request: nothing here prints one, no
//! problem quotes one, and what an answer said is dropped when it is not a secret.
//!
//! Promises: what was looked up is right for five minutes. Whoever asks for the same one meanwhile
//! shares that look-up, and two members of one JSON secret are one. When it cannot be refreshed,
//! the last value is used and a warning is logged: an endpoint that has seen enough of it will say
//! so, and a delivery that is not made helps nobody. A failure without a last value is remembered
//! for a few seconds, so that a batch of a thousand records asks once.
//!
//! Does not talk to AWS itself: see [`extension`]. Does not decide what a missing secret means for
//! a delivery.

mod cache;
mod extension;
mod member;

use std::fmt;

use cache::Cache;
use delivery::ports::{Clock, SecretError, Secrets};
use delivery::subscription::secret::{Keyring, Secret, SecretName};
use extension::{Extension, Stored};
pub use extension::{PORT, TOKEN};
use futures::future::join_all;
use member::member;

use crate::machine::Machine;

/// What no `env:` name may begin with: Lambda keeps the function's own credentials there, and
/// whoever writes subscriptions must not be able to send those to a destination.
const RESERVED_PREFIX: &str = "AWS_";

type Lookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The stores of one function's secrets.
pub struct SecretStores<C = Machine> {
    environment: Lookup,
    extension: Extension,
    cache: Cache,
    clock: C,
}

impl<C> fmt::Debug for SecretStores<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretStores(…)")
    }
}

impl SecretStores {
    /// The stores of this function, whose environment is read through a lookup such as `|name|
    /// std::env::var(name).ok()`.
    ///
    /// # Errors
    /// When the machine's TLS set-up is unusable.
    pub fn new(
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, reqwest::Error> {
        Self::with_clock(environment, Machine)
    }
}

impl<C: Clock + Send + Sync> SecretStores<C> {
    /// The same by another clock, which says when a value is too old.
    ///
    /// # Errors
    /// When the machine's TLS set-up is unusable.
    pub fn with_clock(
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        clock: C,
    ) -> Result<Self, reqwest::Error> {
        let extension = Extension::new(&environment)?;
        Ok(Self { environment: Box::new(environment), extension, cache: Cache::default(), clock })
    }

    async fn secret(&self, name: &SecretName) -> Result<Secret, String> {
        let secret = match name {
            SecretName::Environment(variable) => self.variable(variable)?,
            SecretName::Parameter(name) => self.stored(Stored::Parameter(name.clone())).await?,
            SecretName::SecretsManager { id, member: None } => {
                self.stored(Stored::Secret(id.clone())).await?
            }
            SecretName::SecretsManager { id, member: Some(name) } => {
                let whole = self.stored(Stored::Secret(id.clone())).await?;
                Secret::new(member(whole.expose(), name).map_err(|error| error.to_string())?)
            }
        };
        // An empty key signs nothing and an empty token opens nothing: somebody forgot to fill it
        // in.
        if secret.expose().trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(secret) }
    }

    /// A variable of the environment. It is there or not for as long as we run, so nothing is
    /// cached.
    fn variable(&self, name: &str) -> Result<Secret, String> {
        let beginning = name.get(..RESERVED_PREFIX.len());
        if beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(RESERVED_PREFIX)) {
            return Err(format!(
                "variables that begin with {RESERVED_PREFIX} are not ours to send"
            ));
        }
        (self.environment)(name)
            .map(Secret::new)
            .ok_or_else(|| "the function has no such variable".to_owned())
    }

    async fn stored(&self, stored: Stored) -> Result<Secret, String> {
        self.cache
            .get(stored, &self.extension, &self.clock)
            .await
            .map_err(|error| error.to_string())
    }
}

impl<C: Clock + Send + Sync> Secrets for SecretStores<C> {
    async fn keyring(&self, names: &[&SecretName]) -> Result<Keyring, SecretError> {
        // At once, so that many names take no longer than one.
        let asked = names.iter().map(|name| async move {
            let secret = self.secret(name).await;
            let secret =
                secret.map_err(|problem| SecretError { name: SecretName::clone(name), problem })?;
            Ok((SecretName::clone(name), secret))
        });
        join_all(asked).await.into_iter().collect()
    }
}
