//! The key under which a consent is stored.
//!
//! Separate because it is kept for ever: another key for the same address would ask its destination again.

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::subscription::{CloudEventsHandshake, Consent, NoFields};

/// The folder of consents, in the config bucket or beside the file of subscriptions.
pub const FOLDER: &str = "_consents";

/// The key of a stored consent: `_consents/<sha256 of the handshake and the address>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsentKey(String);

impl ConsentKey {
    /// The key for this address and this handshake. The rate is not part of it.
    #[must_use]
    pub fn of(url: &Url, consent: &Consent) -> Self {
        let asked = match consent {
            // Hashed, because the query of the address may hold secrets.
            Consent::EventGrid(NoFields) => format!("eventgrid\n{url}"),
            Consent::CloudEvents(CloudEventsHandshake { origin, .. }) => {
                format!("cloudevents {}\n{url}", origin.to_ascii_lowercase())
            }
        };
        Self(format!("{FOLDER}/{}.json", hex::encode(Sha256::digest(asked))))
    }

    /// The key of the object, or the path of the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud_events(origin: &str) -> Consent {
        Consent::CloudEvents(CloudEventsHandshake { origin: origin.to_owned(), rate: None })
    }

    #[test]
    fn a_consent_is_for_an_address_and_a_way_of_asking_whatever_the_rate() {
        let url: Url = "https://example.com/in?code=secret".parse().unwrap();
        let other: Url = "https://example.com/in".parse().unwrap();
        let key = ConsentKey::of(&url, &Consent::EventGrid(NoFields));
        // sha256 of "eventgrid\nhttps://example.com/in?code=secret"; kept consents are found under
        // it for ever.
        assert_eq!(key.as_str(), KEY);
        let with_rate = Consent::CloudEvents(CloudEventsHandshake {
            origin: "A.example.com".to_owned(),
            rate: Some(9),
        });
        assert_eq!(
            ConsentKey::of(&url, &with_rate),
            ConsentKey::of(&url, &cloud_events("a.example.com"))
        );
        let keys = [
            key,
            ConsentKey::of(&other, &Consent::EventGrid(NoFields)),
            ConsentKey::of(&url, &cloud_events("a.example.com")),
            ConsentKey::of(&url, &cloud_events("b.example.com")),
        ];
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
    }

    const KEY: &str =
        "_consents/cbb172f21ac151b07bff4cd15f8549665f7ee791737ac10d39c3d016f9dc466b.json";
}
