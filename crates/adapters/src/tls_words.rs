//! Describes TLS errors for people.
//!
//! Separate from [`crate::error_words`] because there are many TLS errors, and their messages
//! contain names of library variants.

use delivery::time::moment::rfc3339;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Describes a TLS error for people.
#[expect(clippy::wildcard_enum_match_arm, reason = "new versions of rustls add variants")]
#[must_use]
pub(crate) fn tls_words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(problem) => certificate_words(problem),
        Error::NoCertificatesPresented => "the server presented no certificate".to_owned(),
        Error::AlertReceived(alert) => {
            format!("the server ended the TLS handshake: {}", alert_words(*alert))
        }
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the port does not speak TLS".to_owned()
        }
        Error::InvalidMessage(_) | Error::PeerMisbehaved(_) => {
            "the server violates the TLS protocol".to_owned()
        }
        Error::PeerIncompatible(_) => {
            "the server supports no accepted TLS version or cipher".to_owned()
        }
        Error::InconsistentKeys(_) => "the certificate does not match the private key".to_owned(),
        _ => "the TLS handshake failed".to_owned(),
    }
}

/// Describes why a certificate is not accepted.
#[expect(clippy::wildcard_enum_match_arm, reason = "new versions of rustls add variants")]
fn certificate_words(problem: &CertificateError) -> String {
    let words = match problem {
        CertificateError::Expired => "certificate expired",
        CertificateError::ExpiredContext { not_after, .. } => {
            return format!("certificate expired at {}", at(*not_after));
        }
        CertificateError::NotValidYet => "certificate not valid yet",
        CertificateError::NotValidYetContext { not_before, .. } => {
            return format!("certificate not valid yet; valid from {}", at(*not_before));
        }
        CertificateError::NotValidForName => "certificate not valid for the name of the host",
        CertificateError::NotValidForNameContext { expected, .. } => {
            return format!("certificate not valid for name {}", expected.to_str());
        }
        CertificateError::UnknownIssuer => "certificate from an unknown issuer",
        CertificateError::Revoked => "certificate revoked",
        CertificateError::BadEncoding => "certificate is malformed",
        CertificateError::BadSignature => "certificate has an invalid signature",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate is not for server authentication"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "certificate has an unsupported signature algorithm"
        }
        _ => "certificate is not valid",
    };
    words.to_owned()
}

/// Describes the alert with which the peer ended a handshake. An alert without a description is
/// shown with its registry number.
/// <https://www.iana.org/assignments/tls-parameters/tls-parameters.xhtml#tls-parameters-6>
#[expect(clippy::wildcard_enum_match_arm, reason = "new versions of rustls add variants")]
#[must_use]
pub(crate) fn alert_words(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "a client certificate is required"
        }
        AlertDescription::BadCertificate => "the client certificate is not valid",
        AlertDescription::UnsupportedCertificate => {
            "the client certificate is of an unsupported type"
        }
        AlertDescription::CertificateRevoked => "the client certificate was revoked",
        AlertDescription::CertificateExpired => "the client certificate has expired",
        AlertDescription::CertificateUnknown => "the client certificate is not accepted",
        AlertDescription::UnknownCA => "the issuer of the client certificate is unknown",
        AlertDescription::AccessDenied => "access is denied",
        AlertDescription::HandshakeFailure => "no common cipher",
        AlertDescription::ProtocolVersion => "no common TLS version",
        AlertDescription::UnrecognisedName => "the host name is not served",
        AlertDescription::InternalError => "internal error",
        alert => return format!("alert {}", u8::from(alert)),
    };
    words.to_owned()
}

fn at(time: UnixTime) -> String {
    let text = rfc3339(time.as_secs().saturating_mul(1_000));
    text.split('.').next().map(|seconds| format!("{seconds}Z")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_error_of_tls_is_told_by_the_name_of_a_variant() {
        let second = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = CertificateError::ExpiredContext {
            time: second(1_795_158_180),
            not_after: second(1_795_158_000),
        };
        for (error, words) in [
            (Error::InvalidCertificate(expired), "certificate expired at 2026-11-20T07:00:00Z"),
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "certificate from an unknown issuer",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "the port does not speak TLS",
            ),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                "the server ended the TLS handshake: no common TLS version",
            ),
            (
                Error::AlertReceived(AlertDescription::DecodeError),
                "the server ended the TLS handshake: alert 50",
            ),
        ] {
            assert_eq!(tls_words(&error), words);
        }
    }
}
