//! Declares the nested settings of a destination: certificates, signatures, disabling and consent.

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
    /// Additional certificate authorities to trust when the certificate of the destination is
    /// verified.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        /// Certificates of additional trusted authorities, in PEM.
        "caBundle" => pub ca_bundle: CaBundle = Required(CaBundles),
    }
}

record! {
    /// Secrets that sign every request (Standard Webhooks). Each secret adds one signature: `v1`
    /// with a shared secret (`whsec_…`), `v1a` with a private key (`whsk_…`).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Signing {
        /// One secret, or several during a rotation.
        "secrets" => pub secrets: Vec<SecretName> = Required(SECRETS),
        /// The public keys of `whsk_` secrets. `apply --public-keys` writes them as a JSON Web Key
        /// Set for receivers.
        "publicKeys" => pub public_keys: Option<Vec<PublicKey>> = Optional(PUBLIC_KEYS, "none"),
    }
}

record! {
    /// Disables a destination that keeps failing, until an operator enables it. Its deliveries
    /// become dead letters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Disable {
        /// Time for which the destination must keep failing; PT1H to P14D.
        "after" => pub after_ms: u64 = Required(Duration(HOUR_MS..=14 * DAY_MS)),
    }
}

alternatives! {
    /// Handshake in which a destination agrees to receive events, before the first delivery.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Consent by "handshake" {
        /// The handshake of Event Grid: the destination echoes a code, or a person opens the
        /// validation URL.
        "eventgrid" => EventGrid(NoFields),
        /// The handshake of CloudEvents: an OPTIONS request ("HTTP 1.1 Web Hooks for Event
        /// Delivery").
        "cloudevents" => CloudEvents(CloudEventsHandshake),
    }
}

record! {
    /// Settings of the CloudEvents handshake, an `OPTIONS` request.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CloudEventsHandshake {
        /// DNS name of the sender, for the header `WebHook-Request-Origin`.
        "origin" => pub origin: String = Required(names::DNS_NAME),
        /// Requested number of requests per minute, in the header `WebHook-Request-Rate`. Without
        /// this field, no rate is requested.
        "rate" => pub rate: Option<u32> = Optional(Integer(1..=1_000_000), "none"),
    }
}
