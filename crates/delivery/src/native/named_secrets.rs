//! The positions at which documents name the secrets of a subscription.
//!
//! Separate because the names alone are in the subscription: a command that finds that a secret is missing reports it where
//! a person would correct the name.

use std::collections::BTreeSet;

use super::origins::Origins;
use crate::document::reader::Cursor;
use crate::subscription::Subscription;
use crate::subscription::name::SubscriptionName;
use crate::subscription::secret::SecretName;

/// A secret that a subscription sends, or signs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// The subscription whose requests need it.
    pub subscription: SubscriptionName,
    /// The name of the secret.
    pub secret: SecretName,
    /// The position of its name, as `file:line:column`.
    pub at: String,
    /// The field there, such as `spec.destination.headers[0].secret`.
    pub field: String,
}

/// The secrets of a subscription, each once: where they are named, else where the `auth` is that names them, such as that of a
/// Destinations entry, else at the subscription's name.
pub(super) fn named_secrets(
    subscription: &Subscription,
    origins: &Origins,
    secrets_at: &[Cursor<'_>],
    named_at: Option<&Cursor<'_>>,
) -> Vec<NamedSecret> {
    let secrets: BTreeSet<&SecretName> = subscription.destination.secrets().collect();
    let named = secrets.into_iter().map(|secret| {
        let name = secret.to_string();
        let at = secrets_at.iter().find(|at| at.peek_text() == Some(&name));
        let (at, field) = match (at, origins.get("auth")) {
            (Some(at), _) => (at.location(), at.path()),
            (None, Some(auth)) => (auth.clone(), "auth".to_owned()),
            (None, None) => (named_at.map(Cursor::location).unwrap_or_default(), String::new()),
        };
        NamedSecret { subscription: subscription.name.clone(), secret: secret.clone(), at, field }
    });
    named.collect()
}
