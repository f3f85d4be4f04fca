//! Endpoint validation: a destination consents before the first event is delivered.
//!
//! Separate because it is not a delivery: it has no event, is not counted as an attempt, and one
//! consent holds for all subscriptions of an address. Here are the handshakes (`handshake`), the
//! stored consent, how long a delivery waits for one, and the allowed rate of requests (`pace`).
//!
//! Promises: a consent is for one address and one handshake, and for one origin where the handshake
//! has one. The stored document holds no secret, not even the address's query. Consents are never
//! withdrawn here: delete the document and the destination is validated again.

mod handshake;
mod pace;

use crate::subscription::CloudEventsHandshake;
use crate::subscription::NoFields;
use std::fmt;
use std::num::NonZeroU32;

pub use handshake::{
    ALLOWED_ORIGIN, ALLOWED_RATE, ASK_TIMEOUT_MS, Answer, Question, REQUEST_RATE, ask, confirm,
    judge,
};
pub use pace::{Pace, RateShare};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::subscription::{Consent, Destination};
use crate::time::duration::SECOND_MS;
use crate::time::moment::rfc3339;

/// The folder of consents, in the config bucket or beside the file of subscriptions.
pub const FOLDER: &str = "_consents";
/// The version that is written.
const VERSION: u32 = 1;
/// The shortest wait for a consent, and between two handshakes with one destination.
const WAIT_MIN_MS: u64 = 60 * SECOND_MS;
/// The longest delay of one SQS message.
const WAIT_MAX_MS: u64 = 900 * SECOND_MS;

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

/// How many requests a destination allows (CloudEvents "HTTP 1.1 Web Hooks", 4.2.2,
/// `WebHook-Allowed-Rate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// `*`: there is no limit.
    Unlimited,
    /// This many a minute.
    PerMinute(NonZeroU32),
}

impl Rate {
    /// Reads `*` or a positive number; one above `u32` is clamped.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self::Unlimited);
        }
        // Checked by hand, since `parse` accepts a plus sign.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { text.parse().unwrap_or(u32::MAX) } else { 0 };
        let invalid =
            || format!("the rate {text:?} is neither * nor a positive number of requests a minute");
        NonZeroU32::new(number).map(Self::PerMinute).ok_or_else(invalid)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("*"),
            Self::PerMinute(requests) => requests.fmt(f),
        }
    }
}

/// A stored consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The address without its query, for people.
    pub destination: String,
    /// The handshake: `eventgrid` or `cloudevents`.
    pub handshake: String,
    /// The origin, where the handshake has one.
    pub origin: Option<String>,
    /// The allowed rate.
    pub rate: Rate,
    /// When it was given.
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
    /// The same for people; never read.
    #[serde(default)]
    granted: String,
}

impl Granted {
    /// A consent of this destination by this handshake, granted now.
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

    /// The document to store.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let document = GrantedV1 {
            v: VERSION,
            destination: self.destination.clone(),
            handshake: self.handshake.clone(),
            origin: self.origin.clone(),
            allowed_rate: self.rate.to_string(),
            granted_ms: self.granted_ms,
            granted: rfc3339(self.granted_ms),
        };
        serde_json::to_vec(&document).expect("texts and numbers are JSON")
    }

    /// Reads a stored document.
    ///
    /// # Errors
    /// Why, as text, when it is not ours, or of a newer version.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let Versioned { v } = serde_json::from_slice(bytes).map_err(unreadable)?;
        // Checked before the rest, which a newer version may have changed.
        if v != VERSION {
            return Err(format!(
                "it has version {v}, and this program reads version {VERSION} only: deploy the newer version"
            ));
        }
        let GrantedV1 { destination, handshake, origin, allowed_rate, granted_ms, .. } =
            serde_json::from_slice(bytes).map_err(unreadable)?;
        let rate = Rate::parse(&allowed_rate).map_err(unreadable)?;
        Ok(Self { destination, handshake, origin, rate, granted_ms })
    }
}

fn unreadable(problem: impl fmt::Display) -> String {
    format!("it is not what this version writes: {problem}")
}

/// How long a delivery waits before its destination's consent is checked again: a minute at first,
/// then as long as it has waited already, at most 15 minutes.
#[must_use]
pub fn wait_ms(due_ms: u64, now_ms: u64) -> u64 {
    now_ms.saturating_sub(due_ms).clamp(WAIT_MIN_MS, WAIT_MAX_MS)
}

/// The pause before the next handshake with a destination that did not consent: a minute, then
/// twice as long each time, at most 15 minutes.
#[must_use]
pub fn pause_ms(before_ms: u64) -> u64 {
    before_ms.saturating_mul(2).clamp(WAIT_MIN_MS, WAIT_MAX_MS)
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
            assert_eq!(Granted::read(&document), Ok(granted));
            let text = String::from_utf8(document).unwrap();
            assert!(!text.contains("secret") && !text.contains("pass"), "{text}");
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
        assert!(newer.starts_with("it has version 2, "), "{newer}");
        for broken in [
            "",
            "[]",
            r#"{"v":1}"#,
            r#"{"v":1,"destination":"","handshake":"","allowed_rate":"0","granted_ms":0}"#,
        ] {
            let problem = Granted::read(broken.as_bytes()).unwrap_err();
            assert!(problem.starts_with("it is not what this version writes: "), "{problem}");
        }
    }

    #[test]
    fn a_rate_is_an_asterisk_or_a_positive_number() {
        let number = |number| NonZeroU32::new(number).map(Rate::PerMinute).ok_or_else(String::new);
        assert_eq!(Rate::parse(" * "), Ok(Rate::Unlimited));
        assert_eq!(Rate::parse("120"), number(120));
        assert_eq!(Rate::parse("99999999999999999999"), number(u32::MAX));
        for invalid in ["", "0", "-1", "1.5", "many", "+7"] {
            assert!(Rate::parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn a_delivery_waits_a_minute_and_then_as_long_as_it_has_waited() {
        for (waited_ms, next_ms) in [
            (0, 60_000),
            (59_000, 60_000),
            (60_000, 60_000),
            (120_000, 120_000),
            (500_000, 500_000),
            (9_000_000_000, 900_000),
        ] {
            assert_eq!(wait_ms(1_000, 1_000 + waited_ms), next_ms);
        }
        assert_eq!(wait_ms(5_000, 1_000), 60_000);
        assert_eq!(
            [0, 60_000, 480_000, 900_000].map(pause_ms),
            [60_000, 120_000, 900_000, 900_000]
        );
    }
}
