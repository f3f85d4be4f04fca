//! Finds the positions at which documents name the secrets of a subscription.
//!
//! This module is separate because a subscription has only the names. A command that finds a
//! missing secret reports the position at which a person can correct the name.

use std::collections::BTreeSet;

use super::origins::Origins;
use crate::document::reader::Cursor;
use crate::subscription::Subscription;
use crate::subscription::name::SubscriptionName;
use crate::subscription::secret::SecretName;

/// A secret that the requests of a subscription contain or are signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// Subscription whose requests need the secret.
    pub subscription: SubscriptionName,
    /// Name of the secret that the field at `at` refers to.
    pub secret: SecretName,
    /// Position at which the secret is named, as `file:line:column`.
    pub at: String,
    /// Path of the field at this position, such as `spec.destination.headers[0].secret`.
    pub field: String,
}

/// Returns each secret of a subscription once, with the first of these positions that is known:
/// - the position of the secret's name
/// - the position of `auth`, which may be in a Destinations document
/// - the position of the subscription's name
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
