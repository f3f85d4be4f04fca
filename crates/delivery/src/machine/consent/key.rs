//! [`ConsentKey`]: the key under which a consent is stored.
//!
//! This module is separate because the key must never change. With a different key for the same
//! address, every destination would be validated again.

use std::fmt;

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::subscription::{CloudEventsHandshake, Consent, NoFields};
use crate::table::ItemKey;

/// Suffix of the sort key of an item that stores a consent.
const CONSENT: &str = "#consent";

/// The key of a stored consent: its namespace, and a SHA-256 digest of the handshake and the
/// address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsentKey {
    namespace: String,
    asked: String,
}

impl ConsentKey {
    /// Returns the key of the consent for this address and this handshake. The rate is not part of
    /// the key.
    #[must_use]
    pub fn new(namespace: &str, url: &Url, consent: &Consent) -> Self {
        let asked = match consent {
            // The address is hashed, because its query may contain secrets.
            Consent::EventGrid(NoFields) => format!("eventgrid\n{url}"),
            Consent::CloudEvents(CloudEventsHandshake { origin, .. }) => {
                format!("cloudevents {}\n{url}", origin.to_ascii_lowercase())
            }
        };
        Self { namespace: namespace.to_owned(), asked: hex::encode(Sha256::digest(asked)) }
    }

    /// Returns the key of the table item that stores the consent.
    #[must_use]
    pub fn item(&self) -> ItemKey {
        ItemKey::new(&self.namespace, format!("{}{CONSENT}", self.asked))
    }
}

impl fmt::Display for ConsentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.item())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud_events(origin: &str) -> Consent {
        Consent::CloudEvents(CloudEventsHandshake { origin: origin.to_owned(), rate: None })
    }

    #[test]
    fn a_consent_is_given_to_a_namespace_for_an_address_and_a_way_of_asking_whatever_the_rate() {
        let url: Url = "https://example.com/in?code=secret".parse().unwrap();
        let other: Url = "https://example.com/in".parse().unwrap();
        let key = ConsentKey::new("n", &url, &Consent::EventGrid(NoFields));
        // SHA-256 of "eventgrid\nhttps://example.com/in?code=secret"; stored consents have this
        // key, so it must never change.
        assert_eq!(key.to_string(), KEY);
        let with_rate = Consent::CloudEvents(CloudEventsHandshake {
            origin: "A.example.com".to_owned(),
            rate: Some(9),
        });
        assert_eq!(
            ConsentKey::new("n", &url, &with_rate),
            ConsentKey::new("n", &url, &cloud_events("a.example.com"))
        );
        let keys = [
            key,
            ConsentKey::new("m", &url, &Consent::EventGrid(NoFields)),
            ConsentKey::new("n", &other, &Consent::EventGrid(NoFields)),
            ConsentKey::new("n", &url, &cloud_events("a.example.com")),
            ConsentKey::new("n", &url, &cloud_events("b.example.com")),
        ];
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
    }

    const KEY: &str = "n cbb172f21ac151b07bff4cd15f8549665f7ee791737ac10d39c3d016f9dc466b#consent";
}
