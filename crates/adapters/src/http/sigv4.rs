//! The signature of a request with credentials of AWS (Signature Version 4).
//!
//! Separate because it is made of the request as it is sent: method, address, every header that dispatch sets, and the
//! body where the service takes that. The signature itself is by `aws-sigv4`, as the clients of AWS make theirs.
//!
//! Promises: what it adds is hidden in what the endpoint answers. Nothing of a request is logged.

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

/// What a signature adds to a request.
pub struct Signed {
    /// Headers, in the place of any of the same name.
    pub headers: Vec<(String, String)>,
    credentials: Credentials,
}

impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signed(…)")
    }
}

impl Signed {
    /// The signature of a request that is sent now.
    ///
    /// # Errors
    /// What cannot be signed, without its value.
    pub fn of(request: &Request, signer: &Signer, now_ms: u64) -> Result<Self, String> {
        // The signer's own lines of the log would show all headers.
        with_default(NoSubscriber::default(), || signed(request, signer, now_ms))
            .ok_or_else(|| "the request cannot be signed".to_owned())
    }

    /// Hides in an answer what was added: who refuses a signature often repeats it.
    pub(super) fn hide_in(&self, exchange: Exchange) -> Exchange {
        exchange.redact(&self.credentials, usize::MAX)
    }
}

/// Whether a header is one that a signature adds.
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
        // The header says that the body is not covered.
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
    // Without a user, which is not part of the host.
    let uri = super::uri(&request.url)?.to_string();
    let signable = SignableRequest::new(request.method.as_str(), uri, headers, body);
    let (instructions, signature) = sign(signable.ok()?, &params).ok()?.into_parts();
    let headers: Vec<(String, String)> =
        instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // The session token is a credential of the destination, as long as it is valid.
    let mut hidden = Credentials::of_one_request();
    hidden.add(signature.as_bytes());
    hidden.add(credentials.access_key_id.as_bytes());
    let authorization = headers.iter().find(|(name, _)| name == "authorization");
    authorization.into_iter().for_each(|(_, value)| hidden.add(value.as_bytes()));
    Some(Signed { headers, credentials: hidden })
}
