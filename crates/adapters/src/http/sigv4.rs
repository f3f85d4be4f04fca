//! Signs a request with AWS credentials (Signature Version 4).
//!
//! Separate because the signature depends on the final request: method, address, every header that
//! dispatch sets, and the body if the service accepts it. `aws-sigv4` computes the signature, as in
//! the AWS clients.
//!
//! Promises: the added credentials are redacted in the response. Nothing of a request is logged.

use std::time::{Duration, SystemTime};

use aws_sdk_sts::config::Credentials as Keys;
use aws_sigv4::http_request::{
    PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use delivery::delivery::outcome::Exchange;
use delivery::request::Request;
use delivery::request::signer::Signer;
use delivery::subscription::auth::sigv4::SIGNING_HEADERS;
use delivery::subscription::credentials::Credentials;
use tracing::subscriber::{NoSubscriber, with_default};

/// The changes to a request that sign it.
pub struct Signed {
    /// Headers to set. They replace existing headers of the same name.
    pub headers: Vec<(String, String)>,
    credentials: Credentials,
}

impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signed(…)")
    }
}

impl Signed {
    /// Signs a request that is sent at `now_ms`.
    ///
    /// # Errors
    /// Fails if the request cannot be signed; the error does not contain values of the request.
    pub fn sign(request: &Request, signer: &Signer, now_ms: u64) -> Result<Self, String> {
        // Suppress the signer's own log lines, which would contain all headers.
        with_default(NoSubscriber::default(), || signed(request, signer, now_ms))
            .ok_or_else(|| "the request cannot be signed".to_owned())
    }

    /// Redacts the credentials in a response, because endpoints often quote a signature that they
    /// refuse.
    pub(super) fn hide_in(&self, exchange: Exchange) -> Exchange {
        exchange.redact(&self.credentials, usize::MAX)
    }
}

/// True if a signature adds a header of this name.
pub(super) fn is_of_signature(name: &str) -> bool {
    SIGNING_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name))
}

fn signed(request: &Request, signer: &Signer, now_ms: u64) -> Option<Signed> {
    let Signer { scope, credentials } = signer;
    let identity = Keys::new(
        &credentials.access_key_id,
        credentials.secret_access_key.expose(),
        credentials.session_token.as_ref().map(|token| token.expose().to_owned()),
        None,
        "lastmile",
    )
    .into();
    let mut settings = SigningSettings::default();
    let body = if scope.signs_body {
        SignableBody::Bytes(&request.body)
    } else {
        // The header states that the signature does not cover the body.
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        SignableBody::UnsignedPayload
    };
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(&scope.region)
        .name(scope.service)
        .time(SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms))
        .settings(settings)
        .build()
        .ok()?
        .into();
    let own = request.headers.iter().filter(|(name, _)| !is_of_signature(name));
    let headers = own.map(|(name, value)| (name.as_str(), value.as_str()));
    // Remove user and password, which are not part of the host.
    let uri = super::uri(&request.url)?.to_string();
    let signable = SignableRequest::new(request.method.as_str(), uri, headers, body);
    let (instructions, signature) = sign(signable.ok()?, &params).ok()?.into_parts();
    let headers: Vec<(String, String)> =
        instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // The session token is not added here: while it is valid, it is one of the destination's
    // credentials, which are redacted separately.
    let mut hidden = Credentials::of_one_request();
    hidden.add(signature.as_bytes());
    hidden.add(credentials.access_key_id.as_bytes());
    let authorization = headers.iter().find(|(name, _)| name == "authorization");
    authorization.into_iter().for_each(|(_, value)| hidden.add(value.as_bytes()));
    Some(Signed { headers, credentials: hidden })
}
