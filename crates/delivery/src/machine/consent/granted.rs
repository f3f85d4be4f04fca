//! [`Granted`]: the stored consent of a destination, and its JSON document.
//!
//! This module is separate because all versions of the document must stay readable. The document
//! contains no secret, not even the query of the address.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rate::Rate;
use crate::subscription::{CloudEventsHandshake, Consent, Destination, NoFields};
use crate::time::moment::rfc3339;

/// Version of the documents that this program writes.
const VERSION: u32 = 1;

/// A stored consent of a destination to deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The URL of the destination without its query, for people.
    pub destination: String,
    /// The name of the handshake: `eventgrid` or `cloudevents`.
    pub handshake: String,
    /// The origin to which the destination consented; `None` if the handshake has none.
    pub origin: Option<String>,
    /// The rate of requests that the destination allows.
    pub rate: Rate,
    /// Time of the consent in milliseconds since 1970.
    pub granted_ms: u64,
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct GrantedV1 {
    v: u32,
    destination: String,
    handshake: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    allowed_rate: String,
    granted_ms: u64,
    /// Time of the consent in RFC 3339, for people; never parsed.
    #[serde(default)]
    granted: String,
}

impl Granted {
    /// Creates the consent of this destination by this handshake, granted at `now_ms`.
    #[must_use]
    pub fn new(destination: &Destination, consent: &Consent, rate: Rate, now_ms: u64) -> Self {
        let (handshake, origin) = match consent {
            Consent::EventGrid(NoFields) => ("eventgrid", None),
            Consent::CloudEvents(CloudEventsHandshake { origin, .. }) => {
                ("cloudevents", Some(origin.clone()))
            }
        };
        Self {
            destination: destination.display(),
            handshake: handshake.to_owned(),
            origin,
            rate,
            granted_ms: now_ms,
        }
    }

    /// Returns the consent as a JSON document.
    #[must_use]
    pub fn write(&self) -> String {
        let document = GrantedV1 {
            v: VERSION,
            destination: self.destination.clone(),
            handshake: self.handshake.clone(),
            origin: self.origin.clone(),
            allowed_rate: self.rate.to_string(),
            granted_ms: self.granted_ms,
            granted: rfc3339(self.granted_ms),
        };
        serde_json::to_string(&document).expect("texts and numbers are JSON")
    }

    /// Parses a stored document.
    ///
    /// # Errors
    /// A description of the problem, if the document is invalid or has a newer version.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let Versioned { v } = serde_json::from_slice(bytes).map_err(unreadable)?;
        // The version is checked first, because a newer version may have changed all other fields.
        if v != VERSION {
            return Err(format!(
                "the consent has version {v}, but this program supports only version {VERSION}: \
                 deploy the newer version"
            ));
        }
        let GrantedV1 { destination, handshake, origin, allowed_rate, granted_ms, .. } =
            serde_json::from_slice(bytes).map_err(unreadable)?;
        let rate = Rate::parse(&allowed_rate).map_err(unreadable)?;
        Ok(Self { destination, handshake, origin, rate, granted_ms })
    }
}

fn unreadable(problem: impl fmt::Display) -> String {
    format!("the consent is not valid: {problem}")
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn cloud_events(origin: &str) -> Consent {
        Consent::CloudEvents(CloudEventsHandshake { origin: origin.to_owned(), rate: None })
    }

    #[test]
    fn what_was_written_is_read_back_and_shows_no_query() {
        let url: Url = "https://user:pass@example.com/in?code=secret".parse().unwrap();
        for (consent, rate) in
            [(Consent::EventGrid(NoFields), "*"), (cloud_events("a.example.com"), "120")]
        {
            let granted = Granted::new(
                &Destination::new(url.clone(), 1),
                &consent,
                Rate::parse(rate).unwrap(),
                1_795_158_180_000,
            );
            let document = granted.write();
            assert_eq!(Granted::read(document.as_bytes()), Ok(granted));
            assert!(!document.contains("secret") && !document.contains("pass"), "{document}");
        }
    }

    #[test]
    fn the_first_version_is_read_for_ever_and_a_newer_one_is_not_guessed_at() {
        let granted =
            Granted::read(include_bytes!("../../../fixtures/consent/v1/cloudevents.json")).unwrap();
        assert_eq!(
            (granted.rate.to_string(), granted.origin.as_deref()),
            ("120".to_owned(), Some("events.example.com"))
        );
        let granted =
            Granted::read(include_bytes!("../../../fixtures/consent/v1/eventgrid.json")).unwrap();
        assert_eq!((granted.rate, granted.origin), (Rate::Unlimited, None));
        let newer = Granted::read(br#"{"v":2}"#).unwrap_err();
        assert!(newer.starts_with("the consent has version 2, "), "{newer}");
        for broken in [
            "",
            "[]",
            r#"{"v":1}"#,
            r#"{"v":1,"destination":"","handshake":"","allowed_rate":"0","granted_ms":0}"#,
        ] {
            let problem = Granted::read(broken.as_bytes()).unwrap_err();
            assert!(problem.starts_with("the consent is not valid: "), "{problem}");
        }
    }
}
