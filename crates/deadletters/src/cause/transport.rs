//! Titles of failures without a response, made from the details that attempts record.
//!
//! Separate because these details do not come from the destination: lastmile and its HTTP and TLS
//! libraries write them. Pure.
//!
//! Promises: no title contains the name or the address of the destination, because neither is part
//! of a cause.

use delivery::delivery::outcome::Outcome;

use super::template;

/// Titles for details: each pair is a lower-case fragment of a detail, and the title for all
/// details that contain it. HTTP and TLS libraries describe the same failure in several ways, and
/// its dead letters must have one cause.
const MEANINGS: [(&str, &str); 39] = [
    ("connection refused", "connection refused"),
    ("connection reset", "connection reset"),
    ("broken pipe", "connection closed while the request was sent"),
    ("connection closed", "connection closed before the response was complete"),
    ("unexpected eof", "connection closed before the response was complete"),
    ("unexpected end of file", "connection closed before the response was complete"),
    ("end of file before message length", "connection closed before the response was complete"),
    ("connection aborted", "connection aborted"),
    ("no route to host", "no route to the host"),
    ("host is unreachable", "no route to the host"),
    ("network is unreachable", "network unreachable"),
    ("does not resolve", "host name does not resolve"),
    ("failed to lookup address", "host name does not resolve"),
    ("dns error", "host name does not resolve"),
    ("certificate expired", "certificate expired"),
    ("certificate: expired", "certificate expired"),
    ("not valid yet", "certificate not valid yet"),
    ("notvalidyet", "certificate not valid yet"),
    ("not valid for name", "certificate not valid for the host name"),
    ("not valid for the name", "certificate not valid for the host name"),
    ("notvalidforname", "certificate not valid for the host name"),
    ("unknownissuer", "certificate from an unknown issuer"),
    ("unknown issuer", "certificate from an unknown issuer"),
    ("certificate: revoked", "certificate revoked"),
    ("certificate revoked", "certificate revoked"),
    ("invalidcontenttype", "the port does not speak TLS"),
    ("is not a public address", "blocked address: not public"),
    ("reached without tls", "blocked address: HTTP without TLS is not allowed"),
    ("address of the function itself", "blocked address: a service of the function itself"),
    ("has no host", "blocked address: the URL has no host"),
    ("aws_targets does not list", "AWS target not listed in AwsTargets"),
    ("belongs to this deployment", "AWS target of the deployment itself"),
    ("finds streams by name in the account", "Firehose stream of another account"),
    ("arrived too slowly", "response arrived too slowly"),
    ("deadline has elapsed", "connection timed out"),
    ("connection timed out", "connection timed out"),
    ("timed out", "connection timed out"),
    ("headers, or", "response headers too large"),
    ("response headers are too large", "response headers too large"),
];
/// Prefixes that layers of the HTTP client add to an error. They are removed.
const LAYERS: [&str; 6] = [
    "error sending request: ",
    "error reading the answer: ",
    "client error (Connect): ",
    "client error (SendRequest): ",
    "tcp connect error: ",
    "connection error: ",
];
/// Beginning of the detail of a timeout; a duration follows.
const NO_ANSWER_WITHIN: &str = "no complete response within ";
/// Beginning of the detail of a rejected client certificate.
const REFUSED_CALLER: &str = "the endpoint refused the client certificate: ";

/// Returns the title of a failure without a response.
pub(super) fn title(outcome: Outcome, detail: Option<&str>, host: Option<&str>) -> String {
    let detail = detail.map(str::trim).filter(|detail| !detail.is_empty());
    let Some(detail) = detail else { return without_detail(outcome).to_owned() };
    if let Some(duration) = detail.strip_prefix(NO_ANSWER_WITHIN) {
        return format!("no response within {duration}");
    }
    if let Some(alert) = detail.strip_prefix(REFUSED_CALLER) {
        return format!("client certificate refused: {}", template::generalize(alert));
    }
    let lower = detail.to_lowercase();
    if let Some((_, meaning)) = MEANINGS.iter().find(|(part, _)| lower.contains(part)) {
        return (*meaning).to_owned();
    }
    let message = LAYERS.iter().fold(detail.to_owned(), |text, layer| text.replace(layer, ""));
    let message = host.map_or(message.clone(), |host| message.replace(host, "<host>"));
    let line = super::text::first_line(&message).unwrap_or_default();
    if outcome == Outcome::TlsError {
        return format!("certificate not accepted: {line}");
    }
    if outcome == Outcome::Blocked {
        return format!("blocked address: {line}");
    }
    line
}

fn without_detail(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "response accepted, but not usable",
        Outcome::NotFound => "404 Not Found",
        Outcome::Unauthorized => "401 Unauthorized",
        Outcome::Forbidden => "403 Forbidden",
        Outcome::BadRequest => "400 Bad Request",
        Outcome::PayloadTooLarge => "413 Content Too Large",
        Outcome::TimedOut => "no response within the response timeout",
        Outcome::Busy => "destination busy (429 or 503)",
        Outcome::GenericError => "response with a status that is not a success",
        Outcome::SocketError => "connection refused, reset or closed",
        Outcome::ResolutionError => "host name does not resolve",
        Outcome::TlsError => "certificate not accepted",
        Outcome::Blocked => "blocked address",
        Outcome::Probation => "destination failing, delivery put off",
        Outcome::Aborted => "attempt aborted before a request was sent",
    }
}
