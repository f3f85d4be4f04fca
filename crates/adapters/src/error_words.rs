//! Describes errors of the operating system and of libraries for people.
//!
//! Separate because such errors are written for developers: they name types, layers and system
//! error numbers. Deliveries, storage, the AWS clients and the command line all show these
//! descriptions.
//!
//! Promises: no description contains a system error number, or the name of a type or layer of a
//! library.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter;

use crate::tls_words::tls_words;

/// Description of a refused connection, over which nothing was sent.
pub const CONNECTION_REFUSED: &str = "connection refused";

/// Maximum number of causes of an error that are inspected.
const CAUSES_MAX: usize = 32;
/// Beginning of the C library's message about a name that does not resolve.
const LOOKUP_FAILED: &str = "failed to lookup address information";
/// Beginning of the error number in a system error's message. Descriptions omit the number.
const OS_ERROR: &str = " (os error ";

/// Returns an error and its causes, outermost first. An I/O error may contain another error.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    let all = iter::from_fn(move || {
        let error = next?;
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
        Some(error)
    });
    all.take(CAUSES_MAX)
}

/// Describes a library error by its innermost cause, because the outer layers only announce a
/// cause. Prefers causes for which this module has a description; other causes keep their text.
#[must_use]
pub fn cause_words(error: &(dyn Error + 'static)) -> String {
    if let Some(words) = causes(error).filter_map(known).last() {
        return words;
    }
    let texts = causes(error).filter_map(|cause| {
        let text = cause.to_string();
        // The cause chain of some clients ends with an empty text, or with a list of attempts.
        let line = text.lines().next().unwrap_or_default().trim_end_matches(". Attempted:");
        Some(without_number(line).to_owned()).filter(|text| !text.is_empty())
    });
    texts.last().unwrap_or_default()
}

/// Returns the context messages of an error, followed by the description of its cause.
#[must_use]
pub fn chain_words(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let chain = iter::successors(Some(error), |error| Error::source(*error));
    for error in chain.take(CAUSES_MAX) {
        let is_last = is_of_library(error);
        let text = if is_last { cause_words(error) } else { error.to_string() };
        // Some layers repeat the message of their cause.
        if !said.last().is_some_and(|before| before.ends_with(&text)) {
            said.push(text);
        }
        if is_last {
            break;
        }
    }
    said
}

/// Describes an I/O error.
#[must_use]
pub fn io_words(error: &io::Error) -> String {
    cause_words(error)
}

/// True if the error and all its causes come from libraries.
fn is_of_library(error: &(dyn Error + 'static)) -> bool {
    error.is::<io::Error>()
        || error.is::<reqwest::Error>()
        || error.is::<rustls::Error>()
        || error.is::<hyper::Error>()
        || error.is::<h2::Error>()
        || error.is::<hyper_util::client::legacy::Error>()
}

fn known(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_io(error);
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(tls_words(error));
    }
    if let Some(error) = error.downcast_ref::<h2::Error>() {
        return Some(of_http2(error));
    }
    error.downcast_ref::<hyper::Error>().and_then(of_http1).map(ToOwned::to_owned)
}

/// Describes an I/O error; `None` if its inner error describes it. A timeout and an early end of
/// the connection are described here, even with an inner error.
fn of_io(error: &io::Error) -> Option<String> {
    let text = error.to_string();
    if text.starts_with(LOOKUP_FAILED) {
        return Some("the host name does not resolve".to_owned());
    }
    if error.get_ref().is_none() {
        return Some(
            of_kind(error.kind()).map_or_else(|| uncapitalized(without_number(&text)), Into::into),
        );
    }
    let endings = [
        (ErrorKind::TimedOut, "connection timed out"),
        (ErrorKind::UnexpectedEof, "connection closed before the response was complete"),
    ];
    let ending = endings.into_iter().find(|(kind, _)| *kind == error.kind());
    ending.map(|(_, words)| words.to_owned())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the standard library adds kinds of errors")]
fn of_kind(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "there is no such file or folder",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::ConnectionRefused => CONNECTION_REFUSED,
        ErrorKind::ConnectionReset => "connection reset",
        ErrorKind::ConnectionAborted => "connection aborted",
        ErrorKind::BrokenPipe => "connection closed while data was sent",
        ErrorKind::HostUnreachable => "no route to the host",
        ErrorKind::NetworkUnreachable => "network unreachable",
        ErrorKind::NetworkDown => "the network is down",
        ErrorKind::AddrInUse => "another program uses the address",
        ErrorKind::AddrNotAvailable => "this machine does not have the address",
        ErrorKind::AlreadyExists => "the file or folder already exists",
        ErrorKind::TimedOut => "connection timed out",
        ErrorKind::InvalidData => "the text is not UTF-8",
        ErrorKind::IsADirectory => "the path is a folder, not a file",
        ErrorKind::NotADirectory => "a part of the path is a file, not a folder",
        ErrorKind::DirectoryNotEmpty => "the folder is not empty",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::UnexpectedEof => "the data ended too early",
        _ => return None,
    })
}

fn of_http1(error: &hyper::Error) -> Option<&'static str> {
    if error.is_parse_too_large() {
        return Some("the response headers are too large");
    }
    if error.is_parse_status() {
        return Some("the response has no valid HTTP status");
    }
    if error.is_parse() {
        return Some("the response is not valid HTTP");
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return Some("connection closed before the response was complete");
    }
    None
}

fn of_http2(error: &h2::Error) -> String {
    if let Some(error) = error.get_io() {
        return cause_words(error);
    }
    let why = error.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
    if !error.is_remote() {
        return format!("the response is not valid HTTP/2{why}");
    }
    let scope = if error.is_go_away() { "connection" } else { "request" };
    format!("the server ended the HTTP/2 {scope}{why}")
}

/// Removes the error number from the message of a system error.
fn without_number(text: &str) -> &str {
    text.split(OS_ERROR).next().unwrap_or(text)
}

fn uncapitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_lowercase().to_string());
    format!("{}{}", first.unwrap_or_default(), chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_error_has_words_and_no_number() {
        for (number, words) in [
            (2, "there is no such file or folder"),
            (13, "permission denied"),
            (24, "too many open files"),
            (28, "the disk is full"),
            (104, "connection reset"),
            (110, "connection timed out"),
            (111, "connection refused"),
            (113, "no route to the host"),
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(io_words(&error), words);
            assert_eq!(cause_words(&io::Error::other(error)), words, "it is carried by another");
        }
    }

    #[test]
    fn an_error_that_carries_a_text_is_told_by_it() {
        for (kind, text, words) in [
            (ErrorKind::Other, "more than 384 KiB", "more than 384 KiB"),
            (ErrorKind::Other, "Connection refused (os error 111)", "Connection refused"),
            (ErrorKind::TimedOut, "deadline has elapsed", "connection timed out"),
            (
                ErrorKind::UnexpectedEof,
                "tls handshake eof",
                "connection closed before the response was complete",
            ),
            (
                ErrorKind::Other,
                "failed to lookup address information: Name or service not known",
                "the host name does not resolve",
            ),
        ] {
            assert_eq!(cause_words(&io::Error::new(kind, text)), words);
        }
    }

    #[test]
    fn contexts_are_kept_and_layers_of_libraries_are_not() {
        #[derive(Debug, thiserror::Error)]
        #[error("it cannot be read")]
        struct Context(#[source] io::Error);
        let error = Context(io::Error::from_raw_os_error(13));
        assert_eq!(chain_words(&error), ["it cannot be read", "permission denied"]);
    }
}
