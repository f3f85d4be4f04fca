//! Declares mappings in a destination: certificates, signatures, disabling and consent.

use crate::document::kind::{Duration, Integer};
use crate::document::record::{NoFields, Optional, Required};
use crate::subscription::kinds::ca_bundle::CaBundles;
use crate::subscription::kinds::names;
use crate::subscription::kinds::secrets::{PUBLIC_KEYS, SECRETS};
use crate::subscription::public_key::PublicKey;
use crate::subscription::secret::SecretName;
use crate::subscription::tls::CaBundle;
use crate::time::duration::{DAY_MS, HOUR_MS};

record! {
    /// Certificate authorities for the certificate of a destination.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        /// Additional trusted authorities, in PEM.
        "caBundle" => pub ca_bundle: CaBundle = Required(CaBundles),
    }
}

record! {
    /// Secrets that sign every request (Standard Webhooks), each with a signature of its own: `v1` with a shared secret
    /// (`whsec_…`), `v1a` with a private key (`whsk_…`).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Signing {
        /// One, or several while one is rotated.
        "secrets" => pub secrets: Vec<SecretName> = Required(SECRETS),
        /// The public keys of `whsk_` secrets. `apply --public-keys` writes them as a JSON Web Key Set for receivers.
        "publicKeys" => pub public_keys: Option<Vec<PublicKey>> = Optional(PUBLIC_KEYS, "none"),
    }
}

record! {
    /// When a destination that keeps failing is disabled, until an operator enables it. Its deliveries become dead letters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Disable {
        /// The time that it has to keep failing; PT1H to P14D.
        "after" => pub after_ms: u64 = Required(Duration(HOUR_MS..=14 * DAY_MS)),
    }
}

alternatives! {
    /// The handshake by which a destination consents to receive events, before the first delivery.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Consent by "handshake" {
        /// The handshake of Event Grid: it echoes a code, or a person opens the validation URL.
        "eventgrid" => EventGrid(NoFields),
        /// The handshake of CloudEvents: an OPTIONS request ("HTTP 1.1 Web Hooks for Event Delivery").
        "cloudevents" => CloudEvents(CloudEventsHandshake),
    }
}

record! {
    /// The `OPTIONS` request of CloudEvents.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CloudEventsHandshake {
        /// The sender, as a DNS name: `WebHook-Request-Origin`.
        "origin" => pub origin: String = Required(names::DNS_NAME),
        /// How many requests a minute are asked for; without it, none in particular: `WebHook-Request-Rate`.
        "rate" => pub rate: Option<u32> = Optional(Integer(1..=1_000_000), "none"),
    }
}
