//! Classifies failed exchanges, and describes them for people.
//!
//! Separate from sending because libraries report one failure at several layers: this module
//! searches the chain of causes for the one that determines the transport result.
//!
//! Promises: no description contains the URL, or more than [`DETAIL_MAX_CHARS`] characters.

use std::error::Error;
use std::io;

use delivery::delivery::outcome::TransportResult;
use rustls::AlertDescription;
use thiserror::Error;

use super::clients::{HEAD_MAX_BYTES, HEADERS_MAX};
use super::encoding::Undecodable;
use super::names::NameFailure;
use super::tls::TlsError;
use crate::error_words::{cause_words, causes};
use crate::tls_words::{alert_words, tls_words};

/// Maximum length of the description of a failure.
const DETAIL_MAX_CHARS: usize = 300;

/// The reason why there is no complete response. No variant contains the URL, because its query may
/// hold a secret.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("the URL is not valid for an HTTP request")]
    Url,
    /// A fault of this machine, or of a secret that an operator can repair. The request is retried.
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the request cannot be sent")]
    Request(#[from] hyper_util::client::legacy::Error),
    #[error("the response cannot be read")]
    Answer(#[from] hyper::Error),
    #[error(
        "the rest of a long response arrived too slowly while other responses waited to be read"
    )]
    TurnOver,
    #[error(
        "the response has more than {HEADERS_MAX} headers, or more than {HEAD_MAX_BYTES} bytes of \
         headers"
    )]
    Head,
    #[error(transparent)]
    Encoding(#[from] Undecodable),
}

/// TLS alerts with which an endpoint refuses the client certificate.
const REFUSALS: [AlertDescription; 9] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::NoCertificate,
];

/// Returns the transport result for a failure.
pub(super) fn result(failure: &Failure) -> TransportResult {
    // With `Failure::Url` nothing was sent, and a retry would build the same request.
    match failure {
        Failure::Url => return TransportResult::Unsendable,
        Failure::Tls(_) => return TransportResult::Aborted,
        Failure::TurnOver => return TransportResult::TimedOut,
        Failure::Head | Failure::Encoding(_) => return TransportResult::SocketError,
        Failure::Request(_) | Failure::Answer(_) => {}
    }
    // The client reports errors of its resolver as connect errors.
    match caused_by::<NameFailure>(failure) {
        Some(NameFailure::Blocked(_)) => return TransportResult::Blocked,
        Some(NameFailure::Unresolved(_)) => return TransportResult::ResolutionError,
        None => {}
    }
    if causes(failure).any(is_timeout) {
        return TransportResult::TimedOut;
    }
    if refusal(failure).is_some() {
        // An operator can repair the client certificate, like a missing secret. The endpoint is not
        // at fault.
        return TransportResult::Aborted;
    }
    match caused_by::<rustls::Error>(failure) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            TransportResult::TlsError
        }
        _ => TransportResult::SocketError,
    }
}

/// True if the endpoint states that it has not processed the request. Only HTTP/2 can state this
/// (RFC 9113, 8.7). After GOAWAY, h2 returns this error for streams above the last one that the
/// endpoint will process.
pub(super) fn is_unprocessed(failure: &Failure) -> bool {
    caused_by::<h2::Error>(failure).is_some_and(|error| {
        let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (error.is_go_away() || is_refused)
    })
}

/// Describes a failure for people, without the URL.
pub(super) fn detail(failure: &Failure) -> String {
    let text = match (caused_by::<NameFailure>(failure), refusal(failure)) {
        (Some(failure), _) => failure.to_string(),
        (None, Some(alert)) => {
            format!("the endpoint refused the client certificate: {}", alert_words(alert))
        }
        (None, None) => match failure {
            Failure::Request(_) | Failure::Answer(_) => cause_words(failure),
            Failure::Tls(TlsError::Config(error)) => format!("{failure}: {}", tls_words(error)),
            Failure::Tls(_)
            | Failure::Url
            | Failure::TurnOver
            | Failure::Head
            | Failure::Encoding(_) => failure.to_string(),
        },
    };
    text.chars().take(DETAIL_MAX_CHARS).collect()
}

/// Returns the TLS alert of an endpoint that refused the client certificate, or that requires one;
/// `None` if the failure has a different cause.
fn refusal(failure: &Failure) -> Option<AlertDescription> {
    // Compare texts, because the HTTP/2 client does not preserve the type of the error that ended
    // its connection.
    let mut texts = causes(failure).map(ToString::to_string);
    texts.find_map(|text| {
        let is_text =
            |alert: &AlertDescription| rustls::Error::AlertReceived(*alert).to_string() == text;
        REFUSALS.into_iter().find(is_text)
    })
}

/// Returns the first cause of an error that has the type `E`.
fn caused_by<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(|error| error.downcast_ref::<E>())
}

fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_the_connection_is_found_among_the_causes() {
        let timed_out = |kind: io::ErrorKind| {
            let error = io::Error::other(io::Error::from(kind));
            causes(&error).any(is_timeout)
        };
        assert!(timed_out(io::ErrorKind::TimedOut));
        assert!(!timed_out(io::ErrorKind::ConnectionReset));
    }
}
