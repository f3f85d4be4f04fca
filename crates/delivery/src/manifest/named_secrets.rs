//! The positions at which documents name the secrets of a subscription.
//!
//! Separate because the names alone are in the subscription: a command that finds that a secret is missing reports it where
//! a person would correct the name.

use std::collections::BTreeSet;

use super::origins::Origins;
use super::reader::Cursor;
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
pub(super) fn of(
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
            (None, Some(auth)) => (auth.clone(), "auth"),
            (None, None) => (named_at.map(Cursor::location).unwrap_or_default(), ""),
        };
        NamedSecret {
            subscription: subscription.name.clone(),
            secret: secret.clone(),
            at,
            field: field.to_owned(),
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Source, read};

    fn places(text: &str) -> Vec<String> {
        let reading = read(&[Source { name: "f", text }]);
        assert!(reading.clone().into_result().is_ok(), "{:?}", reading.findings);
        let place = |of: &super::NamedSecret| format!("{} {} {}", of.secret, of.at, of.field);
        reading.secrets.iter().map(place).collect()
    }

    #[test]
    fn a_secret_is_found_where_a_document_names_it() {
        let subscription = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                            metadata: {namespace: a, topic: b, name: c}\nspec:\n  destination:\n    url: https://h.test/\n";
        let topic = "---\napiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: a, name: b}\n\
                     spec: {delivery: {destination: {signing: {secrets: ['env:B']}}}}\n";
        let own = "    headers: [{name: x, value: y}, {name: k, secret: env:A}]\n";
        assert_eq!(
            places(&format!("{subscription}{own}{topic}")),
            [
                "env:A f:7:54 spec.destination.headers[1].secret",
                "env:B f:12:53 spec.delivery.destination.signing.secrets[0]",
            ]
        );
        let client =
            "    auth: {oauth2: {tokenUrl: 'https://t.test/', clientId: i, clientSecret: env:C}}\n";
        assert_eq!(
            places(&format!("{subscription}{client}")),
            ["env:C f:7:77 spec.destination.auth.oauth2.clientSecret"]
        );
    }

    #[test]
    fn a_secret_of_a_destinations_entry_is_found_at_its_auth() {
        let text = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {namespace: n, name: t}\n\
                    spec: {broker: b, subscriber: {uri: 'https://h.test/'}}\n---\n\
                    apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {namespace: n, name: b}\n\
                    spec: {delivery: {retry: 1, backoffPolicy: linear, backoffDelay: PT1S}}\n---\n\
                    apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  'https://h.test/':\n    \
                    auth: {oauth2: {tokenUrl: 'https://t.test/', clientId: i, clientSecret: env:C}}\n";
        assert_eq!(places(text), ["env:C f:15:11 auth"]);
    }
}
