//! How a failed exchange is classified, and its detail for people.

use std::error::Error;
use std::{io, iter};

use delivery::delivery::outcome::TransportResult;
use rustls::AlertDescription;
use thiserror::Error;

use super::clients::{HEAD_MAX_BYTES, HEADERS_MAX};
use super::encoding::Undecodable;
use super::names::NameFailure;
use super::tls::TlsError;

/// The longest detail of a failure.
const DETAIL_MAX_CHARS: usize = 300;

/// Why there is no whole answer. No variant holds the URL: its query may hold a secret.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("no request can be sent to such a URL")]
    Url,
    /// A fault of this machine, or of a secret that can be repaired, so other attempts follow.
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("error sending request")]
    Request(#[from] hyper_util::client::legacy::Error),
    #[error("error reading the answer")]
    Answer(#[from] hyper::Error),
    #[error("the rest of a long answer came too slowly while others waited to be read")]
    TurnOver,
    #[error(
        "the head of its answer has more than {HEADERS_MAX} headers, or {HEAD_MAX_BYTES} bytes"
    )]
    Head,
    #[error(transparent)]
    Encoding(#[from] Undecodable),
}

/// What an endpoint says by an alert of TLS about the certificate of who is calling: it verifies no other one.
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

/// The result that a failure stands for.
pub(super) fn result(failure: &Failure) -> TransportResult {
    // Nothing was sent, and a repeat would be built in the same way.
    match failure {
        Failure::Url => return TransportResult::Unsendable,
        Failure::Tls(_) => return TransportResult::Aborted,
        Failure::TurnOver => return TransportResult::TimedOut,
        Failure::Head | Failure::Encoding(_) => return TransportResult::SocketError,
        Failure::Request(_) | Failure::Answer(_) => {}
    }
    // The client reports what its resolver returns as a failure to connect.
    match caused_by::<NameFailure>(failure) {
        Some(NameFailure::Blocked(_)) => return TransportResult::Blocked,
        Some(NameFailure::Unresolved(_)) => return TransportResult::ResolutionError,
        None => {}
    }
    if causes(failure).any(is_timeout) {
        return TransportResult::TimedOut;
    }
    if refusal(failure).is_some() {
        // An operator can repair it, as a secret that is missing; the endpoint is not to blame.
        return TransportResult::Aborted;
    }
    match caused_by::<rustls::Error>(failure) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            TransportResult::TlsError
        }
        _ => TransportResult::SocketError,
    }
}

/// Recognises an endpoint that says it has not processed the request. Only HTTP/2 can say so (RFC 9113, 8.7). Of a
/// connection that goes away, h2 reports it for the streams above the last one that the endpoint will answer.
pub(super) fn is_unprocessed(failure: &Failure) -> bool {
    caused_by::<h2::Error>(failure).is_some_and(|error| {
        let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (error.is_go_away() || is_refused)
    })
}

/// The failure's message and those of its causes.
pub(super) fn detail(failure: &Failure) -> String {
    let text = match (caused_by::<NameFailure>(failure), refusal(failure)) {
        // The layers around it say only that connecting failed.
        (Some(failure), _) => failure.to_string(),
        (None, Some(alert)) => format!("it refused who is calling: {alert}"),
        (None, None) => with_causes(failure),
    };
    text.chars().take(DETAIL_MAX_CHARS).collect()
}

/// The alert by which an endpoint refused the certificate of who is calling, or that there is none.
fn refusal(failure: &Failure) -> Option<String> {
    let mut texts = causes(failure).map(ToString::to_string);
    // By its text: a client of HTTP/2 keeps no more of what ended its connection.
    let is_refusal = |text: &String| {
        REFUSALS.iter().any(|of| rustls::Error::AlertReceived(*of).to_string() == *text)
    };
    texts.find(is_refusal)
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Some layers repeat the message of their cause.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// The error of this type that an error was caused by.
fn caused_by<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(|error| error.downcast_ref::<E>())
}

/// An error and its causes; an I/O error may carry another inside.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    iter::from_fn(move || {
        let error = next?;
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
        Some(error)
    })
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
