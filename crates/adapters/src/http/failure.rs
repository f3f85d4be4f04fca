//! How a failed exchange is classified, and its detail for people.

use std::error::Error;

use delivery::delivery::outcome::TransportResult;

use super::names::NameFailure;

/// The longest detail of a failure.
const DETAIL_MAX_CHARS: usize = 300;

/// The result that a failure stands for.
pub(super) fn result(failure: &reqwest::Error) -> TransportResult {
    // Nothing was sent, and a repeat would be built in the same way.
    if failure.is_builder() {
        return TransportResult::Unsendable;
    }
    if failure.is_timeout() {
        return TransportResult::TimedOut;
    }
    // The client reports what its resolver returns as a failure to connect.
    match caused_by::<NameFailure>(failure) {
        Some(NameFailure::Blocked(_)) => return TransportResult::Blocked,
        Some(NameFailure::Unresolved(_)) => return TransportResult::ResolutionError,
        None => {}
    }
    match caused_by::<rustls::Error>(failure) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            TransportResult::TlsError
        }
        _ => TransportResult::SocketError,
    }
}

/// The failure's message and those of its causes. Without the URL: its query may hold a secret.
pub(super) fn detail(failure: reqwest::Error) -> String {
    let failure = failure.without_url();
    let text = match caused_by::<NameFailure>(&failure) {
        // The layers around it say only that connecting failed.
        Some(failure) => failure.to_string(),
        None => with_causes(&failure),
    };
    text.chars().take(DETAIL_MAX_CHARS).collect()
}

/// An error's message and those of its causes.
pub(super) fn with_causes(error: &dyn Error) -> String {
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

/// The error of this type that an error was caused by; an I/O error may carry another inside.
fn caused_by<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}
